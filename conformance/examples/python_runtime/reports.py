"""Telling the API what became of a job, again until it answers."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.api import Answer, Lost
from conformance.examples.python_runtime.jobs import Hold, LockLost, now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from conformance.examples.python_runtime.failures import Failure
    from conformance.examples.python_runtime.runtime import Runtime

TRY_SECONDS = 2.5  # three tries that hang fit into ten seconds (RT-RES-86)
AT_LEAST_SECONDS = 12.0


class Verdict(Enum):
    """What became of a report."""

    SETTLED = "the API knows, or does not want to"
    REFUSED = "the API refuses this result"
    CANCELLED = "the job was cancelled before an answer came"


class Reports:
    """Sends one hold's report. The body is made once: every try is the same (RT-RES-85, RT-FAIL-71)."""

    def __init__(self, runtime: Runtime, hold: Hold) -> None:
        self.runtime, self.config, self.hold = runtime, runtime.config, hold

    async def result(self, body: dict[str, Any]) -> Verdict:
        """Submit a result."""
        job = self.hold.job
        answer = await self.deliver(lambda: self.runtime.api.result(job, body, TRY_SECONDS), self.hold.cancelled)
        if answer is None:
            return Verdict.CANCELLED if self.hold.cancelled.is_set() else Verdict.SETTLED
        return self.verdict(answer)

    def verdict(self, answer: Answer) -> Verdict:
        """What the final answer to a result means."""
        settled = answer.ok or answer.status in (404, 409) or answer.unauthorized or answer.transient
        return Verdict.SETTLED if settled else Verdict.REFUSED

    async def failure(self, failure: Failure) -> None:
        """Submit a failure."""
        job = self.hold.job
        body = self.runtime.api.signed(
            errorCode=failure.code,
            errorMessage=failure.message,
            retryable=self.retryable(failure),
            rawError=failure.raw or failure.message,
        )
        await self.deliver(lambda: self.runtime.api.fail(job, body, TRY_SECONDS), None)

    def retryable(self, failure: Failure) -> bool:
        """The flag that is sent."""
        return failure.retryable

    def pause(self, number: int) -> float:
        """Time before the try that follows ``number`` others."""
        return min(0.15 * 2.0 ** (number - 1), 2.0)

    async def deliver(self, send: Callable[[], Awaitable[Answer]], unless: asyncio.Event | None) -> Answer | None:
        """Send until a final answer comes; None where none came, or ``unless`` was set before.

        Raises :class:`LockLost`, also when a heartbeat learns of it meanwhile.
        """
        until = max(now() + AT_LEAST_SECONDS, self.hold.deadline)
        number = refused = 0
        self.hold.reporting = True
        while True:
            self.hold.check()
            answer = await self.attempt(send, unless)
            number += 1
            refused += answer is not None and answer.unauthorized
            if answer is not None and not answer.transient and (not answer.unauthorized or refused > 1):
                return answer
            if (unless is not None and unless.is_set()) or now() + self.pause(number) > until:
                return None
            await self.rest(self.pause(number), unless)
            if unless is not None and unless.is_set():
                return None

    async def attempt(self, send: Callable[[], Awaitable[Answer]], unless: asyncio.Event | None) -> Answer | None:
        """One try; a cancel that comes meanwhile leaves it half a heartbeat's time to be answered."""
        sending = asyncio.ensure_future(send())
        try:
            if unless is not None:
                await _either(sending, unless)
                if not sending.done():
                    await asyncio.wait({sending}, timeout=self.config.heartbeat_interval / 2)
            else:
                await asyncio.wait({sending})
            return sending.result() if sending.done() else None
        except Lost:
            return None
        finally:
            sending.cancel()

    async def rest(self, seconds: float, unless: asyncio.Event | None) -> None:
        """Wait for the next try; less where there will be none. Raises :class:`LockLost`."""
        ends = [asyncio.ensure_future(event.wait()) for event in (self.hold.lost, unless) if event is not None]
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        if self.hold.lost.is_set():
            raise LockLost


async def _either(sending: asyncio.Future[Answer], event: asyncio.Event) -> None:
    waiting = asyncio.ensure_future(event.wait())
    both: set[asyncio.Future[Any]] = {sending, waiting}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
