"""How long locks and runs last, and what happens at the limits (seed 000 sections 5.4, 6 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import RuntimeApi, describe

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.given import Clock, Given

SHORT = 3
"""A time limit, seconds, that ends before the lock does."""


async def keep_alive(given: Given, job: JobRef, seconds: float, by: str = "runtime-a") -> None:
    """Heartbeat at a third of the lock's length for so many seconds of the build's time."""
    step = given.timing.lock / 3
    while seconds > 0:
        await given.clock.advance(min(step, seconds))
        seconds -= step
        if seconds > 0:
            await given.api.heartbeat(job, by=by).succeeds()


@requirement("RT-TIME-01", "RT-SM-06", "RT-SM-19", "RT-SM-22", "RT-RETRY-02")
async def test_a_lock_without_heartbeat_lasts_60_seconds(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Shortly before 60 s the job is still the holder's; after them it is pending again."""
    job = await given.locked_job("runtime-a")
    await clock.advance(given.timing.lock - given.early())
    await api.lock(job, by="runtime-b").refused()
    await clock.advance(given.early() + 2 * clock.margin)
    await given.comes_back(job)


@requirement("RT-TIME-03")
async def test_a_lapsed_lock_is_void(api: RuntimeApi, given: Given) -> None:
    """After `lockUntil` the former holder's heartbeat is refused, whether or not another took the job."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    answer = await api.heartbeat(job, by="runtime-a").answers()
    expect(400 <= answer.status < 500, "a refusal (4xx)", describe(answer.response))
    await given.comes_back(job, by="runtime-b")
    await api.heartbeat(job, by="runtime-a").refused()


@requirement("RT-TIME-02", "RT-SM-11", "RT-SM-20", "RT-RETRY-03", "RT-DB-30")
async def test_a_run_lasts_120_seconds_by_default(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Heartbeats or not: a job without a limit of its own is taken away 120 s after it started, not much before."""
    job = await given.running_job("runtime-a")
    await keep_alive(given, job, given.timing.timeout - given.early())
    await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(given.early() + 2 * clock.margin)
    await given.comes_back(job)


@requirement("RT-SM-11", "RT-SM-20", "RT-RETRY-03")
async def test_a_run_ends_at_its_own_limit(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A job with `timeoutSeconds` 3 is taken away after them, although its lock would still hold."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 2 * clock.margin)
    await given.comes_back(job, by="runtime-b")
    await api.heartbeat(job, by="runtime-a").refused()


@requirement("RT-TIME-54")
async def test_heartbeats_do_not_outlast_the_limit(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A heartbeat just before the limit does not carry the run past it."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT - 1)
    await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(1 + 2 * clock.margin)
    await given.comes_back(job)


@requirement("RT-TIME-53")
async def test_the_limit_counts_from_the_start(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Time between lock and first heartbeat is no part of the run."""
    job = await given.locked_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 1)
    await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(SHORT - 1)
    await api.heartbeat(job, by="runtime-a").succeeds()


@requirement("RT-TIME-55")
async def test_the_lock_holds_at_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `lockUntil` the holder's heartbeat is accepted, nobody else gets the job; a millisecond later it is free."""
    clock.needs_to_stand()
    held, free = await given.job(), await given.job()
    until = (await api.lock(held, by="runtime-a").succeeds()).integer("lockUntil")
    other = (await api.lock(free, by="runtime-a").succeeds()).integer("lockUntil")
    expect(other == until, "the same lockUntil on a standing clock", f"{until} and {other}", "/lockUntil")
    await clock.reach(until - 1)
    await api.lock(free, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
    await clock.reach(until)
    await api.lock(free, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
    await api.heartbeat(held, by="runtime-a").succeeds(204)
    await clock.reach(until + 1)
    await api.heartbeat(free, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(free, by="runtime-b")
    await api.lock(held, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-TIME-56")
async def test_the_run_goes_on_at_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `startedAt` + `timeoutSeconds` a heartbeat is accepted; a millisecond later the job is taken away."""
    clock.needs_to_stand()
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    started = (await given.inspect(job))["startedAt"]
    await clock.reach(started + SHORT * 1000)
    await api.heartbeat(job, by="runtime-a").succeeds(204)
    await clock.reach(started + SHORT * 1000 + 1)
    await api.heartbeat(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(job, by="runtime-b")


@requirement("RT-TIME-50", "RT-TIME-04", "RT-RETRY-15", "RT-RETRY-51", "RT-RETRY-50", "RT-SM-50", "RT-DB-28")
async def test_a_lapse_is_counted(given: Given) -> None:
    """A lapsed lock: pending with `JOB_TIMEOUT`, retryCount and attemptNo one up, lock fields and startedAt empty."""
    job = await given.running_job("runtime-a", timeoutSeconds=600)
    await given.lapse()
    await expired_once(given, job)


@requirement("RT-TIME-51", "RT-RETRY-15", "RT-RETRY-51", "RT-RETRY-50")
async def test_a_timeout_is_counted(given: Given, clock: Clock) -> None:
    """A run over its limit: the same as a lapse."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 2 * clock.margin)
    await expired_once(given, job)


async def expired_once(given: Given, job: JobRef) -> None:
    """The columns of a job that lost its first attempt to a limit."""
    await given.settles(job)
    row = await given.inspect(job)
    wanted = {
        "status": "pending",
        "errorCode": "JOB_TIMEOUT",
        "retryCount": 1,
        "attemptNo": 1,
        "lockedBy": None,
        "lockedAt": None,
        "lockUntil": None,
        "startedAt": None,
        "finishedAt": None,
    }
    expect_fields(row, wanted)


@requirement("RT-TIME-57", "RT-RETRY-52", "RT-DB-27", "RT-DB-31", "RT-TIME-52")
async def test_the_last_lapse_fails_the_job(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Without retries left: failed with JOB_TIMEOUT, `finishedAt` set, lock fields empty, no retry counted."""
    job = await given.job(maxRetryCount=0)
    until = (await api.lock(job, by="runtime-a").succeeds()).integer("lockUntil")
    await given.lapse()
    await given.settles(job)
    row, now = await given.inspect(job), await clock.now()
    wanted = {
        "status": "failed",
        "errorCode": "JOB_TIMEOUT",
        "retryCount": 0,
        "lockedBy": None,
        "lockedAt": None,
        "lockUntil": None,
    }
    expect_fields(row, wanted)
    for name in ("finishedAt", "updatedAt"):
        good = row.get(name) is not None and until <= row[name] <= now
        expect(good, f"{name} within {until} to {now}", str(row.get(name)), f"/{name}")


@requirement("RT-RETRY-05", "RT-SM-15")
async def test_without_retries_the_first_loss_is_final(given: Given) -> None:
    """`maxRetryCount` 0: after one lapse nobody can lock the job any more."""
    job = await given.failed_job()
    await given.stays_away(job)


@requirement("RT-RETRY-54")
async def test_zero_retries_mean_failed(api: RuntimeApi, given: Given) -> None:
    """`maxRetryCount` 0: the first lapse makes the job failed; lock says JOB_ALREADY_LOCKED."""
    job = await given.failed_job()
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


async def runs_out(given: Given, job: JobRef, times: int) -> None:
    """Lock and lose the job so many times; after that it stays away."""
    for attempt in range(times):
        answer = await given.comes_back(job, by=f"runtime-{attempt}")
        number = answer.json.get("attemptNo", attempt)
        expect(number == attempt, f"attemptNo {attempt} at grant {attempt + 1}", str(number), "/attemptNo")
        await given.lapse()
    await given.stays_away(job)


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
