"""The hub's rows as data of a world: judged, put into a world, and written."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs

import openapi
from mock_server.hub.entities import CALLBACK, DELIVERY, JOB, NODE, SCRIPT, SUBMISSION
from mock_server.violations import body_violations
from openapi.redaction import Redactor
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mock_server.calls import Violation
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

ENTITIES = {
    "nodes": NODE,
    "scripts": SCRIPT,
    "callbacks": CALLBACK,
    "submissions": SUBMISSION,
    "deliveries": DELIVERY,
    "jobs": JOB,
}
"""The lists of such data, in the order in which they are put in: a job's node is there before it."""
_URLS = {"callbacks": "url", "deliveries": "url", "jobs": "callbackUrl"}
"""The columns to which webhooks go."""

Data = dict[str, list[dict[str, Any]]]


class RowRefused(ValueError):  # noqa: N818 - said to the caller, with place and mend
    """A row that can't be put in."""

    def __init__(self, pointer: str, message: str, mend: str) -> None:
        """``pointer`` is the row's place below the hub's part of the data."""
        super().__init__(message)
        self.pointer, self.mend = pointer, mend


def violations(data: Any) -> list[Violation]:
    """What of the data breaks the schemas of its columns; places are below the hub's part."""
    return body_violations(schema()[0], data, Redactor())


@cache
def schema() -> tuple[jsonschema_rs.Draft202012Validator, dict[str, list[str]]]:
    """The schema of the hub's part, and the columns of each list. Columns with a default may be left out."""
    document = openapi.load("agent-hub").document
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for name, entity in ENTITIES.items():
        row = to_json_schema(document["components"]["schemas"][entity], document)
        definitions |= row.pop("$defs", {})
        row["required"] = [column for column in row["required"] if "default" not in row["properties"][column]]
        properties[name] = {"type": "array", "items": row | {"additionalProperties": False}}
    whole = {"type": "object", "additionalProperties": False, "properties": properties, "$defs": definitions}
    columns = {name: list(item["items"]["properties"]) for name, item in properties.items()}
    return jsonschema_rs.Draft202012Validator(whole), columns


async def export(hub: Hub) -> Data:
    """Every row, columns that are null left out, lists that are empty, too."""
    await hub.settle()
    found = {name: await hub.store.rows(entity) for name, entity in ENTITIES.items()}
    return {name: [_written(row) for row in rows] for name, rows in found.items() if rows}


def _written(row: Row) -> dict[str, Any]:
    return {column: value for column, value in row.items() if value is not None}


async def fill(hub: Hub, data: Mapping[str, Sequence[Row]]) -> None:
    """Put rows that are sound by the schema into a hub, whose clock stands where they were written.

    What was under way goes on: rounds of nodes, retries, deliveries. Raises :class:`RowRefused` for a row that is there
    already, one that no state of a job fits, one of a node that there is not, and a URL to which this mock delivers
    nothing.
    """
    for name, entity in ENTITIES.items():
        for i, row in enumerate(data.get(name, ())):
            pointer = f"/{name}/{i}"
            url = row.get(_URLS.get(name, ""))
            if url is not None and not hub.webhooks.allowed(url):
                what = f"`{url}` is no URL to which this mock delivers"
                raise RowRefused(pointer, what, "name its host with --allow-callback-host")
            if entity == JOB:
                await _judge(hub, pointer, row)
            try:
                await hub.engine.load(entity, [row])
            except KeyError as known:
                raise RowRefused(
                    pointer, f"`{known.args[0]}` is there already", "give the row an id of its own"
                ) from None
    await hub.rebuild()
    await hub.settle()


async def _judge(hub: Hub, pointer: str, job: Row) -> None:
    if await hub.store.get(NODE, job["nodeId"]) is None:
        raise RowRefused(pointer, f"there is no node `{job['nodeId']}`", "give it in the list nodes")
    machine = hub.engine.machine
    row = {**hub.build.rows.defaults[JOB], **job}
    if not hub.build.executor.holds({machine.row: row}):
        holds = hub.build.contract.document["x-state-machine"]["states"][row["status"]]["holds"]
        what = f"the columns are none of a `{row['status']}` job: {holds}"
        raise RowRefused(pointer, what, "set, or leave out, the columns that the rule names")
