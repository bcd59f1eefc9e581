"""A specification as the comparisons read it: by JSON Pointer, through references, a missing place being an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from openapi_schema_validator import OAS30Validator, oas30_format_checker

OPENAPI = Path(__file__).parents[2] / "openapi"
SUCCESS = range(200, 300)


class MissingPlaceError(Exception):
    """The specification has nothing where the fact would stand."""


@cache
def load(file: str) -> Any:
    path = OPENAPI / file
    if not path.is_file():
        raise MissingPlaceError(f"openapi/{file} does not exist")
    return yaml.load(path.read_bytes(), yaml.CSafeLoader)


def escape(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


class Spec:
    """An OpenAPI document. Every look-up takes and gives pointers into it, for the report."""

    def __init__(self, name: str, document: Any = None) -> None:
        self.file = f"{name}.yaml"
        self._document = document

    @property
    def document(self) -> Any:
        return load(self.file) if self._document is None else self._document

    def get(self, pointer: str) -> Any:
        """The value at ``pointer``, every reference on the way and at its end followed."""
        return self._walk(self.file, pointer)

    def _walk(self, file: str, pointer: str) -> Any:
        value, home = (self.document if file == self.file else load(file)), file
        value, home = self._follow(value, home)
        for raw in pointer.split("/")[1:]:
            token = raw.replace("~1", "/").replace("~0", "~")
            try:
                if isinstance(value, list):
                    value = value[int(token)]
                else:
                    value = value[token] if token in value else value[int(token)]  # a status may be a number
            except (KeyError, IndexError, ValueError, TypeError):
                raise MissingPlaceError(f"openapi/{self.file}#{pointer} does not exist (at {raw!r})") from None
            value, home = self._follow(value, home)
        return value

    def _follow(self, value: Any, home: str) -> tuple[Any, str]:
        while isinstance(value, dict) and isinstance(value.get("$ref"), str):
            file, _, pointer = value["$ref"].partition("#")
            home = file.removeprefix("./") or home
            value = self._walk(home, pointer)
        return value, home

    def operation(self, operation_id: str) -> str:
        """The pointer of an operation."""
        for path, item in self.get("/paths").items():
            for method, operation in item.items():
                if isinstance(operation, dict) and operation.get("operationId") == operation_id:
                    return f"/paths/{escape(path)}/{method}"
        raise MissingPlaceError(f"openapi/{self.file} has no operation {operation_id}")

    def message(self, operation: str, *, request: bool, response: int | None) -> str:
        """The pointer of the JSON content of a request or a response."""
        side = "requestBody" if request else f"responses/{response}"
        return f"{self.operation(operation)}/{side}/content/application~1json"

    def schema(self, pointer: str) -> dict[str, Any]:
        """The schema at ``pointer`` with its ``allOf`` merged in."""
        return self._merged(self.get(pointer), pointer)

    def _merged(self, schema: dict[str, Any], pointer: str) -> dict[str, Any]:
        merged = {key: value for key, value in schema.items() if key != "allOf"}
        for i, _ in enumerate(schema.get("allOf", [])):
            part = self.schema(f"{pointer}/allOf/{i}")
            properties = part.get("properties", {}) | merged.get("properties", {})
            required = [*part.get("required", []), *merged.get("required", [])]
            merged = part | merged
            if properties:
                merged["properties"] = properties
            if required:
                merged["required"] = required
        return merged

    def field(self, pointer: str, path: str) -> str:
        """The pointer of a property: ``jobs[].id`` in the schema at ``pointer``."""
        for name in path.replace("[]", ".[]").split(".") if path else []:
            inner = "/items" if name == "[]" else f"/properties/{escape(name)}"
            parts = [pointer, *(f"{pointer}/allOf/{i}" for i, _ in enumerate(self.get(pointer).get("allOf", [])))]
            for part in parts:
                try:
                    self.get(part + inner)
                except MissingPlaceError:
                    continue
                pointer = part + inner
                break
            else:
                raise MissingPlaceError(f"openapi/{self.file}#{pointer}{inner} does not exist")
        return pointer

    def inlined(self, value: Any) -> Any:
        """The value with every reference replaced by what it names."""
        value, _ = self._follow(value, self.file)
        if isinstance(value, dict):
            return {key: self.inlined(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.inlined(inner) for inner in value]
        return value

    def violations(self, pointer: str, instance: Any) -> list[str]:
        """What the schema at ``pointer`` has against ``instance``."""
        schema = self.inlined(self.get(pointer))
        errors = OAS30Validator(schema, format_checker=oas30_format_checker).iter_errors(instance)
        return [f"{error.json_path}: {error.message}" for error in errors]
