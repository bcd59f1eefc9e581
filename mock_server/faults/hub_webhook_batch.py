"""Faults of the hub's webhooks: batches that have finished (HUB-WH-02, HUB-WH-55 to 58, HUB-WH-61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part
from mock_server.hub.webhooks import BATCH, Webhooks
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

DONE, FAILED, CANCELLED = "job.completed", "job.failed", "job.cancelled"


class Batches(Webhooks):
    """Finds out in another way when, and where, a batch is told to have finished."""

    async def tell(
        self, row: Row, event: str, detail: dict[str, Any], now: int, *, batch_finished: bool = False
    ) -> None:
        """The job's own event as it should be, then the batch's."""
        own = await self.own(row, event, detail, now)
        if await self.finished(row, now, batch_finished=batch_finished):
            jobs = await self.hub.batch(row["account"], row["batchId"])
            summary = self.hub.build.summaries.summary(row["batchId"], jobs)
            for url in await self.urls(jobs):
                await self.send(row, BATCH, url, summary, now, after=self.after(own))

    async def own(self, row: Row, event: str, detail: dict[str, Any], now: int) -> str | None:
        """The id of the job's own delivery."""
        await super().tell(row, event, detail, now)
        return self._last.get(row["id"])

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """Whether the batch has finished with this change."""
        return batch_finished

    async def urls(self, jobs: list[Row]) -> list[str]:
        """Where it goes."""
        return [url for url in dict.fromkeys([await self.url(job) for job in jobs]) if url is not None]

    def after(self, own: str | None) -> str | None:
        """What it waits for."""
        return own


class BatchTwice(Batches):
    """Two jobs that end together both take themselves for the last one."""

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """All have ended, or all others end at this moment."""
        jobs = await self.hub.batch(row["account"], row["batchId"])
        others = [job for job in jobs if job["id"] != row["id"]]
        ending = [job for job in others if job["status"] == "running" and _ends_at(job) == now]
        ended = [job for job in others if self.hub.shapes.is_final(job)]
        all_others = len(ending) + len(ended) == len(others) and bool(ending)
        return batch_finished or (self.hub.shapes.is_final(row) and all_others)


def _ends_at(job: Row) -> int | None:
    plan = job["round"]
    return job["roundStartedAt"] + plan["end"] if plan and plan["end"] is not None else None


class BatchNotAfterCancel(Batches):
    """Counts what nodes report: a batch whose last job was cancelled never finishes."""

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """Not by a cancel."""
        return batch_finished and row["status"] != "cancelled"


class BatchNotAtOnce(Batches):
    """Looks for the batch before it is there: one whose jobs end as they start never finishes."""

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """Not in the first milliseconds of the job's life."""
        return batch_finished and now - row["queuedAt"] > 2


class BatchOnce(Batches):
    """A batch is told to have finished once in its life."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(hub)
        self._told: set[tuple[str, str]] = set()

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """Not again."""
        batch = (row["account"], row["batchId"])
        if not batch_finished or batch in self._told:
            return False
        self._told.add(batch)
        return True


class BatchByStatus(Batches):
    """Takes a failure with a retry to come for an end."""

    async def finished(self, row: Row, now: int, *, batch_finished: bool) -> bool:
        """No job is queued or running."""
        jobs = await self.hub.batch(row["account"], row["batchId"])
        return all(job["status"] in ("done", "failed", "cancelled") for job in jobs)


class BatchToLast(Batches):
    """Tells the last job's URL alone."""

    async def urls(self, jobs: list[Row]) -> list[str]:
        """Of the job that ended last."""
        last = max(jobs, key=lambda job: job["finishedAt"])
        url = await self.url(last)
        return [] if url is None else [url]


class BatchToEach(Batches):
    """Tells once for each job."""

    async def urls(self, jobs: list[Row]) -> list[str]:
        """The same URL again and again."""
        return [url for url in [await self.url(job) for job in jobs] if url is not None]


class BatchDoesNotWait(Batches):
    """Does not wait for the last job's own event to be taken."""

    def after(self, own: str | None) -> str | None:
        """Nothing."""
        return None


class BatchFirst(Batches):
    """Tells of the batch, then of its last job."""

    async def tell(
        self, row: Row, event: str, detail: dict[str, Any], now: int, *, batch_finished: bool = False
    ) -> None:
        """The other way round."""
        jobs = await self.hub.batch(row["account"], row["batchId"]) if batch_finished else []
        summary = self.hub.build.summaries.summary(row["batchId"], jobs) if jobs else {}
        sent = [await self.send(row, BATCH, url, summary, now, after=None) for url in await self.urls(jobs)]
        url = await self.url(row)
        if self.hub.shapes.is_final(row) and url is not None:
            await self.send(row, event, url, detail, now, after=sent[0] if sent else None)


class BatchSharesItsId(Webhooks):
    """One id of ``batch.completed`` for all URLs."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """The batch's id and instant instead of the delivery's."""
        if row["type"] != BATCH:
            return super().headers(row, now)
        return super().headers({**row, "id": f"msg_{row['batchId']}_{row['at']}"}, now)


FAULTS = [
    Mutant(
        "hub-webhook-batch-twice",
        "Of two jobs that end together both finish the batch (SF-76)",
        ("HUB-WH-02", "HUB-WH-55", "HUB-WH-56"),
        parts=part(webhooks=BatchTwice),
    ),
    Mutant(
        "hub-webhook-batch-not-after-a-cancel",
        "A batch whose last job was cancelled never finishes (SF-77)",
        ("HUB-WH-02",),
        parts=part(webhooks=BatchNotAfterCancel),
    ),
    Mutant(
        "hub-webhook-batch-not-at-once",
        "A batch whose jobs end as they start never finishes (SF-77)",
        ("HUB-WH-02",),
        parts=part(webhooks=BatchNotAtOnce),
    ),
    Mutant(
        "hub-webhook-batch-with-a-retry-to-come",
        "A failure with a retry to come finishes the batch",
        ("HUB-WH-56", "HUB-WH-02", "HUB-WH-51"),
        parts=part(webhooks=BatchByStatus),
    ),
    Mutant(
        "hub-webhook-batch-once-in-its-life",
        "A batch that was reopened is not told again",
        ("HUB-WH-58",),
        parts=part(webhooks=BatchOnce),
    ),
    Mutant(
        "hub-webhook-batch-to-the-last-url",
        "`batch.completed` goes to the last job's URL alone",
        ("HUB-WH-55",),
        parts=part(webhooks=BatchToLast),
    ),
    Mutant(
        "hub-webhook-batch-for-each-job",
        "`batch.completed` goes to a URL once for each job",
        ("HUB-WH-55", "HUB-WH-02"),
        parts=part(webhooks=BatchToEach),
    ),
    Mutant(
        "hub-webhook-batch-first",
        "`batch.completed` comes before the last job's event",
        ("HUB-WH-56", "HUB-WH-57"),
        parts=part(webhooks=BatchFirst),
    ),
    Mutant(
        "hub-webhook-batch-does-not-wait",
        "`batch.completed` does not wait for the last job's event to be taken",
        ("HUB-WH-57",),
        parts=part(webhooks=BatchDoesNotWait),
    ),
    Mutant(
        "hub-webhook-batch-shares-its-id",
        "`batch.completed` has one webhook-id for all URLs",
        ("HUB-WH-61",),
        parts=part(webhooks=BatchSharesItsId),
    ),
]
