"""The driver for provider states over HTTP, against answers that ``responses`` plays."""

from __future__ import annotations

import asyncio
import json

import pytest
import requests
import responses

from conformance.drivers.http import DriverError, HttpStates
from conformance.drivers.none import NoStates
from conformance.recording import RECORDER, Recorder
from contract_tests.checks import CheckSkipped, SetUpFailed
from contract_tests.transport import StateRefused

URL = "http://build.test/states"
LISTED = {"system": "runtime-api", "states": ["job", "reset"]}


@pytest.fixture
def played():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def set_up(played, state="job", params=None, **answer):
    played.get(URL, json=LISTED)
    if answer:
        played.post(URL, **answer)
    return asyncio.run(HttpStates(URL).set_up(state, params or {}))


def test_a_state_is_set_up_by_pacts_convention(played):
    values = set_up(played, "job", {"priority": 3}, json={"jobId": "j-1"})
    assert values == {"jobId": "j-1"}
    sent = json.loads(played.calls[-1].request.body)
    assert sent == {"action": "setup", "state": "job", "params": {"priority": 3}}


def test_what_is_not_listed_is_skipped_without_asking(played):
    with pytest.raises(CheckSkipped, match="needs the provider state inspect-job"):
        set_up(played, "inspect-job")
    assert [call.request.method for call in played.calls] == ["GET"]


def test_what_is_listed_but_501_is_skipped(played):
    with pytest.raises(CheckSkipped) as skipped:
        set_up(played, status=501, json={"error": "no"})
    assert not isinstance(skipped.value, SetUpFailed)


def test_a_conflict_is_an_answer(played):
    with pytest.raises(StateRefused, match="only a pending job"):
        set_up(played, status=409, json={"error": "only a pending job can be cancelled"})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"status": 400, "json": {"error": "params/x is unknown"}}, "400.*params/x is unknown"),
        ({"status": 500, "body": "boom"}, "500 boom"),
        ({"status": 200, "body": "<html>"}, "200 <html>"),
        ({"status": 200, "json": ["a list"]}, "200"),
        ({"body": requests.ConnectTimeout()}, "no answer in time"),
        ({"body": requests.ConnectionError()}, "nobody listens"),
    ],
    ids=["400", "500", "HTML", "a list", "timeout", "connection"],
)
def test_a_set_up_that_fails_says_why(played, answer, told):
    with pytest.raises(SetUpFailed, match=told):
        set_up(played, **answer)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"json": {"system": "agent-hub", "states": []}}, "sets up `agent-hub`, not `runtime-api`"),
        ({"json": {"states": "job"}}, "not"),
        ({"body": "<html>"}, "no JSON"),
        ({"status": 404, "json": {"error": "nope"}}, "404"),
        ({"body": requests.ConnectionError()}, "can't be reached"),
        ({"body": requests.ReadTimeout()}, "no answer in time"),
    ],
    ids=["another system", "no list", "HTML", "404", "down", "hangs"],
)
def test_an_endpoint_that_is_none_is_refused_at_once(played, answer, told):
    played.get(URL, **answer)
    with pytest.raises(DriverError, match=told):
        HttpStates(URL)


def test_states_are_recorded_with_a_command_that_repeats_them(played):
    recorder = Recorder()
    token = RECORDER.set(recorder)
    try:
        set_up(played, "job", {"userId": "user 1"}, json={"jobId": "j-1"})
    finally:
        RECORDER.reset(token)
    [exchange] = recorder.exchanges
    assert exchange["response"]["status"] == 200
    assert exchange["request"]["url"] == URL
    assert recorder.commands[0].startswith(f"curl -sS -i -X POST {URL}")
    assert '"userId": "user 1"' in recorder.commands[0]


def test_without_provider_states_every_state_is_skipped():
    with pytest.raises(CheckSkipped, match="--provider-states"):
        asyncio.run(NoStates().set_up("job", {}))
