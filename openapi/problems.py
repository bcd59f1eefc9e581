"""What is wrong with a specification, said with its place and its mend."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def nearest(word: str, known: Iterable[str], otherwise: str | None = None, shown: str = "`{}`") -> str:
    """The mend of a misspelt word: the nearest known one, otherwise ``otherwise`` (left out: all that are known)."""
    names = list(known)
    near = difflib.get_close_matches(word, names, 1)
    if near:
        return f"did you mean {shown.format(near[0])}?"
    return f"there are {', '.join(names)}" if otherwise is None else otherwise


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a specification file; ``line`` counts from 1, ``pointer`` is a JSON Pointer into the file."""

    file: Path
    line: int
    pointer: str
    message: str
    mend: str

    def __str__(self) -> str:
        """``file:line: message (mend)``, as editors and CI logs read it."""
        place = f" at {self.pointer}" if self.pointer else ""
        return f"{self.file}:{self.line}: {self.message}{place} ({self.mend})"


class SpecError(ValueError):
    """A specification that can't be used; ``problems`` lists every fault that was found, at least one."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
