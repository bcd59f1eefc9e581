"""The public list of faults: which seeded faults are of each row's kind, and which checks replay its stories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = Path(__file__).with_name("public.yaml")


@dataclass(frozen=True, slots=True)
class Listed:
    """One row: ``faults`` are ids of seeded faults, ``reason`` says what of it can't be seen over HTTP."""

    id: str
    title: str
    faults: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """One story: ``checks`` are ids of those that replay it (of all their parameters), each of ``faults`` fails one."""

    id: str
    title: str
    checks: tuple[str, ...]
    faults: tuple[str, ...]


@cache
def rows() -> dict[str, Listed]:
    """The rows by id. Raises ``ValueError`` for an entry that is not in the table's form."""
    return {id_: _made(Listed, id_, entry) for id_, entry in _read()["rows"].items()}


@cache
def stories() -> dict[str, Story]:
    """The stories by id. Raises ``ValueError`` as :func:`rows` does."""
    return {id_: _made(Story, id_, entry) for id_, entry in _read()["stories"].items()}


def _read() -> dict[str, dict[str, Any]]:
    table: dict[str, dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return table


def _made(kind: Any, id_: str, entry: Mapping[str, Any]) -> Any:
    try:
        return kind(id_, **{name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()})
    except TypeError as error:
        raise ValueError(f"{TABLE.name}, {id_}: {error}") from None
