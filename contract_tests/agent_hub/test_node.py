"""Nodes that are away, and projects that several of them have (seed 002 section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import item, whole
from contract_tests.agent_hub.given import Project, job_ids
from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    ends,
    failed_by,
    fails,
    falls_silent,
    is_lost,
    is_still,
    scripted,
)
from contract_tests.agent_hub.shapes import iso
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock


async def on_two_nodes(given: HubGiven, *, online: bool = True) -> tuple[Project, Project]:
    """One project id that two nodes have; the second one may be offline."""
    name = given.unique("proj")
    return Project(name, await given.node([name])), Project(name, await given.node([name], online=online))


def code_of(answer: HubAnswer) -> Any:
    """The code of a refusal."""
    error = answer.fields.get("error")
    return error.get("code") if isinstance(error, dict) else error


@requirement("HUB-NODE-01")
async def test_a_project_of_two_nodes_is_ambiguous(api: HubApi, given: HubGiven) -> None:
    """Without nodeId: refused, ambiguous_project; one online alone does not make it clear."""
    for online in (True, False):
        here, _ = await on_two_nodes(given, online=online)
        answer = await api.submit(item(here)).refused()
        expect(code_of(answer) == "ambiguous_project", "ambiguous_project", str(code_of(answer)), "/error/code")


@requirement("HUB-NODE-02")
async def test_the_message_names_the_nodes(api: HubApi, given: HubGiven) -> None:
    """The refusal's message names the project and both nodes, and asks for the nodeId."""
    here, there = await on_two_nodes(given)
    with about("HUB-NODE-01", step="an ambiguous project"):
        answer = await api.submit(item(here)).refused()
    error = answer.fields.get("error")
    message = str(error.get("message")) if isinstance(error, dict) else ""
    for name in (here.id, here.node.id, there.node.id, "nodeId"):
        expect(name in message, f"a message with {name}", message, "/error/message")


@requirement("HUB-NODE-04")
async def test_a_job_runs_on_the_node_that_was_named(api: HubApi, given: HubGiven) -> None:
    """Two nodes have the project: each job runs on its own node, through all its attempts."""
    here, there = await on_two_nodes(given)
    for place in (here, there):
        await given.script(place, fails(), ends(600), node=place.node)
    async with Started(given) as start:
        answer = await given.accepted(*(item(place, nodeId=place.node.id) for place in (here, there)))
    ids = job_ids(answer)
    await start.reach(1 + given.timing.backoff[0] * 1.2)
    for id_, place in zip(ids, (here, there), strict=True):
        expect_fields(await given.detail(id_), {"nodeId": place.node.id, "nodeLabel": place.node.label}, "/data")


@requirement("HUB-NODE-04")
async def test_a_job_is_never_moved(given: HubGiven) -> None:
    """Its node goes away while it is queued, another node with the project is free: it stays where it is."""
    here, there = await on_two_nodes(given)
    blocker = await given.job(here, nodeId=here.node.id, **await scripted(given, here, ends(600)))
    job = await given.job(here, nodeId=here.node.id)
    await becomes(given, blocker, "running")
    await given.offline(here.node)
    async with Started(given) as other:
        free = await given.job(there, nodeId=there.node.id)
    await other.reach(given.timing.node_lost + 5)
    with about("HUB-BATCH-11", step="a job of a project that is free"):
        await becomes(given, free, "done")
    detail = await given.detail(job)
    expect_fields(detail, {"nodeId": here.node.id}, "/data")
    with about("HUB-NODE-06", step="a job whose node is away"):
        expect_fields(detail, {"status": "queued"}, "/data")


@requirement("HUB-NODE-04")
async def test_a_lost_job_stays_with_its_node(given: HubGiven, clock: Clock) -> None:
    """Its node is lost while it runs: the retry waits for that node, however free another one is."""
    clock.needs_advance()
    here, _ = await on_two_nodes(given)
    async with Started(given) as start:
        job = await given.job(here, nodeId=here.node.id, **await scripted(given, here, ends(600), ends(1)))
    await start.reach(1)
    await becomes(given, job, "running")
    await given.offline(here.node)
    await start.reach(1 + given.timing.node_lost * 1.2)
    await is_lost(given, job)
    await start.reach(1 + given.timing.node_lost + given.timing.backoff[0] + 60)
    expect_fields(await given.detail(job), {"nodeId": here.node.id}, "/data")
    with about("HUB-NODE-06", step="a retry of a lost job"):
        await becomes(given, job, "queued")
    async with Since(given) as back:
        await given.online(here.node)
    await back.reach(1)
    with about("HUB-NODE-08", step="a job whose node is back"):
        detail = await becomes(given, job, "done")
    expect_fields(detail, {"nodeId": here.node.id}, "/data")


@requirement("HUB-NODE-05")
@pytest.mark.parametrize("named", [False, True], ids=["looked up", "named"])
async def test_a_submission_to_an_offline_node_is_refused(api: HubApi, given: HubGiven, named: bool) -> None:
    """409 node_offline, whether the node was named or looked up, and whether it ever was online; back again: taken."""
    project = await given.project(online=False)
    fields = {"nodeId": project.node.id} if named else {}
    await api.submit(item(project, **fields)).fails(409, "node_offline")
    await given.online(project.node)
    await given.submitted(item(project, **fields))
    await given.offline(project.node)
    await api.submit(item(project, **fields)).fails(409, "node_offline")


@requirement("HUB-NODE-05")
async def test_one_offline_node_refuses_the_whole_submission(api: HubApi, given: HubGiven) -> None:
    """One item of three is for a node that is offline: 409 node_offline, and none of the three is there."""
    good, bad, batch = await given.project(), await given.project(online=False), given.unique("batch")
    names = [given.unique("task") for _ in range(3)]
    items = [item(place, externalId=name) for place, name in zip((good, bad, good), names, strict=True)]
    await api.submit(*items, batch=batch).fails(409, "node_offline")
    with about("HUB-SUB-15"):
        for name in names:
            found = (await api.jobs(externalId=name).succeeds(200)).entries
            expect(not found, "no job", f"{len(found)} with externalId {name}", "/data/items")


@requirement("HUB-NODE-06", "HUB-NODE-07", "HUB-NODE-08")
async def test_a_job_waits_for_its_node(given: HubGiven) -> None:
    """Its node goes offline: queued for an hour, `blocked` says why; back again it starts by itself."""
    project = await given.project()
    async with Started(given) as start:
        blocker = await given.job(project, **await scripted(given, project, ends(20)))
        with about("HUB-BATCH-11", step="a job that waits for another one"):
            await becomes(given, blocker, "running")
        job = await given.job(project, priority=1, **await scripted(given, project, ends(1)))
    with about("HUB-BATCH-11", step="a job that waits for another one"):
        await becomes(given, job, "queued")
    await given.offline(project.node)
    for seconds in (0.5, 3600 if given.clock.advances else given.timing.node_lost + 2):
        await start.reach(seconds)
        detail = await given.detail(job)
        with about("HUB-NODE-06"):
            expect_fields(detail, {"status": "queued", "nodeId": project.node.id}, "/data")
        with about("HUB-NODE-07"):
            await blocked_by(given, project, detail)
    async with Since(given) as back:
        await given.online(project.node)
    await back.reach(0.5)
    with about("HUB-NODE-08"):
        detail = await becomes(given, job, "running", "done")
    with about("HUB-GET-20"):
        expect(detail.get("blocked") is None, "`blocked` null", str(detail.get("blocked")), "/data/blocked")
    await back.reach(2)
    with about("HUB-NODE-08"):
        await becomes(given, job, "done")


async def blocked_by(given: HubGiven, project: Project, detail: dict[str, Any]) -> None:
    """`blocked` of a job names its node, and when that was last seen."""
    blocked = detail.get("blocked")
    expect(isinstance(blocked, dict), "`blocked`, an object", str(blocked), "/data/blocked")
    told = dict(blocked or {})
    expect_fields(told, {"reason": "node_offline", "nodeId": project.node.id}, "/data/blocked")
    seen = iso(told.get("lastSeen"), "/data/blocked/lastSeen")
    if given.clock.advances:
        now = await given.clock.now()
        expect(seen <= now, f"lastSeen not after {now}", str(seen), "/data/blocked/lastSeen")


@requirement("HUB-GET-20")
@pytest.mark.parametrize("state", ["queued", "running", "waiting", "failed", "done"])
async def test_nothing_else_is_blocked(given: HubGiven, state: str) -> None:
    """Queued on a node that is online, or in any other state on one that is offline: `blocked` null."""
    job = await given.in_state(state)
    if state != "queued":
        await given.offline(job.project.node)
    told = (await given.detail(job)).get("blocked")
    expect(told is None, "`blocked` null", str(told), "/data/blocked")


@requirement("HUB-OVW-02")
async def test_jobs_of_an_offline_node_are_stalled(api: HubApi, given: HubGiven) -> None:
    """`load.stalledQueued` grows by the jobs that are queued on a node when it goes offline."""
    project = await given.project()
    await given.running_job(project)
    jobs = [await given.job(project) for _ in range(3)]
    counts = [await stalled(api)]
    await given.offline(project.node)
    counts.append(await stalled(api))
    expect(counts[1] >= len(jobs), f"at least {len(jobs)}", str(counts[1]), "/data/load/stalledQueued")
    if given.clock.stands:  # otherwise jobs of other checks start and end meanwhile
        await given.online(project.node)
        counts.append(await stalled(api))
        wanted = [counts[0], counts[0] + len(jobs), counts[0]]
        expect(counts == wanted, f"{wanted}: before, offline, back", str(counts), "/data/load/stalledQueued")


async def stalled(api: HubApi) -> int:
    """`load.stalledQueued` of the overview."""
    with about("HUB-OVW-01", step="the overview"):
        load = (await api.overview().succeeds(200)).inner.get("load")
        came = load.get("stalledQueued") if isinstance(load, dict) else None
        expect(whole(came), "`load.stalledQueued`, a number", str(came), "/data/load/stalledQueued")
    return int(came or 0)


@requirement("HUB-NODE-13", "HUB-FAIL-07")
async def test_the_node_has_the_last_word(given: HubGiven) -> None:
    """A job was accepted, and its project is gone from the node when it starts: failed, project_not_found."""
    project = await given.project()
    async with Started(given) as start:
        await given.job(project, **await scripted(given, project, ends(20)))
        job = await given.job(project)
    with about("HUB-NODE-13"):
        await becomes(given, job, "queued")
    await given.without_projects(project.node)
    await start.reach(20 + 1)
    with about("HUB-NODE-13"):
        before = await becomes(given, job, "failed")
    failed_by(before, "project_not_found")
    await start.reach(20 + 1 + given.timing.backoff[0] + 2)
    with about("HUB-FAIL-07"):
        is_still(before, await given.detail(job))


@requirement("HUB-NODE-50")
async def test_nodes_and_projects_are_everybodys(api: HubApi, given: HubGiven) -> None:
    """The second key sees the project, and can submit to it."""
    project, stranger = await given.project(), given.stranger
    for key in (api, stranger):
        entries = (await key.projects().succeeds(200)).entries
        found = [entry for entry in entries if entry.get("projectId") == project.id]
        expect(bool(found), f"the project {project.id}", "it is not listed", "/data/items")
    await stranger.submit(item(project)).succeeds(202)


@requirement("HUB-NODE-51")
@pytest.mark.parametrize("first", ["first key", "second key"])
async def test_a_project_is_serial_over_both_keys(api: HubApi, given: HubGiven, first: str) -> None:
    """One key's job runs: the other key's job in the same project waits until it ends."""
    mine, other = (api, given.stranger) if first == "first key" else (given.stranger, api)
    project = await given.project()
    async with Started(given) as start:
        one = await given.job(project, api=mine, **await scripted(given, project, ends(20)))
        two = await given.job(project, api=other, **await scripted(given, project, ends(20)))
    await start.before(20)
    for job, key, status in ((one, mine, "running"), (two, other, "queued")):
        expect_fields(await given.detail(job, api=key), {"status": status}, "/data")
    await start.reach(20.2)
    for job, key, status in ((one, mine, "done"), (two, other, "running")):
        expect_fields(await given.detail(job, api=key), {"status": status}, "/data")


@requirement("HUB-NODE-52")
async def test_a_project_runs_on_each_of_its_nodes(given: HubGiven) -> None:
    """Two nodes have the project: one job runs on each at the same time, a second one on the same node waits."""
    here, there = await on_two_nodes(given)
    await given.script(here, ends(600))
    items = [item(place, nodeId=place.node.id) for place in (here, there, here)]
    async with Started(given) as start:
        ids = await given.submitted(*items)
    await start.reach(1)
    came = [(await given.detail(id_)).get("status") for id_ in ids]
    expect(came == ["running", "running", "queued"], "running, running, queued", ", ".join(map(str, came)))


@requirement("HUB-NODE-06")
async def test_a_retry_waits_for_its_node(given: HubGiven, clock: Clock) -> None:
    """The retry of a lost job is due while its node is away: it is queued, blocked, and runs when the node is back."""
    clock.needs_advance()
    project = await given.project()
    async with Started(given) as start:
        job = await given.job(project, **await scripted(given, project, falls_silent(0), ends(1)))
    await start.reach(given.timing.node_lost * 1.2)
    await is_lost(given, job)
    await given.offline(project.node)
    await start.reach(given.timing.node_lost + given.timing.backoff[0] + 300)
    detail = await becomes(given, job, "queued")
    with about("HUB-NODE-07"):
        await blocked_by(given, project, detail)
    async with Since(given) as back:
        await given.online(project.node)
    await back.reach(1)
    with about("HUB-NODE-08"):
        await becomes(given, job, "done")
