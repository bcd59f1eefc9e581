"""The journal: every exchange with its verdict, bounded, without secrets."""

from __future__ import annotations

import base64
import urllib.parse
from types import SimpleNamespace

import pytest

from mock_server.calls import Exchange
from mock_server.journal import MAX_BODY, Journal
from openapi.redaction import Redactor

CANARY = "canary/key+with=signs"


def exchange(**fields):
    given = {"world": SimpleNamespace(), "method": "POST", "path": "/p", "headers": {}, "at": 1, "status": 200}
    return Exchange(**{**given, **fields})


def test_an_exchange_is_told_with_its_verdict(world):
    job = world.state("job")["jobId"]
    world.lock(job, by="runtime-7")
    world.send("POST", "/internal/runtime/jobs/poll", json={"limit": 99})
    world.send("GET", "/internal/runtime/nothing")

    locked, refused, unknown = world.journal()
    now = world.state("advance-time", seconds=0)["now"]
    assert locked["at"] == now
    assert locked["operationId"] == "lockJob"
    assert (locked["caller"], locked["jobId"], locked["status"], locked["errorCode"]) == ("runtime-7", job, 200, None)
    assert '"status":"locked"' in locked["responseBody"]
    assert refused["errorCode"] == "INVALID_REQUEST"
    assert [entry["location"] for entry in refused["violations"]] == [
        "/runtimeInstanceId",
        "/supportedJobTypes",
        "/limit",
    ]
    assert (unknown["operationId"], unknown["status"]) == (None, 404)
    assert [entry["number"] for entry in (locked, refused, unknown)] == [1, 2, 3]


def test_entries_are_found_by_what_they_are_about(world):
    one, other = world.state("job")["jobId"], world.state("job")["jobId"]
    world.lock(one, by="a")
    world.lock(other, by="b")
    world.lock(one, by="b")
    world.heartbeat(one, by="a")

    assert [entry["caller"] for entry in world.journal(jobId=one)] == ["a", "b", "a"]
    assert [entry["jobId"] for entry in world.journal(caller="b")] == [other, one]
    assert [entry["number"] for entry in world.journal(status=409)] == [3]
    assert [entry["number"] for entry in world.journal(operationId="heartbeatJob")] == [4]
    assert [entry["number"] for entry in world.journal(since=1, limit=2)] == [2, 3]


def test_the_control_plane_is_not_in_the_journal(world):
    world.state("job")
    assert world.journal() == []


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": "x"}, {"since": -1}, {"status": "ok"}])
def test_a_wrong_filter_is_named(world, query):
    answer = world.control("GET", "/journal", params=query)
    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["error"]


def test_the_oldest_make_room_by_number():
    journal = Journal(Redactor(), max_entries=3)
    for _ in range(5):
        journal.record(exchange())
    assert [entry["number"] for entry in journal.query(limit=10)] == [3, 4, 5]
    assert journal.evicted == 2


def test_the_oldest_make_room_by_size():
    journal = Journal(Redactor(), max_bytes=50_000)
    for _ in range(100):
        journal.record(exchange(request_body=b"x" * 5000))
    assert 5 <= len(journal) <= 10
    assert journal.evicted == 100 - len(journal)


def test_a_long_body_is_cut():
    journal = Journal(Redactor())
    journal.record(exchange(request_body=b"x" * 10**6))
    (entry,) = journal.query(limit=1)
    assert len(entry["requestBody"]) < MAX_BODY + 50
    assert entry["requestBody"].endswith("(1000000 bytes)")


def test_a_secret_across_the_cut_does_not_survive():
    for before in range(MAX_BODY - len(CANARY) - 1, MAX_BODY + 2):
        journal = Journal(Redactor([CANARY]))
        journal.record(exchange(request_body=b"." * before + CANARY.encode() + b"." * 5000))
        (entry,) = journal.query(limit=1)
        assert "can" not in entry["requestBody"]


FORMS = {
    "plain": CANARY,
    "URL-encoded": urllib.parse.quote(CANARY, safe=""),
    "base64": base64.b64encode(CANARY.encode()).decode().rstrip("="),
    "base64, shifted": base64.b64encode(b"x:" + CANARY.encode()).decode().rstrip("=")[3:],
    "hex": CANARY.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("field", ["path", "caller", "job_id", "request_body", "response_body"])
def test_a_secret_is_replaced_wherever_it_stands(form, field):
    journal = Journal(Redactor([CANARY]))
    value = f"before {form} after"
    journal.record(exchange(**{field: value.encode() if field.endswith("body") else value}))
    stored = repr(journal.query(limit=1))
    assert form[4:-4] not in stored
    assert "[redacted]" in stored
    assert "before" in stored


def test_what_looks_like_a_key_is_replaced_over_http(world):
    key = world.state("credential")["apiKey"]
    encoded = base64.b64encode(key.encode()).decode()
    world.send("POST", f"/internal/runtime/jobs/{key}/lock", json={"runtimeInstanceId": f"sk-other {key} {encoded}"})
    (entry,) = world.journal()
    assert key not in repr(entry)
    assert "sk-other" not in repr(entry)
    assert encoded[4:-6] not in repr(entry)
