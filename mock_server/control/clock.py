"""The clock of a world over the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Answer, Refusal

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler


class ClockHandlers:
    """Handlers of the tag ``clock``."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {"readClock": self.read, "advanceClock": self.advance}

    async def read(self, call: Call) -> Answer:
        """The clock, and when the next timer is due."""
        world = call.world
        now = await world.engine.settle()
        return Answer(200, {"clock": world.clock.kind, "now": now, "nextDueAt": await world.next_instant()})

    async def advance(self, call: Call) -> Answer:
        """Move the clock forward, and tell what fired."""
        try:
            now, fired = await call.world.advance(call.body["seconds"], call.body["limit"])
        except ValueError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        left_out = fired.count - len(fired.entries)
        return Answer(200, {"now": now, "firedCount": fired.count, "fired": fired.entries, "leftOut": left_out})
