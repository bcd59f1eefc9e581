"""Snapshots of a world: its rows and clock at one moment, to go back to. Rows are shared, so that one costs little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from openapi.problems import nearest

if TYPE_CHECKING:
    from mock_server.store import Saved
    from mock_server.worlds import World

MOST = 32
"""Snapshots that a world can hold."""


class Part(Protocol):
    """What else of a world belongs to a snapshot, beside its rows and its clock (counters, for one)."""

    def save(self) -> Any:
        """What is to be restored, on its own: later changes don't reach it."""

    def restore(self, saved: Any) -> None:
        """Be as it was saved; it can be restored again."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A world at one moment."""

    name: str
    now: int
    """The instant of the world's clock, epoch milliseconds."""
    jobs: int
    rows: Saved
    hub: Saved | None
    """The rows of the Agent Hub; None where nobody had used it."""
    parts: tuple[tuple[Part, Any], ...]

    def summary(self) -> dict[str, Any]:
        """The snapshot as the control plane shows it."""
        return {"name": self.name, "now": self.now, "jobs": self.jobs}


class Exists(ValueError):  # noqa: N818 - said to the caller as it is
    """Something of that name is there already, or there is no room for one more; the text has the mend."""


class Snapshots:
    """The snapshots of one world, by name."""

    def __init__(self) -> None:
        self._all: dict[str, Snapshot] = {}
        self._taken = 0

    def list(self) -> list[Snapshot]:
        """All of them, the oldest first."""
        return list(self._all.values())

    async def take(self, world: World, name: str | None = None) -> Snapshot:
        """Keep the world as it is now. Raises :class:`Exists`."""
        if name in self._all:
            raise Exists(f"the snapshot `{name}` is there already; delete it, or choose another name")
        if len(self._all) >= MOST:
            raise Exists(f"a world holds {MOST} snapshots at most; delete one that is not needed any more")
        while name is None or name in self._all:
            self._taken += 1
            name = f"snapshot-{self._taken}"
        now = await world.engine.settle()
        engine = world.engine
        jobs = len(await engine.store.rows(engine.machine.entity))
        parts = tuple((part, part.save()) for part in world.parts)
        hub = await world.hub.save() if world.has_hub else None
        snapshot = self._all[name] = Snapshot(name, now, jobs, await engine.store.save(), hub, parts)
        return snapshot

    async def restore(self, world: World, name: str) -> None:
        """Bring rows, clock and parts back; the journal goes on. Raises ``LookupError`` for an unknown name."""
        snapshot = self._find(name)
        await world.engine.store.restore(snapshot.rows)
        world.clock.set(snapshot.now)
        for part, saved in snapshot.parts:
            part.restore(saved)
        if snapshot.hub is not None:
            await world.hub.restore(snapshot.hub)
        elif world.has_hub:
            await world.hub.reset()

    def drop(self, name: str) -> None:
        """Forget one. Raises ``LookupError`` for an unknown name."""
        del self._all[self._find(name).name]

    def _find(self, name: str) -> Snapshot:
        if name not in self._all:
            mend = nearest(name, self._all) if self._all else "the world has none"
            raise LookupError(f"no snapshot is named `{name}`; {mend}")
        return self._all[name]
