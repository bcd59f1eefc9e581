"""One world's Agent Hub: rows and machine, and the parts that stand around them."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mock_server.agenda import Agenda
from mock_server.engine import Engine, Rows
from mock_server.executor import Executor
from mock_server.hub.batches import OpenJobs, Summaries
from mock_server.hub.driver import Driver
from mock_server.hub.entities import JOB, NODE
from mock_server.hub.nodes import Nodes
from mock_server.hub.scheduler import Scheduler
from mock_server.hub.shapes import Shapes
from mock_server.hub.streams import Streams
from mock_server.hub.webhooks import Webhooks

if TYPE_CHECKING:
    from mock_server.app import Api
    from mock_server.clock import Clock
    from mock_server.engine import Firings
    from mock_server.mutants import HubParts
    from mock_server.store import Row, Saved
    from openapi import Contract


@dataclass(frozen=True, slots=True)
class HubOptions:
    """What a world's hub is made with."""

    tokens: tuple[str, ...]
    """An API key for each account, in the order of :data:`mock_server.hub.accounts.ACCOUNTS`."""
    webhook_secret: str | None = None
    allowed_hosts: frozenset[str] = frozenset()
    """Hosts beside loopback ones to which webhooks may go."""


@dataclass(frozen=True)
class HubBuild:
    """One build of the Agent Hub, right or seeded with a fault: compiled once, shared by its worlds."""

    contract: Contract
    executor: Executor
    rows: Rows
    api: Api
    shapes: Shapes
    summaries: Summaries
    parts: HubParts

    @functools.cached_property
    def base_path(self) -> str:
        """Where its operations live."""
        path: str = self.contract.document["x-base-path"]
        return path

    @functools.cached_property
    def constants(self) -> dict[str, Any]:
        """The machine's numbers, durations in milliseconds."""
        return {name: constant.value for name, constant in self.executor.machine.constants.items()}


class Hub:
    """The hub of one world. Instants are epoch milliseconds by the world's clock."""

    def __init__(self, build: HubBuild, clock: Clock, options: HubOptions) -> None:
        self.build, self.clock, self.options = build, clock, options
        self.constants, self.shapes = build.constants, build.shapes
        parts = build.parts
        self.agenda = Agenda()
        self.engine: Engine = parts.engine(
            build.executor, build.rows, build.rows.store(), clock, agenda=self.agenda, watch=self._changed
        )
        self.store = self.engine.store
        self.nodes: Nodes = parts.nodes(self)
        self.scheduler: Scheduler = parts.scheduler(self)
        self.open_jobs: OpenJobs = OpenJobs(self)
        self.streams: Streams = parts.streams(self)
        self.webhooks: Webhooks = parts.webhooks(self)
        self.driver = Driver(self)

    async def settle(self, fired: Firings | None = None) -> int:
        """All that is due by now has happened, in order. Returns that instant."""
        now = await self.engine.settle(fired)
        self.driver.arm(await self.engine.next_instant())
        return now

    async def done(self) -> None:
        """To be called after each change from outside: what it made due happens, the clock wakes us for the rest."""
        await self.settle()

    async def _changed(self, old: Row | None, new: Row, event: str | None, now: int) -> None:
        """A job was created or changed: everybody who cares is told, as a GET would show it now (HUB-SSE-57)."""
        if new["roundStartedAt"] is None:
            self.nodes.forget(new["id"])
        finished = self.open_jobs.changed(old, new)
        if event is not None:
            detail = await self.detail(new)
            await self.streams.tell(new, event, detail)
            await self.webhooks.tell(new, event, detail, now, batch_finished=finished)
        await self.scheduler.changed(old, new, now)

    async def job(self, account: str, id_: str) -> Row | None:
        """A job of an account as it is now."""
        await self.settle()
        row = await self.store.get(JOB, id_)
        return row if row is not None and row["account"] == account else None

    async def detail(self, row: Row) -> dict[str, Any]:
        """A job as its owner sees it, now."""
        node = await self.store.get(NODE, row["nodeId"])
        return self.shapes.detail(row, node)

    async def batch(self, account: str, id_: str) -> list[Row]:
        """The jobs of a batch, in the order of ``queuedAt``; empty where the account has no such batch."""
        return list(await self.store.listed(JOB, "batch", (account, id_)))

    async def load(self, account: str) -> dict[str, int]:
        """How many of an account's jobs are queued, running, and queued on a node that is offline."""
        counts: Counter[str] = Counter()
        for row in await self.store.listed(JOB, "account", (account,)):
            counts[row["status"]] += 1
            if row["status"] == "queued" and not await self.nodes.online(row["nodeId"]):
                counts["stalledQueued"] += 1
        return {name: counts[name] for name in ("queued", "running", "stalledQueued")}

    async def reset(self) -> None:
        """Remove everything; open streams are told that their jobs are gone."""
        self.streams.delete_all()
        self.webhooks.stop()
        self.agenda.clear()
        await self.store.clear()
        await self.rebuild()

    def close(self) -> None:
        """The world goes away: no stream, delivery or timer outlives it."""
        self.driver.stop()
        self.streams.end_all()
        self.webhooks.stop()

    async def save(self) -> Saved:
        """All rows, to be restored as often as is wanted."""
        await self.settle()
        return await self.store.save()

    async def restore(self, saved: Saved) -> None:
        """Be as it was saved; streams that are open are told that their jobs are gone. The clock was set before."""
        self.streams.delete_all()
        self.webhooks.stop()
        self.agenda.clear()
        await self.store.restore(saved)
        await self.rebuild()
        await self.settle()

    async def rebuild(self) -> None:
        """Everything that is derived from rows, made anew."""
        await self.open_jobs.rebuild()
        await self.scheduler.rebuild()
        await self.nodes.rebuild()
        await self.webhooks.rebuild()
        self.driver.arm(await self.engine.next_instant())
