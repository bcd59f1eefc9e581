"""Truth tables of a machine's triggers: steps that can never decide, triggers that do not always decide."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from openapi import expressions
from openapi.expressions import Binary, Expression, Field, ListOf, Literal, Name, Not

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from openapi.machine import Fault, Machine, Step, Trigger

_MAX_ATOMS = 12


class Tables:
    """The tables of one machine, over states x truth of every condition that is not about the state."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def decisions(self) -> Iterator[Fault]:
        """Steps that can never decide and triggers that do not always decide."""
        for trigger in self.machine.triggers():
            has_row = trigger.find is not None or trigger.each is not None or trigger.kind == "internal"
            states: list[str | None] = [None]
            if has_row:
                states = [name for name, state in self.machine.states.items() if not state.transient]
            if trigger.kind == "entering":
                states = [trigger.name]
            yield from self._table(trigger, states)

    def _table(self, trigger: Trigger, states: Sequence[str | None]) -> Iterator[Fault]:
        found: dict[str, Expression] = {}
        for step in trigger.steps:
            found |= {
                expressions.render(atom): atom for atom in _atoms(step.guard) if self._about_state(atom, None) is None
            }
        if len(found) > _MAX_ATOMS:
            yield trigger.pointer, f"{len(found)} different conditions are more than a truth table can hold", "split it"
            return
        atoms = {text: n for n, text in enumerate(found)}
        guards = [self._condition(step.guard, atoms) if step.guard is not None else None for step in trigger.steps]
        judged = list(zip(trigger.steps, guards, strict=True))
        deciding: set[str] = set()
        undecided: set[str | None] = set()
        for state in states:
            for values in product((True, False), repeat=len(found)):
                decider = next((step for step, guard in judged if _decides(step, guard, state, values)), None)
                if decider is None:
                    undecided.add(state)
                else:
                    deciding.add(decider.id)
        yield from (
            (step.pointer, f"`{step.id}` can never decide", "drop it, or move it up")
            for step in trigger.steps
            if step.id not in deciding
        )
        if undecided:
            where = ", ".join(sorted(str(state) for state in undecided))
            yield trigger.pointer, f"no step may decide in state {where}", "end with a step that always decides"

    def _condition(self, node: Expression, atoms: Mapping[str, int]) -> _Condition:
        """A guard over the state and the truth of every atom, in the order of ``atoms``."""
        match node:
            case Binary("&&" | "||" as sign, left, right):
                one, two = self._condition(left, atoms), self._condition(right, atoms)
                if sign == "&&":
                    return lambda state, values: one(state, values) and two(state, values)
                return lambda state, values: one(state, values) or two(state, values)
            case Not(operand):
                inner = self._condition(operand, atoms)
                return lambda state, values: not inner(state, values)
        if self._about_state(node, None) is None:
            n = atoms[expressions.render(node)]
            return lambda _, values: values[n]
        told = {state: bool(self._about_state(node, state)) for state in (None, *self.machine.states)}
        return lambda state, _: told[state]

    def _about_state(self, node: Expression, state: str | None) -> bool | None:
        """The truth of a test of the state itself; None for any other expression."""
        status = Field(Name(self.machine.row), "status")
        match node:
            case Binary("in", of, ListOf(items)) if of == status:
                return Literal(state) in items
            case Binary("==", of, item) if of == status:
                return Literal(state) == item
            case Binary("!=", of, item) if of == status:
                return Literal(state) != item
            case Literal(bool() as value):
                return value
        return None


_Condition: TypeAlias = "Callable[[str | None, Sequence[bool]], bool]"


def _decides(step: Step, guard: _Condition | None, state: str | None, values: Sequence[bool]) -> bool:
    if step.require is not None:
        return guard is not None and not guard(state, values)
    return (step.sources is None or state in step.sources) and (guard is None or guard(state, values))


def _atoms(node: Expression | None) -> Iterator[Expression]:
    """The conditions of a guard below ``&&``, ``||`` and ``!``."""
    match node:
        case None:
            return
        case Binary("&&" | "||", left, right):
            yield from _atoms(left)
            yield from _atoms(right)
        case Not(operand):
            yield from _atoms(operand)
        case _:
            yield node
