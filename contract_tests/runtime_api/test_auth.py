"""Who may call, and who asks (seed 003 section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, expect, requirement
from contract_tests.client import BASE, INSTANCE_HEADER, UNSET, Call, RuntimeApi, describe

if TYPE_CHECKING:
    from contract_tests.given import Given

ENDPOINTS = [
    ("POST", "/jobs/poll"),
    ("POST", "/jobs/no-such-job/lock"),
    ("POST", "/jobs/no-such-job/heartbeat"),
    ("GET", "/jobs/no-such-job/snapshot"),
    ("POST", "/model-credentials/resolve"),
    ("POST", "/jobs/no-such-job/result"),
    ("POST", "/jobs/no-such-job/fail"),
    ("POST", "/invocation-logs"),
]
WRONG_KEYS: dict[str, Any] = {"missing": UNSET, "empty": "", "wrong": "not-the-key"}
POLL = {"runtimeInstanceId": "runtime-a", "supportedJobTypes": ["quiz_generation"]}


def poll_with(api: RuntimeApi, **parts: Any) -> Call:
    """A poll that is right but for the parts given."""
    return api.raw("POST", f"{BASE}/jobs/poll", **{"body": POLL, **parts})


@requirement("RT-AUTH-01")
@pytest.mark.parametrize(("method", "path"), ENDPOINTS, ids=[path.rpartition("/")[2] for _, path in ENDPOINTS])
async def test_every_endpoint_is_guarded(api: RuntimeApi, method: str, path: str) -> None:
    """The endpoint refuses a call without the key, and with the key does not refuse for the key's sake."""
    body: Any = UNSET if method == "GET" else {}
    refusal = await api.raw(method, BASE + path, body=body, key=UNSET).refused()
    answer = await api.raw(method, BASE + path, body=body).answers()
    expect(answer.status not in (401, 403), "with the key neither 401 nor 403", describe(answer.response))
    expect(answer.status != refusal.status, f"another answer than without the key ({refusal.status})", answer.status)


@requirement("RT-AUTH-03")
async def test_only_the_right_key_opens(api: RuntimeApi) -> None:
    """A call is accepted with the right key, and refused with a different one or none."""
    await poll_with(api).succeeds()
    for name, key in WRONG_KEYS.items():
        answer = await poll_with(api, key=key).answers()
        expect(400 <= answer.status < 500, f"a refusal (4xx) of a {name} key", describe(answer.response))
    await poll_with(api, key=api.key[:-1]).refused()
    await poll_with(api, key=api.key + "x").refused()


@requirement("RT-AUTH-06")
async def test_a_users_token_opens_nothing(api: RuntimeApi) -> None:
    """A user's JWT, as bearer token or in the key's place, is refused."""
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLTEifQ.c2lnbmF0dXJl"
    await poll_with(api, key=UNSET, headers={"authorization": f"Bearer {jwt}"}).refused()
    await poll_with(api, key=jwt).refused()


@requirement("RT-AUTH-50", "RT-ERR-77")
@pytest.mark.parametrize("name", WRONG_KEYS)
async def test_a_wrong_key_is_401(api: RuntimeApi, name: str) -> None:
    """A missing, empty or wrong key is 401 UNAUTHORIZED, not retryable."""
    answer = await poll_with(api, key=WRONG_KEYS[name]).fails(401, "UNAUTHORIZED")
    with about("RT-ERR-77"):
        expect(answer.json.get("retryable") is False, "retryable false", answer.json.get("retryable"), "/retryable")


@requirement("RT-AUTH-51")
async def test_the_key_is_judged_first(api: RuntimeApi) -> None:
    """Without the key it is 401, whatever else is wrong with the request."""
    big = b'{"pad":"' + b"x" * (2 * 2**20) + b'"}'
    text = {"content-type": "text/plain"}
    for call in (
        api.raw("POST", f"{BASE}/no/such/path", body={}, key="wrong"),
        api.raw("DELETE", f"{BASE}/jobs/poll", key="wrong"),
        api.raw("POST", f"{BASE}/jobs/poll", body={}, key="wrong", by=UNSET),
        api.raw("POST", f"{BASE}/jobs/poll", content=b"{", key="wrong"),
        api.raw("POST", f"{BASE}/jobs/poll", content=b"x", key="wrong", headers=text),
        api.raw("POST", f"{BASE}/jobs/poll", content=big, key="wrong"),
        api.raw("POST", f"{BASE}/jobs/no-such-job/lock", body={"runtimeInstanceId": "runtime-a"}, key="wrong"),
    ):
        await call.fails(401, "UNAUTHORIZED")


@requirement("RT-AUTH-53")
async def test_a_bearer_token_alone_is_401(api: RuntimeApi) -> None:
    """`Authorization: Bearer` with the key's own value, but no key header, is 401."""
    headers = {"authorization": f"Bearer {api.key}"}
    await poll_with(api, key=UNSET, headers=headers).fails(401, "UNAUTHORIZED")


@requirement("RT-AUTH-52")
async def test_the_body_says_who_asks(api: RuntimeApi, given: Given) -> None:
    """Where header and body name different instances the body's counts, and that is no reason to refuse."""
    job = await given.job()
    path = job.path
    locked = api.raw("POST", f"{path}/lock", body={"runtimeInstanceId": "in-body"}, by="in-header")
    await locked.succeeds()
    await api.raw("POST", f"{path}/heartbeat", body={"runtimeInstanceId": "in-header"}, by="in-header").refused()
    await api.raw("POST", f"{path}/heartbeat", body={"runtimeInstanceId": "in-header"}, by="in-body").refused()
    await api.raw("POST", f"{path}/heartbeat", body={"runtimeInstanceId": "in-body"}, by="in-header").succeeds()


@requirement("RT-AUTH-55")
@pytest.mark.parametrize("value", [UNSET, ""], ids=["missing", "empty"])
async def test_the_instance_header_is_needed(api: RuntimeApi, given: Given, value: Any) -> None:
    """A missing or empty instance id header is 400, on every operation, and nothing is locked."""
    job = await given.job()
    body = {"runtimeInstanceId": "runtime-a"}
    await poll_with(api, by=value).fails(400, "INVALID_REQUEST")
    await api.raw("POST", f"{job.path}/lock", body=body, by=value).fails(400, "INVALID_REQUEST")
    await api.raw("POST", f"{job.path}/heartbeat", body=body, by=value).fails(400, "INVALID_REQUEST")
    await api.lock(job).succeeds()


@requirement("RT-AUTH-56")
async def test_the_instance_header_has_at_most_128_characters(api: RuntimeApi) -> None:
    """128 characters are accepted, 129 are 400."""
    await poll_with(api, headers={INSTANCE_HEADER: "i" * 128}).succeeds()
    await poll_with(api, headers={INSTANCE_HEADER: "i" * 129}).fails(400, "INVALID_REQUEST")


@requirement("RT-AUTH-57")
async def test_outside_the_internal_paths_no_key_is_asked_for(api: RuntimeApi) -> None:
    """A path outside `/internal/runtime` is not answered 401 for want of the key."""
    for path in ("/no-such-path", "/internal/runtimes", "/internal"):
        answer = await api.raw("GET", path, key=UNSET, by=UNSET).answers()
        expect(answer.status != 401, "anything but 401", describe(answer.response))


@requirement("RT-AUTH-58")
@pytest.mark.parametrize("value", [UNSET, "", "i" * 129, None, 7], ids=["missing", "empty", "129", "null", "number"])
async def test_the_body_names_the_instance(api: RuntimeApi, given: Given, value: Any) -> None:
    """`runtimeInstanceId` in the body is a string of 1 to 128 characters, otherwise 400."""
    job = await given.job()
    body = {} if value is UNSET else {"runtimeInstanceId": value}
    for path, more in (
        (f"{BASE}/jobs/poll", {"supportedJobTypes": ["quiz_generation"]}),
        (f"{job.path}/lock", {}),
        (f"{job.path}/heartbeat", {}),
    ):
        await api.raw("POST", path, body={**body, **more}).fails(400, "INVALID_REQUEST")
    longest = "i" * 128
    await api.raw("POST", f"{job.path}/lock", body={"runtimeInstanceId": longest}).succeeds()
    failure = {"errorCode": "MODEL_TIMEOUT", "errorMessage": "late", "retryable": True}
    await api.raw("POST", f"{job.path}/fail", body={**body, **failure}, by=longest).fails(400, "INVALID_REQUEST")


@requirement("RT-AUTH-58")
async def test_a_name_of_one_character_is_one(api: RuntimeApi, given: Given) -> None:
    """A Runtime whose id is one character, in the header and in the body, is served."""
    job = await given.job()
    await api.lock(job, by="i").succeeds()
    await api.heartbeat(job, by="i").succeeds()
