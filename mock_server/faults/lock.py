"""Seeded faults of locking a job."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.faults.edits import drop_property, machine, part, set_step, several
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call
    from mock_server.executor import Outcome


class SlowLock(Engine):
    """Reads, lets others in, then writes what it read before: the race of check-then-write."""

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        if operation_id != "lockJob":
            return await super().operate(operation_id, caller=caller, path=path, body=body)
        before = await self.store.get("Job", path["jobId"])
        await asyncio.sleep(0.002)
        now = await self.store.get("Job", path["jobId"])
        if before is not None and now is not None and before["status"] == "pending" and now["status"] == "locked":
            changed = dict(now, lockedBy=caller)
            outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
            outcome.answer, outcome.row = 200, changed
            return outcome
        return await super().operate(operation_id, caller=caller, path=path, body=body)


class LockInSeconds(RuntimeApi):
    """Answers seconds for milliseconds."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        if "lockUntil" in body:
            body["lockUntil"] //= 1000
        return body


class LockCreates(RuntimeApi):
    """Answers a POST with 201, as frameworks do by themselves."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        answer = super().answer(call, outcome)
        if call.operation_id == "lockJob":
            answer.status = 201
        return answer


class LockUpperCase(RuntimeApi):
    """Answers with the name of the database's enumeration."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        return {**body, "status": "LOCKED"} if call.operation_id == "lockJob" else body


class LockWithoutNulls(RuntimeApi):
    """Leaves out what is null."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        return {name: value for name, value in body.items() if value is not None}


FAULTS = (
    Mutant(
        "lock.race",
        "two Runtimes that lock at the same moment both win",
        ("RT-LOCK-12", "RT-LOCK-13", "RT-LOCK-50"),
        parts=part(engine=SlowLock),
    ),
    Mutant(
        "lock.any-state",
        "a job that is not pending can be locked",
        ("RT-LOCK-06", "RT-LOCK-13", "RT-LOCK-50"),
        edit=set_step("lock", **{"from": None, "when": None}),
    ),
    Mutant(
        "lock.again-by-holder",
        "the holder may lock its job again",
        ("RT-LOCK-50", "RT-LOCK-06"),
        edit=set_step(
            "lock", **{"from": ["pending", "locked"], "when": "job.lockedBy == null || job.lockedBy == caller"}
        ),
    ),
    Mutant(
        "lock.59-seconds",
        "a lock lasts 59 s",
        ("RT-LOCK-10", "RT-TIME-01", "RT-HB-04"),
        edit=machine("constants", "lockTime", value={"seconds": 59}),
    ),
    Mutant(
        "lock.61-seconds",
        "a lock lasts 61 s",
        ("RT-LOCK-10", "RT-TIME-01", "RT-HB-04"),
        edit=machine("constants", "lockTime", value={"seconds": 61}),
    ),
    Mutant(
        "lock.in-seconds",
        "lockUntil is answered in seconds",
        ("RT-LOCK-05", "RT-TIME-05"),
        parts=part(runtime_api=LockInSeconds),
    ),
    Mutant(
        "lock.wrong-code",
        "a second lock gets LOCK_NOT_HELD",
        ("RT-LOCK-13", "RT-ERR-07", "RT-LOCK-50"),
        edit=set_step("lock.refused", answer="LOCK_NOT_HELD"),
    ),
    Mutant(
        "lock.no-locked-at",
        "lockedAt is not set",
        ("RT-LOCK-09",),
        edit=set_step("lock", set=["renew", {"lockedBy": "caller"}]),
    ),
    Mutant("lock.201", "a lock is answered 201", ("RT-LOCK-03",), parts=part(runtime_api=LockCreates)),
    Mutant("lock.upper-case", "a lock answers status LOCKED", ("RT-LOCK-04",), parts=part(runtime_api=LockUpperCase)),
    Mutant(
        "lock.without-nulls",
        "the lock answer leaves out what is null",
        ("RT-LOCK-52", "RT-LOCK-53"),
        parts=part(runtime_api=LockWithoutNulls),
    ),
    Mutant(
        "lock.no-attempt",
        "the lock answer does not tell the attempt",
        ("RT-LOCK-51", "RT-RETRY-50"),
        edit=drop_property("LockAnswer", "attemptNo"),
    ),
    Mutant(
        "lock.no-params",
        "the lock answer does not tell the params",
        ("RT-LOCK-53",),
        edit=drop_property("LockAnswer", "params"),
    ),
    Mutant(
        "lock.owner-token",
        "lockedBy holds a token made of the caller's name",
        ("RT-LOCK-08", "RT-DB-23"),
        edit=several(
            set_step("lock", set=["renew", {"lockedBy": "'owner:' + caller", "lockedAt": "now"}]),
            machine(
                "define",
                "held",
                value="job.lockedBy == 'owner:' + caller && job.lockUntil != null && now <= job.lockUntil",
            ),
        ),
    ),
    Mutant(
        "lock.failed-again",
        "a failed job can be locked again",
        ("RT-SM-16", "RT-LOCK-50", "RT-LOCK-06"),
        edit=set_step("lock", **{"from": ["pending", "failed"]}),
    ),
    Mutant(
        "lock.cancelled",
        "a cancelled job can be locked",
        ("RT-SM-18", "RT-CANCEL-02", "RT-LOCK-50"),
        edit=set_step("lock", **{"from": ["pending", "cancelled"]}),
    ),
)
