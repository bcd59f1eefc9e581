"""Generated requests to every operation of the control plane, on a server of its own: each is answered as documented.

Operations that stop others (drop, reset, clear) are among them; new operations of ``control.yaml`` come by themselves.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import httpx
import hypothesis
import hypothesis.errors
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase
from mock_world import start, stop
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode

import openapi
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CONTRACT = openapi.load("control")
EXAMPLES = max(8, 400 // len(CONTRACT.operations))
"""For each operation and mode: all of them take about a quarter of a minute."""
SETTINGS = hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


RUNTIME_API = openapi.load("runtime-api")
NAMES = {
    name: {"type": "string", "enum": sorted(known)}
    for name, known in (("operationId", RUNTIME_API.operations), ("errorCode", RUNTIME_API.errors))
}
"""Fields that take nothing but the names that there are."""
WORLD = {
    "clock": {"type": "string", "enum": ["real", "manual", "x60"]},
    "mutant": {"type": "string", "enum": ["lock.61-seconds"], "nullable": True},
    "withoutStates": {"type": "array", "items": {"type": "string", "enum": sorted(CONTRACT.document["x-states"])}},
    "port": {"type": "boolean"},
}
"""Options of worlds that take nothing but the names, and ports, that there are."""


def document() -> dict[str, Any]:
    """The specification, narrowed to requests that get somewhere: names that exist, waits that a test can wait for."""

    def narrowed(node: Any) -> Any:
        if isinstance(node, list):
            return [narrowed(item) for item in node]
        if not isinstance(node, dict):
            return node
        node = {key: narrowed(item) for key, item in node.items() if not key.startswith("x-")}
        if "schema" in node and node.get("name") in NAMES:
            node["schema"] = NAMES[node["name"]]
        properties = node.get("properties")
        for name, names in NAMES.items():
            if isinstance(properties, dict) and "$ref" in properties.get(name, {}):
                properties[name] = names
        if isinstance(properties, dict) and "waitSeconds" in properties:
            properties["waitSeconds"] |= {"maximum": 0.01}
        return node

    states = [
        {
            "type": "object",
            "required": ["action", "state", "params"],
            "properties": {
                "action": {"enum": ["setup"]},
                "state": {"type": "string", "enum": [name]},
                "params": params,
            },
        }
        for name, params in CONTRACT.document["x-states"].items()
    ]
    found: dict[str, Any] = narrowed(CONTRACT.document)
    found["components"]["schemas"]["WorldRequest"]["properties"] |= WORLD
    found["components"]["schemas"]["StateRequest"] = {"oneOf": states}
    world = found["components"]["schemas"]["WorldRequest"]["properties"]
    world["withoutStates"]["items"] = {"type": "string", "enum": list(CONTRACT.document["x-states"])}
    world["clock"] = {"type": "string", "enum": ["real", "manual", "x60"]}
    return found


SCHEMA = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def target() -> Iterator[httpx.Client]:
    """A server of its own: it may lose all its worlds. A fault that it logged fails the last test."""
    process, url = start("--clock", "manual")
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client
        assert client.get("/__control__/health").status_code == 200
    assert stop(process) == ""


def sent(client: httpx.Client, case: Any) -> httpx.Response:
    """The answer to a case; headers are left out that would make it another request on the wire."""
    prepared = case.as_transport_kwargs(base_url=str(client.base_url))
    headers = {
        str(name): str(value)
        for name, value in (prepared.get("headers") or {}).items()
        if str(name).lower() not in ("host", "origin", "content-length", "transfer-encoding", "connection")
        and all(31 < ord(char) < 127 for char in f"{name}{value}")
    }
    body = {name: prepared[name] for name in ("json",) if name in prepared}
    data = prepared.get("data")
    if data is not None and not body:
        body = {"content": data if isinstance(data, bytes) else str(data).encode()}
    return client.request(prepared["method"], prepared["url"], params=prepared.get("params"), headers=headers, **body)


def judge(operation_id: str, response: httpx.Response) -> None:
    """A status that the operation documents, never a fault of the mock, and a body of its schema."""
    operation = CONTRACT.operations[operation_id]
    shown = f"{response.request.method} {response.request.url} {response.request.content!r}: {response.text}"
    routed = response.status_code not in (404, 405)  # what is left of a path may be no path at all, or another one
    assert response.status_code != 500, shown
    if routed:
        assert response.status_code in operation.statuses, shown
    if response.status_code >= 400:
        judge_refusal(response.json())
    elif response.content:
        described = CONTRACT.resolve(operation.document["responses"][str(response.status_code)])
        media_type = response.headers["content-type"].partition(";")[0]
        assert media_type in described["content"], shown
        if media_type != "application/json":
            return
        schema = to_json_schema(described["content"][media_type]["schema"], CONTRACT.document)
        problems = [error.message for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(response.json())]
        assert problems == [], shown


def judge_refusal(body: Mapping[str, Any]) -> None:
    """The control plane's error body: what is wrong in words, and its places."""
    assert set(body) <= {"error", "details"}
    assert body["error"]
    for violation in body.get("details", ()):
        assert set(violation) == {"location", "rule", "expected", "actual", "message"}
        assert violation["message"]


def generated(operation_id: str, mode: GenerationMode, client: httpx.Client) -> list[int]:
    """The statuses of generated requests, each judged."""
    statuses: list[int] = []

    @SETTINGS
    @hypothesis.given(case=SCHEMA.find_operation_by_id(operation_id).as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        response = sent(client, case)
        judge(operation_id, response)
        statuses.append(response.status_code)

    run()
    return statuses


@pytest.mark.parametrize("operation_id", CONTRACT.operations)
def test_valid_requests_are_answered_as_documented(target, operation_id):
    assert generated(operation_id, GenerationMode.POSITIVE, target)


@pytest.mark.parametrize(
    "operation_id",
    [
        operation.id
        for operation in CONTRACT.operations.values()
        if "requestBody" in operation.document or "parameters" in operation.document
    ],
)
def test_invalid_requests_are_refused(target, operation_id):
    statuses = generated(operation_id, GenerationMode.NEGATIVE, target)
    # Where what made a case invalid does not survive the way, a valid request is left: not more than a part of them.
    assert sum(status >= 400 for status in statuses) > len(statuses) / 2


def test_what_one_answer_names_the_next_request_uses(target):
    """Schemathesis follows the links that it finds: worlds that were made are read, reset and dropped."""
    seen: list[tuple[str, int]] = []
    failures: list[AssertionError] = []

    class Workflow(SCHEMA.include(path_regex="^/__control__/worlds").as_state_machine()):
        def setup(self) -> None:
            for world in target.get("/__control__/worlds").json()["worlds"][1:]:
                target.delete(f"/__control__/worlds/{world['id']}")

        def call(self, case: Any, **_: Any) -> Any:
            response = sent(target, case)
            operation_id = case.operation.definition.raw["operationId"]
            try:
                judge(operation_id, response)
            except AssertionError as failure:
                failures.append(failure)
                raise
            seen.append((operation_id, response.status_code))
            return Response.from_httpx(response, verify=False)

        def validate_response(self, *_: Any, **__: Any) -> None:
            """It is judged when it comes."""

    # The server has a state, so a sequence need not go the same way twice, which ends a run: another seed begins anew.
    wanted = {("readWorld", 200), ("resetWorld", 204), ("dropWorld", 204)}
    for seed in range(100):
        hypothesis.seed(seed)(Workflow)
        with contextlib.suppress(hypothesis.errors.Flaky):
            Workflow.run(settings=hypothesis.settings(SETTINGS, max_examples=10, stateful_step_count=8))
        assert failures == []
        if wanted <= set(seen):
            break
    assert wanted <= set(seen)
