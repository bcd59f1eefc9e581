"""Nodes that fall silent, and come back in time or too late (decisions: 30 s)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    ends,
    failed_by,
    fails,
    failure,
    falls_silent,
    goes_on,
    hangs,
    is_lost,
    is_still,
    side_by_side,
    waits,
)
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven


@requirement("HUB-FAIL-50")
async def test_silence_of_30_seconds_loses_the_job(given: HubGiven) -> None:
    """A node that goes offline: its jobs run on for 30 s and are `node_lost` then, whatever the rounds are."""
    async with Started(given) as start:
        jobs = await side_by_side(given, ends(600), hangs(), ends(20), fails(20))
    await start.reach(5)
    async with Since(given) as silence:
        await given.offline(jobs[0].project.node)
    await silence.before(given.timing.node_lost)
    for job in jobs:
        await becomes(given, job, "running")
    await silence.exactly(given.timing.node_lost)
    for job in jobs:
        failed_by(await becomes(given, job, "failed"), "node_lost")


@requirement("HUB-FAIL-50")
async def test_a_round_that_falls_silent_is_lost(given: HubGiven) -> None:
    """A round whose node says nothing more: running for 30 s more, then `node_lost`; other rounds there go on."""
    async with Started(given) as start:
        lost, other = await side_by_side(given, falls_silent(3), ends(100))
    await start.before(3 + given.timing.node_lost)
    await becomes(given, lost, "running")
    await start.exactly(3 + given.timing.node_lost)
    failed_by(await becomes(given, lost, "failed"), "node_lost")
    await becomes(given, other, "running")


@requirement("HUB-FAIL-50")
async def test_silence_counts_from_its_beginning(given: HubGiven) -> None:
    """A round that fell silent 10 s before its node goes offline: `node_lost` 30 s after the round was heard last."""
    async with Started(given) as start:
        [job] = await side_by_side(given, falls_silent(3))
    await start.exactly(13)
    await given.offline(job.project.node)
    await start.before(3 + given.timing.node_lost)
    await becomes(given, job, "running")
    await start.exactly(3 + given.timing.node_lost)
    failed_by(await becomes(given, job, "failed"), "node_lost")


@requirement("HUB-FAIL-50")
async def test_a_silent_node_reports_no_timeout(given: HubGiven) -> None:
    """The round's limit passes while the node is silent: `node_lost` 30 s after it fell silent, not `timeout`."""
    async with Started(given) as start:
        by_script, by_node = await side_by_side(given, falls_silent(2), hangs(), kind="script", timeoutSeconds=20)
    await start.exactly(2)
    async with Since(given) as silence:
        await given.offline(by_node.project.node)
    await start.before(2 + given.timing.node_lost)
    for job in (by_script, by_node):
        await becomes(given, job, "running")
    await silence.exactly(given.timing.node_lost)
    for job in (by_script, by_node):
        failed_by(await becomes(given, job, "failed"), "node_lost")


@requirement("HUB-FAIL-50")
async def test_what_comes_too_late_is_dropped(given: HubGiven) -> None:
    """Back after 30 s: what the lost rounds had to report changes nothing, neither now nor in the next attempt."""
    given.clock.needs_advance()
    node_lost, backoff = given.timing.node_lost, given.timing.backoff[0]
    async with Started(given) as start:
        jobs = await side_by_side(
            given, [ends(20), ends(300)], [fails(20, type="engine_error"), ends(300)], [fails(20), ends(300)]
        )
    await start.reach(10)
    node = jobs[0].project.node
    async with Since(given) as silence:
        await given.offline(node)
    await silence.reach(node_lost)
    seen = [await becomes(given, job, "failed") for job in jobs]
    for job in jobs:
        await is_lost(given, job)
    await silence.reach(node_lost + backoff / 2)
    await given.online(node)
    for job, before in zip(jobs, seen, strict=True):
        after = await given.detail(job)
        is_still(before, after, "status", "attempt", "sessionId", "failure", "nextRetryAt")
    await goes_on(given, jobs[-1], "running", after=50)
    for job in jobs:
        await becomes(given, job, "running", attempt=2)


@requirement("HUB-FAIL-51")
async def test_a_node_that_is_back_in_time_goes_on(given: HubGiven) -> None:
    """Back just before 30 s have passed: the same attempt goes on and ends when it would have ended."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [ends(60), ends(600)])
    await start.reach(2)
    before = await becomes(given, job, "running")
    async with Since(given) as silence:
        await given.offline(job.project.node)
    await silence.before(given.timing.node_lost)
    await given.online(job.project.node)
    await silence.reach(given.timing.node_lost + 2)
    is_still(before, await becomes(given, job, "running"))
    await start.before(60)
    await becomes(given, job, "running")
    await start.exactly(60)
    is_still(before, await becomes(given, job, "done"), "attempt", "sessionId")


@requirement("HUB-FAIL-51")
async def test_silences_are_not_added(given: HubGiven) -> None:
    """Two silences, each shorter than 30 s, together longer: the job goes on; the third, of 30 s, loses it."""
    node_lost = given.timing.node_lost
    async with Started(given) as start:
        [job] = await side_by_side(given, ends(600))
    node = job.project.node
    await start.reach(1)
    before = await becomes(given, job, "running")
    for _ in range(2):
        async with Since(given) as silence:
            await given.offline(node)
        await silence.reach(node_lost * 2 / 3)
        async with Since(given) as back:
            await given.online(node)
        await back.reach(1)
    is_still(before, await becomes(given, job, "running"))
    async with Since(given) as silence:
        await given.offline(node)
    await silence.before(node_lost)
    is_still(before, await becomes(given, job, "running"))
    await silence.exactly(node_lost)
    with about("HUB-FAIL-50"):
        failed_by(await becomes(given, job, "failed"), "node_lost")


@requirement("HUB-FAIL-52")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_reports_that_waited_arrive(given: HubGiven, kind: str) -> None:
    """Rounds end while their node is silent: nothing shows, and with the node their reports come."""
    over = 5 + given.timing.node_lost / 3
    async with Started(given) as start:
        good, bad, retried = jobs = await side_by_side(
            given,
            ends(over, summary="all is well"),
            fails(over, type="engine_error", message="it broke"),
            fails(over, message="429"),
            kind=kind,
        )
    await start.reach(5)
    async with Since(given) as silence:
        await given.offline(good.project.node)
    await silence.reach(given.timing.node_lost * 2 / 3)
    for job in jobs:
        await becomes(given, job, "running")
    await given.online(good.project.node)
    detail = await becomes(given, good, "done")
    result = detail.get("result")
    came = result.get("summary") if isinstance(result, dict) else result
    with about("HUB-GET-15", step="the result of a job"):
        expect(came == "all is well", "the summary that the node told", str(came), "/data/result/summary")
    detail = await becomes(given, bad, "failed")
    failed_by(detail, "engine_error")
    with about("HUB-GET-17", step="the message of a failure"):
        expect(failure(detail).get("message") == "it broke", "the node's message", str(failure(detail)))
    failed_by(await becomes(given, retried, "failed"), "llm_error")
    await waits(given, retried)


@requirement("HUB-FAIL-52")
async def test_progress_that_waited_arrives(given: HubGiven) -> None:
    """Progress that a silent node had to report shows when it is back, and the round goes on."""
    late = 5 + given.timing.node_lost / 3
    told = [{"atSeconds": 3, "toolCalls": 3}, {"atSeconds": late, "toolCalls": 9, "lastActivity": "reads"}]
    async with Started(given) as start:
        [job] = await side_by_side(given, ends(200, progress=told))
    await start.reach(5)
    async with Since(given) as silence:
        await given.offline(job.project.node)
    await silence.reach(given.timing.node_lost / 2)
    seen = (await becomes(given, job, "running")).get("progress") or {}
    expect(seen.get("toolCalls") != 9, "no report of a silent node", f"toolCalls {seen.get('toolCalls')}")
    await given.online(job.project.node)
    for _ in range(1 if given.clock.stands else 20):
        progress = (await becomes(given, job, "running")).get("progress") or {}
        if progress.get("toolCalls") == 9:
            break
        await given.clock.advance(0.1)
    with about("HUB-FAIL-52"):
        expect(progress.get("toolCalls") == 9, "toolCalls 9", str(progress), "/data/progress/toolCalls")


@requirement("HUB-FAIL-52")
async def test_a_timeout_that_waited_arrives(given: HubGiven) -> None:
    """The round's limit passed while the node was silent, and it is back in time: `timeout`; in time is in time."""
    limit = round(5 + given.timing.node_lost / 3)
    rounds = hangs(), ends(limit + 1), ends(limit - 1)
    async with Started(given) as start:
        hung, late, good = await side_by_side(given, *rounds, kind="script", timeoutSeconds=limit)
    await start.reach(5)
    async with Since(given) as silence:
        await given.offline(hung.project.node)
    await silence.reach(given.timing.node_lost * 2 / 3)
    for job in (hung, late, good):
        await becomes(given, job, "running")
    await given.online(hung.project.node)
    for job in (hung, late):
        failed_by(await becomes(given, job, "failed"), "timeout")
    await becomes(given, good, "done")
