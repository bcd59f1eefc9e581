"""What a model does instead of what it should: answers, refusals, silences, broken connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import (
    QUIZ,
    broken,
    data,
    elsewhere,
    good,
    job,
    locks,
    never,
    params,
    refusal,
    script,
    unfit,
)
from contract_tests.runtime.scenarios_steps import REPEATS, START, TAIL, all_done
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.runtime.stage import Stage, Timing

_LOGS = ("RT-LOG-09", "RT-LOG-71", "RT-LOG-72", "RT-LOG-73")
_OWN = {"id": "cred-1", "userId": "user-1", "apiKey": "sk-scenario-echo/9b+4=6f20"}


def _one_each(timing: Timing, outcomes: Mapping[str, Any], **columns: Any) -> dict[str, Any]:
    """A world with a job for each outcome, which the model repeats for ever; a failure is final."""
    jobs = data(timing, *(job(id_, maxRetryCount=0, **columns) for id_ in outcomes), credentials=[_OWN])
    return {"data": jobs, "model": [script(id_, outcome) for id_, outcome in outcomes.items()]}


async def _until_done(stage: Stage, outcomes: Mapping[str, Any]) -> None:
    each = min(REPEATS, stage.timing.timeout) + 1
    await stage.done(*outcomes, within=START + each * len(outcomes))


_UNFIT = {
    f"job-{kind}": unfit(kind)
    for kind in ("prose", "cut-json", "empty-text", "not-object", "wrong-schema", "no-completion", "not-json")
}


def _unfit(timing: Timing) -> dict[str, Any]:
    world = _one_each(timing, _UNFIT)
    for row in world["data"]["jobs"]:
        if row["id"] == "job-wrong-schema":  # any object is an analysis; a quiz needs questions
            row |= {"jobType": QUIZ, "params": params(QUIZ)}
    return world


@scenario(world=_unfit, rules=("RT-RETRY-13", "RT-RETRY-63", "RT-RETRY-65", "RT-RES-02", "RT-FAIL-70", *_LOGS))
async def unfit_answers(stage: Stage) -> None:
    """The model answers seven jobs with what is no output: prose, cut-off JSON, nothing, no completion and so on."""
    await _until_done(stage, _UNFIT)


_REFUSALS = {f"job-{number}": refusal(number) for number in (400, 401, 402, 403, 404, 422)}


@scenario(
    world=lambda timing: _one_each(timing, _REFUSALS),
    rules=("RT-RETRY-14", "RT-RETRY-60", "RT-RETRY-62", "RT-RES-02", "RT-FAIL-70", *_LOGS),
)
async def refusals(stage: Stage) -> None:
    """The model refuses six jobs for good: 400, 401, 402, 403, 404, 422."""
    await _until_done(stage, _REFUSALS)


_PASSING = {
    "job-408": refusal(408),
    "job-429": refusal(429, headers={"retry-after": "1"}),
    "job-429-now": refusal(429, headers={"retry-after": "0"}),
    "job-500": refusal(500),
    "job-503": refusal(503, headers={"retry-after": "1"}),
}


@scenario(
    world=lambda timing: _one_each(timing, _PASSING),
    rules=("RT-RETRY-08", "RT-RETRY-09", "RT-RETRY-11", "RT-RETRY-61", "RT-RETRY-66", "RT-FAIL-70", *_LOGS),
)
async def may_pass(stage: Stage) -> None:
    """The model refuses five jobs for a while: 408, 429 with Retry-After 1 and 0, 500, 503."""
    await _until_done(stage, _PASSING)


_BROKEN = {f"job-{kind}-{at}": broken(kind, at) for kind in ("close", "reset") for at in ("before", "mid-body")}


@scenario(world=lambda timing: _one_each(timing, _BROKEN), rules=("RT-RETRY-10", "RT-RETRY-66", "RT-FAIL-70", *_LOGS))
async def broken_connections(stage: Stage) -> None:
    """The model's connection is closed or reset, before its answer and in the middle of it."""
    await _until_done(stage, _BROKEN)


_AT_RISK = {
    **{f"job-{number}": refusal(number, echoKey=True) for number in (400, 401, 500)},
    "job-302": elsewhere(302),
    "job-307": elsewhere(307),
}


def _at_risk(timing: Timing) -> dict[str, Any]:
    return _one_each(timing, _AT_RISK, apiKeyMode="user_deepseek_key", credentialId="cred-1")


@scenario(
    world=_at_risk,
    rules=(
        "RT-FAIL-09",
        "RT-CRED-08",
        "RT-CRED-77",
        "RT-CRED-78",
        "RT-CRED-79",
        "RT-AUTH-63",
        "RT-LOG-08",
        "RT-CRED-75",
    ),
)
async def keys_at_risk(stage: Stage) -> None:
    """The model's errors repeat the key that it was called with, and it sends two jobs elsewhere."""
    await _until_done(stage, _AT_RISK)


_SILENT = {"job-silent": never()}


@scenario(
    world=lambda timing: _one_each(timing, _SILENT, timeoutSeconds=locks(timing, 1.5)),
    model_timeout=0.25,
    rules=("RT-RETRY-08", "RT-RETRY-64", "RT-RETRY-67", *_LOGS),
)
async def no_answer(stage: Stage) -> None:
    """The model never answers; MODEL_TIMEOUT_MS is well below the job's time limit."""
    await stage.done("job-silent", within=START + stage.timing.lock * 1.5 + TAIL)


def _over(timing: Timing) -> dict[str, Any]:
    # Less than a lock, so that it is the job's own limit that passes.
    limit = max(1, round(timing.lock * 0.5))
    outcomes = {"job-over": never(), "job-again": refusal(503, after=limit * 0.4)}
    return _one_each(timing, outcomes, timeoutSeconds=limit)


@scenario(
    world=_over,
    model_timeout=2,
    rules=("RT-RETRY-15", "RT-RETRY-64", "RT-RETRY-66", "RT-RETRY-67", "RT-RETRY-11", "RT-FAIL-70", *_LOGS),
)
async def over_its_time(stage: Stage) -> None:
    """The model never answers a job and refuses another slowly, whose time limits are below MODEL_TIMEOUT_MS."""
    await stage.done("job-over", "job-again", within=START + stage.timing.lock + TAIL)


def _recovers(timing: Timing) -> dict[str, Any]:
    first = {
        "job-503": refusal(503),
        "job-429": refusal(429, headers={"retry-after": "0"}),
        "job-reset": broken("reset"),
        "job-cut": broken("close", "mid-body"),
    }
    mixed = job("job-mixed", maxRetryCount=0)
    jobs = data(timing, *map(job, first), job("job-uncounted"), job("job-slow"), mixed)
    scripts = [script(id_, outcome, good()) for id_, outcome in first.items()]
    scripts.append(script("job-mixed", refusal(503), refusal(401)))
    slow = good(min(timing.lock * 0.4, 4))
    return {"data": jobs, "model": [*scripts, script("job-uncounted", good(usage=False)), script("job-slow", slow)]}


@scenario(world=_recovers, rules=("RT-RETRY-66", "RT-RES-80", "RT-RES-09", "RT-RES-10", *_LOGS))
async def recovers(stage: Stage) -> None:
    """The model fails the first calls of five jobs, counts no tokens for one, and takes its time for another."""
    names = ("job-503", "job-429", "job-reset", "job-cut", "job-uncounted", "job-slow", "job-mixed")
    await all_done(stage, *names, each=3)
