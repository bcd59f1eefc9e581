"""How long locks and runs last, and what happens at the limits (seed 000 sections 5.4 and 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi, describe, judge_code
from contract_tests.steps import SHORT, expired_once, keep_alive

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given


@requirement("RT-TIME-01", "RT-SM-06", "RT-SM-19", "RT-SM-22", "RT-RETRY-02")
async def test_a_lock_without_heartbeat_lasts_60_seconds(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Shortly before 60 s the job is still the holder's; after them it is pending again."""
    job = await given.locked_job("runtime-a")
    await clock.advance(given.timing.lock - given.early())
    with about("RT-TIME-01"):
        await api.lock(job, by="runtime-b").refused()
    await clock.advance(given.early() + 2 * clock.margin)
    await given.comes_back(job, shows=("RT-TIME-01", "RT-SM-06", "RT-SM-19", "RT-SM-22", "RT-RETRY-02"))


@requirement("RT-TIME-03")
async def test_a_lapsed_lock_is_void(api: RuntimeApi, given: Given) -> None:
    """After `lockUntil` the former holder's heartbeat is refused, whether or not another took the job."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    answer = await api.heartbeat(job, by="runtime-a").answers()
    expect(400 <= answer.status < 500, "a refusal (4xx)", describe(answer.response))
    await given.comes_back(job, by="runtime-b")
    with about("RT-HB-03", step="refusing a stranger's heartbeat"):
        await api.heartbeat(job, by="runtime-a").refused()


@requirement("RT-TIME-02", "RT-SM-11", "RT-SM-20", "RT-RETRY-03", "RT-DB-30")
async def test_a_run_lasts_120_seconds_by_default(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Heartbeats or not: a job without a limit of its own is taken away 120 s after it started, not much before."""
    job = await given.running_job("runtime-a")
    with about("RT-TIME-02", "RT-DB-30"):
        await keep_alive(given, job, given.timing.timeout - given.early())
        await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(given.early() + 2 * clock.margin)
    await given.comes_back(job, shows=("RT-TIME-02",))


@requirement("RT-TIME-54")
async def test_heartbeats_do_not_outlast_the_limit(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A heartbeat just before the limit does not carry the run past it."""
    clock.needs_pace(1)
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT - 1)
    await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(1 + 2 * clock.margin)
    await given.comes_back(job, shows=("RT-TIME-54",))


@requirement("RT-TIME-53")
async def test_the_limit_counts_from_the_start(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Time between lock and first heartbeat is no part of the run."""
    clock.needs_pace(1)
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
    await clock.reach(until - 1, "RT-TIME-05")
    await api.lock(free, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
    await clock.reach(until, "RT-TIME-05")
    await api.lock(free, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
    await api.heartbeat(held, by="runtime-a").succeeds()
    await clock.reach(until + 1, "RT-TIME-05")
    await api.heartbeat(free, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(free, by="runtime-b")
    await api.lock(held, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-TIME-56")
async def test_the_run_goes_on_at_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `startedAt` + `timeoutSeconds` a heartbeat is accepted; a millisecond later the job is taken away."""
    clock.needs_to_stand()
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    started = await start_of(given, job)
    await clock.reach(started + SHORT * 1000, "RT-TIME-05")
    await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.reach(started + SHORT * 1000 + 1, "RT-TIME-05")
    await api.heartbeat(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(job, by="runtime-b", shows=("RT-TIME-56",))


@requirement("RT-TIME-50", "RT-TIME-04", "RT-RETRY-15", "RT-RETRY-51", "RT-RETRY-50", "RT-SM-50", "RT-DB-28")
async def test_a_lapse_is_counted(given: Given) -> None:
    """A lapsed lock: pending with `JOB_TIMEOUT`, retryCount and attemptNo one up, lock fields and startedAt empty."""
    job = await given.running_job("runtime-a", timeoutSeconds=600)
    await given.lapse()
    await expired_once(given, job, "RT-TIME-50")


@requirement("RT-TIME-51", "RT-RETRY-15", "RT-RETRY-51", "RT-RETRY-50")
async def test_a_timeout_is_counted(given: Given, clock: Clock) -> None:
    """A run over its limit: the same as a lapse."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 2 * clock.margin)
    await expired_once(given, job, "RT-TIME-51")


@requirement("RT-TIME-57", "RT-RETRY-52", "RT-DB-27", "RT-DB-31")
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
    final = dict.fromkeys(wanted, ("RT-RETRY-52",))
    expect_fields(row, wanted, rules={**final, "errorCode": ("RT-DB-31",)})
    with about("RT-TIME-57", "RT-DB-27"):
        for name in ("finishedAt", "updatedAt"):
            good = row.get(name) is not None and until <= row[name] <= now
            expect(good, f"{name} within {until} to {now}", str(row.get(name)), f"/{name}")


@requirement("RT-TIME-52")
@pytest.mark.parametrize("how", ["lapse", "timeout"])
async def test_an_expiry_forgets_an_older_failure(api: RuntimeApi, given: Given, clock: Clock, how: str) -> None:
    """Attempt 1 failed with a text, attempt 2 expires: `errorMessage` is null or says which limit, not that text."""
    text = "the model said no, in attempt 1"
    job = await given.running_job("runtime-a", timeoutSeconds=600 if how == "lapse" else SHORT)
    await given.fails(job, by="runtime-a", message=text)
    await given.comes_back(job, by="runtime-b")
    await given.starts(job, by="runtime-b")
    await clock.advance((given.timing.lock if how == "lapse" else SHORT) + 2 * clock.margin)
    await given.settles(job, shows=("RT-TIME-04" if how == "lapse" else "RT-TIME-02",))
    came = (await given.inspect(job)).get("errorMessage")
    expect(came is None or text not in came, "null, or which limit passed", str(came), "/errorMessage")


async def start_of(given: Given, job: JobRef) -> int:
    """The instant at which a running job's run began."""
    started = (await given.inspect(job)).get("startedAt")
    with about("RT-HB-51", step="the holder's first heartbeat"):
        expect(isinstance(started, int), "startedAt, an instant", str(started), "/startedAt")
    return int(started or 0)


ENDING, READING = ("heartbeat", "result", "fail"), ("snapshot", "resolve")


async def to_the_last_millisecond(given: Given, jobs: list[JobRef], limit: int) -> None:
    """A millisecond before a limit and at it the holder is served, whatever it asks; a millisecond later not."""
    for past in (-1, 0):
        await given.clock.reach(limit + past, "RT-TIME-05")
        for operation in (*READING, *ENDING):
            job = jobs.pop() if operation in ENDING else jobs[0]
            answer = await getattr(given.api, operation)(job, by="runtime-a").answers()
            when = "at the limit" if past == 0 else "a millisecond before the limit"
            expect(answer.status < 300, f"a success of {operation} {when}", describe(answer.response))
    await given.clock.reach(limit + 1, "RT-TIME-05")
    for operation in (*READING, *ENDING):
        answer = await getattr(given.api, operation)(jobs[0], by="runtime-a").answers()
        judge_code(answer)
        good = answer.status == 409 and answer.json.get("errorCode") == "LOCK_NOT_HELD"
        expect(good, f"409 LOCK_NOT_HELD to {operation} a millisecond after the limit", describe(answer.response))


@requirement("RT-TIME-55")
async def test_a_renewed_lock_holds_to_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """The holder is served up to `lockUntil`, whatever it asks; a millisecond later it gets LOCK_NOT_HELD."""
    clock.needs_to_stand()
    jobs = [await given.running_job("runtime-a", timeoutSeconds=600) for _ in range(7)]
    await clock.advance(7.003)
    for job in jobs:
        with about("RT-HB-05", step="the holder's heartbeat"):
            await api.heartbeat(job, by="runtime-a").succeeds()
    await to_the_last_millisecond(given, jobs, await given.instant(jobs[0], "lockUntil"))


@requirement("RT-TIME-56")
async def test_a_run_is_over_a_millisecond_after_its_last(given: Given, clock: Clock) -> None:
    """The holder is served up to `startedAt` + `timeoutSeconds`; a millisecond later it gets LOCK_NOT_HELD."""
    clock.needs_to_stand()
    jobs = [await given.running_job("runtime-a", timeoutSeconds=SHORT) for _ in range(7)]
    started = await start_of(given, jobs[0])
    await to_the_last_millisecond(given, jobs, started + SHORT * 1000)
