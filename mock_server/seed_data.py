"""Seed data for a world: jobs, snapshots and credentials in a YAML or JSON file, by the column names of the spec."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

import openapi
from openapi.documents import Document, escape
from openapi.problems import Problem, SpecError
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from pathlib import Path

    from mock_server.worlds import World

_ENTITIES = {"snapshots": "Snapshot", "credentials": "Credential", "jobs": "Job"}


class DataError(ValueError):
    """A data file that can't be used; the text names file, line and mend of every problem."""


class SeedData:
    """A data file that was read and found valid."""

    def __init__(self, document: Document) -> None:
        self.document = document

    @classmethod
    def read(cls, path: Path) -> SeedData:
        """Read a file. Raises :class:`DataError` for one that is missing, no YAML, or breaks the columns' schemas."""
        try:
            document = Document.read(path)
            problems = [*document.duplicate_keys(), *_problems(document)]
        except SpecError as error:
            raise DataError(str(error)) from None
        if problems:
            raise DataError("\n".join(map(str, problems)))
        return cls(document)

    async def fill(self, world: World) -> None:
        """Insert every row. Raises :class:`DataError` for an id that stands twice."""
        for name, entity in _ENTITIES.items():
            for i, row in enumerate(self.document.data.get(name, ())):
                if entity == "Credential":
                    world.redactor.add(row["apiKey"])
                try:
                    await world.engine.insert(entity, row)
                except KeyError:
                    problem = self.document.problem(f"/{name}/{i}", "this row is there already", "give it an id of its own")
                    raise DataError(str(problem)) from None


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    """The columns of each entity; what has a default, and the columns that the server sets, may be left out."""
    document = openapi.load("runtime-api").document
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, entity in _ENTITIES.items():
        schema = document["components"]["schemas"][entity]
        row = to_json_schema(schema, document)
        definitions |= row.pop("$defs", {})
        optional = {"status", "createdAt", "updatedAt"}
        required = [
            column for column in row["required"] if "default" not in row["properties"][column] and column not in optional
        ]
        row |= {"required": required, "additionalProperties": False}
        properties[name] = {"type": "array", "items": row}
    schema = {"type": "object", "additionalProperties": False, "properties": properties, "$defs": definitions}
    return jsonschema_rs.Draft202012Validator(schema)


def _problems(document: Document) -> list[Problem]:
    found = []
    for error in _validator().iter_errors(document.data):
        pointer = "".join(f"/{escape(str(token))}" for token in error.instance_path)
        shown = "a key" if pointer.endswith("/apiKey") else error.message
        found.append(document.problem(pointer, shown, "see components.schemas of the specification for the columns"))
    return found
