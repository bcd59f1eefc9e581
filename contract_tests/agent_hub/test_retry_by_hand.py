"""Retries by hand: of which jobs, and what is left of the attempts before (seed 002 section 4)."""

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
    is_still,
    side_by_side,
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
    await given.script(job.project, ends(1))
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
async def test_the_quota_is_reset(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """`maxAttempts` 2, both used up, then a retry by hand: two more attempts, the second by itself; and so again."""
    clock.needs_advance()
    async with Started(given) as start:
        [job] = await side_by_side(given, fails(), maxAttempts=2)
    backoff = given.timing.backoff[0]
    for again in range(3):
        if again:
            async with Started(given) as start:
                await api.retry(job).succeeds()
        await start.reach(1)
        first = await becomes(given, job, "failed")
        await start.reach(1 + backoff * 1.1 + 1)
        second = await becomes(given, job, "failed")
        came = (first.get("sessionId"), second.get("sessionId"))
        expect(len(set(came)) == 2, "a second attempt by itself", f"sessions {came}", "/data/sessionId")
        await start.reach(1 + backoff + 1 + sum(given.timing.backoff))
        is_still(second, await given.detail(job), "status", "sessionId")


@requirement("HUB-RETRY-09")
@pytest.mark.parametrize("state", ["waiting", "cancelled", "final"])
async def test_the_quota_is_whole_again(api: HubApi, given: HubGiven, clock: Clock, state: str) -> None:
    """A job of three attempts that was retried by hand after one of them has three again."""
    clock.needs_advance()
    async with Started(given) as start:
        [job] = await side_by_side(given, fails(retriable=state != "final"), maxAttempts=3)
    await start.reach(1)
    seen = {(await becomes(given, job, "failed")).get("sessionId")}
    if state == "cancelled":
        with about("HUB-CANCEL-01", step="cancelling a waiting job"):
            await api.cancel(job).succeeds()
    await given.script(job.project, fails())
    async with Started(given) as start:
        await api.retry(job).succeeds()
    over = 0.0
    for attempt in range(3):
        over += 1 + (given.timing.backoff[attempt - 1] if attempt else 0)
        await start.reach(over + 0.5)
        seen.add((await becomes(given, job, "failed")).get("sessionId"))
    expect(len(seen) == 4, "three attempts more", f"{len(seen) - 1}", "/data/sessionId")
    last = await given.detail(job)
    await start.reach(over + sum(given.timing.backoff))
    is_still(last, await given.detail(job), "status", "sessionId")


@requirement("HUB-RETRY-56", "HUB-RETRY-57", "HUB-RETRY-58", "HUB-RETRY-59")
@pytest.mark.parametrize("state", [*RETRYABLE, "second attempt"])
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
    if state == "second attempt":
        given.clock.needs_advance()
    wait = [{"atSeconds": 0.5, "toolCalls": 3}]
    rounds = {
        "failed": [fails(type="engine_error", message="it broke", progress=wait)],
        "waiting": [fails(progress=wait)],
        "second attempt": [fails(), fails(message="429 again", progress=wait)],
        "cancelled": [fails()],
        "cancelled while it ran": [ends(5, progress=wait)],
    }[state]
    async with Started(given) as start:
        [job] = await side_by_side(given, rounds)
    await start.reach(1)
    if state == "cancelled while it ran":
        await becomes(given, job, "running")
    else:
        await becomes(given, job, "failed")
    if state == "second attempt":
        await start.reach(1 + given.timing.backoff[0] + 1)
        await becomes(given, job, "failed", attempt=2)
    if state.startswith("cancelled"):
        with about("HUB-CANCEL-01", step="cancelling a job"):
            await given.api.cancel(job).succeeds()
    if state == "cancelled while it ran":
        await start.reach(5)
    return job


@requirement("HUB-RETRY-57", "HUB-RETRY-60")
@pytest.mark.parametrize("cancelled", [False, True], ids=["waiting", "cancelled"])
async def test_the_first_attempt_after_a_retry_by_hand(
    api: HubApi, given: HubGiven, clock: Clock, cancelled: bool
) -> None:
    """It is attempt 1 again, its failure has no `lastError`, and waits 30 s; the second has the first one's message."""
    clock.needs_advance()
    async with Started(given) as start:
        [job] = await side_by_side(given, [fails(message="an old one"), fails(message="a second one")])
    await start.reach(1 + given.timing.backoff[0] + 1)
    with about("HUB-RETRY-55", step="a chain of reasons"):
        told = failure(await becomes(given, job, "failed", attempt=2))
        expect_fields(told, {"lastError": "an old one"}, "/data/failure")
    if cancelled:
        with about("HUB-CANCEL-01", step="cancelling a waiting job"):
            await api.cancel(job).succeeds()
    async with Started(given) as start:
        with about("HUB-RETRY-06", step="a retry by hand"):
            await api.retry(job).succeeds()
    await start.reach(1)
    detail = await becomes(given, job, "failed")
    with about("HUB-RETRY-57"):
        expect_fields(detail, {"attempt": 1}, "/data")
        came = instant(detail, "nextRetryAt") - instant(detail, "finishedAt")
        backoff = given.timing.backoff[0]
        expect(came == backoff * 1000, f"the first backoff, {backoff:g} s", f"{came} ms", "/data/nextRetryAt")
    with about("HUB-RETRY-60"):
        expect_fields(failure(detail), {"message": "an old one", "lastError": None}, "/data/failure")
    await start.reach(1 + given.timing.backoff[0] + 1)
    with about("HUB-RETRY-57"):
        detail = await becomes(given, job, "failed", attempt=2)
    with about("HUB-RETRY-60"):
        expect_fields(failure(detail), {"message": "a second one", "lastError": "an old one"}, "/data/failure")


@requirement("HUB-RETRY-59")
async def test_the_retry_that_was_to_come_does_not(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """A waiting job is retried by hand and done: at the old `nextRetryAt` nothing happens."""
    clock.needs_advance()
    async with Started(given) as start:
        [job] = await side_by_side(given, fails())
    await start.reach(1)
    await becomes(given, job, "failed")
    await given.script(job.project, ends(1))
    await start.reach(2)
    await api.retry(job).succeeds()
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
    expect_fields(answer.inner, {"id": job.id, "status": "queued"}, "/data")
    expect_fields(await given.detail(job), {"status": "queued"}, "/data")


@requirement("HUB-RETRY-03")
async def test_a_retry_by_hand_is_a_new_session(api: HubApi, given: HubGiven) -> None:
    """After a retry by hand `sessionId` is another, too."""
    job = await given.failed_job()
    before = (await given.detail(job)).get("sessionId")
    async with Started(given) as again:
        await api.retry(job).succeeds()
    await again.reach(1)
    detail = await becomes(given, job, "failed")
    failed_by(detail, "engine_error")
    came = detail.get("sessionId")
    expect(came is not None and came != before, f"another session than {before}", str(came), "/data/sessionId")
