"""Heartbeats: of jobs that take longer than a lock lasts, and such as fail, hang, or come late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import cut, data, delay, good, hang, job, locks, plan, script, status
from contract_tests.runtime.scenarios_steps import START, TAIL, all_done, at_the_model, logged, reported
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Plan, Stage, Timing

LONG = 1.25
"""What the model takes, in locks: without a heartbeat the lock lapses before."""
_HOLDS = ("RT-HB-10", "RT-HB-64")


def _long(timing: Timing, *faults: Plan, **columns: Any) -> dict[str, Any]:
    jobs = data(timing, job("job-long", timeoutSeconds=locks(timing, 6), **columns))
    return {"data": jobs, "model": [script("job-long", good(timing.lock * LONG), good())], "faults": list(faults)}


async def _until_done(stage: Stage) -> None:
    await stage.done("job-long", within=START + stage.timing.lock * LONG + TAIL)


@scenario(slow=True, world=_long, model_timeout=2, rules=("RT-HB-01", "RT-HB-02", "RT-HB-08", *_HOLDS))
async def longer_than_the_lock(stage: Stage) -> None:
    """The model takes longer than a lock lasts."""
    await _until_done(stage)


def _some_fail(timing: Timing) -> dict[str, Any]:
    faults = [status(500), status(503), cut("reset"), cut("close", "after-commit")]
    plans = [plan(fault, "heartbeatJob", "job-long", nth=[2 * i + 1]) for i, fault in enumerate(faults)]
    return _long(timing, *plans)


@scenario(slow=True, world=_some_fail, model_timeout=2, rules=("RT-HB-61", *_HOLDS))
async def some_fail(stage: Stage) -> None:
    """Every second heartbeat of a long job fails: 500, 503, reset, its answer lost."""
    await _until_done(stage)


def _one_hangs(timing: Timing) -> dict[str, Any]:
    return _long(timing, plan(hang(), "heartbeatJob", "job-long", nth=[2]))


@scenario(slow=True, world=_one_hangs, model_timeout=2, rules=("RT-HB-61", *_HOLDS))
async def one_hangs(stage: Stage) -> None:
    """The second heartbeat of a long job is never answered."""
    await _until_done(stage)


def _slow(timing: Timing) -> dict[str, Any]:
    return _long(timing, plan(delay(timing.lock * 0.4, "answer"), "heartbeatJob", "job-long"))


@scenario(slow=True, world=_slow, model_timeout=2, rules=_HOLDS)
async def slow_answers(stage: Stage) -> None:
    """Each heartbeat's answer takes four tenths of a lock."""
    await _until_done(stage)


def _black_hole(timing: Timing) -> dict[str, Any]:
    return _long(timing, plan(hang(), "heartbeatJob", "job-long"), maxRetryCount=0)


@scenario(slow=True, world=_black_hole, model_timeout=2, rules=("RT-HB-63", "RT-HB-61", "RT-LOG-70"))
async def black_hole(stage: Stage) -> None:
    """No heartbeat is ever answered; the model answers when the lock has lapsed."""
    await _beyond_the_lock(stage)


def _all_fail(timing: Timing) -> dict[str, Any]:
    return _long(timing, plan(status(503), "heartbeatJob", "job-long"), maxRetryCount=0)


@scenario(slow=True, world=_all_fail, model_timeout=2, rules=("RT-HB-63", "RT-HB-61", "RT-LOG-70"))
async def all_fail(stage: Stage) -> None:
    """Every heartbeat is answered with 503; the model answers when the lock has lapsed."""
    await _beyond_the_lock(stage)


async def _beyond_the_lock(stage: Stage) -> None:
    if not await at_the_model(stage, "job-long"):
        return
    await stage.until(reported("job-long"), stage.timing.lock * LONG + 1, "a report in spite of the lapsed lock")
    await stage.until(logged("job-long"), TAIL, "the log of job-long")


def _one_after_the_other(timing: Timing) -> dict[str, Any]:
    jobs = [job(f"job-{number}", timeoutSeconds=locks(timing, 6)) for number in range(4)]
    return {"data": data(timing, *jobs), "model": [script(None, good(timing.lock * 0.5))]}


@scenario(slow=True, world=_one_after_the_other, model_timeout=2, rules=("RT-HB-10", "RT-HB-64", "RT-SCHED-64"))
async def many_at_once(stage: Stage) -> None:
    """Four jobs wait, whose model calls take longer than a lock lasts when they are made one after the other."""
    await all_done(stage, *(f"job-{number}" for number in range(4)), each=stage.timing.lock * 0.6)
