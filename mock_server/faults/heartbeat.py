"""Seeded faults of heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.app import Sender
from mock_server.calls import Answer
from mock_server.faults.edits import first_step, machine, part, set_step, several
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from mock_server.calls import Call, Exchange
    from mock_server.executor import Outcome


class HeartbeatWithBody(RuntimeApi):
    """Answers 200 with a body."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        answer = super().answer(call, outcome)
        if call.operation_id == "heartbeatJob":
            answer.status, answer.body = 200, {"ok": True}
        return answer


class BodyBehind204(Sender):
    """Sends a body with a 204, which ends with its head."""

    async def send(self, answer: Answer, exchange: Exchange, send: Any) -> None:
        if answer.status == 204:
            answer = Answer(204, {"ok": True}, answer.headers)
        await super().send(answer, exchange, send)


FAULTS = (
    Mutant(
        "heartbeat.stranger",
        "anybody's heartbeat extends the lock",
        ("RT-HB-03", "RT-HB-50", "RT-ERR-75"),
        edit=set_step("heartbeat.held", require="job.status in ['locked', 'running'] && now <= job.lockUntil"),
    ),
    Mutant(
        "heartbeat.no-extension",
        "a heartbeat does not extend the lock",
        ("RT-HB-04",),
        edit=set_step("heartbeat", set=[{"errorCode": None}]),
    ),
    Mutant(
        "heartbeat.adds-up",
        "a heartbeat adds 60 s to the old end of the lock",
        ("RT-HB-04",),
        edit=set_step("heartbeat", set=[{"lockUntil": "job.lockUntil + lockTime"}]),
    ),
    Mutant(
        "heartbeat.no-start",
        "the first heartbeat does not start the run",
        ("RT-HB-51", "RT-SM-11", "RT-SM-08"),
        edit=set_step("heartbeat.first", to=None, set=["renew"]),
    ),
    Mutant(
        "heartbeat.restarts",
        "every heartbeat sets startedAt anew",
        ("RT-HB-52", "RT-TIME-54"),
        edit=set_step("heartbeat", set=["renew", {"startedAt": "now"}]),
    ),
    Mutant(
        "heartbeat.with-body",
        "a heartbeat is answered 200 with a body",
        ("RT-HB-05", "RT-HB-06"),
        parts=part(runtime_api=HeartbeatWithBody),
    ),
    Mutant(
        "heartbeat.body-behind-204",
        "a heartbeat is answered 204, and a body comes behind it",
        ("RT-HB-06", "RT-HB-05"),
        parts=part(sender=BodyBehind204),
    ),
    Mutant(
        "heartbeat.not-told",
        "the cancel request is not told",
        ("RT-HB-09", "RT-HB-55", "RT-CANCEL-05"),
        edit=machine("define", "stopAsked", value="job.status == 'pending' ? 'true' : null"),
    ),
    Mutant(
        "heartbeat.always-told",
        "every heartbeat tells of a cancel request",
        ("RT-HB-56",),
        edit=machine("define", "stopAsked", value="job.status == 'pending' ? null : 'true'"),
    ),
    Mutant(
        "heartbeat.wrong-code",
        "who does not hold the lock is told JOB_ALREADY_LOCKED",
        ("RT-HB-50", "RT-ERR-75"),
        edit=set_step("heartbeat.held", **{"else": "JOB_ALREADY_LOCKED"}),
    ),
    Mutant(
        "heartbeat.noted",
        "a stranger's heartbeat is refused and yet noted on the job",
        ("RT-HB-53",),
        edit=first_step(
            "heartbeatJob",
            **{"from": ["locked", "running"], "when": "job.lockedBy != caller"},
            set=[{"errorMessage": "'heartbeat by ' + caller"}],
            answer="LOCK_NOT_HELD",
        ),
    ),
    Mutant(
        "heartbeat.stopped-refused",
        "the heartbeat of a job that is to stop is refused",
        ("RT-HB-54", "RT-CANCEL-54", "RT-HB-09"),
        edit=set_step("heartbeat.held", require="held && !job.cancelRequested"),
    ),
    Mutant(
        "heartbeat.stopped-not-extended",
        "the heartbeat of a job that is to stop does not extend its lock",
        ("RT-HB-54", "RT-HB-04", "RT-HB-51"),
        edit=first_step(
            "heartbeatJob",
            **{"from": ["locked", "running"], "when": "held && job.cancelRequested"},
            answer=204,
            headers={"x-job-cancel-requested": "stopAsked"},
        ),
    ),
    Mutant(
        "heartbeat.stays-locked",
        "the first heartbeat notes the start, but the status stays locked",
        ("RT-SM-07", "RT-SM-08", "RT-SM-09"),
        edit=several(
            set_step(
                "heartbeat.first",
                to=None,
                set=["renew", {"startedAt": "job.startedAt == null ? now : job.startedAt"}],
            ),
            machine("timers", "run-times-out", "from", value=["locked", "running"]),
        ),
    ),
    Mutant(
        "heartbeat.revives",
        "the heartbeat of who lost its lock takes the pending job back",
        ("RT-TIME-03", "RT-HB-03", "RT-HB-50"),
        edit=several(
            set_step(
                "heartbeat.held",
                require="job.lockedBy == caller && job.status in ['pending', 'locked', 'running']",
            ),
            set_step("expired.retried", set=["requeue", {"lockedAt": None, "lockUntil": None}]),
            set_step("heartbeat.first", **{"from": ["pending", "locked"]}),
        ),
    ),
)
