"""Key, path, method, instance id, media type, size, body, existence, steps: each wins over all that come after it."""

from __future__ import annotations

import json

import pytest
from mock_world import KEY

import openapi

POLL = "/internal/runtime/jobs/poll"
NOWHERE = "/internal/runtime/jobs/no-job/lock"
TOO_LARGE = b'{"runtimeInstanceId": "' + b"x" * 1_100_000 + b'"}'

# Each request has every fault from its own step on.
STEPS = [
    (
        "POST",
        "/internal/runtime/nothing",
        {"x-internal-api-key": "wrong", "x-runtime-instance-id": None},
        TOO_LARGE,
        401,
        "UNAUTHORIZED",
    ),
    ("PATCH", "/internal/runtime/nothing", {"x-runtime-instance-id": None}, TOO_LARGE, 404, "NOT_FOUND"),
    ("PATCH", POLL, {"x-runtime-instance-id": None}, TOO_LARGE, 405, "METHOD_NOT_ALLOWED"),
    ("POST", POLL, {"x-runtime-instance-id": None, "content-type": "text/plain"}, TOO_LARGE, 400, "INVALID_REQUEST"),
    ("POST", POLL, {"content-type": "text/plain"}, TOO_LARGE, 415, "UNSUPPORTED_MEDIA_TYPE"),
    ("POST", POLL, {"content-type": "application/json"}, TOO_LARGE, 413, "PAYLOAD_TOO_LARGE"),
    ("POST", NOWHERE, {"content-type": "application/json"}, b"{}", 400, "INVALID_REQUEST"),
    ("POST", NOWHERE, {"content-type": "application/json"}, b'{"runtimeInstanceId": "r"}', 404, "JOB_NOT_FOUND"),
]


@pytest.mark.parametrize(
    ("method", "path", "headers", "content", "status", "code"), STEPS, ids=[step[5] for step in STEPS]
)
def test_the_first_fault_in_order_is_answered(world, method, path, headers, content, status, code):
    answer = world.send(method, path, headers=headers, content=content)

    assert (answer.status_code, answer.json()["errorCode"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) - {"details"} == {"statusCode", "errorCode", "message", "timestamp", "retryable"}
    assert answer.json()["statusCode"] == status
    assert answer.json()["retryable"] is False


JOB = "/internal/runtime/jobs/no-job"
ME = {"runtimeInstanceId": "r"}
RESULT = {
    "schemaVersion": "analysis_output_v1",
    "status": "succeeded",
    "validatedOutput": {},
    "attemptNo": 0,
    "outputHash": "h",
}
# Method, path, a body that is right but for its job, and what that is answered.
OPERATIONS = {
    "pollJobs": ("POST", POLL, {**ME, "supportedJobTypes": ["x"]}, (200, None)),
    "lockJob": ("POST", f"{JOB}/lock", ME, (404, "JOB_NOT_FOUND")),
    "heartbeatJob": ("POST", f"{JOB}/heartbeat", ME, (404, "JOB_NOT_FOUND")),
    "getSnapshot": ("GET", f"{JOB}/snapshot", None, (404, "JOB_NOT_FOUND")),
    "resolveCredential": (
        "POST",
        "/internal/runtime/model-credentials/resolve",
        {"jobId": "no-job", "apiKeyMode": "user_deepseek_key", "provider": "deepseek"},
        (404, "JOB_NOT_FOUND"),
    ),
    "submitResult": ("POST", f"{JOB}/result", {**ME, **RESULT}, (404, "JOB_NOT_FOUND")),
    "failJob": (
        "POST",
        f"{JOB}/fail",
        {**ME, "errorCode": "E", "errorMessage": "", "retryable": False},
        (404, "JOB_NOT_FOUND"),
    ),
    "submitInvocationLogs": (
        "POST",
        "/internal/runtime/invocation-logs",
        {
            "logs": [
                {
                    **ME,
                    "jobId": "no-job",
                    "provider": "deepseek",
                    "model": "m",
                    "apiKeyMode": "platform_key",
                    "success": True,
                }
            ]
        },
        (201, None),
    ),
}


def test_all_operations_are_here():
    assert set(OPERATIONS) == set(openapi.load().operations)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_is_judged_in_order(world, operation):
    """One fault after the other is mended, from the first step on, until the request is right."""
    method, path, body, told = OPERATIONS[operation]
    content = b"" if body is None else json.dumps(body).encode()
    headers = {"x-internal-api-key": "wrong", "x-runtime-instance-id": None, "content-type": "text/plain"}
    wrong = {"method": "PATCH", "path": f"{path}/more", "headers": headers, "content": TOO_LARGE}

    def answered(**mended):
        wrong["headers"] = headers | mended.pop("headers", {})
        headers.update(wrong["headers"])
        wrong.update(mended)
        answer = world.send(wrong["method"], wrong["path"], headers=wrong["headers"], content=wrong["content"])
        return answer.status_code, answer.json().get("errorCode")

    assert answered() == (401, "UNAUTHORIZED")
    assert answered(headers={"x-internal-api-key": KEY}) == (404, "NOT_FOUND")
    assert answered(path=path) == (405, "METHOD_NOT_ALLOWED")
    assert answered(method=method) == (400, "INVALID_REQUEST")
    if body is None:  # nothing is asked of a body that is not read
        assert answered(headers={"x-runtime-instance-id": "r"}) == told
        return
    assert answered(headers={"x-runtime-instance-id": "r"}) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert answered(headers={"content-type": "application/json"}) == (413, "PAYLOAD_TOO_LARGE")
    assert answered(content=content[:-1]) == (400, "INVALID_REQUEST")
    assert answered(content=b"{}") == (400, "INVALID_REQUEST")
    assert answered(content=content) == told


@pytest.mark.parametrize("key", [None, "", "test-internal-ke", "test-internal-key2", "TEST-INTERNAL-KEY"])
def test_a_key_that_is_not_the_key_is_refused(world, key):
    assert world.send("POST", POLL, headers={"x-internal-api-key": key}).status_code == 401


def test_a_users_token_is_no_key(world):
    answer = world.send("POST", POLL, headers={"x-internal-api-key": None, "authorization": "Bearer test-internal-key"})
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/", "/internal", "/internal/runtimes/x", "/internal/runtim%65s"])
def test_no_key_is_asked_for_outside_of_the_api(world, path):
    assert world.send("GET", path, headers={"x-internal-api-key": None}).status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/internal/runtime", "/internal/runtime/", "/internal%2Fruntime/jobs/poll", "/internal/runtim%65/jobs/poll"],
)
def test_a_path_that_decodes_to_the_api_needs_the_key(world, path):
    assert world.send("POST", path, headers={"x-internal-api-key": None}).status_code == 401


def test_an_encoded_slash_behind_a_worlds_name_does_not_get_round_the_key(world):
    path = f"{world.path}%2Fx/internal/runtime/jobs/no-job/lock"
    answer = world.raw(
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-runtime-instance-id: r\r\ncontent-type: application/json\r\n"
        'content-length: 26\r\nconnection: close\r\n\r\n{"runtimeInstanceId": "r"}'.encode()
    )
    assert answer.split(b" ", 2)[1] == b"404"
    assert b"no world" in answer


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
def test_allow_names_the_methods_of_the_path(world, method):
    answer = world.send(method, POLL)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["HEAD", "POST"])
def test_a_read_is_not_served_by_another_method(world, method):
    answer = world.send(method, "/internal/runtime/jobs/j/snapshot")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("id_", ["x" * 129, "%ff", "a%2Fb", "%00" * 129, "é".encode("latin-1").hex() + "%e9"])
def test_what_can_not_be_an_id_is_no_path(world, id_):
    answer = world.send("POST", f"/internal/runtime/jobs/{id_}/lock", json={"runtimeInstanceId": "r"})
    assert (answer.status_code, answer.json()["errorCode"]) == (404, "NOT_FOUND")


@pytest.mark.parametrize("id_", ["x" * 128, "%E4%BD%9C", "a%20b", "%00", "..%3B", "a%0Ab"])
def test_any_other_text_is_an_id_that_no_job_has(world, id_):
    answer = world.send("POST", f"/internal/runtime/jobs/{id_}/lock", json={"runtimeInstanceId": "r"})
    assert (answer.status_code, answer.json()["errorCode"]) == (404, "JOB_NOT_FOUND")


@pytest.mark.parametrize(
    "path", [POLL + "/", "//internal/runtime/jobs/poll", "/internal/runtime/jobs%2Fpoll", "/internal/runtime/health"]
)
def test_a_path_is_matched_as_it_is(world, path):
    answer = world.send("POST", path, json={"runtimeInstanceId": "r", "supportedJobTypes": ["x"]})
    assert answer.status_code == 404
    assert "location" not in answer.headers
