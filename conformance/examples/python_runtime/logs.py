"""Invocation logs: sent beside the work, which never waits for them nor minds their fate (RT-LOG-10)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.api import Lost

if TYPE_CHECKING:
    from conformance.examples.python_runtime.runtime import Runtime

Entry = dict[str, Any]
_PAUSES = (0.0, 0.5, 1.5, 3.0)


class Logs:
    """Takes the logs of calls and sends each at once."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.sending: set[asyncio.Task[None]] = set()

    def add(self, entry: Entry) -> None:
        """A call ended; may be called while our task is being cancelled, so it waits for nothing."""
        self.send([entry])

    def job_ended(self) -> None:
        """Nothing waits for the end of a job here."""

    def send(self, entries: list[Entry]) -> None:
        """Send entries beside the work."""
        task = asyncio.create_task(self.deliver(entries))
        self.sending.add(task)
        task.add_done_callback(self.sending.discard)

    async def deliver(self, entries: list[Entry]) -> None:
        """Send entries, a few times where no final answer comes."""
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            try:
                answer = await self.runtime.api.logs(entries)
            except Lost:
                continue
            if not answer.transient:
                return

    async def flush(self, seconds: float) -> None:
        """Before the end: wait for what is on its way."""
        if self.sending:
            await asyncio.wait(self.sending, timeout=seconds)
