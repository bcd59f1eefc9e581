"""Retries by hand: of which jobs, and what is left of the attempts before (seed 002 section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    cancels,
    ends,
    failed_by,
    fails,
    failure,
    goes_on,
    is_over,
    is_still,
    retries,
    scripted,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import instant
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Job
    from contract_tests.clock import Clock

RETRYABLE = ("failed", "cancelled", "waiting", "cancelled while it ran")
NOT_RETRYABLE = ("queued", "running", "done")


@requirement("HUB-RETRY-06", "HUB-RETRY-07")
@pytest.mark.parametrize("state", RETRYABLE)
async def test_a_retry_by_hand_runs_the_job_again(api: HubApi, given: HubGiven, state: str) -> None:
    """Of a failed, a cancelled and a waiting job: it is taken, and the job runs again and can succeed."""
    job = await ended(given, state)
    before = await given.detail(job)
    await given.script(job.project, ends(1), external_id=job.external_id)
    async with Started(given) as again:
        await api.retry(job).succeeds()
    await again.reach(1)
    with about("HUB-RETRY-07"):
        after = await becomes(given, job, "done")
        expect(after.get("sessionId") != before.get("sessionId"), "a new round", "the old session", "/data/sessionId")


@requirement("HUB-RETRY-07", "HUB-RETRY-08")
@pytest.mark.parametrize("state", NOT_RETRYABLE)
async def test_a_retry_of_any_other_job_is_refused(api: HubApi, given: HubGiven, state: str) -> None:
    """Of a queued, a running and a done job: 409 job_not_retryable, and the job stays as it is."""
    job = await given.in_state(state)
    before = await given.detail(job)
    answer = await api.retry(job).answers()
    with about("HUB-RETRY-07"):
        expect(answer.status >= 400, f"no retry of a {state} job", f"{answer.status}")
        is_still(before, await given.detail(job), "status", "attempt", "sessionId", "queuedAt")
    with about("HUB-RETRY-08"):
        await api.retry(job).fails(409, "job_not_retryable")


@requirement("HUB-RETRY-09")
async def test_the_quota_is_reset(api: HubApi, given: HubGiven) -> None:
    """`maxAttempts` 2, both used up, then a retry by hand: two more attempts, the second by itself; and so again."""
    async with Started(given) as start:
        [job] = await side_by_side(given, fails(), maxAttempts=2)
    await start.reach(1)
    with about("HUB-RETRY-01", step="the first of two attempts"):
        detail = await becomes(given, job, "failed")
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
    for again in range(3 if given.clock.advances else 2):
        if again:
            async with Started(given) as start:
                await retries(given, job)
            await start.reach(1)
            told = (await becomes(given, job, "failed")).get("nextRetryAt")
            expect(told is not None, "a second attempt to come", "nextRetryAt null", "/data/nextRetryAt")
        last = await goes_on(given, job, "failed", after=1.2)
        with about("HUB-RETRY-01", step="the last attempt that is allowed"):
            expect(last.get("nextRetryAt") is None, "no retry to come", "a nextRetryAt", "/data/nextRetryAt")


@requirement("HUB-RETRY-09")
@pytest.mark.parametrize("state", ["waiting", "cancelled", "final"])
async def test_the_quota_is_whole_again(api: HubApi, given: HubGiven, clock: Clock, state: str) -> None:
    """A job of three attempts that was retried by hand after one of them has three again."""
    clock.needs_advance()
    first = {"final": fails(type="engine_error"), "cancelled": ends(20)}.get(state, fails())
    async with Started(given) as start:
        [job] = await side_by_side(given, first, maxAttempts=3)
    await start.reach(1)
    if state == "cancelled":
        await cancels(given, job)
        await start.reach(20)
    else:
        await (is_over(given, job) if state == "final" else waits(given, job))
    await given.script(job.project, fails())
    async with Started(given) as start:
        await retries(given, job)
    await start.reach(1)
    detail = await becomes(given, job, "failed")
    for attempt in (1, 2):
        expect(detail.get("nextRetryAt") is not None, f"attempt {attempt + 1} to come", "none", "/data/nextRetryAt")
        detail = await goes_on(given, job, "failed", after=1.2)
    with about("HUB-RETRY-01", step="the last attempt that is allowed"):
        expect(detail.get("nextRetryAt") is None, "no retry to come", "a nextRetryAt", "/data/nextRetryAt")


@requirement("HUB-RETRY-56", "HUB-RETRY-57", "HUB-RETRY-58", "HUB-RETRY-59")
@pytest.mark.parametrize("state", [*RETRYABLE, "second attempt", "cancelled while it waited"])
async def test_a_job_that_is_retried_by_hand_starts_anew(
    api: HubApi, given: HubGiven, clock: Clock, state: str
) -> None:
    """200 with the job: queued, attempt 0, queued now, and nothing left of the attempts before."""
    job = await ended(given, state)
    await given.running_job(job.project)  # so that it can't start at once
    async with Since(given) as pause:
        pass
    await pause.reach(3)
    async with Since(given) as retried:
        answer = await api.retry(job).answers()
    with about("HUB-RETRY-56"):
        expect(answer.status == 200, "200", str(answer.status))
        expect_fields(answer.inner, {"id": job.id, "status": "queued"}, "/data")
    for told in (answer.inner, await given.detail(job)):
        with about("HUB-RETRY-57"):
            expect_fields(told, {"attempt": 0}, "/data")
        with about("HUB-RETRY-59"):
            cleared = ("startedAt", "finishedAt", "nextRetryAt", "waitMs", "durationMs", "sessionId")
            expect_fields(told, dict.fromkeys((*cleared, "result", "failure", "progress")), "/data")
        with about("HUB-RETRY-58"):
            came = instant(told, "queuedAt")
            if clock.advances:
                low, high = retried.began, retried.ended
                expect(low <= came <= high, f"queuedAt within {low} to {high}", str(came), "/data/queuedAt")


async def ended(given: HubGiven, state: str) -> Job:
    """A job that can be retried by hand; its project is free."""
    told = [{"atSeconds": 0.5, "toolCalls": 3}]
    rounds = {
        "failed": [fails(type="engine_error", message="it broke", progress=told)],
        "second attempt": [fails(), fails(message="429 again", progress=told)],
        "cancelled while it ran": [ends(20, progress=told)],
    }.get(state, [fails(progress=told)])
    project = await given.project()
    async with Started(given) as start:
        if state == "cancelled":
            await given.job(project, **await scripted(given, project, ends(20)))
        job = await given.job(project, **await scripted(given, project, *rounds))
    await start.reach(1)
    match state:
        case "failed":
            await is_over(given, job)
        case "cancelled":
            await cancels(given, job, "queued")
            await start.reach(21)
        case "cancelled while it ran":
            await cancels(given, job)
            await start.reach(21)
            with about("HUB-CANCEL-04", step="the end of a round that was cancelled"):
                await becomes(given, job, "cancelled")
        case _:
            await waits(given, job)
    if state == "second attempt":
        await goes_on(given, job, "failed", after=1.2)
    if state == "cancelled while it waited":
        await cancels(given, job, "waiting")
    return job


@requirement("HUB-RETRY-57", "HUB-RETRY-60")
@pytest.mark.parametrize("cancelled", [False, True], ids=["waiting", "cancelled"])
async def test_the_first_attempt_after_a_retry_by_hand(api: HubApi, given: HubGiven, cancelled: bool) -> None:
    """It is attempt 1 again, its failure has no `lastError`, and waits 30 s; the second has the first one's message."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [fails(message="an old one"), fails(message="a second one")])
    await start.reach(1)
    await waits(given, job)
    detail = await goes_on(given, job, "failed", after=1.2)
    if cancelled:
        await cancels(given, job, "waiting")
    async with Started(given) as start:
        await retries(given, job)
    await start.reach(1)
    detail = await becomes(given, job, "failed")
    with about("HUB-RETRY-57"):
        expect_fields(detail, {"attempt": 1}, "/data")
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
        came = instant(detail, "nextRetryAt") - instant(detail, "finishedAt")
        most = given.timing.backoff[0] * 2000
        expect(came < most, f"the first backoff, less than {most:g} ms", f"{came} ms", "/data/nextRetryAt")
    with about("HUB-RETRY-60"):
        expect_fields(failure(detail), {"message": "an old one", "lastError": None}, "/data/failure")
    detail = await goes_on(given, job, "failed", after=1.2)
    with about("HUB-RETRY-57"):
        expect_fields(detail, {"attempt": 2}, "/data")
    with about("HUB-RETRY-60"):
        expect_fields(failure(detail), {"message": "a second one"}, "/data/failure")


@requirement("HUB-RETRY-59")
async def test_the_retry_that_was_to_come_does_not(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """A waiting job is retried by hand and done: at the old `nextRetryAt` nothing happens."""
    clock.needs_advance()
    async with Started(given) as start:
        [job] = await side_by_side(given, fails())
    await start.reach(1)
    await waits(given, job)
    await given.script(job.project, ends(1))
    await start.reach(2)
    await retries(given, job)
    await start.reach(4)
    before = await becomes(given, job, "done", rules=("HUB-RETRY-56",))
    await start.reach(1 + sum(given.timing.backoff) + 5)
    is_still(before, await given.detail(job))


@requirement("HUB-RETRY-56")
async def test_a_retry_while_the_node_is_away(api: HubApi, given: HubGiven) -> None:
    """The job's node is offline: the retry is taken, 200, and the job waits queued."""
    job = await given.failed_job()
    await given.offline(job.project.node)
    answer = await api.retry(job).succeeds(200)
    expect_fields(answer.inner, {"id": job.id}, "/data")
    with about("HUB-NODE-06", step="a job whose node is away"):
        await becomes(given, job, "queued")


@requirement("HUB-RETRY-03")
async def test_a_retry_by_hand_is_a_new_session(api: HubApi, given: HubGiven) -> None:
    """After a retry by hand `sessionId` is another, too."""
    job = await given.failed_job()
    before = (await given.detail(job)).get("sessionId")
    async with Started(given) as again:
        await retries(given, job)
    await again.reach(1)
    detail = await becomes(given, job, "failed")
    failed_by(detail, "engine_error")
    came = detail.get("sessionId")
    expect(came is not None and came != before, f"another session than {before}", str(came), "/data/sessionId")
