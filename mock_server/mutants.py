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
from mock_server.hub.api import HubApi
from mock_server.hub.batches import Summaries
from mock_server.hub.errors import BearerJudge, HubErrors
from mock_server.hub.nodes import Nodes
from mock_server.hub.scheduler import Scheduler
from mock_server.hub.shapes import Shapes
from mock_server.hub.streams import Streams
from mock_server.hub.submission import Submissions
from mock_server.hub.webhooks import Webhooks
from mock_server.judgement import OperationJudge
from mock_server.runtime_api import RuntimeApi
from openapi import Contract
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Callable


HAND_MADE = "hand-made"
"""The kind of mutants that were thought of one by one."""


@dataclass
class Parts:
    """What a build of the Runtime API is made of. A fault replaces one."""

    contract: Contract
    runtime_api: type[RuntimeApi] = RuntimeApi
    engine: type[Engine] = Engine
    key: type[KeyJudge] = KeyJudge
    errors: type[Errors] = Errors
    judge: type[OperationJudge] = OperationJudge
    sender: type[Sender] = Sender


@dataclass
class HubParts:
    """What a build of the Agent Hub is made of. A fault replaces one."""

    contract: Contract
    api: type[HubApi] = HubApi
    engine: type[Engine] = Engine
    gate: type[BearerJudge] = BearerJudge
    errors: type[HubErrors] = HubErrors
    judge: type[OperationJudge] = OperationJudge
    sender: type[Sender] = Sender
    shapes: type[Shapes] = Shapes
    summaries: type[Summaries] = Summaries
    submissions: type[Submissions] = Submissions
    nodes: type[Nodes] = Nodes
    scheduler: type[Scheduler] = Scheduler
    streams: type[Streams] = Streams
    webhooks: type[Webhooks] = Webhooks


@dataclass(frozen=True)
class Mutant:
    """One seeded fault. ``edit`` changes the specification's data in place, ``parts`` replaces parts of the build.

    ``generated`` marks one that generated requests find. ``kind``: of a mutant that was generated from a contract's
    text (``openapi.mutation.KINDS``), whose ``rules`` are those stated at its place; ``api``: the contract's name.
    """

    id: str
    title: str
    rules: tuple[str, ...]
    edit: Callable[[dict[str, Any]], None] | None = None
    parts: Callable[[Any], None] | None = None
    generated: bool = False
    kind: str = HAND_MADE
    api: str | None = None

    @property
    def system(self) -> str:
        """The API whose rules it breaks."""
        if self.api is not None:
            return self.api
        return "agent-hub" if any(rule.startswith("HUB-") for rule in self.rules) else "runtime-api"


def registry() -> dict[str, Mutant]:
    """All seeded faults by id."""
    from mock_server.faults import FAULTS

    return {fault.id: fault for fault in FAULTS}


def everything() -> dict[str, Mutant]:
    """All seeded faults and all generated mutants by id."""
    from mock_server.generated import mutants

    return {**registry(), **mutants()}


def find(id_: str) -> Mutant:
    """A seeded fault or a generated mutant by id. Raises ``ValueError`` naming the nearest for an unknown one."""
    faults = everything() if id_.startswith("gen.") else registry()
    if id_ not in faults:
        mend = nearest(id_, faults, "`contract mutants list` shows them")
        raise ValueError(f"no seeded fault is named `{id_}`; {mend}")
    return faults[id_]


def parts_of(id_: str | None, contract: Contract) -> Any:
    """The parts of a build of an API (:class:`Parts` or :class:`HubParts`), with the fault where it is one of that API.

    Raises ``ValueError`` as :func:`find` does.
    """
    kind = HubParts if contract.name == "agent-hub" else Parts
    mutant = find(id_) if id_ is not None else None
    if mutant is None or mutant.system != contract.name:
        return kind(contract)
    document = copy.deepcopy(contract.document)
    if mutant.edit is not None:
        mutant.edit(document)
    parts = kind(Contract(contract.name, document))
    if mutant.parts is not None:
        mutant.parts(parts)
    return parts
