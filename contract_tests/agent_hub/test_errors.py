"""What a failure looks like, and which one a request gets (seed 002 sections 4 and 6)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import BASE, UNSET, Call, HubAnswer, HubApi, describe, item, judge_error_shape
from contract_tests.checks import CheckSkipped, about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

MIB = 2**20
TEXT = {"content-type": "text/plain"}
REQUEST_ID = re.compile(r"req_.+")

FAILING = {
    "no key": "HUB-AUTH-01",
    "no such job": "HUB-ERR-01",
    "no such batch": "HUB-ERR-01",
    "no such path": "HUB-ERR-01",
    "no such method": "HUB-ERR-01",
    "no JSON": "HUB-ERR-01",
    "no prompt": "HUB-FIELD-06",
    "no such project": "HUB-FIELD-03",
    "cancel of a done job": "HUB-CANCEL-05",
    "retry of a done job": "HUB-RETRY-08",
    "an offline node": "HUB-NODE-05",
    "an ambiguous project": "HUB-NODE-01",
}
"""The rule of level seed by which a request fails at all."""


async def failing(api: HubApi, given: HubGiven, kind: str) -> Call:
    """A call that fails for one of the reasons of :data:`FAILING`."""
    match kind:
        case "no key":
            return api.raw("GET", f"{BASE}/jobs", token=UNSET)
        case "no such job":
            return api.job("no-such-job")
        case "no such batch":
            return api.batch("no-such-batch")
        case "no such path":
            return api.raw("GET", f"{BASE}/no-such-path")
        case "no such method":
            return api.raw("DELETE", f"{BASE}/jobs")
        case "no JSON":
            return api.raw("POST", f"{BASE}/jobs", content=b'{"items": [')
        case "no prompt":
            return api.submit(item(await given.some_project(), prompt=UNSET))
        case "no such project":
            return api.submit(item(given.unique("no-such-project")))
        case "cancel of a done job":
            return api.cancel(await given.done_job())
        case "retry of a done job":
            return api.retry(await given.done_job())
        case "an offline node":
            return api.submit(item(await given.project(online=False)))
        case _:
            return api.submit(item(await ambiguous(given)))


async def ambiguous(given: HubGiven) -> str:
    """A project that two nodes have."""
    project = given.unique("proj")
    await given.node(projects=[project])
    await given.node(projects=[project])
    return project


async def failed(api: HubApi, given: HubGiven, kind: str) -> HubAnswer:
    """The failure, whichever it is; that the request fails at all is another rule's."""
    answer = await (await failing(api, given, kind)).answers()
    with about(FAILING[kind], step=f"refusing: {kind}"):
        expect(answer.status >= 400, "a failure", describe(answer.response))
    return answer


@requirement("HUB-ERR-01")
@pytest.mark.parametrize("kind", FAILING)
async def test_every_failure_has_the_error_body(api: HubApi, given: HubGiven, kind: str) -> None:
    """A failing call has `error` with `code` and `message`, whatever made it fail."""
    judge_error_shape(await failed(api, given, kind))


@requirement("HUB-ERR-02")
async def test_job_finished_is_spelled_so(api: HubApi, given: HubGiven) -> None:
    """Cancelling a finished job: 409 `job_finished`."""
    await api.cancel(await given.done_job()).fails(409, "job_finished")


@requirement("HUB-ERR-02")
async def test_job_not_retryable_is_spelled_so(api: HubApi, given: HubGiven) -> None:
    """Retrying a job that is neither failed nor cancelled: 409 `job_not_retryable`."""
    await api.retry(await given.running_job()).fails(409, "job_not_retryable")


@requirement("HUB-ERR-02")
async def test_node_offline_is_spelled_so(api: HubApi, given: HubGiven) -> None:
    """Submitting to a node that is offline: 409 `node_offline`."""
    await api.submit(item(await given.project(online=False))).fails(409, "node_offline")


@requirement("HUB-ERR-02")
async def test_ambiguous_project_is_spelled_so(api: HubApi, given: HubGiven) -> None:
    """Submitting for a project that two nodes have, without a node: `ambiguous_project`, with whichever 4xx."""
    answer = await api.submit(item(await ambiguous(given))).refused()
    code = answer.json["error"]["code"]
    expect(code == "ambiguous_project", "ambiguous_project", code, "/error/code")


@requirement("HUB-ERR-50")
@pytest.mark.parametrize("kind", FAILING)
async def test_every_failure_has_a_request_id(api: HubApi, given: HubGiven, kind: str) -> None:
    """A failing call's body carries `requestId`, `req_...`."""
    answer = await failed(api, given, kind)
    came = answer.fields.get("requestId")
    good = isinstance(came, str) and bool(REQUEST_ID.fullmatch(came))
    expect(good, "`requestId`, req_...", json.dumps(came), "/requestId")


@requirement("HUB-ERR-51")
async def test_details_are_a_list_of_objects(api: HubApi, given: HubGiven) -> None:
    """An error may carry `details`; where it does, they are a list of objects."""
    answer = await api.submit(item(await given.some_project(), prompt=UNSET)).refused()
    if answer.fields["error"].get("details") is not None:
        expect(bool(answer.details), "details that name something", "an empty list", "/error/details")


@requirement("HUB-ERR-52")
@pytest.mark.parametrize("kind", FAILING)
async def test_every_failure_has_its_id_in_a_header(api: HubApi, given: HubGiven, kind: str) -> None:
    """A failing call's `x-request-id` is the body's `requestId`."""
    same_id(await failed(api, given, kind))


@requirement("HUB-ERR-52")
async def test_every_success_has_its_id_in_a_header(api: HubApi, given: HubGiven) -> None:
    """A successful call's `x-request-id` is the body's `requestId`, of every operation, and of no other call."""
    job = await given.running_job(batch=given.unique("batch"))
    calls = [
        api.submit(item(job.project)),
        api.jobs(limit=1),
        api.job(job),
        api.batch(job.batch),
        api.projects(),
        api.overview(),
        api.cancel(job),
        api.retry(job),
        api.cancel_batch(job.batch),
    ]
    ids = []
    for call in calls:
        answer = await call.succeeds()
        same_id(answer)
        ids.append(answer.fields["requestId"])
    expect(len({*ids}) == len(ids), "an id for each request", str(ids), "x-request-id")


@requirement("HUB-ERR-52")
async def test_answers_without_a_json_body_have_an_id(api: HubApi, given: HubGiven) -> None:
    """A stream, and an answer to HEAD, carry `x-request-id`, too."""
    job = await given.running_job()
    async with api.events(job) as stream:
        came = stream.headers.get("x-request-id", "")
        expect(
            bool(REQUEST_ID.fullmatch(came)), "x-request-id, req_... of a stream", came or "left out", "x-request-id"
        )
    answer = await api.raw("HEAD", f"{BASE}/jobs").answers()
    came = answer.headers.get("x-request-id", "")
    expect(bool(REQUEST_ID.fullmatch(came)), "x-request-id, req_... of HEAD", came or "left out", "x-request-id")


def same_id(answer: HubAnswer) -> None:
    """The header has the body's id, where the body has one; otherwise it has one of the form."""
    came, said = answer.headers.get("x-request-id", ""), answer.fields.get("requestId")
    expect(bool(REQUEST_ID.fullmatch(came)), "x-request-id, req_...", came or "left out", "x-request-id")
    expect(came == said, f"x-request-id {json.dumps(said)}, the body's requestId", came, "x-request-id")


STRANGE = {
    "plain": "no-such-job",
    "NUL": "%00",
    "a slash": "a%2Fb",
    "emoji": "%F0%9F%98%80",
    "a quote": "%27%20OR%201%3D1",
    "2000 characters": "j" * 2000,
}


@requirement("HUB-ERR-53")
@pytest.mark.parametrize("name", STRANGE)
async def test_an_unknown_job_is_404(api: HubApi, name: str) -> None:
    """An id that no job has: 404 `job_not_found` of detail, events, cancel and retry, whatever the id's form."""
    codes = ["job_not_found"] if name == "plain" else ["job_not_found", "not_found"]
    path = f"{BASE}/jobs/{STRANGE[name]}"
    await api.raw("GET", path).fails(404, codes)
    await api.raw("GET", f"{path}/events").fails(404, codes)
    await api.raw("POST", f"{path}/cancel").fails(404, codes)
    await api.raw("POST", f"{path}/retry").fails(404, codes)


@requirement("HUB-ERR-54")
@pytest.mark.parametrize("name", STRANGE)
async def test_an_unknown_batch_is_404(api: HubApi, name: str) -> None:
    """An id that no batch has: 404 `batch_not_found` of summary and cancel, whatever the id's form."""
    codes = ["batch_not_found"] if name == "plain" else ["batch_not_found", "not_found"]
    path = f"{BASE}/batches/{STRANGE[name]}"
    await api.raw("GET", path).fails(404, codes)
    await api.raw("POST", f"{path}/cancel").fails(404, codes)


@requirement("HUB-ERR-55")
async def test_an_unknown_path_is_404(api: HubApi) -> None:
    """A path that does not exist: 404 `not_found`; a slash too many is another path."""
    for path in ("/no-such-path", "/jobs/x/pause", "/jobs/x/events/1", "/batches", "/projects/", "/overview/load"):
        await api.raw("GET", BASE + path).fails(404, "not_found")
    for path in ("/jobs/x/unlock", "/batches/x/retry"):
        await api.raw("POST", BASE + path).fails(404, "not_found")


METHODS = {
    "/jobs": {"GET", "POST"},
    "/jobs/no-such-job": {"GET"},
    "/jobs/no-such-job/events": {"GET"},
    "/jobs/no-such-job/cancel": {"POST"},
    "/jobs/no-such-job/retry": {"POST"},
    "/batches/no-such-batch": {"GET"},
    "/batches/no-such-batch/cancel": {"POST"},
    "/projects": {"GET"},
    "/overview": {"GET"},
}
"""The methods of every path. A path is known whatever id stands in it."""


@requirement("HUB-ERR-56", "HUB-ERR-57", "HUB-ERR-58")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
async def test_a_wrong_method_is_405(api: HubApi, method: str) -> None:
    """A method that the path does not have: 405 `method_not_allowed` with `Allow`; HEAD and OPTIONS, too."""
    for path, methods in METHODS.items():
        if method in methods:
            continue
        call = api.raw(method, BASE + path)
        answer = await call.answers()
        with about("HUB-ERR-58" if method in ("HEAD", "OPTIONS") else "HUB-ERR-56"):
            expect(answer.status == 405, f"405 to {method} {path}", describe(answer.response))
            if method != "HEAD":
                await call.fails(405, "method_not_allowed")
        with about("HUB-ERR-57"):
            allow = answer.headers.get("allow", "")
            listed = {one.strip() for one in allow.split(",")}
            expect(listed == methods, f"Allow: {', '.join(sorted(methods))}", allow or "no Allow", "allow")


async def body_for(given: HubGiven, **fields: Any) -> bytes:
    """A right submission's body."""
    return json.dumps({"items": [item((await given.project()).id, **fields)]}).encode()


@requirement("HUB-ERR-59")
@pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
async def test_another_media_type_is_415(api: HubApi, given: HubGiven, media: str) -> None:
    """A submission that is not JSON by its content type: 415, even where its text is JSON; nothing is queued."""
    task = given.unique("task")
    content = await body_for(given, externalId=task)
    call = api.raw("POST", f"{BASE}/jobs", content=content, headers={"content-type": media})
    await call.fails(415, "unsupported_media_type")
    entries = (await api.jobs(externalId=task).succeeds(200)).entries
    expect(entries == [], "no job of a refused submission", str(len(entries)), "/data/items")
    await call.with_headers({"content-type": "application/json; charset=utf-8"}).succeeds(202)


@requirement("HUB-ERR-60")
async def test_no_other_operation_judges_the_media_type(api: HubApi, given: HubGiven) -> None:
    """Whatever content type a cancel, a retry or a reading call names, it is not refused for it."""
    job = await given.running_job(batch=given.unique("batch"))
    for call in (
        api.jobs(limit=1),
        api.job(job),
        api.batch(job.batch),
        api.projects(),
        api.overview(),
        api.cancel(job, content=b"x"),
        api.retry(job, content=b"x"),
        api.cancel_batch(job.batch, content=b"x"),
    ):
        await call.with_headers(TEXT).succeeds(200)


BODIES = {
    "an empty object": b"{}",
    "a list": b"[1]",
    "unknown fields": b'{"reason": "by hand", "force": true}',
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "a mebibyte": b" " * MIB,
}


@requirement("HUB-ERR-61")
@pytest.mark.parametrize("name", BODIES)
async def test_cancel_and_retry_ignore_a_body(api: HubApi, given: HubGiven, name: str) -> None:
    """Whatever body comes with a cancel or a retry, it does what it does without."""
    job = await given.running_job(batch=given.unique("batch"))
    await api.cancel(job, content=BODIES[name]).succeeds(200)
    await given.until(job, "cancelled", seconds=0)
    await api.retry(job, content=BODIES[name]).succeeds(200)
    await api.cancel_batch(job.batch, content=BODIES[name]).succeeds(200)
    await given.until(job, "cancelled", seconds=0)


def padded(content: bytes, size: int) -> bytes:
    """The same JSON with spaces, exactly ``size`` bytes."""
    return content + b" " * (size - len(content))


async def too_large(api: HubApi, project: str) -> bytes:
    """A body that the build refuses for its size, well-formed, of an item that it would refuse for its project."""
    content = json.dumps({"items": [item(project)]}).encode()
    for mebibytes in (24, 48, 96):
        large = padded(content, mebibytes * MIB)
        answer = await api.raw("POST", f"{BASE}/jobs", content=large).answers()
        if answer.status != 400:
            expect(answer.status == 413, "413 (or 400, the size being accepted)", describe(answer.response))
            return large
    raise CheckSkipped("the build accepts bodies of 96 MiB")


@requirement("HUB-ERR-62")
async def test_a_body_too_large_is_413(api: HubApi, given: HubGiven) -> None:
    """A body that the build does not accept for its size: 413 `payload_too_large`."""
    large = await too_large(api, given.unique("no-such-project"))
    await api.raw("POST", f"{BASE}/jobs", content=large).fails(413, "payload_too_large")


@requirement("HUB-ERR-63")
async def test_a_body_of_20_mebibytes_is_accepted(api: HubApi, given: HubGiven) -> None:
    """A body of exactly 20 MiB is accepted."""
    content = padded(await body_for(given), 20 * MIB)
    await api.raw("POST", f"{BASE}/jobs", content=content).succeeds(202)


MALFORMED = {
    "empty": b"",
    "cut off": b'{"items": [',
    "comma": b'{"items": [],}',
    "quotes": b"{'items': []}",
    "no JSON": b"nonsense",
    "NaN": b'{"items": [NaN]}',
    "two values": b'{"items": []} {}',
    "10000 deep": b"[" * 10_000 + b"]" * 10_000,
    "not UTF-8": b'{"items": [{"kind": "\xff\xfe"}]}',
    "a control character": b'{"items": [{"kind": "a\x01"}]}',
}


@requirement("HUB-ERR-64")
@pytest.mark.parametrize("name", MALFORMED)
async def test_malformed_json_is_400(api: HubApi, name: str) -> None:
    """A body that is no well-formed JSON: 400 `invalid_request`, never a 5xx."""
    await api.raw("POST", f"{BASE}/jobs", content=MALFORMED[name]).fails(400, "invalid_request")


@requirement("HUB-ERR-65")
async def test_path_method_and_key_form_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """Path before method, method before the form of `Idempotency-Key`, that before the media type."""
    ill_formed = {"idempotency-key": "two words"}
    await api.raw("DELETE", f"{BASE}/no-such-path", headers=ill_formed).fails(404, "not_found")
    await api.raw("DELETE", f"{BASE}/jobs", headers=ill_formed).fails(405, "method_not_allowed")
    await api.raw("DELETE", f"{BASE}/jobs/no-such-job").fails(405, "method_not_allowed")
    content = json.dumps({"items": [item(await given.some_project())]}).encode()
    call = api.raw("POST", f"{BASE}/jobs", content=content, headers={**ill_formed, **TEXT})
    await call.fails(400, "invalid_request")


@requirement("HUB-ERR-65")
async def test_media_type_size_and_syntax_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """Media type before size, size before JSON syntax."""
    large = await too_large(api, given.unique("no-such-project"))
    await api.raw("POST", f"{BASE}/jobs", content=large, headers=TEXT).fails(415, "unsupported_media_type")
    await api.raw("POST", f"{BASE}/jobs", content=b"{" + large[1:-1] + b"{").fails(413, "payload_too_large")


@requirement("HUB-ERR-65")
async def test_syntax_look_up_and_form_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """JSON syntax before the look-up of a used `Idempotency-Key`, that before the other rules of the body."""
    key, project = given.unique("order"), await given.project()
    await given.accepted(item(project), key=key)
    used = {"idempotency-key": key}
    await api.raw("POST", f"{BASE}/jobs", content=b'{"items": [', headers=used).fails(400, "invalid_request")
    await api.submit(item(project, kind="neither"), key=key).fails(422, "idempotency_key_reused")
    await api.submit(item(given.unique("no-such-project")), key=key).fails(422, "idempotency_key_reused")


AI_FIELDS = ("kind", "projectId", "nodeId", "prompt", "mode", "priority", "maxAttempts", "externalId", "callbackUrl")
SCRIPT_FIELDS = ("command", "timeoutSeconds")


@requirement("HUB-ERR-66")
@pytest.mark.parametrize("name", [*AI_FIELDS, *SCRIPT_FIELDS])
async def test_null_is_refused_in_an_item(api: HubApi, given: HubGiven, name: str) -> None:
    """A field of an item that is null: 400 `invalid_request`, though it may be left out."""
    kind = "script" if name in SCRIPT_FIELDS else "ai"
    await api.submit({**item(await given.some_project(), kind=kind), name: None}).fails(400, "invalid_request")


@requirement("HUB-ERR-66")
async def test_null_is_refused_in_the_body(api: HubApi, given: HubGiven) -> None:
    """A `batchId` or `items` that is null, an item that is, or a body that is: 400 `invalid_request`."""
    good = item(await given.some_project())
    bodies: list[Any] = [{"items": [good], "batchId": None}, {"items": None}, {"items": [None]}, None]
    for body in bodies:
        await api.raw("POST", f"{BASE}/jobs", body=body).fails(400, "invalid_request")


@requirement("HUB-ERR-66")
async def test_null_is_metadata_like_any_other(api: HubApi, given: HubGiven) -> None:
    """A `metadata` of null is not refused."""
    await api.submit(item(await given.project(), metadata=None)).succeeds(202)
