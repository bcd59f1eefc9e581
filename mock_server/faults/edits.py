"""How a fault changes a build: edits of the specification's data, and parts replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.mutants import Parts

Document = dict[str, Any]
_TRIGGERS = ("operations", "actions", "internal")


def several(*edits: Callable[[Document], None]) -> Callable[[Document], None]:
    """Edits that make one fault together, one after the other."""

    def edit(document: Document) -> None:
        for change in edits:
            change(document)

    return edit


def step(document: Document, id_: str) -> Document:
    """A step of the machine by id."""
    machine = document["x-state-machine"]
    triggers = [item for group in _TRIGGERS for item in machine.get(group, {}).values()]
    groups = [*(item["steps"] for item in triggers), *machine.get("entering", {}).values()]
    return next(step for steps in groups for step in steps if step["id"] == id_)


def set_step(id_: str, **values: Any) -> Callable[[Document], None]:
    """Change keys of a step; a value of None takes the key away."""

    def edit(document: Document) -> None:
        changed = step(document, id_)
        for key, value in values.items():
            changed[key] = value
            if value is None:
                del changed[key]

    return edit


def update(*path: str, values: Document) -> Callable[[Document], None]:
    """Change keys of an object anywhere in the specification."""

    def edit(document: Document) -> None:
        node = document
        for key in path:
            node = node[key]
        node.update(values)

    return edit


def put(*path: str, value: Any) -> Callable[[Document], None]:
    """Replace a value anywhere in the specification."""
    *parents, name = path
    return update(*parents, values={name: value})


def machine(*path: str, value: Any) -> Callable[[Document], None]:
    """Replace a value of the machine."""
    return put("x-state-machine", *path, value=value)


def schema(name: str, **values: Any) -> Callable[[Document], None]:
    """Change keys of a schema, e.g. what it requires."""
    return update("components", "schemas", name, values=values)


def drop_timer(name: str) -> Callable[[Document], None]:
    """Take a timer away."""

    def edit(document: Document) -> None:
        del document["x-state-machine"]["timers"][name]

    return edit


def schema_property(of: str, name: str, **values: Any) -> Callable[[Document], None]:
    """Change the schema of a property."""
    return update("components", "schemas", of, "properties", name, values=values)


def poll_list(**values: Any) -> Callable[[Document], None]:
    """Change which jobs a poll lists, and in which order."""
    return update("paths", "/internal/runtime/jobs/poll", "post", "x-list", values=values)


def error(code: str, **values: Any) -> Callable[[Document], None]:
    """Change a row of the error codes."""
    return update("x-errors", code, values=values)


def drop_property(of: str, *names: str) -> Callable[[Document], None]:
    """Take properties of a schema away."""

    def edit(document: Document) -> None:
        for name in names:
            del document["components"]["schemas"][of]["properties"][name]

    return edit


def first_step(operation: str, **values: Any) -> Callable[[Document], None]:
    """Put a step before the others of an operation."""

    def edit(document: Document) -> None:
        document["x-state-machine"]["operations"][operation]["steps"].insert(
            0, {"id": "seeded", "requirements": ["RT-HB-05"], **values}
        )

    return edit


def part(**parts: Any) -> Callable[[Parts], None]:
    """Replace parts of the build."""

    def change(build: Parts) -> None:
        for name, part in parts.items():
            setattr(build, name, part)

    return change


def add_step(before: str, added: Document) -> Callable[[Document], None]:
    """Put one more step before another."""

    def edit(document: Document) -> None:
        machine = document["x-state-machine"]
        for group in _TRIGGERS:
            for item in machine.get(group, {}).values():
                ids = [step["id"] for step in item["steps"]]
                if before in ids:
                    item["steps"].insert(ids.index(before), added)

    return edit


def effect(name: str, *without: str, **values: Any) -> Callable[[Document], None]:
    """Change an effect of the machine."""

    def edit(document: Document) -> None:
        effects = document["x-state-machine"]["effects"][name]
        effects.update(values)
        for column in without:
            del effects[column]

    return edit
