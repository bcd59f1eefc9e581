"""The stage of one scenario: what plays make use of (:class:`contract_tests.runtime.stage.Stage`)."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING, Any

from conformance.runtimes.health import Prober
from conformance.runtimes.process import SIGNALS, RuntimeProcess
from conformance.runtimes.rivals import Rival
from conformance.runtimes.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from conformance.runtimes.environment import Given, Template
    from conformance.runtimes.leaks import OutputWatch
    from conformance.runtimes.recording import Recording
    from contract_tests.runtime.history import History, Probe
    from contract_tests.runtime.stage import Plan, Timing

LOOK = 0.2
"""Seconds between two looks at the journal while somebody waits."""
READ = 2.0
"""Seconds between two readings of the journal while nobody does."""
_GRACE = 2.0
_PAUSE, _SILENT = 2.0, 13.0


class StageError(RuntimeError):
    """A play asked for what can't be had; the text says what."""


class LiveStage:
    """One Runtime and its world. ``given`` is what the Runtime is given, whether by us or by whoever started it."""

    def __init__(
        self,
        timing: Timing,
        recording: Recording,
        watch: OutputWatch,
        given: Given,
        rival: Rival,
        command: Sequence[str] | None = None,
        templates: Sequence[Template] = (),
    ) -> None:
        """``command`` None: the Runtime was started by hand."""
        self.timing, self.facts = timing, recording.facts
        self.attached = command is None
        self.recording, self.watch, self.world = recording, watch, recording.world
        self.process: RuntimeProcess | None = None
        self.termed: float | None = None
        """When the process that runs got SIGTERM (monotonic seconds)."""
        self._command, self._variables = command, given.variables(templates)
        self._rival = rival
        self._stopped = self._asked_to_end = False
        self._turns = 0
        """How often the process was stopped, resumed, killed or started, or ended."""
        self._prober = Prober(given.health_port, recording, watch, self._alive)
        self._tasks: list[asyncio.Task[None]] = []

    # What a play uses.

    async def job(self, **params: Any) -> str:
        """Create a job, with the timing's time limit unless told otherwise; its id."""
        values = await self.state("job", **{"timeoutSeconds": self.timing.seconds, **params})
        return str(values["jobId"])

    async def state(self, name: str, **params: Any) -> dict[str, Any]:
        """Set up a provider state; its values. A key among them is searched in the Runtime's output from here on."""
        values = await self.world.state(name, params)
        if isinstance(values.get("apiKey"), str):
            self.watch.know(values["apiKey"], "model key")
        return values

    async def faults(self, *plans: Plan) -> None:
        """Add fault plans."""
        if plans:
            await self.world.control("POST", "faults", list(plans))

    async def clear_faults(self) -> None:
        """Remove every fault plan."""
        await self.world.control("DELETE", "faults")

    async def model(self, *scripts: Mapping[str, Any]) -> None:
        """Replace the scripts of the model."""
        await self.world.control("PUT", "model/scripts", list(scripts))

    async def inspect(self, job: str) -> dict[str, Any]:
        """Every column of a job."""
        return await self.world.state("inspect-job", {"jobId": job})

    async def rival(self, operation: str, job: str | None = None, **body: Any) -> int:
        """A request of another Runtime (``lockJob`` or ``lock``, ...); its status, 0 where no answer came."""
        return await self._rival.request(operation, job, body)

    async def history(self) -> History:
        """What was recorded so far."""
        await self.world.read()
        return self.recording.history

    async def until(self, condition: Callable[[History], Any], within: float, what: str) -> bool:
        """Wait until something holds; whether it came. A Runtime that ended by itself is not waited for."""
        began = time.monotonic()
        while True:
            looked = time.monotonic()
            gone = self.gone  # looked at before the journal: what it did last is read
            if condition(await self.history()):
                return True
            now = time.monotonic()
            if now - began >= within or gone:
                break
            # Where there is much to look at, we look less often: judging must not take the Runtime's time.
            await asyncio.sleep(min(max(LOOK, 5 * (now - looked)), began + within - now))
        why = ": the Runtime had ended by itself" if self.gone else ""
        self.note(f"waited {time.monotonic() - began:.1f} s for {what}, which did not come{why}")
        return False

    async def done(self, *jobs: str, within: float | None = None) -> bool:
        """Wait until the jobs are settled for good, the Runtime knows it, and every model call of them has its log."""
        settling = Settling(self, jobs)
        if within is None:
            within = self.timing.timeout + 15 + 5 * len(jobs)
        until = time.monotonic() + within
        while time.monotonic() < until and not self.gone:
            if await settling.done():
                return True
            if settling.given_up:
                break
            await asyncio.sleep(min(LOOK, max(until - time.monotonic(), 0)))
        why = "; the Runtime had ended by itself" if self.gone else ""
        self.note(f"the end of {' and '.join(jobs)} did not come: {settling.missing or 'it was not looked at'}{why}")
        return False

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def signal(self, name: str) -> None:
        """Send the Runtime a signal. Raises :class:`StageError` for another one, and for a Runtime started by hand."""
        if self.attached:
            raise StageError(f"a Runtime that was started by hand can't be sent SIG{name}")
        if name not in SIGNALS:
            raise StageError(f"there is no signal {name} here; there are {', '.join(SIGNALS)}")
        if self.process is None or self.process.status is not None:
            self.note(f"SIG{name} could not be sent: the Runtime is not running")
            return
        if name in ("TERM", "KILL"):
            self._asked_to_end = True
        if name == "TERM" and self.termed is None:
            self.termed = time.monotonic()
        if name in ("STOP", "CONT"):
            self._stopped = name == "STOP"
        if name != "TERM":
            self._turns += 1
        self.recording.tell("signal", signal=name)
        self.process.signal(name)

    async def exited(self, within: float) -> int | None:
        """Wait until the process ended, at most ``within`` seconds; its status."""
        return None if self.process is None else await self.process.wait(within)

    async def restart(self) -> None:
        """Start the Runtime. Raises :class:`StageError` where it runs, ``CannotStart`` where it can't be started."""
        if self._command is None:
            raise StageError("a Runtime that was started by hand can't be restarted")
        if self.process is not None:
            if self.process.status is None:
                raise StageError("the Runtime is to be restarted, and still runs; end it first")
            await self.process.end()
        self.termed, self._stopped, self._asked_to_end = None, False, False
        self._turns += 1
        self._prober.restarted()
        at = time.time()
        self.process = await RuntimeProcess.start(self._command, self._variables, self.watch, self._ended)
        self.recording.tell("started", at, env=sorted(self._variables))

    async def health(self) -> Probe | None:
        """Ask the Runtime's health once, and record what came; None where it serves none, or does not run."""
        return await self._prober.ask() if self.running else None

    def note(self, text: str) -> None:
        """Say something in the timeline."""
        self.recording.tell("note", text=self.watch.clean(text))

    # What plays its play uses.

    @property
    def running(self) -> bool:
        """Whether the Runtime lives and is not stopped; of one started by hand that is not known, and assumed."""
        return self.attached or (self.process is not None and self.process.status is None and not self._stopped)

    @property
    def gone(self) -> bool:
        """Whether the Runtime ended without having been asked to: nothing more is to come from it."""
        return self.process is not None and self.process.status is not None and not self._asked_to_end

    async def polled(self, within: float, hint: Callable[[], Awaitable[bool]] | None = None) -> bool:
        """Wait for the Runtime's first poll; whether it came. Its health is asked from then on.

        ``hint`` tells of a request that does not show yet, which will do, too.
        """
        until = time.monotonic() + within
        while True:
            gone = self.gone  # looked at before the journal: its last words are read
            await self.world.read()
            if self.recording.polled or (hint is not None and await hint()):
                self.watch_health()
                return True
            if gone or time.monotonic() > until:
                return False
            await asyncio.sleep(LOOK)

    def watch_health(self) -> None:
        """Ask for the Runtime's health from here on until :meth:`finish`."""
        self._tasks.append(asyncio.create_task(self._prober.keep_asking()))

    def follow(self) -> None:
        """Wait for the first poll in the background, for as long as the scenario takes."""

        async def waiting() -> None:
            with contextlib.suppress(RuntimeError):  # who waits for something is told of it
                await self.polled(math.inf)

        self._tasks.append(asyncio.create_task(waiting()))

    def keep_reading(self) -> None:
        """Read the journal from here on until :meth:`finish`, so that nothing is lost that had to make room."""
        self._tasks.append(asyncio.create_task(self._read()))

    async def finish(self, grace: float) -> None:
        """End the Runtime: SIGTERM, unless it got it or ended before; after ``grace`` seconds SIGKILL for all of it.

        Then read the rest of the journal. Raises what reading raises, after everything has ended.
        """
        try:
            if self.process is not None and self.process.status is None:
                await self._hear_out()
                if self._stopped:
                    await self.signal("CONT")
                if self.termed is None:
                    await self.signal("TERM")
                left = grace - (time.monotonic() - (self.termed or 0))
                if await self.process.wait(max(left, 0)) is None:
                    await self.signal("KILL")
            if self.process is not None:
                await self.process.end()
        finally:
            self.abandon()
        await self._settle()

    async def _hear_out(self) -> None:
        """Where polls stopped, wait until that can be told from a pause, or one comes: the next may take 10 s."""
        pause = max(_PAUSE, 5 * self.timing.poll_interval)
        while self.termed is None and self.process is not None and self.process.status is None and not self._stopped:
            history = await self.history()
            last = max((call.ended for call in history.calls), default=0.0)
            silent = time.time() - self.recording.zero - last
            if not history.polls or silent < pause or silent > _SILENT:
                return
            await asyncio.sleep(LOOK)

    def abandon(self) -> None:
        """End everything without waiting."""
        for task in self._tasks:
            task.cancel()
        if self.process is not None:
            self.process.abandon()

    async def _settle(self) -> None:
        """Exchanges that broke off with the process come to the journal; read until nothing more does."""
        until = time.monotonic() + _GRACE
        quiet = 0
        while quiet < 2 and time.monotonic() < until:
            await asyncio.sleep(LOOK)
            quiet = quiet + 1 if await self.world.read() == 0 else 0

    async def _read(self) -> None:
        with contextlib.suppress(RuntimeError):  # who waits for something is told of it
            while True:
                await asyncio.sleep(READ)
                await self.world.read()

    def _alive(self) -> int | None:
        return self._turns if self.running else None

    def _ended(self, status: int) -> None:
        self._turns += 1
        self.recording.tell("exited", status=status)
