"""Whole incidents, as public reports of job queues tell them, replayed to their last sentence (ST-01, 02, 04, 05, 07).

Each rule has narrower checks elsewhere; here it has to hold at the end of all that went before.
"""

from __future__ import annotations

import asyncio
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import CheckFailed, about, expect, expect_fields, requirement
from contract_tests.client import ANALYSES, RuntimeApi, describe
from contract_tests.given import epoch, ids_of
from contract_tests.steps import second_attempt

if TYPE_CHECKING:
    from contract_tests.client import Answer, JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given

A, B, C = "runtime-a", "runtime-b", "runtime-c"
ATTEMPTS = 4
"""Grants of a job with the default of three retries."""
HEALTHY = 5
"""Jobs that others do during each of them."""
LAST = (100, 50, 1, 0)
"""Milliseconds before the end of a lock at which a result comes: in time is in time."""
PHOTOS = (0, 1, 2, 4, 8, None)
"""Milliseconds by which a result is sent after its user began to switch AI off; None: after that was done."""
SECOND = 1000
"""Milliseconds by which an instant that is told in whole seconds may be off."""


@requirement("RT-RES-53", "RT-FAIL-50", "RT-RETRY-51", "RT-SM-54")
async def test_the_zombie_comes_back_with_an_answer(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A's heartbeats get lost, B has the job, A answers first: A is refused, B's result is the only one, one retry."""
    job = await given.running_job(A, timeoutSeconds=600)
    await clock.advance(given.timing.lock / 3)
    with about("RT-HB-05", step="the holder's heartbeat"):
        await api.heartbeat(job, by=A).succeeds()
    await given.lapse()  # what A sends meanwhile gets lost
    await given.comes_back(job, by=B)
    await given.starts(job, by=B)
    with about("RT-RES-53"):
        await api.result(job, by=A, hash="sha256-of-a").fails(409, "LOCK_NOT_HELD")
    with about("RT-FAIL-50"):
        await api.fail(job, by=A).fails(409, "LOCK_NOT_HELD")
        # what A's lapse has given up is not given up again: the job is B's still
        await api.lock(job, by=C).fails(409, "JOB_ALREADY_LOCKED")
        await api.heartbeat(job, by=B).succeeds()
    await given.completes(job, by=B, attempt=1, hash="sha256-of-b")
    with about("RT-RES-16", step="refusing another result"):
        await api.result(job, by=A, hash="sha256-of-a").refused()
    row = await given.inspect(job)
    with about("RT-RES-53"):
        expect_fields(row, {"status": "succeeded", "resultCount": 1})
    with about("RT-RETRY-51"):
        expect_fields(row, {"retryCount": 1, "attemptNo": 1})
    with about("RT-SM-54"):
        await given.lapse()
        await given.stays_away(job)
        await given.unchanged(job, row)


@requirement("RT-TIME-55", "RT-SM-53")
async def test_success_is_not_buried(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Results in the last 100 ms of their locks are stored; these jobs stay succeeded, and no poll lists them again."""
    clock.needs_to_stand()
    jobs = [await given.running_job(A, priority=given.first()) for _ in LAST]
    until = await given.instant(jobs[0], "lockUntil")
    for job, before in zip(jobs, LAST, strict=True):
        await clock.reach(until - before, "RT-TIME-05")
        with about("RT-TIME-55"):
            await api.result(job, by=A).succeeds(201)
    for seconds in (0.001, given.timing.sweep, given.timing.lock, given.timing.timeout):
        await clock.advance(seconds)
        listed = ids_of(await given.polled(types=ANALYSES[:1]))
        for job in jobs:
            with about("RT-SM-53"):
                expect_fields(await given.inspect(job), {"status": "succeeded", "resultCount": 1, "retryCount": 0})
                expect(job.id not in listed, "no poll lists a job that succeeded", f"{job.id} is listed", "/jobs")
                await api.lock(job, by=B).fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-RETRY-52", "RT-RETRY-53")
@pytest.mark.parametrize("beats", [(1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0)], ids=["heard", "unheard", "mixed"])
async def test_the_poison_pill(api: RuntimeApi, given: Given, clock: Clock, beats: tuple[int, ...]) -> None:
    """Each Runtime that takes it falls silent, heard of or not: locked four times, then failed; 20 others end."""
    clock.needs_advance()
    pill, others = await given.listed_job(), [await given.job() for _ in range(HEALTHY * ATTEMPTS)]
    for attempt, heard in enumerate(beats):
        by = f"runtime-{attempt}"
        if attempt:
            await given.is_offered_again(pill, shows=("RT-RETRY-53",) if attempt > 1 else ())
        await given.comes_back(pill, by=by, shows=("RT-RETRY-53",) if attempt > 1 else ())
        if heard:
            await given.starts(pill, by=by)
        for other in others[attempt * HEALTHY : (attempt + 1) * HEALTHY]:
            await given.locks(other, by="runtime-well")
            await given.completes(other, by="runtime-well")
        await given.lapse()
    with about("RT-RETRY-53"):
        await given.stays_away(pill)
        expect(not await given.offered(pill), "a job that is given up is not listed", "it is listed", "/jobs")
    row = await given.inspect(pill)
    with about("RT-RETRY-53"):
        expect_fields(row, {"status": "failed"})
    with about("RT-RETRY-52"):
        expect_fields(row, {"retryCount": ATTEMPTS - 1, "lockedBy": None, "lockUntil": None})
        expect(isinstance(row.get("errorCode"), str), "an errorCode", str(row.get("errorCode")), "/errorCode")
    for other in others:
        with about("RT-RES-14", step="jobs that succeeded meanwhile"):
            expect_fields(await given.inspect(other), {"status": "succeeded"})


@requirement("RT-CANCEL-50", "RT-CANCEL-56", "RT-SM-53")
async def test_the_photo_finish_of_revocation_and_result(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Attempt 2 ends as its user switches AI off: stored, or refused and cancelled; and so it stays."""
    clock.needs_advance()
    jobs = [await second_attempt(given, by=B, timeoutSeconds=600) for _ in PHOTOS]

    async def finish(job: JobRef, after: float) -> Answer:
        await asyncio.sleep(after / 1000)
        return await api.result(job, by=B, attempt=1).answers()

    rows = []
    for job, after in zip(jobs, PHOTOS, strict=True):
        switched = given.revoke_ai_consent(job.user_id)
        if after is None:
            await switched
            answer = await finish(job, 0)
            with about("RT-CANCEL-56"):
                expect(answer.status == 409, "409 JOB_CANCELLED", describe(answer.response))
        else:
            answer, _ = await asyncio.gather(finish(job, after), switched)
        with about("RT-CANCEL-50"):
            stored = answer.status == 201
            if not stored:
                good = answer.status == 409 and answer.json.get("errorCode") == "JOB_CANCELLED"
                expect(good, ["201", "409 JOB_CANCELLED"], describe(answer.response))
        rows.append(await given.inspect(job))
        with about("RT-CANCEL-50"):
            expect_fields(rows[-1], {"status": "succeeded" if stored else "cancelled"})
        with about("RT-CANCEL-56"):
            expect_fields(rows[-1], {"resultCount": int(stored)})
    for _ in range(2):
        await given.lapse()
        for job, row in zip(jobs, rows, strict=True):
            with about("RT-SM-53"):
                await api.lock(job, by=C).fails(409, "JOB_ALREADY_LOCKED")
                expect_fields(await given.inspect(job), {"status": row["status"]})


@requirement("RT-LOCK-10", "RT-TIME-01", "RT-HB-04")
async def test_thirty_seconds_slow(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A Runtime needs no clock of the build's: `lockUntil` is 60 s from the answer's own time, and lasts that long."""
    silent, held = await given.job(), await given.job()
    granted = await api.lock(silent, by=A).succeeds()
    refusal = await api.lock(silent, by=B).answers()
    with about("RT-LOCK-10"):
        spent = (refusal.response.received - granted.response.sent) * max(clock.rate, 1) * 1000
        until, lasts = granted.integer("lockUntil"), given.timing.lock * 1000
        for name, told in times(refusal, moved=clock.advances).items():
            low, high = told - spent - SECOND + lasts, told + SECOND + lasts
            expect(low <= until <= high, f"lockUntil 60 s after {name}, {told}", str(until), "/lockUntil")
    await given.locks(held, by=A)
    early = given.early()
    await clock.advance(given.timing.lock - early)
    with about("RT-HB-04"):
        await api.heartbeat(held, by=A).succeeds()
    with about("RT-TIME-01"):
        await api.lock(silent, by=B).refused()
    await clock.advance(2 * early)
    await given.comes_back(silent, by=B, shows=("RT-TIME-01",))
    for _ in range(2 if clock.advances else 0):
        await clock.advance(given.timing.lock - 3 * early)
        with about("RT-HB-04"):
            await api.lock(held, by=B).refused()
            await api.heartbeat(held, by=A).succeeds()


def times(refusal: Answer, *, moved: bool) -> dict[str, int]:
    """The instants at which a build says that it refused, epoch milliseconds.

    ``Date`` is among them where nobody moved the build's clock: it need not go along (boundary, provider states).
    """
    found = {}
    with about("RT-ERR-05", step="the timestamp of an error"):
        stamp = epoch(refusal.json.get("timestamp"))
        expect(stamp is not None, "a timestamp", "none", "/timestamp")
    found["timestamp"] = int(stamp or 0)
    date = refusal.response.headers.get("date")
    if date is not None and not moved:
        try:
            found["Date"] = int(parsedate_to_datetime(date).timestamp() * 1000)
        except ValueError:
            raise CheckFailed("a Date as HTTP has it", date, "Date") from None
    return found
