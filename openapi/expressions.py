"""The subset of CEL (Common Expression Language) in which the specifications state guards and effects.

In the subset: literals (``null``, ``true``, 64-bit integers, strings), names, fields, lists, items of lists
(``list[0]``), ``! && || ?: in``, comparisons, ``+ - *`` and calls of named functions. Left out on purpose: ``has``,
maps, macros, doubles, ``size`` (evaluators differ on them). This module parses; what executes an expression lives with
the server, what judges by it with the suites.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ExpressionError(ValueError):
    """Text that is no expression of the subset; ``position`` counts characters from 0."""

    def __init__(self, message: str, text: str, position: int) -> None:
        self.text, self.position = text, position
        super().__init__(f"{message} at character {position + 1} of `{text}`")


@dataclass(frozen=True, slots=True)
class Literal:
    """``null``, a boolean, an integer or a string."""

    value: bool | int | str | None


@dataclass(frozen=True, slots=True)
class Name:
    """An input, a constant, a related row or a definition."""

    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """``of.name``; a field that is absent is null."""

    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """``of[index]``, an item of a list, counted from 0; an item that is not there is an error."""

    of: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class ListOf:
    """``[a, b]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """``!operand``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator right`` with one of :data:`OPERATORS`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional:
    """``test ? yes : no``."""

    test: Expression
    yes: Expression
    no: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """``function(arguments)``."""

    function: str
    arguments: tuple[Expression, ...]


Expression: TypeAlias = Literal | Name | Field | Index | ListOf | Not | Binary | Conditional | Call

#: Binary operators from the loosest to the tightest; one level is left-associative.
PRECEDENCE = (("||",), ("&&",), ("==", "!=", "<=", ">=", "<", ">", "in"), ("+", "-"), ("*",))
OPERATORS = tuple(operator for level in PRECEDENCE for operator in level)
_LEVEL = {operator: level for level, operators in enumerate(PRECEDENCE) for operator in operators}

_TOKEN = re.compile(
    r"""\s*(?:(?P<int>\d+)|(?P<string>'(?:[^'\\\r\n]|\\.)*'|"(?:[^"\\\r\n]|\\.)*")|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign>\|\||&&|==|!=|<=|>=|[<>+\-*!?:.,()\[\]]))""",
    re.ASCII,
)
_BLANK = " \t\n\r\f\v"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_WORDS: dict[str, bool | None] = {"null": None, "true": True, "false": False}
_SHOWN = str.maketrans({escaped: f"\\{sign}" for sign, escaped in _ESCAPES.items() if escaped != '"'})
_MAX_INT = 2**63 - 1
_UNARY, _POSTFIX = len(PRECEDENCE), len(PRECEDENCE) + 1


def parse(text: str) -> Expression:
    """Parse one expression. Raises :class:`ExpressionError` with the character where it stops making sense."""
    parser = _Parser(text)
    expression = parser.conditional()
    if parser.kind != "end":
        parser.fail(f"unexpected `{parser.value}`")
    return expression


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands of an expression, from left to right."""
    match expression:
        case Field(of, _):
            return (of,)
        case Index(of, index):
            return (of, index)
        case ListOf(items):
            return items
        case Not(operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Conditional(test, yes, no):
            return (test, yes, no)
        case Call(_, arguments):
            return arguments
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The expression with ``change`` applied to every node, innermost first."""
    match expression:
        case Field(of, name):
            expression = Field(rebuild(of, change), name)
        case Index(of, index):
            expression = Index(rebuild(of, change), rebuild(index, change))
        case ListOf(items):
            expression = ListOf(tuple(rebuild(item, change) for item in items))
        case Not(operand):
            expression = Not(rebuild(operand, change))
        case Binary(operator, left, right):
            expression = Binary(operator, rebuild(left, change), rebuild(right, change))
        case Conditional(test, yes, no):
            expression = Conditional(rebuild(test, change), rebuild(yes, change), rebuild(no, change))
        case Call(function, arguments):
            expression = Call(function, tuple(rebuild(argument, change) for argument in arguments))
    return change(expression)


def literal(value: Any) -> Expression:
    """A plain value (null, boolean, integer, string, or a list of them) as an expression."""
    if isinstance(value, list | tuple):
        return ListOf(tuple(literal(item) for item in value))
    return Literal(value)


def render(expression: Expression, level: int = -1) -> str:
    """CEL text that parses to this expression, with no more parentheses than it needs."""
    match expression:
        case Literal(value):
            if isinstance(value, str):
                return f"'{value.translate(_SHOWN)}'"
            if value is None or isinstance(value, bool):
                return {None: "null", True: "true", False: "false"}[value]
            return f"({value})" if value < 0 and level >= _POSTFIX else str(value)
        case Name(name):
            return name
        case Field(of, name):
            return f"{render(of, _POSTFIX)}.{name}"
        case Index(of, index):
            return f"{render(of, _POSTFIX)}[{render(index)}]"
        case ListOf(items):
            return "[" + ", ".join(render(item) for item in items) + "]"
        case Not(operand):
            text = f"!{render(operand, _UNARY)}"
            return f"({text})" if level >= _POSTFIX else text
        case Call(function, arguments):
            return f"{function}({', '.join(render(argument) for argument in arguments)})"
        case Binary(operator, left, right):
            own = _LEVEL[operator]
            text = f"{render(left, own)} {operator} {render(right, own + 1)}"
            return f"({text})" if own < level else text
        case Conditional(test, yes, no):
            text = f"{render(test, 0)} ? {render(yes, 0)} : {render(no)}"
            return f"({text})" if level >= 0 else text


class _Parser:
    """Recursive descent over one text; ``kind`` and ``value`` are the token under the cursor."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.start = text, 0, 0
        self.kind, self.value = "", ""
        self.step()

    def fail(self, message: str) -> None:
        raise ExpressionError(message, self.text, self.start)

    def step(self) -> str:
        taken, rest = self.value, self.text[self.end :]
        self.start = self.end + len(rest) - len(rest.lstrip(_BLANK))
        if not rest.strip(_BLANK):
            self.kind, self.value = "end", "end of the text"
            return taken
        token = _TOKEN.match(self.text, self.end)
        if token is None:
            self.fail(f"`{self.text[self.start]}` is not part of the language")
        else:
            self.kind, self.value, self.end = str(token.lastgroup), token[token.lastgroup or 0], token.end()
        return taken

    def take(self, sign: str) -> bool:
        if self.value == sign and self.kind in ("sign", "word"):
            self.step()
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            self.fail(f"`{sign}` expected, not `{self.value}`")

    def conditional(self) -> Expression:
        test = self.binary(0)
        if not self.take("?"):
            return test
        yes = self.binary(0)
        self.expect(":")
        return Conditional(test, yes, self.conditional())

    def binary(self, level: int) -> Expression:
        if level == len(PRECEDENCE):
            return self.unary()
        left = self.binary(level + 1)
        while self.value in PRECEDENCE[level] and self.kind in ("sign", "word"):
            left = Binary(self.step(), left, self.binary(level + 1))
        return left

    def unary(self) -> Expression:
        if self.take("!"):
            return Not(self.unary())
        if self.take("-"):
            if self.kind != "int":
                self.fail("a number expected after `-`")
            return Literal(-self.integer(_MAX_INT + 1))
        expression = self.primary()
        while True:
            if self.take("."):
                if self.kind != "word":
                    self.fail(f"a field's name expected, not `{self.value}`")
                expression = Field(expression, self.step())
            elif self.take("["):
                expression = Index(expression, self.conditional())
                self.expect("]")
            else:
                return expression

    def primary(self) -> Expression:
        if self.take("("):
            inner = self.conditional()
            self.expect(")")
            return inner
        if self.take("["):
            return ListOf(self.items("]"))
        if self.kind == "int":
            return Literal(self.integer())
        if self.kind == "string":
            text = re.sub(r"\\(.)", self.unescaped, self.value[1:-1])
            self.step()
            return Literal(text)
        if self.kind != "word" or self.value == "in":
            self.fail(f"a value expected, not `{self.value}`")
        word = self.step()
        if word in _WORDS:
            return Literal(_WORDS[word])
        return Call(word, self.items(")")) if self.take("(") else Name(word)

    def integer(self, most: int = _MAX_INT) -> int:
        digits = self.value.lstrip("0")
        if len(digits) > len(str(most)) or int(digits or "0") > most:
            self.fail("an integer has at most 64 bits")
        return int(self.step())

    def unescaped(self, match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            self.fail(f"unknown escape `\\{match[1]}`")
        return _ESCAPES[match[1]]

    def items(self, close: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        if self.take(close):
            return ()
        while True:
            items.append(self.conditional())
            if self.take(close):
                return tuple(items)
            self.expect(",")
