"""Whether jobs are settled for good, so that nothing more is to come of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.runtimes.stage import LiveStage
    from contract_tests.runtime.history import History

FINAL = ("succeeded", "failed", "cancelled")
PATIENCE = 13.0
"""Seconds after a job's end in which its logs, and further tries of a report whose answer was lost, are to come.

They have 10, with what clocks differ by 11.5; what comes a little later is to be seen, too.
"""
_LOOK = 0.4


class Settling:
    """Some jobs of one stage, as they come to their ends."""

    def __init__(self, stage: LiveStage, jobs: Sequence[str]) -> None:
        self._stage, self._jobs = stage, jobs
        self._final: dict[str, float] = {}
        self._looked = 0.0
        self.missing = ""
        """What was not there yet at the last look."""

    async def done(self) -> bool:
        """Whether all is there. The jobs themselves are looked at now and then only."""
        now = time.monotonic()
        if now - self._looked >= _LOOK:
            self._looked = now
            for job in self._jobs:
                if job not in self._final:
                    status = (await self._stage.inspect(job))["status"]
                    if status in FINAL:
                        self._final[job] = time.monotonic()
                    else:
                        self.missing = f"{job} is {status}"
        if len(self._final) < len(self._jobs):
            return False
        history = await self._stage.history()
        open_ = [lack for job in self._jobs if (lack := self._lacking(job, history))]
        self.missing = "; ".join(open_)
        return not open_

    @property
    def given_up(self) -> bool:
        """Whether all jobs ended so long ago that nothing more is to be expected."""
        ended = len(self._final) == len(self._jobs)
        return ended and time.monotonic() > max(self._final.values(), default=0) + PATIENCE

    def _lacking(self, job: str, history: History) -> str | None:
        if self._stage.running:
            last = next((hold for hold in reversed(history.holds) if hold.job == job), None)
            if last is not None and last.end is None:
                return f"the Runtime got no answer that ends its work on {job}"
        calls = [call for call in history.of(MODEL) if call.job == job]
        entries = [entry for _, entry in history.logs if entry.get("jobId") == job]
        traces = {entry["traceId"] for entry in entries if isinstance(entry.get("traceId"), str)}
        logged = len(traces) + sum(not isinstance(entry.get("traceId"), str) for entry in entries)
        return f"{len(calls)} model calls of {job} have {logged} logs" if logged < len(calls) else None
