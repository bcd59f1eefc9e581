"""Steps that checks of several areas share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import expect, expect_fields
from contract_tests.client import JobRef

if TYPE_CHECKING:
    from contract_tests.given import Given

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


async def runs_out(given: Given, job: JobRef, times: int) -> None:
    """Lock and lose the job so many times; after that it stays away."""
    for attempt in range(times):
        answer = await given.comes_back(job, by=f"runtime-{attempt}")
        number = answer.json.get("attemptNo", attempt)
        expect(number == attempt, f"attemptNo {attempt} at grant {attempt + 1}", str(number), "/attemptNo")
        await given.lapse()
    await given.stays_away(job)


async def rerun(given: Given, job: JobRef) -> JobRef:
    """The job that an Admin's rerun makes of a failed one."""
    values = await given.states.set_up("rerun-job", {"jobId": job.id})
    return JobRef(values["jobId"], job.user_id, None)
