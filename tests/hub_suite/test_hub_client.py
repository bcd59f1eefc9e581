"""The hub in the protocol's words: what is sent, and how answers are judged."""

import asyncio
import json

import pytest
from fake_hub import FakeHub
from streams import PlayedStream

from contract_tests.agent_hub.client import UNSET, HubApi, item
from contract_tests.checks import CheckFailed, Silent
from contract_tests.transport import Request, Response


class Scripted:
    """A transport that gives one answer, and keeps the requests."""

    def __init__(self, status=200, body=None, *, content=None, stream=None):
        self.content = json.dumps(body).encode() if content is None else content
        self.status, self.stream = status, stream
        self.requests = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(self.status, {"content-type": "application/json"}, self.content, 0.0, 0.0)

    async def send_together(self, requests):
        return [await self.send(request) for request in requests]

    async def open(self, request):
        self.requests.append(request)
        return self.stream or PlayedStream(
            self.content, status=self.status, ends=True, content_type="application/json; charset=utf-8"
        )

    def mark(self, begins):
        pass


def sent(make):
    """The one request of a call."""
    transport = Scripted()
    asyncio.run(make(HubApi(transport, "zqa_live_test")).answers())
    (request,) = transport.requests
    return request


def judged(make, status, body=None, **parts):
    return asyncio.run(make(HubApi(Scripted(status, body, **parts), "t")))


def error(code="job_not_found", message="no such job", **more):
    return {"error": {"code": code, "message": message}, **more}


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda api: api.submit(item("p")), "POST /v1/jobs"),
        (lambda api: api.jobs(), "GET /v1/jobs"),
        (lambda api: api.jobs(status="failed", limit=20, cursor=UNSET), "GET /v1/jobs?status=failed&limit=20"),
        (lambda api: api.jobs(externalId="a b&c/检"), "GET /v1/jobs?externalId=a+b%26c%2F%E6%A3%80"),
        (lambda api: api.job("job_1"), "GET /v1/jobs/job_1"),
        (lambda api: api.job("a/b?c"), "GET /v1/jobs/a%2Fb%3Fc"),
        (lambda api: api.events("job_1"), "GET /v1/jobs/job_1/events"),
        (lambda api: api.events("job_1", since=7), "GET /v1/jobs/job_1/events?since=7"),
        (lambda api: api.cancel("job_1"), "POST /v1/jobs/job_1/cancel"),
        (lambda api: api.retry("job_1"), "POST /v1/jobs/job_1/retry"),
        (lambda api: api.batch("sprint-42"), "GET /v1/batches/sprint-42"),
        (lambda api: api.cancel_batch("sprint-42"), "POST /v1/batches/sprint-42/cancel"),
        (lambda api: api.projects(), "GET /v1/projects"),
        (lambda api: api.overview(), "GET /v1/overview"),
        (lambda api: api.raw("PUT", "/v2"), "PUT /v2"),
    ],
)
def test_operations(make, line):
    request = sent(make)
    assert f"{request.method} {request.path}" == line
    assert request.headers["authorization"] == "Bearer zqa_live_test"


def test_a_submission():
    request = sent(lambda api: api.submit(item("p"), item("q", kind="script"), batch="b", key="k", more=1))
    assert json.loads(request.content) == {
        "batchId": "b",
        "items": [
            {"kind": "ai", "projectId": "p", "prompt": "look for TODO in src"},
            {"kind": "script", "projectId": "q", "command": "look for TODO in src"},
        ],
        "more": 1,
    }
    assert (request.headers["idempotency-key"], request.headers["content-type"]) == ("k", "application/json")


def test_nothing_is_sent_that_was_not_given():
    request = sent(lambda api: api.submit([item(prompt=UNSET, kind=UNSET)]))
    assert json.loads(request.content) == {"items": [{}]}
    assert {*request.headers} == {"authorization", "content-type"}
    assert {*sent(lambda api: api.cancel("j")).headers} == {"authorization"}
    assert "authorization" not in sent(lambda api: api.raw("GET", "/v1/jobs", token=UNSET)).headers
    assert sent(lambda api: api.raw("GET", "/v1/jobs", token="x")).headers["authorization"] == "Bearer x"


def test_reconnecting():
    request = sent(lambda api: api.events("j", last_event_id=4, since=9))
    assert (request.headers["last-event-id"], request.path) == ("4", "/v1/jobs/j/events?since=9")


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "HUB-ERR-01"),
        ([], "HUB-ERR-01"),
        ({"errorCode": "JOB_NOT_FOUND", "message": "no"}, "HUB-ERR-01"),
        ({"error": "job_not_found"}, "HUB-ERR-01"),
        ({"error": {"code": "job_not_found"}}, "HUB-ERR-01"),
        ({"error": {"code": "job_not_found", "message": "  "}}, "HUB-ERR-01"),
        ({"error": {"code": 404, "message": "no"}}, "HUB-ERR-01"),
    ],
)
def test_an_error_has_the_shape_of_the_hub(body, rule):
    for make in (lambda api: api.job("j").fails(404, "job_not_found"), lambda api: api.job("j").refused()):
        with pytest.raises(CheckFailed) as told:
            judged(make, 404, body)
        assert (told.value.rules, told.value.step) == ((rule,), "the body of an error")


def test_an_error_is_right_without_what_decisions_add():
    judged(lambda api: api.job("j").fails(404, "job_not_found"), 404, error())
    judged(lambda api: api.job("j").refused(), 422, error("anything", requestId="req_1"))


def test_another_code_or_status():
    with pytest.raises(CheckFailed, match="404 job_not_found; got 404 not_found at /error/code"):
        judged(lambda api: api.job("j").fails(404, "job_not_found"), 404, error("not_found"))
    with pytest.raises(CheckFailed, match="404 job_not_found; got 410 gone"):
        judged(lambda api: api.job("j").fails(404, "job_not_found"), 410, error("gone"))
    with pytest.raises(CheckFailed) as told:
        judged(lambda api: api.job("j").fails(404, "job_not_found"), 400, error())
    assert told.value.rules == ("HUB-ERR-53",)
    with pytest.raises(CheckFailed, match="4xx"):
        judged(lambda api: api.job("j").refused(), 500, error())


def test_the_envelope_of_a_success():
    answer = judged(lambda api: api.job("j").succeeds(200), 200, {"data": {"id": "j"}, "requestId": "req_1"})
    assert answer.data == answer.inner == {"id": "j"}
    for make, rule in (
        (lambda api: api.job("j").succeeds(), "HUB-GET-02"),
        (lambda api: api.submit().succeeds(), "HUB-SUB-06"),
        (lambda api: api.batch("b").succeeds(), "HUB-BATCH-04"),
    ):
        answer = judged(make, 200, {"id": "j"})
        with pytest.raises(CheckFailed) as told:
            _ = answer.data
        assert told.value.rules == (rule,)
        assert answer.inner == {"id": "j"}


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"items": [{"id": "j"}], "nextCursor": None}},
        {"data": [{"id": "j"}]},
        {"items": [{"id": "j"}]},
        [{"id": "j"}],
    ],
)
def test_a_list_is_found_wherever_a_build_has_it(body):
    assert judged(lambda api: api.jobs().succeeds(), 200, body).entries == [{"id": "j"}]


@pytest.mark.parametrize("body", [{}, {"data": {}}, {"data": {"items": [1]}}, {"data": None}, None, "x"])
def test_what_is_no_list_fails(body):
    answer = judged(lambda api: api.jobs().succeeds(), 200, body)
    with pytest.raises(CheckFailed, match="a list of objects"):
        _ = answer.entries


def test_details():
    details = [{"index": 0, "field": "prompt", "message": "is missing"}]
    body = {"error": {"code": "invalid_request", "message": "no", "details": details}}
    assert judged(lambda api: api.submit().fails(400, "invalid_request"), 400, body).details == details
    with pytest.raises(CheckFailed, match="details"):
        _ = judged(lambda api: api.submit().refused(), 400, error()).details


def test_following_a_job():
    async def check():
        hub = FakeHub()
        api = HubApi(hub, "t")
        await hub.set_up("node", {"nodeId": "n", "projects": ["p"]})
        id_ = (await api.submit(item("p")).succeeds(202)).data["items"][0]["id"]
        async with api.events(id_) as stream:
            assert (await stream.next("job.state")).data["id"] == id_
            assert stream.comments[0].text == " ping"
        assert hub.streams[0].closed

    asyncio.run(check())


def test_a_stream_that_is_refused():
    judged(lambda api: api.events("j").fails(404, "job_not_found"), 404, error())
    with pytest.raises(CheckFailed) as told:
        judged(lambda api: api.events("j").opens(), 404, error())
    assert told.value.rules == ("HUB-SSE-01",)
    assert "404 with content-type application/json" in told.value.actual


def test_a_stream_that_should_be_refused_does_not_hang():
    async def check():
        stream = PlayedStream(b": ping\n\n")
        transport = Scripted(stream=stream)
        with pytest.raises(CheckFailed, match="404 job_not_found; got 200 : ping"):
            await HubApi(transport, "t").events("j").fails(404, "job_not_found")
        assert stream.closed

    asyncio.run(check())


def test_a_refusal_that_is_not_finished_fails(monkeypatch):
    async def check():
        stream = PlayedStream(b'{"error"', status=404, content_type="application/json")
        with pytest.raises(Silent):
            await HubApi(Scripted(stream=stream), "t").events("j").fails(404, "job_not_found")

    monkeypatch.setattr("contract_tests.agent_hub.client.REFUSAL_SECONDS", 0.05)
    asyncio.run(check())


def test_together_and_other_headers():
    async def check():
        transport = Scripted(200, {"data": {}})
        api = HubApi(transport, "t")
        assert [answer.data for answer in await api.together([api.overview(), api.projects()])] == [{}, {}]
        await api.cancel("j").with_headers({"authorization": UNSET, "x": "y"}).answers()
        assert transport.requests[-1].headers == {"x": "y"}

    asyncio.run(check())
