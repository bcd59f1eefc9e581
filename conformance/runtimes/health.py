"""Asks a Runtime's health, again and again, through a whole scenario."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from conformance.incoming import Incoming
from contract_tests.checks import CheckFailed
from contract_tests.runtime.history import Probe
from contract_tests.transport import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.runtimes.leaks import OutputWatch
    from conformance.runtimes.recording import Recording

PATH = "/internal/runtime/health"
EVERY = 0.5
PATIENCE = 3.0
"""Seconds after the first poll in which somebody has to listen: the operation is optional."""
_SECONDS = 2.0
_LARGEST = 16 * 2**10
_SETTLING, _STEP = 1.0, 0.1
"""Seconds in which a process may end that could no more be asked: many close their doors first."""
_ASKED = Request("GET", PATH, {}, b"")


class Prober:
    """Asks on 127.0.0.1 and records what comes.

    ``life`` is a number while the Runtime can answer, None while it does not live or is stopped; another number tells
    that it was stopped, resumed or ended in between.
    """

    def __init__(
        self,
        port: int,
        recording: Recording,
        watch: OutputWatch,
        life: Callable[[], int | None],
    ) -> None:
        self._port = port
        self._recording, self._watch, self._life = recording, watch, life
        self._serves = False

    def restarted(self) -> None:
        """A new process: it may take its time until it listens."""
        self._serves = False

    async def ask(self) -> Probe | None:
        """Ask once and record what came; None where nobody listens, and this process never did."""
        began, clock, life = time.time(), time.monotonic(), self._life()
        status: int | None = None
        headers: dict[str, str] = {}
        body, instead = None, None
        incoming: Incoming | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                incoming = Incoming(await asyncio.open_connection("127.0.0.1", self._port), _ASKED)
                await incoming.send(_request(self._port))
                status, headers = await incoming.head()
                body = await self._body(incoming)
            self._serves = True
        except (CheckFailed, TimeoutError, OSError) as error:
            if incoming is None and not self._serves and not isinstance(error, TimeoutError):
                return None
            status, body, headers, instead = None, None, {}, _instead(error, incoming)
        finally:
            if incoming is not None:
                incoming.close()
        seconds = round(time.monotonic() - clock, 4)
        if status is None:
            for _ in range(round(_SETTLING / _STEP)):
                if self._life() != life:
                    return None  # it could not answer: it ended, or was stopped, while it was asked
                await asyncio.sleep(_STEP)
        clean = self._watch.redactor.data
        told = {"status": status, "body": clean(body), "seconds": seconds, "headers": clean(headers)}
        self._recording.tell("health", at=began, **told, instead=instead)
        return Probe(began - self._recording.zero, seconds, status, told["body"], told["headers"], instead)

    async def keep_asking(self) -> None:
        """Ask for as long as the Runtime serves its health; ends where it does not."""
        until = time.monotonic() + PATIENCE
        served = False
        while True:
            if self._life() is not None:
                served = (await self.ask()) is not None or served
            if not served and time.monotonic() > until:
                return
            await asyncio.sleep(EVERY)

    async def _body(self, incoming: Incoming) -> Any:
        """The body as JSON; None where it is none, or too long for what it is to say."""
        while await incoming.more():
            if len(incoming.body) > _LARGEST:
                return None
        text = incoming.body.decode("utf-8", "replace")
        self._watch.look(text, "the answer of the health operation")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None


def _request(port: int) -> bytes:
    # Some servers wait for open connections before they end.
    lines = (f"GET {PATH} HTTP/1.1", f"host: 127.0.0.1:{port}", "accept: application/json", "connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _instead(error: Exception, incoming: Incoming | None) -> str:
    """What came in the place of an answer, as :class:`Probe` names it."""
    if isinstance(error, TimeoutError):
        return "hung"
    return "garbled" if incoming is not None and incoming.began else "closed"
