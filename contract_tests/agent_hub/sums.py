"""What a batch's summary has to be, reckoned from its jobs' entries in the list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import whole
from contract_tests.agent_hub.pages import page
from contract_tests.agent_hub.shapes import STATUSES, iso, judge_detail
from contract_tests.checks import about, expect, expect_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

READS = 5
"""How often a batch is read on a clock that flows, until nothing changed meanwhile."""
FINISHED = ("done", "failed", "cancelled")

Entries = "Sequence[Mapping[str, Any]]"


def rounded(numerator: int, denominator: int) -> set[int]:
    """The whole numbers nearest to a fraction: two where it lies just between them, as no rule says which."""
    below, rest = divmod(numerator, denominator)
    nearest = set()
    if 2 * rest <= denominator:
        nearest.add(below)
    if 2 * rest >= denominator:
        nearest.add(below + 1)
    return nearest


def averages(entries: Iterable[Mapping[str, Any]]) -> set[int]:
    """What the average duration of the done ones can be; empty with none."""
    durations = [int(entry["durationMs"]) for entry in entries if entry["status"] == "done"]
    return rounded(sum(durations), len(durations)) if durations else set()


def counts_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many jobs have each status."""
    found = dict.fromkeys(STATUSES, 0)
    for entry in entries:
        found[entry["status"]] += 1
    return found


def by_project(entries: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The jobs of each project."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault(entry["projectId"], []).append(entry)
    return found


def left(entries: Iterable[Mapping[str, Any]]) -> int:
    """How many jobs are still to finish: queued, running, or failed with a retry to come."""
    open_ones = ("queued", "running")
    return sum(
        entry["status"] in open_ones or (entry["status"] == "failed" and entry.get("nextRetryAt") is not None)
        for entry in entries
    )


def remaining(entries: Sequence[Mapping[str, Any]]) -> set[int | None]:
    """What ``estimatedRemainingMs`` can be."""
    if not left(entries):
        return {0}
    over_all = averages(entries)
    if not over_all:
        return {None}
    found: set[int | None] = set()
    for mean in over_all:
        projects = by_project(entries).values()
        times = [{left(jobs) * own for own in averages(jobs) or {mean}} for jobs in projects]
        found |= {max(choice) for choice in product(*times)}
    return found


@dataclass(frozen=True)
class Read:
    """A batch's summary, and its jobs in the list at the same moment."""

    summary: dict[str, Any]
    entries: list[dict[str, Any]]

    @property
    def projects(self) -> dict[str, dict[str, Any]]:
        """The entries of ``byProject``. Fails the check, under HUB-BATCH-12, where they are none."""
        return {str(entry["projectId"]): entry for entry in entries_of(self.summary)}


def entries_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """``byProject``, a list of objects with a ``projectId``."""
    with about("HUB-BATCH-12", step="the projects of a batch"):
        came = summary.get("byProject")
        good = isinstance(came, list) and all(isinstance(one, dict) and "projectId" in one for one in came)
        expect(good, "`byProject`, a list of objects with `projectId`", json.dumps(came)[:200], "/data/byProject")
    return list(came or [])


async def summary(given: HubGiven, batch: str, *, api: HubApi | None = None) -> dict[str, Any]:
    """A batch's summary."""
    with about("HUB-BATCH-03", step="reading a batch"):
        answer = await (api or given.api).batch(batch).succeeds(200)
    return answer.data


async def read(given: HubGiven, batch: str) -> Read:
    """A batch of at most 200 jobs with its entries; on a flowing clock read again until both are of one moment."""
    came = await summary(given, batch)
    for _ in range(READS):
        entries = (await page(given.api, batchId=batch, limit=200)).items
        with about("HUB-LIST-05", step="listing the jobs of a batch"):
            others = [entry.get("batchId") for entry in entries if entry.get("batchId") != batch]
            expect(not others, f"jobs of {batch} alone", f"{others[:3]}", "/data/items")
        if given.clock.stands:
            break
        before, came = came, await summary(given, batch)
        if before == came:
            break
    for entry in entries:
        judge_detail(entry)
        if entry["status"] == "done":
            with about("HUB-GET-11", step="how long a done job took"):
                expect(whole(entry.get("durationMs")), "`durationMs`, an integer", "none", "/data/items/durationMs")
    return Read(came, entries)


def judge_sums(came: Read) -> None:
    """Every number of a summary as its jobs have it."""
    entries, told = came.entries, came.summary
    counts = counts_of(entries)
    expect_fields(told, {"total": len(entries)}, "/data", {"total": ("HUB-BATCH-06",)})
    waiting = any(entry["status"] == "failed" and entry.get("nextRetryAt") for entry in entries)
    with about("HUB-BATCH-54" if waiting else "HUB-BATCH-57"):
        expect_fields(_object(told, "counts"), counts, "/data/counts")
    finished, total = sum(counts[status] for status in FINISHED), len(entries)
    with about("HUB-BATCH-53"):
        wanted = [places / 10_000 for places in sorted(rounded(finished * 10_000, total))]
        progress = told.get("progress")
        expect(progress in wanted, [f"progress {value}" for value in wanted], str(progress), "/data/progress")
    judge_projects(came)
    with about(_estimated_by(entries)):
        estimates = remaining(entries)
        estimate = told.get("estimatedRemainingMs", "left out")
        wanted_texts = [f"estimatedRemainingMs {value}" for value in sorted(estimates, key=str)]
        expect(estimate in estimates, wanted_texts, str(estimate), "/data/estimatedRemainingMs")


def _estimated_by(entries: Sequence[Mapping[str, Any]]) -> str:
    """The rule that the remaining time comes from."""
    if not left(entries):
        return "HUB-BATCH-63"
    if not averages(entries):
        return "HUB-BATCH-64"
    known = [entry for jobs in by_project(entries).values() if averages(jobs) for entry in jobs]
    return "HUB-BATCH-61" if remaining(known) == remaining(entries) else "HUB-BATCH-62"


def judge_projects(came: Read) -> None:
    """Each project's counts and average (HUB-BATCH-56 to 60)."""
    held = by_project(came.entries)
    with about("HUB-BATCH-56"):
        ids = sorted(str(entry["projectId"]) for entry in entries_of(came.summary))
        expect(ids == sorted(held), f"an entry for each of {sorted(held)}", f"{ids}", "/data/byProject")
    for name, jobs in sorted(held.items(), key=lambda one: not averages(one[1])):
        told, at = came.projects[name], "/data/byProject"
        with about("HUB-BATCH-57"):
            expect_fields(told, {**counts_of(jobs), "total": len(jobs)}, at)
        averaged, shown = averages(jobs), told.get("avgDurationMs", "left out")
        durations = [int(entry["durationMs"]) for entry in jobs if entry["status"] == "done"]
        exact = bool(durations) and sum(durations) % len(durations) == 0
        rule = "HUB-BATCH-59" if not averaged else "HUB-BATCH-58" if exact else "HUB-BATCH-60"
        near = averaged and whole(shown) and min(abs(shown - value) for value in averaged) > 1
        with about("HUB-BATCH-58" if near else rule):
            wanted = [f"avgDurationMs {value}" for value in sorted(averaged)] or ["avgDurationMs null"]
            good = shown in averaged if averaged else shown is None
            expect(good, wanted, str(shown), f"{at}/avgDurationMs")


def judge_failures(came: Read) -> None:
    """The failed jobs, a hundred at most, the latest first (HUB-BATCH-55, 65 to 67)."""
    failures = came.summary.get("failures")
    listed: list[Any] = failures if isinstance(failures, list) else [None]
    with about("HUB-BATCH-14", step="the failures of a batch"):
        good = all(isinstance(one, dict) for one in listed)
        expect(good, "`failures`, a list of objects", json.dumps(failures)[:200], "/data/failures")
    jobs = {entry["id"]: entry for entry in came.entries}
    for place, one in enumerate(listed):
        at = f"/data/failures/{place}"
        entry = jobs.get(str(one.get("jobId")), {})
        with about("HUB-BATCH-67"):
            expect(entry.get("status") == "failed", "a failed job", f"a {entry.get('status')} one", f"{at}/jobId")
        with about("HUB-BATCH-66"):
            expect_fields(one, {"message": (entry.get("failure") or {}).get("message")}, at)
    failed = [entry for entry in came.entries if entry["status"] == "failed"]
    shown = {one.get("jobId") for one in listed}
    missing = [entry for entry in failed if entry["id"] not in shown]
    with about("HUB-BATCH-55" if any(entry.get("nextRetryAt") for entry in missing) else "HUB-BATCH-65"):
        wanted = min(len(failed), 100)
        expect(len(listed) == wanted, f"{wanted} failures", f"{len(listed)}", "/data/failures")
    with about("HUB-BATCH-65"):
        times = [iso(jobs[one["jobId"]]["finishedAt"], "/data/failures") for one in listed]
        expect(times == sorted(times, reverse=True), "the latest `finishedAt` first", f"{times[:5]}", "/data/failures")
        oldest = min(times, default=0)
        newer = [entry["id"] for entry in missing if iso(entry["finishedAt"], "/data/items") > oldest]
        expect(not newer, "the newest hundred", f"without {newer[:3]}", "/data/failures")


def _object(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = told.get(name)
    with about("HUB-BATCH-07", step="the counts of a batch"):
        expect(isinstance(value, dict), f"`{name}`, an object", json.dumps(value)[:100], f"/data/{name}")
    return dict(value or {})
