"""Answers that the contract does not document never leave the server; a fault of ours is told without its data."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from asgi import ask, request

import openapi
from mock_server.app import EXCHANGE, Api, Errors
from mock_server.calls import Answer, Disconnected, Exchange, Refusal
from mock_server.runtime_api import RuntimeApi
from mock_server.worlds import Options, World

POLL = "/internal/runtime/jobs/poll"
BODY = {"runtimeInstanceId": "r", "supportedJobTypes": ["x"]}
SECRET = "sk-in-a-body"


def api(handler, **options):
    """The Runtime API with another poll."""
    contract = openapi.load()
    world = World("default", Options(api_key="test-internal-key"))
    served = Api(contract, {**RuntimeApi(contract).handlers(), "pollJobs": handler}, Errors(contract), **options)

    async def app(scope, receive, send):
        exchange = Exchange(world, scope["method"], scope["path"], dict(scope["headers"]), 0)
        await served.asgi({**scope, "extensions": {EXCHANGE: exchange}}, receive, send)

    return app


async def undocumented_status(_):
    return Answer(202, {"jobs": []})


async def bad_body(_):
    return Answer(200, {"jobs": [{"id": 7, "apiKey": SECRET}]})


async def no_body(_):
    return Answer(200)


async def undocumented_code(_):
    raise Refusal("JOB_ALREADY_LOCKED", "No.")


async def crash(_):
    raise RuntimeError(SECRET)


@pytest.mark.parametrize("handler", [undocumented_status, bad_body, no_body, undocumented_code, crash])
def test_a_fault_of_the_server_is_a_500_that_tells_no_data(handler, caplog):
    with caplog.at_level(logging.ERROR):
        status, headers, body = ask(api(handler), "POST", POLL, BODY)
    assert (status, headers["content-type"]) == (500, "application/json")
    assert (body["errorCode"], body["retryable"]) == ("INTERNAL_ERROR", True)
    assert "pollJobs failed" in caplog.text
    assert SECRET not in caplog.text
    assert SECRET not in repr(body)


def test_the_log_names_what_the_answer_breaks(caplog):
    with caplog.at_level(logging.ERROR):
        ask(api(bad_body), "POST", POLL, BODY)
        ask(api(undocumented_code), "POST", POLL, BODY)
    assert "required" in caplog.text
    assert "JOB_ALREADY_LOCKED" in caplog.text


def test_a_build_may_be_served_unchecked():
    assert ask(api(undocumented_status, validate_responses=False), "POST", POLL, BODY)[0] == 202


def test_an_answer_may_be_a_stream():
    async def parts():
        yield b"one "
        yield b"two"

    async def stream(_):
        return Answer(200, parts(), {"content-type": "text/event-stream"})

    status, headers, body = ask(api(stream), "POST", POLL, BODY)
    assert (status, headers["content-type"], body) == (200, "text/event-stream", b"one two")


def test_handlers_get_parsed_values_with_defaults():
    calls = []

    async def keep(call):
        calls.append(call)
        return Answer(200, {"jobs": []})

    ask(api(keep), "POST", POLL, BODY | {"limit": 3.0})
    ask(api(keep), "POST", POLL, BODY)
    assert [(call.body["limit"], type(call.body["limit"])) for call in calls] == [(3, int), (10, int)]
    assert {call.caller for call in calls} == {"r"}


def test_nobody_is_answered_who_went_away():
    async def gone(_):
        raise Disconnected

    content = json.dumps(BODY).encode()
    with pytest.raises(IndexError):  # nothing was sent
        asyncio.run(request(api(gone), "POST", POLL, content, {"content-type": "application/json"}))


def test_an_answer_that_can_not_be_written_is_a_500():
    async def unwritable(_):
        return Answer(200, {"jobs": [object()]})

    status, _, body = ask(api(unwritable, validate_responses=False), "POST", POLL, BODY)
    assert (status, body["errorCode"]) == (500, "INTERNAL_ERROR")
