"""One world of the real machine on a standing clock, with the protocol's words; driven without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import openapi
from mock_server.clock import ManualClock
from mock_server.engine import Engine, Rows
from mock_server.executor import Executor, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mock_server.clock import Clock
    from mock_server.store import Row, Store

T = TypeVar("T")
START = 2_000_000_000_000
CONTRACT = openapi.load("runtime-api")
assert CONTRACT.machine is not None
EXECUTOR = Executor(CONTRACT.machine)
ROWS = Rows(CONTRACT)
KEY = {
    "userId": "user-1",
    "jobType": "quiz_generation",
    "targetType": "material",
    "targetId": "mat-1",
    "idempotencyKey": "key-1",
}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends, as the memory store promises."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("the engine suspended on a memory store")


def standing() -> ManualClock:
    clock = ManualClock()
    clock.advance(START - clock.now())
    return clock


class World:
    def __init__(
        self, store: Store | None = None, clock: Clock | None = None, redact: Callable[[str], str] = str
    ) -> None:
        self.clock = clock or standing()
        self.store: Store = store or ROWS.store()
        self.engine = Engine(EXECUTOR, ROWS, self.store, self.clock, redact)

    def now(self) -> int:
        return self.clock.now()

    def advance(self, milliseconds: int) -> int:
        return run(self.engine.advance(milliseconds))

    def until(self, instant: int) -> None:
        self.advance(instant - self.now())

    # The application

    def create(self, **columns: Any) -> Outcome:
        needed = {
            "userId": "user-1",
            "jobType": "learning_state_analysis",
            "targetType": "material",
            "targetId": "mat-1",
        }
        return run(self.engine.act("createJob", needed | columns))

    def job(self, **columns: Any) -> str:
        """Create a job; its id."""
        key: str = self.create(**columns).created["Job"]["id"]
        return key

    def locked(self, by: str = "r1", **columns: Any) -> str:
        job = self.job(**columns)
        assert self.lock(job, by).answer == 200
        return job

    def running(self, by: str = "r1", **columns: Any) -> str:
        job = self.locked(by, **columns)
        assert self.heartbeat(job, by).answer == 204
        return job

    def in_state(self, state: str, **columns: Any) -> str:
        """A job of that state, brought there by operations alone; r1 holds it where it is held."""
        if state == "pending":
            return self.job(**columns)
        if state == "locked":
            return self.locked(**columns)
        if state == "cancelled":
            job = self.job(**columns)
            assert self.cancel(job).answer == 200
            return job
        job = self.running(**columns)
        if state == "succeeded":
            assert self.result(job).answer == 201
        if state == "failed":
            assert self.fail(job, retryable=False).answer == 200
        assert self.row(job)["status"] == state
        return job

    def cancel(self, job: str) -> Outcome:
        return run(self.engine.act("cancelJob", {"jobId": job}))

    def rerun(self, job: str) -> Outcome:
        return run(self.engine.act("rerunJob", {"jobId": job}))

    def revoke(self, user: str = "user-1") -> Outcome:
        return run(self.engine.act("revokeConsent", {"userId": user}))

    # The Runtime

    def operate(self, operation: str, job: str | None, by: str, **body: Any) -> Outcome:
        return run(self.engine.operate(operation, caller=by, path={"jobId": job}, body=body))

    def lock(self, job: str, by: str = "r1") -> Outcome:
        return self.operate("lockJob", job, by, runtimeInstanceId=by)

    def heartbeat(self, job: str, by: str = "r1") -> Outcome:
        return self.operate("heartbeatJob", job, by, runtimeInstanceId=by)

    def result(self, job: str, by: str = "r1", **body: Any) -> Outcome:
        schema = self.row(job)["outputSchemaVersion"] if run(self.store.get("Job", job)) else "analysis_output_v1"
        needed = {
            "schemaVersion": schema,
            "validatedOutput": {"riskLevel": "low"},
            "attemptNo": 0,
            "outputHash": "hash-1",
        }
        return self.operate("submitResult", job, by, **(needed | body))

    def fail(self, job: str, by: str = "r1", *, retryable: bool = True, **body: Any) -> Outcome:
        needed = {"errorCode": "MODEL_TIMEOUT", "errorMessage": "too slow", "retryable": retryable}
        return self.operate("failJob", job, by, **(needed | body))

    # What is stored

    def row(self, job: str) -> Row:
        row = run(self.engine.job(job))
        assert row is not None, f"{job} does not exist"
        return row

    def rows(self) -> list[Row]:
        return list(run(self.store.rows("Job")))

    def stored_result(self, job: str) -> Row | None:
        return run(self.store.get("Result", job))

    def holds(self, row: Row) -> bool:
        return EXECUTOR.holds({"job": row, "result": self.stored_result(row["id"])})


def changed(before: Row, after: Row) -> dict[str, Any]:
    """The columns that differ, with their new values."""
    assert before.keys() == after.keys()
    return {column: value for column, value in after.items() if value != before[column]}
