"""The control plane's specification: what it shows is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

import openapi
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTRACT = openapi.load("control")
SPOKEN = "application/json"


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON body of every operation, by name."""
    for operation in CONTRACT.operations.values():
        bodies = {"request": operation.document.get("requestBody", {}), **operation.document["responses"]}
        for name, body in bodies.items():
            content = CONTRACT.resolve(body).get("content", {}).get(SPOKEN)
            if content:
                yield f"{operation.id} {name}", content


EXAMPLES = {
    f"{name} {key}": (content["schema"], CONTRACT.resolve(example)["value"])
    for name, content in contents()
    for key, example in content.get("examples", {}).items()
}


@pytest.mark.parametrize(("schema", "value"), EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_is_of_its_schema(schema, value):
    validator = jsonschema_rs.Draft202012Validator(to_json_schema(schema, CONTRACT.document))
    assert [error.message for error in validator.iter_errors(value)] == []


def test_every_operation_says_what_it_does():
    for operation in CONTRACT.operations.values():
        assert operation.document["summary"], operation.id
        assert operation.document["tags"], operation.id


@pytest.mark.parametrize("operation_id", CONTRACT.operations)
def test_refusals_that_any_request_can_meet_are_documented(operation_id):
    operation = CONTRACT.operations[operation_id]
    assert {400, 401, 403, 500} <= set(operation.statuses)
    if "requestBody" in operation.document:
        assert {413, 415} <= set(operation.statuses)


OPEN = ("setUpState request", "setUpHubState request")
"""Pact's verifier sends more than we read."""


def test_requests_that_are_objects_are_closed():
    for name, content in contents():
        if name.endswith(" request") and name not in OPEN:
            schema = CONTRACT.resolve(content["schema"])
            assert schema.get("additionalProperties") is False or "properties" not in schema, name
