"""Which job of a project runs next, and which run side by side."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import item, whole
from contract_tests.agent_hub.rounds import (
    Started,
    becomes,
    cancels,
    ends,
    fails,
    falls_silent,
    goes_on,
    is_over,
    retries,
    scripted,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import instant
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Project
    from contract_tests.clock import Clock

SHUFFLED = (0, -100, 7, 100, -1, 1, 99)


async def by_start(given: HubGiven, ids: Sequence[str]) -> list[dict[str, Any]]:
    """The details of jobs that are done, in the order in which they started."""
    details = [await given.detail(id_) for id_ in ids]
    for detail in details:
        with about("HUB-BATCH-11"):
            expect_fields(detail, {"status": "done"}, "/data")
    return sorted(details, key=lambda detail: instant(detail, "startedAt"))


def one_after_the_other(details: Sequence[dict[str, Any]]) -> None:
    """No round of these, in the order of their starts, begins before the one before has ended."""
    for before, after in pairwise(details):
        over, begins = instant(before, "finishedAt"), instant(after, "startedAt")
        expect(begins >= over, f"a start at {over} or later: one at a time", str(begins), "/data/startedAt")


async def held_up(given: HubGiven, project: Project, seconds: float = 2) -> None:
    """A job that keeps the project busy for a while."""
    await given.job(project, priority=100, **await scripted(given, project, ends(seconds)))


@requirement("HUB-FIELD-17")
@pytest.mark.parametrize("how", ["one submission", "one by one"])
async def test_the_larger_priority_runs_first(given: HubGiven, how: str) -> None:
    """Jobs wait for their project, priorities shuffled: they start with the largest first."""
    project = await given.project()
    items = [item(project, priority=priority) for priority in SHUFFLED]
    async with Started(given) as start:
        await held_up(given, project)
        if how == "one submission":
            ids = await given.submitted(*items)
        else:
            ids = [(await given.submitted(one))[0] for one in items]
    await start.reach(2 + len(ids) + 0.5)
    came = [detail.get("priority") for detail in await by_start(given, ids)]
    expect(came == sorted(SHUFFLED, reverse=True), f"{sorted(SHUFFLED, reverse=True)}", f"{came}", "/data/priority")


@requirement("HUB-FIELD-17")
async def test_what_is_urgent_overtakes_what_waits_longer(given: HubGiven) -> None:
    """A job with a larger priority that comes later runs next; what runs already is not interrupted."""
    project = await given.project()
    async with Started(given) as start:
        running = await given.job(project, **await scripted(given, project, ends(40)))
        [patient] = await given.submitted(item(project))
    await given.script(project, ends(40))
    await start.reach(5)
    [urgent] = await given.submitted(item(project, priority=1))
    expect_fields(await given.detail(running), {"status": "running"}, "/data")
    await start.reach(40.5)
    expect_fields(await given.detail(urgent), {"status": "running"}, "/data")
    expect_fields(await given.detail(patient), {"status": "queued"}, "/data")


@requirement("HUB-BATCH-11")
async def test_projects_run_side_by_side(given: HubGiven) -> None:
    """Five projects of one node: a job of each runs at the same time."""
    async with Started(given) as start:
        jobs = await side_by_side(given, *[ends(60) for _ in range(5)])
    await start.reach(1)
    for job in jobs:
        await becomes(given, job, "running")


@requirement("HUB-BATCH-11")
async def test_a_project_runs_one_job_at_a_time(given: HubGiven) -> None:
    """Six jobs of one project, submitted in one request and one by one: their rounds do not overlap."""
    project = await given.project()
    async with Started(given) as start:
        ids = await given.submitted(*[item(project) for _ in range(3)])
        for _ in range(3):
            ids += await given.submitted(item(project))
    for seconds in (
        (0.5, 2.5, 4.5) if given.clock.stands else ()
    ):  # otherwise one ends between two looks, another starts
        await start.reach(seconds)
        details = [await given.detail(id_) for id_ in ids]
        running = sum(detail.get("status") == "running" for detail in details)
        expect(running == 1, "one running job", f"{running} after {seconds:g} s")
    await start.reach(6.5)
    for id_ in ids:
        await becomes(given, id_, "done")
    one_after_the_other(await by_start(given, ids))


@requirement("HUB-BATCH-11")
async def test_a_job_that_waits_for_its_retry_holds_up_nobody(given: HubGiven) -> None:
    """One job of the project failed and waits for its retry: the next one runs meanwhile."""
    project = await given.project()
    async with Started(given) as start:
        first = await given.job(project, **await scripted(given, project, fails()))
        second = await given.job(project, **await scripted(given, project, ends(1)))
    await start.reach(2.5)
    await becomes(given, first, "failed")
    await becomes(given, second, "done")


@requirement("HUB-NODE-53")
async def test_a_free_project_starts_its_job_at_once(given: HubGiven) -> None:
    """Submitted to a free project it runs at once; the next one starts at the very end of it."""
    project = await given.project()
    async with Started(given) as start:
        first, second = [await given.job(project, **await scripted(given, project, ends(20))) for _ in range(2)]
    if given.clock.stands:
        detail = await given.detail(first)
        expect_fields(detail, {"status": "running", "waitMs": 0}, "/data")
    await start.reach(20.2)
    over = instant(await becomes(given, first, "done"), "finishedAt")
    begins = instant(await becomes(given, second, "running"), "startedAt")
    slack = 0 if given.clock.stands else (given.clock.margin + given.clock.grace) * 1000
    expect(over <= begins <= over + slack, f"a start at {over}, when the first one ended", str(begins))


@requirement("HUB-NODE-53")
@pytest.mark.parametrize("how", ["failed", "cancelled", "lost", "back"])
async def test_whatever_frees_a_project_starts_the_next(api: HubApi, given: HubGiven, clock: Clock, how: str) -> None:
    """A failure, a cancel of the one between, a loss, and the node's return: the next job starts at that moment."""
    clock.needs_to_stand()
    project = await given.project()
    rounds = {"failed": fails(4, type="engine_error"), "lost": falls_silent(4)}
    async with Started(given) as start:
        first = await given.job(project, **await scripted(given, project, rounds.get(how, ends(4))))
        middle = await given.job(project, priority=1) if how == "cancelled" else None
        job = await given.job(project, priority=1, **await scripted(given, project, ends(600)))
    if how == "back":
        await start.reach(1)
        await given.offline(project.node)
        await start.reach(2 * given.timing.node_lost)
        over = await clock.now()
        await given.online(project.node)
    else:
        if middle is not None:
            await start.reach(2)
            await cancels(given, middle, "queued")
        await start.reach(4.5 + (1.2 * given.timing.node_lost if how == "lost" else 0))
        over = instant(await given.detail(first), "finishedAt")
    begins = instant(await becomes(given, job, "running"), "startedAt")
    expect(begins == over, f"a start at {over}", f"{begins - over} ms later", "/data/startedAt")


@requirement("HUB-NODE-53")
async def test_the_end_of_a_cancelled_round_frees_the_project(api: HubApi, given: HubGiven) -> None:
    """A running job is cancelled: the next one runs when its round is over, at the latest."""
    project = await given.project()
    async with Started(given) as start:
        first = await given.job(project, **await scripted(given, project, ends(20)))
        second = await given.job(project, **await scripted(given, project, ends(600)))
    await start.reach(1)
    await cancels(given, first)
    await start.reach(20.2)
    await becomes(given, second, "running")


@requirement("HUB-NODE-54")
@pytest.mark.parametrize("priority", [0, 5])
async def test_the_oldest_runs_first(given: HubGiven, priority: int) -> None:
    """Jobs of the same priority start in the order of `queuedAt`, over several submissions."""
    project = await given.project()
    async with Started(given) as start:
        await held_up(given, project)
        ids = await given.submitted(*[item(project, priority=priority) for _ in range(3)])
        for _ in range(3):
            ids += await given.submitted(item(project, priority=priority))
    await start.reach(2 + len(ids) + 0.5)
    came = [detail.get("id") for detail in await by_start(given, ids)]
    queued = sorted([await given.detail(id_) for id_ in ids], key=lambda detail: instant(detail, "queuedAt"))
    wanted = [detail.get("id") for detail in queued]
    expect(came == wanted, f"{wanted}", f"{came}", "/data/startedAt")


@requirement("HUB-NODE-54")
async def test_a_retry_keeps_its_place(given: HubGiven) -> None:
    """A job that comes back for its second attempt is older than those that came meanwhile: it runs before them."""
    project, backoff = await given.project(), given.timing.backoff[0]
    async with Started(given) as start:
        old = await given.job(project, **await scripted(given, project, fails(), ends(600)))
        blocker = await given.job(project, **await scripted(given, project, ends(2 * backoff)))
        young = await given.job(project)
    await start.reach(1)
    await waits(given, old)
    await goes_on(given, old, "queued")
    with about("HUB-BATCH-11", step="a job that waits for another one"):
        await becomes(given, blocker, "running")
    await start.reach(1 + 2 * backoff)
    await becomes(given, old, "running")
    await becomes(given, young, "queued")


@requirement("HUB-NODE-54")
async def test_a_retry_by_hand_goes_to_the_end(api: HubApi, given: HubGiven) -> None:
    """A job that is retried by hand is queued now: those that were queued before run before it."""
    project = await given.project()
    async with Started(given) as start:
        old = await given.job(project, **await scripted(given, project, fails(type="engine_error"), ends(600)))
        await given.job(project, **await scripted(given, project, ends(40)))
        young = await given.job(project, **await scripted(given, project, ends(40)))
    await start.reach(3)
    await is_over(given, old)
    await retries(given, old)
    await start.reach(45)
    await becomes(given, young, "running")
    await becomes(given, old, "queued")


@requirement("HUB-NODE-55")
async def test_the_jobs_of_a_request_are_seen_together(given: HubGiven) -> None:
    """A free project: the most urgent of a request's jobs runs first, wherever it stands in the request."""
    projects = [await given.project() for _ in range(3)]
    for project in projects:
        await given.script(project, ends(600))
    items = [item(project, priority=n) for project in projects for n in (-1, 3, 0)]
    # the last item of all is the most urgent one of the first project
    items.append(item(projects[0], priority=9))
    async with Started(given) as start:
        ids = await given.submitted(*items)
    await start.reach(0.5)
    came = {id_: (await given.detail(id_)).get("status") for id_ in ids}
    running = [items[n]["priority"] for n, id_ in enumerate(ids) if came[id_] == "running"]
    expect(sorted(running) == [3, 3, 9], "running: priorities 3, 3 and 9, the largest of each project", f"{running}")


@requirement("HUB-NODE-56")
async def test_no_round_starts_before_it_was_queued(given: HubGiven) -> None:
    """Jobs that end at once, many in one request: each starts at its `queuedAt` or later, one after the other."""
    project = await given.project()
    await given.script(project, ends(0))
    async with Started(given) as start:
        ids = await given.submitted(*[item(project, priority=n % 3) for n in range(12)])
    await start.reach(1)
    details = [await becomes(given, id_, "done", rules=("HUB-BATCH-11",)) for id_ in ids]
    for detail in details:
        queued, started = instant(detail, "queuedAt"), instant(detail, "startedAt")
        expect(started >= queued, f"startedAt from {queued} on", str(started), "/data/startedAt")
        wait = detail.get("waitMs")
        expect(whole(wait), "waitMs from 0 on", str(wait), "/data/waitMs")
