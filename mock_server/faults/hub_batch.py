"""Seeded faults of batches: their ids, whose they are, and their cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part, put
from mock_server.hub.accounts import ACCOUNTS
from mock_server.hub.api import HubApi
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call
    from mock_server.hub.hub import Hub
    from mock_server.hub.submission import Item
    from mock_server.store import Row
    from openapi.redaction import Redactor


class OneForAll(Submissions):
    """Puts all jobs without a batch of their own in one."""

    def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
        batch, items = super().judge(hub, body, redactor)
        return batch or "batch_default", items


class Nameless(Submissions):
    """Makes batch ids without their prefix."""

    def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
        batch, items = super().judge(hub, body, redactor)
        return batch or f"b-{hub.clock.now()}", items


class BatchPerItem(Submissions):
    """Puts each job but the first in a batch of its own."""

    def rows(self, hub: Hub, account: str, batch_id: str, items: list[Item], nodes: list[str], first: int) -> list[Row]:
        rows = super().rows(hub, account, batch_id, items, nodes, first)
        return [{**row, "batchId": f"{batch_id}-{at}" if at else batch_id} for at, row in enumerate(rows)]


class FirstLookMisses(HubApi):
    """Reads from a copy that is late: the first look at a batch finds none."""

    _seen: set[str]

    async def get_batch(self, call: Call) -> Answer:
        self._seen = getattr(self, "_seen", set())
        if call.path["batchId"] not in self._seen:
            self._seen.add(call.path["batchId"])
            raise self.refusal("batch_not_found")
        return await super().get_batch(call)


class Remembered(HubApi):
    """Keeps the summary that was told first."""

    _known: dict[str, Answer]

    async def get_batch(self, call: Call) -> Answer:
        self._known = getattr(self, "_known", {})
        answer = await super().get_batch(call)
        return self._known.setdefault(call.caller + call.path["batchId"], answer)


class BareBatch(HubApi):
    """Answers the summary without an envelope."""

    async def get_batch(self, call: Call) -> Answer:
        answer = await super().get_batch(call)
        answer.body = answer.body["data"]
        return answer


class UsedOnce(HubApi):
    """Refuses a batch id that was used before."""

    async def submit(self, call: Call) -> Answer:
        body = call.body if isinstance(call.body, dict) else {}
        if await call.world.hub.batch(call.caller, str(body.get("batchId"))):
            raise self.refusal("invalid_request")
        return await super().submit(call)


class OfAllKeys(HubApi):
    """Takes a batch id for the same under all keys."""

    async def batch(self, call: Call) -> list[Row]:
        own = await super().batch(call)
        lists = [await call.world.hub.batch(account, call.path["batchId"]) for account in ACCOUNTS]
        return [row for rows in lists for row in rows] if own else own

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        for row in await self.batch(call):
            await call.world.hub.engine.perform(
                "cancelHubJob", {"caller": row["account"], "path": {"jobId": row["id"]}}
            )
        return answer


def cancels(which: Callable[[Row], bool]) -> type[HubApi]:
    """A batch's cancel that leaves some jobs alone."""

    class Cancels(HubApi):
        async def cancel_batch(self, call: Call) -> Answer:
            count = 0
            for row in [row for row in await self.batch(call) if which(row)]:
                inputs = {"caller": call.caller, "path": {"jobId": row["id"]}}
                count += (await call.world.hub.engine.perform("cancelHubJob", inputs)).changed
            await call.world.hub.done()
            return self.answered(call, 200, {"cancelled": count})

    return Cancels


class CountsAll(HubApi):
    """Counts every job of the batch as cancelled."""

    async def cancel_batch(self, call: Call) -> Answer:
        jobs = await self.batch(call)
        answer = await super().cancel_batch(call)
        answer.body["data"] = {"cancelled": len(jobs)}
        return answer


class CountsCancelled(HubApi):
    """Counts the jobs that are cancelled, not those that it cancelled."""

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        count = sum(row["status"] == "cancelled" for row in await self.batch(call))
        answer.body["data"] = {"cancelled": count}
        return answer


class NothingToCancel(HubApi):
    """Refuses the cancel of a batch that is finished."""

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        if not answer.body["data"]["cancelled"]:
            raise self.refusal("job_finished")
        return answer


class BareCount(HubApi):
    """Answers the count alone, as the seed prints it."""

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        answer.body = answer.body["data"]
        return answer


class CountAsText(HubApi):
    """Names the count otherwise."""

    async def cancel_batch(self, call: Call) -> Answer:
        answer = await super().cancel_batch(call)
        answer.body["data"] = {"count": answer.body["data"]["cancelled"]}
        return answer


def fault(id_: str, title: str, *rules: str, edit: Any = None, **parts: Any) -> Mutant:
    """A fault of batches."""
    return Mutant(f"hub-batch.{id_}", title, rules, edit=edit, parts=part(**parts) if parts else None)


PATTERN = ("components", "schemas", "GivenBatchId", "pattern")
FAULTS = (
    fault("no-prefix", "made batch ids have no prefix", "HUB-BATCH-01", submissions=Nameless),
    fault("one-for-all", "submissions without a batch share one", "HUB-BATCH-01", submissions=OneForAll),
    fault("per-item", "jobs of one submission are in several batches", "HUB-BATCH-02", submissions=BatchPerItem),
    fault("first-look-404", "the first look at a batch finds none", "HUB-BATCH-03", api=FirstLookMisses),
    fault(
        "remembered",
        "the summary is that of the first look",
        "HUB-BATCH-09",
        "HUB-BATCH-54",
        "HUB-BATCH-03",
        api=Remembered,
    ),
    fault("bare", "the summary has no envelope", "HUB-BATCH-04", "HUB-GET-26", "HUB-ERR-52", api=BareBatch),
    fault("any-id", "any batchId is taken", "HUB-BATCH-50", "HUB-SUB-53", edit=put(*PATTERN, value="")),
    fault(
        "id-of-64",
        "a batchId has 64 characters at most",
        "HUB-BATCH-50",
        "HUB-SUB-05",
        edit=put(*PATTERN, value="^[A-Za-z0-9._:-]{1,64}$"),
    ),
    fault("used-once", "a batchId can be used once", "HUB-BATCH-51", "HUB-SUB-05", api=UsedOnce),
    fault("of-all-keys", "batch ids are shared by all keys", "HUB-BATCH-52", api=OfAllKeys),
    fault(
        "cancel-queued-alone",
        "a batch's cancel leaves running jobs alone",
        "HUB-BATCH-16",
        "HUB-BATCH-17",
        api=cancels(lambda row: row["status"] != "running"),
    ),
    fault(
        "cancel-no-waiting",
        "a batch's cancel leaves jobs that wait for a retry alone",
        "HUB-BATCH-68",
        "HUB-BATCH-16",
        api=cancels(lambda row: row["status"] != "failed"),
    ),
    fault(
        "cancel-counts-all",
        "a batch's cancel counts all its jobs",
        "HUB-BATCH-17",
        "HUB-BATCH-69",
        "HUB-BATCH-70",
        api=CountsAll,
    ),
    fault(
        "cancel-counts-cancelled",
        "it counts what was cancelled before",
        "HUB-BATCH-69",
        "HUB-BATCH-70",
        api=CountsCancelled,
    ),
    fault("cancel-finished", "the cancel of a finished batch is refused", "HUB-BATCH-70", api=NothingToCancel),
    fault("cancel-bare", "the count has no envelope", "HUB-BATCH-71", "HUB-GET-26", "HUB-ERR-52", api=BareCount),
    fault("cancel-name", "the count has another name", "HUB-BATCH-17", "HUB-BATCH-71", "HUB-BATCH-70", api=CountAsText),
)
