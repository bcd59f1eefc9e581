"""One process of a Runtime: started, listened to, signalled, and ended with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
from typing import TYPE_CHECKING

from conformance.runtimes.environment import surroundings
from conformance.runtimes.strays import end_all, expect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.runtimes.leaks import OutputWatch

SIGNALS = {name: getattr(signal, f"SIG{name}") for name in ("TERM", "KILL", "STOP", "CONT")}
_SPAN = 0.25
_MOST = 16 * 2**20
"""Bytes of output that are read in a span of ``_SPAN`` seconds: who says more is held up, not we."""
_DRAIN = 1.0
"""Seconds for what was said and not yet read when the process ended."""
_LAST = 10.0


class CannotStart(RuntimeError):  # noqa: N818
    """The command can't be started at all; the text says why, and the mend."""


class RuntimeProcess:
    """A running Runtime, in a session and a process group of its own.

    It ends as a container does: once its first process ended, whatever that left behind is killed, too. ``exited`` is
    called with the exit status (negative: by that signal) as soon as the first process ended.
    """

    def __init__(self, process: asyncio.subprocess.Process, mark: str, exited: Callable[[int], None]) -> None:
        self._process, self._mark, self._exited = process, mark, exited
        self._output: asyncio.ReadTransport | None = None
        self._listener: _Listener | None = None
        self._waiting = asyncio.ensure_future(self._wait())
        self.status: int | None = None
        """The exit status; None while it runs."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        variables: Mapping[str, str],
        watch: OutputWatch,
        exited: Callable[[int], None],
    ) -> RuntimeProcess:
        """Start the command with these variables. Raises :class:`CannotStart`."""
        mark = secrets.token_hex(8)
        # A pipe of ours, not asyncio's: whether the process ended must not wait for who else holds its output.
        reading, writing = os.pipe()
        expect(mark)
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                env=surroundings(os.environ, variables, mark),
                start_new_session=True,  # Ctrl-C is ours; and its group can be ended as one
            )
        except (OSError, ValueError) as error:
            os.close(reading)
            end_all(mark)
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotStart(
                f"{command[0]} can't be started: {reason}; name a program that can be run, with its arguments"
            ) from None
        except BaseException:  # we are being ended, and do not know whether it was started
            os.close(reading)
            end_all(mark)
            raise
        finally:
            os.close(writing)
        expect(mark, process.pid)
        runtime = cls(process, mark, exited)
        try:
            await runtime._listen(reading, watch)
        except BaseException:  # nobody knows of it yet
            runtime.abandon()
            raise
        return runtime

    async def _listen(self, reading: int, watch: OutputWatch) -> None:
        listener = self._listener = _Listener(watch)
        pipe = os.fdopen(reading, "rb", 0)
        self._output, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: listener, pipe)

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    async def wait(self, within: float) -> int | None:
        """Wait until it ended, at most ``within`` seconds; its status, None where it still runs."""
        await asyncio.wait([self._waiting], timeout=within)
        return self.status

    def signal(self, name: str) -> None:
        """Send ``TERM``, ``KILL``, ``STOP`` or ``CONT``; nothing happens where it ended.

        TERM goes to the first process alone, as an orchestrator sends it; the others to the whole group, as it happens
        to a machine or a container that dies or stands still.
        """
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.status is not None:
                return
            if name == "TERM":
                self._process.send_signal(SIGNALS[name])
            else:
                os.killpg(self.pid, SIGNALS[name])

    async def end(self) -> int | None:
        """End it and everything that it started, whatever they do. Its status; None where even that did not end it."""
        try:
            self.signal("KILL")
            await self.wait(_LAST)
            if self._listener is not None:
                await asyncio.wait([self._listener.closed], timeout=_DRAIN)  # what was said is read
        finally:
            self.abandon()
        return self.status

    def abandon(self) -> None:
        """End it without waiting: for whoever is being ended himself."""
        if not self._waiting.done():
            self.signal("KILL")
            end_all(self._mark, self.pid)
        self._waiting.cancel()
        if self._listener is not None:
            self._listener.stop()
        if self._output is not None:
            self._output.close()

    async def _wait(self) -> None:
        self.status = await self._process.wait()
        self._exited(self.status)
        await asyncio.to_thread(end_all, self._mark, self.pid)


class _Listener(asyncio.Protocol):
    """Reads the output for ever, no faster than we can afford."""

    def __init__(self, watch: OutputWatch) -> None:
        self._watch = watch
        self._transport: asyncio.ReadTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._began, self._read = self._loop.time(), 0
        self._resume: asyncio.TimerHandle | None = None
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is there."""
        if isinstance(transport, asyncio.ReadTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """A piece of output."""
        self._watch.feed(data)
        now = self._loop.time()
        if now - self._began > _SPAN:
            self._began, self._read = now, 0
        self._read += len(data)
        if self._read > _MOST and self._transport is not None:
            self._transport.pause_reading()
            self._resume = self._loop.call_later(self._began + _SPAN - now, self._go_on)

    def connection_lost(self, _: Exception | None) -> None:
        """Nobody holds the other end any more, or we closed ours."""
        self.stop()
        if not self.closed.done():
            self.closed.set_result(None)

    def stop(self) -> None:
        """Read no more."""
        if self._resume is not None:
            self._resume.cancel()

    def _go_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
