"""Faults of starting and ending."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.examples.python_runtime import reports, run, worker
from conformance.examples.python_runtime.failures import Failure
from conformance.examples.python_runtime.faulty import CarelessHeart, CarelessHold, Fault
from conformance.examples.python_runtime.jobs import LockLost

if TYPE_CHECKING:
    from conformance.examples.python_runtime.config import Config
    from conformance.examples.python_runtime.jobs import Hold

_TERM = "SIGTERM while a job runs"
_LATE = "SIGTERM while a lock is being granted (its answer delayed)"


class DropsJobs(Fault):
    """After SIGTERM it ends at once; what it held is dropped."""

    name, rules = "drops-jobs", ("RT-HEALTH-63",)
    rows = ("CF-55",)
    needs = _TERM

    class Worker(worker.Worker):
        """Lets go."""

        async def drain(self) -> None:
            """Of all."""
            os._exit(0)


class TakesJobsAfterSignal(Fault):
    """For ten seconds after SIGTERM it goes on as before, new jobs included."""

    name, rules = "takes-jobs-after-signal", ("RT-HEALTH-60",)
    rows = ("CF-58", "CF-59")
    needs = "SIGTERM, and a job made after it"

    def signalled(self) -> None:
        """Soon."""
        asyncio.get_running_loop().call_later(10, self.stopping.set)


class NeverExits(Fault):
    """After SIGTERM it takes no job, and stays."""

    name, rules = "never-exits", ("RT-HEALTH-64",)
    needs = "SIGTERM, and 30 seconds"

    async def stop(self, polling: asyncio.Task[None]) -> None:
        """All but the end."""
        await self.stop_polling(polling)
        await self.worker.drain()
        await asyncio.Event().wait()


class IgnoresSignals(Fault):
    """SIGTERM is ignored."""

    name, rules = "ignores-signals", ("RT-HEALTH-60", "RT-HEALTH-64")
    rows = ("CF-59",)
    needs = "SIGTERM, a job made after it, and 30 seconds"

    def signalled(self) -> None:
        """Nothing."""


class EarlySignalLost(Fault):
    """A SIGTERM of the first two seconds is lost."""

    name, rules = "early-signal-lost", ("RT-HEALTH-60", "RT-HEALTH-64")
    rows = ("CF-59",)
    needs = "SIGTERM in the first second, after the process has taken the signal over"

    def listen_to_signals(self) -> None:
        """Later."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        asyncio.get_running_loop().call_later(2, super().listen_to_signals)


class SecondSignalKills(Fault):
    """A second SIGTERM ends it at once; what it held is dropped."""

    name, rules = "second-signal-kills", ("RT-HEALTH-63",)
    rows = ("CF-55", "CF-59")
    needs = "SIGTERM twice while a job runs"

    def signalled(self) -> None:
        """Then at once."""
        if self.stopping.is_set():
            os._exit(1)
        self.stopping.set()


class SignalEndsHeartbeats(Fault):
    """After SIGTERM no heartbeat is sent, although the job goes on."""

    name, rules = "signal-ends-heartbeats", ("RT-HEALTH-62", "RT-HB-64", "RT-HB-10")
    rows = ("CF-20",)
    needs = _TERM + " for longer than a lock lasts"
    Hold = CarelessHold

    class Heart(CarelessHeart):
        """Stops first."""

        def due(self) -> bool:
            """Not after the signal."""
            return not self.runtime.stopping.is_set() and super().due()


class LateLockKept(Fault):
    """A lock granted after SIGTERM is dropped, not given back."""

    name, rules = "late-lock-kept", ("RT-HEALTH-61",)
    rows = ("CF-58",)
    needs = _LATE

    class Worker(worker.Worker):
        """Has gone."""

        async def give_back(self, hold: Hold) -> None:
            """Nothing."""


class LateLockRun(Fault):
    """A job locked after SIGTERM is run."""

    name, rules = "late-lock-run", ("RT-HEALTH-61",)
    rows = ("CF-58",)
    needs = _LATE

    class Worker(worker.Worker):
        """Has begun."""

        async def give_back(self, hold: Hold) -> None:
            """Rather run it."""
            await self.runtime.Run(self.runtime, hold).run()


class LateLockFinal(Fault):
    """A lock granted after SIGTERM is given back by a failure that is not retryable."""

    name, rules = "late-lock-final", ("RT-HEALTH-61",)
    rows = ("CF-58",)
    needs = _LATE

    class Worker(worker.Worker):
        """Fails it for good."""

        async def give_back(self, hold: Hold) -> None:
            """As cancelled."""
            with contextlib.suppress(LockLost):
                await self.runtime.Reports(self.runtime, hold).failure(Failure("JOB_CANCELLED", "Shut down"))


class ShutdownFinal(Fault):
    """What SIGTERM interrupts is reported as not retryable."""

    name, rules = "shutdown-final", ("RT-HEALTH-63",)
    rows = ("CF-55",)
    needs = _TERM + " whose model call takes long"

    def configured(self, config: Config) -> Config:
        """No patience."""
        return replace(config, drain_seconds=0.2)

    class Reports(reports.Reports):
        """Fails it for good."""

        def retryable(self, failure: Failure) -> bool:
            """Not again."""
            return failure.code != "RUNTIME_SHUTDOWN" and super().retryable(failure)


class DrainsForEver(Fault):
    """After SIGTERM it waits for the running call, however long."""

    name, rules = "drains-for-ever", ("RT-HEALTH-64",)
    needs = "SIGTERM while the model does not answer, a long time limit, and 30 seconds"

    def configured(self, config: Config) -> Config:
        """All patience."""
        return replace(config, drain_seconds=1e6, model_timeout=1e6)

    class Run(run.Run):
        """Has no limit either."""

        def time_left(self) -> float:
            """For ever."""
            return 1e6
