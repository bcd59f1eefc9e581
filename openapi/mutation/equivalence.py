"""Whether a mutant of the machine can be told from the original at all: truth tables of whole triggers.

A table has a line for each state and truth of every condition that is not about the state. A line is left out where
it can't be: what ``holds`` says of a state is true in it, and since every timer that is due fires before anything is
judged, no row is judged past an instant of a timer that its state has. A mutant is equivalent where every trigger does
the same on every line: what it does on rows that there are is the same, so no other rows come about.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from openapi import expressions
from openapi.expressions import Binary, Conditional, Expression, Field, ListOf, Literal, Name, Not
from openapi.mutation.instants import same_instants

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.machine import Machine, State, Step, Trigger

_MOST_LINES = 2**14
_NULL = Literal(None)
Truth: TypeAlias = "Mapping[Expression, bool]"
Outcome: TypeAlias = "tuple[object, ...]"
_BROKEN: Outcome = ("breaks",)
_UNDECIDED: Outcome = ("undecided",)
_NEVER_NULL = frozenset({Name("caller"), Name("now")})


class _CannotTellError(Exception):
    """A table that is too large, or a condition that is none of its own."""


@dataclass(frozen=True, slots=True)
class Tabled:
    """What truth tables tell of a mutant; None where they can't tell, or where it is not so."""

    equivalent: str | None = None
    """Why it does the same as the original."""
    undecided: str | None = None
    """A state in which no step decides of a trigger that is no operation: nothing can make it go on."""


def compare(original: Machine, mutated: Machine) -> Tabled:
    """Compare a mutant with the original, trigger by trigger."""
    changed = [name for name in _parts(original) if getattr(original, name) != getattr(mutated, name)]
    if changed == ["states"] and _without_holds(original) == _without_holds(mutated):
        changed = []
        if all(
            _steps(one) == _steps(other) for one, other in zip(original.triggers(), mutated.triggers(), strict=True)
        ):
            return Tabled(equivalent="only what `holds` says of states changes, from which nothing is derived")
    if changed == ["timers"] and (timed := _never_armed(original, mutated) or same_instants(original, mutated)):
        return Tabled(equivalent=timed)
    old, new = _triggers(original), _triggers(mutated)
    if old.keys() != new.keys() or any(_around(old[key]) != _around(new[key]) for key in old):
        return Tabled()
    said = []
    same = not changed
    for key in (key for key in old if _steps(old[key]) != _steps(new[key])):
        table = _Table(original, old[key], new[key])
        try:
            table.fill()
        except _CannotTellError:
            same = False
            continue
        if table.undecided is not None and key[0] != "operation":  # an operation's caller sees that it breaks
            return Tabled(undecided=f"no step of {key[1]} decides in state {table.undecided}")
        same = same and table.same
        said.append(f"{key[1]} does the same on all {table.lines} lines of its truth table")
    # where no trigger differs the text may be for plain code, which reads it
    return Tabled(equivalent="; ".join(said)) if same and said else Tabled()


def _parts(machine: Machine) -> list[str]:
    """What has to be the same for tables to tell: everything but triggers, and what is put in place in them."""
    apart = {"operations", "entering", "actions", "internal", "definitions"}
    return [item.name for item in fields(machine) if item.name not in apart]


def _never_armed(original: Machine, mutated: Machine) -> str | None:
    """Why timers do the same although they are taken in other states: there, by ``holds``, they have no instant."""
    if original.timers.keys() != mutated.timers.keys():
        return None
    said = []
    for name, timer in original.timers.items():
        other = mutated.timers[name]
        if replace(other, sources=timer.sources) != timer:
            return None
        for state in set(timer.sources) ^ set(other.sources):
            holds = original.states[state].holds
            null = {_positive(part) for part in (_conjuncts(holds) if holds is not None else ())}
            parts = expressions.walk(timer.instant)
            plain = not any(isinstance(part, Conditional) for part in expressions.walk(timer.instant))
            if not plain or not any((Binary("==", part, _NULL), True) in null for part in parts):
                return None
            said.append(
                f"in {state} `{expressions.render(timer.instant)}` is null by its `holds`, so {name} is not armed"
            )
    return "; ".join(sorted(said)) or None


def _without_holds(machine: Machine) -> list[State]:
    return [replace(state, holds=None) for state in machine.states.values()]


def _triggers(machine: Machine) -> dict[tuple[str, str], Trigger]:
    return {(each.kind, each.name): each for each in machine.triggers()}


def _steps(trigger: Trigger) -> tuple[Step, ...]:
    return tuple(replace(step, pointer="", set_at={}, requirements=()) for step in trigger.steps)


def _around(trigger: Trigger) -> Trigger:
    return replace(trigger, steps=(), pointer="")


class _Table:
    """The table of one trigger, as it was and as it is in the mutant."""

    def __init__(self, machine: Machine, old: Trigger, new: Trigger) -> None:
        self.machine, self.old, self.new = machine, old, new
        self.status = Field(Name(machine.row), "status")
        found: dict[Expression, None] = {}
        for step in (*old.steps, *new.steps):
            for expression in (step.guard, *step.set.values(), *step.headers.values()):
                found |= dict.fromkeys(self._conditions(expression, whole=expression is step.guard))
        self.atoms = list(found)
        self.lines, self.same = 0, True
        self.undecided: str | None = None

    def fill(self) -> None:
        """Go through the lines. Raises :class:`_CannotTellError`."""
        has_row = self.old.find is not None or self.old.each is not None or self.old.kind == "internal"
        states: list[str | None] = [None]
        if has_row:
            states = [name for name, state in self.machine.states.items() if not state.transient]
        elif self.old.kind == "entering":
            states = [self.old.name]
        for state in states:
            known = self._facts(state)
            free = [atom for atom in self.atoms if atom not in known]
            if 2 ** len(free) > _MOST_LINES:
                raise _CannotTellError
            for values in product((True, False), repeat=len(free)):
                truth = {**known, **dict(zip(free, values, strict=True))}
                if _possible(truth):
                    self._line(state, truth)

    def _line(self, state: str | None, truth: Truth) -> None:
        self.lines += 1
        outcome = self._outcome(self.new, state, truth)
        if outcome == _UNDECIDED:
            self.undecided = state or "none"
        self.same = self.same and outcome == self._outcome(self.old, state, truth)

    def _conditions(self, node: Expression | None, *, whole: bool = False) -> Iterator[Expression]:
        """The conditions below ``&&``, ``||``, ``!`` (where ``whole``: of a guard) and in tests of ``?:``."""
        match node:
            case None:
                return
            case Binary("&&" | "||", left, right) if whole:
                yield from self._conditions(left, whole=True)
                yield from self._conditions(right, whole=True)
            case Not(operand) if whole:
                yield from self._conditions(operand, whole=True)
            case Conditional(test, yes, no):
                yield from self._conditions(test, whole=True)
                yield from self._conditions(yes, whole=whole)
                yield from self._conditions(no, whole=whole)
            case _ if whole and not isinstance(node, Literal) and not self._about_state(node):
                yield _positive(node)[0]

    def _about_state(self, node: Expression) -> bool:
        return isinstance(node, Binary) and node.left == self.status

    def _facts(self, state: str | None) -> dict[Expression, bool]:
        """What is known to be true or false of a row in a state."""
        if state is None or self.old.kind == "entering":
            return {}
        found: dict[Expression, bool] = {}
        holds = self.machine.states[state].holds
        for part in _conjuncts(holds) if holds is not None else ():
            atom, positive = _positive(part)
            found[atom] = positive
        now = Name("now")
        for timer in self.machine.timers.values():
            if state in timer.sources and not isinstance(timer.instant, Conditional):
                atom, positive = _positive(Binary("<=" if timer.strictly_after else "<", now, timer.instant))
                found[atom] = positive
        return found

    def _outcome(self, trigger: Trigger, state: str | None, truth: Truth) -> Outcome:
        for step in trigger.steps:
            guard = True if step.guard is None else self._value(step.guard, state, truth)
            if step.require is not None:
                if guard is None:
                    return _BROKEN
                if not guard:
                    return ("refused", step.otherwise)
                continue
            if step.sources is not None and state not in step.sources:
                continue
            if guard is None:
                return _BROKEN
            if guard:
                return self._effect(step, state, truth)
        return _UNDECIDED

    def _effect(self, step: Step, state: str | None, truth: Truth) -> Outcome:
        row = Name(self.machine.row)
        columns = {}
        for column, value in step.set.items():
            settled = self._settled(value, state, truth)
            if settled == _NULL and truth.get(Binary("==", Field(row, column), _NULL)):
                continue  # it is null already
            columns[column] = settled
        headers = {name: self._settled(value, state, truth) for name, value in step.headers.items()}
        create = tuple(
            (item.entity, tuple(sorted(item.values.items(), key=lambda pair: pair[0])), item.copy_from, item.copied)
            for item in step.create
        )
        told = (step.to, step.answer, step.show, step.event, create)
        return ("done", *told, frozenset(columns.items()), frozenset(headers.items()))

    def _settled(self, node: Expression, state: str | None, truth: Truth) -> Expression:
        """A value with every ``?:`` decided whose test is known."""
        while isinstance(node, Conditional):
            test = self._value(node.test, state, truth)
            if test is None:
                raise _CannotTellError
            node = node.yes if test else node.no
        return node

    def _value(self, node: Expression, state: str | None, truth: Truth) -> bool | None:
        """The truth of a condition on one line; None where it breaks, on a null."""
        match node:
            case Literal(bool() as value):
                return value
            case Binary("&&" | "||" as sign, left, right):
                one = self._value(left, state, truth)
                if one is None or one is (sign == "||"):
                    return one
                return self._value(right, state, truth)
            case Not(operand):
                inner = self._value(operand, state, truth)
                return None if inner is None else not inner
            case Conditional(test, yes, no):
                decided = self._value(test, state, truth)
                return None if decided is None else self._value(yes if decided else no, state, truth)
            case Binary(sign, left, right) if left == self.status:
                if sign == "in" and isinstance(right, ListOf):
                    return Literal(state) in right.items
                if sign in ("==", "!="):
                    return (Literal(state) == right) is (sign == "==")
        atom, positive = _positive(node)
        if atom not in truth:
            raise _CannotTellError
        if isinstance(atom, Binary) and atom.operator == "<=" and _is_null(atom, truth):
            return None
        return truth[atom] is positive


def _positive(node: Expression) -> tuple[Expression, bool]:
    """A condition as its table has it, and whether it is that or its opposite."""
    match node:
        case Not(operand):
            atom, positive = _positive(operand)
            return atom, not positive
        case Binary("!=", left, right):
            return Binary("==", left, right), False
        case Binary("<", left, right):
            return Binary("<=", right, left), False
        case Binary(">", left, right):
            return Binary("<=", left, right), False
        case Binary(">=", left, right):
            return Binary("<=", right, left), True
    return node, True


def _conjuncts(node: Expression) -> Iterator[Expression]:
    if isinstance(node, Binary) and node.operator == "&&":
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    elif not (isinstance(node, Binary) and node.operator == "||"):
        yield node


def _is_null(atom: Binary, truth: Truth) -> bool:
    return any(truth.get(Binary("==", side, _NULL)) for side in (atom.left, atom.right))


def _possible(truth: Truth) -> bool:
    """Whether a line can be: nothing is two different values at once, and what is less is not more."""
    values: dict[Expression, Expression] = {}
    for atom, true in truth.items():
        if not isinstance(atom, Binary):
            continue
        if not true:
            if atom.operator == "<=" and truth.get(Binary("<=", atom.right, atom.left)) is False:
                return False
            continue
        if (
            atom.operator == "=="
            and isinstance(atom.right, Literal)
            and values.setdefault(atom.left, atom.right) != atom.right
        ):
            return False
        if atom.right in _NEVER_NULL and truth.get(Binary("==", atom.left, _NULL)):
            return False
    return True
