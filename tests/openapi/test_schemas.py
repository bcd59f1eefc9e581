"""OpenAPI 3.0 schemas as JSON Schema: the rewritten schema accepts exactly what the original means."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

import openapi
from openapi.schemas import to_json_schema

SCHEMAS = {
    "Text": {"type": "string", "nullable": True},
    "Tree": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Tree"}, "n": {"type": "integer"}}},
    "Pair": {"type": "array", "items": {"$ref": "#/components/schemas/Text"}, "maxItems": 2},
}
DOCUMENT = {"components": {"schemas": SCHEMAS}}
CONTRACT = openapi.load("runtime-api")


def accepts(schema: dict[str, Any], value: Any) -> bool:
    return jsonschema_rs.Draft202012Validator(to_json_schema(schema, DOCUMENT)).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        pytest.param({"type": "string"}, ["x"], [None, 1], id="type"),
        pytest.param({"type": "string", "nullable": True}, ["x", None], [1], id="nullable"),
        pytest.param({"type": "string", "nullable": False}, ["x"], [None], id="not-nullable"),
        pytest.param({"type": "string", "enum": ["a"], "nullable": True}, ["a", None], ["b"], id="nullable-enum"),
        pytest.param(
            {"type": "string", "enum": ["a", None], "nullable": True}, ["a", None], ["b"], id="nullable-enum-with-null"
        ),
        pytest.param({"allOf": [{"type": "string"}], "nullable": True}, ["x", None], [1], id="nullable-all-of"),
        pytest.param({"nullable": True}, [None, 1, "x", {}], [], id="anything-nullable"),
        pytest.param({"description": "Any JSON"}, [None, 1, "x", {}], [], id="anything"),
        pytest.param({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, [2], [1, 0], id="exclusive-minimum"),
        pytest.param({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, [1], [0], id="inclusive-minimum"),
        pytest.param({"type": "number", "maximum": 1, "exclusiveMaximum": True}, [0.9], [1, 2], id="exclusive-maximum"),
        pytest.param({"type": "integer"}, [1, 1.0], [True, "1", 1.5], id="integer-as-float"),
        pytest.param({"$ref": "#/components/schemas/Text"}, ["x", None], [1], id="reference"),
        pytest.param(
            {"$ref": "#/components/schemas/Pair"},
            [["x", None], []],
            [["x", 1], ["a", "b", "c"]],
            id="references-within",
        ),
        pytest.param(
            {"$ref": "#/components/schemas/Tree"},
            [{"next": {"next": {"n": 1}}}],
            [{"next": {"n": "x"}}],
            id="recursion",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": False, "properties": {"a": {}}},
            [{}, {"a": None}],
            [{"b": 1}],
            id="closed",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
            [{"x": None, "y": "z"}],
            [{"x": 1}],
            id="additional-properties",
        ),
        pytest.param(
            {"oneOf": [{"type": "string", "nullable": True}, {"type": "integer"}]},
            [None, "x", 1],
            [1.5, []],
            id="one-of",
        ),
        pytest.param(
            {"anyOf": [{"$ref": "#/components/schemas/Text"}, {"type": "boolean"}]}, [None, True], [1], id="any-of"
        ),
        pytest.param({"not": {"type": "string", "nullable": True}}, [1], [None, "x"], id="not"),
        pytest.param(
            {"type": "array", "items": {"type": "integer", "nullable": True}}, [[1, None]], [["x"]], id="items"
        ),
        pytest.param(
            {
                "type": "object",
                "required": ["nullable", "x-a"],
                "properties": {
                    "nullable": {"type": "string"},
                    "x-a": {"type": "integer"},
                    "title": {"type": "string"},
                    "example": {"type": "integer"},
                },
            },
            [{"nullable": "x", "x-a": 1, "title": "t", "example": 1}],
            [
                {"nullable": 1, "x-a": 1},
                {"nullable": "x", "x-a": "y"},
                {"nullable": "x", "x-a": 1, "title": 1},
                {"nullable": "x", "x-a": 1, "example": "e"},
            ],
            id="properties-named-like-keywords",
        ),
        pytest.param(
            {"type": "string", "x-secret": True, "example": 1, "deprecated": True}, ["x"], [1], id="annotations"
        ),
    ],
)
def test_means_the_same(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not accepts(schema, value)] == []
    assert [value for value in bad if accepts(schema, value)] == []


def test_carries_the_components_that_it_refers_to_and_no_others() -> None:
    schema = to_json_schema({"$ref": "#/components/schemas/Pair"}, DOCUMENT)
    assert schema.keys() == {"$ref", "$defs"}
    assert schema["$defs"].keys() == {"Pair", "Text"}


def test_drops_what_json_schema_does_not_know() -> None:
    schema = {
        "type": "string",
        "x-rules": ["RT-1"],
        "example": "x",
        "nullable": False,
        "discriminator": {},
        "default": "d",
    }
    assert to_json_schema(schema, DOCUMENT) == {"type": "string", "default": "d"}


def test_leaves_the_original_alone() -> None:
    schema = {
        "type": "string",
        "enum": ["a"],
        "nullable": True,
        "properties": {"b": {"minimum": 1, "exclusiveMinimum": True}},
    }
    before = repr(schema)
    to_json_schema(schema, DOCUMENT)
    assert repr(schema) == before


def test_a_reference_to_nowhere() -> None:
    with pytest.raises(KeyError, match="Nothing"):
        to_json_schema({"$ref": "#/components/schemas/Nothing"}, DOCUMENT)


@pytest.mark.parametrize("name", CONTRACT.document["components"]["schemas"])
def test_every_schema_of_the_runtime_api_is_valid_json_schema(name: str) -> None:
    schema = to_json_schema({"$ref": f"#/components/schemas/{name}"}, CONTRACT.document)
    assert jsonschema_rs.meta.is_valid(schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert "nullable" not in repr(schema)
    assert "x-rules" not in repr(schema)


def test_the_seeds_poll_request_is_accepted_and_a_limit_of_51_is_not() -> None:
    request = CONTRACT.document["components"]["examples"]["PollRequest"]["value"]
    schema = to_json_schema({"$ref": "#/components/schemas/PollRequest"}, CONTRACT.document)
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid(request)
    assert validator.is_valid(request | {"limit": 50})
    assert not validator.is_valid(request | {"limit": 51})
