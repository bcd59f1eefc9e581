"""The expressions of ``x-state-machine``, evaluated by a CEL library of others on the text as it stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import cel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Functions = Mapping[str, Callable[..., Any]]

Inputs = dict[str, Any]
"""What expressions see by name: rows (None where there is none), instants, the caller."""

_WORDS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\.\s*\w+|[A-Za-z_]\w*""")
_FIELDS = re.compile(r"\b([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
_STRINGS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_UNITS = {"seconds": 1000, "minutes": 60_000, "hours": 3_600_000}


class NoValue(ValueError):  # noqa: N818 - CEL's own word for it is error
    """An expression without a value: arithmetic on null, an item that is not there."""


class Formula:
    """One expression; what is no text is a plain value, itself."""

    def __init__(self, value: Any, language: Language) -> None:
        self.value, self.text = value, language.expanded(value) if isinstance(value, str) else None
        if self.text is None:
            return
        self._program = cel.compile(self.text)
        self.names = set(self._program.variables())
        self._functions = language.functions
        self._constants = {name: value for name, value in language.constants.items() if name in self.names}
        self._fields: dict[str, set[str]] = {}
        for name, field in _FIELDS.findall(_STRINGS.sub("''", self.text)):
            self._fields.setdefault(name, set()).add(field)

    def __call__(self, inputs: Inputs) -> Any:
        """Its value. Raises :class:`NoValue` where it has none; a field that is absent is null."""
        if self.text is None:
            return self.value
        seen = dict(self._constants)
        for name in self.names.difference(seen):
            if name not in inputs:
                raise NoValue(f"`{self.text}`: there is no {name} here")
            row, fields = inputs[name], self._fields.get(name)
            seen[name] = {field: row.get(field) for field in fields} if isinstance(row, dict) and fields else row
        try:
            return self._program.execute(cel.Context(variables=seen, functions=dict(self._functions)))
        except (TypeError, ValueError, RuntimeError, LookupError, ArithmeticError) as error:
            raise NoValue(f"`{self.text}`: {error}") from None


class Language:
    """The names of one machine: constants, definitions, functions."""

    def __init__(self, text: Mapping[str, Any], numbers: Mapping[str, Any], functions: Functions) -> None:
        """``text`` is the extension; ``numbers`` are constants with other values, durations in milliseconds."""
        self.constants = {name: _constant(item) for name, item in text.get("constants", {}).items()} | dict(numbers)
        self.functions = functions
        self._definitions: Mapping[str, str] = text.get("define", {})

    def formula(self, value: Any) -> Formula:
        """An expression's text or a plain value."""
        return Formula(value, self)

    def expanded(self, text: str) -> str:
        """The text with every definition in place, in parentheses."""

        def replaced(word: re.Match[str]) -> str:
            definition = self._definitions.get(word[0])
            return word[0] if definition is None else f"({self.expanded(definition)})"

        return _WORDS.sub(replaced, text)


def _constant(item: Mapping[str, Any]) -> Any:
    """A constant's value; durations in milliseconds."""
    unit = next((unit for unit in _UNITS if unit in item), None)
    if unit is None:
        return item["value"]
    number = item[unit]
    return [one * _UNITS[unit] for one in number] if isinstance(number, list) else number * _UNITS[unit]
