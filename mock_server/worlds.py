"""Worlds: isolated universes of rows, clock and journal, each served by an API that many can share."""

from __future__ import annotations

import functools
import re
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import openapi
from mock_server import mutants
from mock_server.app import Api
from mock_server.clock import Clock, make_clock
from mock_server.engine import Engine, Rows
from mock_server.executor import Executor
from mock_server.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from mock_server.seed_data import SeedData

DEFAULT = "default"
PREFIX = "/__worlds__/"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Options:
    """What a world is made with."""

    api_key: str
    clock: str = "real"
    mutant: str | None = None
    without_states: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Build:
    """One build of the Runtime API, right or seeded with a fault: compiled once, shared by its worlds."""

    contract: openapi.Contract
    executor: Executor
    rows: Rows
    engine: type[Engine]
    api: Api


@functools.cache
def build(mutant: str | None) -> Build:
    """The reference, or the reference with one seeded fault. Raises ``ValueError`` for an unknown fault."""
    contract = openapi.load("runtime-api")
    parts = mutants.Parts(contract) if mutant is None else mutants.apply(mutant, contract)
    contract = parts.contract
    if contract.machine is None:
        raise ValueError("the Runtime API has no state machine")
    scheme = contract.document["components"]["securitySchemes"]["internalKey"]["name"]
    api = Api(
        contract,
        parts.runtime_api(contract).handlers(),
        parts.errors(contract),
        key=parts.key(scheme, contract.document["x-base-path"]),
        validate_responses=mutant is None,
        judge=parts.judge,
        sender=parts.sender(),
    )
    return Build(contract, Executor(contract.machine), Rows(contract), parts.engine, api)


class World:
    """One isolated universe."""

    def __init__(self, id_: str, options: Options) -> None:
        self.id, self.options = id_, options
        self._seeds: SeedData | None = None
        self.build = build(options.mutant)
        self.platform_key = f"sk-platform-{secrets.token_hex(16)}"
        self.redactor = self.build.contract.redactor([options.api_key, self.platform_key])
        self.api_key = options.api_key.encode()
        self.journal = Journal(self.redactor)
        self.clock: Clock = make_clock(options.clock)
        store = self.build.rows.store()
        self.engine = self.build.engine(self.build.executor, self.build.rows, store, self.clock, self.redactor.text)

    @property
    def path(self) -> str:
        """The path under which the world's APIs stand: empty for the default one."""
        return "" if self.id == DEFAULT else PREFIX + self.id

    async def fill(self, seeds: SeedData) -> None:
        """Put seed data into the world; from here on :meth:`reset` brings it back. Raises :class:`DataError`."""
        self._seeds = seeds
        await seeds.fill(self)

    async def reset(self) -> None:
        """Back to how the world was made: its seed data alone, an empty journal, real time."""
        await self.engine.reset()
        self.journal.clear()
        if self._seeds is not None:
            await self._seeds.fill(self)

    def summary(self) -> dict[str, Any]:
        """The world as the control plane shows it."""
        return {
            "id": self.id,
            "path": self.path or "/",
            "clock": self.options.clock,
            "now": self.clock.now(),
            "mutant": self.options.mutant,
            "exchanges": len(self.journal),
        }


class Worlds:
    """All worlds of a server; the default one is always there."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._worlds = {DEFAULT: World(DEFAULT, options)}

    def __iter__(self) -> Iterator[World]:
        return iter(self._worlds.values())

    def get(self, id_: str) -> World | None:
        """The world of that id."""
        return self._worlds.get(id_)

    @property
    def default(self) -> World:
        """The world at ``/``."""
        return self._worlds[DEFAULT]

    def make(
        self,
        *,
        id_: str | None = None,
        clock: str | None = None,
        mutant: str | None = None,
        without_states: Collection[str] | None = None,
    ) -> World:
        """Make a world; what is left out is as the server was started. Raises ``ValueError`` with the mend."""
        id_ = id_ or secrets.token_hex(6)
        if not _ID.fullmatch(id_):
            raise ValueError("a world's id has 1 to 64 characters of A-Z a-z 0-9 . _ -")
        if id_ in self._worlds:
            raise ValueError(f"the world `{id_}` is there already; drop it, or choose another id")
        hidden = self._options.without_states if without_states is None else frozenset(without_states)
        options = replace(
            self._options,
            clock=clock or self._options.clock,
            mutant=mutant or self._options.mutant,
            without_states=hidden,
        )
        world = self._worlds[id_] = World(id_, options)
        return world

    def drop(self, id_: str) -> bool:
        """Drop a world; False when there is none. Raises ``ValueError`` for the default world."""
        if id_ == DEFAULT:
            raise ValueError("the default world can be reset, not dropped")
        return self._worlds.pop(id_, None) is not None
