"""What scenarios wait for, and steps that several of them take. Nothing here judges.

Waits are bounds for Runtimes that are slow by right: they end when what is waited for was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract_tests.runtime.history import History
    from contract_tests.runtime.stage import Stage

    Condition = Callable[[History], Any]

START = 8.0
"""Seconds for a Runtime to start and to come to a job that waits: it may poll but once a second."""
EACH = 2.0
"""Seconds for a job of which nothing is slow, in a Runtime that does one after the other."""
REPEATS = 8.0
"""Seconds that a Runtime may spend on repeating calls of its own accord, a job."""
TAIL = 11.0
"""Seconds for what is due within 10 s: logs, further tries of a report, the next poll."""
ENDING = 31.0
"""Seconds for a process to end after SIGTERM: it has 30."""
MOMENT = 0.3
"""Seconds for the request that follows an answer at once to be on its way."""


def asked(operation: str, job: str | None = None, times: int = 1) -> Condition:
    """So many requests of an operation came, about a job."""
    return lambda history: len(_of(history, operation, job)) >= times


def answered(operation: str, job: str | None = None, times: int = 1) -> Condition:
    """So many successes of an operation reached the Runtime."""
    return lambda history: len([call for call in _of(history, operation, job) if call.ok]) >= times


def listed(job: str) -> Condition:
    """A poll's answer listed a job."""
    return lambda history: any(
        isinstance(entry, dict) and entry.get("id") == job
        for poll in history.polls
        if poll.ok and isinstance(poll.told("jobs"), list)
        for entry in poll.told("jobs")
    )


def reported(job: str, times: int = 1) -> Condition:
    """So many requests came that report on a job: results and failures."""
    return lambda history: len(_of(history, "submitResult", job) + _of(history, "failJob", job)) >= times


def logged(*jobs: str) -> Condition:
    """Every model call of these jobs that ended has a log."""

    def holds(history: History) -> bool:
        entries = [entry for _, entry in history.logs]
        return all(
            len({str(entry.get("traceId")) for entry in entries if entry.get("jobId") == job})
            >= len(_of(history, MODEL, job))
            for job in jobs
        )

    return holds


def all_of(*conditions: Condition) -> Condition:
    """Each of these holds."""
    return lambda history: all(condition(history) for condition in conditions)


def _of(history: History, operation: str, job: str | None) -> list[Any]:
    return [call for call in history.of(operation) if job is None or call.job == job]


async def start(stage: Stage) -> bool:
    """Wait until the Runtime has polled; whether it did."""
    return await stage.until(asked("pollJobs"), START, "the first poll")


async def at_the_model(stage: Stage, job: str, within: float = START) -> bool:
    """Wait until the Runtime should be in its model call for a job; whether it came that far."""
    came = await stage.until(answered("resolveCredential", job), within, f"the credential of {job} to be resolved")
    if came:
        await stage.wait(MOMENT)
    return came


async def all_done(stage: Stage, *jobs: str, each: float = EACH) -> bool:
    """Wait until these jobs are settled and logged; whether they are. ``each``: seconds that one may take."""
    return await stage.done(*jobs, within=START + each * len(jobs))


async def next_job(stage: Stage, within: float = START) -> str:
    """A new job, which goes well, to see that the Runtime still works; its id."""
    job = await stage.job()
    await stage.done(job, within=within + EACH)
    return job


async def polls_again(stage: Stage, times: int = 1) -> bool:
    """Wait for so many further polls; whether they came. Each may take 10 s after an error."""
    seen = len((await stage.history()).polls)
    return await stage.until(asked("pollJobs", times=seen + times), TAIL, f"{times} further poll(s)")


async def jump(stage: Stage, seconds: float) -> None:
    """Move the API's clock forward."""
    await stage.state("advance-time", seconds=seconds)
    stage.note(f"the API's clock jumped {seconds:g} s ahead")


async def revoke(stage: Stage, user: str = "user-1") -> None:
    """A user switches AI off."""
    await stage.state("revoke-ai-consent", userId=user)
    stage.note(f"{user} revoked the consent to AI")


async def rival_locks(stage: Stage, job: str) -> bool:
    """Another Runtime asks for a job's lock; whether it got it."""
    status = await stage.rival("lockJob", job)
    stage.note(f"another Runtime asked for the lock of {job}: {status}")
    return status == 200


async def rival_fails(stage: Stage, job: str, *, retryable: bool) -> None:
    """The other Runtime, which holds a job's lock, gives it up: for a while, or for good."""
    code = "NETWORK_ERROR" if retryable else "INVALID_SCHEMA"
    status = await stage.rival("failJob", job, errorCode=code, errorMessage="of a rival", retryable=retryable)
    stage.note(f"the other Runtime failed {job} ({'retryable' if retryable else 'for good'}): {status}")
