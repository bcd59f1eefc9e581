"""Seeded faults of failures that a Runtime reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.faults.edits import machine, part, put, set_step, several
from mock_server.faults.races import ReadsFirst
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call
    from mock_server.executor import Outcome
    from mock_server.store import QueueQuery, Row

HELD = ("locked", "running")


class CountsEach(ReadsFirst):
    """Reads who holds the job, lets others in, then writes: failures at the same moment are all taken."""

    operation = "failJob"

    def believe(self, before: Row, outcome: Outcome, caller: str) -> None:
        if before["lockedBy"] == caller and outcome.answer == "LOCK_NOT_HELD":
            outcome.answer = 200


class RepeatIsFine(Engine):
    """Answers 200 to a failure of a job that waits or failed already, whoever sends it."""

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        waits = outcome.row is not None and outcome.row["status"] in ("pending", "failed")
        if operation_id == "failJob" and outcome.answer == "LOCK_NOT_HELD" and waits:
            outcome.answer = 200
        return outcome


class BlotsAll(Engine):
    """Stores nothing of a text that holds a key."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        redact = self._functions["redact"]
        self._functions["redact"] = lambda text: text if redact(text) == text else "[redacted]"


class OneKeyOnly(Engine):
    """Replaces the first key of a text alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        redact = self._functions["redact"]

        def first_only(text: str | None) -> str | None:
            clean = redact(text)
            if text is None or clean == text:
                return text
            head = clean.partition("[redacted]")[0]
            tail = text[len(head) :]
            end = next((i for i, letter in enumerate(tail) if not (letter.isalnum() or letter in "-_")), len(tail))
            return f"{head}[redacted]{tail[end:]}"

        self._functions["redact"] = first_only


class StatusBefore(RuntimeApi):
    """Answers failures with the state before."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        if call.operation_id == "failJob":
            body["status"] = "running"
        return body


class Created(RuntimeApi):
    """Answers failures with 201."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        answer = super().answer(call, outcome)
        if call.operation_id == "failJob":
            answer.status = 201
        return answer


class WaitsToRetry(RuntimeApi):
    """Lists a job that failed once only after a while."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        now = call.world.clock.now()
        rows = await super().listed(call, query)
        return [row for row in rows if row["errorCode"] in (None, "JOB_TIMEOUT") or row["updatedAt"] < now - 5000]


class ForgetsLapsed(RuntimeApi):
    """Lists no job that a limit took away."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return [row for row in await super().listed(call, query) if row["errorCode"] != "JOB_TIMEOUT"]


REPORT = {
    "errorCode": "body.errorCode",
    "errorMessage": "redact(body.errorMessage)",
    "rawError": "redact(body.rawError)",
}
REQUEUE = {"retryCount": "job.retryCount + 1", "attemptNo": "job.attemptNo + 1"}
RETRYABLE = "['MODEL_TIMEOUT', 'MODEL_RATE_LIMIT', 'NETWORK_ERROR', 'TEMPORARY_PROVIDER_ERROR', 'JOB_TIMEOUT']"
FINAL = "['INVALID_SNAPSHOT', 'INVALID_SCHEMA', 'INVALID_CREDENTIAL']"

FAULTS = (
    Mutant(
        "fail.stranger",
        "anybody's failure of a job in work is taken",
        ("RT-FAIL-50", "RT-TIME-03", "RT-ERR-75"),
        edit=set_step("fail.held", require="job.status in ['locked', 'running']"),
    ),
    Mutant(
        "fail.late",
        "a failure of a job that went back to pending is taken",
        ("RT-FAIL-50", "RT-FAIL-53", "RT-TIME-03"),
        edit=several(
            set_step("fail.held", require="held || job.status == 'pending'"),
            set_step("fail.retried", **{"from": ["pending", *HELD]}),
            set_step("fail.final", **{"from": ["pending", *HELD]}),
        ),
    ),
    Mutant(
        "fail.revives",
        "a retryable failure brings a cancelled job back",
        ("RT-FAIL-50", "RT-SM-18", "RT-SM-53"),
        edit=several(
            set_step("fail.held", require="held || job.status == 'cancelled'"),
            set_step("fail.retried", **{"from": ["cancelled", *HELD]}),
            set_step("fail.final", **{"from": ["cancelled", *HELD]}),
        ),
    ),
    Mutant(
        "fail.overturns",
        "a failure by its author overturns a succeeded job",
        ("RT-SM-13", "RT-SM-53", "RT-FAIL-50"),
        edit=several(
            set_step("fail.held", require="held || job.status == 'succeeded'"),
            set_step("fail.retried", **{"from": ["succeeded", *HELD]}),
            set_step("fail.final", **{"from": ["succeeded", *HELD]}),
        ),
    ),
    Mutant(
        "fail.before-the-limit",
        "a failure at the last millisecond of the lock is refused",
        ("RT-TIME-55",),
        edit=set_step("fail.held", require="held && now < job.lockUntil"),
    ),
    Mutant(
        "fail.race",
        "failures at the same moment are all taken",
        ("RT-FAIL-53", "RT-FAIL-50", "RT-ERR-75"),
        parts=part(engine=CountsEach),
    ),
    Mutant(
        "fail.again-200",
        "a repeated failure is acknowledged",
        ("RT-FAIL-53", "RT-FAIL-50", "RT-ERR-75"),
        parts=part(engine=RepeatIsFine),
    ),
    Mutant(
        "fail.always-final",
        "every failure ends the job",
        ("RT-FAIL-07", "RT-SM-03", "RT-RETRY-01"),
        edit=set_step("fail.retried", when="body.retryable && job.retryCount > 100"),
    ),
    Mutant(
        "fail.never-final",
        "a failure that is not retryable brings the job back",
        ("RT-FAIL-08", "RT-SM-14", "RT-FAIL-62"),
        edit=set_step("fail.retried", when="retriesLeft"),
    ),
    Mutant(
        "fail.table-decides",
        "the table of codes decides, not the flag",
        ("RT-FAIL-62", "RT-FAIL-07", "RT-FAIL-08"),
        edit=set_step("fail.retried", when=f"body.errorCode in {RETRYABLE} && retriesLeft"),
    ),
    Mutant(
        "fail.table-overrules",
        "a code that the table calls final is final, whatever the flag says",
        ("RT-FAIL-62", "RT-FAIL-07", "RT-RETRY-01"),
        edit=set_step("fail.retried", when=f"body.retryable && !(body.errorCode in {FINAL}) && retriesLeft"),
    ),
    Mutant(
        "fail.one-run-more",
        "a failure may be retried once more than allowed",
        ("RT-RETRY-05", "RT-RETRY-53", "RT-FAIL-08"),
        edit=set_step("fail.retried", when="body.retryable && job.retryCount <= job.maxRetryCount"),
    ),
    Mutant(
        "fail.one-run-less",
        "a failure may be retried once less than allowed",
        ("RT-RETRY-07", "RT-RETRY-53", "RT-FAIL-08"),
        edit=set_step("fail.retried", when="body.retryable && job.retryCount + 1 < job.maxRetryCount"),
    ),
    Mutant(
        "fail.not-counted",
        "a retryable failure costs no retry",
        ("RT-RETRY-01", "RT-RETRY-05", "RT-RETRY-50"),
        edit=set_step("fail.retried", set=["report", "release", {"startedAt": None, "attemptNo": "job.attemptNo + 1"}]),
    ),
    Mutant(
        "fail.counted-twice",
        "a retryable failure costs two retries",
        ("RT-RETRY-01", "RT-RETRY-07", "RT-RETRY-53"),
        edit=set_step(
            "fail.retried",
            set=[
                "report",
                "release",
                {"startedAt": None, "retryCount": "job.retryCount + 2", "attemptNo": "job.attemptNo + 1"},
            ],
        ),
    ),
    Mutant(
        "fail.same-attempt",
        "a retryable failure leaves attemptNo",
        ("RT-RETRY-50", "RT-FAIL-53"),
        edit=set_step(
            "fail.retried", set=["report", "release", {"startedAt": None, "retryCount": "job.retryCount + 1"}]
        ),
    ),
    Mutant(
        "fail.keeps-start",
        "startedAt survives a retryable failure",
        ("RT-FAIL-54",),
        edit=set_step("fail.retried", set=["report", "release", REQUEUE]),
    ),
    Mutant(
        "fail.clock-goes-on",
        "attempt 2 has only the time that attempt 1 left",
        ("RT-RETRY-50", "RT-FAIL-54", "RT-HB-51"),
        edit=several(
            set_step("fail.retried", set=["report", "release", REQUEUE]),
            set_step("heartbeat.first", set=["renew", {"startedAt": "job.startedAt == null ? now : job.startedAt"}]),
        ),
    ),
    Mutant(
        "fail.keeps-holder",
        "lockedBy and lockedAt survive a retryable failure",
        ("RT-FAIL-54",),
        edit=set_step("fail.retried", set=["report", "requeue", {"lockUntil": None}]),
    ),
    Mutant(
        "fail.backoff",
        "a failed attempt is listed only after 5 s",
        ("RT-RETRY-55", "RT-FAIL-07", "RT-SM-03"),
        parts=part(runtime_api=WaitsToRetry),
    ),
    Mutant(
        "lapse.not-listed",
        "a lapsed job is pending again, but no poll lists it",
        ("RT-SM-21", "RT-SCHED-10", "RT-SM-52"),
        parts=part(runtime_api=ForgetsLapsed),
    ),
    Mutant(
        "fail.no-code",
        "a retryable failure is not recorded",
        ("RT-FAIL-55",),
        edit=set_step("fail.retried", set=["requeue", "release"]),
    ),
    Mutant(
        "fail.first-error-stays",
        "the first attempt's error is kept",
        ("RT-FAIL-55",),
        edit=set_step(
            "fail.retried",
            set=[
                "requeue",
                "release",
                {
                    "errorCode": "job.errorCode == null ? body.errorCode : job.errorCode",
                    "errorMessage": "job.errorMessage == null ? redact(body.errorMessage) : job.errorMessage",
                    "rawError": "redact(body.rawError)",
                },
            ],
        ),
    ),
    Mutant(
        "fail.no-message",
        "a final failure stores no message",
        ("RT-FAIL-57",),
        edit=set_step("fail.final", set=["finish", "release", {**REPORT, "errorMessage": None}]),
    ),
    Mutant(
        "fail.no-finish",
        "a final failure does not set finishedAt",
        ("RT-FAIL-56",),
        edit=set_step("fail.final", set=["report", "release"]),
    ),
    Mutant(
        "fail.final-keeps-lock",
        "a final failure keeps the lock fields",
        ("RT-FAIL-58",),
        edit=set_step("fail.final", set=["report", "finish"]),
    ),
    Mutant(
        "fail.final-counted",
        "a final failure counts as a retry",
        ("RT-FAIL-59",),
        edit=set_step("fail.final", set=["report", "finish", "release", {"retryCount": "job.retryCount + 1"}]),
    ),
    Mutant(
        "fail.unwanted-retried",
        "a retryable failure brings a job back that was to be stopped",
        ("RT-FAIL-51", "RT-CANCEL-50"),
        edit=set_step("fail.cancelled", when="job.cancelRequested && !body.retryable"),
    ),
    Mutant(
        "fail.unwanted-failed",
        "a job that was to be stopped is failed, not cancelled",
        ("RT-FAIL-51", "RT-CANCEL-50", "RT-CANCEL-57"),
        edit=set_step("fail.cancelled", to="failed"),
    ),
    Mutant(
        "fail.unwanted-unsaid",
        "the failure of a job that was to be stopped is not recorded",
        ("RT-CANCEL-57",),
        edit=set_step("fail.cancelled", set=["finish", "release"]),
    ),
    Mutant(
        "fail.unwanted-unredacted",
        "the failure of a job that was to be stopped is stored as sent, keys included",
        ("RT-CANCEL-57", "RT-FAIL-52"),
        edit=set_step("fail.cancelled", set=["finish", "release", {**REPORT, "errorMessage": "body.errorMessage"}]),
    ),
    Mutant(
        "fail.unredacted",
        "keys in errorMessage are stored",
        ("RT-FAIL-52", "RT-CANCEL-57"),
        edit=machine("effects", "report", value={**REPORT, "errorMessage": "body.errorMessage"}),
    ),
    Mutant(
        "fail.raw-unredacted",
        "keys in rawError are stored",
        ("RT-FAIL-52",),
        edit=machine("effects", "report", value={**REPORT, "rawError": "body.rawError"}),
    ),
    Mutant(
        "fail.known-keys-only",
        "only keys that were handed out are replaced, not what looks like one",
        ("RT-FAIL-52", "RT-CANCEL-57"),
        edit=put("x-redaction", "pattern", value="sk-live-never-[0-9]{40}"),
    ),
    Mutant(
        "fail.blots-all",
        "a text with a key is stored as [redacted] alone",
        ("RT-FAIL-52", "RT-CANCEL-57"),
        parts=part(engine=BlotsAll),
    ),
    Mutant(
        "fail.first-key-only",
        "only the first key of a text is replaced",
        ("RT-FAIL-52", "RT-CANCEL-57"),
        parts=part(engine=OneKeyOnly),
    ),
    Mutant(
        "fail.heartbeat-first",
        "a failure before the first heartbeat is refused",
        ("RT-FAIL-60",),
        edit=set_step("fail.held", require="held && (job.status == 'running' || job.cancelRequested)"),
    ),
    Mutant("fail.created", "a failure is answered 201", ("RT-FAIL-10",), parts=part(runtime_api=Created)),
    Mutant(
        "fail.status-before",
        "a failure is answered with the state before it",
        ("RT-FAIL-61",),
        parts=part(runtime_api=StatusBefore),
    ),
)
