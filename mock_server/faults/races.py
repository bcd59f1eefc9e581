"""What builds have in common that read, let others in, and then write by what they had read."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar

from mock_server.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.executor import Outcome
    from mock_server.store import Row

WINDOW = 0.003
"""Real seconds between a read and the write that goes by it."""


class ReadsFirst(Engine):
    """Reads the job, lets others in, then does one operation, of which it tells by what it had read."""

    operation: ClassVar[str]

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        if operation_id != self.operation:
            return await super().operate(operation_id, caller=caller, path=path, body=body)
        before = await self.store.get("Job", path["jobId"])
        await asyncio.sleep(WINDOW)
        outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
        if before is not None:
            self.believe(before, outcome, caller)
        return outcome

    def believe(self, before: Row, outcome: Outcome, caller: str) -> None:
        """Change the outcome to what it would be, were the row still as it was."""
        raise NotImplementedError
