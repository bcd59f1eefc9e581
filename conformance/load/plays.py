"""One job and the Runtimes that race for it: all that may happen to a job, much of it at the same moment."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

from contract_tests.histories.checkers import end_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from conformance.load.actors import Actor, Application, Work
    from contract_tests.histories.operations import Limits, Operation

GRANTS, TOO_MANY = 12, 20
"""After so many locks whoever holds the job ends it at once, or all leave: no build may keep a play going for ever."""
ENDINGS = {
    "result": 28,
    "results at once": 12,
    "retry": 16,
    "retries at once": 12,
    "result and failure at once": 6,
    "give up": 6,
    "lapse": 12,
    "edge": 6,
    "run long": 2,
}
"""How an attempt ends, and how often of a hundred times."""
SLOW = ("lapse", "edge", "run long")
"""Endings that take as long as a lock."""
SHORT_LOCK = 3.0
"""Seconds; longer locks lapse less often, so that a run does not wait most of the time."""


class Play:
    """The life of one job."""

    def __init__(
        self,
        work: Work,
        cast: Sequence[Actor],
        application: Application | None,
        limits: Limits,
        random: Random,
        hurry: Callable[[], bool],
    ) -> None:
        """``hurry``: whether the time of the run is over, and what is begun only to be ended."""
        self.work, self._cast, self._application, self._limits = work, cast, application, limits
        self._random, self._hurry = random, hurry
        self.over = False
        self.left = False
        """Whether it was left although the job may yet go on."""
        self._bell = asyncio.Event()
        self._grants = 0
        self._lapses = self._moved = time.monotonic()

    async def run(self) -> None:
        """Play until the job has ended, or nothing happens to it any more; then try what must not succeed any more."""
        await asyncio.gather(*(actor.ready() for actor in self._cast))
        async with asyncio.TaskGroup() as group:
            for actor in self._cast:
                group.create_task(self._runtime(actor))
            group.create_task(self._outside())
        await asyncio.gather(*(self._afterwards(actor) for actor in self._cast))
        await self._insist(self._inspect)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _heard(self, operation: Operation | None) -> Operation | None:
        """Take note of an answer."""
        if operation is None:
            return None
        if operation.accepted and operation.kind in ("lock", "heartbeat", "fail", "result"):
            self._moved = time.monotonic()
        if operation.accepted and operation.kind in ("lock", "heartbeat"):
            self._lapses = operation.invoked + self._limits.lock
        if end_of(operation) is not None:
            self.over = True
            self._ring()
        return operation

    def _ring(self) -> None:
        """Wake who waits for the job."""
        self._bell.set()
        self._bell = asyncio.Event()

    async def _inspect(self) -> Operation | None:
        return self._heard(None if self._application is None else await self._application.inspect(self.work))

    async def _runtime(self, actor: Actor) -> None:
        refusals = 0
        while not self.over:
            if self._chance(0.05):
                await actor.poll()
            lock = await actor.lock(self.work, self._random)
            self._heard(lock)
            if lock.accepted or (lock.lost and self._chance(0.5)):
                refusals = 0
                self._grants += 1
                if self._grants > TOO_MANY:
                    self.over = self.left = True
                attempt = lock.told.get("attemptNo", 0)
                await self._execute(actor, attempt if isinstance(attempt, int) else 0)
            elif not self.over:
                refusals += 1
                await self._refused(actor, lock, refusals)

    async def _refused(self, actor: Actor, lock: Operation, refusals: int) -> None:
        """Meddle, or wait: for a moment, until the lock may lapse, or until the holder gives up.

        All leave when the job was refused long after it had to be free: it is over, or stuck.
        """
        if self._chance(0.15):
            await self._meddle(actor)
        now = time.monotonic()
        stuck = lock.invoked - self._moved > self._limits.lock + self._limits.sweep + 1
        if stuck or (refusals > 2 and self._chance(0.1)):
            await self._inspect()
        if stuck:
            self.over = True
            return
        wait = self._random.uniform(0, min(self._limits.lock / 4, 0.01 * 2**refusals))
        left = self._lapses - now
        if 0 < left < self._limits.lock and self._chance(0.6):
            wait = left + self._random.uniform(-0.005, 0.02)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(wait, 0)):
                await self._bell.wait()

    async def _meddle(self, actor: Actor) -> None:
        """What is sent by who does not hold the job, or not any more."""
        match self._random.choice(("heartbeat", "result", "fail")):
            case "heartbeat":
                self._heard(await actor.heartbeat(self.work, self._random))
            case "result":
                self._heard(await actor.result(self.work, self._random, f"sha256-{actor.name}", 0))
            case "fail":
                self._heard(await actor.fail(self.work, self._random, retryable=self._chance(0.5)))

    def _ending(self) -> str:
        if self._hurry() or self._grants > GRANTS:
            return "result"
        slow = min(1.0, SHORT_LOCK / self._limits.lock)
        weights = [weight * (slow if name in SLOW else 1) for name, weight in ENDINGS.items()]
        return self._random.choices(list(ENDINGS), weights)[0]

    async def _execute(self, actor: Actor, attempt: int) -> None:
        """Hold the job for a while, then end it in one of many ways."""
        ending = self._ending()
        if self._chance(0.2):
            await actor.snapshot(self.work)
        for _ in range(self._random.choice((0, 1, 1, 2))):
            self._heard(await actor.heartbeat(self.work, self._random))
            await asyncio.sleep(self._random.uniform(0, 0.01))
        if self._chance(0.1):
            self._heard(await actor.lock(self.work, self._random))
        await actor.ready()
        hash_, other = f"sha256-{actor.name}-{attempt}", f"sha256-{actor.name}-{attempt}-again"
        match ending:
            case "results at once":
                first = actor.result(self.work, self._random, hash_, attempt)
                copy = self._random.choice((hash_, hash_, other))
                await self._at_once(first, actor.result(self.work, self._random, copy, attempt, second=True))
            case "retry":
                self._ring()
                await self._insist(lambda: actor.fail(self.work, self._random, retryable=True))
                if self._chance(0.3):
                    await self._meddle(actor)
            case "retries at once":
                self._ring()
                first = actor.fail(self.work, self._random, retryable=True)
                await self._at_once(first, actor.fail(self.work, self._random, retryable=True, second=True))
            case "result and failure at once":
                first = actor.result(self.work, self._random, hash_, attempt)
                retryable = self._chance(0.7)
                await self._at_once(first, actor.fail(self.work, self._random, retryable=retryable, second=True))
            case "give up":
                await self._insist(lambda: actor.fail(self.work, self._random, retryable=False))
            case "lapse":
                # At the very moment at which others may take it, or well after.
                late = self._random.choice((self._random.uniform(0.002, 0.03), self._limits.lock * 0.2))
                await asyncio.sleep(max(0.0, self._lapses - time.monotonic()) + late)
                for _ in range(self._random.choice((1, 2))):
                    await self._meddle(actor)
            case "edge":
                self._heard(await actor.heartbeat(self.work, self._random))
                await asyncio.sleep(self._limits.lock - self._random.uniform(-0.005, 0.03))
                self._heard(await actor.heartbeat(self.work, self._random))
                await self._insist(lambda: actor.result(self.work, self._random, hash_, attempt))
            case "run long":
                for _ in range(6):
                    await asyncio.sleep(self._limits.lock * 0.4)
                    self._heard(await actor.heartbeat(self.work, self._random))
                await self._insist(lambda: actor.result(self.work, self._random, hash_, attempt))
            case _:
                await self._insist(lambda: actor.result(self.work, self._random, hash_, attempt))

    async def _at_once(self, *sending: Awaitable[Operation]) -> None:
        for operation in await asyncio.gather(*sending):
            self._heard(operation)

    async def _insist(self, send: Callable[[], Awaitable[Operation | None]]) -> None:
        """Send again where the answer was lost, as a Runtime does."""
        for _ in range(3):
            operation = self._heard(await send())
            if operation is None or not operation.lost:
                return

    async def _outside(self) -> None:
        """The user or an Admin interferes, in some lives."""
        if self._application is None or self.work.user is None:
            return
        dice = self._random.random()
        if dice < 0.04:
            await asyncio.sleep(self._random.uniform(0, 0.01))
            self._heard(await self._application.cancel(self.work))
        elif dice < 0.14:
            await asyncio.sleep(self._random.choice((0.02, 0.05, 0.2)) * self._random.random())
            await self._application.revoke(self.work)

    async def _afterwards(self, actor: Actor) -> None:
        """A Runtime that did not hear of the end."""
        if self._chance(0.3):
            await actor.lock(self.work, self._random)
        if self._chance(0.5):
            await self._meddle(actor)
