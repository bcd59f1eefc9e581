"""An API that knows more than the Runtime does, is slow, or refuses what it should not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.runtime.scenarios_help import (
    Json,
    add,
    cut,
    data,
    delay,
    good,
    job,
    patch,
    plan,
    put,
    rate_limit,
    refusal,
    script,
    status,
)
from contract_tests.runtime.scenarios_steps import EACH, START, all_done, all_of, asked, next_job, polls_again
from contract_tests.runtime.stage import scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.runtime.stage import Plan, Stage, Timing

_OF_A_JOB = ("lockJob", "heartbeatJob", "getSnapshot", "resolveCredential", "submitResult", "failJob")
_NEW = {"shade": "green", "list": [1, None, {"deep": True}]}


def _of_tomorrow(timing: Timing) -> dict[str, Any]:
    dream = {
        "id": "job-of-tomorrow",
        "jobType": "dream_interpretation",
        "targetType": "user",
        "targetId": "user-1",
        "priority": 0,
        "snapshotId": None,
        "promptVersion": None,
        "outputSchemaVersion": "dream_output_v7",
        "attemptNo": 0,
        "apiKeyMode": "platform_key",
        "credentialId": None,
        "modelProvider": "deepseek",
        "modelName": "deepseek-chat",
        "timeoutSeconds": timing.seconds,
        "params": None,
    }
    odder = dream | {"id": "job-of-the-day-after", "jobType": "telepathy", "news": _NEW}
    plans = [
        plan(patch(add("/jobs/0", dream), add("/jobs/-", odder), add("/news", _NEW)), "pollJobs"),
        plan(patch(add("/news", _NEW), add("/privacyScope/news", _NEW)), "getSnapshot"),
        plan(patch(add("/news", _NEW))),
    ]
    jobs = data(timing, job("job-a"), job("job-b", maxRetryCount=0), job("job-c", snapshotId="snap-nowhere"))
    return {"data": jobs, "faults": plans, "model": [script("job-b", refusal(401))]}


@scenario(world=_of_tomorrow, rules=("RT-POLL-73", "RT-ERR-85", "RT-POLL-71", "RT-LOCK-14"))
async def unknown_things(stage: Stage) -> None:
    """Polls list jobs of unknown types, and every answer has properties that nobody knows."""
    await all_done(stage, "job-a", "job-b", "job-c")
    await polls_again(stage, 2)


_OWN = {"id": "cred-1", "userId": "user-1", "apiKey": "sk-scenario-odd-4c19", "status": "invalid"}


def _codes(timing: Timing) -> dict[str, Any]:
    word = patch(put("/errorCode", "OUT_OF_FASHION"))
    plans = [
        plan(word, "getSnapshot", "job-410", answers=[410]),
        plan(word, "resolveCredential", "job-422", answers=[422]),
        plan(status(409, "CONFLICT"), "lockJob", "job-409", nth=[1, 2]),
        plan(status(400, "BAD_REQUEST"), "submitResult", "job-400"),
        plan(status(503, "LOOP_DETECTED"), "submitResult", "job-503", nth=[1]),
    ]
    jobs = [
        job("job-410", expiresAt=1, maxRetryCount=1),
        job("job-422", apiKeyMode="user_deepseek_key", credentialId="cred-1"),
        job("job-409"),
        job("job-400", maxRetryCount=0),
        job("job-503"),
    ]
    return {"data": data(timing, *jobs, credentials=[_OWN]), "faults": plans}


@scenario(world=_codes, rules=("RT-ERR-84", "RT-ERR-85", "RT-SNAP-60", "RT-CRED-70", "RT-RES-87", "RT-LOCK-60"))
async def unknown_codes(stage: Stage) -> None:
    """Five jobs meet error codes that nobody knows: 410, 422, 409, 400 and 503."""
    await all_done(stage, "job-410", "job-422", "job-409", "job-400", "job-503")


_REFUSED = {
    "job-lock": "lockJob",
    "job-snapshot": "getSnapshot",
    "job-credential": "resolveCredential",
    "job-result": "submitResult",
    "job-fail": "failJob",
    "job-heartbeat": "heartbeatJob",
}


def _refused(timing: Timing, plans: Sequence[Plan], *more: Json, retries: int) -> Json:
    jobs = data(timing, *(job(id_, maxRetryCount=retries) for id_ in _REFUSED), *more)
    # Above the heartbeat's interval, so that one is due.
    slow = script("job-heartbeat", good(timing.lock * 0.4))
    return {"data": jobs, "faults": plans, "model": [script("job-fail", refusal(401)), slow]}


def _for_ever(timing: Timing) -> Json:
    plans = [plan(status(401), operation, id_) for id_, operation in _REFUSED.items()]
    return _refused(timing, plans, retries=0)


@scenario(world=_for_ever, rules=("RT-AUTH-61", "RT-AUTH-62", "RT-ERR-16"))
async def refused_for_ever(stage: Stage) -> None:
    """One operation of each of six jobs is always refused with 401."""
    await _met_and_on(stage)


def _once(timing: Timing) -> Json:
    plans = [plan(status(403), operation, id_, nth=[1]) for id_, operation in _REFUSED.items()]
    plans += [plan(rate_limit(i % 2), operation, "job-busy", nth=[1]) for i, operation in enumerate(_OF_A_JOB)]
    plans += [plan(rate_limit(0), operation, nth=[2]) for operation in ("pollJobs", "submitInvocationLogs")]
    return _refused(timing, plans, job("job-busy"), retries=1)


@scenario(world=_once, rules=("RT-AUTH-61", "RT-AUTH-62", "RT-HB-61", "RT-SCHED-61", "RT-SCHED-62", "RT-ERR-16"))
async def refused_once(stage: Stage) -> None:
    """One operation of each of six jobs is refused once with 403, every one of a seventh once with 429."""
    await _met_and_on(stage)


async def _met_and_on(stage: Stage) -> None:
    met = [asked(operation, id_) for id_, operation in _REFUSED.items()]
    await stage.until(all_of(*met), START + 6 * EACH + stage.timing.lock * 0.4, "six refusals")
    await next_job(stage)
    await polls_again(stage, 2)


def _slow(timing: Timing) -> dict[str, Any]:
    seconds = min(timing.lock * 0.1, 1)
    jobs = data(timing, job("job-a"), job("job-b", maxRetryCount=0))
    plans = [plan(delay(seconds, "answer")), plan(cut("reset"), "getSnapshot", "job-b", nth=[1])]
    return {"data": jobs, "faults": plans, "model": [script("job-b", refusal(401))]}


@scenario(world=_slow, rules=("RT-HB-64", "RT-SCHED-07", "RT-LOCK-14"))
async def slow_api(stage: Stage) -> None:
    """Every answer of the API is slow."""
    await all_done(stage, "job-a", "job-b", each=10 * min(stage.timing.lock * 0.1, 1))
