"""Seeded faults of a batch's summary."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mock_server.faults.hub_batch import fault
from mock_server.hub.batches import Summaries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mock_server.store import Row

FINISHED = ("done", "failed", "cancelled")


def told(change: Callable[[dict[str, Any], Sequence[Row]], dict[str, Any]]) -> type[Summaries]:
    """Summaries that are told otherwise; ``change`` makes fields of the summary and the batch's rows."""

    class Told(Summaries):
        def summary(self, batch_id: str, jobs: Sequence[Row]) -> dict[str, Any]:
            summary = super().summary(batch_id, jobs)
            return {**summary, **change(summary, jobs)}

    return Told


def each_project(change: Callable[[dict[str, Any]], dict[str, Any]]) -> type[Summaries]:
    """Summaries whose projects are told otherwise."""
    return told(lambda it, _: {"byProject": [{**entry, **change(entry)} for entry in it["byProject"]]})


def each_failure(change: Callable[[dict[str, Any], Row], dict[str, Any]]) -> type[Summaries]:
    """Summaries whose failures are told otherwise."""

    def changed(summary: dict[str, Any], jobs: Sequence[Row]) -> dict[str, Any]:
        rows = {row["id"]: row for row in jobs}
        return {"failures": [{**one, **change(one, rows[one["jobId"]])} for one in summary["failures"]]}

    return told(changed)


class CountsShort(Summaries):
    """Counts no cancelled jobs."""

    def counts(self, jobs: Iterable[Row]) -> dict[str, int]:
        return {name: count for name, count in super().counts(jobs).items() if name != "cancelled"} | {"cancelled": 0}


class WaitingIsQueued(Summaries):
    """Counts a job that waits for its retry as queued."""

    def counts(self, jobs: Iterable[Row]) -> dict[str, int]:
        rows = [{**row, "status": "queued"} if row["nextRetryAt"] is not None else row for row in jobs]
        return super().counts(rows)


class DoneAlone(Summaries):
    """Takes the done ones alone for finished."""

    def progress(self, counts: dict[str, int], total: int) -> float:
        return round(counts["done"] / total, 4)


class Percent(Summaries):
    """Tells progress in percent."""

    def progress(self, counts: dict[str, int], total: int) -> float:
        return round(super().progress(counts, total) * 100, 2)


class Hundredths(Summaries):
    """Rounds progress to two places."""

    def progress(self, counts: dict[str, int], total: int) -> float:
        return round(super().progress(counts, total), 2)


class CutOff(Summaries):
    """Cuts progress off after four places."""

    def progress(self, counts: dict[str, int], total: int) -> float:
        return sum(counts[name] for name in FINISHED) * 10_000 // total / 10_000


class OneAfterTheOther(Summaries):
    """Adds up what projects need, as if they ran one after the other."""

    def remaining(self, projects: dict[str, list[Row]], jobs: Sequence[Row]) -> int | None:
        times = [super(OneAfterTheOther, self).remaining({name: rows}, jobs) for name, rows in projects.items()]
        return None if None in times else sum(time or 0 for time in times)


class OneAverage(Summaries):
    """Multiplies all that is left by the batch's average."""

    def remaining(self, projects: dict[str, list[Row]], jobs: Sequence[Row]) -> int | None:
        return super().remaining({"all": list(jobs)}, jobs)


class Quickest(Summaries):
    """Tells the remaining time of the quickest project."""

    def remaining(self, projects: dict[str, list[Row]], jobs: Sequence[Row]) -> int | None:
        times = [super(Quickest, self).remaining({name: rows}, jobs) for name, rows in projects.items()]
        return min((time for time in times if time), default=super().remaining(projects, jobs))


class Truncated(Summaries):
    """Cuts averages off."""

    def average(self, jobs: Iterable[Row]) -> int | None:
        durations = [self.shapes.field("durationMs", row, None) for row in jobs if row["status"] == "done"]
        return sum(durations) // len(durations) if durations else None


class RoundedLate(Summaries):
    """Multiplies averages before it rounds them."""

    def remaining(self, projects: dict[str, list[Row]], jobs: Sequence[Row]) -> int | None:
        told = super().remaining(projects, jobs)
        if not told:
            return told
        mean = self.exact(jobs)
        return max(round(self.left(rows) * (self.exact(rows) or mean or 0)) for rows in projects.values())

    def exact(self, jobs: Iterable[Row]) -> Fraction | None:
        """The average as a fraction."""
        durations = [self.shapes.field("durationMs", row, None) for row in jobs if row["status"] == "done"]
        return Fraction(sum(durations), len(durations)) if durations else None


class AllDurations(Summaries):
    """Averages what failed, too."""

    def average(self, jobs: Iterable[Row]) -> int | None:
        rows = [{**row, "status": "done"} for row in jobs if self.shapes.field("durationMs", row, None) is not None]
        return super().average(rows)


class WaitsIn(Summaries):
    """Averages the time from submission to end."""

    def average(self, jobs: Iterable[Row]) -> int | None:
        return super().average([{**row, "startedAt": row["queuedAt"]} for row in jobs if row["startedAt"]])


class RetriesForgotten(Summaries):
    """Takes a job that waits for its retry for finished."""

    def left(self, jobs: Iterable[Row]) -> int:
        return super().left(row for row in jobs if row["nextRetryAt"] is None)


class RunningForgotten(Summaries):
    """Counts as left what is queued."""

    def left(self, jobs: Iterable[Row]) -> int:
        return super().left(row for row in jobs if row["status"] != "running")


class NothingKnown(Summaries):
    """Has a project without a done job take no time."""

    @staticmethod
    def estimate(own: int | None, over_all: int) -> int:
        return own or 0


class PerNode(Summaries):
    """Has an entry for each project of each node."""

    def summary(self, batch_id: str, jobs: Sequence[Row]) -> dict[str, Any]:
        places: dict[tuple[str, str], list[Row]] = {}
        for row in jobs:
            places.setdefault((row["projectId"], row["nodeId"]), []).append(row)
        entries = [self.project(project, rows) for (project, _), rows in places.items()]
        return {**super().summary(batch_id, jobs), "byProject": entries}


class CancelledFailed(Summaries):
    """Lists cancelled jobs as failures."""

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        return super().failures({**row, "status": "failed"} if row["status"] == "cancelled" else row for row in jobs)


class FinalFailures(Summaries):
    """Lists no failure with a retry to come."""

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        return super().failures(row for row in jobs if row["nextRetryAt"] is None)


class AllFailures(Summaries):
    """Lists every failure."""

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        self.most = 10_000
        return super().failures(jobs)


class OldestFailures(Summaries):
    """Lists the failures of the first hundred jobs that failed."""

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        failed = sorted((row for row in jobs if row["status"] == "failed"), key=lambda row: int(row["finishedAt"]))
        return super().failures(failed[: self.most])


class AsSubmitted(Summaries):
    """Lists failures in the order of submission."""

    def failures(self, jobs: Iterable[Row]) -> list[dict[str, Any]]:
        rows = list(jobs)
        places = {row["id"]: place for place, row in enumerate(rows)}
        return sorted(super().failures(rows), key=lambda one: places[one["jobId"]])


FAULTS = (
    fault("no-id", "the summary has no batchId", "HUB-BATCH-05", summaries=told(lambda *_: {"batchId": None})),
    fault(
        "total-left",
        "total counts what is left",
        "HUB-BATCH-06",
        "HUB-BATCH-08",
        summaries=told(lambda it, _: {"total": it["counts"]["queued"] + it["counts"]["running"]}),
    ),
    fault(
        "cancelled-uncounted",
        "cancelled jobs are not counted",
        "HUB-BATCH-08",
        "HUB-BATCH-07",
        "HUB-BATCH-57",
        summaries=CountsShort,
    ),
    fault(
        "no-cancelled",
        "counts leave cancelled jobs out",
        "HUB-BATCH-07",
        summaries=told(lambda it, _: {"counts": {k: n for k, n in it["counts"].items() if k != "cancelled"}}),
    ),
    fault("waiting-queued", "a job waiting for its retry counts as queued", "HUB-BATCH-54", summaries=WaitingIsQueued),
    fault("progress-done", "progress is the share of done jobs", "HUB-BATCH-09", summaries=DoneAlone),
    fault("progress-percent", "progress is in percent", "HUB-BATCH-09", summaries=Percent),
    fault("progress-hundredths", "progress has two places", "HUB-BATCH-53", summaries=Hundredths),
    fault("progress-cut", "progress is cut off", "HUB-BATCH-53", summaries=CutOff),
    fault(
        "projects-in-turn", "projects are taken to run one after the other", "HUB-BATCH-10", summaries=OneAfterTheOther
    ),
    fault(
        "one-average",
        "all that is left takes the batch's average",
        "HUB-BATCH-10",
        "HUB-BATCH-61",
        summaries=OneAverage,
    ),
    fault("quickest", "the quickest project's time is told", "HUB-BATCH-10", "HUB-BATCH-61", summaries=Quickest),
    fault("truncated", "averages are cut off", "HUB-BATCH-60", summaries=Truncated),
    fault(
        "rounded-late", "averages are rounded after the product", "HUB-BATCH-60", "HUB-BATCH-61", summaries=RoundedLate
    ),
    fault(
        "all-durations",
        "failed jobs are averaged, too",
        "HUB-BATCH-58",
        "HUB-BATCH-59",
        "HUB-BATCH-64",
        summaries=AllDurations,
    ),
    fault("waits-in", "averages count from queuedAt", "HUB-BATCH-58", summaries=WaitsIn),
    fault(
        "average-0",
        "the average of no job is 0",
        "HUB-BATCH-59",
        summaries=each_project(lambda it: {"avgDurationMs": it["avgDurationMs"] or 0}),
    ),
    fault("retries-forgotten", "a job waiting for its retry takes no time", "HUB-BATCH-61", summaries=RetriesForgotten),
    fault("running-forgotten", "running jobs take no time", "HUB-BATCH-61", summaries=RunningForgotten),
    fault("nothing-known", "a project with none done takes no time", "HUB-BATCH-62", summaries=NothingKnown),
    fault(
        "never-0",
        "the remaining time is null when nothing is left",
        "HUB-BATCH-63",
        summaries=told(lambda it, _: {"estimatedRemainingMs": it["estimatedRemainingMs"] or None}),
    ),
    fault(
        "never-null",
        "the remaining time is 0 when nothing is known",
        "HUB-BATCH-64",
        summaries=told(lambda it, _: {"estimatedRemainingMs": it["estimatedRemainingMs"] or 0}),
    ),
    fault(
        "no-average",
        "projects have no avgDurationMs",
        "HUB-BATCH-12",
        "HUB-BATCH-58",
        summaries=each_project(lambda _: {"avgDurationMs": None}),
    ),
    fault(
        "running-apart",
        "projects count no running jobs",
        "HUB-BATCH-13",
        "HUB-BATCH-57",
        summaries=each_project(lambda _: {"running": 0}),
    ),
    fault(
        "project-total",
        "a project's total leaves cancelled jobs out",
        "HUB-BATCH-57",
        summaries=each_project(lambda it: {"total": it["total"] - it["cancelled"]}),
    ),
    fault("per-node", "a project of two nodes is two entries", "HUB-BATCH-56", summaries=PerNode),
    fault(
        "no-external-id",
        "failures have no externalId",
        "HUB-BATCH-14",
        summaries=each_failure(lambda *_: {"externalId": None}),
    ),
    fault("no-cap", "more than a hundred failures are listed", "HUB-BATCH-15", "HUB-BATCH-65", summaries=AllFailures),
    fault("oldest-failures", "of many failures the oldest are listed", "HUB-BATCH-65", summaries=OldestFailures),
    fault("as-submitted", "failures are in the order of submission", "HUB-BATCH-65", summaries=AsSubmitted),
    fault("final-failures", "failures with a retry to come are not listed", "HUB-BATCH-55", summaries=FinalFailures),
    fault("cancelled-failed", "cancelled jobs are listed as failures", "HUB-BATCH-67", summaries=CancelledFailed),
    fault(
        "type-for-message",
        "a failure's message is its type",
        "HUB-BATCH-66",
        summaries=each_failure(lambda it, _: {"message": it["failureType"]}),
    ),
)
