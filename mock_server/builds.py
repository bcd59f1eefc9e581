"""Builds of both APIs: compiled once, shared by all worlds that are made alike."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import openapi
from mock_server import mutants
from mock_server.app import Api
from mock_server.engine import Engine, Rows
from mock_server.executor import Executor
from mock_server.fault_targets import Targets
from mock_server.hub.hub import HubBuild
from mock_server.timing import Timing, timed

_BUILDS = 512
"""Builds of each API that are kept for worlds to come, a megabyte each: more than there are seeded faults of it."""


@dataclass(frozen=True)
class Build:
    """One build of the Runtime API, right or seeded with a fault: compiled once, shared by its worlds."""

    contract: openapi.Contract
    executor: Executor
    rows: Rows
    engine: type[Engine]
    api: Api


@functools.lru_cache(maxsize=_BUILDS)
def build(mutant: str | None, timing: Timing = ()) -> Build:
    """The reference, or the reference with one seeded fault, or with other numbers, or both.

    A fault of the other API leaves this one as it is. Raises ``ValueError`` for an unknown fault.
    """
    return _build(mutant if _of(mutant, "runtime-api") else None, timing)


def _of(mutant: str | None, api: str) -> bool:
    return mutant is not None and mutants.find(mutant).system == api


@functools.lru_cache(maxsize=_BUILDS)
def _build(mutant: str | None, timing: Timing) -> Build:
    parts = mutants.parts_of(mutant, timed(openapi.load("runtime-api"), timing))
    contract = parts.contract
    if contract.machine is None:
        raise ValueError("the Runtime API has no state machine")
    api = Api(
        contract,
        parts.runtime_api(contract).handlers(),
        parts.errors(contract),
        key=parts.key(key_header(contract), contract.document["x-base-path"]),
        validate_responses=mutant is None,
        judge=parts.judge,
        sender=parts.sender(),
    )
    return Build(contract, Executor(contract.machine), Rows(contract), parts.engine, api)


@functools.cache
def fault_targets() -> Targets:
    """What fault plans aim at: the operations of both APIs."""
    return Targets(openapi.load("runtime-api"), openapi.load("agent-hub"))


@functools.lru_cache(maxsize=_BUILDS)
def build_hub(mutant: str | None) -> HubBuild:
    """The reference hub, or one with a seeded fault. Raises ``ValueError`` for an unknown fault."""
    return _build_hub(mutant if _of(mutant, "agent-hub") else None)


@functools.lru_cache(maxsize=_BUILDS)
def _build_hub(mutant: str | None) -> HubBuild:
    contract = openapi.load("agent-hub")
    parts = mutants.parts_of(mutant, contract)
    contract, check = parts.contract, parts.contract is contract
    if contract.machine is None:
        raise ValueError("the Agent Hub has no state machine")
    executor = Executor(contract.machine)
    shapes = parts.shapes(contract, executor, check=check)
    schemas = contract.document["components"]["schemas"]
    most = schemas["BatchSummary"]["properties"]["failures"]["maxItems"]
    api = Api(
        contract,
        parts.api(contract, parts.submissions(contract)).handlers(),
        parts.errors(contract),
        key=parts.gate(contract.document["x-base-path"]),
        validate_responses=check,
        judge=parts.judge,
        sender=parts.sender(),
    )
    summaries = parts.summaries(shapes, schemas["JobStatus"]["enum"], most)
    return HubBuild(contract, executor, Rows(contract), api, shapes, summaries, parts)


def key_header(contract: openapi.Contract) -> str:
    """The name of the header that carries the Runtime API's key."""
    name: str = contract.document["components"]["securitySchemes"]["internalKey"]["name"]
    return name
