"""The API's clock is not the Runtime's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import data, good, job, locks, patch, plan, put, script, skew
from contract_tests.runtime.scenarios_steps import START, TAIL, at_the_model, jump
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Plan, Stage, Timing

_LONG = 1.25
"""What the model takes, in locks."""
_RULES = ("RT-HB-60", "RT-HB-64", "RT-HB-10")


def _long(timing: Timing, *plans: Plan) -> dict[str, Any]:
    jobs = data(timing, job("job-long", timeoutSeconds=locks(timing, 6)))
    return {"data": jobs, "model": [script("job-long", good(timing.lock * _LONG), good())], "faults": list(plans)}


async def _until_done(stage: Stage) -> None:
    await stage.done("job-long", within=START + stage.timing.lock * _LONG + TAIL)


@scenario(world=lambda timing: _long(timing, plan(skew(30), "lockJob")), model_timeout=2, rules=_RULES)
async def ahead(stage: Stage) -> None:
    """The API's clock is 30 s ahead of the Runtime's, and the model takes longer than a lock lasts."""
    await _until_done(stage)


@scenario(slow=True, world=_long, model_timeout=2, rules=_RULES)
async def jumps(stage: Stage) -> None:
    """The API's clock jumps ahead by three tenths of a lock while the model is at work."""
    if await at_the_model(stage, "job-long"):
        await jump(stage, stage.timing.lock * 0.3)
    await _until_done(stage)


_INSTANTS = {
    "job-behind": skew(-30),
    "job-seconds": patch(put("/lockUntil", 1_700_000_000)),
    "job-far": patch(put("/lockUntil", 32_503_680_000_000)),
}


def _odd(timing: Timing) -> dict[str, Any]:
    plans = [plan(fault, "lockJob", id_) for id_, fault in _INSTANTS.items()]
    # Above the heartbeat's interval, so that one is due.
    jobs, slow = data(timing, *map(job, _INSTANTS)), good(timing.lock * 0.4)
    return {"data": jobs, "faults": plans, "model": [script(None, slow)]}


@scenario(world=_odd, rules=("RT-HB-60", "RT-HB-64"))
async def behind(stage: Stage) -> None:
    """The locks of three jobs end, by the API's clock, 30 s too early, in 1970, and in 3000."""
    await stage.done(*_INSTANTS, within=START + 3 * (stage.timing.lock * 0.4 + 2))
