"""Attempts that are lost, and how often a job runs (seed 000 section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import expect, requirement
from contract_tests.client import RuntimeApi, describe
from contract_tests.steps import runs_out

if TYPE_CHECKING:
    from contract_tests.given import Clock, Given


@requirement("RT-RETRY-05", "RT-SM-15")
async def test_without_retries_the_first_loss_is_final(given: Given) -> None:
    """`maxRetryCount` 0: after one lapse nobody can lock the job any more."""
    job = await given.lost_job()
    await given.stays_away(job)


@requirement("RT-RETRY-54")
async def test_zero_retries_mean_failed(api: RuntimeApi, given: Given) -> None:
    """`maxRetryCount` 0: the first lapse makes the job failed; lock says JOB_ALREADY_LOCKED."""
    job = await given.lost_job()
    await given.settles(job)
    await api.lock(job).fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-RETRY-06", "RT-RETRY-53", "RT-DB-29")
async def test_a_job_runs_at_most_four_times(given: Given, clock: Clock) -> None:
    """With the default of 3 retries: granted four times, then never again."""
    clock.needs_advance()
    await runs_out(given, await given.job(), 4)


@requirement("RT-RETRY-07")
@pytest.mark.parametrize("retries", [1, 2, 5])
async def test_the_number_of_retries_is_configurable(given: Given, clock: Clock, retries: int) -> None:
    """`maxRetryCount` n: granted n + 1 times."""
    clock.needs_advance()
    await runs_out(given, await given.job(maxRetryCount=retries), retries + 1)


@requirement("RT-RETRY-50")
async def test_the_second_attempt_starts_anew(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Nothing left of attempt 1 shortens attempt 2: it has its whole time limit again."""
    job = await given.running_job("runtime-a", timeoutSeconds=100)
    await given.lapse()
    answer = await given.comes_back(job, by="runtime-b")
    expect(answer.json.get("attemptNo") == 1, "attemptNo 1", str(answer.json.get("attemptNo")), "/attemptNo")
    await clock.advance(given.timing.lock * 0.8)
    await api.heartbeat(job, by="runtime-b").succeeds()
    late = "heartbeat 108 s after the first attempt began, which had 100 s"
    answer = await api.heartbeat(job, by="runtime-b").answers()
    expect(answer.status == 204, f"204 to a {late}", describe(answer.response))
