"""Specification files as data, with the line of every value."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import yaml

from openapi.problems import Problem, SpecError

if TYPE_CHECKING:
    from pathlib import Path

try:
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML built without libyaml: slower, the same result
    from yaml import SafeLoader  # type: ignore[assignment]


def escape(token: str) -> str:
    """One reference token of a JSON Pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """The inverse of :func:`escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def at_pointer(data: Any, pointer: str) -> Any:
    """The value at a JSON Pointer. Raises ``KeyError`` where there is none."""
    for token in pointer.split("/")[1:]:
        key = unescape(token)
        try:
            data = data[int(key)] if isinstance(data, list) else data[key]
        except (KeyError, IndexError, ValueError, TypeError):
            raise KeyError(pointer) from None
    return data


@dataclass(eq=False)
class Document:
    """One YAML (or JSON) file: its ``data`` and, on demand, where in the file each value stands."""

    path: Path
    text: str
    data: dict[str, Any] = field(repr=False)

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a file. Raises :class:`SpecError` for one that is missing, unreadable, no YAML, or no mapping."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SpecError([Problem(path, 1, "", f"cannot be read: {error.strerror}", "name an existing file")]) from None
        except UnicodeDecodeError:
            raise SpecError([Problem(path, 1, "", "is not UTF-8", "save the file as UTF-8")]) from None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path) -> Document:
        """Parse the text of ``path``. Raises :class:`SpecError` as :meth:`read` does."""
        try:
            data = yaml.load(text, SafeLoader)  # noqa: S506 - a safe loader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = " ".join(filter(None, [error.context, error.problem]))
            raise SpecError([Problem(path, mark.line + 1 if mark else 1, "", message, "mend the YAML")]) from None
        except yaml.YAMLError as error:
            raise SpecError([Problem(path, 1, "", str(error), "mend the YAML")]) from None
        if not isinstance(data, dict):
            raise SpecError([Problem(path, 1, "", "is not a mapping", "start from an OpenAPI document")])
        return cls(path, text, data)

    def line(self, pointer: str) -> int:
        """The line of the value at ``pointer``, or of the nearest enclosing one that stands in the file."""
        while pointer and pointer not in self.lines:
            pointer = pointer.rpartition("/")[0]
        return self.lines.get(pointer, 1)

    @cached_property
    def lines(self) -> dict[str, int]:
        """The line of every value's key, by JSON Pointer."""
        lines, _ = self._walked
        return lines

    def problem(self, pointer: str, message: str, mend: str) -> Problem:
        """A problem of this file at ``pointer``."""
        return Problem(self.path, self.line(pointer), pointer, message, mend)

    def duplicate_keys(self) -> list[Problem]:
        """Keys that stand twice in one mapping, which YAML loaders silently let the last one win."""
        _, duplicates = self._walked
        return [
            Problem(self.path, line, pointer, "the key stands twice in its mapping", "keep one of the two")
            for pointer, line in duplicates
        ]

    @cached_property
    def _walked(self) -> tuple[dict[str, int], list[tuple[str, int]]]:
        lines: dict[str, int] = {}
        duplicates: list[tuple[str, int]] = []
        root = yaml.compose(self.text, SafeLoader)
        stack = [("", root, root.start_mark.line + 1)] if root else []
        while stack:
            pointer, node, line = stack.pop()
            if pointer in lines:
                duplicates.append((pointer, line))
            lines[pointer] = line
            if isinstance(node, yaml.MappingNode):
                stack += [
                    (f"{pointer}/{escape(str(key.value))}", value, key.start_mark.line + 1) for key, value in node.value
                ]
            elif isinstance(node, yaml.SequenceNode):
                stack += [(f"{pointer}/{i}", item, item.start_mark.line + 1) for i, item in enumerate(node.value)]
        return lines, duplicates
