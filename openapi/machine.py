"""The state machine of ``x-state-machine`` as typed values. Nothing here executes it.

The notation is explained at the head of the extension in ``runtime-api.yaml``, what only the hub's machine has at that
in ``agent-hub.yaml``; its structure is held by ``machine.schema.json``. :func:`build` turns the text into values and
parses every expression.

Triggers judge ordered steps: ``operations`` are requests, ``actions`` the application's side, ``internal`` ones what
plain code (a scheduler, a simulated node) does to a row at hand. Time moves a row by ``timers``, which set columns
themselves or fire an internal trigger. What a change tells to those who follow the row stands as events of states and
steps.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from openapi import expressions
from openapi.documents import escape
from openapi.expressions import Expression, ExpressionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Fault = tuple[str, str, str]
"""JSON Pointer below ``x-state-machine``, what is wrong, the mend."""


class MachineError(ValueError):
    """An ``x-state-machine`` that can't be built; ``faults`` lists what is wrong and where."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{pointer}: {message} ({mend})" for pointer, message, mend in faults))


@dataclass(frozen=True, slots=True)
class Told:
    """An event by its name in the stream, told where ``when`` (None: always) is true of the row after the change."""

    name: str
    when: Expression | None


@dataclass(frozen=True, slots=True)
class State:
    """A state; ``holds`` is true of every row in it (an invariant for checks, nothing is derived from it)."""

    name: str
    final: bool
    transient: bool
    holds: Expression | None
    events: tuple[Told, ...]
    """What every change into the state tells: the first that fits, at most one."""
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or list of the protocol. Durations are milliseconds here; the text has seconds, minutes or hours."""

    name: str
    value: Any
    requirements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Related:
    """Another row that expressions see; null where there is none. ``where`` is a conjunction of column = value."""

    name: str
    entity: str
    where: Mapping[str, Expression]
    unique: bool
    """Found by the machine's ``unique`` columns taken from the body, instead of by ``where``."""
    pointer: str


@dataclass(frozen=True, slots=True)
class Creation:
    """A row of ``entity`` that a step creates: ``values``, then what is copied from an input, then column defaults."""

    entity: str
    values: Mapping[str, Expression]
    copy_from: str | None
    copied: tuple[str, ...] | None
    """Columns copied from ``copy_from``; None is all that the input has."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trigger, judged in order. A number as ``answer`` is a success status, a word an error code.

    With ``require`` it decides when the expression is false: ``otherwise`` is the answer, nothing changes.
    Without it, it decides when the state is one of ``sources`` (None: any) and ``when`` (None: always) is true.
    """

    id: str
    sources: tuple[str, ...] | None
    require: Expression | None
    otherwise: str | None
    when: Expression | None
    to: str | None
    set: Mapping[str, Expression]
    set_at: Mapping[str, str]
    """Where each assignment of ``set`` stands, as a pointer: in the step or in a group of ``effects``."""
    create: tuple[Creation, ...]
    answer: int | str | None
    headers: Mapping[str, Expression]
    show: str | None
    event: str | None
    """The name of the event that the step tells; only of steps that stay in their state, others tell the state's."""
    requirements: tuple[str, ...]
    pointer: str

    @property
    def guard(self) -> Expression | None:
        """The step's expression, whichever way round it is used."""
        return self.require if self.require is not None else self.when

    @property
    def refuses(self) -> bool:
        """Whether the step's answer is an error."""
        return isinstance(self.otherwise if self.require is not None else self.answer, str)


@dataclass(frozen=True, slots=True)
class Find:
    """The row that a trigger is about: by id, answered with ``otherwise`` (an error code) where it does not exist.

    A row for which ``where`` (None: always true) is false counts as none.
    """

    id: Expression
    where: Expression | None
    otherwise: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """An operation, an action of the application, an entry into a transient state, or what plain code does to a row."""

    name: str
    kind: str
    """``operation``, ``action``, ``entering`` or ``internal``."""
    find: Find | None
    each: Expression | None
    """For actions on many rows: which rows."""
    related: Mapping[str, Related]
    steps: tuple[Step, ...]
    pointer: str


@dataclass(frozen=True, slots=True)
class Timer:
    """Fires on a row in one of ``sources`` at the first instant (epoch ms) at which it is due.

    ``after`` x is due when now > x, ``at`` x when now >= x; x null: not armed. It moves the row to ``to``, or judges
    the internal trigger ``fires`` on it in the same instant: exactly one of the two is there.
    """

    name: str
    sources: tuple[str, ...]
    instant: Expression
    strictly_after: bool
    to: str | None
    fires: str | None
    given: Mapping[str, Any]
    """The inputs that the fired trigger gets besides ``now``: plain data, ``with`` in the text."""
    set: Mapping[str, Expression]
    set_at: Mapping[str, str]
    requirements: tuple[str, ...]
    pointer: str


@dataclass(frozen=True)
class Machine:
    """The whole machine of one entity. Definitions and constants are already replaced in every expression."""

    entity: str
    row: str
    """The name under which expressions see the row before the step."""
    initial: str
    stamp: str | None
    unique: tuple[str, ...]
    states: Mapping[str, State]
    constants: Mapping[str, Constant]
    definitions: Mapping[str, Expression]
    inputs: tuple[str, ...]
    """Names of what plain code hands to expressions besides the row."""
    functions: tuple[str, ...]
    derived: Mapping[str, Expression]
    """Values of answers that are computed from the row each time, never stored."""
    related: Mapping[str, Related]
    operations: Mapping[str, Trigger]
    timers: Mapping[str, Timer]
    entering: Mapping[str, Trigger]
    actions: Mapping[str, Trigger]
    internal: Mapping[str, Trigger]

    def triggers(self) -> Iterator[Trigger]:
        """All triggers with steps."""
        for group in (self.operations, self.actions, self.entering, self.internal):
            yield from group.values()

    def places(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each place (pointer below the extension) with the rules that it states."""
        for trigger in self.triggers():
            yield from ((step.pointer, step.requirements) for step in trigger.steps)
        yield from ((timer.pointer, timer.requirements) for timer in self.timers.values())
        yield from ((f"/constants/{name}", constant.requirements) for name, constant in self.constants.items())
        yield from ((f"/states/{name}", state.requirements) for name, state in self.states.items())


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
