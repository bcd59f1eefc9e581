"""Worlds: isolated universes of rows, clock and journal, each served by an API that many can share."""

from __future__ import annotations

import asyncio
import functools
import re
import secrets
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import openapi
from mock_server.builds import build, build_hub, key_header
from mock_server.clock import LATEST, TOO_LATE, Clock, make_clock
from mock_server.engine import Firings
from mock_server.fault_plans import FaultPlans, Plan
from mock_server.hub.accounts import tokens
from mock_server.hub.hub import Hub, HubOptions
from mock_server.journal import MAX_BYTES, MAX_ENTRIES, Journal
from mock_server.leases import Lease
from mock_server.model.memory import ModelMemory
from mock_server.sightings import Sightings
from mock_server.snapshots import Exists, Snapshots
from mock_server.timing import Timing, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from mock_server.model.scripts import Script
    from mock_server.seed_data import SeedData
    from mock_server.snapshots import Part

DEFAULT = "default"
PREFIX = "/__worlds__/"
MOST = 10_000
"""Worlds that a server holds beside the default one."""

TEST_HUB = HubOptions(tokens("zqa_live_test"))
"""A hub with the keys that the command line has by default."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TICK = 0.25
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Options:
    """What a world is made with."""

    api_key: str
    clock: str = "real"
    mutant: str | None = None
    without_states: frozenset[str] = frozenset()
    journal_entries: int = MAX_ENTRIES
    journal_bytes: int = MAX_BYTES
    lifetime: float | None = None
    """Real seconds that the world stays without a request; None: until it is dropped."""
    own_key: bool = False
    """Whether ``api_key`` is the world's own, by which requests to the server's root find it."""
    port: int | None = None
    """A loopback port of the world's own, which is listened on."""
    faults: tuple[Plan, ...] = ()
    """Fault plans."""
    model: tuple[Script, ...] = ()
    """What the model answers."""
    hub: HubOptions = TEST_HUB
    timing: Timing = ()
    """Numbers in place of the specification's."""
    platform_key: str | None = ""
    """The model key that jobs of the platform get; None: they get none, empty: one is made up."""
    search: tuple[str, ...] = ()
    """Further texts that are secrets of the world."""
    sightings: bool = False
    """Whether requests are searched for secrets where they do not belong."""


class World:
    """One isolated universe."""

    def __init__(self, id_: str, options: Options, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.id, self.options = id_, options
        self._seeds: SeedData | None = None
        self.build = build(options.mutant, options.timing)
        self.platform_key = options.platform_key
        if self.platform_key == "":
            self.platform_key = f"platform-{secrets.token_hex(16)}"  # no `sk-`: to be replaced since it is known
        model_keys = [self.platform_key] if self.platform_key else []
        hub_secrets = [*options.hub.tokens, *filter(None, [options.hub.webhook_secret])]
        self.redactor = self.build.contract.redactor([options.api_key, *model_keys, *hub_secrets, *options.search])
        self.sightings: Sightings | None = None
        if options.sightings:
            header = key_header(self.build.contract).lower().encode()
            self.sightings = Sightings(header, options.api_key, model_keys, options.search, self.redactor)
        self.api_key = options.api_key.encode()
        names = self.build.contract.secret_names
        self.journal = Journal(self.redactor, options.journal_entries, options.journal_bytes, secret_names=names)
        self.faults = FaultPlans(options.faults)
        self.model = ModelMemory(options.model)
        self.clock: Clock = make_clock(options.clock)
        store = self.build.rows.store()
        self.engine = self.build.engine(self.build.executor, self.build.rows, store, self.clock, self.redactor.text)
        self.lease = None if options.lifetime is None else Lease(options.lifetime, monotonic)
        self.snapshots = Snapshots()
        self.parts: list[Part] = [self.faults, self.model]
        """What a snapshot holds beside rows and clock."""

    def learn(self, model_key: str) -> None:
        """A user's model key is made: from here on it is a secret of the world."""
        self.redactor.add(model_key)
        if self.sightings is not None:
            self.sightings.add(model_key)

    @functools.cached_property
    def hub(self) -> Hub:
        """The world's Agent Hub, made when it is first asked for."""
        return Hub(build_hub(self.options.mutant), self.clock, self.options.hub)

    @property
    def has_hub(self) -> bool:
        """Whether somebody used the Agent Hub."""
        return "hub" in self.__dict__

    @property
    def path(self) -> str:
        """The path under which the world's APIs stand: empty for the default one."""
        return "" if self.id == DEFAULT else PREFIX + self.id

    async def fill(self, seeds: SeedData) -> None:
        """Put seed data into the world; from here on :meth:`reset` brings it back. Raises :class:`DataError`."""
        self._seeds = seeds
        await seeds.fill(self)

    async def reset(self) -> None:
        """Back to how the world was made: its data alone, an empty journal, its own time, fault plans not yet met."""
        await self.engine.reset()
        if self.has_hub:
            await self.hub.reset()
        self.journal.clear()
        self.faults.restart()
        self.model.restart()
        if self._seeds is not None:
            await self._seeds.fill(self)

    async def advance(self, seconds: float, most: int = 0) -> tuple[int, Firings]:
        """Move the clock forward. The new instant, and what fired, the first ``most`` of it one by one.

        Raises ``ValueError`` where the clock would go past the year 9999.
        """
        fired, milliseconds = Firings(most), round(seconds * 1000)
        if not self.has_hub:
            return await self.engine.advance(milliseconds, fired), fired
        await self._happen(fired)  # what is on its way now has its time before the clock moves, too
        target = self.clock.now() + milliseconds
        if target > LATEST:
            raise ValueError(TOO_LATE)
        while milliseconds:
            # The clock goes from one instant to the next: who looks, a webhook's receiver say, sees the world at it.
            due = await self.next_instant()
            instant = target if due is None else due
            self.clock.advance(max(min(instant, target) - self.clock.now(), 0))
            await self._happen(fired)
            if instant >= target:
                break
        return await self._happen(fired), fired

    async def next_instant(self) -> int | None:
        """When something is due next in either API: a timer of a job, a node's report, a webhook's next try, a ping."""
        engines = [self.engine, self.hub.engine] if self.has_hub else [self.engine]
        instants = [await engine.next_instant() for engine in engines]
        return min((instant for instant in instants if instant is not None), default=None)

    async def _happen(self, fired: Firings) -> int:
        """Both APIs do what is due by now; deliveries get their time. Returns that instant."""
        await self.engine.settle(fired)
        await self.hub.engine.settle(fired)
        await self.hub.webhooks.quiet()
        self.hub.driver.rearm(await self.hub.engine.next_instant())
        return await self.engine.settle(fired)

    def end_streams(self) -> None:
        """The server stops: connections that are open for as long as there is something to tell come to their end."""
        if self.has_hub:
            self.hub.streams.end_all()

    def close(self) -> None:
        """The world goes away."""
        if self.has_hub:
            self.hub.close()

    async def jobs(self) -> dict[str, int]:
        """How many jobs are in each state now; states without a job are left out."""
        await self.engine.settle()
        return dict(Counter(row["status"] for row in await self.engine.store.rows(self.engine.machine.entity)))

    def summary(self) -> dict[str, Any]:
        """The world as the control plane shows it; its key is a secret."""
        return {
            "id": self.id,
            "path": self.path or "/",
            "port": self.options.port,
            "ownKey": self.options.own_key,
            "clock": self.options.clock,
            "now": self.clock.now(),
            "mutant": self.options.mutant,
            "timing": shown(self.options.timing),
            "sightings": self.options.sightings,
            "lifetimeSeconds": self.options.lifetime,
            "expiresInSeconds": None if self.lease is None else round(self.lease.left(), 3),
            "exchanges": len(self.journal),
        }


class Listener(Protocol):
    """What listens on ports; ``host`` is the address of the worlds' own ports, ``port`` the server's own port."""

    host: str
    port: int

    async def open(self, port: int) -> int:
        """Listen on one more port (0: one is picked), serving the same app. Returns it. Raises ``OSError``."""

    def close(self, port: int) -> None:
        """Stop listening there, and end the connections that came in by it."""


class Worlds:
    """All worlds of a server; the default one is always there."""

    def __init__(self, options: Options, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._options, self._monotonic = options, monotonic
        self._worlds = {DEFAULT: World(DEFAULT, options)}
        self._expired: dict[str, None] = {}
        self.listener: Listener | None = None
        self.key_header = key_header(openapi.load("runtime-api")).lower().encode()
        self.by_key: dict[bytes, World] = {}
        self.by_port: dict[int, World] = {}
        self.routed = False
        """Whether a world is, or was, reached otherwise than by its path."""

    def __iter__(self) -> Iterator[World]:
        return iter(self._worlds.values())

    def get(self, id_: str) -> World | None:
        """The world of that id."""
        return self._worlds.get(id_)

    @property
    def default(self) -> World:
        """The world at ``/``."""
        return self._worlds[DEFAULT]

    def absent(self, id_: str) -> str:
        """Why no world of that id is there."""
        if id_ in self._expired:
            return f"the world `{id_}` went away: its lifetime passed without a request"
        return f"no world has the id `{self.default.redactor.text(id_)}`" if _ID.fullmatch(id_) else "no world is there"

    async def open_port(self, number: int) -> int:
        """Listen on a port for a world to be made (0: one is picked). Raises ``ValueError`` with the mend."""
        if self.listener is None:
            raise ValueError("this mock can't open ports; start it by `contract serve`")
        try:
            return await self.listener.open(number)
        except OSError as error:
            shown = number or "one that is free"
            reason = error.strerror or str(error)
            mend = "choose another one, or true to have one picked" if number else "drop worlds that are not needed"
            raise Exists(f"the port {shown} of {self.listener.host} can't be had: {reason}; {mend}") from None

    def close_port(self, port: int) -> None:
        """Stop listening on a world's own port."""
        self.by_port.pop(port, None)
        if self.listener is not None:
            self.listener.close(port)

    def make(
        self,
        *,
        id_: str | None = None,
        clock: str | None = None,
        mutant: str | None = None,
        without_states: Collection[str] | None = None,
        lifetime: float | None = None,
        api_key: str | None = None,
        port: int | None = None,
        faults: tuple[Plan, ...] | None = None,
        model: tuple[Script, ...] | None = None,
        hub: HubOptions | None = None,
        timing: Timing | None = None,
        platform_key: str | None = "",
        search: tuple[str, ...] = (),
        sightings: bool = False,
    ) -> World:
        """Make a world; what is left out is as the server was started, but for lifetime, port and texts to search.

        ``port`` was opened by :meth:`open_port`. Raises ``ValueError`` with the mend, as :class:`Exists` where
        something of another world is in the way.
        """
        id_ = id_ or secrets.token_hex(6)
        if not _ID.fullmatch(id_):
            raise ValueError("a world's id has 1 to 64 characters of A-Z a-z 0-9 . _ -")
        if id_ in self._worlds:
            raise Exists(f"the world `{id_}` is there already; drop it, or choose another id")
        if len(self._worlds) > MOST:
            raise Exists(f"there are {MOST} worlds already; drop those that are not needed, or give them a lifetime")
        if api_key is not None and (api_key == self._options.api_key or api_key.encode() in self.by_key):
            raise Exists("the apiKey is the server's or another world's; a world's own key is to be unlike all others")
        hidden = self._options.without_states if without_states is None else frozenset(without_states)
        options = replace(
            self._options,
            api_key=api_key or self._options.api_key,
            own_key=api_key is not None,
            clock=clock or self._options.clock,
            mutant=mutant or self._options.mutant,
            without_states=hidden,
            lifetime=lifetime,
            port=port,
            faults=self._options.faults if faults is None else faults,
            model=self._options.model if model is None else model,
            hub=hub or self._options.hub,
            timing=self._options.timing if timing is None else timing,
            platform_key=platform_key,
            search=search,
            sightings=sightings or self._options.sightings,
        )
        world = self._worlds[id_] = World(id_, options, self._monotonic)
        self._expired.pop(id_, None)
        if api_key is not None:
            self.by_key[world.api_key] = world
            self.default.redactor.add(api_key)  # a client that is configured wrongly sends it there
        if port is not None:
            self.by_port[port] = world
        self.routed = self.routed or api_key is not None or port is not None
        return world

    def drop(self, id_: str) -> bool:
        """Drop a world with its port and key; False when there is none. Raises ``ValueError`` for the default world."""
        if id_ == DEFAULT:
            raise ValueError("the default world can be reset, not dropped")
        world = self._worlds.pop(id_, None)
        if world is None:
            return False
        world.close()
        if world.options.own_key:
            del self.by_key[world.api_key]
            self.default.redactor.discard(world.options.api_key)
        if world.options.port is not None:
            self.close_port(world.options.port)
        return True

    def drop_all(self) -> int:
        """Drop every world but the default one. Returns how many."""
        ids = [id_ for id_ in self._worlds if id_ != DEFAULT]
        return sum(self.drop(id_) for id_ in ids)

    def expire(self) -> None:
        """Drop the worlds whose lifetime passed."""
        for world in list(self):
            if world.lease is not None and not world.lease.left():
                self.drop(world.id)
                self._expired[world.id] = None
        while len(self._expired) > _REMEMBERED:
            del self._expired[next(iter(self._expired))]

    async def keep_expiring(self) -> None:
        """Drop the worlds whose lifetime passed, for as long as the server runs."""
        while True:
            await asyncio.sleep(_TICK)
            self.expire()
