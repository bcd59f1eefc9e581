"""Seeded faults of the hub that show at certain moments: a client goes away, work takes long, an old timer fires.

They are of the kinds that public reports of job queues tell of (``public.yaml``).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mock_server.calls import Disconnected, Refusal
from mock_server.engine import Engine
from mock_server.faults.edits import part
from mock_server.faults.hub_idempotency import held
from mock_server.faults.hub_retry import ANEW
from mock_server.faults.moments import left
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call
    from mock_server.engine import Firings
    from mock_server.executor import Outcome
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

MARK = 0.003
"""Real seconds for which a mark says that somebody is at work."""
WORK = 0.001
"""Real seconds that each job of a submission takes."""


class MarkOutlives(HubApi):
    """Marks a key that is worked on, and takes the mark away when the answer was taken: never, where nobody did."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stuck: set[tuple[str, str]] = set()

    async def submit(self, call: Call) -> Answer:
        key = held(call)
        if key is None:
            return await super().submit(call)
        if (call.caller, key) in self._stuck:
            raise Refusal("idempotency_in_progress", "The same submission is being worked on.")
        if await left(call):
            self._stuck.add((call.caller, key))
            raise Disconnected
        return await super().submit(call)


class MarkExpires(Submissions):
    """Works as long as there are jobs to make, and marks its key for a moment: who comes later does it again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._marked: dict[str, float] = {}

    async def earlier(self, hub: Hub, account: str, key: str, body: Any, now: int) -> dict[str, Any] | None:
        found = await super().earlier(hub, account, key, body, now)
        if found is not None:
            return found
        mark, moment = self.key(account, key), time.monotonic()
        if moment - self._marked.get(mark, 0) < MARK:
            raise Refusal("idempotency_in_progress", "The same submission is being worked on.")
        self._marked[mark] = moment
        items = body.get("items") if isinstance(body, dict) else None
        if isinstance(items, list) and len(items) > 1:
            await asyncio.sleep(WORK * len(items))
        self._marked.pop(mark, None)
        return None


class OldQuota(Engine):
    """Counts failures in a place of its own, which no retry by hand resets: the fresh run has none left."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._used_up: set[str] = set()

    async def perform(self, operation_id: str, inputs: Mapping[str, Any]) -> Outcome:
        row = await self.store.get(JOB, inputs["path"]["jobId"])
        outcome = await super().perform(operation_id, dict(inputs))
        if row is not None and operation_id == "retryHubJob" and row["attempt"] >= row["maxAttempts"]:
            self._used_up.add(row["id"])
        return outcome

    async def fire(self, name: str, key: str, now: int, **given: Any) -> Outcome:
        if name == "report" and key in self._used_up:
            given = {**given, "report": {**given["report"], "retriable": False}}
        return await super().fire(name, key, now, **given)


class Late(Engine):
    """Has something to do with a job later on, which it decided before the job changed."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._later: dict[str, int] = {}

    async def settle(self, fired: Firings | None = None) -> int:
        now = await super().settle(fired)
        for key, due in list(self._later.items()):
            row = await self.store.get(JOB, key) if now >= due else None
            if row is not None:
                del self._later[key]
                await self._become(row, now)
        return now

    async def _become(self, row: Row, now: int) -> None:
        raise NotImplementedError

    async def _put(self, row: Row, new: Row, event: str, now: int) -> None:
        await self.store.commit([Change(JOB, row, new, self.executor.due(new, new["id"]))])
        if self.watch is not None:
            await self.watch(row, new, event, now)


class OldTimer(Late):
    """Leaves the timer of an automatic retry armed when the job is retried by hand: it revives whatever has ended."""

    async def perform(self, operation_id: str, inputs: Mapping[str, Any]) -> Outcome:
        row = await self.store.get(JOB, inputs["path"]["jobId"])
        due = row["nextRetryAt"] if row is not None else None
        outcome = await super().perform(operation_id, dict(inputs))
        if operation_id == "retryHubJob" and outcome.answer == 200 and row is not None and due is not None:
            self._later[row["id"]] = due
        return outcome

    async def _become(self, row: Row, now: int) -> None:
        if row["status"] in ("done", "failed", "cancelled"):
            await self._put(row, {**row, **dict.fromkeys(ANEW), "status": "queued"}, "job.state", now)


class BuriesLateEnds(Late):
    """Its sweeper has read a running job a moment before its round ended in time: it makes a time-out of it."""

    late = 100

    async def fire(self, name: str, key: str, now: int, **given: Any) -> Outcome:
        row = await self.store.get(JOB, key)
        outcome = await super().fire(name, key, now, **given)
        ended = name == "report" and outcome.row is not None and outcome.row["status"] == "done"
        if ended and row is not None and row["roundStartedAt"] is not None:
            limit = row["roundStartedAt"] + self.executor.value("roundLimit", {self.machine.row: row})
            if limit - now <= self.late:
                self._later[key] = limit + 1
        return outcome

    async def _become(self, row: Row, now: int) -> None:
        failed = {"status": "failed", "failureType": "timeout", "failureMessage": "the round took too long"}
        await self._put(row, {**row, **failed, "result": None, "finishedAt": now}, "job.failed", now)


FAULTS = (
    Mutant(
        "hub-idempotency.in-progress-after-cut",
        "a submission whose client went away is in progress for ever (SF-70)",
        ("HUB-IDEM-63", "HUB-IDEM-62"),
        parts=part(api=MarkOutlives),
    ),
    Mutant(
        "hub-idempotency.mark-expires",
        "a key's mark expires while its submission is still worked on: who repeats it then has it done again (SF-71)",
        ("HUB-IDEM-62",),
        parts=part(submissions=MarkExpires),
    ),
    Mutant(
        "hub-retry.by-hand.old-quota",
        "a job whose attempts were used up, retried by hand, fails for good at once (SF-34)",
        ("HUB-RETRY-09",),
        parts=part(engine=OldQuota),
    ),
    Mutant(
        "hub-retry.by-hand.old-timer",
        "the timer of a retry that was overtaken by hand revives the job when it has ended",
        ("HUB-FAIL-09", "HUB-CANCEL-05"),
        parts=part(engine=OldTimer),
    ),
    Mutant(
        "hub-fail.buried",
        "a job whose round ended in the last 100 ms of its limit is done, and then failed with a timeout (SF-38)",
        ("HUB-FAIL-53", "HUB-WH-50"),
        parts=part(engine=BuriesLateEnds),
    ),
)
