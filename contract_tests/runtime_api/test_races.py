"""Two that want the same job at the same moment: one wins, the other is told so, and nothing counts twice.

Each race is run with several jobs at once: all requests are released together, in changing order.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import CheckFailed, about, expect, expect_fields, requirement
from contract_tests.client import describe, judge_code
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from contract_tests.client import Answer, Call, JobRef, RuntimeApi
    from contract_tests.clock import Clock
    from contract_tests.given import Given

JOBS = 6
LEADS = (0, 2, 4)
"""Milliseconds by which time passes a limit before the requests are released: each order is to occur."""
BEHIND = -2
"""The limit passes while the requests are on their way: who reads before it may write after it."""
RELEASE = 0.011
"""Seconds after which :meth:`RuntimeApi.together` has opened its connections and releases the requests."""
A, B = "runtime-a", "runtime-b"
FREE = dict.fromkeys(("lockedBy", "lockedAt", "lockUntil", "startedAt", "finishedAt"))


async def race(api: RuntimeApi, pairs: Sequence[Sequence[Call]]) -> list[list[Answer]]:
    """Send all calls together, those of each second job in reverse; the answers as the calls were given."""
    turned = [list(pair)[:: -1 if i % 2 else 1] for i, pair in enumerate(pairs)]
    answers = iter(await api.together([call for pair in turned for call in pair]))
    came = [[next(answers) for _ in pair] for pair in turned]
    return [list(pair)[:: -1 if i % 2 else 1] for i, pair in enumerate(came)]


async def meanwhile(what: Coroutine[Any, Any, Any], before: float = 0) -> Any:
    """Do something when the requests of a race are released, or so many milliseconds before."""
    await asyncio.sleep(RELEASE - before / 1000)
    return await what


def outcome(answer: Answer) -> str:
    """``201``, or ``409 LOCK_NOT_HELD``."""
    judge_code(answer)
    return str(answer.status) if answer.status < 300 else describe(answer.response)


def one_of(answers: Sequence[Answer], *allowed: tuple[str, ...]) -> tuple[str, ...]:
    """The outcome of a race, in the words of ``allowed``; fails the check where it is none of them.

    ``2xx`` is any success.
    """
    came = tuple(map(outcome, answers))
    for item in allowed:
        if all(want in (got, f"{got[0]}xx") for got, want in zip(came, item, strict=True)):
            return item
    raise CheckFailed([" and ".join(item) for item in allowed], " and ".join(came))


async def ends(given: Given, job: JobRef, *, counts: str | None = None, **columns: Any) -> None:
    """Fail the check where the job is not in the state that the answers told.

    ``counts``: the rule by which one retry is counted then; that it counts at all has checks of its own.
    """
    row = await given.inspect(job)
    expect_fields(row, columns)
    if counts is not None:
        with about(counts, step="counting a lost attempt once"):
            expect_fields(row, {"retryCount": 1})


async def to_the_limit(given: Given, clock: Clock) -> Coroutine[Any, Any, None]:
    """Let time pass to just before a lock that was just taken lapses; what is returned passes that limit."""
    await clock.advance(given.timing.lock - clock.margin)
    return clock.advance(2 * clock.margin)


@requirement("RT-RES-53", "RT-SM-53")
@pytest.mark.parametrize("before", LEADS)
async def test_result_against_lapse(api: RuntimeApi, given: Given, clock: Clock, before: float) -> None:
    """A result at the end of the lock: 201 and the job stays succeeded, or refused and the job is pending again."""
    clock.needs_advance()
    jobs = [await given.locked_job(A) for _ in range(JOBS)]
    passing = await to_the_limit(given, clock)
    results = [[api.result(job, by=A)] for job in jobs]
    answers, _ = await asyncio.gather(race(api, results), meanwhile(passing, before))
    for job, pair in zip(jobs, answers, strict=True):
        with about("RT-RES-53"):
            [came] = one_of(pair, ("201",), ("409 LOCK_NOT_HELD",))
        with about("RT-SM-53"):
            await given.settles(job)
            if came == "201":
                await ends(given, job, status="succeeded", resultCount=1)
            else:
                await ends(given, job, status="pending", resultCount=0, counts="RT-RETRY-02")


@requirement("RT-HB-50", "RT-FAIL-54")
async def test_failure_against_heartbeat(api: RuntimeApi, given: Given) -> None:
    """The holder's failure and heartbeat cross: the failure counts, and the heartbeat takes no lock back."""
    jobs = [await given.running_job(A) for _ in range(JOBS)]
    answers = await race(api, [[api.fail(job, by=A), api.heartbeat(job, by=A)] for job in jobs])
    for job, pair in zip(jobs, answers, strict=True):
        with about("RT-HB-50"):
            one_of(pair, ("2xx", "2xx"), ("2xx", "409 LOCK_NOT_HELD"))
        with about("RT-FAIL-54"):
            await ends(given, job, status="pending", **FREE, counts="RT-RETRY-01")


@requirement("RT-CANCEL-51", "RT-LOCK-50")
async def test_cancel_against_lock(api: RuntimeApi, given: Given) -> None:
    """A cancel and a lock of a pending job cross: either the lock is granted or the job is cancelled."""
    jobs = [await given.job() for _ in range(JOBS)]

    async def cancelled(job: JobRef) -> bool:
        try:
            await given.states.set_up("cancel-job", {"jobId": job.id})
        except StateRefused:
            return False
        return True

    answers, *cancels = await asyncio.gather(
        race(api, [[api.lock(job, by=A)] for job in jobs]),
        *(meanwhile(cancelled(job), i) for i, job in enumerate(jobs)),
    )
    for job, [lock], cancel in zip(jobs, answers, cancels, strict=True):
        with about("RT-LOCK-50"):
            [came] = one_of([lock], ("2xx",), ("409 JOB_ALREADY_LOCKED",))
        row = await given.inspect(job)
        # where both succeeded, what came last tells which of them should not have
        with about("RT-LOCK-50" if row["status"] == "locked" else "RT-CANCEL-51"):
            what = f"lock {came}, cancel {'done' if cancel else 'refused'}"
            expect((came == "2xx") is not cancel, "the lock or the cancel, not both, not neither", what)
        with about("RT-CANCEL-51"):
            holder = A if came == "2xx" else None
            await ends(given, job, status="locked" if holder else "cancelled", lockedBy=holder)


@requirement("RT-RES-15", "RT-RES-16", "RT-RES-19")
async def test_results_against_each_other(api: RuntimeApi, given: Given) -> None:
    """Two results, each sent twice: one is stored (201), its copy is 200, the other 409 RESULT_ALREADY_EXISTS."""
    jobs = [await given.running_job(A) for _ in range(JOBS // 2)]
    hashes = ("sha256-x", "sha256-y", "sha256-x", "sha256-y")
    answers = await race(api, [[api.result(job, by=A, hash=hash_) for hash_ in hashes] for job in jobs])
    other = "409 RESULT_ALREADY_EXISTS"
    for job, four in zip(jobs, answers, strict=True):
        came = [outcome(answer) for answer in four]
        with about("RT-RES-19"):
            expect(came.count("201") == 1, "201 once", " and ".join(came))
        won = hashes[came.index("201")]
        wanted = [
            other if hash_ != won else "201" if i == came.index("201") else "200" for i, hash_ in enumerate(hashes)
        ]
        for got, want, hash_ in zip(came, wanted, hashes, strict=True):
            with about("RT-RES-15" if hash_ == won else "RT-RES-16"):
                expect(got == want, " and ".join(wanted), " and ".join(came))
        with about("RT-RES-19"):
            await ends(given, job, status="succeeded", resultCount=1)


@requirement("RT-FAIL-53")
async def test_failure_against_itself(api: RuntimeApi, given: Given) -> None:
    """The same failure twice at once: one is 200, the other LOCK_NOT_HELD, and one retry is counted."""
    jobs = [await given.running_job(A) for _ in range(JOBS)]
    answers = await race(api, [[api.fail(job, by=A), api.fail(job, by=A)] for job in jobs])
    for job, pair in zip(jobs, answers, strict=True):
        one_of(pair, ("2xx", "409 LOCK_NOT_HELD"), ("409 LOCK_NOT_HELD", "2xx"))
        await ends(given, job, status="pending", retryCount=1)


@requirement("RT-RES-53", "RT-FAIL-50")
async def test_result_against_failure(api: RuntimeApi, given: Given) -> None:
    """A result and a failure for one attempt cross: one of them ends it, the other is LOCK_NOT_HELD."""
    jobs = [await given.running_job(A) for _ in range(JOBS)]
    answers = await race(api, [[api.result(job, by=A), api.fail(job, by=A)] for job in jobs])
    for job, pair in zip(jobs, answers, strict=True):
        won, _ = one_of(pair, ("201", "409 LOCK_NOT_HELD"), ("409 LOCK_NOT_HELD", "2xx"))
        done = won == "201"
        status, counts = ("succeeded", None) if done else ("pending", "RT-RETRY-01")
        await ends(given, job, status=status, resultCount=int(done), counts=counts)


@requirement("RT-HB-50", "RT-LOCK-50")
@pytest.mark.parametrize("before", [BEHIND, *LEADS])
async def test_heartbeat_against_anothers_lock(api: RuntimeApi, given: Given, clock: Clock, before: float) -> None:
    """A heartbeat at the end of the lock and another's lock cross: never both succeed, and who did holds the job."""
    clock.needs_advance()
    jobs = [await given.locked_job(A) for _ in range(JOBS)]
    passing = await to_the_limit(given, clock)
    crossing = [[api.heartbeat(job, by=A), api.lock(job, by=B)] for job in jobs]
    answers, _ = await asyncio.gather(race(api, crossing), meanwhile(passing, before))
    lost, taken = "409 LOCK_NOT_HELD", "409 JOB_ALREADY_LOCKED"
    for job, pair in zip(jobs, answers, strict=True):
        with about("RT-HB-50"):
            one_of(pair[:1], ("2xx",), (lost,))
        with about("RT-LOCK-50"):
            one_of(pair[1:], ("2xx",), (taken,))
        came = one_of(pair, ("2xx", taken), (lost, "2xx"), (lost, taken))
        if came == (lost, taken):  # B asked before the limit, A after it
            await given.comes_back(job, by=B)
        holder, other = (A, B) if came[0] == "2xx" else (B, A)
        with about("RT-HB-50"):
            if holder == A and "inspect-job" in given.states.offered:  # a lapse that was counted is not taken back
                await ends(given, job, lockedBy=A, retryCount=0)
            await api.heartbeat(job, by=holder).succeeds()
            await api.heartbeat(job, by=other).fails(409, "LOCK_NOT_HELD")


@requirement("RT-CANCEL-50", "RT-CANCEL-56")
async def test_result_against_revocation(api: RuntimeApi, given: Given) -> None:
    """A result and a revocation cross: stored and succeeded, or JOB_CANCELLED, cancelled and nothing stored."""
    jobs = [await given.running_job(A) for _ in range(JOBS)]
    revocations = [meanwhile(given.revoke_ai_consent(job.user_id), i) for i, job in enumerate(jobs)]
    answers, *_ = await asyncio.gather(race(api, [[api.result(job, by=A)] for job in jobs]), *revocations)
    for job, pair in zip(jobs, answers, strict=True):
        with about("RT-CANCEL-50"):
            [came] = one_of(pair, ("201",), ("409 JOB_CANCELLED",))
            stored = came == "201"
            await ends(given, job, status="succeeded" if stored else "cancelled")
        with about("RT-CANCEL-56"):
            await ends(given, job, resultCount=int(stored))
