"""Batches: what the seed says of their summary (seed 002 sections 1 and 5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item, whole
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.scenes import Planned, arranged
from contract_tests.agent_hub.shapes import FAILURE_TYPES, STATUSES
from contract_tests.agent_hub.sums import entries_of, summary
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.scenes import Scene

PLANS = (
    [
        Planned("done"),
        Planned("failed"),
        Planned("running"),
        Planned("queued"),
        Planned("queued"),
        Planned("cancelled"),
    ],
    [Planned("done"), Planned("done"), Planned("failed"), Planned("running"), Planned("queued")],
)
COUNTS = {"queued": 3, "running": 2, "done": 3, "failed": 2, "cancelled": 1}


async def batched(given: HubGiven) -> Scene:
    """A batch of eleven jobs in two projects, in all five statuses."""
    return await arranged(given, *PLANS)


@requirement("HUB-BATCH-01", "HUB-BATCH-02", "HUB-BATCH-03", "HUB-BATCH-05")
async def test_a_batch_id_is_made(api: HubApi, given: HubGiven) -> None:
    """Without a `batchId` one is made, `batch_...`, another for each submission, which all its jobs share."""
    project = await given.project()
    made = []
    for count in (1, 3):
        answer = await given.accepted([item(project)] * count)
        batch = answer.data.get("batchId")
        with about("HUB-BATCH-01"):
            good = isinstance(batch, str) and batch.startswith("batch_") and len(batch) > len("batch_")
            expect(good, "batchId `batch_...`", json.dumps(batch), "/data/batchId")
        made.append(str(batch))
        for id_ in job_ids(answer):
            with about("HUB-BATCH-02"):
                expect_fields(await given.detail(id_), {"batchId": batch}, "/data")
        with about("HUB-BATCH-03"):
            came = (await api.batch(str(batch)).succeeds(200)).data
        with about("HUB-BATCH-05"):
            expect_fields(came, {"batchId": batch}, "/data")
    with about("HUB-BATCH-01"):
        expect(len(set(made)) == 2, "a batchId of its own for each submission", f"{made}", "/data/batchId")


@requirement("HUB-BATCH-02", "HUB-BATCH-03", "HUB-BATCH-04", "HUB-BATCH-05", "HUB-BATCH-06")
async def test_a_batch_is_told_at_once(given: HubGiven) -> None:
    """One call tells of a whole batch of jobs in two projects: `{"data": {...}}` with its id and their number."""
    batch = given.unique("sprint")
    scene = await arranged(given, [Planned("running"), Planned("queued")], [Planned("done")], batch=batch)
    with about("HUB-BATCH-02"):
        expect(scene.batch == batch, f"batchId {batch}", scene.batch, "/data/batchId")
        for id_ in scene.ids:
            expect_fields(await given.detail(id_), {"batchId": batch}, "/data")
    with about("HUB-BATCH-03"):
        answer = await given.api.batch(batch).succeeds(200)
    rules = {"batchId": ("HUB-BATCH-05",), "total": ("HUB-BATCH-06",)}
    expect_fields(answer.data, {"batchId": batch, "total": 3}, "/data", rules)


@requirement("HUB-BATCH-06", "HUB-BATCH-07", "HUB-BATCH-08", "HUB-BATCH-09", "HUB-BATCH-12", "HUB-BATCH-13")
async def test_the_numbers_of_a_batch(given: HubGiven) -> None:
    """The counts are those of its jobs and add up, over all and over its projects; `progress` is the finished share."""
    scene = await batched(given)
    came = await summary(given, scene.batch)
    with about("HUB-BATCH-06"):
        expect_fields(came, {"total": 11}, "/data")
    counts: dict[str, Any] = came["counts"] if isinstance(came.get("counts"), dict) else {}
    for status in STATUSES:
        with about("HUB-BATCH-07"):
            value = counts.get(status, "left out")
            expect(whole(value), f"`{status}`, an integer from 0 on", str(value), f"/data/counts/{status}")
    with about("HUB-BATCH-08"):
        total = sum(counts[status] for status in STATUSES)
        expect(total == 11, "counts that add up to 11", str(total), "/data/counts")
    with about("HUB-BATCH-07"):
        expect_fields(counts, COUNTS, "/data/counts")
    with about("HUB-BATCH-09"):
        progress, share = came.get("progress"), 6 / 11
        number = isinstance(progress, int | float) and not isinstance(progress, bool)
        near = number and abs(float(progress or 0) - share) <= 0.005  # the seed shows two places
        expect(near, f"progress 6 / 11 = {share:.4f}", str(progress), "/data/progress")
    projects = entries_of(came)
    for place, entry in enumerate(projects):
        with about("HUB-BATCH-12"):
            for name in ("total", *STATUSES):
                value = entry.get(name, "left out")
                expect(whole(value), f"`{name}`, an integer from 0 on", str(value), f"/data/byProject/{place}/{name}")
            average = entry.get("avgDurationMs", "left out")
            number = isinstance(average, int | float) and not isinstance(average, bool)
            expect(number, "`avgDurationMs`, a number", str(average), f"/data/byProject/{place}/avgDurationMs")
    with about("HUB-BATCH-12"):
        names = sorted({str(entry["projectId"]) for entry in projects})
        expect(names == sorted(scene.node.projects), f"{sorted(scene.node.projects)}", f"{names}", "/data/byProject")
    with about("HUB-BATCH-13"):
        sums = {status: sum(entry[status] for entry in projects) for status in STATUSES}
        expect_fields(sums, COUNTS, "/data/byProject")


@requirement("HUB-BATCH-09")
async def test_progress_from_nothing_to_all(api: HubApi, given: HubGiven) -> None:
    """`progress` is 0 before the first job finished and 1 after the last one did."""
    scene = await arranged(given, [Planned("running"), Planned("queued")])
    expect_fields(await summary(given, scene.batch), {"progress": 0}, "/data")
    for job, _ in scene:
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
    expect_fields(await summary(given, scene.batch), {"progress": 1}, "/data")


@requirement("HUB-BATCH-10")
async def test_the_slowest_project_counts(given: HubGiven) -> None:
    """A batch of a slow and a quick project has the remaining time of a batch of that slow project alone."""
    alone, both = given.unique("batch"), given.unique("batch")
    project, node = await given.project(), await given.node([given.unique("proj"), given.unique("proj")])
    slow, quick = node.projects
    for name, seconds in ((project.id, 8), (slow, 8), (quick, 4)):
        await given.script(name, {"afterSeconds": seconds, "result": "done"})
    await given.accepted([item(project)] * 4, batch=alone)
    await given.accepted([item(name) for name in node.projects for _ in range(4)], batch=both)
    await given.clock.advance(10)
    found = []
    for batch in (alone, both):
        estimate = (await summary(given, batch)).get("estimatedRemainingMs")
        expect(whole(estimate), "an integer from 0 on", str(estimate), "/data/estimatedRemainingMs")
        found.append(int(estimate or 0))
    near = abs(found[1] - found[0]) <= 2000  # a sum would be 8 s more, a mean over both 2.6 s
    expect(near and found[0] > 0, f"about {found[0]}", str(found[1]), "/data/estimatedRemainingMs")


@requirement("HUB-BATCH-14")
async def test_failures_are_listed(given: HubGiven) -> None:
    """`failures` tells of each failed job: `jobId`, `externalId`, `failureType`, `message`, `attempt`."""
    scene = await batched(given)
    failures = (await summary(given, scene.batch)).get("failures")
    listed: list[Any] = failures if isinstance(failures, list) else [None]
    good = all(isinstance(entry, dict) for entry in listed)
    expect(good, "`failures`, a list of objects", json.dumps(failures)[:200], "/data/failures")
    found = {entry.get("jobId"): entry for entry in listed}
    wanted = {job.id: job for job, plan in scene if plan.state == "failed"}
    expect(set(found) == set(wanted), f"{sorted(wanted)}", f"{list(found)}", "/data/failures")
    for id_, job in wanted.items():
        fields = {"externalId": job.external_id, "failureType": "engine_error", "attempt": 1}
        expect_fields(found[id_], fields, "/data/failures")
        message = found[id_].get("message")
        expect(isinstance(message, str), "`message`, a string", json.dumps(message), "/data/failures/message")
        assert fields["failureType"] in FAILURE_TYPES


@requirement("HUB-BATCH-15")
async def test_at_most_a_hundred_failures(given: HubGiven) -> None:
    """Of 102 failed jobs `failures` lists a hundred at most."""
    batch = given.unique("batch")
    node = await given.node([given.unique("proj") for _ in range(6)])
    for project in node.projects:
        await given.script(project, {"afterSeconds": 0, "result": "failed", "message": "at once"})
    ids = await given.submitted([item(project) for project in node.projects for _ in range(17)], batch=batch)
    await given.clock.advance(1)
    await given.until(ids[-1], "failed")
    came = (await summary(given, batch)).get("failures")
    size = len(came) if isinstance(came, list) else 0
    expect(0 < size <= 100, "1 to 100 failures", str(size), "/data/failures")


@requirement("HUB-BATCH-16", "HUB-BATCH-17")
async def test_cancelling_a_batch(api: HubApi, given: HubGiven) -> None:
    """Cancelling a batch cancels what is queued and running in it, and says how many."""
    scene = await arranged(given, [Planned("done"), Planned("running"), Planned("queued")], [Planned("running")])
    with about("HUB-BATCH-16"):
        answer = await api.cancel_batch(scene.batch).succeeds()
    for job, plan in scene:
        with about("HUB-BATCH-16"):
            wanted = "done" if plan.state == "done" else "cancelled"
            expect_fields(await given.detail(job), {"status": wanted}, "/data")
    with about("HUB-BATCH-17"):
        expect_fields(answer.inner, {"cancelled": 3}, "/data")
