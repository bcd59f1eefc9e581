"""Which jobs a poll lists, and in which order (seed 000 sections 9 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import about, alone, expect, requirement
from contract_tests.client import JOB_TYPES
from contract_tests.given import ids_of, jobs_of

if TYPE_CHECKING:
    from contract_tests.client import RuntimeApi
    from contract_tests.clock import Clock
    from contract_tests.given import Given


AGAIN = 10


async def later(clock: Clock) -> None:
    """Two milliseconds: creations that follow have another `createdAt`."""
    await clock.advance(0.002)


@requirement("RT-SCHED-06")
@alone
async def test_an_empty_queue_is_an_empty_list(api: RuntimeApi) -> None:
    """No job available: 200 with an empty list, no 204, no 404, no null."""
    answer = await api.poll().succeeds()
    expect(answer.get("jobs") == [], "jobs []", str(answer.get("jobs")), "/jobs")


@requirement("RT-SCHED-02", "RT-DB-13")
@alone
async def test_lower_priority_numbers_come_first(given: Given, clock: Clock) -> None:
    """Jobs come by priority ascending, whatever the order in which they were created; 0 before 5."""
    made = {}
    for priority in (5, 0, 9, -1, 0, 3):
        made[(await given.job(priority=priority)).id] = priority
        await later(clock)
    entries = await given.polled(types=JOB_TYPES)
    came = [made.get(id_) for id_ in ids_of(entries)]
    expect(came == [-1, 0, 0, 3, 5, 9], "priorities -1, 0, 0, 3, 5, 9", str(came), "/jobs")


@requirement("RT-SCHED-03")
@alone
async def test_older_jobs_come_first(given: Given, clock: Clock) -> None:
    """Within one priority jobs come by createdAt ascending, across types."""
    made = []
    for i in range(10):
        made.append((await given.job(jobType=JOB_TYPES[i * 2 % 5])).id)
        await later(clock)
    came = ids_of(await given.polled(types=JOB_TYPES))
    wanted = [id_ for id_ in made if id_ in came]  # that each type is listed is judged elsewhere
    expect(len(came) > 5 and came == wanted, f"the order of creation {made}", str(came), "/jobs")


@requirement("RT-SCHED-50")
@alone
async def test_equal_jobs_come_by_id(given: Given, clock: Clock) -> None:
    """Jobs of one millisecond and one priority come by id, by code unit."""
    clock.needs_to_stand()
    made = [(await given.job(jobType=JOB_TYPES[i % 5])).id for i in range(12)]
    came = ids_of(await given.polled(types=JOB_TYPES))
    wanted = [id_ for id_ in sorted(made) if id_ in came]  # that each type is listed is judged elsewhere
    expect(len(came) > 6 and came == wanted, f"the order of ids {sorted(made)}", str(came), "/jobs")


@requirement("RT-SCHED-04")
@alone
async def test_no_poll_lists_more_than_fifty(api: RuntimeApi, given: Given) -> None:
    """Of 55 jobs a poll with the largest limit lists 50; a larger limit lists no more."""
    for _ in range(55):
        await given.job(snapshot="none")
    count = len(jobs_of(await api.poll(limit=50).succeeds()))
    expect(count == 50, "50 jobs", f"{count} jobs", "/jobs")
    answer = await api.poll(limit=51).answers()
    if answer.status == 200:
        expect(len(jobs_of(answer)) <= 50, "at most 50 jobs", f"{len(jobs_of(answer))} jobs", "/jobs")


@requirement("RT-SCHED-05")
@alone
async def test_no_poll_lists_more_than_it_asks_for(api: RuntimeApi, given: Given) -> None:
    """Of six jobs a poll with limit 1, 2, 5 lists as many, the first ones."""
    for _ in range(6):
        await given.job()
    everything = ids_of(await given.polled(types=JOB_TYPES))
    for limit in (1, 2, 5):
        came = ids_of(jobs_of(await api.poll(limit=limit).succeeds()))
        expect(came == everything[:limit], f"the first {limit} of {everything}", str(came), "/jobs")


@requirement("RT-SCHED-01", "RT-LOCK-11")
async def test_only_pending_jobs_are_listed(given: Given) -> None:
    """A pending job is listed; when it is locked or running it is not."""
    pending, locked, running = await given.listed_job(), await given.listed_job(), await given.listed_job()
    await given.api.lock(locked).succeeds()
    await given.api.lock(running).succeeds()
    await given.api.heartbeat(running).succeeds()
    expect(await given.offered(pending), "the pending job listed", "it is not")
    for job, state in ((locked, "locked"), (running, "running")):
        with about("RT-SCHED-01"):
            expect(not await given.offered(job), f"a {state} job not listed", "it is listed")


@requirement("RT-SCHED-01", "RT-POLL-08")
async def test_a_poll_sees_what_was_just_done(api: RuntimeApi, given: Given) -> None:
    """Created, polled, locked, polled, in no time, again and again: listed before the lock, and not after it."""
    for _ in range(AGAIN):
        job = await given.listed_job()
        with about("RT-POLL-08"):
            expect(await given.offered(job), "the job that was just created", "it is not listed", "/jobs")
        await given.locks(job)
        with about("RT-SCHED-01"):
            expect(not await given.offered(job), "a job that was just locked not listed", "it is listed", "/jobs")


@requirement("RT-SCHED-08", "RT-CANCEL-02", "RT-SM-18")
async def test_a_cancelled_job_is_never_listed(api: RuntimeApi, given: Given) -> None:
    """A cancelled job is not listed and can't be locked."""
    job = await given.listed_job()
    await given.states.set_up("cancel-job", {"jobId": job.id})
    with about("RT-SCHED-08", "RT-CANCEL-02"):
        expect(not await given.offered(job), "the cancelled job not listed", "it is listed")
    answer = await api.lock(job).answers()
    with about("RT-CANCEL-02", "RT-SM-18"):
        expect(answer.status >= 300, "a refusal", f"{answer.status}: the cancelled job was locked")
    expect(not await given.offered(job), "the cancelled job not listed", "it is listed")


@requirement("RT-SCHED-10", "RT-SM-22", "RT-RETRY-04")
async def test_a_lapsed_job_is_listed_again(given: Given) -> None:
    """After its lock lapsed another Runtime's poll lists the job again, and it can be locked."""
    job = await given.listed_job()
    await given.api.lock(job).succeeds()
    await given.lapse()
    again = ("RT-SCHED-10", "RT-SM-22", "RT-RETRY-04")
    await given.is_offered_again(job, shows=again)
    await given.comes_back(job, shows=again)


@requirement("RT-SCHED-09", "RT-SM-16")
async def test_an_expired_job_without_retries_is_never_listed(given: Given) -> None:
    """A job whose last attempt expired is failed: no poll lists it, nobody can lock it."""
    job = await given.listed_job(maxRetryCount=0)
    await given.api.lock(job).succeeds()
    await given.lapse()
    await given.stays_away(job)
    expect(not await given.offered(job), "the failed job not listed", "it is listed")


@requirement("RT-SM-51")
async def test_an_expired_job_is_not_handed_out_before_it_is_pending(given: Given) -> None:
    """Once a poll lists a lapsed job, lock grants it; there is no time in which it is listed and refused."""
    job = await given.listed_job()
    await given.api.lock(job).succeeds()
    await given.lapse()
    await given.is_offered_again(job)
    await given.comes_back(job, within=0, shows=("RT-SM-51",))


@requirement("RT-RETRY-56")
@alone
async def test_a_retried_job_keeps_its_place(given: Given, clock: Clock) -> None:
    """A job that went back to pending is listed where it was: by its priority and createdAt."""
    clock.needs_advance()  # it needs the queue for itself for longer than a lock lasts
    made = []
    for _ in range(3):
        made.append(await given.job())
        await later(clock)
    await given.api.lock(made[1], by="runtime-a").succeeds()
    await given.lapse()
    await given.settles(made[1])
    came = ids_of(await given.polled(types=JOB_TYPES))
    wanted = [job.id for job in made]
    expect(came == wanted, f"the order of creation {wanted}", str(came), "/jobs")
