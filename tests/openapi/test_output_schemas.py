"""``x-output-schemas``: one schema for each version that the API supports, and the seeds' example is of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from lint_faults import Fault, verify

import openapi
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENT = openapi.load().document
EXAMPLES = Path(__file__).parents[1] / "seed_facts" / "examples"

FAULTS = {
    "version without schema": Fault(
        "  flashcard_output_v1: {level: decision, schema: {$ref: '#/components/schemas/FlashcardOutput'}}\n",
        "",
        "the supported version `flashcard_output_v1` has no schema",
        "describe its outputs",
        at="x-output-schemas:\n",
        beside=("nothing refers to `FlashcardOutput`",),
    ),
    "schema without version": Fault(
        "  quiz_output_v1: {level: decision, schema: {$ref",
        "  quiz_output_v2: {level: decision, schema: {$ref",
        "`quiz_output_v2` is none of the machine's schemaVersions",
        "add it there, or drop it here",
        beside=("the supported version `quiz_output_v1` has no schema",),
    ),
    "no schema at all": Fault(
        "  quiz_output_v1: {level: decision, schema: {$ref: '#/components/schemas/QuizOutput'}}",
        "  quiz_output_v1: {level: decision}",
        "`quiz_output_v1` has no `schema`",
        "add it",
        beside=("nothing refers to `QuizOutput`",),
    ),
    "example of another schema": Fault(
        "        validatedOutput: {learningState: in_progress, riskLevel: low}",
        "        validatedOutput: {learningState: 7, riskLevel: low}",
        "the example's output is not of its schemaVersion",
        "correct the example or the schema",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_told_with_its_place_and_its_mend(tmp_path: Path, fault: Fault) -> None:
    verify(fault, tmp_path)


def of_version(version: str, output: Mapping[str, Any]) -> bool:
    schema = to_json_schema(DOCUMENT["x-output-schemas"][version]["schema"], DOCUMENT)
    return bool(jsonschema_rs.Draft202012Validator(schema).is_valid(output))


def test_the_versions_are_those_of_the_machine() -> None:
    machine = openapi.load().machine
    assert machine is not None
    assert list(DOCUMENT["x-output-schemas"]) == machine.constants["schemaVersions"].value


def test_the_seeds_example_is_of_its_version() -> None:
    example = json.loads((EXAMPLES / "submitResult.request.json").read_bytes())
    assert of_version(example["schemaVersion"], example["validatedOutput"])
    assert of_version(example["schemaVersion"], example["rawOutput"])


@pytest.mark.parametrize(
    ("version", "output", "good"),
    [
        ("analysis_output_v1", {}, True),
        ("analysis_output_v1", {"more": {"of": ["anything"]}}, True),
        ("analysis_output_v1", {"confidence": 1.2}, False),
        ("analysis_output_v1", {"weakPoints": [{}]}, False),
        ("quiz_output_v1", {"questions": [{"question": "q", "answer": "a", "more": 1}]}, True),
        ("quiz_output_v1", {"questions": []}, False),
        ("quiz_output_v1", {}, False),
        ("flashcard_output_v1", {"cards": [{"front": "f", "back": "b"}]}, True),
        ("flashcard_output_v1", {"cards": [{"front": "f", "back": ""}]}, False),
    ],
)
def test_what_an_output_of_a_version_is(version: str, output: dict[str, Any], good: bool) -> None:
    assert of_version(version, output) is good
