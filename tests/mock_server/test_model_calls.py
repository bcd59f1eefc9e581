"""Who may call the model, and what the journal tells of a call: whose it is, its key, what came of it, no secret."""

from __future__ import annotations

import base64
import json

import httpx
import pytest
from har_schema import check_har
from mock_world import start, stop
from model_world import BODY, ModelWorld, world_on

import openapi
from mock_server.model.memory import ModelMemory

STRANGE = "a-runtimes-own-key-0123"
"""A key that no world knows."""


@pytest.fixture
def model(base_url):
    with world_on(base_url) as world:
        yield world


def code(answer):
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return answer.status_code, error["code"]


def keys(world, number):
    return [entry["model"]["key"] for entry in world.calls(number)]


def test_the_key_that_was_handed_out_is_asked_for(model):
    resolved = model.resolved()
    for headers in ({"authorization": None}, {"authorization": ""}, {"authorization": "Bearer"}):
        assert code(model.ask(resolved, headers=headers)) == (401, "unauthorized")
    for value in (f"Bearer {resolved.key}x", f"Basic {resolved.key}", resolved.key, f"Bearer {resolved.key[:-1]}"):
        answer = model.ask(resolved, headers={"authorization": value})
        assert code(answer) == (401, "unauthorized")
        assert resolved.key not in answer.text
    assert model.ask(resolved, headers={"authorization": f"bearer  {resolved.key}"}).status_code == 200
    assert keys(model, 8) == ["none"] * 3 + ["wrong"] * 4 + ["right"]
    assert {entry["operationId"] for entry in model.calls(8)} == {"chatCompletions"}
    assert {entry["jobId"] for entry in model.calls(8)} == {resolved.job}


def test_a_users_job_takes_the_users_key_alone(model):
    made = [model.state("credential", userId="u1") for _ in range(2)]
    own = {"apiKeyMode": "user_deepseek_key", "credentialId": made[0]["credentialId"]}
    job = model.locked(userId="u1", **own)
    users, platform = model.resolved_again(job, **own), model.resolved()
    assert users.key == made[0]["apiKey"]
    assert model.ask(users).status_code == 200
    assert code(model.ask(users, key=platform.key)) == (401, "unauthorized")
    assert code(model.ask(users, key=made[1]["apiKey"])) == (401, "unauthorized")
    assert code(model.ask(platform, key=users.key)) == (401, "unauthorized")
    assert keys(model, 4) == ["right", "wrong", "wrong", "wrong"]


def resolve_of(memory, mode, key):
    job = {"id": f"job-{mode}", "jobType": "t", "attemptNo": 0, "apiKeyMode": mode, "outputSchemaVersion": None}
    return memory.resolved(job, "runtime-1", key)


@pytest.mark.parametrize(
    ("handed_out", "platform", "given", "key"),
    [
        (None, "platform-key", b"platform-key", "right"),
        (None, "platform-key", b"another", "wrong"),
        (None, "platform-key", b"", "none"),
        (None, None, b"the-runtimes-own", "right"),
        (None, None, b"a-users-key", "wrong"),  # of another job
        (None, None, b"", "none"),
        ("platform-key", "platform-key", b"platform-key", "right"),
        ("platform-key", None, b"another", "wrong"),
    ],
)
def test_a_platform_key_of_the_runtimes_own(handed_out, platform, given, key):
    memory = ModelMemory()
    users = resolve_of(memory, "user_deepseek_key", "a-users-key")
    own = resolve_of(memory, "platform_key", handed_out)
    assert memory.called(own, given, platform).key == key
    assert memory.called(users, b"platform-key", platform).key == "wrong"


def test_a_token_that_no_resolve_made_leads_nowhere(model):
    resolved = model.resolved()
    for token in ("0" * 16, "x", "%2e", "a b"):
        url = resolved.url.replace(resolved.token, token)
        answer = model.client.post(url, json=BODY, headers={"authorization": f"Bearer {resolved.key}"})
        assert code(answer) == (404, "not_found")
        assert "No resolve of this world" in answer.json()["error"]["message"]
    entry = model.calls(4)[0]
    assert entry["model"] == {
        "jobId": None,
        "caller": None,
        "attemptNo": None,
        "resolve": "0" * 16,
        "key": "right",
        "outcome": None,
        "call": None,
    }
    assert (entry["jobId"], entry["caller"], entry["verdict"]) == (None, None, "refused")


@pytest.mark.parametrize(
    "path", ["", "/v1", "/v1/", "/v2/chat/completions", "/chat/completions", "/v1/models", "/v1//"]
)
def test_another_path_leads_nowhere(model, path):
    resolved = model.resolved()
    url = resolved.url.removesuffix("/v1/chat/completions") + path
    answer = model.client.post(url, json=BODY, headers={"authorization": f"Bearer {resolved.key}"})
    assert code(answer) == (404, "not_found")
    (entry,) = model.journal(match=resolved.token)
    assert (entry["operationId"], entry["model"]["jobId"]) == (None, resolved.job)


def test_another_method_is_refused(model):
    resolved = model.resolved()
    answer = model.client.get(resolved.url, headers={"authorization": f"Bearer {resolved.key}"})
    assert code(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


MESSAGES = [{"role": "user", "content": "x"}]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "/model"),
        ({"model": "m"}, "/messages"),
        ({"messages": MESSAGES}, "/model"),
        ({"model": "", "messages": MESSAGES}, "/model"),
        ({"model": 7, "messages": MESSAGES}, "/model"),
        ({"model": "m", "messages": []}, "/messages"),
        ({"model": "m", "messages": "x"}, "/messages"),
        ({"model": "m", "messages": [{"role": "user"}]}, "/messages/0/content"),
        ({"model": "m", "messages": [{"role": "learner", "content": "x"}]}, "/messages/0/role"),
        ({"model": "m", "messages": MESSAGES, "stream": "yes"}, "/stream"),
        ({"model": "m", "messages": MESSAGES, "temperature": 3}, "/temperature"),
        ({"model": "m", "messages": MESSAGES, "response_format": {"type": "xml"}}, "/response_format/type"),
        ([], ""),
    ],
)
def test_a_body_that_breaks_the_specification_is_refused(model, body, param):
    answer = model.ask(model.resolved(), body)
    assert code(answer) == (400, "invalid_request")
    assert answer.json()["error"]["param"] == param
    (entry,) = model.calls(1)
    assert entry["errorCode"] == "INVALID_REQUEST"
    assert entry["violations"][0]["location"] == param


def test_what_is_not_described_is_taken(model):
    body = {**BODY, "tools": [], "seed": 1, "stream": None, "temperature": None, "messages": [{**MESSAGES[0], "x": 1}]}
    assert model.ask(model.resolved(), body).status_code == 200


def test_what_is_no_json_is_refused(model):
    resolved = model.resolved()
    headers = {"authorization": f"Bearer {resolved.key}"}
    typed = {**headers, "content-type": "application/json"}
    assert code(model.client.post(resolved.url, content=b"{", headers=typed)) == (400, "invalid_request")
    assert code(model.client.post(resolved.url, content=b"\xff", headers=typed)) == (400, "invalid_request")
    assert code(model.client.post(resolved.url, content=b"{}", headers=headers)) == (415, "unsupported_media_type")
    large = b'"' + b"x" * openapi.load("model-provider").limits["bodyBytes"] + b'"'
    assert code(model.client.post(resolved.url, content=large, headers=typed)) == (413, "payload_too_large")


def test_every_answer_of_the_provider_is_documented():
    operation = openapi.load("model-provider").operations["chatCompletions"]
    assert set(operation.statuses) == {200, 400, 401, 404, 405, 413, 415, 500}


def test_the_journal_tells_whose_call_it_was(model):
    first, second = model.resolved("runtime-1"), model.resolved("runtime-2", jobType="quiz_generation")
    model.script({"jobId": second.job, "calls": [{"kind": "prose"}]})
    model.ask(second)
    model.ask(first)
    assert [entry["jobId"] for entry in model.calls(2)] == [second.job, first.job]
    (entry,) = model.calls(1, jobId=second.job)
    assert entry["model"] == {
        "jobId": second.job,
        "caller": "runtime-2",
        "attemptNo": 0,
        "resolve": second.token,
        "key": "right",
        "outcome": "prose",
        "call": 1,
    }
    assert (entry["caller"], entry["verdict"], entry["fault"]) == ("runtime-2", "ok", None)
    assert entry["requestHeaders"]["authorization"] == "[redacted]"
    assert json.loads(entry["requestBody"]) == BODY
    assert model.calls(1, caller="runtime-2") == [entry]
    assert all(other["model"] is None for other in model.journal() if other["operationId"] != "chatCompletions")


def test_a_streamed_answer_is_in_the_journal_whole(model):
    resolved = model.resolved()
    answer = model.ask(resolved, {**BODY, "stream": True})
    (entry,) = model.calls(1)
    assert entry["responseBody"] == answer.text
    assert entry["responseHeaders"]["content-type"] == "text/event-stream"


def test_the_archive_tells_it_too(model):
    resolved = model.resolved()
    model.script({"calls": [{"kind": "close", "at": "mid-body"}]})
    with pytest.raises(httpx.RemoteProtocolError):
        model.ask(resolved)
    found = check_har(model.control("GET", "/journal/har").json())
    *others, call = found
    assert all(other["_model"] is None for other in others)
    assert call["_model"]["resolve"] == resolved.token
    assert (call["_operationId"], call["_jobId"], call["_fault"]["got"]) == ("chatCompletions", resolved.job, "part")
    assert call["request"]["url"] == resolved.url


def test_calls_are_verified_like_any_others(model):
    resolved = model.resolved()
    model.ask(resolved)
    expected = [{"calls": {"operationId": "chatCompletions", "jobId": resolved.job}, "count": {"exactly": 1}}]
    assert model.control("POST", "/verify", json={"expectations": expected}).json()["ok"] is True


def test_fault_plans_meet_no_model_call(model):
    resolved = model.resolved()
    assert model.control("POST", "/faults", json={"fault": {"kind": "status", "status": 503}}).status_code == 201
    assert model.ask(resolved).status_code == 200
    assert model.poll().status_code == 503


def test_no_key_is_told():
    process, url = start("--clock", "manual")
    with httpx.Client(trust_env=False, verify=False) as client:
        model = ModelWorld(client, url, "")
        made = model.state("credential", userId="u1")
        own = {"apiKeyMode": "user_deepseek_key", "credentialId": made["credentialId"]}
        users, platform = model.resolved_again(model.locked(userId="u1", **own), **own), model.resolved()
        model.script({"calls": [{"kind": "status", "status": 401, "echoKey": True}, {"kind": "good"}]})
        answers = []
        for resolved, key in [(users, users.key), (platform, platform.key), (users, STRANGE), (platform, STRANGE)]:
            said = {"role": key, "content": key, key: base64.b64encode(key.encode()).decode()}
            for body in (BODY, {**BODY, "messages": [said]}, {**BODY, "stop": key, "model": key}, {key: key}):
                headers = {"x-more": key}
                answers.append(model.ask(resolved, body, key=key, headers=headers, params={"key": key}))
            model.client.post(f"{resolved.url}/{key}", json=BODY, headers={"authorization": f"Bearer {key}"})
        assert {answer.status_code for answer in answers} == {200, 400, 401}
        told = "".join(
            model.control("GET", path).text for path in ("/journal?limit=1000", "/journal/har", "/model/scripts")
        )
        told += "".join(answer.text for answer in answers if answer.status_code == 400)
    told += stop(process)
    for key in (users.key, platform.key, STRANGE):
        assert key not in told
        assert base64.b64encode(key.encode()).decode() not in told
    assert told.count("[redacted]") > 20
