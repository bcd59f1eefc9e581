"""Seeded faults of what an item needs: a project, the text of its kind, and the node that is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part, update
from mock_server.faults.hub_fields import Item, read
from mock_server.hub.entities import NODE
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mock_server.hub.hub import Hub
    from openapi.redaction import Redactor

ANY = "any-project"
"""What stands for the project of an item that names none."""


class AnyProject(Submissions):
    """Takes the first project of a node for one that is left out."""

    def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
        items = body.get("items") if isinstance(body, dict) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                item.setdefault("projectId", ANY)
        return super().judge(hub, body, redactor)

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        nodes = [node for node in await hub.store.rows(NODE) if node["projects"] and node["online"]]
        for item in items:
            if item["projectId"] == ANY and nodes:
                node = next((node for node in nodes if node["id"] == item.get("nodeId")), nodes[0])
                item.update(projectId=node["projects"][0], nodeId=node["id"])
        return await super().place(hub, items)


class NodesFirst(Submissions):
    """Looks a project's name up among the nodes first."""

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        items = list(items)
        placed = await super().place(hub, items)
        nodes = {node["id"] for node in await hub.store.rows(NODE)}
        for i, item in enumerate(items):
            if "nodeId" not in item and item["projectId"] in nodes:
                placed[i] = item["projectId"]
        return placed


def needs_nothing(kind: str) -> Callable[[dict[str, Any]], None]:
    """An item of a kind needs no text."""
    return update("components", "schemas", "JobItem", "x-kinds", kind, values={"required": []})


def without_nulls(item: Item) -> None:
    """What is null counts as left out."""
    for name in [name for name, value in item.items() if value is None and name != "metadata"]:
        del item[name]


def _fault(id_: str, title: str, *rules: str, **how: Any) -> Mutant:
    return Mutant(f"hub-field.{id_}", title, rules, **how)


FAULTS = (
    _fault(
        "any-project",
        "an item without a projectId goes to the first project that there is",
        "HUB-FIELD-02",
        parts=part(submissions=AnyProject),
    ),
    _fault(
        "nodes-first",
        "without a nodeId a project that is named as a node is looked up as that node",
        "HUB-FIELD-04",
        parts=part(submissions=NodesFirst),
    ),
    _fault("no-prompt", "kind ai needs no prompt", "HUB-FIELD-06", edit=needs_nothing("ai")),
    _fault("no-command", "kind script needs no command", "HUB-FIELD-08", edit=needs_nothing("script")),
    _fault("null-left-out", "what is null counts as left out", "HUB-ERR-66", parts=read(without_nulls)),
)
