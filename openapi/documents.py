"""Specification files as data, with the line of every value."""

from __future__ import annotations

import re
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


_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(token: str) -> str:
    """One reference token of a JSON Pointer (RFC 6901)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """The inverse of :func:`escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def at_pointer(data: Any, pointer: str) -> Any:
    """The value at a JSON Pointer. Raises ``KeyError`` where there is none."""
    if pointer and not pointer.startswith("/"):
        raise KeyError(pointer)
    for token in pointer.split("/")[1:]:
        key = unescape(token)
        if isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        elif isinstance(data, dict) and key in data:
            data = data[key]
        else:
            raise KeyError(pointer)
    return data


def _circle(root: yaml.Node | None) -> yaml.Node | None:
    """A node that stands within itself, by an alias: no tree, which everything here walks."""
    done: set[int] = set()
    within: set[int] = set()
    stack = [(root, False)]
    while stack:
        node, left = stack.pop()
        if left:
            within.discard(id(node))
            done.add(id(node))
        elif id(node) in within:
            return node
        elif isinstance(node, yaml.CollectionNode) and id(node) not in done:
            within.add(id(node))
            stack.append((node, True))
            pairs = isinstance(node, yaml.MappingNode)
            stack += [(inner, False) for item in node.value for inner in (item if pairs else (item,))]
    return None


@dataclass(eq=False)
class Document:
    """One YAML (or JSON) file: its ``data`` and, on demand, where in the file each value stands."""

    path: Path
    text: str
    data: Any = field(repr=False)
    """A mapping, or a list where one was asked for."""
    root: yaml.Node | None = field(default=None, repr=False)

    @classmethod
    def read(cls, path: Path, *, lists: bool = False) -> Document:
        """Read a file. Raises :class:`SpecError` for one that is missing, unreadable, no YAML, or no mapping (with
        ``lists``: neither mapping nor list).
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise SpecError(
                [Problem(path, 1, "", f"cannot be read: {error.strerror}", "name an existing file")]
            ) from None
        except UnicodeDecodeError:
            raise SpecError([Problem(path, 1, "", "is not UTF-8", "save the file as UTF-8")]) from None
        return cls.parse(text, path, lists=lists)

    @classmethod
    def parse(cls, text: str, path: Path, *, lists: bool = False) -> Document:
        """Parse the text of ``path``. Raises :class:`SpecError` as :meth:`read` does."""
        try:
            loader = SafeLoader(text)
            try:
                root = loader.get_single_node()
                circle = _circle(root)
                if circle is not None:
                    mend = "write out what the alias stands for"
                    raise SpecError([Problem(path, circle.start_mark.line + 1, "", "holds an alias of itself", mend)])
                data = loader.construct_document(root) if root is not None else None
            finally:
                loader.dispose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            message = " ".join(filter(None, [error.context, error.problem]))
            raise SpecError([Problem(path, mark.line + 1 if mark else 1, "", message, "mend the YAML")]) from None
        except yaml.YAMLError as error:  # a character that YAML does not allow: the one kind without a mark
            line = next((n for n, row in enumerate(text.split("\n"), 1) if _NOT_YAML.search(row)), 1)
            what = getattr(error, "reason", None) or str(error).partition("\n")[0]
            raise SpecError([Problem(path, line, "", str(what), "mend the YAML")]) from None
        if lists and isinstance(data, list):
            return cls(path, text, data, root)
        if lists and not isinstance(data, dict):
            raise SpecError([Problem(path, 1, "", "is neither a mapping nor a list", "write one of the two")])
        if not isinstance(data, dict):
            raise SpecError([Problem(path, 1, "", "is not a mapping", "start from an OpenAPI document")])
        return cls(path, text, data, root)

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
        root = self.root
        stack: list[tuple[str, Any, int]] = [("", root, root.start_mark.line + 1)] if root else []
        while stack:
            pointer, node, line = stack.pop()
            lines[pointer] = line
            if isinstance(node, yaml.MappingNode):
                items: dict[str, tuple[str, Any, int]] = {}
                for key, value in node.value:
                    at = f"{pointer}/{escape(str(key.value))}"
                    if at in items:
                        duplicates.append((at, key.start_mark.line + 1))
                    items[at] = (at, value, key.start_mark.line + 1)  # the last one wins, as in ``data``
                stack += items.values()
            elif isinstance(node, yaml.SequenceNode):
                stack += [(f"{pointer}/{i}", item, item.start_mark.line + 1) for i, item in enumerate(node.value)]
        return lines, duplicates
