"""Consent to AI is revoked while a job runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.scenarios_help import data, delay, good, job, locks, plan, refusal, script, status
from contract_tests.runtime.scenarios_steps import MOMENT, START, TAIL, asked, at_the_model, next_job, revoke
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing

_RULES = ("RT-HB-09", "RT-CANCEL-05", "RT-CANCEL-70", "RT-CANCEL-71", "RT-LOG-70", "RT-LOG-72")
_A_WHILE = 1.5
"""Seconds in which a further report would come."""


def _running(timing: Timing, *calls: Any) -> dict[str, Any]:
    jobs = data(timing, job("job-unwanted", timeoutSeconds=locks(timing, 6)))
    return {"data": jobs, "model": [script("job-unwanted", *calls)]}


@scenario(world=lambda timing: _running(timing, good(timing.lock * 0.8)), model_timeout=2, rules=_RULES)
async def in_the_middle(stage: Stage) -> None:
    """Consent is revoked while the model is at work; it would answer in time for a result."""
    if not await at_the_model(stage, "job-unwanted"):
        return
    await revoke(stage)
    await stage.done("job-unwanted", within=stage.timing.lock * 0.8 + TAIL)
    await next_job(stage)


def _refusing(timing: Timing) -> dict[str, Any]:
    return _running(timing, refusal(503, after=timing.lock * 0.5))


@scenario(world=_refusing, model_timeout=2, rules=_RULES)
async def before_a_further_call(stage: Stage) -> None:
    """Consent is revoked while the model is at work, which refuses later with 503: nobody may call it again."""
    if not await at_the_model(stage, "job-unwanted"):
        return
    await revoke(stage)
    await stage.done("job-unwanted", within=stage.timing.lock * 1.5 + TAIL)


def _crossing(timing: Timing) -> dict[str, Any]:
    # No heartbeat comes through that would tell of it: the result's own answer does.
    plans = [
        plan(delay(min(timing.lock * 0.35, 2)), "submitResult", "job-unwanted", nth=[1]),
        plan(status(503), "heartbeatJob", "job-unwanted", first=2),
    ]
    return _running(timing, good()) | {"faults": plans}


@scenario(world=_crossing, model_timeout=2, rules=("RT-CANCEL-72",))
async def result_on_its_way(stage: Stage) -> None:
    """Consent is revoked while the result is on its way."""
    if await stage.until(asked(MODEL, "job-unwanted"), START, "the model call of job-unwanted"):
        await stage.wait(MOMENT)
        await revoke(stage)
    await stage.done("job-unwanted", within=stage.timing.lock + TAIL)
    await stage.wait(_A_WHILE)
