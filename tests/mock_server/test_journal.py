"""The journal: every exchange with its verdict, bounded, without secrets."""

from __future__ import annotations

import base64
import time
import tracemalloc
import urllib.parse

import pytest
from mock_world import KEY

from mock_server.journal import MAX_BODY, Journal
from openapi.redaction import Redactor

CANARY = "canary/key+with=signs"


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


def test_entries_are_found_by_verdict_code_time_and_path_newest_first_too(world):
    job = world.state("job")["jobId"]
    begin = world.state("advance-time", seconds=0)["now"]
    world.lock(job)
    world.lock(job, by="runtime-2")
    now = world.state("advance-time", seconds=5)["now"]
    world.heartbeat(job)

    def numbers(**query):
        return [entry["number"] for entry in world.journal(**query)]

    assert numbers(verdict="ok") == [1, 3]
    assert numbers(verdict="refused", errorCode="JOB_ALREADY_LOCKED") == [2]
    assert numbers(errorCode="LOCK_NOT_HELD") == numbers(errorCode="SERVICE_UNAVAILABLE") == []
    assert numbers(**{"from": now}) == [3]
    assert numbers(to=begin) == numbers(match="/lock") == [1, 2]
    assert numbers(**{"from": begin, "to": now}, order="desc", limit=2) == [3, 2]
    assert numbers(since=1, order="desc") == [3, 2]
    assert numbers(since=3) == numbers(since=99) == []


def test_an_entry_has_what_a_proxy_would_have_seen(world):
    world.send("POST", "/internal/runtime/jobs/poll?x=1", json={}, headers={"authorization": "Bearer of-somebody"})
    (entry,) = world.journal()
    assert (entry["path"], entry["query"], entry["verdict"]) == ("/internal/runtime/jobs/poll", "x=1", "refused")
    assert entry["requestHeaders"]["x-internal-api-key"] == "[redacted]"
    assert entry["requestHeaders"]["authorization"] == "[redacted]"
    assert entry["requestHeaders"]["x-runtime-instance-id"] == "runtime-1"
    assert entry["responseHeaders"]["content-type"] == "application/json"
    assert (entry["requestBytes"], entry["responseBytes"]) == (2, int(entry["responseHeaders"]["content-length"]))
    assert 0 < entry["durationMs"] < 60_000
    assert abs(entry["realAt"] / 1000 - time.time()) < 60
    assert entry["at"] == entry["answeredAt"]


def test_a_request_that_breaks_off_is_aborted(world):
    head = f"POST {world.path}/internal/runtime/jobs/poll HTTP/1.1\r\nhost: 127.0.0.1\r\nx-internal-api-key: {KEY}\r\n"
    world.raw((head + "content-type: application/json\r\ncontent-length: 9\r\n\r\n{").encode(), half_close=True)
    (entry,) = world.journal()
    assert (entry["status"], entry["verdict"]) == (0, "aborted")


@pytest.mark.parametrize(
    ("query", "mend"),
    [
        ("jobID=x", "did you mean `jobId`?"),
        ("limt=1&lmit=2", "no query parameter is named `lmit`; did you mean `limit`?"),
        ("qqq=1", "there are since, from, to"),
        ("status=200&status=409", "status is given 2 times"),
        ("operationId=lockJobs", "no operation is named `lockJobs`; did you mean `lockJob`?"),
        ("errorCode=LOCK_NOT_HOLD", "no error code is named `LOCK_NOT_HOLD`; did you mean `LOCK_NOT_HELD`?"),
        ("verdict=good", "verdict must be one of ok, refused"),
        ("order=up&limit=0", "limit must be at least 1"),
    ],
)
def test_a_misspelt_filter_is_refused_with_the_mend(world, query, mend):
    answer = world.control("GET", f"/journal?{query}")
    assert answer.status_code == 400
    assert mend in answer.json()["error"]


def test_an_operation_without_parameters_takes_none(world):
    answer = world.control("DELETE", "/journal?jobId=x")
    assert answer.status_code == 400
    assert "`jobId`; this operation takes none" in answer.json()["error"]


def test_a_cleared_journal_is_empty_and_numbers_go_on(world):
    job = world.state("job")["jobId"]
    world.lock(job)
    assert world.control("DELETE", "/journal").status_code == 204
    assert world.control("GET", "/journal").json() == {"entries": [], "evicted": 0, "last": 1}
    assert world.heartbeat(job).status_code == 204
    assert [entry["number"] for entry in world.journal()] == [2]


def test_the_control_plane_is_not_in_the_journal(world):
    world.state("job")
    assert world.journal() == []


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": "x"}, {"since": -1}, {"status": "ok"}])
def test_a_wrong_filter_is_named(world, query):
    answer = world.control("GET", "/journal", params=query)
    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["error"]


def test_the_oldest_make_room_by_number(exchange):
    journal = Journal(Redactor(), max_entries=3)
    for _ in range(5):
        journal.record(exchange())
    assert [entry.number for entry in journal.query(limit=10)] == [3, 4, 5]
    assert journal.evicted == 2


def test_the_oldest_make_room_by_size(exchange):
    journal = Journal(Redactor(), max_bytes=50_000)
    for _ in range(100):
        journal.record(exchange(request_body=b"x" * 5000))
    assert 5 <= len(journal) <= 10
    assert journal.evicted == 100 - len(journal)


def test_the_bytes_are_those_that_entries_take(exchange):
    headers = {b"x-runtime-instance-id": b"runtime-1", b"host": b"127.0.0.1:8080", b"accept": b"*/*"}
    journal = Journal(Redactor(), max_bytes=4 * 2**20)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for i in range(6000):
        body = b'{"runtimeInstanceId":"runtime-%d"}' % i
        fields = {"caller": f"runtime-{i}", "job_id": f"job-{i}", "path": f"/internal/runtime/jobs/job-{i}/lock"}
        journal.record(exchange(headers={**headers, b"n": b"%d" % i}, request_body=body, response_body=body, **fields))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert journal.evicted > 0
    assert 0.6 * 4 * 2**20 < taken < 1.3 * 4 * 2**20


@pytest.mark.parametrize("field", ["path", "caller", "job_id", "query"])
def test_whatever_a_client_sends_counts(exchange, field):
    journal = Journal(Redactor(), max_bytes=100_000)
    for _ in range(10):
        journal.record(exchange(**{field: b"x" * 40_000 if field == "query" else "x" * 40_000}))
    assert len(journal) <= 2


def test_a_secret_is_replaced_in_headers_and_query(exchange):
    secret = CANARY.encode()
    journal = Journal(Redactor([CANARY]))
    headers = {b"user-agent": b"agent " + secret, b"x-api-key": b"one that nobody knows"}
    journal.record(exchange(headers=headers, query=b"a=" + secret, response_headers=[(b"x-echo", secret)]))
    (entry,) = [item.document() for item in journal.query()]
    assert entry["requestHeaders"] == {"user-agent": "agent [redacted]", "x-api-key": "[redacted]"}
    assert (entry["query"], entry["responseHeaders"]) == ("a=[redacted]", {"x-echo": "[redacted]"})


def test_headers_that_stay_the_same_are_looked_at_again_when_a_secret_becomes_known(exchange):
    redactor = Redactor()
    journal = Journal(redactor)
    headers = {b"user-agent": CANARY.encode()}
    journal.record(exchange(headers=headers))
    redactor.add(CANARY)
    journal.record(exchange(headers=headers))
    assert [CANARY in entry.request_headers for entry in journal.query()] == [True, False]


def test_a_long_body_is_cut(exchange):
    journal = Journal(Redactor())
    journal.record(exchange(request_body=b"x" * 10**6))
    (entry,) = journal.query(limit=1)
    assert len(entry.request_body) < MAX_BODY + 50
    assert entry.request_body.endswith("(1000000 bytes)")


def test_a_secret_across_the_cut_does_not_survive(exchange):
    for before in range(MAX_BODY - len(CANARY) - 1, MAX_BODY + 2):
        journal = Journal(Redactor([CANARY]))
        journal.record(exchange(request_body=b"." * before + CANARY.encode() + b"." * 5000))
        (entry,) = journal.query(limit=1)
        assert "can" not in entry.request_body


FORMS = {
    "plain": CANARY,
    "URL-encoded": urllib.parse.quote(CANARY, safe=""),
    "base64": base64.b64encode(CANARY.encode()).decode().rstrip("="),
    "base64, shifted": base64.b64encode(b"x:" + CANARY.encode()).decode().rstrip("=")[3:],
    "hex": CANARY.encode().hex(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("field", ["path", "caller", "job_id", "request_body", "response_body"])
def test_a_secret_is_replaced_wherever_it_stands(form, field, exchange):
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


SECRET = "no-pattern-knows-this-one"
BODIES = {
    "beside the logs": f'{{"logs": [], "apiKey": "{SECRET}"}}',
    "in another case, deep": f'{{"logs": [{{"jobId": "j", "errorMessage": {{"a": [{{"APIKEY": ["{SECRET}"]}}]}}}}]}}',
    "escaped": f'{{"logs": [{{"api\\u004bey": "{SECRET}"}}]}}',
    "malformed": f'{{"logs": [{{"apiKey": "{SECRET}", ]',
    "cut off": f'{{"logs": [{{"apiKey": "{SECRET}',
    "in a text": f'{{"logs": [{{"jobId": "j", "errorMessage": "{{\\"apiKey\\": \\"{SECRET}\\"}}"}}]}}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["invocation-logs", "jobs/poll", "jobs/job-1/lock", "nothing"])
def test_values_of_secret_names_are_not_kept_over_http(world, body, path):
    headers = {"content-type": "application/json"}
    answer = world.send("POST", f"/internal/runtime/{path}", content=body, headers=headers)
    assert answer.status_code in (400, 404)
    assert SECRET not in answer.text
    (entry,) = world.journal()
    assert SECRET not in repr(entry)
    assert path == "nothing" or "[redacted]" in entry["requestBody"]


def test_a_secret_name_across_the_cut_keeps_its_value_to_itself(exchange):
    for before in range(MAX_BODY - 60, MAX_BODY + 2):
        journal = Journal(Redactor(), secret_names=["apiKey"])
        body = '{"x": "' + "." * before + f'", "apiKey": "{SECRET}", "y": "' + "." * 5000
        journal.record(exchange(request_body=body.encode()))
        (entry,) = journal.query(limit=1)
        assert "no-p" not in entry.request_body
