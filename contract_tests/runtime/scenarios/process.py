"""Signals: the Runtime is to end, is killed, or is stopped for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import data, delay, good, job, locks, never, plan, script
from contract_tests.runtime.scenarios_steps import (
    EACH,
    ENDING,
    MOMENT,
    START,
    TAIL,
    answered,
    at_the_model,
    listed,
    next_job,
    start,
)
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing

_ENDS = ("RT-HEALTH-60", "RT-HEALTH-64")
_HOLDS = (*_ENDS, "RT-HEALTH-62", "RT-HEALTH-63", "RT-LOG-70")


@scenario(by_hand=False, rules=_ENDS)
async def ends_idle(stage: Stage) -> None:
    """SIGTERM comes while there is nothing to do; then there is a job."""
    await start(stage)
    await stage.signal("TERM")
    await stage.job()
    await stage.exited(ENDING)


@scenario(world=lambda timing: {"data": data(timing, job("job-early"))}, by_hand=False, late=True, rules=_ENDS)
async def ends_at_once(stage: Stage) -> None:
    """SIGTERM comes in the first tenth of a second."""
    await stage.restart()
    await stage.wait(0.05)
    await stage.signal("TERM")
    await stage.exited(ENDING)


def _long(timing: Timing) -> dict[str, Any]:
    # Two locks where that is less than the 30 s that the process has, so that heartbeats matter.
    jobs = data(timing, job("job-held", timeoutSeconds=locks(timing, 6)), job("job-next", priority=1))
    return {"data": jobs, "model": [script("job-held", good(min(timing.lock * 2, 20)))]}


@scenario(slow=True, world=_long, by_hand=False, model_timeout=3, rules=(*_HOLDS, "RT-HEALTH-55"))
async def ends_with_a_job(stage: Stage) -> None:
    """SIGTERM comes while the model is at work; its answer would still come in time."""
    if not await at_the_model(stage, "job-held"):
        return
    await stage.signal("TERM")
    await stage.wait(MOMENT)
    await stage.health()
    await stage.job()
    await stage.exited(ENDING)


def _silent(timing: Timing) -> dict[str, Any]:
    # Its own limit ends the job, too: it has to be later than the 30 s after which the process must have ended.
    held = job("job-held", timeoutSeconds=max(locks(timing, 6), 45))
    return {"data": data(timing, held), "model": [script(None, never())]}


@scenario(slow=True, world=_silent, by_hand=False, model_timeout=3, rules=_HOLDS)
async def ends_with_a_silent_model(stage: Stage) -> None:
    """SIGTERM comes during a model call that is never answered."""
    if not await at_the_model(stage, "job-held"):
        return
    await stage.signal("TERM")
    await stage.exited(ENDING)


@scenario(slow=True, world=_long, by_hand=False, model_timeout=3, rules=_HOLDS)
async def told_twice(stage: Stage) -> None:
    """SIGTERM comes twice while the model is at work."""
    if not await at_the_model(stage, "job-held"):
        return
    await stage.signal("TERM")
    await stage.wait(0.5)
    await stage.signal("TERM")
    await stage.exited(ENDING)


def _slow_lock(timing: Timing) -> dict[str, Any]:
    plans = [plan(delay(min(timing.lock * 0.6, 2), "answer"), "lockJob")]
    return {"data": data(timing, job("job-late")), "faults": plans}


@scenario(slow=True, world=_slow_lock, by_hand=False, rules=(*_ENDS, "RT-HEALTH-61"))
async def ends_while_locking(stage: Stage) -> None:
    """SIGTERM comes while a lock is asked for, which is granted after it."""
    if not await stage.until(listed("job-late"), START, "job-late to be listed"):
        return
    await stage.wait(MOMENT)
    await stage.signal("TERM")
    await stage.exited(ENDING)


def _killed(timing: Timing) -> dict[str, Any]:
    return {"data": data(timing, job("job-held")), "model": [script("job-held", good(timing.lock * 0.5), good())]}


@scenario(slow=True, world=_killed, by_hand=False, model_timeout=1, rules=("RT-AUTH-60", "RT-LOCK-14", "RT-RES-80"))
async def killed(stage: Stage) -> None:
    """The Runtime is killed with a job in hand and started anew; the job comes back after a lock."""
    if not await at_the_model(stage, "job-held"):
        return
    await stage.signal("KILL")
    await stage.exited(5)
    await stage.restart()
    # The call that was under way has no log, and nobody can write one.
    again = stage.timing.lock + START + EACH
    await stage.until(answered("submitResult", "job-held"), again, "the result of job-held")
    await stage.until(answered("submitInvocationLogs"), TAIL, "a log")


@scenario(slow=True, world=_killed, by_hand=False, model_timeout=1, rules=("RT-HB-63", "RT-HB-62", "RT-LOG-70"))
async def stopped_for_a_while(stage: Stage) -> None:
    """The Runtime is stopped for longer than the lock lasts, and then goes on."""
    if not await at_the_model(stage, "job-held"):
        return
    await stage.signal("STOP")
    await stage.wait(stage.timing.lock * 1.1)
    await stage.signal("CONT")
    await stage.done("job-held", within=START + TAIL)
    await next_job(stage)
