"""The state machine of ``x-state-machine`` as typed values. Nothing here executes it.

The notation is explained at the head of the extension in ``runtime-api.yaml``; its structure is held by
``machine.schema.json``. ``machine_text.py`` turns the text into these values.

Triggers judge ordered steps: ``operations`` are requests, ``actions`` the application's side, ``internal`` ones what
plain code (a scheduler, a simulated node) does to a row at hand. Time moves a row by ``timers``, which set columns
themselves or fire an internal trigger. What a change tells to those who follow the row stands as events of states and
steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.expressions import Expression

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
