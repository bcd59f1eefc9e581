"""Snapshots of worlds over the control plane, and a world as a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Answer, Refusal
from mock_server.control.lookup import touched
from mock_server.seed_data import export, to_yaml
from mock_server.snapshots import Exists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mock_server.calls import Call, Handler
    from mock_server.worlds import Worlds


class SnapshotHandlers:
    """Handlers of the tag ``snapshots``."""

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {
            "takeSnapshot": self.take,
            "listSnapshots": self.list,
            "restoreSnapshot": self.restore,
            "dropSnapshot": self.drop,
            "exportWorld": self.export,
        }

    async def take(self, call: Call) -> Answer:
        """Keep a world as it is."""
        world = touched(self.worlds, call)
        try:
            snapshot = await world.snapshots.take(world, (call.body or {}).get("name"))
        except Exists as error:
            raise Refusal("CONFLICT", str(error)) from None
        return Answer(201, snapshot.summary())

    async def list(self, call: Call) -> Answer:
        """The snapshots of a world."""
        return Answer(200, {"snapshots": [item.summary() for item in touched(self.worlds, call).snapshots.list()]})

    async def restore(self, call: Call) -> Answer:
        """Bring a world back to a snapshot."""
        world = touched(self.worlds, call)
        try:
            await world.snapshots.restore(world, call.path["name"])
        except LookupError as error:
            raise Refusal("NOT_FOUND", str(error.args[0])) from None
        return Answer(204)

    async def drop(self, call: Call) -> Answer:
        """Forget a snapshot."""
        try:
            touched(self.worlds, call).snapshots.drop(call.path["name"])
        except LookupError as error:
            raise Refusal("NOT_FOUND", str(error.args[0])) from None
        return Answer(204)

    async def export(self, call: Call) -> Answer:
        """A world as a data file."""
        data = await export(touched(self.worlds, call))
        if call.query["format"] == "json":
            return Answer(200, data)

        async def text() -> AsyncIterator[bytes]:
            yield to_yaml(data).encode()

        return Answer(200, text(), {"content-type": "application/yaml"})
