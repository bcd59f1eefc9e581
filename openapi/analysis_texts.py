"""Faults of a machine's expressions, found without evaluating them: names that lead nowhere, nulls that break them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openapi import expressions
from openapi.documents import at_pointer
from openapi.expressions import Binary, Call, Conditional, Expression, Field, Index, ListOf, Literal, Name, Not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from openapi.contract import Contract
    from openapi.machine import Fault, Machine, Timer, Trigger

_NEEDS_VALUE = frozenset({"<", "<=", ">", ">=", "+", "-", "*"})


@dataclass(frozen=True, slots=True)
class _Text:
    """An expression at its place, with what is known to be non-null before it is judged."""

    pointer: str
    expression: Expression
    trigger: Trigger | None
    facts: frozenset[str]
    inputs: frozenset[str] | None = None
    """The inputs that are there besides the row; None: all that the machine names, and the related rows."""


_ROW_ALONE: frozenset[str] = frozenset()
_AT_AN_INSTANT = frozenset({"now"})


class Texts:
    """Every expression of one machine."""

    def __init__(self, contract: Contract, machine: Machine) -> None:
        self.contract, self.machine = contract, machine
        self._schemas: Mapping[str, Any] = contract.document["components"]["schemas"]
        self._columns = self._schemas.get(machine.entity, {}).get("properties", {})
        self._holds = {
            name: self._known(state.holds) if state.holds is not None else frozenset()
            for name, state in machine.states.items()
        }

    def faults(self) -> Iterator[Fault]:
        """Unresolved names, unknown fields, operands that can be null."""
        for name, definition in self.machine.definitions.items():
            yield from self._names(_Text(f"/define/{name}", definition, None, frozenset()))
        for text in self._all_texts():
            yield from self._names(text)
            yield from (
                (text.pointer, message, mend) for message, mend in self._nulls(text.expression, text.facts, text)
            )

    def _all_texts(self) -> Iterator[_Text]:
        for name, state in self.machine.states.items():
            if state.holds is not None:
                yield _Text(f"/states/{name}/holds", state.holds, None, frozenset())
            for i, event in enumerate(state.events):
                if event.when is not None:
                    at = f"/states/{name}/events/{i}/when"
                    yield _Text(at, event.when, None, self._holds[name], _ROW_ALONE)
        for name, value in self.machine.derived.items():
            yield _Text(f"/derived/{name}", value, None, frozenset(), _ROW_ALONE)
        for trigger in self.machine.triggers():
            if trigger.find is not None:
                yield _Text(f"{trigger.pointer}/find/id", trigger.find.id, trigger, frozenset())
                if trigger.find.where is not None:
                    yield _Text(f"{trigger.pointer}/find/where", trigger.find.where, trigger, frozenset())
            if trigger.each is not None:
                yield _Text(f"{trigger.pointer}/each", trigger.each, trigger, frozenset())
            for related in trigger.related.values():
                for column, value in related.where.items():
                    yield _Text(f"{related.pointer}/where/{column}", value, None, frozenset())
            facts: frozenset[str] = frozenset()
            for step in trigger.steps:
                known = facts | self._of_states(step.sources)
                if step.guard is not None:
                    at = "require" if step.require is not None else "when"
                    yield _Text(f"{step.pointer}/{at}", step.guard, trigger, known)
                if step.require is not None:
                    facts |= self._known(step.require)
                    continue
                if step.when is not None:
                    known |= self._known(step.when)
                values = [(step.set_at[column], value) for column, value in step.set.items()]
                values += [(f"{step.pointer}/headers/{name}", value) for name, value in step.headers.items()]
                for creation in step.create:
                    at = f"{step.pointer}/create/{creation.entity}"
                    values += [(f"{at}/{column}", value) for column, value in creation.values.items()]
                yield from (_Text(pointer, value, trigger, known) for pointer, value in values)
        for timer in self.machine.timers.values():
            known = self._of_states(timer.sources)
            at = f"{timer.pointer}/{'after' if timer.strictly_after else 'at'}"
            yield _Text(at, timer.instant, None, known, _ROW_ALONE)
            for column, value in timer.set.items():
                yield _Text(timer.set_at[column], value, None, known, _AT_AN_INSTANT)

    def _of_states(self, names: Sequence[str] | None) -> frozenset[str]:
        """What is non-null in every one of these states, by their ``holds``."""
        known = [self._holds.get(name, frozenset()) for name in names or ()]
        return frozenset.intersection(*known) if known else frozenset()

    def _names(self, text: _Text) -> Iterator[Fault]:
        inputs = self.machine.inputs if text.inputs is None else text.inputs
        rows = {self.machine.row: self.machine.entity}
        if text.inputs is None:
            related = text.trigger.related if text.trigger else self.machine.related
            rows |= {name: item.entity for name, item in related.items()}
        for node in expressions.walk(text.expression):
            match node:
                case Name(name) if name not in rows and name not in inputs:
                    yield text.pointer, f"`{name}` is not known here", "use an input, a constant or a definition"
                case Call(function, _) if function not in self.machine.functions:
                    yield text.pointer, f"`{function}` is no function", "name it under `functions`"
                case Field(Name(of), name) if of in rows and name not in self._schemas[rows[of]]["properties"]:
                    yield text.pointer, f"`{of}.{name}` is no column of {rows[of]}", "correct the name"
                case Field(Name("body"), name) if not self._in_body(text.trigger, name):
                    yield text.pointer, f"the body has no property `{name}`", "correct the name"

    def _in_body(self, trigger: Trigger | None, name: str) -> bool:
        if trigger is None:  # a definition or a related row is for several triggers; each use is looked at, too
            return any(self._in_body(each, name) for each in self.machine.triggers())
        if trigger.kind != "operation":
            return name in self._columns and trigger.kind != "internal"
        operation = self.contract.operations.get(trigger.name)
        if operation is None:
            return True
        content = operation.document.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = content.get("schema", {})
        if "$ref" in schema:
            schema = at_pointer(self.contract.document, schema["$ref"].removeprefix("#"))
        return name in schema.get("properties", {})

    def _nulls(self, node: Expression, facts: frozenset[str], text: _Text) -> Iterator[tuple[str, str]]:
        """Operands that may be null where that breaks the expression; ``&&``, ``||`` and ``?:`` add what they test."""
        match node:
            case Binary("&&", left, right):
                yield from self._nulls(left, facts, text)
                yield from self._nulls(right, facts | self._known(left), text)
                return
            case Binary("||", left, right):
                yield from self._nulls(left, facts, text)
                yield from self._nulls(right, facts | self._known(left, truth=False), text)
                return
            case Conditional(test, yes, no):
                yield from self._nulls(test, facts, text)
                yield from self._nulls(yes, facts | self._known(test), text)
                yield from self._nulls(no, facts | self._known(test, truth=False), text)
                return
            case Binary(sign, left, right) if sign in _NEEDS_VALUE:
                operands: tuple[Expression, ...] = (left, right)
            case Call("string", arguments):
                operands = arguments
            case Index(of, index):
                operands = (of, index)
            case Field(Name(_) as of, _):
                operands = (of,)
            case _:
                operands = ()
        for operand in operands:
            if self._nullable(operand, text.trigger) and expressions.render(operand) not in facts:
                name = expressions.render(operand)
                yield (
                    f"`{name}` may be null in `{expressions.render(node)}`",
                    f"test `{name} != null` to the left of it",
                )
        for child in expressions.children(node):
            yield from self._nulls(child, facts, text)

    def _nullable(self, node: Expression, trigger: Trigger | None) -> bool:
        related = trigger.related if trigger else self.machine.related
        match node:
            case Name(name):
                return name in related
            case Field(Name(of), name) if of == self.machine.row:
                return bool(self._columns.get(name, {}).get("nullable"))
            case Field(Name(of), name) if of in related:
                return bool(self._schemas[related[of].entity]["properties"].get(name, {}).get("nullable"))
        return False

    def _known(self, node: Expression, *, truth: bool = True) -> frozenset[str]:
        """What is certainly non-null when the expression is true (or false)."""
        match node:
            case Binary("!=", of, Literal(None)) if truth:
                return frozenset({expressions.render(of)})
            case Binary("==", of, Literal(None)) if not truth:
                return frozenset({expressions.render(of)})
            case Binary("&&", left, right) if truth:
                return self._known(left) | self._known(right)
            case Binary("||", left, right) if not truth:
                return self._known(left, truth=False) | self._known(right, truth=False)
            case Not(operand):
                return self._known(operand, truth=not truth)
            case Binary("in", Field(Name(row), "status"), ListOf(items)) if truth and row == self.machine.row:
                return self._of_states([str(item.value) for item in items if isinstance(item, Literal)])
        return frozenset()

    # Timers that fire

    def given(self, timer: Timer, trigger: Trigger) -> Iterator[Fault]:
        """Inputs that the internal trigger reads and the timer that fires it does not give."""
        there = {"now", *timer.given}
        read: dict[str, None] = {}
        for text in self._all_texts():
            if text.trigger is trigger:
                read |= {node.name: None for node in expressions.walk(text.expression) if isinstance(node, Name)}
        for name in read:
            if name in self.machine.inputs and name not in there:
                yield f"{timer.pointer}/fires", f"`{trigger.name}` reads `{name}`", "give it under `with`"
