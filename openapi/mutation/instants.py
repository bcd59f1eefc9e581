"""Whether the timers of a mutant are due at the same instants: tables of what is null, and what is not.

A timer whose instant is null is not armed, and arithmetic on null is null. So a test whether a column is null may be
left out where the instant is counted from that column anyway.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from openapi import expressions
from openapi.expressions import Binary, Conditional, Expression, Literal, Not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.machine import Machine

_NULL = Literal(None)
_ARITHMETIC = ("+", "-", "*")


class _OtherTestError(Exception):
    """A test that is about more than whether something is null."""


def same_instants(original: Machine, mutated: Machine) -> str | None:
    """Why every timer is due when it was; None where one is not, or a table can't tell."""
    if original.timers.keys() != mutated.timers.keys():
        return None
    said = []
    for name, timer in original.timers.items():
        other = mutated.timers[name]
        if timer == other:
            continue
        if replace(other, instant=timer.instant) != timer:
            return None
        try:
            lines = _lines_alike(timer.instant, other.instant)
        except _OtherTestError:
            return None
        if lines is None:
            return None
        said.append(f"{name} has the same instant, or none, on all {lines} lines of its truth table")
    return "; ".join(said) or None


def _lines_alike(one: Expression, other: Expression) -> int | None:
    """How many lines the table of two instants has, where they are the same on each."""
    tests = [node.test for whole in (one, other) for node in expressions.walk(whole) if isinstance(node, Conditional)]
    columns = list(dict.fromkeys(column for test in tests for column in _asked(test)))
    lines = [dict(zip(columns, values, strict=True)) for values in product((True, False), repeat=len(columns))]
    return len(lines) if all(_instant(one, line) == _instant(other, line) for line in lines) else None


def _asked(test: Expression) -> Iterator[Expression]:
    """The values of which a test asks whether they are null. Raises :class:`_OtherTestError`."""
    match test:
        case Binary("&&" | "||", left, right):
            yield from _asked(left)
            yield from _asked(right)
        case Not(operand):
            yield from _asked(operand)
        case Binary("==" | "!=", column, right) if right == _NULL:
            yield column
        case _:
            raise _OtherTestError


def _true(test: Expression, line: Mapping[Expression, bool]) -> bool:
    match test:
        case Binary("&&", left, right):
            return _true(left, line) and _true(right, line)
        case Binary("||", left, right):
            return _true(left, line) or _true(right, line)
        case Not(operand):
            return not _true(operand, line)
        case Binary(sign, column, _):
            return line[column] is (sign == "==")
    raise _OtherTestError


def _instant(node: Expression, line: Mapping[Expression, bool]) -> Expression:
    """What an instant comes to on a line: ``null``, or the rest of it without tests."""
    match node:
        case Conditional(test, yes, no):
            return _instant(yes if _true(test, line) else no, line)
        case Binary(sign, left, right) if sign in _ARITHMETIC:
            parts = _instant(left, line), _instant(right, line)
            return _NULL if _NULL in parts else Binary(sign, *parts)
    return _NULL if line.get(node) else node
