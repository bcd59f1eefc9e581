"""Mutants of one expression's text: parts dropped, comparisons moved, numbers one off, branches always taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from openapi.expressions import (
    Binary,
    Call,
    Conditional,
    Expression,
    Field,
    Index,
    ListOf,
    Literal,
    Not,
    parse,
    render,
)
from openapi.mutation.edit import put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from openapi.mutation.places import Places

_MOVED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def expressions_at(
    places: Places, pointer: str, words: tuple[object, ...], text: str, *, rules: Iterable[str] = ()
) -> None:
    """Add every mutant of the expression at a place; they are numbered from 1 within their kind."""
    counts: dict[str, int] = {}
    for kind, what, changed in _changed(parse(text)):
        counts[kind] = counts.get(kind, 0) + 1
        sentence = f"{'.'.join(map(str, words))}: {what}"
        number = "condition" if kind == "condition" else kind
        places.add(number, [*words, counts[kind]], pointer, sentence, put(pointer, render(changed)), rules=rules)


def _changed(whole: Expression) -> Iterator[tuple[str, str, Expression]]:
    """Each mutant of an expression: its kind, what is otherwise, and the whole with it."""
    for node, within in _nodes(whole, lambda node: node):
        match node:
            case Binary("&&" | "||", left, right):
                yield "condition", f"`{render(left)}` is not asked for", within(right)
                yield "condition", f"`{render(right)}` is not asked for", within(left)
            case Binary("<" | "<=" | ">" | ">=" as sign, left, right):
                moved = Binary(_MOVED[sign], left, right)
                yield "boundary", f"`{render(moved)}` in place of `{render(node)}`", within(moved)
            case Literal(int() as number) if not isinstance(number, bool):
                for other in (number + 1, number - 1):
                    yield "number", f"{other} in place of {number}", within(Literal(other))
            case Conditional(test, yes, no):
                yield "branch", f"as if `{render(test)}` were true", within(yes)
                yield "branch", f"as if `{render(test)}` were false", within(no)
            case ListOf(items) if len(items) > 1:
                for i, item in enumerate(items):
                    rest = ListOf(items[:i] + items[i + 1 :])
                    yield "listed", f"without {render(item)} in `{render(node)}`", within(rest)


def _nodes(
    node: Expression, within: Callable[[Expression], Expression]
) -> Iterator[tuple[Expression, Callable[[Expression], Expression]]]:
    """The expression and everything inside it, each with what puts another one in its place."""
    yield node, within
    match node:
        case Not(operand):
            yield from _nodes(operand, lambda new: within(Not(new)))
        case Binary(sign, left, right):
            yield from _nodes(left, lambda new: within(Binary(sign, new, right)))
            yield from _nodes(right, lambda new: within(Binary(sign, left, new)))
        case Conditional(test, yes, no):
            yield from _nodes(test, lambda new: within(Conditional(new, yes, no)))
            yield from _nodes(yes, lambda new: within(Conditional(test, new, no)))
            yield from _nodes(no, lambda new: within(Conditional(test, yes, new)))
        case Field(of, name):
            yield from _nodes(of, lambda new: within(Field(new, name)))
        case Index(of, index):
            yield from _nodes(of, lambda new: within(Index(new, index)))
            yield from _nodes(index, lambda new: within(Index(of, new)))
        case Call(name, arguments):
            for i, argument in enumerate(arguments):
                yield from _nodes(argument, _argument(within, node, i))
        case ListOf(items):
            for i, item in enumerate(items):
                yield from _nodes(item, _item(within, node, i))


def _argument(within: Callable[[Expression], Expression], call: Call, i: int) -> Callable[[Expression], Expression]:
    return lambda new: within(replace(call, arguments=(*call.arguments[:i], new, *call.arguments[i + 1 :])))


def _item(within: Callable[[Expression], Expression], items: ListOf, i: int) -> Callable[[Expression], Expression]:
    return lambda new: within(ListOf((*items.items[:i], new, *items.items[i + 1 :])))
