"""The journal over the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Answer

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler


class JournalHandlers:
    """Handlers of the tag ``journal``."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {"readJournal": self.read}

    async def read(self, call: Call) -> Answer:
        """What the world saw."""
        wanted = {name: call.query[name] for name in ("operationId", "jobId", "caller", "status")}
        entries = call.world.journal.query(since=call.query["since"], limit=call.query["limit"], **wanted)
        return Answer(200, {"entries": entries, "evicted": call.world.journal.evicted})
