"""Cancelling and switching AI off (seed 000 section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import RuntimeApi

if TYPE_CHECKING:
    from contract_tests.given import Clock, Given


@requirement("RT-CANCEL-03")
async def test_switching_ai_off_cancels_pending_jobs(api: RuntimeApi, given: Given) -> None:
    """All pending jobs of that user are cancelled; another user's are not."""
    user = given.unique("user")
    mine, other = [await given.job(userId=user) for _ in range(3)], await given.job()
    await given.revoke_ai_consent(user)
    for job in mine:
        await api.lock(job).refused()
    await api.lock(other).succeeds()


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
        {"cancelRequested": True, "status": state, "lockedBy": before["lockedBy"], "lockUntil": before["lockUntil"]},
    )


@requirement("RT-CANCEL-50", "RT-CANCEL-55", "RT-CANCEL-58", "RT-CANCEL-60")
@pytest.mark.parametrize("how", ["lapse", "timeout"])
async def test_an_unwanted_job_that_lapses_is_cancelled(given: Given, clock: Clock, how: str) -> None:
    """With `cancelRequested` a lapse or a timeout makes the job cancelled, retries or not."""
    job = await given.running_job(timeoutSeconds=600 if how == "lapse" else 3)
    await given.revoke_ai_consent(job.user_id)
    await clock.advance(given.timing.lock + 2 * clock.margin)
    await given.settles(job)
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
    )
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
    answer = await api.heartbeat(job).succeeds(204)
    expect("x-job-cancel-requested" not in answer.headers, "no cancel request", "a cancel request")
