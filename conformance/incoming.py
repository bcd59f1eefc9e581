"""An answer as it comes in over a connection, read strictly by ``h11``."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import h11

from contract_tests.checks import CheckFailed, NoAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.transport import Request

MAX_ANSWER = 16 * 2**20
_CHUNK = 65536

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Incoming:
    """The answer to one request on a connection of its own: first its head, then its body, piece by piece.

    Whatever is wrong with the framing is :class:`~contract_tests.checks.NoAnswer`; how long one waits is the caller's
    to say. A wait that is given up loses nothing: it can be taken up again.
    """

    def __init__(self, streams: Streams, request: Request) -> None:
        self._reader, self._writer = streams
        self._parser = h11.Connection(h11.CLIENT)
        # What was asked decides how the answer is framed; it is sent apart from this, as the check has it.
        asked = h11.Request(method=request.method, target="/", headers=[("host", "-"), ("connection", "close")])
        self._parser.send(asked)
        self._parser.send(h11.EndOfMessage())
        self._body = bytearray()
        self.began = self.ended = False
        """Whether any byte came of it, and whether it is whole."""

    async def send(self, payload: bytes) -> None:
        """Send the request, or what is left of it."""
        # A server may answer and close before it has read everything: what it said is still there to read.
        with contextlib.suppress(OSError):
            self._writer.write(payload)
            await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers, names in lower case."""
        event = await self._event()
        while isinstance(event, h11.InformationalResponse):
            event = await self._event()
        if not isinstance(event, h11.Response):
            raise NoAnswer("an answer", "the connection was closed without one")
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return event.status_code, headers

    async def more(self) -> bytes:
        """What came next of the body, b"" at its end. The head has been read before."""
        while not self.ended:
            event = await self._event()
            if isinstance(event, h11.Data):
                self._body += event.data
                if len(self._body) > MAX_ANSWER:
                    raise CheckFailed(f"an answer of at most {MAX_ANSWER} bytes", "more than that")
                if event.data:
                    return bytes(event.data)
            else:
                self.ended = True
        return b""

    @property
    def body(self) -> bytes:
        """What came of the body so far."""
        return bytes(self._body)

    @property
    def rest(self) -> bytes:
        """What came behind the end of the answer."""
        return self._parser.trailing_data[0]

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()

    async def _event(self) -> object:
        with _told():
            while (event := self._parser.next_event()) is h11.NEED_DATA:
                data = await self._reader.read(_CHUNK)
                self.began = self.began or bool(data)
                self._parser.receive_data(data)
            return event


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        raise NoAnswer("an answer", f"the connection broke: {error}") from None
    except h11.RemoteProtocolError as error:
        raise NoAnswer("an answer in HTTP/1.1", f"the connection was closed or the answer is broken: {error}") from None
