"""A hub's rows as its API shows them, by the properties that the specification names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs

from mock_server.app import AnswerError, iso
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from mock_server.executor import Executor
    from mock_server.store import Row
    from openapi import Contract

_INSTANTS = ("#/components/schemas/Instant", "#/components/schemas/MaybeInstant")


class Shapes:
    """Makes details out of rows. A seeded fault subclasses it."""

    def __init__(self, contract: Contract, executor: Executor, *, check: bool = True) -> None:
        """``check``: whether a detail is held against its schema before it is told."""
        self.executor, self.row = executor, executor.machine.row
        schemas = contract.document["components"]["schemas"]
        self.fields: dict[str, Any] = schemas["JobDetail"]["properties"]
        self.instants = frozenset(name for name, schema in self.fields.items() if _is_instant(schema))
        told = schemas["StreamEvent"]["properties"]["event"]["enum"]
        self.finals = frozenset(told) & frozenset(schemas["WebhookEvent"]["properties"]["type"]["enum"])
        self.heartbeat: int = executor.machine.constants["heartbeat"].value
        schema = to_json_schema(schemas["JobDetail"], contract.document)
        self._validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True) if check else None

    def is_final(self, row: Row) -> bool:
        """Whether a job is finished: nothing more happens to it by itself."""
        return self.executor.event(row) in self.finals

    def detail(self, row: Row, node: Row | None) -> dict[str, Any]:
        """A job as its owner sees it. Raises :class:`AnswerError` where that is none of the specification's details."""
        values = {name: self.field(name, row, node) for name in self.fields}
        if self._validator is not None and not self._validator.is_valid(values):
            places = {"/".join(map(str, error.instance_path)) for error in self._validator.iter_errors(values)}
            raise AnswerError(f"a job's detail breaks its schema at {', '.join(sorted(places)[:5])}")
        return values

    def field(self, name: str, row: Row, node: Row | None) -> Any:
        """One field: made, derived by the machine, or a column of that name; instants in ISO 8601."""
        match name:
            case "nodeLabel":
                return node["label"] if node else row["nodeId"]
            case "blocked":
                return self.blocked(row, node)
            case "failure":
                return self.failure(row)
            case "progress":
                return self.progress(row)
        if name in self.executor.machine.derived:
            return self.executor.value(name, {self.row: row})
        value = row[name]
        return iso(value) if name in self.instants and value is not None else value

    def blocked(self, row: Row, node: Row | None) -> dict[str, Any] | None:
        """Why a queued job can't start: its node is offline (HUB-NODE-07, HUB-GET-20)."""
        if row["status"] != "queued" or node is None or node["online"]:
            return None
        return {"reason": "node_offline", "nodeId": row["nodeId"], "lastSeen": iso(node["since"])}

    def failure(self, row: Row) -> dict[str, Any] | None:
        """Why the round failed, and why the one before did (HUB-GET-17 to 19, 62)."""
        if row["failureType"] is None:
            return None
        return {"type": row["failureType"], "message": row["failureMessage"], "lastError": row["lastError"]}

    def progress(self, row: Row) -> dict[str, Any] | None:
        """The last progress that the node reported (HUB-GET-21)."""
        progress = row["progress"]
        return progress and {**progress, "updatedAt": iso(progress["updatedAt"])}

    def last_seen(self, node: Row, now: int) -> str:
        """When the hub last heard of a node: at its last heartbeat, or when it went offline."""
        since: int = node["since"]
        return iso(now - (now - since) % self.heartbeat if node["online"] else since)


def _is_instant(schema: dict[str, Any]) -> bool:
    return any(part.get("$ref") in _INSTANTS for part in (schema, *schema.get("allOf", ())))
