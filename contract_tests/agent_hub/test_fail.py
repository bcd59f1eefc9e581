"""Why jobs fail, and which failures are retried without anybody asking (seed 002 section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    cancels,
    ends,
    failed_by,
    fails,
    falls_silent,
    goes_on,
    hangs,
    is_still,
    scripted,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import FAILURE_TYPES
from contract_tests.checks import expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

AI_LIMIT = 25 * 60
REPORTED = ("llm_error", "engine_error", "timeout", "max_iterations", "project_not_found", "rejected")
"""What a node can report of a round of kind ai; of a script, script_failed, too."""
NEVER_RETRIED = tuple(name for name in REPORTED if name != "llm_error")


async def stays_failed(given: HubGiven, type: str, *rounds: dict[str, Any], **fields: Any) -> None:  # noqa: A002
    """Jobs whose rounds end by a failure of that type after a second stay so, however long one waits."""
    async with Started(given) as start:
        jobs = await side_by_side(given, *rounds, **fields)
    await start.reach(1)
    seen = [await becomes(given, job, "failed") for job in jobs]
    for detail in seen:
        failed_by(detail, type)
    backoff = given.timing.backoff
    await start.reach(1 + (sum(backoff) if given.clock.advances else backoff[0]) + 1)
    for job, before in zip(jobs, seen, strict=True):
        is_still(before, await given.detail(job))


def both(type: str, *, message: str = "it broke") -> list[dict[str, Any]]:  # noqa: A002
    """Failures of a type that a node calls retriable, and does not."""
    return [fails(type=type, retriable=retriable, message=message) for retriable in (True, False)]


@requirement("HUB-FAIL-04")
async def test_an_engine_error_is_not_retried(given: HubGiven) -> None:
    """`engine_error` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "engine_error", *both("engine_error"))


@requirement("HUB-FAIL-05", "HUB-FAIL-11")
async def test_a_timeout_is_not_retried(given: HubGiven) -> None:
    """`timeout` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "timeout", *both("timeout"))


@requirement("HUB-FAIL-06", "HUB-FAIL-11")
async def test_too_many_iterations_are_not_retried(given: HubGiven) -> None:
    """`max_iterations` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "max_iterations", *both("max_iterations"))


@requirement("HUB-FAIL-07")
async def test_a_missing_project_is_not_retried(given: HubGiven) -> None:
    """`project_not_found` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "project_not_found", *both("project_not_found"))


@requirement("HUB-FAIL-08")
async def test_a_rejection_is_not_retried(given: HubGiven) -> None:
    """`rejected` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "rejected", *both("rejected"))


@requirement("HUB-FAIL-10")
async def test_a_failed_script_is_not_retried(given: HubGiven) -> None:
    """`script_failed` ends the job, whether or not the node calls it retriable."""
    await stays_failed(given, "script_failed", *both("script_failed"), kind="script")


@requirement("HUB-FAIL-03")
async def test_a_model_error_that_is_not_retriable_ends_the_job(given: HubGiven) -> None:
    """`llm_error` with retriable false, or without it, ends the job."""
    unsaid = {name: value for name, value in fails().items() if name != "retriable"}
    await stays_failed(given, "llm_error", fails(retriable=False), unsaid)


@requirement("HUB-FAIL-03")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_a_retriable_model_error_is_retried(given: HubGiven, kind: str) -> None:
    """`llm_error` with retriable true: the job runs again by itself, and its success counts."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [fails(), ends()], kind=kind)
    await start.reach(1)
    failed_by(await becomes(given, job, "failed"), "llm_error")
    await start.reach(1 + given.timing.backoff[0] * 1.2 + 1)
    await becomes(given, job, "done")


@requirement("HUB-FAIL-02")
async def test_a_lost_node_is_retried(given: HubGiven) -> None:
    """`node_lost`: the job runs again by itself, whatever else was said of the round."""
    async with Started(given) as start:
        jobs = await side_by_side(
            given, [falls_silent(), ends()], [falls_silent(retriable=False), ends()], [falls_silent(0), ends()]
        )
    lost = 1 + given.timing.node_lost * 1.2
    await start.reach(lost)
    for job in jobs:
        failed_by(await becomes(given, job, "failed"), "node_lost")
    await start.reach(lost + given.timing.backoff[0] * 1.2 + 1)
    for job in jobs:
        await becomes(given, job, "done")


@requirement("HUB-FAIL-02")
async def test_a_node_that_went_away_is_lost(given: HubGiven) -> None:
    """A node goes offline with a job in hand: `node_lost`; back again, it runs the job anew when that is due."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [ends(600), ends()])
    await start.reach(5)
    async with Since(given) as silence:
        await given.offline(job.project.node)
    await silence.reach(given.timing.node_lost * 1.2)
    failed_by(await becomes(given, job, "failed"), "node_lost")
    await given.online(job.project.node)
    await silence.reach((given.timing.node_lost + given.timing.backoff[0]) * 1.2 + 1)
    await becomes(given, job, "done")


@requirement("HUB-FAIL-01")
async def test_every_failure_is_of_a_known_type(given: HubGiven) -> None:
    """Nine ways to fail: `failure.type` is one of the nine names each time."""
    rounds = [fails(type=type_, retriable=False) for type_ in REPORTED]
    async with Started(given) as start:
        kinds = [*({} for _ in rounds), {}, {}, {"kind": "script"}]
        jobs = await side_by_side(
            given, *rounds, falls_silent(), ends(600), fails(type="script_failed"), fields=kinds, maxAttempts=1
        )
    await start.reach(0.5)
    await cancels(given, jobs[-2])
    await start.reach(1 + given.timing.node_lost * 1.5)
    for job in jobs:
        detail = await becomes(given, job, "failed", "cancelled")
        told = detail.get("failure")
        came = told.get("type") if isinstance(told, dict) else told
        expect(came in FAILURE_TYPES, f"one of {', '.join(FAILURE_TYPES)}", str(came), "/data/failure/type")


@requirement("HUB-FAIL-10")
async def test_an_exit_code_is_script_failed(given: HubGiven) -> None:
    """A script that fails, with no more said of it, is `script_failed`."""
    async with Started(given) as start:
        [job] = await side_by_side(given, {"afterSeconds": 1, "result": "failed"}, kind="script")
    await start.reach(1)
    failed_by(await becomes(given, job, "failed"), "script_failed")


@requirement("HUB-FAIL-09")
async def test_a_cancelled_job_is_not_retried(given: HubGiven) -> None:
    """Cancelled while it was queued, or ran a round that fails later, retriable: it never comes back."""
    project = await given.project()
    async with Started(given) as start:
        running = await given.job(project, **await scripted(given, project, fails(20), ends(1)))
        queued = await given.job(project, **await scripted(given, project, ends(1)))
    await start.reach(0.5)
    seen = [await cancels(given, running), await cancels(given, queued, "queued")]
    backoff = given.timing.backoff
    await start.reach(20 + (sum(backoff) if given.clock.advances else backoff[0]) + 2)
    for job, before in zip((running, queued), seen, strict=True):
        is_still(before, await given.detail(job))


@requirement("HUB-FAIL-05")
async def test_a_round_has_25_minutes(given: HubGiven) -> None:
    """kind ai: a round that hangs, or would end later, is `timeout` after 25 minutes, and not retried."""
    given.clock.needs_advance()
    async with Started(given) as start:
        jobs = await side_by_side(given, hangs(), ends(AI_LIMIT + 60), fails(AI_LIMIT + 60))
    await start.before(AI_LIMIT)
    for job in jobs:
        await becomes(given, job, "running")
    await start.over(AI_LIMIT)
    await becomes(given, jobs[0], "failed")
    await start.reach(AI_LIMIT)
    seen = [await becomes(given, job, "failed") for job in jobs]
    for detail in seen:
        failed_by(detail, "timeout")
    await start.reach(AI_LIMIT + sum(given.timing.backoff) + 60)
    for job, before in zip(jobs, seen, strict=True):
        is_still(before, await given.detail(job))


@requirement("HUB-FAIL-05")
async def test_each_attempt_has_its_own_25_minutes(given: HubGiven) -> None:
    """Attempt 1 took 20 minutes and is retried: attempt 2 has the whole limit again, and no more."""
    given.clock.needs_advance()
    first = 1200
    async with Started(given) as start:
        good, bad = await side_by_side(given, [fails(first), ends(first)], [fails(first), hangs()])
    await start.reach(first)
    await waits(given, good)
    await waits(given, bad)
    await goes_on(given, bad, "running")
    async with Since(given) as second:
        pass
    await second.reach(first)
    await becomes(given, good, "done")
    await second.reach(AI_LIMIT - 60)  # a second even where the clock runs sixty times as fast
    await becomes(given, bad, "running")
    await second.reach(AI_LIMIT)
    failed_by(await becomes(given, bad, "failed"), "timeout")


@requirement("HUB-FAIL-53")
@pytest.mark.parametrize("limit", [1, 20, 300])
async def test_a_script_has_its_own_limit(given: HubGiven, limit: int) -> None:
    """kind script: over `timeoutSeconds` it is `timeout`; one that ends in time is done."""
    if limit > 100:
        given.clock.needs_advance()
    async with Started(given) as start:
        hung, late, good = await side_by_side(
            given, hangs(), ends(limit + 5), ends(limit / 2), kind="script", timeoutSeconds=limit
        )
    await start.before(limit)
    for job in (hung, late):
        await becomes(given, job, "running")
    await start.over(limit)
    failed_by(await becomes(given, hung, "failed"), "timeout")
    await start.reach(limit)  # the others began a little later
    failed_by(await becomes(given, late, "failed"), "timeout")
    await becomes(given, good, "done")


@requirement("HUB-FAIL-53")
async def test_a_script_may_take_all_of_its_limit(given: HubGiven) -> None:
    """kind script, to the millisecond: at `timeoutSeconds` it is not over them yet, a millisecond later it is."""
    given.clock.needs_to_stand()
    async with Started(given) as start:
        [job] = await side_by_side(given, hangs(), kind="script", timeoutSeconds=20)
    await start.exactly(20)
    await becomes(given, job, "running")
    await start.over(20)
    failed_by(await becomes(given, job, "failed"), "timeout")
