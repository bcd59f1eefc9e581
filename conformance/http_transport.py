"""The suites' way to the target: HTTP/1.1 over sockets of our own, every exchange recorded."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from conformance.incoming import Incoming, Streams
from conformance.recording import CHECK, RECORDER
from contract_tests.checks import CheckFailed, NoAnswer, Silent, TargetVanished
from contract_tests.transport import Request, Response
from openapi.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from conformance.recording import Exchange

    Heard = Callable[[Request, Response, str], None]

ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5.0
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_OPEN: ContextVar[set[HttpStream]] = ContextVar("open")
"""The streams that the running check holds open."""


class HttpTransport:
    """Sends each request on a connection of its own, so that a build that closes connections is not at fault.

    Answers are read strictly: one that is cut off, lies about its length or is no HTTP fails the check.
    """

    def __init__(
        self,
        base_url: str,
        variables: Mapping[str, str] = _NO_VARIABLES,
        *,
        answer_seconds: float = ANSWER_SECONDS,
        redactor: Redactor | None = None,
    ) -> None:
        """``base_url`` may have a path; ``variables``: secrets, and by which variable recorded commands name each.

        ``redactor`` is the one that the recorders share. Raises ``ValueError`` for a ``base_url`` that is no http(s)
        URL.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{base_url}` is no http:// or https:// URL")
        self.base_url = base_url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._seconds, self._variables = answer_seconds, variables
        self._redactor = redactor or Redactor()
        self._listeners: list[Heard] = []

    def listen(self, heard: Heard) -> None:
        """Tell each answer from here on; see :class:`contract_tests.transport.Transport`."""
        self._listeners.append(heard)

    def learn(self, secret: str) -> None:
        """A secret that nothing recorded may show."""
        self._redactor.add(secret)

    async def send(self, request: Request) -> Response:
        """Send one request."""
        streams = await self._connect(request)
        return await self._exchange(streams, request, self._bytes(request))

    async def send_together(self, requests: Sequence[Request]) -> list[Response]:
        """Open all connections, send all but the last byte of each request, then the last bytes at once."""
        connections = [await self._connect(request) for request in requests]
        payloads = [self._bytes(request) for request in requests]
        for (_, writer), payload in zip(connections, payloads, strict=True):
            writer.write(payload[:-1])
            await writer.drain()
        await asyncio.sleep(0.01)  # the heads arrive before the first request is complete
        return await asyncio.gather(
            *(
                self._exchange(streams, request, payload[-1:])
                for streams, request, payload in zip(connections, requests, payloads, strict=True)
            )
        )

    async def open(self, request: Request) -> HttpStream:
        """Send one request and read the head of the answer; its body is read as it comes."""
        incoming = Incoming(await self._connect(request), request)
        sent = time.monotonic()
        exchange = self._record(request, None)
        try:
            async with asyncio.timeout(self._seconds):
                await incoming.send(self._bytes(request))
                status, headers = await incoming.head()
        except TimeoutError:
            incoming.close()
            raise Silent("the head of an answer", f"none within {self._seconds:g} s") from None
        except BaseException:
            incoming.close()
            raise
        return HttpStream(incoming, Response(status, headers, b"", sent, sent), self._ended(request, exchange))

    async def abandon(self, request: Request, *, unsent: int = 0) -> None:
        """Send one request, less its last ``unsent`` bytes, and close the connection without reading an answer."""
        _, writer = await self._connect(request)
        payload = self._bytes(request)
        with contextlib.suppress(OSError):  # that the build hangs up first is no matter: nobody reads what it says
            writer.write(payload[: len(payload) - unsent])
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        self._record(request, None)

    def mark(self, begins: bool) -> None:
        """What is sent from here on repeats the failure on its own: the commands of the check are those alone."""
        recorder = RECORDER.get(None)
        if recorder is not None:
            recorder.mark(begins)

    async def _connect(self, request: Request) -> Streams:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await asyncio.open_connection(self._host, self._port, ssl=self._ssl)
        except TimeoutError:
            self._record(request, None)
            raise TargetVanished(f"{self.base_url} accepts no connection within {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            self._record(request, None)
            raise TargetVanished(f"{self.base_url} can't be reached: {error.strerror or error}") from None
        except UnicodeError as error:
            raise TargetVanished(f"{self.base_url} can't be reached: {error}") from None

    def _bytes(self, request: Request) -> bytes:
        target = self._prefix + request.path
        lines = [f"{request.method} {target} HTTP/1.1", f"host: {self._authority}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if request.content or request.method in ("POST", "PUT", "PATCH"):
            lines.append(f"content-length: {len(request.content)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.content

    async def _exchange(self, streams: Streams, request: Request, payload: bytes) -> Response:
        incoming = Incoming(streams, request)
        sent = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                await incoming.send(payload)
                status, headers = await incoming.head()
                while await incoming.more():
                    pass
        except CheckFailed:
            self._record(request, None)
            raise
        except TimeoutError:
            self._record(request, None)
            raise Silent("an answer", f"none within {self._seconds:g} s") from None
        finally:
            incoming.close()
        response = Response(status, headers, incoming.body, sent, time.monotonic())
        self._told(request, response)
        self._record(request, response)
        if incoming.rest:
            raise CheckFailed("an answer that ends where its head says", _behind(status, incoming.rest))
        return response

    def _told(self, request: Request, response: Response) -> None:
        for heard in self._listeners:
            heard(request, response, CHECK.get())

    def _record(self, request: Request, response: Response | None) -> Exchange | None:
        recorder = RECORDER.get(None)
        if recorder is None:
            return None
        url, answer = self.base_url + request.path, None if response is None else _answer(response)
        return recorder.record(request.method, url, request.headers, request.content, answer, variables=self._variables)

    def _ended(self, request: Request, exchange: Exchange | None) -> Callable[[Response], None]:
        """What is to be done with what came over a stream."""

        def ended(response: Response) -> None:
            self._told(request, response)
            if exchange is not None:
                exchange.response, exchange.streamed = _answer(response), response.received - response.sent

        return ended


class HttpStream:
    """An answer that is read while it comes; see :class:`contract_tests.transport.Stream`."""

    def __init__(self, incoming: Incoming, head: Response, ended: Callable[[Response], None]) -> None:
        """``ended`` is told once, with what came, when the answer has ended, broken or been closed."""
        self.status, self.headers = head.status, head.headers
        self._incoming, self._head = incoming, head
        self._ended: Callable[[Response], None] | None = ended
        self._failure: NoAnswer | None = None
        _OPEN.get(set()).add(self)

    async def read(self, seconds: float) -> bytes:
        """What came next, b"" at the end of the answer and from then on.

        Raises ``Silent`` when nothing comes within ``seconds``, after which it can be asked again, and ``NoAnswer``
        when the connection breaks or the framing is broken.
        """
        if self._failure is not None:
            raise self._failure
        if self._ended is None and not self._incoming.ended:
            raise ValueError("the stream was closed")
        try:
            async with asyncio.timeout(seconds):
                came = await self._incoming.more()
        except TimeoutError:
            raise Silent("more of the answer", f"nothing within {seconds:g} s") from None
        except CheckFailed as failure:
            self._failure = failure if isinstance(failure, NoAnswer) else NoAnswer(failure.expected, failure.actual)
            await self.close()
            raise self._failure from None
        if not came:
            await self.close()
            if self._incoming.rest:
                what = _behind(self.status, self._incoming.rest)
                self._failure = NoAnswer("an answer that ends where its head says", what)
                raise self._failure
        return came

    async def close(self) -> None:
        """Close the connection; the exchange has what came so far."""
        if self._ended is None:
            return
        ended, self._ended = self._ended, None
        self._incoming.close()
        _OPEN.get(set()).discard(self)
        head = self._head
        ended(Response(head.status, head.headers, self._incoming.body, head.sent, time.monotonic()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@contextlib.asynccontextmanager
async def closing_streams() -> AsyncIterator[None]:
    """Close what is opened inside and still open at its end, so that no check leaves a stream to the next."""
    opened: set[HttpStream] = set()
    token = _OPEN.set(opened)
    try:
        yield
    finally:
        for stream in tuple(opened):
            await stream.close()
        _OPEN.reset(token)


def _answer(response: Response) -> tuple[int, dict[str, str], bytes]:
    return response.status, dict(response.headers), response.content


def _behind(status: int, rest: bytes) -> str:
    return f"{status}, and {len(rest)} bytes after its end: {rest[:80].decode('latin-1')}"
