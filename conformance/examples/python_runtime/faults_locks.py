"""Faults of taking jobs."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.examples.python_runtime import worker
from conformance.examples.python_runtime.api import PATIENCE, Lost
from conformance.examples.python_runtime.faulty import CarelessHeart, CarelessHold, Fault
from conformance.examples.python_runtime.jobs import now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.examples.python_runtime.config import Config
    from conformance.examples.python_runtime.jobs import Hold, Job


class WorksWithoutLock(Fault):
    """Work starts straight from the poll's answer."""

    name, rules = "works-without-lock", ("RT-LOCK-14",)
    rows = ("CF-01",)

    class Worker(worker.Worker):
        """Does not ask."""

        async def lock(self, job: Job) -> Hold | None:
            """Granted by itself."""
            return self.runtime.Hold(job, now(), self.config.lock_seconds)


class WorksAfterRefusal(Fault):
    """Work starts whatever the lock's answer was."""

    name, rules = "works-after-refusal", ("RT-LOCK-14",)
    rows = ("CF-01",)
    needs = "a lock answered 409 or 5xx"

    class Worker(worker.Worker):
        """Asks for form's sake."""

        async def lock(self, job: Job) -> Hold | None:
            """Granted in any case."""
            return await super().lock(job) or self.runtime.Hold(job, now(), self.config.lock_seconds)


class WorksAfterLostLock(Fault):
    """A lock whose answer was lost is taken to be granted."""

    name, rules = "works-after-lost-lock", ("RT-LOCK-14",)
    rows = ("CF-01", "CF-04")
    needs = "a lock whose request was lost, so that it was not granted"

    class Worker(worker.Worker):
        """Is an optimist."""

        async def not_answered(self, job: Job, sent: float) -> Hold | None:
            """It will have been granted."""
            return self.runtime.Hold(job, sent, self.config.lock_seconds)


class CallsBeforeLock(Fault):
    """The snapshot is asked for together with the lock, to save time."""

    name, rules = "calls-before-lock", ("RT-LOCK-14",)
    rows = ("CF-01",)
    needs = "a job; clearest where the lock's answer is delayed"

    class Worker(worker.Worker):
        """Is in a hurry."""

        async def lock(self, job: Job) -> Hold | None:
            """Both at once."""
            early = asyncio.create_task(self.runtime.api.snapshot(job, PATIENCE))
            try:
                return await super().lock(job)
            finally:
                early.cancel()
                await asyncio.wait({early})
                if not early.cancelled():
                    early.exception()


class LocksInAdvance(Fault):
    """Every listed job is locked, then they are done one after the other; those that wait have no heartbeats."""

    name, rules = "locks-in-advance", ("RT-HB-10", "RT-HB-64")
    rows = ("CF-02",)
    needs = "several jobs at once whose model calls together take longer than a lock lasts"
    Hold = CarelessHold
    Heart = CarelessHeart

    class Worker(worker.Worker):
        """Hoards."""

        async def take(self, waiting: Iterator[Job]) -> None:
            """All that are listed."""
            jobs = [job for job in waiting if self.may_claim(job)]
            self.claimed.update(job.id for job in jobs)
            holds = [hold for job in jobs if (hold := await self.lock(job))]
            for hold in holds:
                await self.run(hold)
            self.claimed.difference_update(job.id for job in jobs)

        async def free_slot(self) -> None:
            """One list at a time."""
            while self.tasks:
                await asyncio.wait(self.tasks)


class HammersLock(Fault):
    """A lock that was refused is asked for five times more, at once."""

    name, rules = "hammers-lock", ("RT-LOCK-60",)
    needs = "a lock answered 409"

    class Worker(worker.Worker):
        """Insists."""

        async def lock(self, job: Job) -> Hold | None:
            """Again and again."""
            for _ in range(6):
                hold = await super().lock(job)
                if hold is not None or self.runtime.stopping.is_set():
                    return hold
                await asyncio.sleep(0.1)
            return None


class RefusalBlocks(Fault):
    """After a lock that was refused it takes no job any more, though it polls on."""

    name, rules = "refusal-blocks", ("RT-LOCK-61",)
    needs = "a lock answered 409, other jobs besides"

    def configured(self, config: Config) -> Config:
        """One lock after the other, so that it shows."""
        return replace(config, slots=1)

    class Worker(worker.Worker):
        """Is offended."""

        offended = False

        async def lock(self, job: Job) -> Hold | None:
            """Remembers."""
            hold = await super().lock(job)
            self.offended = self.offended or hold is None
            return hold

        def may_claim(self, job: Job) -> bool:
            """Not after that."""
            return not self.offended and super().may_claim(job)


class LocksTwice(Fault):
    """A job that it works on is locked again where a poll lists it, and run twice."""

    name, rules = "locks-twice", ("RT-LOCK-63",)
    rows = ("CF-05",)
    needs = "a job listed again (after its lock lapsed) while its run goes on"
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Does not believe refusals."""

        def lose(self) -> None:
            """Goes on."""

    class Worker(worker.Worker):
        """Has no memory."""

        def may_claim(self, job: Job) -> bool:
            """Always."""
            del job
            return True


class CrashesOnRedelivery(Fault):
    """A job listed again while it is worked on ends the process."""

    name, rules = "crashes-on-redelivery", ("RT-SCHED-61",)
    rows = ("CF-05",)
    needs = "a job listed again (after its lock lapsed) while its run goes on"
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Does not believe refusals."""

        def lose(self) -> None:
            """Goes on."""

    class Worker(worker.Worker):
        """Takes it for impossible."""

        def start(self, jobs: list[Job]) -> None:
            """Dies of it."""
            if any(job.id in self.holds for job in jobs):
                os._exit(70)
            super().start(jobs)


class HammersLostLock(Fault):
    """A lock whose answer was lost is asked for ten times, refusals or not."""

    name, rules = "hammers-lost-lock", ("RT-LOCK-60",)
    rows = ("CF-04",)
    needs = "a lock granted whose answer is lost"

    class Worker(worker.Worker):
        """Insists on an answer."""

        async def not_answered(self, job: Job, sent: float) -> Hold | None:
            """Asks on, until it is granted."""
            for _ in range(10):
                await asyncio.sleep(0.1)
                try:
                    answer = await self.runtime.api.lock(job)
                except Lost:
                    continue
                if answer.ok:
                    return self.held(job, answer, sent)
            return None
