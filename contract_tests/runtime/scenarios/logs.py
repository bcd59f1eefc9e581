"""Invocation logs that can't be submitted: nothing of it is to touch the jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import cut, data, hang, job, plan, rate_limit, refusal, script, status
from contract_tests.runtime.scenarios_steps import EACH, START, TAIL, all_of, logged, next_job, reported
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing

_JOBS = ("job-a", "job-b", "job-c", "job-d")


_FAULTS = (
    status(500),
    cut("reset"),
    status(400),
    cut("close", "after-commit"),
    status(413),
    cut("close", "mid-body"),
    status(401),
    rate_limit(0),
)
"""One at each submission, in turn."""


def _refused(timing: Timing) -> dict[str, Any]:
    plans = [
        plan(fault, "submitInvocationLogs", first=i, every=len(_FAULTS)) for i, fault in enumerate(_FAULTS, start=1)
    ]
    jobs = data(timing, *(job(id_, maxRetryCount=0) for id_ in _JOBS))
    return {"data": jobs, "model": [script("job-d", refusal(401))], "faults": plans}


@scenario(world=_refused, rules=("RT-LOG-10", "RT-LOG-09", "RT-LOG-71", "RT-AUTH-61", "RT-ERR-16"))
async def refused(stage: Stage) -> None:
    """Every submission of logs fails: 500, 400, 413, 401, 429 and lost connections in turn."""
    await stage.until(all_of(*map(reported, _JOBS)), START + 4 * EACH, "a report on each of four jobs")
    await stage.until(logged(*_JOBS), TAIL, "a log of each model call")
    await next_job(stage)


def _hanging(timing: Timing) -> dict[str, Any]:
    jobs = data(timing, *(job(id_, maxRetryCount=0) for id_ in _JOBS))
    return {"data": jobs, "faults": [plan(hang(), "submitInvocationLogs")]}


@scenario(slow=True, world=_hanging, rules=("RT-LOG-10",))
async def hanging(stage: Stage) -> None:
    """No submission of logs is ever answered."""
    await stage.until(all_of(*map(reported, _JOBS)), START + 4 * EACH, "a report on each of four jobs")
    further = await stage.job()
    await stage.until(reported(further), START, f"a report on {further}")
