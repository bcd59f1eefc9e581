"""Seeded faults: builds that are wrong in one named way, so that the suites can show that they would find it.

A fault changes the parts of which a build is made: the specification's text (behaviour and shapes), the handlers, the
engine, the judgement, or the error bodies. ``rules`` names the requirements of which at least one is expected to fail;
they were named before the fault was run.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mock_server.app import Errors, KeyJudge, Sender
from mock_server.engine import Engine
from mock_server.judgement import OperationJudge
from mock_server.runtime_api import RuntimeApi
from openapi import Contract
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Parts:
    """What a build is made of. A fault replaces one."""

    contract: Contract
    runtime_api: type[RuntimeApi] = RuntimeApi
    engine: type[Engine] = Engine
    key: type[KeyJudge] = KeyJudge
    errors: type[Errors] = Errors
    judge: type[OperationJudge] = OperationJudge
    sender: type[Sender] = Sender


@dataclass(frozen=True)
class Mutant:
    """One seeded fault. ``edit`` changes the specification's data in place, ``parts`` replaces parts of the build.

    ``generated`` marks one that generated requests find.
    """

    id: str
    title: str
    rules: tuple[str, ...]
    edit: Callable[[dict[str, Any]], None] | None = None
    parts: Callable[[Parts], None] | None = None
    generated: bool = False


def registry() -> dict[str, Mutant]:
    """All seeded faults by id."""
    from mock_server.faults import FAULTS

    return {fault.id: fault for fault in FAULTS}


def find(id_: str) -> Mutant:
    """A seeded fault by id. Raises ``ValueError`` naming the nearest for an unknown one."""
    faults = registry()
    if id_ not in faults:
        mend = nearest(id_, faults, "`contract mutants list` shows them")
        raise ValueError(f"no seeded fault is named `{id_}`; {mend}")
    return faults[id_]


def apply(id_: str, contract: Contract) -> Parts:
    """The build's parts with the fault ``id_``. Raises ``ValueError`` as :func:`find` does."""
    mutant = find(id_)
    document = copy.deepcopy(contract.document)
    if mutant.edit is not None:
        mutant.edit(document)
    parts = Parts(Contract(contract.name, document))
    if mutant.parts is not None:
        mutant.parts(parts)
    return parts
