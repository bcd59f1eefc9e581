"""The process: what it is made of, its start and its end. A fault or a variant puts another class in a part's place."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, ClassVar

from conformance.examples.python_runtime import (
    api,
    health,
    heartbeats,
    inputs,
    jobs,
    logs,
    model,
    outputs,
    prompts,
    reports,
    run,
    worker,
)

if TYPE_CHECKING:
    from conformance.examples.python_runtime.config import Config


class Runtime:
    """A Runtime, one of each part; `Run`, `Hold` and what they use are made anew for each job."""

    Api: ClassVar[type[api.Api]] = api.Api
    Health: ClassVar[type[health.Health]] = health.Health
    Heart: ClassVar[type[heartbeats.Heart]] = heartbeats.Heart
    Hold: ClassVar[type[jobs.Hold]] = jobs.Hold
    Inputs: ClassVar[type[inputs.Inputs]] = inputs.Inputs
    Logs: ClassVar[type[logs.Logs]] = logs.Logs
    Model: ClassVar[type[model.Model]] = model.Model
    Outputs: ClassVar[type[outputs.Outputs]] = outputs.Outputs
    Prompt: ClassVar[type[prompts.Prompt]] = prompts.Prompt
    Reports: ClassVar[type[reports.Reports]] = reports.Reports
    Run: ClassVar[type[run.Run]] = run.Run
    Worker: ClassVar[type[worker.Worker]] = worker.Worker

    def __init__(self, config: Config) -> None:
        self.config = self.configured(config)
        self.stopping = asyncio.Event()
        self.api, self.model, self.logs = self.Api(self), self.Model(self), self.Logs(self)
        self.worker, self.health = self.Worker(self), self.Health(self)

    def configured(self, config: Config) -> Config:
        """The configuration as it is; variants change it."""
        return config

    def listen_to_signals(self) -> None:
        """SIGTERM and Ctrl-C ask to stop; asked again, we are stopping already."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.signalled)

    def signalled(self) -> None:
        """We are to stop."""
        self.stopping.set()

    async def main(self) -> None:
        """Run until asked to stop, then let what runs end. At most 25 seconds pass from the signal to the end."""
        self.listen_to_signals()
        await self.health.start()
        polling = asyncio.create_task(self.worker.poll_on())
        await self.stopping.wait()
        await self.stop(polling)

    async def stop_polling(self, polling: asyncio.Task[None]) -> None:
        """Let a poll that is on its way be answered, for a second; what it lists is left alone."""
        await asyncio.wait({polling}, timeout=1.0)
        polling.cancel()
        await asyncio.wait({polling})

    async def stop(self, polling: asyncio.Task[None]) -> None:
        """No new job; a poll, jobs, then their logs, then connections come to their end."""
        await self.stop_polling(polling)
        await self.worker.drain()
        await self.logs.flush(self.config.flush_seconds)
        self.health.close()
        await self.api.close()
        await self.model.close()
