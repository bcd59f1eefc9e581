"""Submitting jobs: what an accepted submission is answered (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import describe, ids_of, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import entries_of, listed
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, expect_fields, is_integer, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven

MOST = 500


def items_of(answer: HubAnswer, number: int) -> list[dict[str, Any]]:
    """The items of an answer, which are so many."""
    with about("HUB-SUB-08", "HUB-SUB-09"):
        items = answer.data.get("items")
        good = isinstance(items, list) and all(isinstance(one, dict) for one in items)
        expect(good, "`items`, a list of objects", answer.response.text[:200], "/data/items")
        entries: list[dict[str, Any]] = items if isinstance(items, list) else []
        expect(len(entries) == number, f"{number} items", str(len(entries)), "/data/items")
    return entries


def judge_accepted(answer: HubAnswer, number: int) -> None:
    """`accepted` tells the number."""
    with about("HUB-SUB-08"):
        came = answer.data.get("accepted")
        expect(is_integer(came) and came == number, f"accepted {number}", str(came), "/data/accepted")


@requirement(
    "HUB-SUB-01", "HUB-SUB-05", "HUB-SUB-06", "HUB-SUB-07", "HUB-SUB-08", "HUB-SUB-09", "HUB-SUB-10", "HUB-SUB-11"
)
async def test_the_seeds_own_example_is_accepted(api: HubApi, given: HubGiven) -> None:
    """The request of seed 002 section 1, with names of its own: 202 and the answer that the seed shows."""
    project, batch, task = await given.project(), given.unique("sprint"), given.unique("TASK")
    one = {
        "kind": "ai",
        "projectId": project.id,
        "prompt": "检查 src 下所有 TODO 并生成 reports/todo.md",
        "mode": "auto",
        "priority": 10,
        "maxAttempts": 4,
        "externalId": task,
        "metadata": {"owner": "team-a"},
        "callbackUrl": given.hook().url,
    }
    answer = await api.submit(one, batch=batch, key=given.unique("order-20261109")).answers()
    with about("HUB-SUB-01"):
        expect(answer.status not in (404, 405, 501), "`POST /v1/jobs`", describe(answer.response))
    with about("HUB-SUB-05"):
        expect(answer.status == 202, "202", describe(answer.response))
    with about("HUB-SUB-06"):
        body = answer.fields
        expect(isinstance(body.get("data"), dict), "`data`, an object", answer.response.text[:300], "/data")
        id_ = body.get("requestId")
        good = isinstance(id_, str) and id_.startswith("req_")
        expect(good, "a requestId like req_...", str(id_), "/requestId")
    with about("HUB-SUB-07"):
        expect_fields(answer.data, {"batchId": batch}, "/data")
    judge_accepted(answer, 1)
    [entry] = items_of(answer, 1)
    with about("HUB-SUB-09"):
        good = isinstance(entry.get("id"), str) and bool(entry["id"])
        expect(good, "an `id`, a string that is not empty", str(entry.get("id")), "/data/items/0/id")
    wanted = {"externalId": task, "projectId": project.id, "status": "queued", "nodeId": project.node.id}
    rules = {"status": ("HUB-SUB-10",), "nodeId": ("HUB-SUB-11",)}
    expect_fields(entry, wanted, "/data/items/0", {**dict.fromkeys(wanted, ("HUB-SUB-09",)), **rules})


@requirement("HUB-SUB-08", "HUB-SUB-09", "HUB-SUB-10")
async def test_each_item_becomes_a_job(api: HubApi, given: HubGiven) -> None:
    """Seven items for two projects: `accepted` 7, an entry each with an id of its own, and seven jobs in the batch."""
    projects, batch = [await given.project(), await given.project()], given.unique("batch")
    tasks = {given.unique("task"): projects[i % 2] for i in range(7)}
    answer = await given.accepted(*(item(on, externalId=task) for task, on in tasks.items()), batch=batch)
    judge_accepted(answer, 7)
    entries = items_of(answer, 7)
    with about("HUB-SUB-09"):
        expect(len({*job_ids(answer)}) == 7, "seven ids", str(ids_of(entries)), "/data/items")
        came = {entry.get("externalId"): entry.get("projectId") for entry in entries}
        expect(came == {task: on.id for task, on in tasks.items()}, "each externalId with its project", str(came))
    with about("HUB-SUB-10"):
        states = {str(entry.get("status")) for entry in entries}
        expect(states == {"queued"}, "status queued", ", ".join(sorted(states)), "/data/items")
    with about("HUB-SUB-08"):
        found = {job.get("externalId"): job.get("id") for job in await listed(given, batchId=batch)}
        told = {entry.get("externalId"): entry.get("id") for entry in entries}
        expect(found == told, f"the jobs {told}", str(found), "/data/items")


@requirement("HUB-SUB-07")
async def test_a_batch_id_is_made_where_none_is_given(api: HubApi, given: HubGiven) -> None:
    """Without `batchId`: the answer has one, under which the jobs are found; another submission has another."""
    project = await given.project()
    made: list[Any] = []
    for _ in range(2):
        answer = await given.accepted(item(project), item(project))
        made.append(answer.data.get("batchId"))
        good = isinstance(made[-1], str) and bool(made[-1])
        expect(good, "a batchId, a string that is not empty", str(made[-1]), "/data/batchId")
        found = {job.get("id") for job in await listed(given, batchId=made[-1])}
        expect(found == {*job_ids(answer)}, "the jobs of the answer in that batch", str(found), "/data/batchId")
    expect(made[0] != made[1], "a batchId of its own for each submission", f"{made[0]} twice", "/data/batchId")


@requirement("HUB-SUB-11", "HUB-FIELD-04")
@pytest.mark.parametrize("told", [False, True], ids=["left out", "given"])
async def test_a_job_goes_to_the_node_of_its_project(api: HubApi, given: HubGiven, told: bool) -> None:
    """With `nodeId` or without: the answer tells the node that has the project, and the job is that node's."""
    projects = [await given.project(), await given.project()]
    items = [item(on, nodeId=on.node.id if told else UNSET) for on in projects]
    with about("HUB-FIELD-04"):
        answer = await api.submit(*items).succeeds()
    for i, (entry, project) in enumerate(zip(items_of(answer, 2), projects, strict=True)):
        rules = {"nodeId": ("HUB-SUB-11",)}
        expect_fields(entry, {"nodeId": project.node.id}, f"/data/items/{i}", rules)
    for id_, project in zip(job_ids(answer), projects, strict=True):
        with about("HUB-FIELD-04"):
            expect_fields(await given.detail(id_), {"nodeId": project.node.id}, "/data")


@requirement("HUB-SUB-50")
async def test_items_are_answered_in_the_order_sent(api: HubApi, given: HubGiven) -> None:
    """Twelve items, some equal, some without externalId, of mixed priorities and projects: answered in that order."""
    projects, batch = [await given.project() for _ in range(3)], given.unique("batch")
    tasks = [given.unique("task") if i % 4 else None for i in range(12)]
    items = [
        item(projects[i * 7 % 3], priority=(i * 5) % 12, externalId=task or UNSET, prompt=f"number {i}")
        for i, task in enumerate(tasks)
    ]
    answer = await given.accepted(*items, batch=batch)
    entries = entries_of(answer)
    came = [(entry.get("externalId"), entry.get("projectId")) for entry in entries]
    sent = [(task, one["projectId"]) for task, one in zip(tasks, items, strict=True)]
    expect(came == sent, f"the order sent: {sent}", str(came), "/data/items")
    titles = {job.get("id"): job.get("title") for job in await listed(given, batchId=batch)}
    prompts = [one["prompt"] for one in items]
    with about("HUB-SUB-08", step="queueing what was accepted"):
        expect(len(titles) == len(items), f"{len(items)} jobs", str(len(titles)), "/data/items")
    with about("HUB-GET-06", step="the titles of jobs"):
        expect({*titles.values()} == {*prompts}, f"the titles {prompts}", str(titles), "/data/items")
    told = [titles.get(id_) for id_ in job_ids(answer)]
    expect(told == prompts, "each id at the place of its item", str(told), "/data/items")


@requirement("HUB-SUB-05")
async def test_a_repetition_without_a_key_is_a_new_submission(api: HubApi, given: HubGiven) -> None:
    """The same body twice without `Idempotency-Key`, its batchId and externalId too: 202 each time, and other jobs."""
    project, batch, task = await given.project(), given.unique("batch"), given.unique("task")
    answers = [await api.submit(item(project, externalId=task), batch=batch).succeeds(202) for _ in range(2)]
    first, second = ({*job_ids(answer)} for answer in answers)
    expect(not first & second, "jobs of its own", f"{first & second} again", "/data/items")
    found = {job.get("id") for job in await listed(given, externalId=task)}
    expect(found == first | second, "both jobs", str(found), "/data/items")


@requirement("HUB-SUB-05")
async def test_no_field_but_the_key_repeats_a_submission(api: HubApi, given: HubGiven) -> None:
    """The same batchId and externalId under another `Idempotency-Key`: 202 and a job of its own."""
    project, batch, task = await given.project(), given.unique("batch"), given.unique("task")
    ids: set[str] = set()
    for number in range(1, 4):
        call = api.submit(item(project, externalId=task), batch=batch, key=given.unique("order"))
        ids |= {*job_ids(await call.succeeds(202))}
        expect(len(ids) == number, "a job of its own", "one that was there", "/data/items")


@requirement("HUB-SUB-52")
async def test_500_items_are_accepted(api: HubApi, given: HubGiven) -> None:
    """500 items: 202, an id each, and a batch of 500."""
    project, batch = await given.project(), given.unique("batch")
    answer = await api.submit([item(project)] * MOST, batch=batch).succeeds(202)
    await given.offline(project.node)  # they are not to run while others look
    expect(len({*job_ids(answer)}) == MOST, "500 ids", str(len({*job_ids(answer)})), "/data/items")
    with about("HUB-BATCH-06", step="reading a batch"):
        summary = (await api.batch(batch).succeeds(200)).data
    expect_fields(summary, {"total": MOST}, "/data")
