"""Seeded faults of the hub's retries, those that come by themselves and those by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.faults.edits import machine, part, set_step
from mock_server.faults.hub_failure import MODEL, constant
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB
from mock_server.hub.nodes import Nodes
from mock_server.mutants import Mutant
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Answer, Call
    from mock_server.executor import Outcome
    from mock_server.store import Row

ANEW = (
    "startedAt",
    "finishedAt",
    "sessionId",
    "result",
    "failureType",
    "failureMessage",
    "lastError",
    "progress",
    "nextRetryAt",
)
AGAIN: dict[str, Any] = {
    "nextRetryAt": None,
    "finishedAt": None,
    "failureType": None,
    "failureMessage": None,
    "lastError": "job.failureMessage",
}


def again(**values: Any) -> Callable[[dict[str, Any]], None]:
    """What becomes of a job when its retry comes; ``"kept"`` leaves a column as it was."""
    columns = {**AGAIN, **values}
    kept = {name: f"job.{name}" if value == "kept" else value for name, value in columns.items()}
    return machine("effects", "again", value=kept)


def anew(**values: Any) -> Callable[[dict[str, Any]], None]:
    """What becomes of a job that is retried by hand; ``"kept"`` leaves a column as it was."""
    columns = {"attempt": 0, "queuedAt": "nextPlace", **dict.fromkeys(ANEW), **values}
    kept = {name: f"job.{name}" if value == "kept" else value for name, value in columns.items()}
    return machine("effects", "anew", value=kept)


class SameSession(Nodes):
    """Goes on in the session of the attempt before."""

    @staticmethod
    def new_session(row: Row) -> str:
        return str(row["sessionId"] or Nodes.new_session(row))


class OneTimer(Engine):
    """One timer for all retries of a node, which is set to the latest of them."""

    async def fire(self, name: str, key: str, now: int, **given: Any) -> Outcome:
        outcome = await super().fire(name, key, now, **given)
        row = outcome.row
        if name != "report" or row is None or row["nextRetryAt"] is None:
            return outcome
        mine = [other for other in await self.store.rows(JOB) if other["nodeId"] == row["nodeId"]]
        latest = max(other["nextRetryAt"] or 0 for other in mine)
        if latest > row["nextRetryAt"]:
            late = {**row, "nextRetryAt": latest}
            await self.store.commit([Change(JOB, row, late, self.executor.due(late, key))])
        return outcome


class TakesEach(Engine):
    """Reads the job, lets others in, then writes: requests at the same moment are all taken."""

    operation = "retryHubJob"
    states = ("failed", "cancelled")

    async def perform(self, operation_id: str, inputs: Mapping[str, Any]) -> Outcome:
        if operation_id != self.operation:
            return await super().perform(operation_id, dict(inputs))
        before = await self.store.get(JOB, inputs["path"]["jobId"])
        await asyncio.sleep(0.003)
        outcome = await super().perform(operation_id, dict(inputs))
        if before is not None and before["status"] in self.states and isinstance(outcome.answer, str):
            outcome.answer = 200
        return outcome


class Accepted(HubApi):
    """Answers a retry by hand with 202."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "retryHubJob":
            answer.status = 202
        return answer


class NeedsTheNode(HubApi):
    """Refuses a retry by hand while the job's node is offline."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "retryHubJob":
            row = await self.job(call)
            if not await call.world.hub.nodes.online(row["nodeId"]):
                raise self.refusal("job_not_retryable")
        return await super().operate(call)


class AnswersBefore(HubApi):
    """Answers a retry by hand with the job as it was before."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id != "retryHubJob":
            return await super().operate(call)
        before = await call.world.hub.detail(await self.job(call))
        answer = await super().operate(call)
        answer.body["data"] = before
        return answer


FAULTS = (
    Mutant(
        "hub-retry.one-more",
        "a job with fewer than four attempts runs once more than it may",
        ("HUB-RETRY-01", "HUB-RETRY-52"),
        edit=machine("define", "retried", value=f"({MODEL}) && job.attempt <= job.maxAttempts && job.attempt < 4"),
    ),
    Mutant(
        "hub-retry.one-less",
        "a job runs once less than it may",
        ("HUB-RETRY-01", "HUB-RETRY-50"),
        edit=machine("define", "retried", value=f"({MODEL}) && job.attempt + 1 < job.maxAttempts"),
    ),
    Mutant(
        "hub-retry.always-four",
        "`maxAttempts` is ignored: always four",
        ("HUB-RETRY-01", "HUB-RETRY-52"),
        edit=machine("define", "retried", value=f"({MODEL}) && job.attempt < 4"),
    ),
    Mutant(
        "hub-retry.flat",
        "every backoff is the first one",
        ("HUB-RETRY-02", "HUB-RETRY-51"),
        edit=constant("backoff", "seconds", [30, 30, 30]),
    ),
    Mutant(
        "hub-retry.no-first",
        "the first backoff is one second, whatever the base delay (SF-31)",
        ("HUB-RETRY-02", "HUB-RETRY-51"),
        edit=machine("constants", "backoff", value={"seconds": [1, 120, 600]}),
    ),
    Mutant(
        "hub-retry.never",
        "the retry after the third attempt is told and never comes (SF-31)",
        ("HUB-RETRY-02", "HUB-RETRY-53"),
        edit=machine("timers", "retry-due", "at", value="job.attempt == 3 ? null : job.nextRetryAt"),
    ),
    Mutant(
        "hub-retry.overflow",
        "the third backoff overflows to nothing",
        ("HUB-RETRY-02", "HUB-RETRY-51"),
        edit=constant("backoff", "seconds", [30, 120, 0]),
    ),
    Mutant(
        "hub-retry.a-second-more",
        "the second backoff is 121 s",
        ("HUB-RETRY-51", "HUB-RETRY-02"),
        edit=constant("backoff", "seconds", [30, 121, 600]),
    ),
    Mutant(
        "hub-retry.from-the-start",
        "the backoff counts from the round's start, where that was a second ago",
        ("HUB-RETRY-51", "HUB-RETRY-02"),
        edit=set_step("report.retried", set=["over", "fail", {"nextRetryAt": "now - 1000 + backoff[job.attempt - 1]"}]),
    ),
    Mutant(
        "hub-retry.one-timer",
        "one long backoff holds up the retries of all jobs of its node",
        ("HUB-RETRY-02", "HUB-RETRY-51"),
        parts=part(engine=OneTimer),
    ),
    Mutant(
        "hub-retry.late",
        "a retry comes a millisecond after `nextRetryAt`",
        ("HUB-RETRY-53", "HUB-GET-13"),
        edit=machine("timers", "retry-due", "at", value="job.nextRetryAt != null ? job.nextRetryAt + 1 : null"),
    ),
    Mutant(
        "hub-retry.early",
        "a retry comes a second before `nextRetryAt`",
        ("HUB-RETRY-53", "HUB-GET-13", "HUB-RETRY-02"),
        edit=machine("timers", "retry-due", "at", value="job.nextRetryAt != null ? job.nextRetryAt - 1000 : null"),
    ),
    Mutant(
        "hub-retry.same-session",
        "a retry goes on in the session before",
        ("HUB-RETRY-03",),
        parts=part(nodes=SameSession),
    ),
    Mutant(
        "hub-retry.keeps-failure",
        "a job that is queued for its retry still shows its failure",
        ("HUB-RETRY-54", "HUB-GET-60"),
        edit=again(failureType="kept", failureMessage="kept"),
    ),
    Mutant(
        "hub-retry.keeps-finish",
        "a job that is queued for its retry still is finished at some time",
        ("HUB-RETRY-54",),
        edit=again(finishedAt="kept"),
    ),
    Mutant(
        "hub-retry.no-reason",
        "nothing tells why the attempt before failed",
        ("HUB-RETRY-55", "HUB-GET-62", "HUB-GET-19"),
        edit=again(lastError=None),
    ),
    Mutant(
        "hub-retry.first-reason",
        "`lastError` stays the first attempt's",
        ("HUB-RETRY-55", "HUB-GET-62", "HUB-GET-19"),
        edit=again(lastError="job.lastError == null ? job.failureMessage : job.lastError"),
    ),
    Mutant(
        "hub-retry.no-finish",
        "a failure that is retried does not finish the attempt",
        ("HUB-RETRY-50", "HUB-GET-55"),
        edit=set_step(
            "report.retried",
            set=[
                "over",
                {"failureType": "report.type", "failureMessage": "report.message"},
                {"nextRetryAt": "now + backoff[job.attempt - 1]"},
            ],
        ),
    ),
    Mutant(
        "hub-retry.final-waits",
        "a final failure still names a next time",
        ("HUB-RETRY-52",),
        edit=set_step("report.final", set=["over", "fail", {"nextRetryAt": "now + 86400000"}]),
    ),
    Mutant(
        "hub-retry.by-hand.of-done",
        "a done job can be retried by hand",
        ("HUB-RETRY-07", "HUB-RETRY-08"),
        edit=set_step("retry", **{"from": ["failed", "cancelled", "done"]}),
    ),
    Mutant(
        "hub-retry.by-hand.of-queued",
        "a queued job can be retried by hand, and goes to the end",
        ("HUB-RETRY-07", "HUB-RETRY-08"),
        edit=set_step("retry", **{"from": ["failed", "cancelled", "queued"]}),
    ),
    Mutant(
        "hub-retry.by-hand.not-cancelled",
        "a cancelled job can't be retried by hand",
        ("HUB-RETRY-06", "HUB-RETRY-07", "HUB-RETRY-56"),
        edit=set_step("retry", **{"from": ["failed"]}),
    ),
    Mutant(
        "hub-retry.by-hand.not-waiting",
        "a job with a retry to come can't be retried by hand",
        ("HUB-RETRY-06", "HUB-RETRY-07", "HUB-RETRY-56"),
        edit=set_step("retry", when="job.nextRetryAt == null"),
    ),
    Mutant(
        "hub-retry.by-hand.counts-on",
        "a retry by hand goes on counting attempts",
        ("HUB-RETRY-09", "HUB-RETRY-57"),
        edit=anew(attempt="job.attempt < 4 ? job.attempt : 3"),
    ),
    Mutant(
        "hub-retry.by-hand.202",
        "a retry by hand is answered 202",
        ("HUB-RETRY-56",),
        parts=part(api=Accepted),
    ),
    Mutant(
        "hub-retry.by-hand.before",
        "a retry by hand is answered with the job as it was",
        ("HUB-RETRY-56", "HUB-RETRY-57"),
        parts=part(api=AnswersBefore),
    ),
    Mutant(
        "hub-retry.by-hand.node-away",
        "no retry by hand while the node is offline",
        ("HUB-RETRY-56",),
        parts=part(api=NeedsTheNode),
    ),
    Mutant(
        "hub-retry.by-hand.keeps-place",
        "a job that is retried by hand keeps its `queuedAt`",
        ("HUB-RETRY-58", "HUB-LIST-60"),
        edit=anew(queuedAt="job.queuedAt"),
    ),
    Mutant(
        "hub-retry.by-hand.keeps-start",
        "`startedAt` survives a retry by hand",
        ("HUB-RETRY-59", "HUB-GET-54"),
        edit=anew(startedAt="kept"),
    ),
    Mutant(
        "hub-retry.by-hand.keeps-progress",
        "progress survives a retry by hand",
        ("HUB-RETRY-59", "HUB-GET-63"),
        edit=anew(progress="kept"),
    ),
    Mutant(
        "hub-retry.by-hand.keeps-reason",
        "`lastError` survives a retry by hand",
        ("HUB-RETRY-60", "HUB-GET-62"),
        edit=anew(lastError="job.failureMessage"),
    ),
    Mutant(
        "hub-retry.by-hand.each",
        "retries by hand at the same moment are all taken",
        ("HUB-RETRY-08", "HUB-RETRY-07"),
        parts=part(engine=TakesEach),
    ),
)
