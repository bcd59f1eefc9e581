"""Seeded faults of the hub's scheduler: whose turn it is in a project, and which projects run side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import part, put
from mock_server.hub.entities import JOB
from mock_server.hub.scheduler import Place, Scheduler
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.store import Row


def order(*columns: str) -> Callable[[dict[str, Any]], None]:
    """The queue of a project in another order; ``-`` before a column: descending."""
    return put("components", "schemas", "HubJob", "x-row", "lists", "project", "order", value=list(columns))


class OneByOne(Submissions):
    """Stores the jobs of a request one after the other, so that the first one is taken at once."""

    async def create(self, hub: Any, rows: list[Row]) -> list[Row]:
        made: list[Row] = []
        for row in rows:
            made += await super().create(hub, [row])
            await hub.done()
        return made


class AllAtOnce(Scheduler):
    """Runs the jobs of a project side by side."""

    async def _consider(self, place: Place, now: int) -> None:
        while True:
            before = self.busy.pop(place, None)
            await super()._consider(place, now)
            if self.busy.get(place) in (None, before):
                return


class NodeBusy(Scheduler):
    """One job at a time on a node, whatever the project."""

    async def _consider(self, place: Place, now: int) -> None:
        if any(node == place[0] for node, _ in self.busy):
            return
        await super()._consider(place, now)

    async def changed(self, old: Row | None, new: Row, now: int) -> None:
        await super().changed(old, new, now)
        if new["roundStartedAt"] is None:
            await self.node_changed(new["nodeId"], now)


class ProjectBusy(Scheduler):
    """One job at a time for a project, over all of its nodes."""

    async def _consider(self, place: Place, now: int) -> None:
        if any(project == place[1] for _, project in self.busy):
            return
        await super()._consider(place, now)


class WaitsForRetries(Scheduler):
    """A job that waits for its retry keeps its project busy."""

    async def _consider(self, place: Place, now: int) -> None:
        for row in await self.hub.store.rows(JOB):
            if (row["nodeId"], row["projectId"]) == place and row["nextRetryAt"] is not None:
                return
        await super()._consider(place, now)


class EachKey(Scheduler):
    """One job at a time of each key."""

    async def _consider(self, place: Place, now: int) -> None:
        busy = self.busy.get(place)
        first = await self.first(place)
        if busy is not None and first is not None:
            row = await self.hub.store.get(JOB, busy)
            if row is not None and row["account"] != first["account"]:
                del self.busy[place]
                await super()._consider(place, now)
                return
        await super()._consider(place, now)


class LooksLater(Scheduler):
    """Looks for work a second after something changed."""

    async def consider(self, place: Place, now: int) -> None:
        async def later(instant: int) -> None:
            await super(LooksLater, self).consider(place, instant)

        self.hub.agenda.add(now + 1000, 1_000, later)


class TooEager(Scheduler):
    """Starts a job before its `queuedAt`."""

    async def _consider(self, place: Place, now: int) -> None:
        row = await self.first(place)
        if row is None or row["queuedAt"] <= now or place in self.busy or not await self.hub.nodes.online(place[0]):
            await super()._consider(place, now)
            return
        await self.hub.nodes.start(row, now)


class Interrupts(Scheduler):
    """Forgets a running job where a more urgent one comes."""

    async def _consider(self, place: Place, now: int) -> None:
        first, busy = await self.first(place), self.busy.get(place)
        running = await self.hub.store.get(JOB, busy) if busy is not None else None
        if first is not None and running is not None and first["priority"] > running["priority"]:
            del self.busy[place]
        await super()._consider(place, now)


FAULTS = (
    Mutant("hub-node.each-key", "a project is serial for each key", ("HUB-NODE-51",), parts=part(scheduler=EachKey)),
    Mutant(
        "hub-node.one-for-all-nodes",
        "a project is serial over all of its nodes",
        ("HUB-NODE-52",),
        parts=part(scheduler=ProjectBusy),
    ),
    Mutant(
        "hub-node.looks-later", "work is looked for once a second", ("HUB-NODE-53",), parts=part(scheduler=LooksLater)
    ),
    Mutant(
        "hub-node.one-by-one",
        "the jobs of a request come one by one",
        ("HUB-NODE-55", "HUB-FIELD-17"),
        parts=part(submissions=OneByOne),
    ),
    Mutant("hub-node.too-eager", "a round starts before `queuedAt`", ("HUB-NODE-56",), parts=part(scheduler=TooEager)),
    Mutant(
        "hub-order.reversed",
        "the smaller priority runs first",
        ("HUB-FIELD-17",),
        edit=order("priority", "queuedAt", "id"),
    ),
    Mutant(
        "hub-order.no-priority", "priority is ignored", ("HUB-FIELD-17", "HUB-NODE-55"), edit=order("queuedAt", "id")
    ),
    Mutant(
        "hub-order.newest-first",
        "the newest of a priority runs first",
        ("HUB-NODE-54",),
        edit=order("-priority", "-queuedAt", "id"),
    ),
    Mutant(
        "hub-order.interrupts",
        "an urgent job starts beside the one that runs",
        ("HUB-BATCH-11", "HUB-FIELD-17", "HUB-NODE-51"),
        parts=part(scheduler=Interrupts),
    ),
    Mutant(
        "hub-order.all-at-once",
        "the jobs of a project run side by side",
        ("HUB-BATCH-11", "HUB-NODE-51"),
        parts=part(scheduler=AllAtOnce),
    ),
    Mutant(
        "hub-order.node-serial",
        "a node runs one job at a time",
        ("HUB-BATCH-11",),
        parts=part(scheduler=NodeBusy),
    ),
    Mutant(
        "hub-order.waits-for-retries",
        "a job that waits for its retry keeps its project busy",
        ("HUB-BATCH-11", "HUB-NODE-53"),
        parts=part(scheduler=WaitsForRetries),
    ),
)
