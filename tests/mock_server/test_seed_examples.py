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


@pytest.fixture
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


def locked(base_url):
    assert send(base_url, "jobs/job-abc123/lock", "lockJob.request.json").status_code == 200


def test_poll_lock_and_heartbeat_as_the_protocol_shows_them(base_url):
    polled = send(base_url, "jobs/poll", "pollJobs.request.json")
    assert polled.status_code == 200
    [wanted] = json.loads((EXAMPLES / "pollJobs.response.json").read_bytes())["jobs"]
    [entry] = [job for job in polled.json()["jobs"] if job["id"] == wanted["id"]]
    assert {name: entry[name] for name in wanted} == wanted

    locking = send(base_url, "jobs/job-abc123/lock", "lockJob.request.json")
    assert locking.status_code == 200
    example = json.loads((EXAMPLES / "lockJob.response.json").read_bytes())
    same_shape(locking.json(), example)
    assert (locking.json()["jobId"], locking.json()["status"]) == ("job-abc123", "locked")

    beaten = send(base_url, "jobs/job-abc123/heartbeat", "heartbeatJob.request.json")
    assert (beaten.status_code, beaten.content) == (204, b"")


def test_snapshot_credential_result_and_logs_as_the_protocol_shows_them(base_url):
    locked(base_url)
    shown = httpx.get(f"{base_url}/internal/runtime/jobs/job-abc123/snapshot", headers=HEADERS)
    assert shown.status_code == 200
    wanted = json.loads((EXAMPLES / "getSnapshot.response.json").read_bytes())
    assert {name: shown.json()[name] for name in wanted} == wanted

    resolved = send(base_url, "model-credentials/resolve", "resolveCredential.request.json")
    assert resolved.status_code == 200
    example = json.loads((EXAMPLES / "resolveCredential.response.json").read_bytes())
    same_shape(resolved.json(), example)
    told = ("provider", "model", "apiKeyMode")
    assert {name: resolved.json()[name] for name in told} == {name: example[name] for name in told}
    assert resolved.json()["apiKey"] == "sk-example-of-user-001"

    key = "job-abc123:0:sha256-abc123"
    for status in (201, 200):
        stored = send(base_url, "jobs/job-abc123/result", "submitResult.request.json")
        assert stored.status_code == status
        assert stored.json() == {"jobId": "job-abc123", "status": "succeeded", "resultIdempotencyKey": key}

    logged = send(base_url, "invocation-logs", "submitInvocationLogs.request.json")
    assert (logged.status_code, logged.json()) == (201, {"accepted": 1})


def test_a_failure_as_the_protocol_shows_it(base_url):
    locked(base_url)
    failed = send(base_url, "jobs/job-abc123/fail", "failJob.request.json")
    assert failed.status_code == 200
    assert failed.json() == {"jobId": "job-abc123", "status": "pending", "retryCount": 1}

    again = send(base_url, "jobs/job-abc123/fail", "failJob.request.json")
    assert (again.status_code, again.json()["errorCode"]) == (409, "LOCK_NOT_HELD")
    same_shape(again.json(), json.loads((EXAMPLES / "error.response.json").read_bytes()))
