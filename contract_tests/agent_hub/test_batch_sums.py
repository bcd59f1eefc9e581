"""Batches: their numbers reckoned from their jobs, and whose they are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.scenes import Planned, arranged, retried
from contract_tests.agent_hub.shapes import instant
from contract_tests.agent_hub.sums import judge_failures, judge_sums, read, summary
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

BUSY = (Planned("running"), Planned("queued"))
MIXED = (
    [Planned("done", 1), Planned("done", 1.002), Planned("done", 1.003), Planned("waiting", 0.5), *BUSY],
    [Planned("done", 2), Planned("done", 2.001), Planned("failed", 0.5), Planned("running"), Planned("cancelled")],
    [Planned("failed", 0.5), *BUSY],
)
"""Averages of 1001.67 and 2000.5 ms, and none; one waits for its retry."""


@requirement("HUB-BATCH-50")
@pytest.mark.parametrize("batch", ["", "a b", "sprint/42", "x" * 129, "批次"])
async def test_a_bad_batch_id_is_refused(api: HubApi, given: HubGiven, batch: str) -> None:
    """A `batchId` that is not of 1 to 128 characters A-Z a-z 0-9 . _ : - is 400."""
    await api.submit(item(await given.project()), batch=batch).fails(400, "invalid_request")


@requirement("HUB-BATCH-50", "HUB-BATCH-51")
async def test_a_batch_id_used_again_adds_jobs(given: HubGiven) -> None:
    """A `batchId` of every allowed character and 128 of them is taken, and taken again adds jobs to that batch."""
    project = await given.project()
    name = given.unique("Az09._:-")
    batch = name + "x" * (128 - len(name))
    with about("HUB-BATCH-50"):
        first = await given.api.submit(item(project), batch=batch).succeeds(202)
    with about("HUB-BATCH-51"):
        again = await given.api.submit([item(project)] * 2, batch=batch).succeeds(202)
        for answer in (first, again):
            expect_fields(answer.data, {"batchId": batch}, "/data")
        expect_fields(await summary(given, batch), {"batchId": batch, "total": 3}, "/data")
        entries = (await read(given, batch)).entries
        expect(len(entries) == 3, "3 jobs in the list", str(len(entries)), "/data/items")


@requirement("HUB-BATCH-50")
async def test_a_batch_id_of_one_character(api: HubApi, given: HubGiven) -> None:
    """A `batchId` of a single character is taken, and the batch is told under it."""
    await api.submit(item(await given.project()), batch="b").succeeds(202)
    with about("HUB-BATCH-03", step="reading a batch"):
        expect_fields((await api.batch("b").succeeds(200)).data, {"batchId": "b"}, "/data")


@requirement("HUB-BATCH-52")
async def test_batch_ids_are_per_key(api: HubApi, given: HubGiven) -> None:
    """The same `batchId` under two keys is two batches, each cancelled alone."""
    stranger, project, batch = given.stranger, await given.project(), given.unique("batch")
    await given.submitted([item(project)] * 2, batch=batch)
    theirs = await given.submitted([item(project)] * 3, batch=batch, api=stranger)
    expect_fields(await summary(given, batch), {"total": 2}, "/data")
    expect_fields(await summary(given, batch, api=stranger), {"total": 3}, "/data")
    await api.cancel_batch(batch).succeeds(200)
    for id_ in theirs:
        status = (await given.detail(id_, api=stranger)).get("status")
        expect(status != "cancelled", "a job that is not cancelled", str(status), "/data/status")


@requirement(
    "HUB-BATCH-53", "HUB-BATCH-54", "HUB-BATCH-55", "HUB-BATCH-57", "HUB-BATCH-58", "HUB-BATCH-59", "HUB-BATCH-60",
    "HUB-BATCH-61", "HUB-BATCH-62", "HUB-BATCH-66", "HUB-BATCH-67",
)  # fmt: skip
async def test_the_sums_of_a_batch(given: HubGiven) -> None:
    """Counts, progress, averages, remaining time and failures are those of the jobs as the list has them."""
    scene = await arranged(given, *MIXED)
    came = await read(given, scene.batch)
    judge_sums(came)
    judge_failures(came)


@requirement("HUB-BATCH-54", "HUB-BATCH-55")
async def test_progress_falls_when_a_retry_begins(given: HubGiven) -> None:
    """A failed job counts as failed while its retry is to come, and as running when it runs again."""
    scene = await arranged(given, [Planned("waiting", again={"afterSeconds": 100})], [Planned("done")])
    waiting = scene.of("waiting")
    before = await read(given, scene.batch)
    judge_sums(before)
    judge_failures(before)
    expect_fields(before.summary, {"progress": 1}, "/data", {"progress": ("HUB-BATCH-54",)})
    await retried(given, waiting, "running")
    after = await read(given, scene.batch)
    judge_sums(after)
    with about("HUB-BATCH-54"):
        expect_fields(after.summary, {"progress": 0.5}, "/data")
    with about("HUB-BATCH-55"):
        expect(
            after.summary.get("failures") == [], "no failure", json.dumps(after.summary["failures"]), "/data/failures"
        )


@requirement("HUB-BATCH-56")
async def test_a_project_of_two_nodes_is_one_entry(given: HubGiven) -> None:
    """A project that two nodes have is one entry of `byProject`, with the jobs of both."""
    shared = given.unique("proj")
    nodes = [await given.node([shared]), await given.node([shared])]
    await given.script(shared, {"afterSeconds": 1}, node=nodes[0])
    await given.script(shared, {"afterSeconds": 100}, node=nodes[1])
    answer = await given.accepted([item(shared, nodeId=node.id) for node in nodes for _ in range(2)])
    await given.clock.advance(1 + given.clock.margin)
    await given.until(str(answer.data["items"][0]["id"]), "done")
    judge_sums(await read(given, str(answer.data.get("batchId"))))


@requirement("HUB-BATCH-61", "HUB-BATCH-62")
@pytest.mark.parametrize("slowest", ["own average", "the batch's average", "waits for a retry"])
async def test_what_is_left_times_the_average(given: HubGiven, slowest: str) -> None:
    """A project's remaining time is its jobs left times its average, or the batch's where it has none done."""
    plans: dict[str, list[list[Planned]]] = {
        "own average": [
            [Planned("done", 4), Planned("running"), Planned("queued")],
            [Planned("done", 1), *[Planned("done", 1)] * 2, Planned("running"), Planned("queued"), Planned("queued")],
        ],
        "the batch's average": [
            [Planned("done", 1), Planned("done", 2), Planned("running")],
            [Planned("running"), Planned("queued")],
        ],
        "waits for a retry": [
            [Planned("done", 2), Planned("waiting", 0.5), Planned("waiting", 0.5), Planned("failed", 0.5)],
            [Planned("done", 1), Planned("running")],
        ],
    }
    scene = await arranged(given, *plans[slowest])
    came = await read(given, scene.batch)
    rule = "HUB-BATCH-62" if slowest == "the batch's average" else "HUB-BATCH-61"
    with about(rule):
        judge_sums(came)


@requirement("HUB-BATCH-59", "HUB-BATCH-63", "HUB-BATCH-64")
async def test_nothing_left_and_nothing_known(api: HubApi, given: HubGiven) -> None:
    """Remaining time is null while no job is done, and 0 when nothing is left, with a done job or without."""
    scene = await arranged(given, [Planned("failed"), Planned("running"), Planned("queued")])
    came = await read(given, scene.batch)
    with about("HUB-BATCH-64"):
        expect_fields(came.summary, {"estimatedRemainingMs": None}, "/data")
    with about("HUB-BATCH-59"):
        entry = came.projects[scene.node.projects[0]]
        expect_fields(entry, {"avgDurationMs": None}, "/data/byProject")
    with about("HUB-BATCH-16", step="cancelling a batch"):
        await api.cancel_batch(scene.batch).succeeds()
    over = await arranged(given, [Planned("done"), Planned("failed")])
    for batch in (scene.batch, over.batch):
        with about("HUB-BATCH-63"):
            expect_fields(await summary(given, batch), {"estimatedRemainingMs": 0}, "/data")


@requirement("HUB-BATCH-65", "HUB-BATCH-66", "HUB-BATCH-67")
async def test_the_newest_failures_come_first(given: HubGiven) -> None:
    """`failures` begins with the job that failed last, however they were submitted; no cancelled one is in it."""
    quick = [Planned("failed", 0.4, {"message": "fails first"}), Planned("running"), Planned("cancelled")]
    late = [Planned("failed", 3, {"message": "fails third"}), Planned("waiting", 1, {"message": "fails last"})]
    scene = await arranged(given, late, quick, [Planned("failed", 2, {"message": "fails second"})])
    came = await read(given, scene.batch)
    judge_failures(came)
    messages = [entry.get("message") for entry in came.summary["failures"]]
    wanted = [f"fails {which}" for which in ("last", "third", "second", "first")]
    with about("HUB-BATCH-65"):
        expect(messages == wanted, f"{wanted}", f"{messages}", "/data/failures")


@requirement("HUB-BATCH-65")
async def test_the_hundred_newest_failures(given: HubGiven) -> None:
    """Of 104 failed jobs `failures` lists the hundred that failed last, the latest first."""
    batch, node = given.unique("batch"), await given.node([given.unique("proj") for _ in range(4)])
    for project in node.projects:
        await given.script(project, {"afterSeconds": 0, "result": "failed", "message": "at once"})
    ids = await given.submitted([item(project) for project in node.projects for _ in range(26)], batch=batch)
    await given.clock.advance(1)
    for id_ in ids[25::26]:
        await given.until(id_, "failed")
    judge_failures(await read(given, batch))


@requirement("HUB-BATCH-68", "HUB-BATCH-69", "HUB-BATCH-70", "HUB-BATCH-71")
async def test_the_cancel_of_a_batch_counts_what_it_changed(api: HubApi, given: HubGiven) -> None:
    """A cancel counts queued, running and waiting jobs, not those that were finished; again it is 200 with 0."""
    first = [Planned("done"), Planned("failed"), Planned("running"), Planned("queued"), Planned("cancelled")]
    scene = await arranged(given, first, [Planned("waiting")])
    before = {job.id: await given.detail(job) for job, _ in scene}
    answer = await api.cancel_batch(scene.batch).succeeds(200)
    body = answer.fields
    with about("HUB-BATCH-71"):
        good = isinstance(body.get("data"), dict) and "cancelled" in body["data"] and "requestId" in body
        expect(good, '`{"data": {"cancelled": n}, "requestId"}`', answer.response.text[:200], "/data")
    waits = scene.of("waiting")
    with about("HUB-BATCH-68"):
        detail = await given.detail(waits)
        expect_fields(detail, {"status": "cancelled", "nextRetryAt": None}, "/data")
    count: Any = body["data"]["cancelled"]
    with about("HUB-BATCH-68" if count == 2 else "HUB-BATCH-69"):
        expect_fields(body["data"], {"cancelled": 3}, "/data")
    for job, plan in scene:
        if plan.state in ("done", "failed", "cancelled"):
            with about("HUB-BATCH-69"):
                after, kept = await given.detail(job), before[job.id]
                same = after.get("status") == kept.get("status") and instant(after, "finishedAt") == instant(
                    kept, "finishedAt"
                )
                expect(same, f"the {plan.state} job as it was", json.dumps(after)[:200], "/data")
    with about("HUB-BATCH-70"):
        again = await api.cancel_batch(scene.batch).succeeds(200)
        expect_fields(again.inner, {"cancelled": 0}, "/data")
