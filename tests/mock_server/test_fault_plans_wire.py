"""Each kind of fault as clients of their own see it over a real connection: httpx, the standard library, curl."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from fault_world import IMPATIENT, PATIENT, by_curl, by_http_client, by_httpx, eventually, world_on
from services import needs

LATE = 2.5 * IMPATIENT


@dataclass
class Case:
    """A fault and how a lock ends with each client; an int is curl's exit status, a text the error's name."""

    fault: dict[str, Any]
    httpx: Any
    standard: Any
    curl: Any
    handled: bool = True
    got: str = "nothing"


OK = "an answer"
CASES = {
    "delay": Case({"kind": "delay", "seconds": LATE}, "ReadTimeout", "TimeoutError", 28),
    "delay of the answer": Case({"kind": "delay", "seconds": LATE, "at": "answer"}, "ReadTimeout", "TimeoutError", 28),
    "delay by chance": Case(
        {"kind": "delay", "distribution": {"uniform": [LATE, LATE + 0.01]}}, "ReadTimeout", "TimeoutError", 28
    ),
    "status": Case({"kind": "status", "status": 503}, 503, 503, 22, handled=False, got="whole"),
    "rate limit": Case({"kind": "rate-limit"}, 429, 429, 22, handled=False, got="whole"),
    "reset": Case({"kind": "reset"}, "ReadError", "ConnectionResetError", 56, handled=False),
    "reset after the commit": Case({"kind": "reset", "at": "after-commit"}, "ReadError", "ConnectionResetError", 56),
    "reset in the body": Case({"kind": "reset", "at": "mid-body"}, "ReadError", "ConnectionResetError", 56, got="part"),
    "close": Case({"kind": "close"}, "RemoteProtocolError", "RemoteDisconnected", 52, handled=False),
    "close after the commit": Case(
        {"kind": "close", "at": "after-commit"}, "RemoteProtocolError", "RemoteDisconnected", 52
    ),
    "close in the body": Case(
        {"kind": "close", "at": "mid-body"}, "RemoteProtocolError", "IncompleteRead", 18, got="part"
    ),
    "empty": Case({"kind": "empty"}, "RemoteProtocolError", "RemoteDisconnected", 52, handled=False),
    "truncated": Case({"kind": "truncated-json"}, *["JSONDecodeError"] * 3, got="altered"),
    "malformed": Case({"kind": "malformed-json"}, *["JSONDecodeError"] * 3, got="altered"),
    "wrong types": Case({"kind": "wrong-types"}, OK, OK, OK, got="altered"),
    "length too large": Case(
        {"kind": "wrong-length", "by": 5}, "RemoteProtocolError", "IncompleteRead", 18, got="altered"
    ),
    "length too small": Case({"kind": "wrong-length", "by": -5}, *["JSONDecodeError"] * 3, got="altered"),
    "drip": Case({"kind": "drip", "bytes": 100, "seconds": LATE}, "ReadTimeout", "TimeoutError", 28, got="part"),
    "skew": Case({"kind": "skew", "seconds": -3600}, OK, OK, OK, got="altered"),
    "hang": Case({"kind": "hang"}, "ReadTimeout", "TimeoutError", 28, handled=False),
    "hang for a while": Case(
        {"kind": "hang", "seconds": 0.05}, "RemoteProtocolError", "RemoteDisconnected", 52, handled=False
    ),
}


@pytest.fixture
def faulty(server):
    with world_on(server) as world:
        yield world


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("client", ["httpx", "standard", pytest.param("curl", marks=needs("curl"))])
def test_a_fault_is_the_clients_own_error(faulty, name, client):
    case = CASES[name]
    call = {"httpx": by_httpx, "standard": by_http_client, "curl": by_curl}[client]
    job = faulty.state("job")["jobId"]
    plan = faulty.plan(case.fault, {"operationId": "lockJob"})

    wanted = getattr(case, client)
    ended = call(faulty.lock_url(job), patience=IMPATIENT if "Timeout" in str(case.httpx) else PATIENT)
    if isinstance(ended, tuple):
        ended = OK if ended[0] in (0, 200) else ended[0]
    assert ended == wanted

    (met,) = eventually(lambda: faulty.met(operationId="lockJob"))
    assert met["plans"] == [{"id": plan, "kind": case.fault["kind"]}]
    assert (met["handled"], met["got"]) == (case.handled, case.got)
    assert faulty.status_of(job) == ("locked" if case.handled else "pending")
    assert faulty.counts() == {plan: (1, 1)}

    # Without the plan all is as ever, on the same server.
    assert faulty.control("DELETE", f"/faults/{plan}").status_code == 204
    status, body = by_http_client(faulty.lock_url(job))
    assert (status, body.get("errorCode")) == ((409, "JOB_ALREADY_LOCKED") if case.handled else (200, None))


def test_a_status_has_our_error_body_and_its_headers(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "status", "status": 409, "headers": {"x-why": "a test"}}, when={"nth": [1]})
    faulty.plan(
        {"kind": "status", "status": 502, "errorCode": "INTERNAL_ERROR", "message": "no way"}, when={"nth": [2]}
    )
    faulty.plan({"kind": "rate-limit", "retryAfter": 7}, when={"nth": [3]})
    faulty.plan({"kind": "status", "status": 204}, when={"nth": [4]})
    faulty.plan({"kind": "status", "status": 599}, when={"nth": [5]})
    conflict, gateway, limited, nothing, odd = [faulty.lock(job) for _ in range(5)]

    assert (conflict.status_code, conflict.headers["x-why"]) == (409, "a test")
    body = conflict.json()
    assert (body["statusCode"], body["errorCode"], body["retryable"]) == (409, "JOB_ALREADY_LOCKED", True)
    assert body["timestamp"].endswith("Z")
    assert "fault-1" in body["message"]
    assert gateway.json() | {"timestamp": ""} == {
        "statusCode": 502,
        "errorCode": "INTERNAL_ERROR",
        "message": "no way",
        "timestamp": "",
        "retryable": True,
    }
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "7")
    assert (limited.json()["errorCode"], limited.json()["retryable"]) == ("TOO_MANY_REQUESTS", True)
    assert (nothing.status_code, nothing.content) == (204, b"")
    assert (odd.status_code, odd.json()["errorCode"], odd.json()["retryable"]) == (599, "HTTP_599", True)
    assert [entry["status"] for entry in faulty.journal()] == [409, 502, 429, 204, 599]
    assert faulty.status_of(job) == "pending"


def test_lock_until_is_skewed_for_the_client_alone(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "skew", "seconds": 90.5}, {"operationId": "lockJob"})
    told = faulty.lock(job).json()["lockUntil"]
    assert told - faulty.state("inspect-job", jobId=job)["lockUntil"] == 90_500
    (entry,) = faulty.journal(operationId="lockJob")
    assert json.loads(entry["fault"]["body"])["lockUntil"] == told
    assert json.loads(entry["responseBody"])["lockUntil"] == told - 90_500
    # A refusal has no lockUntil: nothing is met, and nothing is counted.
    assert faulty.lock(job).status_code == 409
    assert list(faulty.counts().values()) == [(2, 1)]
    assert faulty.met(status=409) == [None]


def test_types_are_wrong_everywhere_or_at_one_field(faulty):
    job = faulty.state("job", params={"count": 3})["jobId"]
    right = faulty.poll().json()["jobs"][0]
    plan = faulty.plan({"kind": "wrong-types", "field": "priority"}, {"operationId": "pollJobs"})
    assert faulty.poll().json()["jobs"] == [{**right, "priority": str(right["priority"])}]
    faulty.control("DELETE", f"/faults/{plan}")
    faulty.plan({"kind": "wrong-types"})
    assert faulty.poll().json() == {"jobs": {"0": right}}
    locked = faulty.lock(job).json()
    assert (locked["jobId"], locked["status"]) == (0, 0)
    assert isinstance(locked["lockUntil"], str)
    assert isinstance(locked["params"], list)


def test_a_drip_arrives_whole_at_who_has_patience(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "drip", "bytes": 60, "seconds": 0.02})
    begin = time.monotonic()
    assert faulty.lock(job).json()["status"] == "locked"
    assert time.monotonic() - begin > 0.04
    assert faulty.met()[0]["got"] == "whole"


def test_delays_add_up_and_the_first_other_fault_applies(faulty):
    job = faulty.state("job")["jobId"]
    slow = faulty.plan({"kind": "delay", "seconds": 0.05})
    first = faulty.plan({"kind": "status", "status": 503})
    other = faulty.plan({"kind": "status", "status": 500})
    slower = faulty.plan({"kind": "delay", "seconds": 0.07, "at": "answer"})
    begin = time.monotonic()
    assert faulty.lock(job).status_code == 503
    assert time.monotonic() - begin >= 0.12
    assert faulty.counts() == {slow: (1, 1), first: (1, 1), other: (1, 0), slower: (1, 1)}
    (met,) = faulty.met()
    assert [plan["id"] for plan in met["plans"]] == [slow, slower, first]
    assert met["seconds"] == 0.12


def test_counts_are_exact_under_fifty_requests_at_once(faulty):
    job = faulty.state("job")["jobId"]
    plan = faulty.plan(
        {"kind": "status", "status": 503}, {"operationId": "lockJob", "caller": "runtime-1"}, {"every": 5, "times": 8}
    )
    faulty.plan({"kind": "delay", "distribution": {"lognormal": {"median": 0.01, "sigma": 1}}}, when={"share": 0.5})
    with ThreadPoolExecutor(50) as pool:
        ends = list(pool.map(lambda _: by_http_client(faulty.lock_url(job)), range(50)))
    assert sorted(end[0] for end in ends) == [200] + [409] * 41 + [503] * 8
    assert faulty.counts()[plan] == (50, 8)
    assert len(faulty.journal()) == 50


def test_other_requests_are_not_met(faulty, server):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "reset"})
    with world_on(server) as other:
        assert other.poll().status_code == 200
        assert other.counts() == {}
    assert faulty.control("GET", "/health").status_code == 200
    assert faulty.status_of(job) == "pending"
    assert list(faulty.counts().values()) == [(0, 0)]
    assert by_http_client(faulty.lock_url(job)) == "ConnectionResetError"
    assert by_http_client(f"{faulty.base_url}{faulty.path}/no/such/path") == "ConnectionResetError"


def test_a_plan_removed_in_the_middle_meets_nothing_more(faulty):
    job = faulty.state("job")["jobId"]
    plan = faulty.plan({"kind": "hang"})
    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(by_http_client, faulty.lock_url(job), patience=IMPATIENT)
        eventually(lambda: faulty.counts()[plan] == (1, 1))
        assert faulty.control("DELETE", "/faults").status_code == 204
        assert faulty.lock(job).status_code == 200  # the next request, while one hangs on
        assert hanging.result() == "TimeoutError"
    # What the impatient one had sent was never handled.
    handled = eventually(lambda: len(faulty.journal()) == 2 and faulty.met())
    assert [met and met["handled"] for met in handled] == [None, False]


def test_a_delayed_request_of_a_client_that_went_away_is_still_handled(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "delay", "seconds": LATE})
    assert by_http_client(faulty.lock_url(job), patience=IMPATIENT) == "TimeoutError"
    assert faulty.status_of(job) == "pending"
    eventually(lambda: faulty.status_of(job) == "locked")


def raw_lock(faulty, job, *fields, body=b'{"runtimeInstanceId": "runtime-1"}', caller="runtime-1"):
    path = faulty.lock_url(job).removeprefix(faulty.base_url)
    lines = [f"POST {path} HTTP/1.1", "host: x", "x-internal-api-key: test-internal-key", *fields]
    lines += [f"x-runtime-instance-id: {caller}", "content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_a_request_that_was_sent_behind_a_cut_one_is_not_handled(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "close", "at": "after-commit"}, when={"nth": [2]})
    one = faulty.plan({"kind": "delay", "seconds": 0.05}, when={"nth": [1]})
    received = faulty.raw(raw_lock(faulty, job) * 3)
    assert received.count(b"HTTP/1.1") == 1
    assert faulty.counts()[one] == (2, 1)
    assert [entry["status"] for entry in faulty.journal()] == [200, 409]


def test_the_body_is_read_for_the_caller_and_then_handled(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "status", "status": 503}, {"caller": "runtime-2"})
    headers = "expect: 100-continue", "connection: close"
    # The body's own name counts before the header's.
    assert b" 200 OK" in faulty.raw(raw_lock(faulty, job, *headers, caller="runtime-2"))
    named = raw_lock(faulty, job, *headers, body=b'{"runtimeInstanceId": "runtime-2"}')
    assert b" 503 " in faulty.raw(named)
    large = raw_lock(faulty, job, "connection: close", body=b" " * (2**21))
    assert b" 413 " in faulty.raw(large)
    broken = raw_lock(faulty, job, "connection: close", body=b"{")
    assert b" 400 " in faulty.raw(broken)
    assert [entry["caller"] for entry in faulty.journal(operationId="lockJob", status=503)] == ["runtime-2"]


def test_half_a_request_changes_nothing_where_plans_read_bodies(faulty):
    job = faulty.state("job")["jobId"]
    faulty.plan({"kind": "delay", "seconds": 0.01}, {"caller": "runtime-1"})
    faulty.raw(raw_lock(faulty, job)[:-5], half_close=True)
    assert faulty.status_of(job) == "pending"
