"""The compiled judgement against stock Connexion, on the same specification and handlers.

For valid requests, and for requests with a single fault, both give the same status, except for the differences that
``INTENDED`` lists with their reasons. A listed difference that is none any more fails, too.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from asgi import KEY, request

import openapi
from mock_server.control import Guard
from mock_server.seed_data import SeedData
from mock_server.server import Server
from mock_server.stock import stock_app
from mock_server.worlds import Options, Worlds

JOB = "/internal/runtime/jobs/job-1"
VALID = {
    "poll": (
        "/internal/runtime/jobs/poll",
        {
            "runtimeInstanceId": "runtime-1",
            "supportedJobTypes": ["quiz_generation"],
            "limit": 5,
            "capabilities": {
                "supportedSnapshotVersions": ["ai_snapshot_v1"],
                "supportedOutputSchemaVersions": ["quiz_output_v1"],
            },
        },
    ),
    "lock": (f"{JOB}/lock", {"runtimeInstanceId": "runtime-1"}),
    "heartbeat": (f"{JOB}/heartbeat", {"runtimeInstanceId": "runtime-1"}),
    "snapshot": (f"{JOB}/snapshot", None),
    "resolve": (
        "/internal/runtime/model-credentials/resolve",
        {"jobId": "job-1", "apiKeyMode": "platform_key", "credentialId": "cred-1", "provider": "deepseek"},
    ),
    "result": (
        f"{JOB}/result",
        {
            "runtimeInstanceId": "runtime-1",
            "schemaVersion": "quiz_output_v1",
            "status": "succeeded",
            "rawOutput": {"any": 1},
            "validatedOutput": {"questions": []},
            "validationErrors": [],
            "usage": {
                "inputTokens": 1200,
                "outputTokens": 450,
                "totalTokens": 1650,
                "latencyMs": 3200,
                "costEstimate": 3,
            },
            "attemptNo": 0,
            "outputHash": "sha256-abc123",
        },
    ),
    "fail": (
        f"{JOB}/fail",
        {
            "runtimeInstanceId": "runtime-1",
            "errorCode": "MODEL_TIMEOUT",
            "errorMessage": "too slow",
            "retryable": True,
            "rawError": "timed out",
        },
    ),
    "logs": (
        "/internal/runtime/invocation-logs",
        {
            "logs": [
                {
                    "jobId": "job-1",
                    "provider": "deepseek",
                    "model": "deepseek-chat",
                    "apiKeyMode": "user_deepseek_key",
                    "credentialId": "cred-001",
                    "promptName": "quiz",
                    "promptVersion": "quiz_v1",
                    "outputSchemaVersion": "quiz_output_v1",
                    "inputTokens": 1200,
                    "outputTokens": 450,
                    "totalTokens": 1650,
                    "latencyMs": 3200,
                    "costEstimate": 3,
                    "success": False,
                    "errorCode": "MODEL_TIMEOUT",
                    "errorMessage": "too slow",
                    "retryCount": 0,
                    "runtimeInstanceId": "runtime-1",
                    "traceId": "trace-xyz",
                    "correlationId": "corr-abc",
                }
            ]
        },
    ),
}
METHODS = {"snapshot": "GET"}
SCHEMAS = {
    "poll": "PollRequest",
    "lock": "LockRequest",
    "heartbeat": "HeartbeatRequest",
    "resolve": "ResolveRequest",
    "result": "ResultRequest",
    "fail": "FailRequest",
    "logs": "LogsRequest",
}
VALUES = {"string": "text", "integer": 3, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}

# End of a case's name: outcome here, outcomes of stock Connexion, why.
INTENDED: dict[str, tuple[str, set[str], str]] = {
    "whole number written 1.0": (
        "accepted",
        {"400"},
        "a whole number may be written 1.0 (RT-ERR-69); for Draft 4 it is a fraction",
    ),
    "body not UTF-8": ("400", {"500"}, "stock fails on it (spec-first/connexion #1860)"),
    "body 10,000 deep": ("400", {"500"}, "stock fails on it"),
    "method HEAD": ("405", {"405", "404", "accepted"}, "HEAD is no method of the API; stock looks for it where GET is"),
    "body with half a surrogate": (
        "400",
        {"accepted", "404", "500"},
        "a text that can't be written as UTF-8 is no JSON text for us",
    ),
    "body with NaN": ("400", {"accepted"}, "NaN is no JSON"),
    "body over the size limit": ("413", {"400"}, "stock knows no limit of size; there the id is too long"),
    "charset latin-1": ("415", {"accepted"}, "bodies are UTF-8"),
    "body without a content type": ("415", {"accepted", "500"}, "a body says what it is (RT-ERR-55)"),
    "a key beside the logs": ("400", {"accepted"}, "`x-forbidden-names` is a word of ours (RT-LOG-60)"),
    "path with a slash too many": ("404", {"307"}, "a path is as it is written; a POST is not redirected"),
    "path with an encoded slash": ("404", {"accepted"}, "an encoded slash is not a slash"),
    "id over 128 characters": ("404", {"400"}, "an id that can't be one is a path that does not exist (RT-ERR-79)"),
}


@dataclass
class Case:
    """One request and what is wrong with it."""

    name: str
    path: str
    content: bytes
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, str]:
        return {"content-type": "application/json", **self.headers}


def without(data: Any, path: list[str | int]) -> Any:
    changed = copy.deepcopy(data)
    target = changed
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    return changed


def replaced(data: Any, path: list[str | int], value: Any) -> Any:
    changed = copy.deepcopy(data)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


def body_faults(schema: dict[str, Any], valid: Any, path: list[str | int]) -> list[tuple[str, Any]]:
    """Every property left out, of every other type, and just within and beyond each limit: name and whole body."""
    contract = openapi.load()
    schema = contract.resolve(schema)
    for part in schema.pop("allOf", []):
        schema = contract.resolve(part) | schema
    here = valid
    for key in path:
        here = here[key]
    shown = "/".join(map(str, path)) or "body"
    found: list[tuple[str, Any]] = []
    if "type" not in schema:  # any JSON
        return [(f"{shown} is {kind}", replaced(valid, path, value)) for kind, value in VALUES.items()]

    def put(value: Any) -> Any:
        return replaced(valid, path, value) if path else value

    for kind, value in VALUES.items():
        if not (kind == schema["type"] or (kind == "integer" and schema["type"] == "number")):
            found.append((f"{shown} is {kind}", put(value)))
    for limit, inside, outside in (("minimum", 0, -1), ("maximum", 0, 1)):
        if limit in schema:
            found += [
                (f"{shown} at {limit}", put(schema[limit] + inside)),
                (f"{shown} beyond {limit}", put(schema[limit] + outside)),
            ]
    if "minLength" in schema:
        found.append((f"{shown} too short", put("x" * (schema["minLength"] - 1))))
    if "maxLength" in schema:
        found += [
            (f"{shown} as long as may be", put("é" * schema["maxLength"])),
            (f"{shown} too long", put("é" * (schema["maxLength"] + 1))),
        ]
    if "enum" in schema:
        found += [
            (f"{shown} is {value}", put(value)) for value in (*schema["enum"], "other", schema["enum"][0].upper())
        ]
    if "pattern" in schema:
        found += [(f"{shown} is {value}", put(value)) for value in ("A_1", "lower", "_A", "A" * 65)]
    if schema["type"] == "array":
        item = contract.resolve(schema["items"])
        found.append((f"{shown} empty", put([])))
        if "maxItems" in schema:
            found += [(f"{shown} of {many}", put(here * many)) for many in (schema["maxItems"], schema["maxItems"] + 1)]
        found += [
            (f"{shown} with an item of {kind}", put([*here, value]))
            for kind, value in VALUES.items()
            if kind != item.get("type")
        ]
        if item.get("type") == "object":
            found += body_faults(item, valid, [*path, 0])
    if schema["type"] == "object":
        found.append((f"{shown} with an unknown property", put({**here, "unknown": {"a": [None]}})))
        for name, item in schema.get("properties", {}).items():
            found.append((f"{shown} without {name}", without(valid, [*path, name])))
            found += body_faults(item, valid, [*path, name])
    return found


def cases() -> list[Case]:
    """Valid requests and single faults of the operations that are served."""
    found = []
    for operation, (path, valid) in VALID.items():
        content = b"" if valid is None else json.dumps(valid).encode()
        method = METHODS.get(operation, "POST")
        here = [
            *(body_cases(operation, path, valid, content) if valid is not None else ()),
            *request_cases(method, path, content),
        ]
        for case in here:
            case.name = f"{operation}: {case.name}"
        found += here
    return found


def body_cases(operation: str, path: str, valid: Any, content: bytes) -> list[Case]:
    """What can be wrong with a body."""
    schema = openapi.load().document["components"]["schemas"][SCHEMAS[operation]]
    name = b"runtime-1" if b"runtime-1" in content else b"job-1"
    found = [
        *(Case(shown, path, json.dumps(body).encode()) for shown, body in body_faults(schema, valid, [])),
        Case("body empty", path, b""),
        Case("body cut", path, content[:-1]),
        Case("body with text behind", path, content + b"x"),
        Case("body not UTF-8", path, content.replace(name, b"\xff")),
        Case("body 10,000 deep", path, b"[" * 10_000 + b"]" * 10_000),
        Case("body with half a surrogate", path, content.replace(name, b"\\ud800")),
        Case("body over the size limit", path, content.replace(name, b"x" * 1_100_000)),
        Case("body with NaN", path, content[:-1] + b', "unknown": NaN}'),
        Case("body with a key twice", path, b'{"runtimeInstanceId": 1, ' + content[1:]),
        Case("charset utf-8", path, content, headers={"content-type": "application/json; charset=utf-8"}),
        Case("charset latin-1", path, content, headers={"content-type": "application/json; charset=latin-1"}),
        Case("body without a content type", path, content, headers={"content-type": ""}),
        Case("body of text", path, content, headers={"content-type": "text/plain"}),
        Case("body of a form", path, content, headers={"content-type": "application/x-www-form-urlencoded"}),
        Case("body of JSON patch", path, content, headers={"content-type": "application/json-patch+json"}),
    ]
    wholes = {"poll": b'"limit": 5', "result": b'"attemptNo": 0', "logs": b'"retryCount": 0'}
    if operation in wholes:
        whole = wholes[operation]
        found.append(Case("whole number written 1.0", path, content.replace(whole, whole + b".0")))
    if operation == "logs":
        found.append(Case("a key beside the logs", path, content[:-1] + b', "a": [{"APIkey": "x"}]}'))
    return found


def request_cases(method: str, path: str, content: bytes) -> list[Case]:
    """What can be wrong with the rest of a request."""
    found = [
        Case("valid", path, content, method),
        Case("key empty", path, content, method, {"x-internal-api-key": ""}),
        Case("key wrong", path, content, method, {"x-internal-api-key": KEY + "x"}),
        Case("instance id empty", path, content, method, {"x-runtime-instance-id": ""}),
        Case("instance id as long as may be", path, content, method, {"x-runtime-instance-id": "x" * 128}),
        Case("instance id too long", path, content, method, {"x-runtime-instance-id": "x" * 129}),
        Case("path with a slash too many", path + "/", content, method),
        Case("path with an unknown part", path + "/more", content, method),
        *(
            Case(f"method {other}", path, content, other)
            for other in ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "POST")
            if other != method
        ),
    ]
    if "/jobs/" in path:
        found.append(Case("path with an encoded slash", path.replace("jobs/", "jobs%2F"), content, method))
    if "job-1" in path:
        found += [
            Case("id over 128 characters", path.replace("job-1", "x" * 129), content, method),
            Case("id that is not UTF-8", path.replace("job-1", "%ff"), content, method),
            Case("id of no job", path.replace("job-1", "job-x"), content, method),
        ]
    return found


CASES = {case.name: case for case in cases()}


@cache
def apps() -> tuple[Any, Any]:
    """The compiled server and stock Connexion, each with a world of its own that holds the same jobs."""
    found = []
    for _ in range(2):
        worlds = Worlds(Options(api_key=KEY, clock="manual"))
        job = {"userId": "u", "jobType": "quiz_generation", "targetType": "user", "targetId": "t"}
        seeds = SeedData.parse({"jobs": [{"id": "job-1", **job}, {"id": "job-2", **job}]})
        asyncio.run(worlds.default.fill(seeds))
        found.append(worlds)
    logging.getLogger("connexion").setLevel(logging.CRITICAL)  # it logs each refusal
    return Server(found[0], Guard(None, None)), stock_app(found[1].default)


def outcomes(case: Case) -> list[str]:
    """Of the compiled server and of stock: ``accepted`` (the handler judged it, whatever it decided), or the status."""
    fields = {name: value for name, value in case.fields.items() if name != "content-type" or value}
    found = []
    for app in apps():
        status, _, _ = asyncio.run(request(app, case.method, case.path, case.content, fields))
        found.append("accepted" if status in (200, 201, 204, 409, 422) else str(status))
    return found


def intended(case: Case) -> tuple[str, set[str], str] | None:
    """The listed difference, if the case is one."""
    return INTENDED.get(case.name.partition(": ")[2])


@pytest.mark.parametrize("case", [case for case in CASES.values() if not intended(case)], ids=lambda case: case.name)
def test_both_judge_alike(case):
    ours, stock = outcomes(case)
    assert ours == stock


@pytest.mark.parametrize("case", [case for case in CASES.values() if intended(case)], ids=lambda case: case.name)
def test_listed_differences_are_as_listed(case):
    ours, stock = outcomes(case)
    expected, others, reason = intended(case)
    assert reason
    assert ours == expected
    assert stock in others


def test_the_cases_reach_both_verdicts_and_every_listed_difference():
    names = {case.name.partition(": ")[2] for case in CASES.values()}
    assert set(INTENDED) <= names
    assert len(CASES) > 700
    assert {outcomes(CASES[f"{operation}: valid"])[0] for operation in VALID} == {"accepted"}
