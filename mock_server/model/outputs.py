"""What a model that does its work gives: outputs of each schema version, made of the schemas' examples."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

import openapi
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

_FREE: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "example": {"summary": "The learner makes progress."},
}
"""Of a job whose schema version is unknown, or which has none."""


class Outputs:
    """The outputs of one schema version."""

    def __init__(self, version: str | None) -> None:
        contract = openapi.load("runtime-api")
        described = contract.document["x-output-schemas"].get(version)
        schema = contract.resolve(described["schema"]) if described else _FREE
        self.example: dict[str, Any] = schema["example"]
        self._validator = jsonschema_rs.Draft202012Validator(to_json_schema(schema, contract.document))
        self._leaf = next(leaf for leaf in _texts(self.example) if self.valid(_with_text(self.example, leaf, "other")))
        broken = ({**self.example, name: wrong} for name in schema["properties"] for wrong in (7, "seven"))
        self.broken: dict[str, Any] = next(output for output in broken if not self.valid(output))
        """An object that is none of the schema."""

    def valid(self, output: Any) -> bool:
        """Whether an output is of the schema."""
        return bool(self._validator.is_valid(output))

    def good(self, variant: int) -> dict[str, Any]:
        """The example; another one, valid too, for each ``variant`` but 0: a text in it is another."""
        if not variant:
            return self.example
        output: dict[str, Any] = _with_text(self.example, self._leaf, f"{_at(self.example, self._leaf)} ({variant})")
        return output


@cache
def of_version(version: str | None) -> Outputs:
    """The outputs of a schema version; objects of any kind for an unknown one."""
    known = version in openapi.load("runtime-api").document["x-output-schemas"]
    return Outputs(version) if known or version is None else of_version(None)


def _texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of texts in a JSON value, in order."""
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(item, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    changed = copy.deepcopy(value)
    _at(changed, path[:-1])[path[-1]] = text
    return changed
