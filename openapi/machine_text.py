"""The text of ``x-state-machine`` as the values of ``machine.py``: its structure is checked, every expression parsed.

Definitions and constants are put in place in every expression, effect groups in every ``set``.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from openapi import expressions
from openapi.documents import escape
from openapi.expressions import Expression, ExpressionError
from openapi.machine import Constant, Creation, Find, Machine, MachineError, Related, State, Step, Timer, Told, Trigger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openapi.machine import Fault

_MILLISECONDS = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000}


def _times(number: int | list[int], unit: int) -> int | list[int]:
    return [item * unit for item in number] if isinstance(number, list) else number * unit


@functools.cache
def _structure() -> jsonschema_rs.Draft202012Validator:
    text = Path(__file__).with_name("machine.schema.json").read_text(encoding="utf-8")
    return jsonschema_rs.Draft202012Validator(json.loads(text))


def build(text: Mapping[str, Any]) -> Machine:
    """Build the machine from the extension's data. Raises :class:`MachineError` with every fault that it found."""
    faults: list[Fault] = []
    for error in _structure().iter_errors(text):
        pointer = "".join(f"/{escape(str(token))}" for token in error.instance_path)
        faults.append((pointer, error.message, "see the notation in machine.schema.json"))
    if faults:
        raise MachineError(faults)
    return _Builder(text).machine()


class _Builder:
    def __init__(self, text: Mapping[str, Any]) -> None:
        self.text = text
        self.faults: list[Fault] = []
        self.constants = {name: self.constant(name, item) for name, item in text.get("constants", {}).items()}
        self.definitions: dict[str, Expression] = {}
        for name, item in text.get("define", {}).items():
            self.definitions[name] = self.expression(item, f"/define/{name}")

    def machine(self) -> Machine:
        text = self.text
        related = self.related(text.get("related", {}), "/related")
        machine = Machine(
            entity=text["entity"],
            row=text.get("row", text["entity"][0].lower() + text["entity"][1:]),
            initial=text["initial"],
            stamp=text.get("stamp"),
            unique=tuple(text.get("unique", ())),
            states={name: self.state(name, item or {}) for name, item in text["states"].items()},
            constants=self.constants,
            definitions=self.definitions,
            inputs=tuple(text.get("inputs", ())),
            functions=tuple(text.get("functions", ())),
            derived={name: self.expression(item, f"/derived/{name}") for name, item in text.get("derived", {}).items()},
            related=related,
            operations=self.triggers("operation", "operations", related),
            timers={name: self.timer(name, item) for name, item in text.get("timers", {}).items()},
            entering=self.triggers("entering", "entering", related),
            actions=self.triggers("action", "actions", related),
            internal=self.triggers("internal", "internal", related),
        )
        if self.faults:
            raise MachineError(self.faults)
        return machine

    def fault(self, pointer: str, message: str, mend: str) -> None:
        self.faults.append((pointer, message, mend))

    def expression(self, value: Any, pointer: str) -> Expression:
        """An expression's text (a string), or a plain value; definitions and constants are put in place."""
        if not isinstance(value, str):
            return expressions.literal(value)
        try:
            parsed = expressions.parse(value)
        except ExpressionError as error:
            self.fault(pointer, str(error), "write it in the subset of CEL that expressions.py names")
            return expressions.Literal(None)

        def replace(node: Expression) -> Expression:
            if isinstance(node, expressions.Name):
                if node.name in self.constants:
                    return expressions.literal(self.constants[node.name].value)
                return self.definitions.get(node.name, node)
            return node

        return expressions.rebuild(parsed, replace)

    def optional(self, item: Mapping[str, Any], key: str, pointer: str) -> Expression | None:
        return self.expression(item[key], f"{pointer}/{key}") if key in item else None

    def constant(self, name: str, item: Mapping[str, Any]) -> Constant:
        unit = next((unit for unit in _MILLISECONDS if unit in item), None)
        value = item["value"] if unit is None else _times(item[unit], _MILLISECONDS[unit])
        return Constant(name, value, tuple(item.get("requirements", ())))

    def state(self, name: str, item: Mapping[str, Any]) -> State:
        pointer = f"/states/{name}"
        events = (
            Told(event["name"], self.optional(event, "when", f"{pointer}/events/{i}"))
            for i, event in enumerate(item.get("events", ()))
        )
        return State(
            name=name,
            final=bool(item.get("final")),
            transient=bool(item.get("transient")),
            holds=self.optional(item, "holds", pointer),
            events=tuple(events),
            requirements=tuple(item.get("requirements", ())),
        )

    def related(self, items: Mapping[str, Any], pointer: str) -> dict[str, Related]:
        found = {}
        for name, item in items.items():
            where = {
                column: self.expression(value, f"{pointer}/{name}/where/{column}")
                for column, value in item["where"].items()
                if column != "unique"
            }
            found[name] = Related(
                name, item["of"], where, unique="unique" in item["where"], pointer=f"{pointer}/{name}"
            )
        return found

    def effects(self, items: list[Any], pointer: str) -> tuple[dict[str, Expression], dict[str, str]]:
        """``set``: names of effect groups and mappings of field to expression, with where each one stands."""
        found: dict[str, Expression] = {}
        places: dict[str, str] = {}
        for i, item in enumerate(items):
            place = f"{pointer}/{i}"
            if isinstance(item, str):
                groups = self.text.get("effects", {})
                if item not in groups:
                    self.fault(place, f"no effect group is named `{item}`", "define it under `effects`")
                    continue
                item, place = groups[item], f"/effects/{item}"
            for column, value in item.items():
                if column in found:
                    self.fault(f"{pointer}/{i}", f"`{column}` is set twice in one step", "set it once")
                places[column] = f"{place}/{column}"
                found[column] = self.expression(value, places[column])
        return found, places

    def creations(self, items: Mapping[str, Any], pointer: str) -> tuple[Creation, ...]:
        found = []
        for entity, item in items.items():
            values = {
                column: self.expression(value, f"{pointer}/{entity}/{column}")
                for column, value in item.items()
                if column != "copy"
            }
            source, columns = next(iter(item.get("copy", {}).items()), (None, ()))
            found.append(Creation(entity, values, source, None if columns == "all" else tuple(columns)))
        return tuple(found)

    def step(self, item: Mapping[str, Any], pointer: str) -> Step:
        effects, places = self.effects(item.get("set", []), f"{pointer}/set")
        return Step(
            id=item["id"],
            sources=tuple(item["from"]) if "from" in item else None,
            require=self.optional(item, "require", pointer),
            otherwise=item.get("else"),
            when=self.optional(item, "when", pointer),
            to=item.get("to"),
            set=effects,
            set_at=places,
            create=self.creations(item.get("create", {}), f"{pointer}/create"),
            answer=item.get("answer"),
            headers={
                name: self.expression(value, f"{pointer}/headers/{name}")
                for name, value in item.get("headers", {}).items()
            },
            show=item.get("show"),
            event=item.get("event"),
            requirements=tuple(item.get("requirements", ())),
            pointer=pointer,
        )

    def triggers(self, kind: str, group: str, related: dict[str, Related]) -> dict[str, Trigger]:
        found = {}
        for name, item in self.text.get(group, {}).items():
            pointer = f"/{group}/{name}"
            steps_at = pointer if kind == "entering" else f"{pointer}/steps"
            item = {"steps": item} if kind == "entering" else item
            find = None
            if "find" in item:
                at = f"{pointer}/find"
                where = self.optional(item["find"], "where", at)
                find = Find(self.expression(item["find"]["id"], f"{at}/id"), where, item["find"]["else"])
            found[name] = Trigger(
                name=name,
                kind=kind,
                find=find,
                each=self.optional(item, "each", pointer),
                related=related | self.related(item.get("related", {}), f"{pointer}/related"),
                steps=tuple(self.step(step, f"{steps_at}/{i}") for i, step in enumerate(item["steps"])),
                pointer=pointer,
            )
        return found

    def timer(self, name: str, item: Mapping[str, Any]) -> Timer:
        pointer = f"/timers/{name}"
        key = "after" if "after" in item else "at"
        effects, places = self.effects(item.get("set", []), f"{pointer}/set")
        return Timer(
            name=name,
            sources=tuple(item["from"]),
            instant=self.expression(item[key], f"{pointer}/{key}"),
            strictly_after=key == "after",
            to=item.get("to"),
            fires=item.get("fires"),
            given=item.get("with", {}),
            set=effects,
            set_at=places,
            requirements=tuple(item.get("requirements", ())),
            pointer=pointer,
        )
