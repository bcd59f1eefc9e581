"""Credentials (seed 003 section 4.5): who gets which key, and in which order that is judged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.canary import RESOLVE
from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import BASE, UNSET, Answer, RuntimeApi
from contract_tests.given import STATES
from contract_tests.steps import (
    FORMER,
    USER_MODE,
    credential,
    handed_out,
    job_with_credential,
    keyed_job,
    second_hand_job,
)

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

PLATFORM = "platform_key"
MODES = (PLATFORM, USER_MODE)


async def resolved(api: RuntimeApi, given: Given, mode: str) -> Answer:
    """The answer of a resolve in one of the modes."""
    if mode == PLATFORM:
        return await handed_out(api.resolve(await given.locked_job()))
    job, id_, _ = await keyed_job(given)
    return await handed_out(api.resolve(job, mode=mode, credential=id_))


@requirement("RT-CRED-01")
async def test_the_holder_gets_it(api: RuntimeApi, given: Given) -> None:
    """`POST /internal/runtime/model-credentials/resolve` by the holder, the job named in the body, succeeds."""
    job, id_, _ = await keyed_job(given)
    body = {"jobId": job.id, "apiKeyMode": USER_MODE, "credentialId": id_, "provider": "deepseek"}
    await api.raw("POST", f"{BASE}/model-credentials/resolve", body=body).succeeds()


@requirement("RT-CRED-06")
@pytest.mark.parametrize("mode", MODES)
async def test_success_is_200(api: RuntimeApi, given: Given, mode: str) -> None:
    """A resolve that succeeds is 200, in each mode."""
    status = (await resolved(api, given, mode)).status
    expect(status == 200, "200", status)


@requirement("RT-CRED-05")
async def test_a_users_key_comes_as_it_is(api: RuntimeApi, given: Given) -> None:
    """In mode `user_deepseek_key` the answer has the very key that the user stored, each time it is asked for."""
    job, id_, key = await keyed_job(given)
    for _ in range(2):
        answer = await handed_out(api.resolve(job, mode=USER_MODE, credential=id_))
        expect(answer.get("apiKey") == key, "the key that the user stored", "another, or none", "/apiKey")


@requirement("RT-CRED-04", "RT-CRED-11")
async def test_the_platforms_key_is_no_users(api: RuntimeApi, given: Given) -> None:
    """In mode `platform_key` it is a success, with the platform's key or without one, never with the user's own."""
    _, user, key = await credential(given)
    answer = await api.resolve(await given.locked_job(userId=user)).succeeds()
    expect(answer.fields.get("apiKey") != key, "the platform's key, or none", "the user's own", "/apiKey")


@requirement("RT-CRED-07")
@pytest.mark.parametrize("mode", MODES)
async def test_it_says_what_to_call(api: RuntimeApi, given: Given, mode: str) -> None:
    """`provider`, `model`, `baseUrl`, `apiKeyMode`, strings; in a user's mode `apiKey`, too."""
    answer = await resolved(api, given, mode)
    for name in ("provider", "model", "baseUrl", *(["apiKey"] if mode == USER_MODE else [])):
        value = answer.get(name)
        expect(isinstance(value, str) and bool(value), f"`{name}`, a string", json.dumps(value)[:100], f"/{name}")
    expect_fields(answer.fields, {"provider": "deepseek", "apiKeyMode": mode})
    url = answer.fields["baseUrl"]
    expect(url.startswith(("https://", "http://")), "baseUrl, an http(s) URL", url[:100], "/baseUrl")


@requirement("RT-CRED-03")
@pytest.mark.parametrize(
    "mode", ["byok", "PLATFORM_KEY", "", None, 1], ids=["other", "upper case", "empty", "null", "1"]
)
async def test_there_are_two_modes(api: RuntimeApi, given: Given, mode: Any) -> None:
    """An `apiKeyMode` that is none of the two is refused."""
    job, id_, _ = await keyed_job(given)
    await api.resolve(job, mode=mode, credential=id_).refused()
    await api.resolve(await given.locked_job(), mode=mode).refused()


@requirement("RT-CRED-10")
async def test_anothers_key_is_not_given(api: RuntimeApi, given: Given) -> None:
    """Another user's credential is refused, as the job's own and as one that the caller names."""
    foreign, _, key = await credential(given)
    job, _, _ = await keyed_job(given)
    answers = [await api.resolve(job, mode=USER_MODE, credential=foreign).refused()]
    odd = await job_with_credential(given, foreign, given.unique("user"))
    answers.append(await api.resolve(odd, mode=USER_MODE, credential=foreign).refused())
    for answer in answers:
        expect(key not in answer.response.text, "no key", "another user's key")


@requirement("RT-AUTH-08")
async def test_anothers_job_gives_no_key(api: RuntimeApi, given: Given) -> None:
    """A Runtime that holds a job of its own gets no key by the job that another holds."""
    job, id_, key = await keyed_job(given, by="runtime-b")
    await given.locked_job("runtime-a")
    answer = await api.resolve(job, by="runtime-a", mode=USER_MODE, credential=id_).refused()
    expect(key not in answer.response.text, "no key", "the other job's key")


@requirement("RT-CRED-12", "RT-ERR-10")
async def test_an_unknown_credential_is_404(api: RuntimeApi, given: Given) -> None:
    """The job's credential does not exist: 404 CREDENTIAL_NOT_FOUND, not retryable."""
    unknown = given.unique("no-such-credential")
    job = await job_with_credential(given, unknown, given.unique("user"))
    answer = await api.resolve(job, mode=USER_MODE, credential=unknown).fails(404, "CREDENTIAL_NOT_FOUND")
    expect(answer.json.get("retryable", False) is False, "retryable false", "true", "/retryable")


@requirement("RT-CRED-13", "RT-ERR-11")
async def test_an_invalid_credential_is_422(api: RuntimeApi, given: Given) -> None:
    """The job's credential is marked invalid: 422 CREDENTIAL_INVALID, not retryable."""
    id_, user, _ = await credential(given, status="invalid")
    job = await job_with_credential(given, id_, user)
    answer = await api.resolve(job, mode=USER_MODE, credential=id_).fails(422, "CREDENTIAL_INVALID")
    expect(answer.json.get("retryable", False) is False, "retryable false", "true", "/retryable")


@requirement("RT-CRED-50")
@pytest.mark.parametrize("state", STATES)
async def test_only_the_holder_gets_it(api: RuntimeApi, given: Given, state: str) -> None:
    """In each state: the holder's 200, while there is one; 409 LOCK_NOT_HELD for a former holder and a stranger."""
    id_, user, _ = await credential(given)
    job = await second_hand_job(given, state, userId=user, apiKeyMode=USER_MODE, credentialId=id_)
    asked = {"mode": USER_MODE, "credential": id_}
    for caller in (FORMER, "runtime-b", "runtime-A"):
        await api.resolve(job, by=caller, **asked).fails(409, "LOCK_NOT_HELD")
    if state in ("locked", "running"):
        await api.resolve(job, **asked).succeeds()
    else:
        await api.resolve(job, **asked).fails(409, "LOCK_NOT_HELD")


@requirement("RT-CRED-50")
async def test_a_lapsed_lock_opens_no_key(api: RuntimeApi, given: Given) -> None:
    """After its lock lapsed the holder gets 409, before and after another has locked the job."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    await api.resolve(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(job, by="runtime-b")
    await api.resolve(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await api.resolve(job, by="runtime-b").succeeds()


@requirement("RT-CRED-50")
async def test_the_lock_opens_the_key_to_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At the very millisecond of `lockUntil` 200, a millisecond later 409."""
    clock.needs_to_stand()
    job = await given.job()
    until = (await api.lock(job).succeeds(200)).integer("lockUntil")
    await clock.reach(until, "RT-TIME-05")
    await api.resolve(job).succeeds()
    await clock.advance(0.001)
    await api.resolve(job).fails(409, "LOCK_NOT_HELD")


@requirement("RT-CRED-50")
async def test_the_header_says_who_resolves(api: RuntimeApi, given: Given) -> None:
    """The body of resolve names no instance: one that stands there all the same changes nothing."""
    job = await given.locked_job("runtime-a")
    await api.resolve(job, by="runtime-b", runtimeInstanceId="runtime-a").fails(409, "LOCK_NOT_HELD")
    await api.resolve(job, by="runtime-a", runtimeInstanceId="runtime-b").succeeds()


@requirement("RT-ERR-06")
async def test_no_job_no_key(api: RuntimeApi) -> None:
    """A resolve for a job that does not exist: 404 JOB_NOT_FOUND."""
    await api.resolve("no-such-job").fails(404, "JOB_NOT_FOUND")


@requirement("RT-CRED-51")
@pytest.mark.parametrize("value", [UNSET, None], ids=["left out", "null"])
async def test_a_users_mode_needs_the_credential(api: RuntimeApi, given: Given, value: Any) -> None:
    """Mode `user_deepseek_key` without `credentialId`: 400 INVALID_REQUEST; a stranger gets 409 all the same."""
    job, _, _ = await keyed_job(given)
    await api.resolve(job, mode=USER_MODE, credential=value).fails(400, "INVALID_REQUEST")
    await api.resolve(job, by="runtime-b", mode=USER_MODE, credential=value).fails(409, "LOCK_NOT_HELD")


@requirement("RT-CRED-52")
async def test_only_the_jobs_own_settings_are_resolved(api: RuntimeApi, given: Given) -> None:
    """Another mode, credential or provider than the job's own: 422 CREDENTIAL_INVALID."""
    id_, user, _ = await credential(given)
    second, _, _ = await credential(given, userId=user)
    job = await job_with_credential(given, id_, user)
    platform = await given.locked_job(userId=user)
    for call in (
        api.resolve(job, mode=PLATFORM),
        api.resolve(job, mode=PLATFORM, credential=id_),
        api.resolve(job, mode=USER_MODE, credential=second),
        api.resolve(job, mode=USER_MODE, credential=id_, provider="openai"),
        api.resolve(job, mode=USER_MODE, credential=id_, provider=""),
        api.resolve(platform, mode=USER_MODE, credential=id_),
        api.resolve(platform, mode=PLATFORM, credential=id_),
        api.resolve(platform, mode=PLATFORM, provider="DeepSeek"),
    ):
        await call.fails(422, "CREDENTIAL_INVALID")


@requirement("RT-CRED-53")
@pytest.mark.parametrize("value", [UNSET, None], ids=["left out", "null"])
async def test_the_platforms_mode_needs_no_credential(api: RuntimeApi, given: Given, value: Any) -> None:
    """Mode `platform_key` without `credentialId`: 200."""
    await api.resolve(await given.locked_job(), mode=PLATFORM, credential=value).succeeds()


@requirement("RT-CRED-53")
async def test_the_platforms_mode_needs_none_that_the_job_names(api: RuntimeApi, given: Given) -> None:
    """Mode `platform_key` without `credentialId`, of a job that names a credential: 200."""
    id_, user, _ = await credential(given)
    job = await given.locked_job(apiKeyMode=PLATFORM, credentialId=id_, userId=user)
    await api.resolve(job, mode=PLATFORM).succeeds()


@requirement("RT-CRED-54")
async def test_no_platform_key_is_absent(api: RuntimeApi, given: Given) -> None:
    """In mode `platform_key` `apiKey` is a string that is not empty, or absent: never null, never empty."""
    body = (await resolved(api, given, PLATFORM)).fields
    key = body.get("apiKey", "absent")
    good = isinstance(key, str) and bool(key.strip())
    expect(good, "a key, or no `apiKey` at all", "no key" if isinstance(key, str) else json.dumps(key), "/apiKey")


@requirement("RT-CRED-55")
async def test_anothers_credential_is_not_found(api: RuntimeApi, given: Given) -> None:
    """The job's credential is another user's: 404 CREDENTIAL_NOT_FOUND, as for one that does not exist."""
    foreign, _, _ = await credential(given)
    job = await job_with_credential(given, foreign, given.unique("user"))
    await api.resolve(job, mode=USER_MODE, credential=foreign).fails(404, "CREDENTIAL_NOT_FOUND")


@requirement("RT-CRED-56")
async def test_of_several_faults_the_first_is_told(api: RuntimeApi, given: Given) -> None:
    """Job, lock, `credentialId`, the job's own settings: each fault is told although all later ones are there, too."""
    job, wrong = await given.locked_job("runtime-a"), {"provider": "openai"}
    await api.resolve("no-such-job", by="runtime-b", mode=USER_MODE, **wrong).fails(404, "JOB_NOT_FOUND")
    await api.resolve(job, by="runtime-b", mode=USER_MODE, **wrong).fails(409, "LOCK_NOT_HELD")
    await api.resolve(job, mode=USER_MODE, **wrong).fails(400, "INVALID_REQUEST")
    own = await job_with_credential(given, "no-such-credential", given.unique("user"))
    unknown = {"mode": USER_MODE, "credential": "no-such-one-either"}
    await api.resolve(own, by="runtime-b", **unknown).fails(409, "LOCK_NOT_HELD")
    await api.resolve(own, **unknown).fails(422, "CREDENTIAL_INVALID")
    await api.resolve(own, mode=USER_MODE, credential="no-such-credential", **wrong).fails(422, "CREDENTIAL_INVALID")


@requirement("RT-CRED-56")
async def test_whose_it_is_comes_before_whether_it_is_valid(api: RuntimeApi, given: Given) -> None:
    """Another user's credential that is invalid, too: 404 CREDENTIAL_NOT_FOUND."""
    foreign, _, _ = await credential(given, status="invalid")
    job = await job_with_credential(given, foreign, given.unique("user"))
    await api.resolve(job, mode=USER_MODE, credential=foreign).fails(404, "CREDENTIAL_NOT_FOUND")


@requirement("RT-CRED-57")
@pytest.mark.parametrize("mode", MODES)
async def test_the_answer_is_not_kept(api: RuntimeApi, given: Given, mode: str) -> None:
    """`Cache-Control: no-store`."""
    answer = await resolved(api, given, mode)
    came = answer.headers.get("cache-control", "none")
    directives = {part.strip().lower() for part in came.split(",")}
    expect("no-store" in directives, "Cache-Control: no-store", came, "cache-control")


@requirement("RT-CRED-58")
async def test_the_job_id_has_1_to_128_characters(api: RuntimeApi) -> None:
    """`jobId` in the body: empty, of 129 characters or no string is 400; 128 characters are judged as an id."""
    bad: list[Any] = ["", "j" * 129, 7, None]
    for value in bad:
        body = {"jobId": value, "apiKeyMode": PLATFORM, "provider": "deepseek"}
        await api.raw("POST", RESOLVE, body=body).fails(400, "INVALID_REQUEST")
    await api.raw("POST", RESOLVE, body={"apiKeyMode": PLATFORM, "provider": "deepseek"}).fails(400, "INVALID_REQUEST")
    await api.resolve("j" * 128).fails(404, "JOB_NOT_FOUND")
