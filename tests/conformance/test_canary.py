"""A key that was handed out is found wherever it stands, in whatever writing, and nothing else is taken for one."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from rewriting_proxy import RewritingProxy
from test_command import contract

from conformance import reference
from contract_tests.canary import RESOLVE, Canary, key_in
from contract_tests.transport import Request, Response

KEY = "sk-a+b/c-0123456789"
OTHER = "platform-0123456789"
SERVICE_KEY = "key-of-the-canaries"


def answer(body, status=200, headers=None):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, headers or {}, content, 0, 0)


def places(*heard, states=(), most=10**6):
    canary = Canary(most=most)
    canary.heard_state("credential", 200, json.dumps({"credentialId": "c", "userId": "u", "apiKey": KEY}).encode())
    for path, response in heard:
        canary.heard(Request("POST", path), response, "a.check")
    for state, body in states:
        canary.heard_state(state, 200, json.dumps(body).encode(), "a.check")
    return canary.leaks()


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        f"Bearer {KEY}.",
        quote(KEY, safe=""),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(f"a:{KEY}".encode()).decode(),
        base64.urlsafe_b64encode(f"xy{KEY}z".encode()).decode(),
        KEY.encode().hex(),
        KEY.encode().hex().upper(),
    ],
)
@pytest.mark.parametrize("where", ["body", "header", "name", "text", "binary"])
def test_each_form_is_found_at_each_place(form, where):
    told = {
        "body": answer({"deep": [{"a": form}]}),
        "header": answer({}, headers={"x-debug": form}),
        "name": answer({"deep": {form: None}}),
        "text": answer(f"<html>{form}</html>".encode()),
        "binary": answer(b"\xff\x00" + form.encode() + b"\xff"),
    }[where]
    [leak] = places(("/jobs/poll", told))
    assert leak.place == "answer"
    assert "POST /jobs/poll answered 200 in check a.check" in leak.told
    assert "[redacted]" in leak.told
    assert form not in leak.told


def test_what_json_escapes_is_found():
    text = '{"message": "' + KEY.replace("+", "\\u002b").replace("/", "\\/") + '"}'
    assert places(("/jobs/poll", answer(text.encode(), 400)))


def test_the_answer_that_hands_a_key_out_is_no_leak_and_makes_it_known():
    handed = {"apiKey": OTHER, "baseUrl": "http://a/v1"}
    before = ("/jobs/poll", answer({"jobs": [{"note": OTHER}]}))
    [leak] = places(before, (RESOLVE, answer(handed)))
    assert "/jobs/poll" in leak.told


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        (RESOLVE, 200, {"apiKey": KEY, "baseUrl": f"http://a/{KEY}"}),
        (RESOLVE, 200, {"apiKey": {"value": KEY}}),
        (RESOLVE, 422, {"apiKey": KEY}),
        ("/jobs/j/lock", 200, {"apiKey": KEY}),
    ],
)
def test_a_key_beside_its_place_is_a_leak(path, status, body):
    assert [leak.place for leak in places((path, answer(body, status)))] == ["answer"]


def test_details_are_told_from_the_rest_of_an_error():
    error = {"errorCode": "INVALID_REQUEST", "message": KEY}
    assert [leak.place for leak in places(("/a", answer(error, 400)))] == ["answer"]
    error = {"errorCode": "INVALID_REQUEST", "message": "-", "details": [{"actual": KEY}]}
    assert sorted(leak.place for leak in places(("/a", answer(error, 400)))) == ["answer", "details"]


def test_a_providers_state_is_searched():
    assert [leak.place for leak in places(states=[("inspect-job", {"rawError": KEY})])] == ["state"]
    assert not places(states=[("inspect-job", {"rawError": "[redacted]"})])


@pytest.mark.parametrize("word", ["platform_key", "user_deepseek_key", "deepseek", "short"])
def test_what_stands_in_answers_by_right_is_no_key(word):
    canary = Canary()
    canary.heard(Request("POST", RESOLVE), answer({"apiKey": word, "apiKeyMode": word}))
    assert canary.keys == 0
    assert not canary.leaks()
    assert key_in(word, Request("GET", "/a"), answer({"mode": word})) is None


def test_memory_is_bounded_and_what_is_forgotten_was_searched():
    canary = Canary(most=1000)
    canary.hand_out(KEY)
    for number in range(500):
        canary.heard(Request("GET", f"/{number}"), answer({"a": "x" * 90, "b": KEY if number == 3 else ""}))
    assert canary._kept <= 1000
    assert len(canary._notes) < 20
    assert ["/3 " in leak.told for leak in canary.leaks()] == [True]


def test_a_key_is_told_to_whoever_takes_secrets_out_of_reports():
    learnt = []
    canary = Canary(learn=learnt.append)
    for _ in range(2):
        canary.heard(Request("POST", RESOLVE), answer({"apiKey": OTHER}))
    assert learnt == [OTHER]


@pytest.fixture(scope="module")
def served():
    with reference.serve(SERVICE_KEY, "--clock", "manual") as base_url:
        yield base_url


def leaky(answered):
    """A heartbeat that is answered with a platform key that was handed out long after it."""
    if answered.path.endswith("/model-credentials/resolve") and answered.status == 200:
        return answered.json(200, {**json.loads(answered.body), "apiKey": OTHER})
    if answered.path.endswith("/heartbeat") and answered.status == 204:
        return f"HTTP/1.1 204 Said\r\nx-debug: {OTHER.encode().hex()}\r\n\r\n".encode()
    return None


def test_a_leak_in_another_check_is_found_at_the_end_and_no_report_shows_the_key(served, tmp_path):
    report = tmp_path / "report.json"
    with RewritingProxy(served, leaky) as build:
        target = ("--base-url", build.url, "--provider-states", build.states, "--api-key", SERVICE_KEY)
        rules = [part for rule in ("RT-HB-01", "RT-CRED-08", "RT-CRED-54") for part in ("--only", rule)]
        done = contract("check", "runtime-api", *target, "--no-fuzz", *rules, "--report", f"json={report}")
    assert done.returncode == 1
    written = report.read_text("utf-8")
    assert OTHER not in written + done.stdout
    assert OTHER.encode().hex() not in written + done.stdout
    rows = {row["id"]: row for row in json.loads(written)["requirements"]}
    [last] = [check for check in rows["RT-CRED-08"]["checks"] if "of_the_run" in check["id"]]
    assert last["status"] == "failed"
    assert "heartbeat answered 204 in check hb." in last["message"]
