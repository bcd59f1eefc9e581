"""Keys that were handed out stand nowhere else (seed 003 sections 4.5, 4.7, 4.8): in no answer, plain or encoded."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from contract_tests.canary import KEY, RESOLVE, Canary, details_of, key_in, key_in_text
from contract_tests.checks import CheckSkipped, expect, last, requirement
from contract_tests.client import BASE, UNSET, Call, RuntimeApi, log_entry
from contract_tests.steps import USER_MODE, credential, handed_out, job_with_credential, keyed_job

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.given import Given


async def key_of(api: RuntimeApi, given: Given, mode: str) -> tuple[JobRef, str]:
    """A job whose holder has just resolved a key, and the key."""
    if mode == USER_MODE:
        job, id_, key = await keyed_job(given)
        await handed_out(api.resolve(job, mode=mode, credential=id_))
        return job, key
    job = await given.locked_job()
    given_out = (await handed_out(api.resolve(job))).fields.get(KEY)
    if not isinstance(given_out, str):
        raise CheckSkipped("the build hands out no platform key")
    return job, given_out


def requests_with(api: RuntimeApi, job: JobRef, key: str) -> list[Call]:
    """Requests that hold the key as a value where it does not belong.

    Not as an id, in a path or as a name: an error may say which job, path or property it is about.
    """
    fail = f"{job.path}/fail"
    asked = {"jobId": job.id, "apiKeyMode": USER_MODE, "provider": "deepseek"}
    text = {"content-type": "text/plain"}
    return [
        api.poll(limit=key),
        api.poll(types=["quiz_generation"], capabilities=key),
        api.lock(job, by="runtime-b", runtimeInstanceId=[key]),
        api.heartbeat(job, runtimeInstanceId={"key": key}),
        api.raw("POST", RESOLVE, body={**asked, "apiKeyMode": key}),
        api.raw("POST", RESOLVE, body={**asked, "provider": [key], "apiKey": key}),
        api.raw("POST", RESOLVE, body={**asked, "credentialId": {"apiKey": key}}),
        api.fail(job, code=f"401 for {key}", rawError=key),
        api.fail(job, message=[key], rawError={"headers": {"authorization": f"Bearer {key}"}}),
        api.result(job, schema="no_such_version", rawOutput={"authorization": key}, validationErrors=[key]),
        api.result(job, schema="no_such_version", usage={"inputTokens": key}, validatedOutput=key),
        api.logs(log_entry(job, apiKey=key)),
        api.logs(log_entry(job, success=key, request={"headers": {"authorization": f"Bearer {key}"}})),
        api.logs(log_entry(job), apiKey=key),
        api.raw("POST", fail, content=b'{"rawError": "' + key.encode() + b'",'),
        api.raw("POST", fail, content=key.encode()),
        api.raw("POST", fail, content=key.encode(), headers=text),
        api.raw("POST", fail, body={"apiKey": key}, key=key),
        api.raw("PUT", fail, body={"apiKey": key}),
    ]


def stays_secret(key: str, call: Call, place: str | None) -> None:
    """Fail the check where a key was found."""
    asked = f"{call.request.method} {call.request.path}"
    expect(place is None, "an answer without the key", f"the answer to {asked} repeats it: {place}")


@requirement("RT-CRED-08", "RT-CRED-09")
@pytest.mark.parametrize("mode", ["platform_key", USER_MODE])
async def test_no_refusal_repeats_a_key(api: RuntimeApi, given: Given, mode: str) -> None:
    """A request that names the key where it does not belong is answered in words that do not repeat it."""
    job, key = await key_of(api, given, mode)
    for call in requests_with(api, job, key):
        stays_secret(key, call, key_in(key, call.request, (await call.answers()).response))


@requirement("RT-CRED-08", "RT-CRED-09")
async def test_no_success_repeats_a_key(api: RuntimeApi, given: Given) -> None:
    """Poll, lock, heartbeat, snapshot, result, failure and logs around a resolved key are answered without it."""
    job, id_, key = await keyed_job(given)
    await given.job(userId=job.user_id, apiKeyMode=USER_MODE, credentialId=id_, priority=given.first())
    encoded = base64.b64encode(f"Bearer {key}".encode()).decode()
    log = log_entry(job, success=False, errorCode="MODEL_TIMEOUT", errorMessage=f"401 for {key}", traceId=encoded)
    calls = [
        api.resolve(job, mode=USER_MODE, credential=id_),
        api.heartbeat(job),
        api.snapshot(job),
        api.lock(job, by="runtime-b"),
        api.logs(log),
        api.fail(job, message=f"401: no such key {key}", rawError=f"authorization: Bearer {key}", retryable=True),
        api.lock(job),
        api.result(job, rawOutput={"headers": {"authorization": key}}, validationErrors=[key]),
        api.result(job, rawOutput=f"GET /v1?key={quote(key)} {key.encode().hex()}"),
        api.result(job, hash="sha256-other", rawOutput=key),
        api.heartbeat(job),
        api.resolve(job, mode=USER_MODE, credential=id_),
        api.poll(limit=50),
    ]
    for call in calls:
        stays_secret(key, call, key_in(key, call.request, (await call.answers()).response))
        if call.request.path.endswith("/fail") and "inspect-job" in given.states.offered:
            await given.inspect(job)  # for the check that runs last


@requirement("RT-CRED-08", "RT-CRED-09")
@pytest.mark.parametrize("status", ["valid", "invalid"])
async def test_a_key_that_is_not_given_is_not_told(api: RuntimeApi, given: Given, status: str) -> None:
    """Where a resolve is refused, for its settings or since the key is marked invalid, the answer has no key."""
    id_, user, key = await credential(given, status=status)
    job = await job_with_credential(given, id_, user)
    for fields in ({"provider": "openai"}, {"by": "runtime-b"}, {"credential": UNSET}, {}):
        call = api.resolve(job, **{"mode": USER_MODE, "credential": id_, **fields})
        stays_secret(key, call, key_in(key, call.request, (await call.answers()).response))


@requirement("RT-ERR-67")
async def test_no_details_hold_a_key(api: RuntimeApi, given: Given) -> None:
    """A resolved key, or the service key in a body, is not repeated where `details` name what is wrong with it."""
    job, key = await key_of(api, given, USER_MODE)
    for secret in (key, api.key):
        bodies: list[Any] = [
            {"limit": secret},
            {"runtimeInstanceId": [secret]},
            {"supportedJobTypes": {secret: secret}},
        ]
        calls = [api.raw("POST", f"{BASE}/jobs/poll", body=body) for body in bodies]
        calls += [api.fail(job, code=secret, retryable=secret), api.logs(log_entry(job, success=secret))]
        for call in calls:
            details = details_of((await call.answers()).response).decode()
            stays_secret(secret, call, key_in_text(secret, details))


def searched(canary: Canary) -> Canary:
    """The canary of a run in which a key was handed out; skips the check in one without."""
    if not canary.keys:
        raise CheckSkipped("no key was handed out that can be told from other text")
    return canary


@last
@requirement("RT-CRED-08", "RT-CRED-09")
async def test_no_answer_of_the_run_holds_a_key(canary: Canary) -> None:
    """Each key that was handed out is searched in every answer of the run, plain, URL-encoded, base64 and hex."""
    leaks = [leak.told for leak in searched(canary).leaks() if leak.place == "answer"]
    expect(not leaks, "no answer but resolve's own with a key", "; ".join(leaks[:3]))


@last
@requirement("RT-ERR-67")
async def test_no_details_of_the_run_hold_a_key(canary: Canary) -> None:
    """Each key that was handed out is searched in the `details` of every error of the run."""
    leaks = [leak.told for leak in searched(canary).leaks() if leak.place == "details"]
    expect(not leaks, "no details with a key", "; ".join(leaks[:3]))


@last
@requirement("RT-FAIL-52")
async def test_no_job_holds_a_key(canary: Canary) -> None:
    """Each key that was handed out is searched in what provider states show of jobs, `inspect-job` above all."""
    leaks = [leak.told for leak in searched(canary).leaks() if leak.place == "state"]
    expect(not leaks, "no job that holds a key", "; ".join(leaks[:3]))
