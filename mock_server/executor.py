"""Executes ``x-state-machine``: every expression compiled once to a closure, every trigger judged step by step.

Pure: rows and inputs come in, an outcome comes out; nothing is stored here. A new row is always a copy.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mock_server.store import Due, Row
from openapi import expressions
from openapi.expressions import Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openapi.machine import Creation, Machine, Step, Timer, Trigger

Inputs = dict[str, Any]
"""What expressions see: the row under the machine's name for it, ``now``, ``caller``, ``body``, functions."""
Evaluate = "Callable[[Inputs], Any]"

_MAX_ENTERING = 8


@dataclass(slots=True)
class Outcome:
    """What a trigger did.

    ``answer`` is a success status (int), an error code of ``x-errors`` (str), or None for timers; ``row`` the row
    afterwards, ``changed`` whether it differs from the one judged; ``created`` new rows by entity, without defaults.
    """

    step: str
    answer: int | str | None
    row: Row | None
    changed: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    created: dict[str, Row] = field(default_factory=dict)
    related: dict[str, Row | None] = field(default_factory=dict)
    """The related rows that were looked at, by their names in the machine."""
    event: str | None = None
    """What is told of the change, to who follows the row."""


class Executor:
    """One machine, compiled. Shared by all worlds that serve it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._row = machine.row
        self._triggers = {
            (trigger.kind, trigger.name): [self._step(step) for step in trigger.steps] for trigger in machine.triggers()
        }
        self._finds = {
            trigger.name: compile_expression(trigger.find.id) for trigger in machine.triggers() if trigger.find
        }
        self._found = {
            trigger.name: compile_expression(trigger.find.where)
            for trigger in machine.triggers()
            if trigger.find and trigger.find.where is not None
        }
        self._events = {
            name: [(told.name, compile_expression(told.when) if told.when else None) for told in state.events]
            for name, state in machine.states.items()
        }
        self._values = {
            name: compile_expression(value) for name, value in (*machine.definitions.items(), *machine.derived.items())
        }
        self._each = {trigger.name: compile_expression(trigger.each) for trigger in machine.triggers() if trigger.each}
        self._related = {
            (trigger.kind, trigger.name): _needed(trigger, machine.entering) for trigger in machine.triggers()
        }
        self._where = {
            name: {column: compile_expression(value) for column, value in related.where.items()}
            for trigger in machine.triggers()
            for name, related in trigger.related.items()
        }
        self._timers = [_CompiledTimer(timer, order) for order, timer in enumerate(machine.timers.values())]
        self._timers_of = {
            state: [timer for timer in self._timers if state in timer.timer.sources] for state in machine.states
        }
        self._holds = {
            name: compile_expression(state.holds) for name, state in machine.states.items() if state.holds is not None
        }

    def key(self, trigger: Trigger, inputs: Inputs) -> Any:
        """The primary key of the row that the trigger is about."""
        return self._finds[trigger.name](inputs)

    def found(self, trigger: Trigger, inputs: Inputs) -> bool:
        """Whether the row in ``inputs`` is one that the trigger's ``find`` may find."""
        where = self._found.get(trigger.name)
        return where is None or bool(where(inputs))

    def value(self, name: str, inputs: Inputs) -> Any:
        """The value of a definition or of a derived field."""
        return self._values[name](inputs)

    def event(self, row: Row) -> str | None:
        """What is told of a row that came into its state."""
        inputs = {self._row: row}
        return next((name for name, when in self._events[row["status"]] if when is None or when(inputs)), None)

    def concerns(self, trigger: Trigger, inputs: Inputs) -> bool:
        """Whether an action on many rows is about this one."""
        return bool(self._each[trigger.name](inputs))

    def related(self, trigger: Trigger) -> tuple[str, ...]:
        """Names of the related rows that the trigger's expressions may look at."""
        return self._related[trigger.kind, trigger.name]

    def where(self, name: str, inputs: Inputs) -> dict[str, Any]:
        """The column values by which a related row is found."""
        return {column: value(inputs) for column, value in self._where[name].items()}

    def judge(self, trigger: Trigger, inputs: Inputs) -> Outcome:
        """Judge the steps on the row in ``inputs``. Raises ``RuntimeError`` when none decides (a lint error)."""
        row: Row | None = inputs.get(self._row)
        status = row["status"] if row is not None else None
        for step in self._triggers[trigger.kind, trigger.name]:
            if step.require is not None:
                if not step.require(inputs):
                    return Outcome(step.id, step.otherwise, row)
                continue
            if step.sources is not None and status not in step.sources:
                continue
            if step.when is not None and not step.when(inputs):
                continue
            return self._take(step, inputs, row)
        raise RuntimeError(f"no step of {trigger.name} decides in state {status}")

    def _take(self, step: _CompiledStep, inputs: Inputs, row: Row | None) -> Outcome:
        outcome = Outcome(step.id, step.answer, row)
        for name, header in step.headers:
            value = header(inputs)
            if value is not None:
                outcome.headers[name] = value
        for entity, create in step.create:
            outcome.created[entity] = create(inputs)
        if step.show is not None:
            outcome.row = inputs[step.show]
        if row is not None and (step.to is not None or step.set):
            outcome.row = self._move(step.to, step.set, inputs, row)
            outcome.changed = True
            outcome.event = self.event(outcome.row) if step.to is not None else step.event
        return outcome

    def _move(self, to: str | None, effects: Assignments, inputs: Inputs, row: Row, depth: int = 0) -> Row:
        new = dict(row)
        for column, value in effects:
            new[column] = value(inputs)
        if self.machine.stamp is not None:
            new[self.machine.stamp] = inputs["now"]
        if to is None:
            return new
        new["status"] = to
        if to not in self.machine.entering:
            return new
        if depth == _MAX_ENTERING:
            raise RuntimeError(f"{to} is entered again and again")
        inputs = {**inputs, self._row: new}
        for step in self._triggers["entering", to]:
            if step.when is None or step.when(inputs):
                return self._move(step.to, step.set, inputs, new, depth + 1)
        raise RuntimeError(f"no step of entering {to} decides")

    def due(self, row: Row, key: str) -> Due | None:
        """The row's next timer, None when none is armed."""
        inputs = {self._row: row}
        dues = [
            Due(instant, timer.order, key)
            for timer in self._timers_of[row["status"]]
            if (instant := timer.due(inputs)) is not None
        ]
        return min(dues, key=lambda due: (due.instant, due.order), default=None)

    def fire(self, due: Due, row: Row, inputs: Inputs) -> Outcome:
        """Fire a timer on a row; its ``now`` is the instant at which it is due."""
        timer = self._timers[due.order]
        inputs = {**inputs, self._row: row, "now": due.instant, **timer.timer.given}
        if timer.timer.fires is not None:
            return self.judge(self.machine.internal[timer.timer.fires], inputs)
        outcome = Outcome(timer.timer.name, None, self._move(timer.timer.to, timer.set, inputs, row), changed=True)
        if outcome.row is not None:
            outcome.event = self.event(outcome.row)
        return outcome

    def holds(self, inputs: Inputs) -> bool:
        """Whether the invariant of the row's state is true; for tests."""
        holds = self._holds.get(inputs[self._row]["status"])
        return holds is None or bool(holds(inputs))

    def _step(self, step: Step) -> _CompiledStep:
        return _CompiledStep(
            id=step.id,
            sources=frozenset(step.sources) if step.sources is not None else None,
            require=compile_expression(step.require) if step.require is not None else None,
            otherwise=step.otherwise,
            when=compile_expression(step.when) if step.when is not None else None,
            to=step.to,
            set=_assignments(step.set),
            create=[(creation.entity, _creation(creation)) for creation in step.create],
            answer=step.answer,
            headers=_assignments(step.headers),
            show=step.show,
            event=step.event,
        )


Assignments = list[tuple[str, "Callable[[Inputs], Any]"]]


@dataclass(frozen=True, slots=True)
class _CompiledStep:
    id: str
    sources: frozenset[str] | None
    require: Callable[[Inputs], Any] | None
    otherwise: str | None
    when: Callable[[Inputs], Any] | None
    to: str | None
    set: Assignments
    create: list[tuple[str, Callable[[Inputs], Row]]]
    answer: int | str | None
    headers: Assignments
    show: str | None
    event: str | None


class _CompiledTimer:
    def __init__(self, timer: Timer, order: int) -> None:
        self.timer, self.order = timer, order
        self.set = _assignments(timer.set)
        self._instant = compile_expression(timer.instant)

    def due(self, inputs: Inputs) -> int | None:
        """The first instant at which the timer fires; None while its expression is null."""
        try:
            instant = self._instant(inputs)
        except TypeError:  # arithmetic on a null column: not armed
            return None
        return None if instant is None else int(instant) + self.timer.strictly_after


def _assignments(items: Mapping[str, Expression]) -> Assignments:
    return [(name, compile_expression(value)) for name, value in items.items()]


def _creation(creation: Creation) -> Callable[[Inputs], Row]:
    values = _assignments(creation.values)
    source, columns = creation.copy_from, creation.copied

    def create(inputs: Inputs) -> Row:
        row: Row = {}
        if source is not None:
            origin = inputs[source]
            row = dict(origin) if columns is None else {column: origin.get(column) for column in columns}
        row.update((name, value(inputs)) for name, value in values)
        return row

    return create


def _needed(trigger: Trigger, entering: Mapping[str, Trigger]) -> tuple[str, ...]:
    """Related rows named in the trigger's expressions or in those of transient states."""
    names: set[str] = set()
    for step in [*trigger.steps, *(step for group in entering.values() for step in group.steps)]:
        texts = [step.require, step.when, *step.set.values(), *step.headers.values()]
        for creation in step.create:
            texts += creation.values.values()
            names.add(creation.copy_from or "")
        names |= {
            node.name
            for text in texts
            if text is not None
            for node in expressions.walk(text)
            if isinstance(node, expressions.Name)
        }
        names.add(step.show or "")
    return tuple(name for name in trigger.related if name in names)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def compile_expression(expression: Expression) -> Callable[[Inputs], Any]:
    """A closure that evaluates the expression on inputs. A property that is absent is null."""
    match expression:
        case expressions.Literal(value):
            return lambda _: value
        case expressions.Name(name):
            return lambda inputs: inputs[name]
        case expressions.Field(expressions.Name(related), name):
            return lambda inputs: inputs[related].get(name)
        case expressions.Field(of, name):
            row = compile_expression(of)
            return lambda inputs: row(inputs).get(name)
        case expressions.Index(of, at):
            items_of, index = compile_expression(of), compile_expression(at)
            return lambda inputs: _item(items_of(inputs), index(inputs))
        case expressions.ListOf(items):
            if all(isinstance(item, expressions.Literal) for item in items):
                values = [item.value for item in items if isinstance(item, expressions.Literal)]
                return lambda _: values
            parts = [compile_expression(item) for item in items]
            return lambda inputs: [part(inputs) for part in parts]
        case expressions.Not(operand):
            inner = compile_expression(operand)
            return lambda inputs: not inner(inputs)
        case expressions.Conditional(test, yes, no):
            condition, then, other = compile_expression(test), compile_expression(yes), compile_expression(no)
            return lambda inputs: then(inputs) if condition(inputs) else other(inputs)
        case expressions.Call(function, arguments):
            values_of = [compile_expression(argument) for argument in arguments]
            return lambda inputs: inputs[function](*(value(inputs) for value in values_of))
        case expressions.Binary(sign, left, right):
            return _binary(sign, compile_expression(left), compile_expression(right))


def _item(items: list[Any], index: int) -> Any:
    """An item of a list, counted from 0. Raises ``IndexError`` where there is none; nothing is counted from the end."""
    if index < 0:
        raise IndexError(f"an item counted from 0 is asked for at {index}")
    return items[index]


def _binary(sign: str, left: Callable[[Inputs], Any], right: Callable[[Inputs], Any]) -> Callable[[Inputs], Any]:
    if sign == "&&":
        return lambda inputs: left(inputs) and right(inputs)
    if sign == "||":
        return lambda inputs: left(inputs) or right(inputs)
    if sign == "in":
        return lambda inputs: left(inputs) in right(inputs)
    compare = _COMPARE[sign]
    return lambda inputs: compare(left(inputs), right(inputs))
