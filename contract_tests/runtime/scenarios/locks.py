"""Locks: asked for in vain, lost, taken over by another Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import cut, data, delay, good, job, locks, plan, script, status
from contract_tests.runtime.scenarios_steps import (
    EACH,
    MOMENT,
    START,
    TAIL,
    all_done,
    all_of,
    asked,
    at_the_model,
    jump,
    listed,
    logged,
    next_job,
    polls_again,
    reported,
    rival_fails,
    rival_locks,
)
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing


def _wanted(timing: Timing) -> dict[str, Any]:
    # Whoever asks first for the lock waits a second, so that the rival, who asks second, is first to get it.
    jobs = data(timing, job("job-wanted"), job("job-other", priority=1))
    return {"data": jobs, "faults": [plan(delay(1), "lockJob", "job-wanted", nth=[1])]}


@scenario(world=_wanted, rules=("RT-LOCK-60", "RT-LOCK-61", "RT-LOCK-14", "RT-LOCK-63"))
async def another_is_first(stage: Stage) -> None:
    """Another Runtime gets the lock of a job that was listed; later it gives the job back."""
    await stage.until(listed("job-wanted"), START, "job-wanted to be listed")
    await stage.wait(MOMENT)
    await rival_locks(stage, "job-wanted")
    await stage.until(asked("lockJob", "job-wanted"), 1 + EACH, "the lock of job-wanted to be asked for")
    await all_done(stage, "job-other")
    await polls_again(stage, 2)
    await rival_fails(stage, "job-wanted", retryable=True)
    await all_done(stage, "job-wanted")


def _refusing(timing: Timing) -> dict[str, Any]:
    refused = {"job-taken": status(409), "job-broken": status(500), "job-hidden": status(404), "job-busy": status(503)}
    jobs = data(timing, *map(job, refused), job("job-free", priority=9))
    return {"data": jobs, "faults": [plan(fault, "lockJob", id_, nth=[1, 2]) for id_, fault in refused.items()]}


@scenario(world=_refusing, rules=("RT-LOCK-14", "RT-LOCK-60", "RT-LOCK-61", "RT-ERR-16"))
async def refused_locks(stage: Stage) -> None:
    """The locks of four jobs are refused twice: 409, 500, 404 and 503; a fifth is free, a sixth comes later."""
    await all_done(stage, "job-free", "job-taken", "job-broken", "job-hidden", "job-busy")
    await all_done(stage, await stage.job())


def _lost(timing: Timing) -> dict[str, Any]:
    faults = {
        "job-closed": cut("close", "after-commit"),
        "job-reset": cut("reset", "after-commit"),
        "job-half": cut("close", "mid-body"),
    }
    jobs = data(timing, *map(job, faults))
    return {"data": jobs, "faults": [plan(fault, "lockJob", id_, nth=[1]) for id_, fault in faults.items()]}


@scenario(slow=True, world=_lost, rules=("RT-LOCK-62", "RT-LOCK-60", "RT-LOCK-63", "RT-LOCK-14"))
async def lost_answers(stage: Stage) -> None:
    """The locks of three jobs are granted, and the answers are lost; left alone, the jobs come back after a lock."""
    # A Runtime that leaves them gets each again, in its second attempt.
    await stage.done("job-closed", "job-reset", "job-half", within=stage.timing.lock + START + 3 * EACH)


def _slow_model(timing: Timing) -> dict[str, Any]:
    # Above the heartbeat's interval (a quarter of a lock), and below a lock.
    jobs = data(timing, job("job-taken", timeoutSeconds=locks(timing, 6)))
    return {"data": jobs, "model": [script("job-taken", good(timing.lock * 0.6), good())]}


@scenario(world=_slow_model, model_timeout=2, rules=("RT-HB-62", "RT-LOG-70", "RT-LOG-72"))
async def taken_over(stage: Stage) -> None:
    """The lock lapses by the API's clock while the model is at work, and another Runtime takes the job over."""
    if not await at_the_model(stage, "job-taken"):
        return
    await jump(stage, stage.timing.lock * 1.1)
    await rival_locks(stage, "job-taken")
    # Whoever goes on reports when the model has answered.
    await stage.until(reported("job-taken"), stage.timing.lock * 0.6 + 1, "a report in spite of the lost lock")
    await rival_fails(stage, "job-taken", retryable=False)
    await stage.until(logged("job-taken"), TAIL, "the logs of job-taken")
    await next_job(stage)


@scenario(world=_slow_model, model_timeout=2, rules=("RT-SCHED-61", "RT-LOCK-63", "RT-HB-62", "RT-LOG-70"))
async def offered_again(stage: Stage) -> None:
    """The lock lapses by the API's clock, and polls offer the job again while its first run goes on."""
    if not await at_the_model(stage, "job-taken"):
        return
    await jump(stage, stage.timing.lock * 1.1)
    await all_done(stage, "job-taken", each=stage.timing.lock)


_GONE = {
    ("job-no-snapshot", "getSnapshot"): status(409, "LOCK_NOT_HELD"),
    ("job-no-key", "resolveCredential"): status(409, "LOCK_NOT_HELD"),
    ("job-vanished", "getSnapshot"): status(404, "JOB_NOT_FOUND"),
    ("job-no-fail", "failJob"): status(404, "JOB_NOT_FOUND"),
    ("job-no-result", "submitResult"): status(409, "LOCK_NOT_HELD"),
    ("job-forgotten", "heartbeatJob"): status(404, "JOB_NOT_FOUND"),
}


def _gone(timing: Timing) -> dict[str, Any]:
    jobs = [job(id_, maxRetryCount=0, timeoutSeconds=locks(timing, 6)) for id_, _ in _GONE]
    jobs[3]["snapshotId"] = "snap-missing"
    # The last one learns of it by a heartbeat, while the model is at work.
    slow = script("job-forgotten", good(timing.lock * 0.6))
    faults = [plan(fault, operation, id_) for (id_, operation), fault in _GONE.items()]
    return {"data": data(timing, *jobs), "faults": faults, "model": [slow]}


@scenario(world=_gone, model_timeout=2, rules=("RT-HB-62", "RT-ERR-16", "RT-LOCK-61", "RT-LOG-70"))
async def told_so(stage: Stage) -> None:
    """The API says of six jobs that the lock is not held or the job not there, each at another operation."""
    told = [asked(operation, id_) for id_, operation in _GONE]
    await stage.until(all_of(*told), START + 5 * EACH + stage.timing.lock, "six jobs to be told lost")
    # Whoever goes on with the last one reports when the model has answered.
    await stage.until(reported("job-forgotten"), stage.timing.lock * 0.6 + 1, "a report in spite of the lost job")
    await next_job(stage)
    await stage.until(logged("job-no-result", "job-forgotten"), TAIL, "the logs of two jobs")
