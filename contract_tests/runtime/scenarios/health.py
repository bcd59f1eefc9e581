"""The Runtime's own health operation, asked while it waits and while it works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.scenarios_help import good, script
from contract_tests.runtime.scenarios_steps import all_done, at_the_model, start
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage

_SETTLED = 0.7
"""Seconds after which ``activeJobs`` has to be true: 0.5, and the way there."""


@scenario(
    slow=True,
    world=lambda _: {"model": [script(None, good(2.6))]},
    model_timeout=2,
    rules=(*(f"RT-HEALTH-{n:02}" for n in (*range(1, 11), 51, 52, 53, 54)), "RT-TIME-05", "RT-POLL-02"),
)
async def idle_and_busy(stage: Stage) -> None:
    """Health is asked before the first job, during it and after it, and then with two jobs."""
    await start(stage)
    await stage.health()
    for count in (1, 2):
        jobs = [await stage.job() for _ in range(count)]
        await at_the_model(stage, jobs[0])
        await stage.wait(_SETTLED)
        await stage.health()
        await all_done(stage, *jobs, each=3)
        await stage.wait(_SETTLED)
        await stage.health()
