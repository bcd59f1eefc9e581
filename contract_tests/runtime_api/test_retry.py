"""Attempts that are lost, and how often a job runs (seed 000 section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi, describe
from contract_tests.steps import SHORT, keep_alive, runs_out, second_attempt

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given


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
    await runs_out(given, await given.job(), 4, ("RT-RETRY-06", "RT-RETRY-53", "RT-DB-29"))


@requirement("RT-RETRY-07")
@pytest.mark.parametrize("retries", [1, 2, 5])
async def test_the_number_of_retries_is_configurable(given: Given, clock: Clock, retries: int) -> None:
    """`maxRetryCount` n: granted n + 1 times."""
    clock.needs_advance()
    await runs_out(given, await given.job(maxRetryCount=retries), retries + 1, ("RT-RETRY-07",))


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
    expect(answer.status < 300, f"a success (2xx) to a {late}", describe(answer.response))


async def lose(given: Given, job: JobRef, by: str, how: str) -> None:
    """End the attempt of ``by``, which has just locked the job, without success."""
    if how == "lapse":
        await given.lapse()
        return
    await given.starts(job, by=by)
    if how == "timeout":
        await given.clock.advance(SHORT + 2 * given.clock.margin)
    else:
        await given.fails(job, by=by)


COMES_BACK = {"lapse": ("RT-SCHED-10",), "timeout": ("RT-TIME-02",), "failure": ("RT-FAIL-07",)}
"""The rule by which a job comes back at all, which has checks of its own; how often it does is judged here."""


@requirement("RT-RETRY-50", "RT-RETRY-53")
@pytest.mark.parametrize(
    "losses",
    [("lapse",) * 4, ("timeout",) * 4, ("failure",) * 4, ("lapse", "failure", "timeout", "lapse")],
    ids=["lapses", "timeouts", "failures", "mixed"],
)
async def test_the_retries_are_used_up(api: RuntimeApi, given: Given, clock: Clock, losses: tuple[str, ...]) -> None:
    """Four attempts, however they are lost, each with the next `attemptNo`; then failed, three retries counted."""
    clock.needs_advance()
    job = await given.job(timeoutSeconds=SHORT)
    for attempt, how in enumerate(losses):
        by = f"runtime-{attempt}"
        before = losses[:attempt]
        shows = (
            ("RT-RETRY-53",) if before[-1:] and before[-1] in before[:-1] else COMES_BACK.get("".join(before[-1:]), ())
        )
        number = (await given.comes_back(job, by=by, shows=shows)).json.get("attemptNo")
        with about("RT-RETRY-50"):
            expect(number == attempt, f"attemptNo {attempt} at grant {attempt + 1}", str(number), "/attemptNo")
        await lose(given, job, by, how)
    with about("RT-RETRY-53"):
        await given.stays_away(job)
        row = await given.inspect(job)
        expect_fields(row, {"status": "failed", "retryCount": 3})
        expect(isinstance(row.get("errorCode"), str), "an errorCode", str(row.get("errorCode")), "/errorCode")


@requirement("RT-RETRY-05")
async def test_a_poison_pill_ends_and_others_go_on(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A job that silences each Runtime that takes it is given up; the jobs that wait behind it are done meanwhile."""
    clock.needs_advance()
    pill, healthy = await given.listed_job(maxRetryCount=2), [await given.job() for _ in range(3)]
    for i, other in enumerate(healthy):
        await given.locks(other, by="runtime-well")
        await given.comes_back(pill, by=f"runtime-{i}", shows=("RT-RETRY-05",) if i > 1 else ())
        await api.heartbeat(pill, by=f"runtime-{i}").succeeds()
        await given.completes(other, by="runtime-well")
        await given.lapse()
    await given.stays_away(pill)
    expect(not await given.offered(pill), "the job is not listed any more", "it is listed")


@requirement("RT-FAIL-54", "RT-RES-59")
@pytest.mark.parametrize("how", ["failure", "lapse"])
async def test_nothing_is_left_of_the_first_attempt(api: RuntimeApi, given: Given, clock: Clock, how: str) -> None:
    """The second attempt has its own lock, start and whole time limit, and success leaves no error behind."""
    clock.needs_advance()
    limit = 1.5 * given.timing.lock
    job = await given.running_job("runtime-a", timeoutSeconds=round(limit))
    await keep_alive(given, job, given.timing.lock / 2)
    if how == "failure":
        await given.fails(job, by="runtime-a", code="MODEL_TIMEOUT")
    else:
        await given.lapse()
    await given.comes_back(job, by="runtime-b")
    second = await given.inspect(job)
    with about("RT-FAIL-54"):
        expect_fields(second, {"status": "locked", "startedAt": None})
        await api.heartbeat(job, by="runtime-b").succeeds()
        await keep_alive(given, job, limit - given.early(), by="runtime-b")
        await api.heartbeat(job, by="runtime-b").succeeds()
    await given.completes(job, by="runtime-b", attempt=1)
    row = await given.inspect(job)
    with about("RT-RES-59"):
        expect_fields(row, {"status": "succeeded", "errorCode": None, "errorMessage": None})
        started, began = row.get("startedAt") or 0, second.get("lockedAt") or 0
        expect(started >= began, "startedAt of attempt 2", str(started), "/startedAt")


@requirement("RT-RES-53", "RT-FAIL-50")
async def test_a_zombie_changes_nothing(api: RuntimeApi, given: Given) -> None:
    """A lost its lock and B works: A's result and failure are refused, B's result is the only one."""
    job = await given.running_job("runtime-a")
    await given.lapse()
    await given.comes_back(job, by="runtime-b")
    await given.starts(job, by="runtime-b")
    with about("RT-RES-53"):
        await api.result(job, by="runtime-a", hash="sha256-of-a").fails(409, "LOCK_NOT_HELD")
    with about("RT-FAIL-50"):
        await api.fail(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.completes(job, by="runtime-b", hash="sha256-of-b", attempt=1)
    with about("RT-RES-16", step="another result"):
        await api.result(job, by="runtime-a", hash="sha256-of-a").refused()
    with about("RT-RES-53"):
        expect_fields(await given.inspect(job), {"status": "succeeded", "resultCount": 1})


@requirement("RT-SM-21")
async def test_an_expired_job_is_offered_again(api: RuntimeApi, given: Given) -> None:
    """A job with retries left whose lock lapsed: another Runtime's poll lists it, and it can lock it."""
    job = await given.listed_job()
    await api.lock(job, by="runtime-a").succeeds()
    await given.lapse()
    await given.is_offered_again(job)
    await given.comes_back(job, by="runtime-b")


@requirement("RT-RETRY-05", "RT-RETRY-07")
@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_failing_uses_up_the_retries(api: RuntimeApi, given: Given, retries: int) -> None:
    """`maxRetryCount` n and a retryable failure each time: granted n + 1 times, then never again."""
    job = await given.job(maxRetryCount=retries)
    for attempt in range(retries + 1):
        await given.comes_back(job, by=f"runtime-{attempt}")
        await api.heartbeat(job, by=f"runtime-{attempt}").succeeds()
        await api.fail(job, by=f"runtime-{attempt}").succeeds()
    await given.stays_away(job)


@requirement("RT-RETRY-54")
async def test_zero_retries_make_a_retryable_failure_final(api: RuntimeApi, given: Given) -> None:
    """`maxRetryCount` 0: a failure called retryable leaves the job failed; lock says JOB_ALREADY_LOCKED."""
    job = await given.running_job(maxRetryCount=0)
    await api.fail(job, retryable=True).succeeds()
    await api.lock(job, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-TIME-52")
async def test_a_lapse_after_a_failure_tells_its_own_error(given: Given) -> None:
    """Attempt 1 failed, attempt 2 lapsed: the job shows no text of the older failure."""
    job = await second_attempt(given, by="runtime-b", timeoutSeconds=600)
    await given.lapse()
    await given.settles(job)
    row = await given.inspect(job)
    message = row.get("errorMessage")
    expect("attempt 1" not in (message or ""), "no errorMessage of attempt 1", str(message), "/errorMessage")
