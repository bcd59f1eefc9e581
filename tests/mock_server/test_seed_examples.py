"""The protocol's own request examples, byte for byte, against a world with the protocol's own ids."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from mock_world import start, stop

import mock_server

EXAMPLES = Path(__file__).parents[1] / "seed_facts" / "examples"
DATA = Path(mock_server.__file__).parent / "data" / "example.yaml"
HEADERS = {
    "x-internal-api-key": "test-internal-key",
    "x-runtime-instance-id": "runtime-001",
    "content-type": "application/json",
}


@pytest.fixture(scope="module")
def base_url():
    process, url = start("--data", str(DATA))
    yield url
    stop(process)


def send(base_url, path, example):
    return httpx.post(f"{base_url}/internal/runtime/{path}", content=(EXAMPLES / example).read_bytes(), headers=HEADERS)


def same_shape(answer, example):
    """Each of the example's fields is there, of the example's type."""
    for name, value in example.items():
        assert name in answer
        assert type(answer[name]) is type(value), name


def test_poll_lock_and_heartbeat_as_the_protocol_shows_them(base_url):
    polled = send(base_url, "jobs/poll", "pollJobs.request.json")
    assert polled.status_code == 200
    [wanted] = json.loads((EXAMPLES / "pollJobs.response.json").read_bytes())["jobs"]
    [entry] = [job for job in polled.json()["jobs"] if job["id"] == wanted["id"]]
    assert {name: entry[name] for name in wanted} == wanted

    locked = send(base_url, "jobs/job-abc123/lock", "lockJob.request.json")
    assert locked.status_code == 200
    example = json.loads((EXAMPLES / "lockJob.response.json").read_bytes())
    same_shape(locked.json(), example)
    assert (locked.json()["jobId"], locked.json()["status"]) == ("job-abc123", "locked")

    beaten = send(base_url, "jobs/job-abc123/heartbeat", "heartbeatJob.request.json")
    assert (beaten.status_code, beaten.content) == (204, b"")


@pytest.mark.parametrize(
    ("path", "example"),
    [
        ("model-credentials/resolve", "resolveCredential.request.json"),
        ("jobs/job-abc123/result", "submitResult.request.json"),
        ("jobs/job-abc123/fail", "failJob.request.json"),
        ("invocation-logs", "submitInvocationLogs.request.json"),
    ],
)
def test_what_is_not_served_yet_says_so_in_the_error_shape(base_url, path, example):
    answer = send(base_url, path, example)
    assert (answer.status_code, answer.json()["errorCode"]) == (501, "NOT_IMPLEMENTED")
    same_shape(answer.json(), json.loads((EXAMPLES / "error.response.json").read_bytes()))
