"""What a mutant is worth before any build of it is judged: whether it can be built, and whether it differs at all."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from openapi.contract import Contract, load
from openapi.mutation import generated
from openapi.mutation.edit import MACHINE
from openapi.mutation.equivalence import compare
from openapi.mutation.lengths import same_texts
from openapi.problems import SpecError

if TYPE_CHECKING:
    from openapi.mutation.edit import Edit

DECLARED = Path(__file__).with_name("equivalents.yaml")
STILLBORN = Path(__file__).with_name("stillborn.yaml")


@dataclass(frozen=True, slots=True)
class Standing:
    """``counts``: whether the suites have to detect it; ``stillborn`` and ``equivalent`` say why not."""

    stillborn: str | None = None
    """Why no build of it can be made, or judged: what is wrong with the mutated text."""
    equivalent: str | None = None
    """The argument by which it can't be told from the original."""
    by: str | None = None
    """Who says that it is equivalent: ``table`` (computed, of a trigger, a timer, lengths) or ``declared``."""

    @property
    def counts(self) -> bool:
        """Whether the suites have to detect it."""
        return self.stillborn is None and self.equivalent is None


def mutated(edit: Edit, contract: Contract) -> Contract:
    """The contract with one edit. Raises :class:`SpecError` where its text can't be used."""
    document = {
        key: value if key in ("x-requirements",) else copy.deepcopy(value) for key, value in contract.document.items()
    }
    edit.change(document)
    return Contract(contract.name, document)


@cache
def declared() -> dict[str, str]:
    """The mutants that are declared equivalent, each with the argument, from ``equivalents.yaml``."""
    return _reasons(DECLARED)


@cache
def unborn() -> dict[str, str]:
    """The mutants whose builds can be asked for nothing, each with the reason (``stillborn.yaml``)."""
    return _reasons(STILLBORN)


def _reasons(path: Path) -> dict[str, str]:
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    return {str(id_): str(text) for id_, text in rows.items()}


@cache
def standing(id_: str) -> Standing:
    """What a generated mutant is worth. Raises ``KeyError`` for an id that there is not."""
    edit = generated()[id_]
    if id_ in unborn():
        return Standing(stillborn=unborn()[id_])
    contract = load(api_of(id_))
    if edit.pointer.startswith(MACHINE):
        try:
            other = mutated(edit, contract)
        except SpecError as error:
            return Standing(stillborn=error.problems[0].message)
        if contract.machine is not None and other.machine is not None:
            table = compare(contract.machine, other.machine)
            if table.undecided is not None:
                return Standing(stillborn=table.undecided)
            if table.equivalent is not None:
                return Standing(equivalent=table.equivalent, by="table")
    elif (same := same_texts(contract.document, edit)) is not None:
        return Standing(equivalent=same, by="table")
    text = declared().get(id_)
    return Standing(equivalent=text, by="declared") if text is not None else Standing()


def api_of(id_: str) -> str:
    """The contract of a generated mutant."""
    return "agent-hub" if id_.startswith("gen.hub.") else "runtime-api"
