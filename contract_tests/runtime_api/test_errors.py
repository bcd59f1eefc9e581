"""What a failure looks like, and which one a request gets (seed 003 section 3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import CheckSkipped, about, expect, requirement
from contract_tests.client import BASE, UNSET, RuntimeApi, describe, judge_error_shape

if TYPE_CHECKING:
    from contract_tests.given import Given

ME = {"runtimeInstanceId": "runtime-a"}
POLL = {**ME, "supportedJobTypes": ["quiz_generation"]}
LOCK_UNKNOWN = f"{BASE}/jobs/no-such-job/lock"
MIB = 2**20
TEXT = {"content-type": "text/plain"}


def padded(size: int) -> bytes:
    """A body for lock of exactly ``size`` bytes."""
    head = b'{"runtimeInstanceId":"runtime-a","pad":"'
    return head + b"x" * (size - len(head) - 2) + b'"}'


FAILING = {
    "no key": "RT-AUTH-03",
    "no such job": "RT-ERR-06",
    "no such path": "RT-ERR-01",
    "no such method": "RT-ERR-01",
    "no JSON": "RT-ERR-01",
}
"""The rule by which a request fails at all."""


@requirement("RT-ERR-01", "RT-ERR-02", "RT-ERR-03", "RT-ERR-04", "RT-ERR-05", "RT-TIME-06")
@pytest.mark.parametrize("kind", ["no key", "no such job", "no such path", "no such method", "no JSON", "locked"])
async def test_every_failure_has_the_error_body(api: RuntimeApi, given: Given, kind: str) -> None:
    """A failing call has statusCode, errorCode, message and timestamp, whatever made it fail."""
    calls = {
        "no key": lambda: api.raw("POST", f"{BASE}/jobs/poll", body=POLL, key=UNSET),
        "no such job": lambda: api.lock("no-such-job"),
        "no such path": lambda: api.raw("GET", f"{BASE}/no-such-path"),
        "no such method": lambda: api.raw("DELETE", f"{BASE}/jobs/poll"),
        "no JSON": lambda: api.raw("POST", f"{BASE}/jobs/poll", content=b'{"runtimeInstanceId": '),
    }
    if kind == "locked":
        job = await given.locked_job()
        answer = await api.lock(job, by="runtime-b").answers()
    else:
        answer = await calls[kind]().answers()
    rule = "RT-LOCK-06" if kind == "locked" else FAILING[kind]
    with about(rule, step=f"refusing a request with {kind}"):
        expect(answer.status >= 400, "a failure", describe(answer.response))
    judge_error_shape(answer)


@requirement("RT-ERR-06")
async def test_an_unknown_job_is_404(api: RuntimeApi) -> None:
    """lock and heartbeat of a job that does not exist: 404 JOB_NOT_FOUND."""
    await api.lock("no-such-job").fails(404, "JOB_NOT_FOUND")
    await api.heartbeat("no-such-job").fails(404, "JOB_NOT_FOUND")


@requirement("RT-ERR-07")
async def test_a_locked_job_is_409(api: RuntimeApi, given: Given) -> None:
    """A job that another Runtime has locked: 409 JOB_ALREADY_LOCKED."""
    job = await given.locked_job("runtime-a")
    await api.lock(job, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")


@requirement("RT-ERR-14")
async def test_an_incompatible_runtime_gets_its_code(api: RuntimeApi) -> None:
    """Where a Runtime's versions are refused at all, it is 422 RUNTIME_VERSION_INCOMPATIBLE."""
    call = api.poll(capabilities={"supportedSnapshotVersions": ["no_such_version"]})
    answer = await call.answers()
    if answer.status == 200:
        raise CheckSkipped("the build refuses no Runtime for its versions")
    await call.fails(422, "RUNTIME_VERSION_INCOMPATIBLE")


@requirement("RT-ERR-64")
async def test_errors_say_whether_to_repeat(api: RuntimeApi, given: Given) -> None:
    """`retryable` is true for JOB_ALREADY_LOCKED, false for the caller's other faults."""
    job = await given.locked_job("runtime-a")
    for call, retryable, rule in (
        (api.lock(job, by="runtime-b"), True, "RT-LOCK-06"),
        (api.lock("no-such-job"), False, "RT-ERR-06"),
        (api.heartbeat(job, by="runtime-b"), False, "RT-HB-03"),
        (api.lock(job, by="x" * 129), False, "RT-ERR-01"),
        (api.raw("POST", f"{BASE}/no-such-path"), False, "RT-ERR-01"),
        (api.raw("PUT", f"{BASE}/jobs/poll"), False, "RT-ERR-51"),
        (api.raw("POST", LOCK_UNKNOWN, content=b"a", headers=TEXT), False, "RT-ERR-54"),
        (api.poll(capabilities={"supportedSnapshotVersions": ["no_such_version"]}), False, "RT-POLL-59"),
    ):
        with about(rule, step="refusing what is not to be done"):
            answer = await call.refused()
        code, came = answer.json["errorCode"], answer.json.get("retryable")
        expect(came is retryable, f"retryable {retryable} for {code}".lower(), json.dumps(came), "/retryable")


@requirement("RT-ERR-50")
async def test_an_unknown_path_is_404(api: RuntimeApi) -> None:
    """A path that does not exist: 404 NOT_FOUND; a slash too many is another path."""
    for path in ("/no-such-path", "/jobs", "/jobs/poll/", "/jobs/x/unlock", "/jobs//lock"):
        await api.raw("POST", BASE + path, body=POLL).fails(404, ["NOT_FOUND", "JOB_NOT_FOUND"])


@requirement("RT-ERR-51", "RT-ERR-52", "RT-ERR-53")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
async def test_a_wrong_method_is_405(api: RuntimeApi, method: str) -> None:
    """A method that the path does not have: 405 METHOD_NOT_ALLOWED with `Allow`."""
    for path in ("/jobs/poll", "/jobs/no-such-job/lock"):
        answer = await api.raw(method, BASE + path).answers()
        with about("RT-ERR-53" if method in ("HEAD", "OPTIONS") else "RT-ERR-51"):
            expect(answer.status == 405, "405", describe(answer.response))
            if method != "HEAD":
                await api.raw(method, BASE + path).fails(405, "METHOD_NOT_ALLOWED")
        with about("RT-ERR-52"):
            allow = [item.strip() for item in answer.headers.get("allow", "").split(",")]
            expect(allow == ["POST"], "Allow: POST", answer.headers.get("allow", "no Allow"), "allow")


@requirement("RT-HEALTH-02")
async def test_the_api_does_not_expose_health(api: RuntimeApi) -> None:
    """`GET /internal/runtime/health` is the Runtime's, not the API's."""
    answer = await api.raw("GET", f"{BASE}/health").answers()
    expect(not 200 <= answer.status < 300, "no success", describe(answer.response))


@requirement("RT-HEALTH-50")
async def test_health_is_404_at_the_api(api: RuntimeApi) -> None:
    """`GET /internal/runtime/health` is 404 NOT_FOUND at the API."""
    await api.raw("GET", f"{BASE}/health").fails(404, "NOT_FOUND")


@requirement("RT-ERR-54")
@pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
async def test_another_media_type_is_415(api: RuntimeApi, media: str) -> None:
    """A body that is not JSON by its content type: 415, even where its text is JSON."""
    content = json.dumps(POLL).encode()
    headers = {"content-type": media}
    await api.raw("POST", f"{BASE}/jobs/poll", content=content, headers=headers).fails(415, "UNSUPPORTED_MEDIA_TYPE")
    json_with_charset = {"content-type": "application/json; charset=utf-8"}
    await api.raw("POST", f"{BASE}/jobs/poll", content=content, headers=json_with_charset).succeeds()


@requirement("RT-ERR-55")
async def test_a_body_without_content_type_is_415(api: RuntimeApi) -> None:
    """A body that is not empty needs a content type."""
    headers = {"content-type": UNSET}
    call = api.raw("POST", f"{BASE}/jobs/poll", content=json.dumps(POLL).encode(), headers=headers)
    await call.fails(415, "UNSUPPORTED_MEDIA_TYPE")


@requirement("RT-ERR-56")
async def test_a_body_too_large_is_413(api: RuntimeApi) -> None:
    """A body that the build does not accept for its size: 413 PAYLOAD_TOO_LARGE, not retryable."""
    for mebibytes in (2, 8, 32):
        call = api.raw("POST", LOCK_UNKNOWN, content=padded(mebibytes * MIB))
        answer = await call.answers()
        if answer.status != 404:
            expect(answer.status == 413, "413 (or 404, the size being accepted)", describe(answer.response))
            expect(
                answer.json.get("errorCode") == "PAYLOAD_TOO_LARGE", "PAYLOAD_TOO_LARGE", answer.json.get("errorCode")
            )
            came = answer.json.get("retryable")
            expect(came is False, "retryable false", json.dumps(came), "/retryable")
            return
    raise CheckSkipped("the build accepts bodies of 32 MiB")


@requirement("RT-ERR-74")
async def test_a_body_of_a_mebibyte_is_accepted(api: RuntimeApi, given: Given) -> None:
    """A body of exactly 1 MiB is accepted."""
    job = await given.job()
    await api.raw("POST", f"{job.path}/lock", content=padded(MIB)).succeeds()


@requirement("RT-ERR-57")
@pytest.mark.parametrize(
    "content",
    [b"{", b'{"runtimeInstanceId": "a",}', b"{'a': 1}", b"nonsense", b'{"a": NaN}', b"[" * 10_000 + b"]" * 10_000],
    ids=["cut off", "comma", "quotes", "no JSON", "NaN", "10000 deep"],
)
async def test_malformed_json_is_400(api: RuntimeApi, content: bytes) -> None:
    """A body that is no well-formed JSON object: 400 INVALID_REQUEST, never a 5xx."""
    await api.raw("POST", f"{BASE}/jobs/poll", content=content).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-58")
async def test_an_empty_body_is_400(api: RuntimeApi, given: Given) -> None:
    """No body where one is needed: 400 INVALID_REQUEST."""
    job = await given.job()
    for path in (f"{BASE}/jobs/poll", f"{job.path}/lock", f"{job.path}/heartbeat"):
        await api.raw("POST", path, content=b"").fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-59")
async def test_a_body_that_is_not_utf_8_is_400(api: RuntimeApi) -> None:
    """Bytes that are no UTF-8: 400 INVALID_REQUEST."""
    content = b'{"runtimeInstanceId":"\xff\xfe","supportedJobTypes":["quiz_generation"]}'
    await api.raw("POST", f"{BASE}/jobs/poll", content=content).fails(400, "INVALID_REQUEST")


WRONG = {
    "types missing": {"supportedJobTypes": UNSET},
    "types a string": {"supportedJobTypes": "quiz_generation"},
    "types of numbers": {"supportedJobTypes": [1]},
    "limit a list": {"limit": []},
    "limit a fraction": {"limit": 1.5},
    "capabilities a list": {"capabilities": []},
    "versions a string": {"capabilities": {"supportedSnapshotVersions": "ai_snapshot_v1"}},
    "versions of numbers": {"capabilities": {"supportedOutputSchemaVersions": [1]}},
}


@requirement("RT-ERR-60", "RT-ERR-78")
@pytest.mark.parametrize("name", WRONG)
async def test_an_ill_formed_body_is_400(api: RuntimeApi, name: str) -> None:
    """A missing field, a wrong type or value: 400 INVALID_REQUEST, not retryable."""
    body = {key: value for key, value in {**POLL, **WRONG[name]}.items() if value is not UNSET}
    answer = await api.raw("POST", f"{BASE}/jobs/poll", body=body).fails(400, "INVALID_REQUEST")
    with about("RT-ERR-78"):
        expect(answer.json.get("retryable") is False, "retryable false", answer.json.get("retryable"), "/retryable")


@requirement("RT-ERR-60")
@pytest.mark.parametrize("body", [[], "text", 1, None, True], ids=["list", "string", "number", "null", "true"])
async def test_a_body_that_is_no_object_is_400(api: RuntimeApi, given: Given, body: Any) -> None:
    """JSON that is no object: 400 INVALID_REQUEST on each operation."""
    job = await given.job()
    for path in (f"{BASE}/jobs/poll", f"{job.path}/lock", f"{job.path}/heartbeat"):
        await api.raw("POST", path, body=body).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-60")
@pytest.mark.parametrize("name", ["apiKeyMode", "provider"])
async def test_a_resolve_without_a_field_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """A resolve without its mode, or without its provider: 400 INVALID_REQUEST."""
    job = await given.locked_job()
    body = {"jobId": job.id, "apiKeyMode": "platform_key", "provider": "deepseek"}
    del body[name]
    await api.raw("POST", f"{BASE}/model-credentials/resolve", body=body).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-61")
async def test_requests_are_judged_in_order(api: RuntimeApi) -> None:
    """Path before method, method before header, header before media type, then size, then body, then the job."""
    large = padded(34 * MIB)
    await api.raw("DELETE", f"{BASE}/no-such-path", by=UNSET).fails(404, "NOT_FOUND")
    await api.raw("DELETE", f"{BASE}/jobs/poll", by=UNSET).fails(405, "METHOD_NOT_ALLOWED")
    await api.raw("POST", LOCK_UNKNOWN, content=b"x", by=UNSET, headers=TEXT).fails(400, "INVALID_REQUEST")
    await api.raw("POST", LOCK_UNKNOWN, content=large, headers=TEXT).fails(415, "UNSUPPORTED_MEDIA_TYPE")
    answer = await api.raw("POST", LOCK_UNKNOWN, content=large[:-1]).answers()
    expect(answer.status in (400, 413), ["413 before 400", "400 (size accepted)"], describe(answer.response))
    await api.raw("POST", LOCK_UNKNOWN, body={}).fails(400, "INVALID_REQUEST")
    answer = await api.raw("POST", LOCK_UNKNOWN, body=ME).answers()  # its code is judged by RT-ERR-06
    expect(answer.status not in (400, 413, 415), "no refusal of the request itself", describe(answer.response))


@requirement("RT-ERR-62")
async def test_a_refused_request_changes_nothing(api: RuntimeApi, given: Given) -> None:
    """After 400s on lock and heartbeat every column of the job is what it was."""
    job = await given.locked_job("runtime-a")
    before = await given.inspect(job)
    for path in ("lock", "heartbeat"):
        bodies: list[Any] = [{}, {"runtimeInstanceId": 1}, [], {"runtimeInstanceId": ""}]
        for body in bodies:
            await api.raw("POST", f"{job.path}/{path}", body=body).fails(400, "INVALID_REQUEST")
        await api.raw("POST", f"{job.path}/{path}", body=ME, by=UNSET).fails(400, "INVALID_REQUEST")
    await given.unchanged(job, before)


@requirement("RT-ERR-63")
async def test_unknown_properties_are_ignored(api: RuntimeApi, given: Given) -> None:
    """A newer Runtime may send more: poll, lock and heartbeat ignore what they do not know."""
    job = await given.job()
    extra: dict[str, Any] = {"newProperty": {"deep": [1, None]}, "another": "x"}
    await api.poll(**extra, capabilities={"supportedPlanets": ["earth"]}).succeeds()
    await api.lock(job, **extra).succeeds()
    await api.heartbeat(job, **extra).succeeds()


@requirement("RT-ERR-65", "RT-ERR-66")
async def test_details_name_every_violation(api: RuntimeApi) -> None:
    """Five faults in one poll: where there are `details`, each of the five is named with its place."""
    body = {
        "runtimeInstanceId": "",
        "supportedJobTypes": [],
        "limit": 1000,
        "capabilities": {"supportedSnapshotVersions": "v1", "supportedOutputSchemaVersions": [1]},
    }
    answer = await api.raw("POST", f"{BASE}/jobs/poll", body=body).fails(400, "INVALID_REQUEST")
    if "details" not in answer.json:
        raise CheckSkipped("the build sends no details")
    details = answer.json["details"]
    with about("RT-ERR-65"):
        good = isinstance(details, list) and all(isinstance(item, dict) for item in details)
        expect(good, "details, a list of objects", json.dumps(details)[:200], "/details")
        for i, item in enumerate(details):
            for name in ("location", "rule", "expected", "actual", "message"):
                expect(name in item, f"`{name}` in each entry", json.dumps(item)[:200], f"/details/{i}")
    named = {item["location"] for item in details}
    capabilities = "/capabilities/supportedSnapshotVersions"
    schema_versions = "/capabilities/supportedOutputSchemaVersions"
    with about("RT-ERR-66"):
        for place in ("/runtimeInstanceId", "/supportedJobTypes", "/limit", capabilities):
            expect(place in named, f"an entry for {place}", ", ".join(sorted(named)), "/details")
        found = any(place.startswith(schema_versions) for place in named)
        expect(found, f"an entry for {schema_versions}", ", ".join(named))


@requirement("RT-ERR-67")
async def test_details_hold_no_secret(api: RuntimeApi) -> None:
    """A key that stands where it does not belong is not repeated in the answer."""
    canary = "sk-canary-9f8e7d6c5b4a"
    for body in ({**POLL, "limit": canary}, {**POLL, "runtimeInstanceId": [api.key]}, {**POLL, "limit": {canary: 1}}):
        answer = await api.raw("POST", f"{BASE}/jobs/poll", body=body).fails(400, "INVALID_REQUEST")
        for secret in (canary, api.key):
            expect(secret not in answer.response.text, "an answer without the secret", "the secret is repeated in it")


@requirement("RT-ERR-69")
async def test_an_integer_may_be_written_with_a_fraction_of_zero(api: RuntimeApi) -> None:
    """`"limit": 2.0` is the integer 2."""
    content = b'{"runtimeInstanceId":"runtime-a","supportedJobTypes":["quiz_generation"],"limit":2.0}'
    await api.raw("POST", f"{BASE}/jobs/poll", content=content).succeeds()


@requirement("RT-ERR-70")
@pytest.mark.parametrize("value", [True, "1", "5.0"], ids=["true", "string", "string 5.0"])
async def test_only_numbers_are_numbers(api: RuntimeApi, value: Any) -> None:
    """`true` or `"1"` as a number is 400."""
    await api.poll(limit=value).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-72")
async def test_null_is_a_wrong_type(api: RuntimeApi) -> None:
    """null is refused for each field of a poll, although they may be left out."""
    nulls: list[dict[str, Any]] = [{"limit": None}, {"types": None}, {"capabilities": None}]
    for fields in nulls:
        await api.poll(**fields).fails(400, "INVALID_REQUEST")
    for name in ("supportedSnapshotVersions", "supportedOutputSchemaVersions"):
        await api.poll(capabilities={name: None}).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-75")
async def test_who_does_not_hold_the_lock_is_told_so(api: RuntimeApi, given: Given) -> None:
    """A stranger's heartbeat gets LOCK_NOT_HELD, not retryable, never JOB_ALREADY_LOCKED."""
    job = await given.locked_job("runtime-a")
    with about("RT-HB-03", step="refusing a stranger"):
        await api.heartbeat(job, by="runtime-b").refused()
    answer = await api.heartbeat(job, by="runtime-b").fails(409, "LOCK_NOT_HELD")
    expect(answer.json.get("retryable") is False, "retryable false", answer.json.get("retryable"), "/retryable")


STRANGE = {
    "129 characters": "j" * 129,
    "not decodable": "%ff%fe",
    "NUL": "%00",
    "a slash": "a%2Fb",
    "dots": "%2e%2e",
    "emoji": "%F0%9F%98%80",
    "a quote": "%27%20OR%201%3D1",
    "128 characters": "j" * 128,
    "5000 characters": "j" * 5000,
}


@requirement("RT-ERR-79", "RT-ERR-80")
@pytest.mark.parametrize("name", STRANGE)
async def test_a_strange_job_id_is_404(api: RuntimeApi, name: str) -> None:
    """An id that no job has is 404, never 5xx, whatever its form."""
    for path in ("lock", "heartbeat"):
        call = api.raw("POST", f"{BASE}/jobs/{STRANGE[name]}/{path}", body=ME)
        answer = await call.answers()
        with about("RT-ERR-80"):
            expect(answer.status < 500, "404, never a 5xx", describe(answer.response))
        with about("RT-ERR-79"):
            await call.fails(404, ["JOB_NOT_FOUND", "NOT_FOUND"])
