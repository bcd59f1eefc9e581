"""Seed data for a world: jobs with results, snapshots and credentials, and rows of the hub, by the columns of the spec.

A world can be written as such data, too, with ``now``, the instant of its clock, so that its copy goes on as it would.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import yaml

import openapi
from mock_server.clock import LATEST
from mock_server.hub import data as hub_data
from mock_server.privacy import OWN_FIELDS
from mock_server.violations import body_violations
from openapi.documents import Document
from openapi.problems import Problem, SpecError, nearest
from openapi.redaction import Redactor
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mock_server.calls import Violation
    from mock_server.store import Row
    from mock_server.worlds import World

# Jobs come last: whether a row fits its state depends on its result.
_ENTITIES = {
    "snapshots": "Snapshot",
    "credentials": "Credential",
    "invocationLogs": "StoredLog",
    "results": "Result",
    "jobs": "Job",
}


_HUB = "hub"
"""Where the rows of the Agent Hub stand."""


class DataError(ValueError):
    """Data that can't be used; the text names place and mend of every problem, with file and line of a file."""


class SeedData:
    """Rows that were read and found valid by their columns' schemas."""

    def __init__(self, data: Mapping[str, Any], document: Document | None = None) -> None:
        self._data, self._document = data, document

    @classmethod
    def read(cls, path: Path) -> SeedData:
        """Read a YAML or JSON file. Raises :class:`DataError` for one that is missing, no YAML, or breaks a schema."""
        try:
            document = Document.read(path)
        except SpecError as error:
            raise DataError(str(error)) from None
        seeds = cls(document.data, document)
        problems = [*map(str, document.duplicate_keys()), *seeds._problems()]
        if problems:
            raise DataError("\n".join(problems))
        return seeds

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> SeedData:
        """Take data that came in a request. Raises :class:`DataError` where it breaks a schema."""
        seeds = cls(data)
        problems = seeds._problems()
        if problems:
            raise DataError("\n".join(problems))
        return seeds

    async def fill(self, world: World) -> None:
        """Insert every row. Raises :class:`DataError` for a key that is there already and a job that no state fits.

        The world's clock goes on from ``now`` where the data has it. Jobs without ``createdAt`` are a millisecond
        apart, in the order in which they stand.
        """
        if "now" in self._data:
            world.clock.set(int(self._data["now"]))
        now = world.clock.now()
        for name, entity in _ENTITIES.items():
            rows = self._data.get(name, [])
            for i, row in enumerate(rows):
                pointer = f"/{name}/{i}"
                if entity == "Credential":
                    world.learn(row["apiKey"])
                key = row.get(world.build.rows.keys[entity])
                if key is not None and await world.engine.store.get(entity, key) is not None:
                    raise DataError(
                        self._problem(pointer, f"`{key}` is there already", "give the row an id of its own")
                    )
                if entity == "Job":
                    await self._create(world, pointer, {"createdAt": now - len(rows) + i, **row})
                elif entity == "StoredLog":
                    await world.engine.insert(entity, {**row, "log": world.redactor.data(row["log"])})
                else:
                    await world.engine.insert(entity, row)
        if self._data.get(_HUB):
            try:
                await hub_data.fill(world.hub, self._data[_HUB])
            except hub_data.RowRefused as refused:
                raise DataError(self._problem(f"/{_HUB}{refused.pointer}", str(refused), refused.mend)) from None

    async def _create(self, world: World, pointer: str, columns: Row) -> None:
        # Through the application's own action, so that defaults by job type and idempotency are those of the machine.
        outcome = await world.engine.act("createJob", columns)
        row = outcome.created.get("Job")
        if row is None:
            mend = "give it another idempotencyKey"
            raise DataError(self._problem(pointer, "the same job, by its idempotencyKey, is there already", mend))
        machine = world.engine.machine
        result = await world.engine.store.get("Result", row["id"])
        state = machine.states[row["status"]]
        if state.transient or not world.build.executor.holds({machine.row: row, "result": result}):
            text = world.build.contract.document["x-state-machine"]["states"][state.name].get(
                "holds", "is left at once"
            )
            mend = "set, or leave out, the columns that the rule names"
            raise DataError(self._problem(pointer, f"the columns are none of a `{state.name}` job: {text}", mend))

    def _problems(self) -> list[str]:
        validator, columns = _schema()
        found = body_violations(validator, self._data, Redactor(), frozenset({"apiKey"}))
        problems = [self._problem(item.location, item.message, _mend(item, columns)) for item in found]
        if isinstance(self._data, dict) and isinstance(self._data.get(_HUB), dict):
            for item in hub_data.violations(self._data[_HUB]):
                message = item.message.removeprefix(item.location)
                place, mend = f"/{_HUB}{item.location}", _mend(item, hub_data.schema()[1])
                problems.append(self._problem(place, f"{place}{message}", mend))
        return problems

    def _problem(self, pointer: str, message: str, mend: str) -> str:
        if not message.startswith(pointer):
            message = f"{pointer}: {message}"
        if self._document is None:
            return f"data{message} ({mend})"
        return str(Problem(self._document.path, self._document.line(pointer), "", message, mend))


async def export(world: World) -> dict[str, Any]:
    """A world's rows as data that makes an equal one, keys of credentials included, columns that are null left out."""
    data: dict[str, Any] = {"now": await world.engine.settle()}
    for name, entity in _ENTITIES.items():
        rows = await world.engine.store.rows(entity)
        if rows:
            data[name] = [{column: value for column, value in row.items() if value is not None} for row in rows]
    if world.has_hub and (of_hub := await hub_data.export(world.hub)):
        data[_HUB] = of_hub
    return data


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _: Any) -> bool:
        """Every value is written out: a file to read and to compare."""
        return True


def to_yaml(data: Mapping[str, Any]) -> str:
    """The data as the text of a file, lists and columns in their order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _mend(violation: Violation, columns: Mapping[str, list[str]]) -> str:
    if violation.rule != "additionalProperties":
        return "components.schemas of the specification has the columns"
    _, *tokens = violation.location.split("/")
    top = ["now", _HUB] if "snapshots" in columns else []
    known = [*columns, *top] if len(tokens) == 1 else columns[tokens[0]]
    return nearest(tokens[-1], known, f"known are {', '.join(known)}")


def _content(document: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a snapshot's sections: what is shown of it, but for what its row has."""
    shown = to_json_schema(document["components"]["schemas"]["SnapshotAnswer"], document)
    shown["required"] = [name for name in shown["required"] if name not in OWN_FIELDS]
    shown["properties"] = {name: item for name, item in shown["properties"].items() if name not in OWN_FIELDS}
    shown.pop("$defs", None)
    return shown


@cache
def _schema() -> tuple[jsonschema_rs.Draft202012Validator, dict[str, list[str]]]:
    """The schema of a data file, and the columns of each list.

    Columns that have a default or are set by the server may be left out.
    """
    document = openapi.load("runtime-api").document
    properties: dict[str, Any] = {
        "now": {"type": "integer", "minimum": 0, "maximum": LATEST},
        _HUB: {"type": "object"},  # judged by itself
    }
    definitions: dict[str, Any] = {}
    columns: dict[str, list[str]] = {}
    for name, entity in _ENTITIES.items():
        row = to_json_schema(document["components"]["schemas"][entity], document)
        definitions |= row.pop("$defs", {})
        if entity == "Snapshot":
            row["properties"]["content"] = _content(document)
        stamped = {"createdAt", "updatedAt"}
        row["required"] = [
            column for column in row["required"] if "default" not in row["properties"][column] and column not in stamped
        ]
        properties[name] = {"type": "array", "items": row | {"additionalProperties": False}}
        columns[name] = list(row["properties"])
    schema = {"type": "object", "additionalProperties": False, "properties": properties, "$defs": definitions}
    return jsonschema_rs.Draft202012Validator(schema), columns
