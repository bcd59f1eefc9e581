"""Locking a job (seed 003 section 4.2, seed 000 section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import expect, requirement

if TYPE_CHECKING:
    from contract_tests.client import RuntimeApi
    from contract_tests.given import Clock, Given

LOCK_MS = 60_000


@requirement("RT-LOCK-01", "RT-LOCK-03", "RT-LOCK-04", "RT-LOCK-06", "RT-SM-04", "RT-SM-05")
async def test_a_pending_job_can_be_locked(api: RuntimeApi, given: Given) -> None:
    """A pending job can be locked: 200 with its id and status `locked`."""
    job = await given.job()
    answer = await api.lock(job).succeeds(200)
    expect(answer.get("jobId") == job.id, f"jobId {job.id}", answer.get("jobId"), "/jobId")
    expect(answer.get("status") == "locked", "status locked", answer.get("status"), "/status")
