"""Polling, and taking jobs: as many at once as there are slots."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING

from conformance.examples.python_runtime.api import Lost
from conformance.examples.python_runtime.config import JOB_TYPES
from conformance.examples.python_runtime.health import milliseconds
from conformance.examples.python_runtime.jobs import Hold, Job, Reason, now
from conformance.examples.python_runtime.run import give_back
from conformance.examples.python_runtime.say import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.examples.python_runtime.api import Answer
    from conformance.examples.python_runtime.runtime import Runtime

LONGEST_PAUSE = 2.0  # seconds after failed polls, where the usual pause is not longer
REFUSALS = 2


class Worker:
    """Takes jobs and runs them; a job is `claimed` from before its lock until its report is answered (RT-LOCK-63)."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.config = runtime, runtime.config
        self.tasks: set[asyncio.Task[None]] = set()
        self.claimed: set[str] = set()
        self.refusals: dict[str, int] = {}
        self.holds: dict[str, Hold] = {}
        self.last_job_at: int | None = None

    async def poll_on(self) -> None:
        """Poll until we are to stop, whatever is answered (RT-SCHED-61); waits while every slot is taken."""
        failures = 0
        while not self.runtime.stopping.is_set():
            await self.free_slot()
            jobs = await self.poll()
            failures = failures + 1 if jobs is None else 0
            if jobs:
                self.start(jobs)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.runtime.stopping.wait(), self.pause(failures))

    async def free_slot(self) -> None:
        """Wait for a free slot."""
        while len(self.tasks) >= self.config.slots:
            await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)

    def pause(self, failures: int) -> float:
        """Time from a poll's answer to the next, a little different each time; longer after failures (RT-SCHED-62)."""
        pause = self.config.poll_interval
        if failures > 1:
            pause = max(pause, min(LONGEST_PAUSE, pause * 2.0 ** min(failures - 1, 10)))
        return pause * random.uniform(1.0, 1.2)  # noqa: S311 - no secret

    def types(self) -> Sequence[str]:
        """What we can do."""
        return JOB_TYPES

    async def poll(self) -> list[Job] | None:
        """The jobs that we can do; None where no list was answered."""
        try:
            answer = await self.runtime.api.poll(self.types())
        except Lost as lost:
            say(f"poll: {lost}")
            return None
        return self.listed(answer)

    def listed(self, answer: Answer) -> list[Job] | None:
        """The jobs in an answer, however odd it is."""
        entries = answer.body.get("jobs") if answer.ok and isinstance(answer.body, dict) else None
        if not isinstance(entries, list):
            say(f"poll: no jobs in an answer {answer.status}")
            return None
        return [job for job in map(Job.read, entries) if job is not None]

    def start(self, jobs: list[Job]) -> None:
        """Set the free slots to work on a list; each locks only what it runs at once."""
        waiting = iter(jobs)
        for _ in range(min(self.config.slots - len(self.tasks), len(jobs))):
            task = asyncio.create_task(self.take(waiting))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def take(self, waiting: Iterator[Job]) -> None:
        """Run the first job that we get the lock of; one that is refused is left alone, the next one tried."""
        for job in waiting:
            if self.runtime.stopping.is_set():
                return
            if not self.may_claim(job):
                continue
            self.claimed.add(job.id)
            try:
                hold = await self.lock(job)
                if hold is not None:
                    await self.run(hold)
                    return
            finally:
                self.claimed.discard(job.id)

    def may_claim(self, job: Job) -> bool:
        """Not while we have it, nor after the API has refused it to our token twice (RT-AUTH-61)."""
        return job.id not in self.claimed and self.refusals.get(job.id, 0) < REFUSALS

    async def lock(self, job: Job) -> Hold | None:
        """The hold on a job; None where it was not granted. Where the answer is lost, or of no use, we ask again."""
        for _ in range(2):
            sent = now()
            try:
                answer = await self.runtime.api.lock(job)
            except Lost:
                answer = None
            if answer is not None and answer.ok and isinstance(answer.body, dict):
                self.refusals.clear()
                return self.held(job, answer, sent)
            if answer is not None and not answer.ok and not answer.transient:
                if answer.unauthorized:
                    self.refusals[job.id] = self.refusals.get(job.id, 0) + 1
                return None
            hold = await self.not_answered(job, sent)
            if hold is not None or self.runtime.stopping.is_set() or not self.asks_again():
                return hold
        return None

    def held(self, job: Job, answer: Answer, sent: float) -> Hold:
        """The hold that an answer grants."""
        hold = self.runtime.Hold(job.told(answer.body), sent, self.config.lock_seconds)
        hold.lock_until = answer.body.get("lockUntil")
        return hold

    def asks_again(self) -> bool:
        """Whether a lock whose answer is lost is asked for once more (RT-LOCK-62)."""
        return True

    async def not_answered(self, job: Job, sent: float) -> Hold | None:
        """A lock's answer is lost."""
        del job, sent
        await asyncio.sleep(0.1)
        return None

    async def run(self, hold: Hold) -> None:
        """Run a job that is held, or give it back where we are to stop."""
        self.holds[hold.job.id] = hold
        self.last_job_at = milliseconds()
        try:
            await asyncio.sleep(0)  # a signal that came before the lock's answer is seen before it
            if self.runtime.stopping.is_set():
                await self.give_back(hold)
            else:
                await self.runtime.Run(self.runtime, hold).run()
        except Exception as error:  # the others go on
            say(f"{hold.job.id}: {type(error).__name__}")
        finally:
            self.holds.pop(hold.job.id, None)
            self.last_job_at = milliseconds()

    async def give_back(self, hold: Hold) -> None:
        """Give back a lock that was granted after the signal."""
        await give_back(self.runtime, hold)

    async def drain(self) -> None:
        """After the signal: let what runs end, then have it reported as failed, then let go."""
        await self.wait(self.config.drain_seconds)
        for hold in self.holds.values():
            hold.stop(Reason.SHUTDOWN)
        await self.wait(self.config.report_seconds)
        for task in self.tasks:
            task.cancel()
        await self.wait(1.0)

    async def wait(self, seconds: float) -> None:
        """Wait for the end of what runs."""
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=seconds)
