"""Requests as they come over a real connection: in pieces, too large, cut off."""

from __future__ import annotations

import json

import h11
import pytest

LOCK = b'{"runtimeInstanceId": "runtime-1"}'


def head(path, *fields, method="POST"):
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: 127.0.0.1",
        "x-internal-api-key: test-internal-key",
        "x-runtime-instance-id: runtime-1",
        "content-type: application/json",
        *fields,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def answers(data, method="POST"):
    """Every answer in the bytes: status, headers, body."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    connection.receive_data(b"")
    found, body = None, b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        if isinstance(event, h11.Response):
            found = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
    return found.status_code, dict(found.headers), body


@pytest.fixture
def job(world):
    return world.state("job")["jobId"]


@pytest.fixture
def lock_path(world, job):
    return f"{world.path}/internal/runtime/jobs/{job}/lock"


def test_a_body_may_come_in_chunks(world, lock_path):
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, LOCK[i : i + 1]) for i in range(len(LOCK))) + b"0\r\n\r\n"
    status, _, body = answers(world.raw(head(lock_path, "transfer-encoding: chunked", "connection: close") + chunks))
    assert status == 200
    assert json.loads(body)["status"] == "locked"


def test_a_client_may_wait_for_100_continue(world, lock_path):
    fields = ("expect: 100-continue", f"content-length: {len(LOCK)}", "connection: close")
    received = world.raw(head(lock_path, *fields) + LOCK)
    assert received.startswith(b"HTTP/1.1 100")
    assert answers(received)[0] == 200


@pytest.mark.parametrize("kind", ["length", "chunked"])
def test_a_body_that_is_too_large_is_refused_and_the_answer_arrives(world, lock_path, kind):
    size = 3 * 2**20
    if kind == "length":
        data = head(lock_path, f"content-length: {size}", "connection: close") + b" " * size
    else:
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        data = (
            head(lock_path, "transfer-encoding: chunked", "connection: close") + chunk * (size // 65536) + b"0\r\n\r\n"
        )
    status, _, body = answers(world.raw(data))
    assert (status, json.loads(body)["errorCode"]) == (413, "PAYLOAD_TOO_LARGE")
    (entry,) = world.journal(operationId="lockJob")
    assert len(entry["requestBody"]) < 20_000


def test_a_body_of_the_limit_is_accepted(world, lock_path):
    body = LOCK[:-1] + b" " * (2**20 - len(LOCK)) + b"}"
    assert len(body) == 2**20
    assert answers(world.raw(head(lock_path, f"content-length: {len(body)}", "connection: close") + body))[0] == 200


def test_half_a_request_changes_nothing(world, job, lock_path):
    # What came is a whole JSON text, but the client said that there would be more.
    world.raw(head(lock_path, f"content-length: {len(LOCK) + 10}") + LOCK, half_close=True)
    assert world.state("inspect-job", jobId=job)["status"] == "pending"


def test_several_requests_may_be_sent_at_once(world, lock_path):
    one = head(lock_path, f"content-length: {len(LOCK)}") + LOCK
    last = head(lock_path, f"content-length: {len(LOCK)}", "connection: close") + LOCK
    received = world.raw(one + last)
    assert received.count(b"HTTP/1.1 200") == 1
    assert received.count(b"HTTP/1.1 409") == 1


def test_a_heartbeat_is_answered_without_a_body(world, job, lock_path):
    world.lock(job)
    path = lock_path.removesuffix("lock") + "heartbeat"
    status, headers, body = answers(world.raw(head(path, f"content-length: {len(LOCK)}", "connection: close") + LOCK))
    assert (status, body) == (204, b"")
    assert b"content-type" not in headers
    assert b"content-length" not in headers


def test_of_two_fields_of_one_name_the_last_counts(world, job, lock_path):
    def locked(*fields):
        return answers(world.raw(head(lock_path, *fields, f"content-length: {len(LOCK)}", "connection: close") + LOCK))[
            0
        ]

    assert locked("x-internal-api-key: wrong") == 401
    assert locked("x-internal-api-key: wrong", "x-internal-api-key: test-internal-key") == 200


def test_a_body_of_a_get_is_ignored(world):
    data = (
        head(f"{world.path}/internal/runtime/jobs/j/snapshot", "content-length: 3", "connection: close", method="GET")
        + b"{{{"
    )
    assert answers(world.raw(data), method="GET")[0] == 404
