"""States and how a job moves between them (seed 000 sections 2 and 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import RuntimeApi
from contract_tests.steps import SHORT

if TYPE_CHECKING:
    from contract_tests.given import Clock, Given

STATUSES = ("pending", "locked", "running", "succeeded", "failed", "cancelled", "expired")


@requirement(
    "RT-SM-01", "RT-SM-02", "RT-DB-07", "RT-DB-08", "RT-DB-12", "RT-DB-14", "RT-DB-15", "RT-DB-16", "RT-DB-17",
    "RT-DB-18", "RT-DB-21", "RT-DB-22", "RT-DB-23", "RT-DB-24", "RT-DB-25", "RT-DB-26", "RT-DB-27", "RT-DB-28",
    "RT-DB-29", "RT-DB-30", "RT-DB-31", "RT-DB-32", "RT-RETRY-06",
)  # fmt: skip
async def test_a_new_job_has_the_models_defaults(given: Given) -> None:
    """Every column that the creation left out has its default."""
    user = given.unique("user")
    job = await given.job(userId=user)
    row = await given.inspect(job)
    expect(row.get("status") in STATUSES, f"one of {', '.join(STATUSES)}", str(row.get("status")), "/status")
    empty = ("idempotencyKey", "credentialId", "retriedFromJobId", "lockedBy", "lockedAt", "lockUntil", "startedAt")
    defaults = {"status": "pending", "priority": 0, "apiKeyMode": "platform_key", "modelProvider": "deepseek"}
    counters = {
        "modelName": "deepseek-chat",
        "attemptNo": 0,
        "retryCount": 0,
        "maxRetryCount": 3,
        "timeoutSeconds": 120,
    }
    nothing = dict.fromkeys((*empty, "finishedAt", "errorCode", "errorMessage"))
    expect_fields(row, {"id": job.id, "userId": user, **defaults, **counters, **nothing})


@requirement("RT-SM-17", "RT-CANCEL-01", "RT-CANCEL-52")
async def test_cancelling_sets_its_columns(given: Given, clock: Clock) -> None:
    """A cancelled job: status cancelled, `finishedAt` now."""
    job = await given.job()
    before = await clock.now()
    await given.states.set_up("cancel-job", {"jobId": job.id})
    row, after = await given.inspect(job), await clock.now()
    expect_fields(row, {"status": "cancelled"})
    finished = row.get("finishedAt")
    good = finished is not None and before <= finished <= after
    expect(good, f"finishedAt within {before} to {after}", str(finished), "/finishedAt")


@requirement("RT-SM-53", "RT-SM-54")
@pytest.mark.parametrize("state", ["cancelled", "failed"])
async def test_a_finished_job_never_changes(api: RuntimeApi, given: Given, clock: Clock, state: str) -> None:
    """Lock, heartbeat, time and a revocation leave every column of a finished job as it is."""
    job = await (given.cancelled_job() if state == "cancelled" else given.failed_job())
    await given.settles(job)
    before = await given.inspect(job)
    await api.lock(job).refused()
    await api.heartbeat(job, by="runtime-a").refused()
    await given.revoke_ai_consent(job.user_id)
    await clock.advance(given.timing.lock * 3)
    await given.unchanged(job, before)


@requirement("RT-SM-11", "RT-SM-20", "RT-RETRY-03")
async def test_a_run_ends_at_its_own_limit(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A job with `timeoutSeconds` 3 is taken away after them, although its lock would still hold."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 2 * clock.margin)
    await given.comes_back(job, by="runtime-b")
    await api.heartbeat(job, by="runtime-a").refused()
