"""Keys are told by one answer alone: canaries are searched for in every other answer, the journal and the error log."""

from __future__ import annotations

import base64
import json
import urllib.parse

import httpx
import pytest
from mock_world import KEY, World, start, stop

UNKNOWN = "a-key-that-no-pattern-knows"
"""The value of a property named ``apiKey``: nothing but its name tells that it is a key."""


def forms(key: str) -> list[str]:
    """A key, plain and encoded."""
    raw = key.encode()
    return [key, urllib.parse.quote(key, safe=""), base64.b64encode(raw).decode(), raw.hex()]


@pytest.fixture(scope="module")
def played():
    """Every operation used with keys everywhere: the keys, answers of the API, of the control plane, the error log."""
    process, base_url = start("--clock", "manual")
    with httpx.Client() as client:
        world = World(client, base_url, "")
        made = world.state("credential", userId="u1")
        own = {"apiKeyMode": "user_deepseek_key", "credentialId": made["credentialId"]}
        job = world.locked(userId="u1", **own)
        platform_job = world.locked()
        users = world.resolve(job, **own).json()
        platform = world.resolve(platform_job).json()
        keys = {"service": KEY, "user": users["apiKey"], "platform": platform["apiKey"], "named": UNKNOWN}
        assert users["apiKey"] == made["apiKey"]
        said = f"{' '.join(forms(keys['user']))} {keys['platform']} {KEY} sk-made-up"
        answers = [
            world.poll(limit=keys["user"]),
            world.poll(**{keys["user"]: 1, "capabilities": [keys["platform"]]}),
            world.lock(keys["user"]),
            world.lock(job, by=said),
            world.heartbeat(job, by=keys["platform"][:128]),
            world.snapshot(job),
            world.snapshot(keys["user"]),
            world.snapshot(job, by=keys["user"]),
            world.resolve(job, **own, provider=keys["user"]),
            world.resolve(job, **own | {"credentialId": keys["user"]}),
            world.resolve(job, **own | {"apiKeyMode": keys["platform"]}),
            world.resolve(job, apiKey=UNKNOWN, by="runtime-2"),
            world.result(job, schemaVersion=keys["user"], rawOutput=said, validatedOutput={"apiKey": UNKNOWN}),
            world.result(job, status=keys["user"], usage={"inputTokens": keys["platform"]}, validatedOutput=said),
            world.fail(job, errorMessage=said, rawError=said, errorCode=keys["user"]),
            world.fail(job, errorMessage=said, rawError=said),
            world.fail(platform_job, errorMessage=said, rawError=said, retryable=keys["user"]),
            world.logs({"errorMessage": said, "traceId": keys["user"]}),
            world.logs({"apiKey": UNKNOWN}, {"errorMessage": {"apikey": [UNKNOWN]}}),
            world.logs({"inputTokens": keys["user"], keys["user"]: 1}, apiKey=UNKNOWN),
            world.send("POST", "/internal/runtime/invocation-logs", content=f'{{"apiKey": "{UNKNOWN}", {said}'),
            world.send("GET", f"/internal/runtime/{keys['user']}", headers={"x-internal-api-key": keys["user"]}),
            world.send("POST", f"/{keys['user']}"),
            world.send("DELETE", f"/internal/runtime/jobs/{keys['user']}/lock"),
        ]
        controls = [
            world.control("GET", "/journal", params={"limit": 1000}),
            world.control("GET", "/worlds"),
            world.control("GET", "/worlds/default"),
            world.control("GET", "/health"),
            world.control("GET", "/provider-states/runtime-api"),
            world.control("GET", f"/worlds/{keys['user']}"),
            world.control("GET", "/journal", params={"limit": keys["user"]}),
            world.try_state("inspect-job", jobId=job),
            world.try_state("inspect-job", jobId=platform_job),
            world.try_state("inspect-job", jobId=keys["user"]),
            world.try_state("job", priority=keys["user"], jobType=keys["platform"]),
            world.try_state(keys["user"]),
            world.control("POST", "/worlds", json={"id": keys["user"] + "/", "clock": keys["platform"]}),
        ]
    return keys, answers, controls, stop(process)


def assert_untold(text: str, keys: dict[str, str]) -> None:
    for owner, key in keys.items():
        for form in forms(key):
            assert form.rstrip("=")[:-2] not in text, f"{owner}: {form} in {text[:2000]}"
    assert "sk-made-up" not in text


def test_no_answer_of_the_api_tells_a_key(played):
    keys, answers, _, _ = played
    for answer in answers:
        assert answer.status_code < 500
        assert_untold(answer.text + json.dumps(dict(answer.headers)), keys)
    assert {answer.status_code for answer in answers} >= {200, 201, 400, 401, 404, 405, 409, 422}


def test_no_answer_of_the_control_plane_tells_a_key(played):
    keys, _, controls, _ = played
    for answer in controls:
        assert_untold(answer.text + json.dumps(dict(answer.headers)), keys)
    entries = controls[0].json()["entries"]
    assert len(entries) >= 28
    assert sum("[redacted]" in json.dumps(entry) for entry in entries) >= 20


def test_the_error_log_tells_no_key(played):
    keys, _, _, log = played
    assert_untold(log, keys)
    assert log == ""
