"""Cancelling and switching AI off (seed 000 section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi
from contract_tests.steps import SHORT
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given


@requirement("RT-CANCEL-03")
async def test_switching_ai_off_cancels_pending_jobs(api: RuntimeApi, given: Given) -> None:
    """All pending jobs of that user are cancelled; another user's are not."""
    user = given.unique("user")
    mine, other = [await given.job(userId=user) for _ in range(3)], await given.job()
    await given.revoke_ai_consent(user)
    for job in mine:
        if "inspect-job" in given.states.offered:
            expect_fields(await given.inspect(job), {"status": "cancelled"})
            continue
        await api.lock(job).refused()
    await api.lock(other).succeeds()


@requirement("RT-CANCEL-52")
async def test_switching_ai_off_ends_pending_jobs(given: Given, clock: Clock) -> None:
    """A pending job that a revocation cancels: `finishedAt` now."""
    job = await given.job()
    before = await clock.now()
    await given.revoke_ai_consent(job.user_id)
    finished, after = (await given.inspect(job)).get("finishedAt"), await clock.now()
    good = finished is not None and before <= finished <= after
    expect(good, f"finishedAt within {before} to {after}", str(finished), "/finishedAt")


@requirement("RT-CANCEL-04", "RT-CANCEL-53", "RT-CANCEL-54")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_switching_ai_off_marks_jobs_in_work(given: Given, state: str) -> None:
    """A locked or running job keeps its state and its lock, and has `cancelRequested`."""
    job = await (given.locked_job() if state == "locked" else given.running_job())
    before = await given.inspect(job)
    await given.revoke_ai_consent(job.user_id)
    row = await given.inspect(job)
    expect_fields(
        row,
        {
            "cancelRequested": True,
            "status": state,
            "lockedBy": before.get("lockedBy"),
            "lockUntil": before.get("lockUntil"),
        },
        rules={
            "cancelRequested": ("RT-CANCEL-04", "RT-CANCEL-53"),
            **dict.fromkeys(("status", "lockedBy", "lockUntil"), ("RT-CANCEL-54",)),
        },
    )


@requirement("RT-CANCEL-50", "RT-CANCEL-55", "RT-CANCEL-58", "RT-CANCEL-60")
@pytest.mark.parametrize("how", ["lapse", "timeout"])
async def test_an_unwanted_job_that_lapses_is_cancelled(given: Given, clock: Clock, how: str) -> None:
    """With `cancelRequested` a lapse or a timeout makes the job cancelled, retries or not."""
    job = await given.running_job(timeoutSeconds=600 if how == "lapse" else SHORT)
    await given.revoke_ai_consent(job.user_id)
    await (given.lapse() if how == "lapse" else clock.advance(SHORT + 2 * clock.margin))
    await given.settles(job, shows=("RT-CANCEL-50",))
    row = await given.inspect(job)
    expect_fields(
        row,
        {
            "status": "cancelled",
            "errorCode": "JOB_TIMEOUT",
            "cancelRequested": True,
            "lockedBy": None,
            "lockUntil": None,
        },
        rules={
            "status": ("RT-CANCEL-50",),
            "errorCode": ("RT-CANCEL-58",),
            "cancelRequested": ("RT-CANCEL-60",),
            "lockedBy": ("RT-CANCEL-55",),
            "lockUntil": ("RT-CANCEL-55",),
        },
    )
    with about("RT-CANCEL-55"):
        expect(row.get("finishedAt") is not None, "finishedAt set", "null", "/finishedAt")


@requirement("RT-CANCEL-50")
async def test_an_unwanted_job_is_not_handed_out_again(given: Given) -> None:
    """With `cancelRequested` a lapsed job never comes back."""
    job = await given.locked_job()
    await given.revoke_ai_consent(job.user_id)
    await given.lapse()
    await given.stays_away(job)


@requirement("RT-CANCEL-62")
async def test_jobs_after_a_revocation_are_unaffected(api: RuntimeApi, given: Given) -> None:
    """A job that is created afterwards for the same user can be locked and is not marked."""
    user = given.unique("user")
    await given.revoke_ai_consent(user)
    job = await given.job(userId=user)
    await api.lock(job).succeeds()
    answer = await api.heartbeat(job).succeeds()
    expect("x-job-cancel-requested" not in answer.headers, "no cancel request", "a cancel request")


@requirement("RT-CANCEL-61")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_revocation_reaches_an_expired_job(given: Given, state: str) -> None:
    """Consent that is revoked when the lock has just lapsed: the job is cancelled, at the latest by the sweep."""
    job = await given.in_state(state, timeoutSeconds=600)
    await given.lapse()
    await given.revoke_ai_consent(job.user_id)
    await given.becomes(job, "cancelled")
    await given.stays_away(job)


@requirement("RT-CANCEL-51")
@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled"])
async def test_a_finished_job_is_not_cancelled(given: Given, state: str) -> None:
    """Cancelling a finished job is refused (409), and the job stays as it is."""
    job = await given.in_state(state)
    before = await given.inspect(job)
    try:
        await given.states.set_up("cancel-job", {"jobId": job.id})
    except StateRefused:
        await given.unchanged(job, before)
        return
    expect(False, "a refusal (409)", f"a {state} job was cancelled")


@requirement("RT-CANCEL-01", "RT-CANCEL-02")
async def test_a_job_that_waits_for_its_retry_can_be_cancelled(api: RuntimeApi, given: Given) -> None:
    """Back in pending after a lost attempt a job can be cancelled; neither the old holder nor another gets it."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    await given.settles(job)
    with about("RT-CANCEL-01"):
        try:
            await given.states.set_up("cancel-job", {"jobId": job.id})
        except StateRefused as refused:
            expect(False, "a pending job is cancelled", str(refused))
    with about("RT-CANCEL-02"):
        await api.lock(job, by="runtime-b").refused()
        await given.stays_away(job)


@requirement("RT-CANCEL-50", "RT-CANCEL-56")
async def test_no_timer_revives_a_stopped_job(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Consent is revoked during attempt 2, its result refused: cancelled, and so it stays as time passes."""
    clock.needs_advance()
    job = await given.running_job("runtime-a")
    await given.fails(job, by="runtime-a")
    await given.comes_back(job, by="runtime-b")
    await given.starts(job, by="runtime-b")
    await given.revoke_ai_consent(job.user_id)
    with about("RT-CANCEL-56"):
        await api.result(job, by="runtime-b", attempt=1).fails(409, "JOB_CANCELLED")
        row = await given.inspect(job)
        expect_fields(row, {"resultCount": 0})
    with about("RT-CANCEL-50"):
        expect_fields(row, {"status": "cancelled"})
        for _ in range(3):
            await clock.advance(given.timing.lock)
        await given.unchanged(job, row)
