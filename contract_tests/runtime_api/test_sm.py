"""States and how a job moves between them (seed 000 sections 2 and 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi, describe
from contract_tests.steps import SHORT

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given

MANY = 210
"""Jobs that are worked on at once: more than a sweeper may look at in one go."""
STATUSES = ("pending", "locked", "running", "succeeded", "failed", "cancelled", "expired")
NUMBERS = {
    "id": 7, "userId": 8, "priority": 13, "idempotencyKey": 14, "apiKeyMode": 15, "credentialId": 16,
    "modelProvider": 17, "modelName": 18, "attemptNo": 21, "retriedFromJobId": 22, "lockedBy": 23, "lockedAt": 24,
    "lockUntil": 25, "startedAt": 26, "finishedAt": 27, "retryCount": 28, "timeoutSeconds": 30, "errorCode": 31,
    "errorMessage": 32,
}  # fmt: skip
"""The rule RT-DB-... of a column."""


@requirement(
    "RT-SM-01", "RT-SM-02", "RT-DB-07", "RT-DB-08", "RT-DB-12", "RT-DB-13", "RT-DB-14", "RT-DB-15", "RT-DB-16",
    "RT-DB-17", "RT-DB-18", "RT-DB-21", "RT-DB-22", "RT-DB-23", "RT-DB-24", "RT-DB-25", "RT-DB-26", "RT-DB-27",
    "RT-DB-28", "RT-DB-29", "RT-DB-30", "RT-DB-31", "RT-DB-32", "RT-RETRY-06",
)  # fmt: skip
async def test_a_new_job_has_the_models_defaults(given: Given) -> None:
    """Every column that the creation left out has its default."""
    user = given.unique("user")
    job = await given.job(userId=user)
    row = await given.inspect(job)
    with about("RT-SM-01"):
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
    rules: dict[str, tuple[str, ...]] = {name: (f"RT-DB-{number:02}",) for name, number in NUMBERS.items()}
    rules |= {"status": ("RT-SM-02", "RT-DB-12"), "maxRetryCount": ("RT-RETRY-06", "RT-DB-29")}
    expect_fields(row, {"id": job.id, "userId": user, **defaults, **counters, **nothing}, rules=rules)


@requirement("RT-SM-17", "RT-CANCEL-01", "RT-CANCEL-52")
async def test_cancelling_sets_its_columns(given: Given, clock: Clock) -> None:
    """A cancelled job: status cancelled, `finishedAt` now."""
    job = await given.job()
    before = await clock.now()
    await given.states.set_up("cancel-job", {"jobId": job.id})
    row, after = await given.inspect(job), await clock.now()
    expect_fields(row, {"status": "cancelled"}, rules={"status": ("RT-SM-17", "RT-CANCEL-01")})
    finished = row.get("finishedAt")
    good = finished is not None and before <= finished <= after
    with about("RT-CANCEL-52"):
        expect(good, f"finishedAt within {before} to {after}", str(finished), "/finishedAt")


@requirement("RT-SM-11", "RT-SM-20", "RT-RETRY-03")
async def test_a_run_ends_at_its_own_limit(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A job with `timeoutSeconds` 3 is taken away after them, although its lock would still hold."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT + 2 * clock.margin)
    await given.comes_back(job, by="runtime-b", shows=("RT-SM-11", "RT-SM-20", "RT-RETRY-03"))
    with about("RT-HB-03", step="refusing a stranger's heartbeat"):
        await api.heartbeat(job, by="runtime-a").refused()


@requirement("RT-SM-10")
@pytest.mark.parametrize("how", ["result", "failure"])
async def test_a_completed_run_is_over(api: RuntimeApi, given: Given, clock: Clock, how: str) -> None:
    """With its result or final failure a running job is done: nobody gets it when its lock's time is up, either."""
    job = await given.running_job("runtime-a")
    await clock.advance(given.timing.lock - given.early())
    if how == "result":
        await api.result(job, by="runtime-a").succeeds()
    else:
        await api.fail(job, by="runtime-a", retryable=False).succeeds()
    await clock.advance(given.early() + 2 * clock.margin)
    await given.stays_away(job)
    with about("RT-HB-03", step="refusing a heartbeat"):
        await api.heartbeat(job, by="runtime-a").refused()


async def expires(given: Given, job: JobRef, how: str) -> None:
    """Lock the job and let its lock lapse or, once it runs, its time pass."""
    await given.locks(job)
    if how == "lapse":
        await given.lapse()
        return
    await given.starts(job)
    await given.clock.advance(SHORT + 2 * given.clock.margin)


@requirement("RT-SM-21")
@pytest.mark.parametrize("how", ["lapse", "timeout"])
async def test_an_expired_job_can_be_polled_again(given: Given, how: str) -> None:
    """After a lapse or a timeout a poll lists the job once more, and again after the next one."""
    job = await given.listed_job(timeoutSeconds=SHORT)
    for _ in range(2 if given.clock.advances else 1):
        await expires(given, job, how)
        await given.is_offered_again(job, shows=("RT-SM-21",))


@requirement("RT-TIME-04", "RT-SCHED-10")
async def test_a_silent_job_behind_many_that_work(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Of 211 locked jobs 210 heartbeat, and the one that was locked last is silent: that one is given up in time."""
    clock.needs_to_stand()  # so many are not locked at one instant where time flows
    working = [await given.locked_job("runtime-a", timeoutSeconds=600) for _ in range(MANY)]
    await clock.advance(0.01)
    silent = await given.locked_job("runtime-b")
    await clock.advance(given.timing.lock - given.early())
    for answer in await api.together([api.heartbeat(job, by="runtime-a") for job in working]):
        with about("RT-HB-05", step="the holder's heartbeat"):
            expect(answer.status < 300, "a success (2xx)", describe(answer.response))
    await clock.advance(2 * given.early())
    await given.comes_back(silent, by="runtime-c", shows=("RT-TIME-04", "RT-SCHED-10"))


@requirement("RT-SM-52")
async def test_many_jobs_that_expire_together_all_come_back(given: Given, clock: Clock) -> None:
    """Ten locks lapse at the same moment: each of the jobs is pollable within the sweep, and counted once."""
    schema = given.unique("schema")
    jobs = [await given.locked_job(f"runtime-{i}", outputSchemaVersion=schema) for i in range(10)]
    await given.lapse()
    for job in jobs:
        await given.is_offered_again(replace(job, schema=schema), shows=("RT-SM-52",))
    for job in jobs:
        with about("RT-RETRY-51", step="counting a lapse"):
            expect_fields(await given.inspect(job), {"status": "pending", "retryCount": 1, "attemptNo": 1})
