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
}
SCHEMAS = {"poll": "PollRequest", "lock": "LockRequest", "heartbeat": "HeartbeatRequest"}
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
    "body with half a surrogate": ("400", {"accepted"}, "a text that can't be written as UTF-8 is no JSON text for us"),
    "body with NaN": ("400", {"accepted"}, "NaN is no JSON"),
    "body over the size limit": ("413", {"400"}, "stock knows no limit of size; there the id is too long"),
    "charset latin-1": ("415", {"accepted"}, "bodies are UTF-8"),
    "body without a content type": ("415", {"accepted", "500"}, "a body says what it is (RT-ERR-55)"),
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


def without(data: Any, path: list[str]) -> Any:
    changed = copy.deepcopy(data)
    target = changed
    for key in path[:-1]:
        target = target[key]
    del target[path[-1]]
    return changed


def replaced(data: Any, path: list[str], value: Any) -> Any:
    changed = copy.deepcopy(data)
    target = changed
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return changed


def body_faults(schema: dict[str, Any], valid: Any, path: list[str]) -> list[tuple[str, Any]]:
    """Every property left out, of every other type, and just within and beyond each limit: name and whole body."""
    contract = openapi.load()
    schema = contract.resolve(schema)
    for part in schema.pop("allOf", []):
        schema = contract.resolve(part) | schema
    here = valid
    for key in path:
        here = here[key]
    shown = "/".join(path) or "body"
    found: list[tuple[str, Any]] = []

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
    if schema["type"] == "array":
        found.append((f"{shown} empty", put([])))
        found += [
            (f"{shown} with an item of {kind}", put([*here, value]))
            for kind, value in VALUES.items()
            if kind != "string"
        ]
    if schema["type"] == "object":
        found.append((f"{shown} with an unknown property", put({**here, "unknown": {"a": [None]}})))
        for name, item in schema["properties"].items():
            found.append((f"{shown} without {name}", without(valid, [*path, name])))
            found += body_faults(item, valid, [*path, name])
    return found


def cases() -> list[Case]:
    """Valid requests and single faults of the operations that are served."""
    found = []
    for operation, (path, valid) in VALID.items():
        content = json.dumps(valid).encode()
        schema = openapi.load().document["components"]["schemas"][SCHEMAS[operation]]
        found += [
            Case("valid", path, content),
            *(Case(name, path, json.dumps(body).encode()) for name, body in body_faults(schema, valid, [])),
            Case("body empty", path, b""),
            Case("body cut", path, content[:-1]),
            Case("body with text behind", path, content + b"x"),
            Case("body not UTF-8", path, content.replace(b"runtime-1", b"\xff")),
            Case("body 10,000 deep", path, b"[" * 10_000 + b"]" * 10_000),
            Case("body with half a surrogate", path, content.replace(b"runtime-1", b"\\ud800")),
            Case("body over the size limit", path, content.replace(b"runtime-1", b"x" * 1_100_000)),
            Case("body with NaN", path, content[:-1] + b', "unknown": NaN}'),
            Case("body with a key twice", path, b'{"runtimeInstanceId": 1, ' + content[1:]),
            Case("charset utf-8", path, content, headers={"content-type": "application/json; charset=utf-8"}),
            Case("charset latin-1", path, content, headers={"content-type": "application/json; charset=latin-1"}),
            Case("body without a content type", path, content, headers={"content-type": ""}),
            Case("body of text", path, content, headers={"content-type": "text/plain"}),
            Case("body of a form", path, content, headers={"content-type": "application/x-www-form-urlencoded"}),
            Case("body of JSON patch", path, content, headers={"content-type": "application/json-patch+json"}),
            Case("key empty", path, content, headers={"x-internal-api-key": ""}),
            Case("key wrong", path, content, headers={"x-internal-api-key": KEY + "x"}),
            Case("instance id empty", path, content, headers={"x-runtime-instance-id": ""}),
            Case("instance id as long as may be", path, content, headers={"x-runtime-instance-id": "x" * 128}),
            Case("instance id too long", path, content, headers={"x-runtime-instance-id": "x" * 129}),
            Case("path with a slash too many", path + "/", content),
            Case("path with an unknown part", path + "/more", content),
            Case("path with an encoded slash", path.replace("jobs/", "jobs%2F"), content),
            *(
                Case(f"method {method}", path, content, method)
                for method in ("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE")
            ),
        ]
        if operation == "poll":
            found.append(Case("whole number written 1.0", path, content.replace(b'"limit": 5', b'"limit": 5.0')))
        else:
            found += [
                Case("id over 128 characters", path.replace("job-1", "x" * 129), content),
                Case("id that is not UTF-8", path.replace("job-1", "%ff"), content),
                Case("id of no job", path.replace("job-1", "job-x"), content),
            ]
        for case in found:
            case.name = case.name if case.name.startswith(tuple(VALID)) else f"{operation}: {case.name}"
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
        found.append("accepted" if status in (200, 204, 409) else str(status))
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
    assert len(CASES) > 150
    assert {outcomes(CASES[f"{operation}: valid"])[0] for operation in VALID} == {"accepted"}
