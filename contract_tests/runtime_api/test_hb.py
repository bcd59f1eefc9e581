"""Heartbeats (seed 003 section 4.3, seed 000 section 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import about, expect, requirement
from contract_tests.client import RuntimeApi, describe

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

SEED_EXAMPLE = b'{"runtimeInstanceId":"runtime-001"}'
CANCEL_HEADER = "x-job-cancel-requested"


@requirement("RT-HB-01", "RT-HB-05", "RT-HB-06")
async def test_the_holders_heartbeat_is_204(api: RuntimeApi, given: Given) -> None:
    """A heartbeat by the holder: 204 with an empty body, as often as it likes."""
    job = await given.locked_job()
    for _ in range(3):
        with about("RT-HB-05", "RT-HB-06"):  # a body of a 204 comes behind the answer's end
            answer = await api.heartbeat(job).succeeds()
        with about("RT-HB-05"):
            expect(answer.status == 204, "204", describe(answer.response))
        with about("RT-HB-06"):
            expect(not answer.response.content, "an empty body", answer.response.text[:100])


@requirement("RT-HB-01", "RT-HB-05")
async def test_the_seeds_own_example_is_answered(api: RuntimeApi, given: Given) -> None:
    """The request of seed 003 section 4.3, as it stands there."""
    job = await given.locked_job("runtime-001")
    call = api.raw("POST", f"{job.path}/heartbeat", content=SEED_EXAMPLE, by="runtime-001")
    with about("RT-HB-01"):
        answer = await call.succeeds()
    with about("RT-HB-05"):
        expect(answer.status == 204, "204", describe(answer.response))


@requirement("RT-HB-03")
async def test_a_strangers_heartbeat_extends_nothing(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Another instance's heartbeat is refused and the lock lapses as if it had not been."""
    job = await given.locked_job("runtime-a")
    await clock.advance(given.timing.lock / 2)
    await api.heartbeat(job, by="runtime-b").refused()
    await clock.advance(given.timing.lock / 2 + 2 * clock.margin)
    await given.comes_back(job, shows=("RT-HB-03",))


@requirement("RT-HB-03")
async def test_the_former_holders_heartbeat_extends_nothing(api: RuntimeApi, given: Given) -> None:
    """A lost its lock, B took the job: A's heartbeat is refused, B's is accepted."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    await given.comes_back(job, by="runtime-b")
    await api.heartbeat(job, by="runtime-a").refused()
    await api.heartbeat(job, by="runtime-b").succeeds()


@requirement("RT-HB-04")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_heartbeat_extends_the_lock(api: RuntimeApi, given: Given, clock: Clock, state: str) -> None:
    """Three quarters into the lock a heartbeat, the first or a later one, keeps it for another 60 s from then."""
    make = given.locked_job if state == "locked" else given.running_job
    kept, dropped = [await make("runtime-a", timeoutSeconds=600) for _ in range(2)]
    await clock.advance(given.timing.lock * 0.75)
    for job in (kept, dropped):
        await api.heartbeat(job, by="runtime-a").succeeds()
    await clock.advance(given.timing.lock * 0.75)
    await api.heartbeat(kept, by="runtime-a").succeeds()
    await clock.advance(given.timing.lock * 0.25 + 2 * clock.margin)
    await given.comes_back(dropped, shows=("RT-HB-04",))


@requirement("RT-HB-04")
async def test_heartbeats_do_not_add_up(api: RuntimeApi, given: Given) -> None:
    """Ten heartbeats at once keep the job for 60 s, not for minutes."""
    job = await given.locked_job("runtime-a", timeoutSeconds=600)
    for _ in range(10):
        await api.heartbeat(job, by="runtime-a").succeeds()
    await given.lapse()
    await given.comes_back(job, shows=("RT-HB-04",))


@requirement("RT-HB-04")
async def test_a_heartbeat_sets_lock_until(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`lockUntil` is 60 s after the heartbeat, by the build's clock."""
    job = await given.locked_job()
    await clock.advance(1)
    before = await clock.now()
    await api.heartbeat(job).succeeds()
    after = await clock.now()
    until = await given.instant(job, "lockUntil")
    low, high = before + given.timing.lock * 1000, after + given.timing.lock * 1000
    expect(low <= until <= high, f"lockUntil within {low:.0f} to {high:.0f}", str(until), "/lockUntil")


@requirement("RT-HB-50")
@pytest.mark.parametrize("state", ["pending", "failed", "cancelled"])
async def test_without_a_lock_it_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """A job that is not locked or running: 409 LOCK_NOT_HELD."""
    make = {"pending": given.job, "failed": given.failed_job, "cancelled": given.cancelled_job}
    job = await make[state]()
    await api.heartbeat(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")


@requirement("RT-HB-50")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_stranger_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """Another instance than the holder: 409 LOCK_NOT_HELD."""
    job = await (given.locked_job("runtime-a") if state == "locked" else given.running_job("runtime-a"))
    await api.heartbeat(job, by="runtime-b").fails(409, "LOCK_NOT_HELD")
    await api.heartbeat(job, by="runtime-A").fails(409, "LOCK_NOT_HELD")
    await api.heartbeat(job, by="runtime-a").succeeds()


@requirement("RT-HB-51", "RT-SM-07", "RT-SM-08", "RT-SM-09", "RT-DB-26")
async def test_the_first_heartbeat_starts_the_run(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`locked` becomes `running`, `startedAt` is the instant of the first heartbeat."""
    job = await given.locked_job()
    locked = await given.inspect(job)
    expect(locked.get("startedAt") is None, "startedAt null before the first heartbeat", str(locked.get("startedAt")))
    await clock.advance(2)
    before = await clock.now()
    await api.heartbeat(job).succeeds()
    after = await clock.now()
    row = await given.inspect(job)
    with about("RT-SM-07", "RT-SM-08", "RT-SM-09"):
        expect(row.get("status") == "running", "status running", str(row.get("status")), "/status")
    started = row.get("startedAt")
    good = started is not None and before <= started <= after
    with about("RT-HB-51", "RT-DB-26"):
        expect(good, f"startedAt within {before} to {after}", str(started), "/startedAt")


@requirement("RT-HB-52")
async def test_later_heartbeats_leave_the_start(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`startedAt` stays that of the first heartbeat."""
    job = await given.running_job()
    first = await given.instant(job, "startedAt")
    await clock.advance(5)
    await api.heartbeat(job).succeeds()
    came = await given.instant(job, "startedAt")
    expect(came == first, f"startedAt {first}", str(came), "/startedAt")


@requirement("RT-HB-53")
async def test_a_refused_heartbeat_changes_nothing(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A stranger's heartbeat leaves every column as it was, in each state."""
    for job in (await given.job(), await given.locked_job(), await given.running_job(), await given.cancelled_job()):
        before = await given.inspect(job)
        await clock.advance(0.01)
        await api.heartbeat(job, by="runtime-b").refused()
        await given.unchanged(job, before)


@requirement("RT-HB-09", "RT-CANCEL-04", "RT-CANCEL-05")
async def test_the_holder_learns_of_a_cancel_request(api: RuntimeApi, given: Given) -> None:
    """The heartbeat after the user switched AI off is answered in another way than the one before."""
    job = await given.running_job()
    before = await api.heartbeat(job).answers()
    await given.revoke_ai_consent(job.user_id)
    after = await api.heartbeat(job).answers()
    marks = {name for name in after.headers if "cancel" in name} - set(before.headers)
    told = after.status != before.status or after.response.content != before.response.content or bool(marks)
    with about("RT-HB-09", "RT-CANCEL-05"):
        expect(told, "a sign of the cancel request at the next heartbeat", f"the same answer as before: {after.status}")


@requirement("RT-HB-54", "RT-HB-55", "RT-CANCEL-53", "RT-CANCEL-54")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_cancel_request_comes_with_the_204(api: RuntimeApi, given: Given, clock: Clock, state: str) -> None:
    """204 with `x-job-cancel-requested: true`, at each heartbeat, and the lock is extended all the same."""
    job = await (given.locked_job(timeoutSeconds=600) if state == "locked" else given.running_job(timeoutSeconds=600))
    await given.revoke_ai_consent(job.user_id)
    await clock.advance(given.timing.lock * 0.75)
    for _ in range(2):
        with about("RT-HB-54"):
            answer = await api.heartbeat(job).succeeds(204)
            expect(not answer.response.content, "an empty body", answer.response.text[:100])
        came = answer.headers.get(CANCEL_HEADER)
        with about("RT-HB-55"):
            expect(came == "true", f"{CANCEL_HEADER}: true", str(came), CANCEL_HEADER)
    await clock.advance(given.timing.lock * 0.75)
    with about("RT-HB-54"):
        await api.heartbeat(job).succeeds(204)


@requirement("RT-HB-56")
async def test_without_a_cancel_request_there_is_no_header(api: RuntimeApi, given: Given) -> None:
    """The header is absent for a job that is to go on, also for another user's jobs after a revocation."""
    job, other = await given.running_job(), await given.running_job()
    await given.revoke_ai_consent(other.user_id)
    for _ in range(2):
        answer = await api.heartbeat(job).succeeds()
        came = answer.headers.get(CANCEL_HEADER)
        expect(came is None, f"no {CANCEL_HEADER}", str(came), CANCEL_HEADER)


@requirement("RT-HB-03")
async def test_a_heartbeat_revives_no_lapsed_lock(api: RuntimeApi, given: Given) -> None:
    """After its lock lapsed the holder's heartbeat is refused, and the job is for others."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    answer = await api.heartbeat(job, by="runtime-a").answers()
    expect(400 <= answer.status < 500, "a refusal (4xx)", describe(answer.response))
    await given.comes_back(job, by="runtime-b")
