"""Seeded faults that show at certain moments: when two want the same, at the end of a lock, among many jobs.

They are of the kinds that public reports of job queues tell of (``public.yaml``).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.app import disconnected
from mock_server.calls import Answer, Disconnected
from mock_server.engine import Engine
from mock_server.faults.edits import add_step, machine, part, poll_list, set_step
from mock_server.faults.races import WINDOW, ReadsFirst
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call
    from mock_server.engine import Firings
    from mock_server.executor import Outcome
    from mock_server.store import Due, QueueQuery, Row

PAGE = 200
"""Jobs that a sweeper looks at."""
AGAIN = 1000
"""Milliseconds until it looks again."""


async def left(call: Call, seconds: float = 0.02) -> bool:
    """Whether the client goes away within so many real seconds, without waiting for its answer."""
    try:
        async with asyncio.timeout(seconds):
            await disconnected(call.exchange.receive)
    except TimeoutError:
        return False
    return True


class LoserBreaks(ReadsFirst):
    """Reads that the job is free, lets others in, then writes: the database refuses it, and nobody expects that."""

    operation = "lockJob"

    def believe(self, before: Row, outcome: Outcome, caller: str) -> None:
        if before["status"] == "pending" and outcome.answer == "JOB_ALREADY_LOCKED":
            raise RuntimeError("could not serialize access due to concurrent update")


class RenewsWhatWasHeld(Engine):
    """Reads that the caller holds the lock, lets time pass, then writes its renewal without looking again."""

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        before = await self.job(path["jobId"]) if operation_id == "heartbeatJob" else None
        if before is None or before["lockedBy"] != caller:
            return await super().operate(operation_id, caller=caller, path=path, body=body)
        await asyncio.sleep(3 * WINDOW)
        now = await self.job(path["jobId"])
        lost = now is not None and now["status"] in ("pending", "locked") and now["lockedBy"] != caller
        if now is not None and lost and self.clock.now() > before["lockUntil"]:
            until = self.clock.now() + before["lockUntil"] - before["lockedAt"]
            back = {**now, "status": "locked", "lockedBy": caller, "lockedAt": before["lockedAt"], "lockUntil": until}
            await self.store.commit([Change("Job", now, back, self.executor.due(back, back["id"]))])
        return await super().operate(operation_id, caller=caller, path=path, body=body)


class BuriesLateResults(Engine):
    """Its sweeper has read the row a moment before a result came: the job is given out again after its success."""

    late = 100

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._read: dict[str, Row] = {}

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        before = await self.job(path["jobId"]) if operation_id == "submitResult" else None
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        if before is not None and outcome.answer == 201 and before["lockUntil"] - self.clock.now() <= self.late:
            self._read[path["jobId"]] = before
        return outcome

    async def settle(self, fired: Firings | None = None) -> int:
        now = await super().settle(fired)
        for key, row in list(self._read.items()):
            if now > row["lockUntil"]:
                del self._read[key]
                free = dict.fromkeys(("lockedBy", "lockedAt", "lockUntil", "startedAt", "finishedAt"))
                back = {**row, **free, "status": "pending", "retryCount": row["retryCount"] + 1}
                await self.store.commit([Change("Job", await self.store.get("Job", key), back)])
        return now


class FirstPage(Engine):
    """Its sweeper looks at those alone that were locked first, however many of them still work."""

    async def _commit(self, old: Row | None, outcome: Outcome, now: int) -> bool:
        if outcome.step == "lock-lapses" and old is not None:
            rows = await self.store.rows("Job")
            before = [row for row in rows if row["lockedAt"] is not None and row["lockedAt"] < old["lockedAt"]]
            if len(before) >= PAGE:
                due = self.executor.due(old, old["id"])
                return await self.store.commit([Change("Job", old, dict(old), self._later(due, now))])
        return await super()._commit(old, outcome, now)

    @staticmethod
    def _later(due: Due | None, now: int) -> Due | None:
        return None if due is None else replace(due, instant=now + AGAIN)


class KnowsByHash(Engine):
    """Knows results by job and hash alone, those that it refused, too: another attempt with the same is swallowed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: set[tuple[str, str]] = set()

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        if operation_id == "submitResult" and (path["jobId"], body["outputHash"]) in self._known:
            row = await self.job(path["jobId"])
            if row is not None and row["lockedBy"] == caller:
                outcome = await super().operate("heartbeatJob", caller=caller, path=path, body=body)
                outcome.answer = 200
                return outcome
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        if operation_id == "submitResult" and outcome.answer == "LOCK_NOT_HELD":
            self._known.add((path["jobId"], body["outputHash"]))
        return outcome


class FollowUpLost(RuntimeApi):
    """Stops where its client goes away: the result is stored, what follows from it is not, and never made up for."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id != "submitResult":
            return await super().operate(call)
        engine, id_, body = call.world.engine, call.path["jobId"], call.body
        row = await engine.job(id_)
        gone = row is not None and row["lockedBy"] == call.caller and await left(call)
        known = await engine.store.get("Result", id_)
        if known is not None and known["outputHash"] == body["outputHash"]:
            shown = {"jobId": id_, "status": "succeeded", "resultIdempotencyKey": known["resultIdempotencyKey"]}
            return Answer(200, shown)
        if gone:
            key = f"{id_}:{body['attemptNo']}:{body['outputHash']}"
            await engine.insert("Result", {**body, "jobId": id_, "resultIdempotencyKey": key})
            raise Disconnected
        return await super().operate(call)


class RetriesForAll(RuntimeApi):
    """Filters jobs by type as they come in; those that come back are listed to everybody."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        every = frozenset(self.contract.document["components"]["schemas"]["JobType"]["enum"])
        rows = await super().listed(call, replace(query, groups=every, limit=1000))
        asked = [row for row in rows if row["jobType"] in query.groups or row["attemptNo"] > 0]
        return asked[: query.limit]


class Replica(RuntimeApi):
    """Polls a copy of the table that is behind: what was read is read again for a moment."""

    behind = 0.05

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._read: dict[tuple[str, QueueQuery], tuple[float, list[Row]]] = {}

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        place, now = (call.world.path, query), time.monotonic()
        at, rows = self._read.get(place, (0.0, []))
        if now - at > self.behind:
            rows = await super().listed(call, query)
            self._read[place] = (now, rows)
        return rows


FAULTS = (
    Mutant(
        "lock.loser-500",
        "of Runtimes that lock at the same moment all but one are answered 500 (SF-05)",
        ("RT-LOCK-12", "RT-LOCK-13"),
        parts=part(engine=LoserBreaks),
    ),
    Mutant(
        "lock.slow-clock",
        "locks are counted from a clock that lags by 5 s (SF-07)",
        ("RT-LOCK-10", "RT-TIME-01"),
        edit=set_step("lock", set=[{"lockUntil": "now - 5000 + lockTime", "lockedBy": "caller", "lockedAt": "now"}]),
    ),
    Mutant(
        "heartbeat.60-milliseconds",
        "a heartbeat extends the lock by 60 ms: seconds are taken for milliseconds (SF-08)",
        ("RT-HB-04", "RT-TIME-01"),
        edit=machine("effects", "renew", value={"lockUntil": "job.status == 'pending' ? now + lockTime : now + 60"}),
    ),
    Mutant(
        "heartbeat.race",
        "a heartbeat that begins before its lock lapses and is written after that takes the job back (SF-11)",
        ("RT-HB-50", "RT-LOCK-50"),
        parts=part(engine=RenewsWhatWasHeld),
    ),
    Mutant(
        "timeout.unset-at-once",
        "a time limit that was not given is taken for 0: the first heartbeat ends the run (SF-14)",
        ("RT-TIME-02", "RT-HB-04", "RT-TIME-53"),
        edit=machine(
            "timers",
            "run-times-out",
            "after",
            value="job.startedAt + (job.timeoutSeconds == 120 ? 0 : job.timeoutSeconds * 1000)",
        ),
    ),
    Mutant(
        "lapse.first-page",
        "the sweeper looks at 200 locked jobs: behind so many that work on, a silent one is never given up (SF-20)",
        ("RT-SCHED-10", "RT-TIME-04", "RT-TIME-01"),
        parts=part(engine=FirstPage),
    ),
    Mutant(
        "result.buried-by-lapse",
        "a job whose result came in the last 100 ms of its lock is given out again when that has passed (SF-38)",
        ("RT-SM-53", "RT-SM-13"),
        parts=part(engine=BuriesLateResults),
    ),
    Mutant(
        "result.known-by-hash",
        "a result with the hash of one that was refused is taken for its repetition, whatever the attempt (SF-44)",
        ("RT-RES-53", "RT-RES-13"),
        parts=part(engine=KnowsByHash),
    ),
    Mutant(
        "result.first-attempt-only",
        "results are looked up under attempt 0, whatever the attempt: those of later ones are 404 (SF-44)",
        ("RT-RES-13", "RT-RES-72"),
        edit=add_step(
            "result.held",
            {
                "id": "result.first-attempt",
                "require": "body.attemptNo == 0",
                "else": "JOB_NOT_FOUND",
                "requirements": ["RT-RES-13"],
            },
        ),
    ),
    Mutant(
        "result.follow-up-lost",
        "of a result whose client went away the row is stored, the job stays as it was, and a repeat is 200 (SF-43)",
        ("RT-RES-14", "RT-SM-12"),
        parts=part(runtime_api=FollowUpLost),
    ),
    Mutant(
        "poll.priority-reversed",
        "the largest priority number comes first (SF-47)",
        ("RT-SCHED-02",),
        edit=poll_list(order=["-priority", "createdAt", "id"]),
    ),
    Mutant(
        "poll.all-types-of-retries",
        "a job that came back is listed whatever types were asked for (SF-49)",
        ("RT-POLL-12",),
        parts=part(runtime_api=RetriesForAll),
    ),
    Mutant(
        "poll.replica",
        "a poll sees the jobs as another one saw them up to 50 ms ago (SF-53)",
        ("RT-SCHED-01", "RT-POLL-08", "RT-SCHED-08"),
        parts=part(runtime_api=Replica),
    ),
    Mutant(
        "create.key-of-all-users",
        "an idempotencyKey is unique by itself: another user's job with it is taken for the first one's (SF-67)",
        ("RT-IDEM-51",),
        edit=machine("unique", value=["idempotencyKey"]),
    ),
)
