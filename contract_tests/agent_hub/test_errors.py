"""What a failure looks like, and which one a request gets (seed 002 sections 4 and 6)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import BASE, UNSET, Call, HubAnswer, HubApi, describe, item, judge_error_shape
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

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
