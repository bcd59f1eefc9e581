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
from contract_tests.transport import StateBroken, StateRefused

URL = "http://build.test/states"
JOB = {"jobId": "j-1", "userId": "user 1", "snapshotId": None}
LISTED = {"system": "runtime-api", "states": ["job", "reset"]}


@pytest.fixture
def played():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        yield mock


def set_up(played, state="job", params=None, **answer):
    played.get(URL, json=LISTED)
    if answer:
        played.post(URL, **answer)
    return asyncio.run(HttpStates(URL, "runtime-api").set_up(state, params or {}))


def test_a_state_is_set_up_by_pacts_convention(played):
    values = set_up(played, "job", {"priority": 3}, json=JOB)
    assert values == JOB
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
    with pytest.raises(StateRefused, match="only a pending job") as refused:
        set_up(played, status=409, json={"error": "only a pending job can be cancelled"})
    assert isinstance(refused.value, SetUpFailed), "a check that does not expect it is skipped, not broken"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"status": 400, "json": {"error": "params/x is unknown"}}, "400.*params/x is unknown"),
        ({"status": 500, "body": "boom"}, "500 boom"),
        ({"status": 200, "body": "<html>"}, "200 <html>"),
        ({"status": 200, "json": ["a list"]}, "which is no object"),
        ({"status": 200, "body": "[" * 100_000}, "200"),
        ({"status": 200, "json": {"userId": "u"}}, "`jobId` is to be a string; it is left out"),
        ({"status": 200, "json": {"jobId": 5, "userId": "u"}}, "`jobId` is to be a string; it is 5"),
        ({"body": requests.ConnectTimeout()}, "no answer in time"),
        ({"body": requests.ConnectionError()}, "nobody listens"),
    ],
    ids=["400", "500", "HTML", "a list", "deep JSON", "no id", "an id that is a number", "timeout", "connection"],
)
def test_a_set_up_that_fails_says_why(played, answer, told):
    with pytest.raises(SetUpFailed, match=told) as failed:
        set_up(played, **answer)
    assert isinstance(failed.value, StateBroken) is (answer.get("status") == 500)


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
        HttpStates(URL, "runtime-api")


def test_states_are_recorded_with_a_command_that_repeats_them(played):
    recorder = Recorder()
    token = RECORDER.set(recorder)
    try:
        set_up(played, "job", {"userId": "user 1"}, json=JOB)
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


def test_a_set_up_that_hangs_is_not_tried_again(played):
    played.get(URL, json=LISTED)
    played.post(URL, body=requests.ReadTimeout())
    states = HttpStates(URL, "runtime-api")
    for _ in range(3):
        with pytest.raises(SetUpFailed, match="no answer in time"):
            asyncio.run(states.set_up("job", {}))
    assert [call.request.method for call in played.calls] == ["GET", "POST"]


def test_no_proxy_and_no_netrc_of_the_users_is_used(played, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    set_up(played, "job", json=JOB)
    assert all(call.request.headers.get("Authorization") is None for call in played.calls)
    played.get(URL, json=LISTED)
    assert HttpStates(URL, "runtime-api")._session.trust_env is False


def test_the_key_of_a_credential_is_a_secret_from_then_on(played):
    recorder = Recorder()
    token = RECORDER.set(recorder)
    played.get(URL, json={"system": "runtime-api", "states": ["credential"]})
    played.post(URL, json={"credentialId": "c-1", "userId": "u", "apiKey": "no-usual-form-9"})
    try:
        values = asyncio.run(HttpStates(URL, "runtime-api").set_up("credential", {}))
    finally:
        RECORDER.reset(token)
    assert values["apiKey"] == "no-usual-form-9"
    assert "no-usual-form-9" not in json.dumps(recorder.exchanges)
