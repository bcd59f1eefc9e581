"""The control plane refuses as the APIs do: in the same order, with place, what is wrong, and the mend."""

from __future__ import annotations

import pytest

VERIFY = "/__control__/verify"
JSON = {"content-type": "application/json"}
STRANGER = {"origin": "http://evil.example"}
TEXT = {"content-type": "text/plain"}
TOO_LARGE = b'{"expectation": "' + b"x" * 16_800_000 + b'"}'

# Each request has every fault from its own step on.
STEPS = [
    ("guard", "PATCH", "/__control__/nothing?a=1", {**STRANGER, **TEXT}, b"{", 403),
    ("path", "PATCH", "/__control__/nothing?a=1", TEXT, b"{", 404),
    ("method", "PATCH", f"{VERIFY}?a=1", TEXT, b"{", 405),
    ("parameters", "POST", f"{VERIFY}?a=1", TEXT, b"{", 400),
    ("media type", "POST", VERIFY, TEXT, TOO_LARGE, 415),
    ("size", "POST", VERIFY, JSON, TOO_LARGE, 413),
    ("body", "POST", "/__control__/worlds", JSON, b'{"clok": 1}', 400),
    ("world", "POST", "/__control__/worlds/no-world/reset", {}, b"", 404),
]


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "status"), [step[1:] for step in STEPS], ids=[step[0] for step in STEPS]
)
def test_the_first_fault_in_order_is_answered(client, base_url, method, path, headers, content, status):
    answer = client.request(method, base_url + path, headers=headers, content=content)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]
    assert set(answer.json()) <= {"error", "details"}


def test_a_wrong_query_and_a_wrong_body_are_told_together(client, base_url):
    answer = client.post(f"{base_url}{VERIFY}?wait=1", json={"expectations": [], "waitSecond": 1})
    assert answer.status_code == 400
    assert [item["location"] for item in answer.json()["details"]] == ["wait", "/expectations", "/waitSecond"]


@pytest.mark.parametrize(
    ("method", "path", "body", "mend"),
    [
        ("GET", "/__control__/jurnal", None, "Did you mean `/__control__/journal`?"),
        ("GET", "/__control__/journal/hars", None, "Did you mean `/__control__/journal/har`?"),
        ("GET", "/__control__/qqqqqqqq", None, "No such path."),
        ("POST", "/__control__/worlds", {"clok": "manual"}, "/clok is not known here; did you mean `clock`?"),
        ("POST", "/__control__/worlds", {"zzz": 1}, "/zzz is not known here; leave it out"),
        (
            "POST",
            "/__control__/provider-states/runtime-api",
            {"action": "setup", "state": "advance-tme"},
            "did you mean `advance-time`?",
        ),
        (
            "POST",
            "/__control__/provider-states/runtime-api",
            {"action": "setup", "state": "advance-time", "params": {"second": 1}},
            "/second is not known here; did you mean `seconds`?",
        ),
    ],
)
def test_a_misspelt_word_is_told_with_the_nearest(client, base_url, method, path, body, mend):
    answer = client.request(method, base_url + path, json=body)
    assert 400 <= answer.status_code <= 501
    assert mend in answer.json()["error"]


def test_a_method_that_is_not_there_is_told_with_those_that_are(client, base_url):
    answer = client.put(f"{base_url}/__control__/journal")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, DELETE"
    assert "use GET, DELETE" in answer.json()["error"]
