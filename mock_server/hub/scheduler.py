"""Which job runs next: one at a time for each project of a node, the projects side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.hub.entities import JOB

if TYPE_CHECKING:
    from mock_server.agenda import Item
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

Place = tuple[str, str]
"""A project of a node: nodeId and projectId."""

_START = 1_000
"""After the timers of the same instant: a round that ends frees its project first."""


class Scheduler:
    """Starts queued jobs as soon as their project is free (HUB-FIELD-17, HUB-BATCH-11, HUB-NODE-08, 51 to 56)."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.busy: dict[Place, str] = {}
        """The job whose round keeps a project busy; that may be a job that was cancelled meanwhile."""
        self.places: dict[str, set[str]] = {}
        """Projects of each node that ever had a job."""
        self._waiting: dict[Place, Item] = {}
        self._todo: dict[Place, int] = {}
        self._at_work = False

    async def rebuild(self) -> None:
        """From rows alone."""
        self.busy.clear()
        self.places.clear()
        self._waiting.clear()
        rows = await self.hub.store.rows(JOB)
        for row in rows:
            self._note(row)
        now = self.hub.clock.now()
        for node, projects in self.places.items():
            for project in projects:
                await self.consider((node, project), now)

    def _note(self, row: Row) -> Place:
        place = (row["nodeId"], row["projectId"])
        self.places.setdefault(row["nodeId"], set()).add(row["projectId"])
        if row["roundStartedAt"] is not None:
            self.busy[place] = row["id"]
        elif self.busy.get(place) == row["id"]:
            del self.busy[place]
        return place

    async def changed(self, old: Row | None, new: Row, now: int) -> None:
        """A job was created or changed. New ones start when all of their request are known (HUB-NODE-55, HUB-WH-02)."""
        place = self._note(new)
        if old is None:
            self._wake(place, now)
        else:
            await self.consider(place, now)

    async def node_changed(self, node_id: str, now: int) -> None:
        """A node came or went."""
        for project in sorted(self.places.get(node_id, ())):
            await self.consider((node_id, project), now)

    async def consider(self, place: Place, now: int) -> None:
        """Start the first job of a project that is free; where that job is of a later instant, then.

        What a start changes is considered after it, not within: a round may end at its start.
        """
        self._todo[place] = now
        if self._at_work:
            return
        self._at_work = True
        try:
            while self._todo:
                await self._consider(*self._todo.popitem())
        finally:
            self._at_work = False

    async def _consider(self, place: Place, now: int) -> None:
        self.hub.agenda.drop(self._waiting.pop(place, None))
        if place in self.busy or not await self.hub.nodes.online(place[0]):
            return
        row = await self.first(place)
        if row is None:
            return
        if row["queuedAt"] > now:  # a millisecond later than the one before it, in the same request
            self._wake(place, row["queuedAt"])
            return
        await self.hub.nodes.start(row, now)

    def _wake(self, place: Place, instant: int) -> None:
        """Consider a project at an instant."""

        async def later(instant: int) -> None:
            await self.consider(place, instant)

        self.hub.agenda.drop(self._waiting.pop(place, None))
        self._waiting[place] = self.hub.agenda.add(instant, _START, later)

    async def first(self, place: Place) -> Row | None:
        """The job that is to run next."""
        return await self.hub.store.first(JOB, "project", place)
