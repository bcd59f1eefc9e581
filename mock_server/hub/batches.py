"""What is said of a batch: its summary, and when it has finished."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mock_server.hub.entities import JOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mock_server.hub.hub import Hub
    from mock_server.hub.shapes import Shapes
    from mock_server.store import Row

Batch = tuple[str, str]
"""Account and batchId: batch ids are per key (HUB-BATCH-52)."""


class OpenJobs:
    """How many jobs of each batch are still to finish."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._open: Counter[Batch] = Counter()

    async def rebuild(self) -> None:
        """From rows alone."""
        self._open.clear()
        for row in await self.hub.store.rows(JOB):
            self._open[row["account"], row["batchId"]] += self._is_open(row)

    def _is_open(self, row: Row) -> bool:
        return not self.hub.shapes.is_final(row)

    def changed(self, old: Row | None, new: Row) -> bool:
        """A job was created or changed. Returns whether its batch has finished with that."""
        batch = (new["account"], new["batchId"])
        before = old is not None and self._is_open(old)
        after = self._is_open(new)
        self._open[batch] += after - before
        return before and not after and not self._open[batch]


class Summaries:
    """Makes a batch's summary of its jobs. A seeded fault subclasses it."""

    def __init__(self, shapes: Shapes, statuses: Sequence[str], most_failures: int) -> None:
        """``statuses`` in the order in which they are counted; ``most_failures`` are listed."""
        self.shapes, self.statuses, self.most = shapes, tuple(statuses), most_failures

    def summary(self, batch_id: str, jobs: Sequence[Row]) -> dict[str, Any]:
        """The summary (HUB-BATCH-05 to 15, 53 to 67)."""
        counts = self.counts(jobs)
        projects = {name: list(rows) for name, rows in _by_project(jobs).items()}
        entries = [self.project(name, rows) for name, rows in projects.items()]
        return {
            "batchId": batch_id,
            "total": len(jobs),
            "counts": counts,
            "progress": self.progress(counts, len(jobs)),
            "estimatedRemainingMs": self.remaining(projects, jobs),
            "byProject": entries,
            "failures": self.failures(jobs),
        }

    def counts(self, jobs: Iterable[Row]) -> dict[str, int]:
        """How many jobs have each status (HUB-BATCH-54)."""
        found = Counter(row["status"] for row in jobs)
        return {status: found[status] for status in self.statuses}

    def progress(self, counts: dict[str, int], total: int) -> float:
        """The share that finished, by ``status`` as it is, to four places (HUB-BATCH-09, 53, 54)."""
        return round((counts["done"] + counts["failed"] + counts["cancelled"]) / total, 4)

    def project(self, name: str, jobs: Sequence[Row]) -> dict[str, Any]:
        """One project, over all its nodes (HUB-BATCH-56 to 59)."""
        counts = self.counts(jobs)
        return {"projectId": name, "total": len(jobs), **counts, "avgDurationMs": self.average(jobs)}

    def average(self, jobs: Iterable[Row]) -> int | None:
        """The average duration of the done ones, whole milliseconds, a half up (HUB-BATCH-58 to 60)."""
        durations = [self.shapes.field("durationMs", row, None) for row in jobs if row["status"] == "done"]
        return int(Fraction(sum(durations), len(durations)) + Fraction(1, 2)) if durations else None

    def remaining(self, projects: dict[str, list[Row]], jobs: Sequence[Row]) -> int | None:
        """The slowest project's remaining time (HUB-BATCH-10, 61 to 64)."""
        left = {name: self.left(rows) for name, rows in projects.items()}
        if not any(left.values()):
            return 0
        over_all = self.average(jobs)
        if over_all is None:
            return None
        times = [left[name] * self.estimate(self.average(rows), over_all) for name, rows in projects.items()]
        return max(times)

    @staticmethod
    def estimate(own: int | None, over_all: int) -> int:
        """What a job of a project is taken to last (HUB-BATCH-62)."""
        return over_all if own is None else own

    def left(self, jobs: Iterable[Row]) -> int:
        """How many jobs are still to finish."""
        return sum(not self.shapes.is_final(row) for row in jobs)

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        """The failed jobs, the latest first (HUB-BATCH-14, 15, 55, 65 to 67)."""
        failed = sorted((row for row in jobs if row["status"] == "failed"), key=lambda row: -row["finishedAt"])
        return [
            {
                "jobId": row["id"],
                "externalId": row["externalId"],
                "failureType": row["failureType"],
                "message": row["failureMessage"],
                "attempt": row["attempt"],
            }
            for row in failed[: self.most]
        ]


def _by_project(jobs: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in jobs:
        found.setdefault(row["projectId"], []).append(row)
    return found
