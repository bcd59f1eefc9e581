"""Polls: that find nothing, that fail, that answer oddly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import (
    cut,
    gateway,
    hang,
    patch,
    plan,
    put,
    rate_limit,
    remove,
    spoilt,
    status,
)
from contract_tests.runtime.scenarios_steps import START, TAIL, asked, next_job, polls_again, start
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Stage, Timing

_POLLS_ON = ("RT-SCHED-60", "RT-SCHED-61", "RT-SCHED-62")


@scenario(rules=("RT-POLL-01", "RT-SCHED-07", "RT-SCHED-60", "RT-SCHED-61"))
async def empty_queue(stage: Stage) -> None:
    """There is nothing to do for a while, then a job."""
    await start(stage)
    await stage.until(asked("pollJobs", times=8), START, "eight polls of an empty queue")
    await next_job(stage)


def _troubles(timing: Timing) -> dict[str, Any]:
    faults = [status(500), gateway(502), rate_limit(1), cut("reset"), cut("close", "mid-body")]
    # Every second one goes well, so that waits that grow with errors in a row stay short; then three in a row.
    plans = [plan(fault, "pollJobs", nth=[2 * i + 1]) for i, fault in enumerate(faults)]
    plans += [plan(hang(min(timing.lock, 4)), "pollJobs", nth=[11]), plan(status(503), "pollJobs", nth=[13, 14, 15])]
    return {"faults": plans}


@scenario(slow=True, world=_troubles, rules=_POLLS_ON)
async def failing_polls(stage: Stage) -> None:
    """Every second poll fails, each time in another way, then three in a row."""
    await start(stage)
    await stage.until(asked("pollJobs", times=16), 4 * TAIL, "sixteen polls, of which nine fail")
    await next_job(stage)


def _odd(_: Timing) -> dict[str, Any]:
    faults = [
        status(204),
        patch(remove("/jobs")),
        patch(put("/jobs", None)),
        spoilt("truncated-json"),
        patch(put("", "<!doctype html><title>Welcome</title>")),
        spoilt("malformed-json"),
    ]
    return {"faults": [plan(fault, "pollJobs", nth=[2 * i + 2]) for i, fault in enumerate(faults)]}


@scenario(slow=True, world=_odd, rules=(*_POLLS_ON, "RT-ERR-85"))
async def odd_answers(stage: Stage) -> None:
    """Every second poll succeeds with an odd answer: none, no list, null, cut-off JSON, a page."""
    await start(stage)
    await stage.until(asked("pollJobs", times=13), 2.5 * TAIL, "thirteen polls, of which six are odd")
    await next_job(stage)


def _unauthorized(_: Timing) -> dict[str, Any]:
    return {
        "faults": [plan(status(401), "pollJobs", nth=[2, 3, 4, 5, 6]), plan(status(403), "pollJobs", nth=[8, 9, 10])]
    }


@scenario(slow=True, world=_unauthorized, rules=("RT-AUTH-61", "RT-AUTH-62", "RT-SCHED-60", "RT-SCHED-61"))
async def refused_polls(stage: Stage) -> None:
    """Polls are refused with 401, then with 403, then the key is right again."""
    await start(stage)
    await stage.until(asked("pollJobs", times=11), 2.5 * TAIL, "eleven polls, of which eight are refused")
    await next_job(stage, within=TAIL)


@scenario(world=lambda _: {"faults": [plan(cut("reset"))]}, rules=(*_POLLS_ON, "RT-POLL-72"))
async def api_comes_late(stage: Stage) -> None:
    """No request reaches the API at first: each connection is reset, until the API is there."""
    await stage.until(asked("pollJobs", times=3), START + TAIL, "three polls in vain")
    await stage.clear_faults()
    stage.note("the API is there")
    await polls_again(stage)
    await next_job(stage)
