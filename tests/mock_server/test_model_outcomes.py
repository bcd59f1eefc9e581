"""Each outcome of a model script as a client sees it over a real connection, plain and streamed."""

from __future__ import annotations

import json
import socket
import time

import httpx
import jsonschema_rs
import pytest
from mock_world import start, stop
from model_world import BODY, ModelWorld, world_on

import openapi
from openapi.schemas import to_json_schema

CONTRACT = openapi.load("model-provider")
RUNTIME_API = openapi.load("runtime-api")
IMPATIENT = 0.3
JOB_TYPES = {
    "analysis_output_v1": "weak_point_analysis",
    "quiz_output_v1": "quiz_generation",
    "flashcard_output_v1": "flashcard_generation",
}


@pytest.fixture
def world(server):
    with world_on(server) as world:
        yield world


def of_schema(name, value, contract=CONTRACT):
    schema = to_json_schema(contract.document["components"]["schemas"][name], contract.document)
    problems = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(value)]
    assert problems == []
    return value


def is_output(version, value):
    schema = to_json_schema(RUNTIME_API.document["x-output-schemas"][version]["schema"], RUNTIME_API.document)
    return jsonschema_rs.Draft202012Validator(schema).is_valid(value)


def joined(chunks):
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


def sums_up(usage):
    return usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 1


def test_without_a_script_the_model_answers_well(world):
    resolved = world.resolved()
    answer = world.ask(resolved)
    body = of_schema("Completion", answer.json())
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert body["model"] == "deepseek-chat"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert is_output("analysis_output_v1", json.loads(body["choices"][0]["message"]["content"]))
    assert sums_up(body["usage"])
    assert world.ask(resolved).json()["id"] != body["id"]


@pytest.mark.parametrize("version", JOB_TYPES)
def test_an_output_is_of_its_jobs_schema_and_a_variant_is_another_one(world, version):
    resolved = world.resolved(jobType=JOB_TYPES[version])
    world.script({"calls": [{"kind": "good", "variant": variant} for variant in (0, 1, 2)]})
    texts = [world.text(resolved) for _ in range(4)]
    assert all(is_output(version, json.loads(text)) for text in texts)
    assert len(set(texts)) == 3
    assert texts[2] == texts[3]
    schema = RUNTIME_API.resolve(RUNTIME_API.document["x-output-schemas"][version]["schema"])
    assert json.loads(texts[0]) == schema["example"]


def test_a_stream_has_the_same_text_in_pieces(world):
    resolved = world.resolved()
    plain = world.text(resolved)
    chunks = [of_schema("CompletionChunk", chunk) for chunk in world.stream(resolved)]
    assert joined(chunks) == plain
    assert len([chunk for chunk in chunks if chunk["choices"][0]["delta"].get("content")]) >= 2
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert not any("usage" in chunk for chunk in chunks)


def test_a_stream_tells_its_usage_where_it_is_asked_to(world):
    resolved = world.resolved()
    *chunks, last = world.stream(resolved, stream_options={"include_usage": True})
    assert last["choices"] == []
    assert sums_up(of_schema("CompletionChunk", last)["usage"])
    assert all(chunk["usage"] is None for chunk in chunks)
    world.script({"calls": [{"kind": "good", "usage": False}]})
    assert not any("usage" in chunk for chunk in world.stream(resolved, stream_options={"include_usage": True}))
    assert "usage" not in world.ask(resolved).json()


def test_more_is_asked_for_more_tokens(world):
    resolved = world.resolved()
    short = world.ask(resolved).json()["usage"]
    parts = [{"type": "text", "text": "x" * 4000}, {"type": "image_url"}]
    long = world.ask(resolved, {**BODY, "messages": [{"role": "user", "content": parts}]}).json()["usage"]
    assert sums_up(long)
    assert long["prompt_tokens"] - short["prompt_tokens"] > 900
    assert long["completion_tokens"] == short["completion_tokens"]


def is_json(text):
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


@pytest.mark.parametrize("version", JOB_TYPES)
@pytest.mark.parametrize(
    ("outcome", "fits"),
    [
        ({"kind": "prose"}, lambda text, _: " " in text and not is_json(text)),
        ({"kind": "cut-json"}, lambda text, _: text.startswith("{") and not is_json(text)),
        ({"kind": "empty-text"}, lambda text, _: text == ""),
        ({"kind": "not-object"}, lambda text, _: isinstance(json.loads(text), list)),
        ({"kind": "wrong-schema"}, lambda text, version: not is_output(version, json.loads(text))),
        ({"kind": "text", "text": 'ünï "code" \n\t😀'}, lambda text, _: text == 'ünï "code" \n\t😀'),
        ({"kind": "text", "text": ""}, lambda text, _: text == ""),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_text_that_is_no_output_comes_in_a_completion(world, version, outcome, fits):
    resolved = world.resolved(jobType=JOB_TYPES[version])
    world.script({"calls": [outcome]})
    body = of_schema("Completion", world.ask(resolved).json())
    text = body["choices"][0]["message"]["content"]
    assert fits(text, version)
    assert body["choices"][0]["finish_reason"] == ("length" if outcome["kind"] == "cut-json" else "stop")
    assert sums_up(body["usage"])
    assert joined([of_schema("CompletionChunk", chunk) for chunk in world.stream(resolved)]) == text


@pytest.mark.parametrize("stream", [False, True])
def test_200_without_a_completion(world, stream):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "no-completion"}, {"kind": "not-json"}]})
    first, second = (world.ask(resolved, {**BODY, "stream": stream}) for _ in range(2))
    assert (first.status_code, first.json()) == (200, {"object": "nothing"})
    assert second.status_code == 200
    assert second.headers["content-type"].startswith("text/html")
    assert not is_json(second.text)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "insufficient_balance"),
        (403, "permission_error"),
        (408, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (503, "server_error"),
        (599, "server_error"),
    ],
)
def test_a_status_has_the_providers_error_body(world, status, kind):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "status", "status": status, "headers": {"Retry-After": "7"}, "message": "no"}]})
    answer = world.ask(resolved)
    assert answer.status_code == status
    assert answer.headers["retry-after"] == "7"
    error = of_schema("Error", answer.json())["error"]
    assert (error["type"], error["message"]) == (kind, "no")
    assert resolved.key not in answer.text


def test_a_careless_provider_repeats_the_key(world):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "status", "status": 401, "echoKey": True}]})
    assert f"Bearer {resolved.key}" in world.ask(resolved).json()["error"]["message"]
    (entry,) = world.calls(1)
    assert "Bearer [redacted]" in entry["responseBody"]
    assert resolved.key not in json.dumps(entry)


@pytest.mark.parametrize("status", [302, 307])
def test_a_redirect_leads_to_a_stranger(world, status):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "redirect", "status": status}]})
    answer = world.ask(resolved)
    stolen = resolved.url.replace(resolved.token, "stolen")
    assert (answer.status_code, answer.headers["location"]) == (status, stolen)
    followed = world.client.post(stolen, json=BODY, headers={"authorization": f"Bearer {resolved.key}"})
    assert followed.status_code == 404
    assert world.client.post(stolen, json=BODY).status_code == 404
    calls = [entry["model"] for entry in world.calls(3)]
    assert [call["outcome"] for call in calls] == ["redirect", None, None]
    assert [call["resolve"] for call in calls] == [resolved.token, "stolen", "stolen"]
    assert [call["key"] for call in calls] == ["right", "right", "none"]
    assert [call["jobId"] for call in calls] == [resolved.job, None, None]


def test_a_redirect_leads_where_it_is_told_to(world):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "redirect", "location": "http://127.0.0.1:9/there"}]})
    answer = world.ask(resolved)
    assert (answer.status_code, answer.headers["location"]) == (307, "http://127.0.0.1:9/there")


ENDS = {
    "hang": ({"kind": "hang"}, httpx.ReadTimeout, "nothing"),
    "hang for a while": ({"kind": "hang", "seconds": 0.05}, httpx.RemoteProtocolError, "nothing"),
    "close": ({"kind": "close"}, httpx.RemoteProtocolError, "nothing"),
    "close in the body": ({"kind": "close", "at": "mid-body"}, httpx.RemoteProtocolError, "part"),
    "reset": ({"kind": "reset"}, httpx.ReadError, "nothing"),
    "reset in the body": ({"kind": "reset", "at": "mid-body"}, httpx.ReadError, "part"),
    "too late": ({"kind": "good", "afterSeconds": 60}, httpx.ReadTimeout, "nothing"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ENDS)
def test_a_connection_that_ends_is_the_clients_own_error_and_noted(world, name, stream):
    outcome, error, got = ENDS[name]
    resolved = world.resolved()
    world.script({"calls": [outcome, {"kind": "good"}]})
    begun = time.monotonic()
    with pytest.raises(error):
        world.ask(resolved, {**BODY, "stream": stream}, timeout=IMPATIENT if error is httpx.ReadTimeout else 20)
    (entry,) = world.calls(1)  # for one that hangs, once the client went away
    assert time.monotonic() - begun < 10
    assert entry["fault"]["plans"] == []
    assert (entry["fault"]["handled"], entry["fault"]["got"]) == (True, got)
    assert (entry["verdict"], entry["status"]) == ("faulted", 200 if got == "part" else 0)
    assert entry["model"]["outcome"] == outcome["kind"]
    if error is httpx.ReadTimeout:
        assert IMPATIENT * 900 < entry["durationMs"] < 10_000
    if got == "part":
        assert 0 < entry["fault"]["bytes"] < entry["responseBytes"]
    # The next call, on the same server, is answered.
    assert is_output("analysis_output_v1", json.loads(world.text(resolved)))


def test_a_stream_is_cut_after_a_piece_of_its_text(world):
    resolved = world.resolved()
    world.script({"calls": [{"kind": "close", "at": "mid-body"}]})
    headers, received = {"authorization": f"Bearer {resolved.key}"}, []
    with (
        world.client.stream("POST", resolved.url, json={**BODY, "stream": True}, headers=headers) as answer,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        received.extend(answer.iter_raw())
    text = b"".join(received).decode()
    events = [json.loads(event.removeprefix("data: ")) for event in text.strip().split("\n\n")]
    assert joined(events) != ""
    assert events[-1]["choices"][0]["finish_reason"] is None


def test_an_answer_waits_in_real_time(world):
    resolved = world.resolved()
    world.script(
        {"calls": [{"kind": "good", "afterSeconds": 0.2}, {"kind": "status", "status": 500, "afterSeconds": 0.2}]}
    )
    for status in (200, 500):
        begun = time.monotonic()
        assert world.ask(resolved).status_code == status
        assert time.monotonic() - begun >= 0.2
    assert [(entry["fault"], entry["durationMs"] >= 200) for entry in world.calls(2)] == [(None, True)] * 2


def test_a_server_that_stops_lets_hanging_calls_go():
    process, url = start()
    with httpx.Client(trust_env=False, verify=False) as client:
        world = ModelWorld(client, url, "")
        resolved = world.resolved()
        world.script({"calls": [{"kind": "hang"}]})
        fields = {"host": "x", "authorization": f"Bearer {resolved.key}", "content-type": "application/json"}
        body = json.dumps(BODY)
        head = [f"{name}: {value}\r\n" for name, value in {**fields, "content-length": len(body)}.items()]
        with socket.create_connection(("127.0.0.1", world.port), timeout=10) as connection:
            connection.sendall(f"POST {resolved.url.removeprefix(url)} HTTP/1.1\r\n{''.join(head)}\r\n{body}".encode())
            while world.answered() != [1]:
                time.sleep(0.01)
            begun = time.monotonic()
            assert stop(process) == ""
            assert time.monotonic() - begun < 5
            assert connection.recv(100) == b""
