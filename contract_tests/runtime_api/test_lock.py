"""Locking a job (seed 003 section 4.2, seed 000 section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import CheckFailed, about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi, describe
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

LOCK_MS = 60_000
CONNECTIONS = 50
ROUNDS = 20
SEED_EXAMPLE = b'{"runtimeInstanceId":"runtime-001"}'


@requirement("RT-LOCK-01", "RT-LOCK-03", "RT-LOCK-04", "RT-LOCK-06")
async def test_a_pending_job_can_be_locked(api: RuntimeApi, given: Given) -> None:
    """A pending job can be locked: 200 with its id and status `locked`."""
    job = await given.job()
    answer = await api.lock(job).succeeds()
    with about("RT-LOCK-03"):
        expect(answer.status == 200, "200", str(answer.status))
    with about("RT-LOCK-04"):
        expect(answer.get("jobId") == job.id, f"jobId {job.id}", answer.get("jobId"), "/jobId")
        expect(answer.get("status") == "locked", "status locked", answer.get("status"), "/status")


@requirement("RT-LOCK-01", "RT-LOCK-03")
async def test_the_seeds_own_example_is_answered(api: RuntimeApi, given: Given) -> None:
    """The request of seed 003 section 4.2, as it stands there."""
    job = await given.job()
    call = api.raw("POST", f"{job.path}/lock", content=SEED_EXAMPLE, by="runtime-001")
    with about("RT-LOCK-01"):
        answer = await call.succeeds()
    with about("RT-LOCK-03"):
        expect(answer.status == 200, "200", str(answer.status))


@requirement("RT-LOCK-05", "RT-TIME-05")
async def test_lock_until_is_epoch_milliseconds(api: RuntimeApi, given: Given) -> None:
    """`lockUntil` is a number of 13 digits: epoch milliseconds, not seconds, not a text."""
    until = (await api.lock(await given.job()).succeeds()).integer("lockUntil")
    expect(10**12 < until < 10**13, "epoch milliseconds (13 digits)", str(until), "/lockUntil")


@requirement("RT-LOCK-10")
async def test_a_lock_lasts_60_seconds(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`lockUntil` is 60 s after the lock, by the build's clock."""
    job = await given.job()
    before = await clock.now()
    until = (await api.lock(job).succeeds()).integer("lockUntil")
    after = await clock.now()
    low, high = before + given.timing.lock * 1000, after + given.timing.lock * 1000
    expect(low <= until <= high, f"lockUntil within {low:.0f} to {high:.0f}", str(until), "/lockUntil")


@requirement("RT-SM-04")
async def test_a_locked_job_waits_no_more(api: RuntimeApi, given: Given) -> None:
    """A poll lists the job until it is locked, and not any more then: neither to others nor to who has locked it."""
    job = await given.listed_job(priority=given.first())
    with about("RT-POLL-02", step="listing a pending job"):
        expect(await given.offered(job), f"the pending job {job.id} in a poll", "it is not listed", "/jobs")
    await given.locks(job, by="runtime-a")
    for by in ("runtime-b", "runtime-a"):
        listed = await given.offered(job, by=by)
        expect(not listed, "a job that is locked is not pending", f"a poll of {by} lists it", "/jobs")


@requirement("RT-LOCK-08", "RT-LOCK-09", "RT-LOCK-11", "RT-SM-05", "RT-DB-23", "RT-DB-24", "RT-DB-25")
async def test_a_lock_sets_its_columns(api: RuntimeApi, given: Given) -> None:
    """`lockedBy` is the caller, `lockedAt` is now, `status` is locked, `lockUntil` as answered; not yet started."""
    job = await given.job()
    answer = await api.lock(job, by="runtime-a").succeeds()
    row = await given.inspect(job)
    wanted = {"status": "locked", "lockedBy": "runtime-a", "lockUntil": answer.integer("lockUntil")}
    rules = {"status": ("RT-LOCK-11", "RT-SM-05"), "lockedBy": ("RT-LOCK-08", "RT-DB-23"), "lockUntil": ("RT-DB-25",)}
    expect_fields(row, wanted, rules=rules)
    with about("RT-LOCK-09", "RT-DB-24"):
        at = row.get("lockedAt")
        expect(isinstance(at, int), "lockedAt, an instant", str(at), "/lockedAt")
        lasts = row["lockUntil"] - row["lockedAt"]
        good = abs(lasts - given.timing.lock * 1000) < 2000
        expect(good, "lockedAt 60 s before lockUntil", f"{lasts} ms before", "/lockedAt")


@requirement("RT-LOCK-13", "RT-LOCK-06")
async def test_a_locked_job_is_refused_to_a_second_runtime(api: RuntimeApi, given: Given) -> None:
    """The second Runtime gets JOB_ALREADY_LOCKED, and the first keeps its lock."""
    job = await given.locked_job("runtime-a")
    answer = await api.lock(job, by="runtime-b").answers()
    expect(answer.status >= 400, "a refusal", describe(answer.response))
    with about("RT-LOCK-13"):
        await api.lock(job, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
    await api.heartbeat(job, by="runtime-a").succeeds()


@requirement("RT-LOCK-50")
@pytest.mark.parametrize("state", ["locked", "running", "failed", "cancelled"])
async def test_a_job_that_is_not_pending_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """Not pending, for whatever reason, the holder asking again included: 409 JOB_ALREADY_LOCKED."""
    make = {
        "locked": given.locked_job,
        "running": given.running_job,
        "failed": given.failed_job,
        "cancelled": given.cancelled_job,
    }
    job = await make[state]()
    if state == "failed":
        await given.settles(job)
    for by in ("runtime-a", "runtime-b"):
        await api.lock(job, by=by).fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-LOCK-06")
@pytest.mark.parametrize("state", ["running", "cancelled"])
async def test_only_pending_jobs_can_be_locked(api: RuntimeApi, given: Given, state: str) -> None:
    """A job that is not pending is not locked."""
    job = await (given.running_job() if state == "running" else given.cancelled_job())
    answer = await api.lock(job, by="runtime-b").answers()
    expect(400 <= answer.status < 500, "a refusal (4xx)", describe(answer.response))


@requirement("RT-LOCK-13")
async def test_a_refused_lock_changes_nothing(api: RuntimeApi, given: Given) -> None:
    """A refused lock leaves every column as it was: no other owner, no longer lock."""
    job = await given.locked_job("runtime-a")
    before = await given.inspect(job)
    await api.lock(job, by="runtime-b").refused()
    await api.lock(job, by="runtime-a").refused()
    await given.unchanged(job, before)


@requirement("RT-LOCK-51", "RT-LOCK-52", "RT-LOCK-53")
async def test_the_answer_tells_what_the_runtime_needs(api: RuntimeApi, given: Given) -> None:
    """attemptNo, apiKeyMode, credentialId, modelProvider, modelName, timeoutSeconds and params."""
    params = {"cardCount": 10}
    job = await given.job(jobType="flashcard_generation", params=params, timeoutSeconds=88)
    answer = await api.lock(job).succeeds()
    wanted = {
        "attemptNo": 0,
        "apiKeyMode": "platform_key",
        "credentialId": None,
        "modelProvider": "deepseek",
        "modelName": "deepseek-chat",
        "timeoutSeconds": 88,
        "params": params,
    }
    rules = {**dict.fromkeys(wanted, ("RT-LOCK-52",)), "attemptNo": ("RT-LOCK-51",), "params": ("RT-LOCK-53",)}
    expect_fields(answer.json, wanted, rules=rules)


@requirement("RT-LOCK-12", "RT-LOCK-13", "RT-ERR-07")
async def test_of_many_at_once_one_wins(api: RuntimeApi, given: Given) -> None:
    """50 connections released together, 20 rounds: one 200, 49 times 409, and the winner holds the lock."""
    for _ in range(ROUNDS):
        job = await given.job()
        names = [f"racer-{i}" for i in range(CONNECTIONS)]
        answers = await api.together([api.lock(job, by=name) for name in names])
        winners = [name for name, answer in zip(names, answers, strict=True) if answer.status < 300]
        with about("RT-LOCK-12"):
            expect(len(winners) == 1, "one winner", f"{len(winners)} winners: {winners}")
        for answer in answers:
            if answer.status >= 300:
                good = answer.status == 409 and answer.json.get("errorCode") == "JOB_ALREADY_LOCKED"
                with about("RT-LOCK-13", "RT-ERR-07"):
                    expect(good, "409 JOB_ALREADY_LOCKED for every loser", describe(answer.response))
        with about("RT-LOCK-12"):
            await api.heartbeat(job, by=winners[0]).succeeds()
        loser = next(name for name in names if name != winners[0])
        with about("RT-HB-03", step="refusing a stranger's heartbeat"):
            await api.heartbeat(job, by=loser).refused()


@requirement("RT-CANCEL-51")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_only_a_pending_job_can_be_cancelled(api: RuntimeApi, given: Given, state: str) -> None:
    """Cancelling a job that a Runtime holds is refused, and its holder keeps it."""
    job = await (given.locked_job() if state == "locked" else given.running_job())
    try:
        await given.states.set_up("cancel-job", {"jobId": job.id})
    except StateRefused:
        await api.heartbeat(job).succeeds()
        return
    expect(False, "a refusal (409)", "the job was cancelled")


@requirement("RT-CANCEL-02", "RT-SM-17", "RT-CANCEL-01")
async def test_cancel_and_lock_race(api: RuntimeApi, given: Given) -> None:
    """A cancelled job says `cancelled`, and no lock is granted on it afterwards."""
    job = await given.job()
    try:
        values = await given.states.set_up("cancel-job", {"jobId": job.id})
    except StateRefused as refused:
        failure = CheckFailed("a pending job is cancelled", str(refused))
        failure.rules = ("RT-SM-17", "RT-CANCEL-01")
        raise failure from None
    with about("RT-SM-17", "RT-CANCEL-01"):
        expect(values.get("status") == "cancelled", "status cancelled", str(values.get("status")), "/status")
    answers = await api.together([api.lock(job, by=f"racer-{i}") for i in range(5)])
    won = [answer for answer in answers if answer.status < 300]
    with about("RT-CANCEL-02"):
        expect(not won, "no lock on a cancelled job", f"{len(won)} locks")
