"""Seeded faults of results and their idempotency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.faults.edits import add_step, machine, part, put, set_step, several, step
from mock_server.faults.races import ReadsFirst
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mock_server.calls import Answer, Call
    from mock_server.executor import Outcome
    from mock_server.store import Row

HELD = ("locked", "running")


class StoredTwice(Engine):
    """Stores a repeated result as another row."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.more: list[Row] = []

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        if operation_id == "submitResult" and outcome.answer == 200:
            self.more.append({**body, "jobId": path["jobId"]})
        return outcome

    async def rows_of(self, entity: str, value: str) -> Sequence[Row]:
        more = [row for row in self.more if entity == "Result" and row["jobId"] == value]
        return [*await super().rows_of(entity, value), *more]


class Overwrites(Engine):
    """The last result counts."""

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        if operation_id == "submitResult" and outcome.answer == "RESULT_ALREADY_EXISTS":
            old = await self.store.get("Result", path["jobId"])
            if old is not None:
                new = {**old, "outputHash": body["outputHash"], "validatedOutput": body["validatedOutput"]}
                await self.store.commit([Change("Result", old, new)])
                outcome.answer = 200
        return outcome


class ReadThenWrite(ReadsFirst):
    """Reads whether there is a result, lets others in, then writes: whoever saw none is answered 201."""

    operation = "submitResult"

    def believe(self, before: Row, outcome: Outcome, caller: str) -> None:
        if before["status"] in HELD and outcome.answer in (200, "RESULT_ALREADY_EXISTS"):
            self.second(outcome)

    def second(self, outcome: Outcome) -> None:
        """What becomes of one that comes second, and saw no result."""
        outcome.answer = 201


class UniqueViolation(ReadThenWrite):
    """The database's unique index refuses the second row, which nobody expects."""

    def second(self, outcome: Outcome) -> None:
        raise RuntimeError("duplicate key value violates unique constraint")


class Completed(Engine):
    """Has another name for the state."""

    async def job(self, key: str) -> Row | None:
        row = await super().job(key)
        return {**row, "status": "completed"} if row is not None and row["status"] == "succeeded" else row


class Underscores(RuntimeApi):
    """Names a section of the snapshot in another style."""

    def snapshot(self, job: Row, snapshot: Row) -> dict[str, Any]:
        shown = super().snapshot(job, snapshot)
        return {("behavior_signals" if name == "behaviorSignals" else name): value for name, value in shown.items()}


class ShowsTheAskedKey(RuntimeApi):
    """Answers a repeat with the key of the request, not with the stored one."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        if "resultIdempotencyKey" in body:
            sent = call.body
            body["resultIdempotencyKey"] = f"{call.path['jobId']}:{sent['attemptNo']}:{sent['outputHash']}"
        return body


class NoBody(RuntimeApi):
    """Answers results without a body."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        answer = super().answer(call, outcome)
        if call.operation_id == "submitResult":
            answer.body = None
        return answer


JOINED = "string(body.attemptNo) + body.outputHash == string(result.attemptNo) + result.outputHash"

FAULTS = (
    Mutant(
        "result.former-holder",
        "a result is taken although the job went back to pending",
        ("RT-RES-53", "RT-TIME-03", "RT-ERR-75"),
        edit=several(
            set_step("result.held", require="held || job.status == 'pending'"),
            set_step("result", **{"from": ["pending", *HELD]}),
        ),
    ),
    Mutant(
        "result.stranger",
        "anybody's result for a job in work is taken",
        ("RT-RES-53", "RT-TIME-03", "RT-RES-64"),
        edit=set_step("result.held", require="job.status in ['locked', 'running']"),
    ),
    Mutant(
        "result.before-the-limit",
        "a result at the last millisecond of the lock is refused",
        ("RT-TIME-55",),
        edit=set_step("result.held", require="held && now < job.lockUntil"),
    ),
    Mutant(
        "result.revives-failed",
        "a late result makes a failed job succeeded",
        ("RT-RES-53", "RT-SM-16", "RT-SM-53"),
        edit=several(
            set_step("result.held", require="held || job.status == 'failed'"),
            set_step("result", **{"from": ["failed", *HELD]}),
        ),
    ),
    Mutant(
        "result.buried",
        "the sweeper takes a succeeded job for one that runs too long",
        ("RT-SM-13", "RT-SM-53"),
        edit=machine("timers", "run-times-out", "from", value=["running", "succeeded"]),
    ),
    Mutant(
        "result.completed",
        "a job with a result is called completed",
        ("RT-RES-14", "RT-SM-12", "RT-SM-10"),
        parts=part(engine=Completed),
    ),
    Mutant("result.first-200", "the first result is answered 200", ("RT-RES-13",), edit=set_step("result", answer=200)),
    Mutant(
        "result.again-201",
        "a repeated result is answered 201",
        ("RT-RES-15", "RT-IDEM-06", "RT-RES-51"),
        edit=set_step("result.again", answer=201),
    ),
    Mutant(
        "result.stored-twice",
        "a repeated result is stored again",
        ("RT-IDEM-06", "RT-RES-19", "RT-DB-35"),
        parts=part(engine=StoredTwice),
    ),
    Mutant(
        "result.again-by-author",
        "a repeat is known only by who sent the first",
        ("RT-RES-61", "RT-RES-15", "RT-IDEM-06"),
        edit=several(
            put("components", "schemas", "Result", "properties", "by", value={"type": "string"}),
            lambda document: step(document, "result")["create"]["Result"].update(by="caller"),
            set_step("result.again", when="body.outputHash == result.outputHash && result.by == caller"),
        ),
    ),
    Mutant(
        "result.again-for-a-minute",
        "a repeat is known only as long as the lock would have lasted",
        ("RT-RES-61", "RT-RES-15", "RT-IDEM-06"),
        edit=set_step("result.again", when="body.outputHash == result.outputHash && now <= job.finishedAt + lockTime"),
    ),
    Mutant(
        "result.other-accepted",
        "another result for a succeeded job is taken for a repeat",
        ("RT-RES-16", "RT-ERR-12"),
        edit=set_step("result.other", answer=200),
    ),
    Mutant(
        "result.overwrites",
        "another result replaces the first",
        ("RT-RES-16", "RT-ERR-12", "RT-RES-61"),
        parts=part(engine=Overwrites),
    ),
    Mutant(
        "result.other-attempt",
        "the same hash under another attempt is refused",
        ("RT-RES-51",),
        edit=set_step(
            "result.again", when="body.outputHash == result.outputHash && body.attemptNo == result.attemptNo"
        ),
    ),
    Mutant(
        "result.race",
        "results at the same moment are all answered 201",
        ("RT-RES-16", "RT-IDEM-06", "RT-RES-15"),
        parts=part(engine=ReadThenWrite),
    ),
    Mutant(
        "result.race-500",
        "of results at the same moment all but one are 500",
        ("RT-RES-15", "RT-IDEM-06", "RT-RES-16"),
        parts=part(engine=UniqueViolation),
    ),
    Mutant(
        "result.key-joined",
        "the key has no separators",
        ("RT-IDEM-04", "RT-RES-50", "RT-RES-16"),
        edit=several(
            set_step("result.again", when=f"{JOINED} || body.outputHash == result.outputHash"),
            lambda document: step(document, "result")["create"]["Result"].update(
                resultIdempotencyKey="job.id + string(body.attemptNo) + body.outputHash"
            ),
        ),
    ),
    Mutant(
        "result.key-joined-unseen",
        "attempt 1 with hash 1x is taken for attempt 11 with hash x",
        ("RT-IDEM-04", "RT-RES-16", "RT-ERR-12"),
        edit=set_step("result.again", when=f"{JOINED} || body.outputHash == result.outputHash"),
    ),
    Mutant(
        "result.key-as-asked",
        "a repeat is answered with the key of the request",
        ("RT-RES-50",),
        parts=part(runtime_api=ShowsTheAskedKey),
    ),
    Mutant("result.no-body", "results are answered without a body", ("RT-RES-50",), parts=part(runtime_api=NoBody)),
    Mutant(
        "result.heartbeat-first",
        "a result before the first heartbeat is refused",
        ("RT-RES-55",),
        edit=add_step(
            "result.schema",
            {
                "id": "result.running",
                "require": "job.status == 'running'",
                "else": "LOCK_NOT_HELD",
                "requirements": ["RT-RES-55"],
            },
        ),
    ),
    Mutant(
        "result.error-stays",
        "an older failure's code stays on a succeeded job",
        ("RT-RES-59",),
        edit=machine("effects", "success", value={"startedAt": "job.startedAt == null ? now : job.startedAt"}),
    ),
    Mutant(
        "result.no-start",
        "a result before the first heartbeat leaves startedAt empty",
        ("RT-RES-57",),
        edit=machine("effects", "success", value={"errorCode": None, "errorMessage": None}),
    ),
    Mutant(
        "result.start-anew",
        "a result sets startedAt although the run began before",
        ("RT-RES-57",),
        edit=machine("effects", "success", value={"errorCode": None, "errorMessage": None, "startedAt": "now"}),
    ),
    Mutant(
        "result.no-finish", "finishedAt is not set", ("RT-RES-56",), edit=set_step("result", set=["success", "release"])
    ),
    Mutant(
        "result.lock-stays",
        "a succeeded job keeps its lock fields",
        ("RT-RES-58",),
        edit=set_step("result", set=["success", "finish"]),
    ),
    Mutant(
        "result.attempt-compared",
        "a result of another attempt than the job's is refused",
        ("RT-RES-72",),
        edit=add_step(
            "result.schema",
            {
                "id": "result.attempt",
                "require": "body.attemptNo == job.attemptNo",
                "else": "LOCK_NOT_HELD",
                "requirements": ["RT-RES-72"],
            },
        ),
    ),
    Mutant(
        "result.any-known-schema",
        "any known schema version is taken for any job",
        ("RT-RES-62",),
        edit=set_step("result.schema", require="body.schemaVersion in schemaVersions"),
    ),
    Mutant(
        "result.any-schema",
        "any schema version is taken",
        ("RT-RES-17", "RT-ERR-13", "RT-RES-62"),
        edit=set_step("result.schema", require="true"),
    ),
    Mutant(
        "result.two-schemas",
        "flashcards can't be submitted",
        ("RT-RES-54",),
        edit=machine("constants", "schemaVersions", value={"value": ["analysis_output_v1", "quiz_output_v1"]}),
    ),
    Mutant(
        "result.schema-fails-the-job",
        "a result of a wrong schema makes the job failed",
        ("RT-RES-63",),
        edit=set_step(
            "result.schema",
            **{
                "require": None,
                "else": None,
                "from": list(HELD),
                "when": "!(body.schemaVersion in schemaVersions && body.schemaVersion == job.outputSchemaVersion)",
                "to": "failed",
                "set": ["finish", "release", {"errorCode": "'INVALID_SCHEMA'"}],
                "answer": "RESULT_SCHEMA_UNSUPPORTED",
            },
        ),
    ),
    Mutant(
        "result.schema-first",
        "the schema version is judged before the lock",
        ("RT-RES-64", "RT-RES-53", "RT-ERR-75"),
        edit=add_step(
            "result.held",
            {
                "id": "result.schema-before",
                "require": "body.schemaVersion in schemaVersions && body.schemaVersion == job.outputSchemaVersion",
                "else": "RESULT_SCHEMA_UNSUPPORTED",
                "requirements": ["RT-RES-64"],
            },
        ),
    ),
    Mutant(
        "names.underscores",
        "a section of the snapshot is named with underscores",
        ("RT-DB-38", "RT-SNAP-12"),
        parts=part(runtime_api=Underscores),
    ),
    Mutant(
        "result.cancelled-not-held",
        "a cancelled job's result is LOCK_NOT_HELD",
        ("RT-RES-52", "RT-ERR-76"),
        edit=set_step("result.too-late", answer="LOCK_NOT_HELD"),
    ),
    Mutant(
        "result.unwanted-stored",
        "a result is stored although the job was to be stopped",
        ("RT-CANCEL-56", "RT-RES-52", "RT-CANCEL-50"),
        edit=set_step("result.unwanted", when="job.cancelRequested && job.retryCount > 100"),
    ),
    Mutant(
        "result.unwanted-stays",
        "an unwanted result is refused, but its job stays in work",
        ("RT-CANCEL-50", "RT-CANCEL-55", "RT-CANCEL-56"),
        edit=set_step("result.unwanted", to=None, set=None),
    ),
    Mutant(
        "result.unwanted-clears-error",
        "an unwanted result clears the older failure",
        ("RT-CANCEL-59",),
        edit=set_step("result.unwanted", set=["success", "finish", "release"]),
    ),
    Mutant(
        "result.late-unwanted-404",
        "a result for a job that was stopped and lapsed is 404",
        ("RT-RES-60", "RT-RES-52"),
        edit=set_step("result.too-late", answer="JOB_NOT_FOUND"),
    ),
)
