"""Makes edits of one contract: ids, lines, and the rules that are stated at a place or near it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.documents import at_pointer
from openapi.mutation.edit import MACHINE, Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openapi.contract import Contract
    from openapi.mutation.edit import Change, Told

_SHORT = {"runtime-api": "rt", "agent-hub": "hub"}


class Places:
    """The places of one contract. ``made`` holds the edits in the order in which they were made."""

    def __init__(self, contract: Contract) -> None:
        self.contract, self.document = contract, contract.document
        self.made: dict[str, Edit] = {}
        self._stated = dict(contract.stated())
        self._users = _references(contract.document)
        machine = contract.machine
        self.steps = {
            MACHINE + step.pointer: step for each in (machine.triggers() if machine else ()) for step in each.steps
        }
        self._triggers = {MACHINE + each.pointer: each for each in (machine.triggers() if machine else ())}

    def add(
        self,
        kind: str,
        words: Iterable[object],
        pointer: str,
        sentence: str,
        change: Change,
        *,
        rules: Iterable[str] = (),
        told: Told | None = None,
    ) -> None:
        """Make one edit. ``words`` end its id; ``rules`` stand before those that are stated at its place."""
        id_ = ".".join([f"gen.{_SHORT[self.contract.name]}", kind, *map(str, words)])
        if id_ in self.made:
            raise ValueError(f"two generated mutants are named `{id_}`: {self.made[id_].pointer} and {pointer}")
        line = self.contract.source.line(pointer) if self.contract.source else 1
        near = tuple(dict.fromkeys([*rules, *self.near(pointer)])) or tuple(self._shown(pointer))
        self.made[id_] = Edit(id_, kind, pointer, line, sentence, near, change, told)

    def near(self, pointer: str) -> list[str]:
        """The rules stated at a place, in the places around it, and where a component of the document is used."""
        found: dict[str, None] = {}
        seen: set[str] = set()
        queue = [pointer]
        while queue and len(found) < 4:
            at = queue.pop(0)
            while at and len(found) < 4:
                if at not in seen:
                    seen.add(at)
                    found |= dict.fromkeys(self._at(at))
                    queue += self._users.get(at, ())
                at = at.rpartition("/")[0]
        return list(found)

    def _at(self, pointer: str) -> tuple[str, ...]:
        stated = self._stated.get(pointer, ())
        trigger = self._triggers.get(pointer)
        if trigger is not None:
            operation = self.contract.operations.get(trigger.name)
            own = tuple(id_ for step in trigger.steps for id_ in step.requirements)
            return stated + own + (tuple(operation.document.get("x-rules", ())) if operation else ())
        if pointer.startswith("/paths/") and pointer.count("/") == 2:
            item = at_pointer(self.document, pointer)
            return stated + tuple(
                id_ for each in item.values() if isinstance(each, dict) for id_ in each.get("x-rules", ())
            )
        return stated

    def _shown(self, pointer: str) -> list[str]:
        """The rules of the answers' fields that are named like a part of a place: what a column is shown as."""
        names = set(pointer.split("/")[2:])
        found: dict[str, None] = {}
        for at, ids in self._stated.items():
            if at.startswith("/components/schemas/") and at.rpartition("/")[2] in names:
                found |= dict.fromkeys(ids)
        return list(found)

    def using(self, name: str) -> list[str]:
        """The rules of steps and timers whose text names a definition, a constant or a group of effects."""
        found: dict[str, None] = {}
        machine = self.document["x-state-machine"]
        for pointer, item in _holders(machine):
            if any(name in text for text in _texts({key: item[key] for key in item if key != "requirements"})):
                found |= dict.fromkeys(self._stated.get(MACHINE + pointer, ()))
        return list(found)


def _holders(machine: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for group in ("operations", "actions", "internal"):
        for name, trigger in machine.get(group, {}).items():
            yield from ((f"/{group}/{name}/steps/{i}", step) for i, step in enumerate(trigger["steps"]))
    for name, steps in machine.get("entering", {}).items():
        yield from ((f"/entering/{name}/{i}", step) for i, step in enumerate(steps))
    yield from ((f"/timers/{name}", timer) for name, timer in machine.get("timers", {}).items())


def _texts(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, dict | list):
        for inner in item.values() if isinstance(item, dict) else item:
            yield from _texts(inner)


def _references(document: dict[str, Any]) -> dict[str, list[str]]:
    """Where each component is referred to."""
    found: dict[str, list[str]] = {}
    stack: list[tuple[str, Any]] = [(f"/{key}", document[key]) for key in ("paths", "components")]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                found.setdefault(node["$ref"].removeprefix("#"), []).append(pointer)
            stack += [
                (f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", value) for key, value in node.items()
            ]
        elif isinstance(node, list):
            stack += [(f"{pointer}/{i}", item) for i, item in enumerate(node)]
    return {target: sorted(users) for target, users in found.items()}


def value(document: dict[str, Any], pointer: str) -> Any:
    """The value at a place, None where there is none."""
    try:
        return at_pointer(document, pointer)
    except KeyError:
        return None
