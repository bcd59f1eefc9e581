"""The requirements register: every rule of a contract, with its id, sentence, source and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEVELS = ("seed", "decision")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the specification states a rule."""

    file: Path
    line: int
    pointer: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """One rule.

    ``level`` is ``seed`` or ``decision``; ``bound`` is who keeps it: ``server``, ``client``, ``both`` or ``data``;
    ``verify`` holds how it can be seen (``http``, ``traffic``, ``time``, ``admin``, ``none``).
    """

    id: str
    level: str
    bound: str
    verify: tuple[str, ...]
    source: tuple[str, ...]
    sentence: str
    sentence_zh: str
    superseded: str | None
    superseded_in_part: str | None
    not_observable: str | None
    not_observable_in_part: str | None
    reason: str | None
    places: tuple[Place, ...]

    @property
    def area(self) -> str:
        """The id without its number: ``RT-LOCK`` of ``RT-LOCK-13``."""
        return self.id.rpartition("-")[0]


class Register(Mapping[str, Requirement]):
    """All rules of one contract by id, in the register's order."""

    def __init__(self, rows: Mapping[str, Mapping[str, Any]], places: Mapping[str, Sequence[Place]]) -> None:
        self._rules = {id_: _requirement(id_, row, tuple(places.get(id_, ()))) for id_, row in rows.items()}

    def __getitem__(self, id_: str) -> Requirement:
        return self._rules[id_]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def select(self, only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[Requirement]:
        """The rules whose id matches a glob of ``only`` (none: all) and none of ``skip``."""
        return [
            rule
            for rule in self._rules.values()
            if (not only or any(fnmatchcase(rule.id, glob) for glob in only))
            and not any(fnmatchcase(rule.id, glob) for glob in skip)
        ]


def _requirement(id_: str, row: Mapping[str, Any], places: tuple[Place, ...]) -> Requirement:
    return Requirement(
        id=id_,
        level=row["level"],
        bound=row["bound"],
        verify=tuple(row["verify"]),
        source=tuple(row["source"]),
        sentence=row["sentence"],
        sentence_zh=row["sentenceZh"],
        superseded=row.get("superseded"),
        superseded_in_part=row.get("supersededInPart"),
        not_observable=row.get("notObservable"),
        not_observable_in_part=row.get("notObservableInPart"),
        reason=row.get("reason"),
        places=places,
    )
