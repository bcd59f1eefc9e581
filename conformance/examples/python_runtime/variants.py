"""Runtimes that are right in another way: what the contract leaves to a Runtime, chosen differently."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from conformance.examples.python_runtime import api, logs, worker
from conformance.examples.python_runtime.jobs import Hold, Job, Reason, now
from conformance.examples.python_runtime.runtime import Runtime

if TYPE_CHECKING:
    from conformance.examples.python_runtime.config import Config
    from conformance.examples.python_runtime.logs import Entry

VARIANTS: dict[str, type[Variant]] = {}


class Variant(Runtime):
    """A Runtime that chooses differently; ``changes`` are of its configuration."""

    name: ClassVar[str]
    changes: ClassVar[dict[str, int | float | bool]] = {}

    def __init_subclass__(cls) -> None:
        VARIANTS[cls.name] = cls

    def configured(self, config: Config) -> Config:
        """The configuration with this variant's changes."""
        return replace(config, **self.changes)  # type: ignore[arg-type]


def listed() -> list[dict[str, str]]:
    """Name and description of each."""
    return [{"name": name, "doc": (made.__doc__ or "").strip()} for name, made in VARIANTS.items()]


class OneAtATime(Variant):
    """One job at a time; no polls while it runs (RT-SCHED-63, RT-SCHED-64)."""

    name = "one-at-a-time"
    changes: ClassVar = {"slots": 1}


class EagerHeartbeats(Variant):
    """A heartbeat every tenth of the lock (RT-HB-08)."""

    name = "eager-heartbeats"
    changes: ClassVar = {"heartbeats_a_lock": 10}


class BatchedLogs(Variant):
    """Logs are collected, and sent together a second after a job has ended (RT-LOG-72)."""

    name = "batched-logs"

    class Logs(logs.Logs):
        """Collects."""

        waiting: list[Entry]

        def add(self, entry: Entry) -> None:
            """Keep it."""
            self.waiting = [*getattr(self, "waiting", []), entry]

        def job_ended(self) -> None:
            """Send what there is, in a while."""
            task = asyncio.create_task(self.later())
            self.sending.add(task)
            task.add_done_callback(self.sending.discard)

        async def later(self) -> None:
            """Wait a second, unless the end is near."""
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.runtime.stopping.wait(), 1.0)
            await self.send_waiting()

        async def send_waiting(self) -> None:
            """Send all that waits."""
            entries, self.waiting = getattr(self, "waiting", []), []
            for first in range(0, len(entries), 500):
                await self.deliver(entries[first : first + 500])

        async def flush(self, seconds: float) -> None:
            """Send the rest."""
            await super().flush(seconds / 2)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.send_waiting(), seconds / 2)


class OwnRetries(Variant):
    """A model call that failed for a while is repeated, up to three calls (RT-RETRY-66)."""

    name = "own-retries"
    changes: ClassVar = {"model_tries": 3}


class OtherHeaderCase(Variant):
    """Headers in another case: their names have none."""

    name = "other-header-case"

    class Api(api.Api):
        """Writes as people do."""

        def headers(self, path: str, with_body: bool) -> dict[str, str]:
            """Words with capitals."""
            return {name.title(): value for name, value in super().headers(path, with_body).items()}


class NoKeepAlive(Variant):
    """A connection for each request."""

    name = "no-keep-alive"
    changes: ClassVar = {"keep_alive": False}


class PollsSlowly(Variant):
    """A second between polls, at least."""

    name = "polls-slowly"

    def configured(self, config: Config) -> Config:
        """Never below a second."""
        return replace(config, poll_interval=max(1.0, config.poll_interval))


class HeartbeatsToFindOut(Variant):
    """After a lost lock answer one heartbeat tells whether the lock is ours (RT-LOCK-62)."""

    name = "heartbeats-to-find-out"

    class Worker(worker.Worker):
        """Asks by heartbeat."""

        def asks_again(self) -> bool:
            """Not by a lock."""
            return False

        async def not_answered(self, job: Job, sent: float) -> Hold | None:
            """The hold counts from the heartbeat, the job's time from the lock."""
            await asyncio.sleep(0.1)
            asked = now()
            try:
                answer = await self.runtime.api.heartbeat(job, api.PATIENCE)
            except api.Lost:
                return None
            if not answer.ok:
                return None
            hold = self.runtime.Hold(job, asked, self.config.lock_seconds, sent)
            if answer.cancel_requested:
                hold.stop(Reason.CANCELLED)
            return hold


class LeavesLostLocks(Variant):
    """A job whose lock answer is lost is left (RT-LOCK-62)."""

    name = "leaves-lost-locks"

    class Worker(worker.Worker):
        """Lets go."""

        def asks_again(self) -> bool:
            """Never."""
            return False


class StreamsTheModel(Variant):
    """The model's answer comes as a stream of events."""

    name = "streams-the-model"
    changes: ClassVar = {"stream": True}
