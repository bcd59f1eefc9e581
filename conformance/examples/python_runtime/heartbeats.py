"""Keeping a lock, and learning that it is lost or the job unwanted."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from conformance.examples.python_runtime.api import Answer, Lost
from conformance.examples.python_runtime.jobs import Hold, LockLost, Reason, now

if TYPE_CHECKING:
    from conformance.examples.python_runtime.runtime import Runtime


class Heart:
    """Heartbeats of one hold, the first at once. None waits for another's answer, so one that hangs costs nothing."""

    def __init__(self, runtime: Runtime, hold: Hold) -> None:
        self.runtime, self.config, self.hold = runtime, runtime.config, hold
        self.soon = asyncio.Event()
        self.refused, self.over = 0, False
        self.beats: set[asyncio.Task[None]] = set()

    async def live(self) -> None:
        """Beat until cancelled, or the lock is lost."""
        watch = asyncio.create_task(self.watch())
        try:
            with contextlib.suppress(LockLost):
                await self.beat_on()
        finally:
            for task in (watch, *self.beats):
                task.cancel()

    async def beat_on(self) -> None:
        """Beat; the next comes after the usual pause, or sooner where one failed."""
        while not self.over:
            self.hold.check()
            self.soon.clear()
            if self.due():
                task = asyncio.create_task(self.beat())
                self.beats.add(task)
                task.add_done_callback(self.beats.discard)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.soon.wait(), self.pause())
                await asyncio.sleep(self.pause() / 4)

    def due(self) -> bool:
        """Whether to beat now.

        A report that was taken ends the lock, even where its answer is lost: until we know, a heartbeat would be
        refused, and after that nothing may be sent any more. So we beat only where the lock would lapse.
        """
        return not self.hold.reporting or self.hold.until - now() < self.config.lock_seconds * 0.55

    def pause(self) -> float:
        """Time between heartbeats."""
        return self.config.heartbeat_pause

    def patience(self) -> float:
        """Time for an answer: one that takes longer comes after others that were sent meanwhile."""
        return self.config.lock_seconds / 2

    async def watch(self) -> None:
        """See the lock lapse where no heartbeat was answered for its length (RT-HB-63).

        Where we are to end anyway, the job is given back while the lock still holds (RT-HEALTH-63).
        """
        last = self.config.heartbeat_interval
        while not self.hold.lost.is_set():
            left = self.hold.until - now()
            if left <= last and self.runtime.stopping.is_set():
                self.hold.stop(Reason.SHUTDOWN)
            await asyncio.sleep(max(0.0, left if left <= last else left - last))
            with contextlib.suppress(LockLost):
                self.hold.check()

    async def beat(self) -> None:
        """One heartbeat."""
        sent = now()
        try:
            answer = await self.runtime.api.heartbeat(self.hold.job, self.patience())
        except Lost:
            self.failed()
            return
        self.judge(answer, sent)

    def failed(self) -> None:
        """Try again before the lock lapses (RT-HB-61)."""
        self.soon.set()

    def judge(self, answer: Answer, sent: float) -> None:
        """What an answer means."""
        if answer.ok:
            self.refused = 0
            self.hold.extend(sent)
            if answer.cancel_requested:
                self.cancel()
        elif answer.status in (404, 409):
            self.lose()
        elif answer.transient:
            self.failed()
        else:
            self.refused += 1
            if not answer.unauthorized or self.refused > 1:
                self.over = True
                self.hold.stop(Reason.REFUSED)

    def cancel(self) -> None:
        """The job is not wanted any more."""
        self.hold.stop(Reason.CANCELLED)

    def lose(self) -> None:
        """The lock is not ours any more."""
        self.hold.stop(Reason.LOST)
