"""Results and failures: lost on their way, refused, told again; attempts and hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import (
    QUIZ,
    cut,
    data,
    gateway,
    good,
    hang,
    job,
    params,
    plan,
    refusal,
    script,
    spoilt,
    status,
)
from contract_tests.runtime.scenarios_steps import (
    EACH,
    START,
    TAIL,
    all_done,
    all_of,
    asked,
    logged,
    next_job,
)
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from contract_tests.runtime.stage import Plan, Stage, Timing


def _lost(timing: Timing, operation: str) -> list[Plan]:
    faults: dict[str, tuple[dict[str, Any], list[int]]] = {
        "job-500": (status(500), [1, 2]),
        "job-502": (gateway(502), [1]),
        "job-closed": (cut("close", "after-commit"), [1]),
        "job-reset": (cut("reset"), [1, 2]),
        "job-half": (cut("close", "mid-body"), [1]),
        "job-hangs": (hang(min(timing.lock * 0.5, 4)), [1]),
    }
    return [plan(fault, operation, id_, nth=nth) for id_, (fault, nth) in faults.items()]


_LOST = ("job-500", "job-502", "job-closed", "job-reset", "job-half", "job-hangs")


def _lost_results(timing: Timing) -> dict[str, Any]:
    return {"data": data(timing, *map(job, _LOST)), "faults": _lost(timing, "submitResult")}


@scenario(slow=True, world=_lost_results, rules=("RT-RES-83", "RT-RES-85", "RT-RES-86", "RT-ERR-16", "RT-LOCK-63"))
async def lost_results(stage: Stage) -> None:
    """The results of six jobs are not answered at first: 500, 502, closed, reset and hanging connections."""
    await all_done(stage, *_LOST, each=3)


def _lost_failures(timing: Timing) -> dict[str, Any]:
    jobs = data(timing, *(job(id_, maxRetryCount=0) for id_ in _LOST))
    return {"data": jobs, "model": [script(None, refusal(401))], "faults": _lost(timing, "failJob")}


@scenario(slow=True, world=_lost_failures, rules=("RT-FAIL-71", "RT-RES-86", "RT-ERR-16", "RT-LOCK-63"))
async def lost_failures(stage: Stage) -> None:
    """The failures of six jobs are not answered at first: 500, 502, closed, reset and hanging connections."""
    await all_done(stage, *_LOST, each=3)


def _never_taken(timing: Timing) -> dict[str, Any]:
    jobs = [job("job-result", maxRetryCount=0), job("job-failure", maxRetryCount=0)]
    plans = [plan(status(503), "submitResult", "job-result"), plan(cut("reset"), "failJob", "job-failure")]
    return {"data": data(timing, *jobs), "model": [script("job-failure", refusal(401))], "faults": plans}


@scenario(slow=True, world=_never_taken, rules=("RT-RES-85", "RT-RES-86", "RT-FAIL-71", "RT-LOCK-63", "RT-SCHED-61"))
async def never_taken(stage: Stage) -> None:
    """No answer ever comes to a result and to a failure."""
    thrice = all_of(asked("submitResult", "job-result", 3), asked("failJob", "job-failure", 3))
    await stage.until(asked("submitResult", "job-result"), START, "the result of job-result")
    await stage.until(thrice, 2 * TAIL, "three tries of each report")
    await next_job(stage, within=START + stage.timing.lock)


_REFUSED = {
    "job-400": status(400),
    "job-413": status(413),
    "job-422": status(422),
}


def _refused(timing: Timing) -> dict[str, Any]:
    plans = [plan(fault, "submitResult", id_) for id_, fault in _REFUSED.items()]
    return {"data": data(timing, *(job(id_, maxRetryCount=0) for id_ in _REFUSED)), "faults": plans}


@scenario(world=_refused, rules=("RT-RES-87", "RT-RETRY-13", "RT-FAIL-70", "RT-ERR-16"))
async def refused_results(stage: Stage) -> None:
    """The results of three jobs are refused: 400, 413 and 422."""
    await stage.done(*_REFUSED, within=START + 3 * EACH)


def _odd(timing: Timing) -> dict[str, Any]:
    plans = [
        plan(status(409, "RESULT_ALREADY_EXISTS"), "submitResult", "job-stored"),
        plan(spoilt("truncated-json"), "submitResult", "job-garbled"),
        plan(spoilt("malformed-json"), "failJob", "job-mangled"),
    ]
    jobs = data(timing, *(job(id_, maxRetryCount=0) for id_ in ("job-stored", "job-garbled", "job-mangled")))
    return {"data": jobs, "model": [script("job-mangled", refusal(401))], "faults": plans}


@scenario(world=_odd, rules=("RT-RES-83", "RT-RES-84", "RT-SCHED-61", "RT-ERR-16"))
async def odd_answers(stage: Stage) -> None:
    """The API has another result of a job already; a result and a failure are taken, with answers that are no JSON."""
    await stage.until(asked("submitResult", "job-stored"), START, "the result of job-stored")
    await all_done(stage, "job-garbled", "job-mangled")
    await next_job(stage)
    await stage.until(logged("job-stored"), TAIL, "the log of job-stored")


_OUTPUTS = {
    "job-third": good(),
    "job-first": good(0.4, usage=False),
    "job-other": good(variant=1),
    "job-quiz": good(),
    "job-quiz-other": good(variant=2),
}
_LATER = ("job-third", "job-other")


def _attempts(timing: Timing) -> dict[str, Any]:
    # A snapshot that has expired is no call that a Runtime repeats, so that these are attempts of the job's.
    plans = [plan(status(410, "SNAPSHOT_EXPIRED"), "getSnapshot", id_, nth=[1, 2]) for id_ in _LATER]
    quiz = {"jobType": QUIZ, "params": params(QUIZ)}
    jobs = [job(id_, **(quiz if "quiz" in id_ else {})) for id_ in _OUTPUTS]
    model = [script(id_, outcome) for id_, outcome in _OUTPUTS.items()]
    return {"data": data(timing, *jobs), "model": model, "faults": plans}


@scenario(
    world=_attempts,
    rules=(
        *("RT-RES-07", "RT-RES-11", "RT-RES-12", "RT-RES-80", "RT-RES-81", "RT-RES-82"),
        *("RT-SNAP-18", "RT-SNAP-60", "RT-LOG-73"),
    ),
)
async def attempts(stage: Stage) -> None:
    """Two of five jobs succeed in their third attempt; two of the five have the same output."""
    await all_done(stage, *_OUTPUTS, each=4)
