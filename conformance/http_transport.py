"""The suites' way to the target: HTTP/1.1 over sockets of our own, every exchange recorded."""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import h11

from conformance.recording import RECORDER
from contract_tests.checks import CheckFailed, NoAnswer, Silent, TargetVanished
from contract_tests.transport import Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_ANSWER = 16 * 2**20

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpTransport:
    """Sends each request on a connection of its own, so that a build that closes connections is not at fault.

    Answers are read with ``h11``, strictly: one that is cut off, lies about its length or is no HTTP fails the check.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        answer_seconds: float = ANSWER_SECONDS,
        heard: Callable[[Request, Response], None] | None = None,
    ) -> None:
        """``base_url`` may have a path; in recorded commands ``api_key`` is a variable; ``heard`` is told each answer.

        Raises ``ValueError`` for a ``base_url`` that is no http(s) URL.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{base_url}` is no http:// or https:// URL")
        self.base_url = base_url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._authority = parts.netloc.rpartition("@")[2]
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._seconds, self._api_key, self._heard = answer_seconds, api_key, heard

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
        reader, writer = streams
        sent = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                response, rest = await self._read(reader, writer, request, payload, sent)
        except CheckFailed:
            self._record(request, None)
            raise
        except TimeoutError:
            self._record(request, None)
            raise Silent("an answer", f"none within {self._seconds:g} s") from None
        except (OSError, EOFError) as error:
            self._record(request, None)
            raise NoAnswer("an answer", f"the connection broke: {error}") from None
        except h11.RemoteProtocolError as error:
            self._record(request, None)
            raise NoAnswer(
                "an answer in HTTP/1.1", f"the connection was closed or the answer is broken: {error}"
            ) from None
        finally:
            writer.close()
        if self._heard is not None:
            self._heard(request, response)
        self._record(request, (response.status, dict(response.headers), response.content))
        if rest:
            what = f"{response.status}, and {len(rest)} bytes after its end: {rest[:80].decode('latin-1')}"
            raise CheckFailed("an answer that ends where its head says", what)
        return response

    async def _read(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: Request, payload: bytes, sent: float
    ) -> tuple[Response, bytes]:
        """The answer, and what came behind it."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=request.method, target="/", headers=[("host", "-"), ("connection", "close")]))
        parser.send(h11.EndOfMessage())
        try:
            writer.write(payload)
            await writer.drain()
        except OSError:
            pass  # a server may answer and close before it has read everything: what it said is still there to read
        head: h11.Response | None = None
        body = b""
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                parser.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
                if len(body) > MAX_ANSWER:
                    raise CheckFailed(f"an answer of at most {MAX_ANSWER} bytes", "more than that")
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                break
        if head is None:
            raise NoAnswer("an answer", "the connection was closed without one")
        headers: dict[str, str] = {}
        for raw_name, raw_value in head.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return Response(head.status_code, headers, body, sent, time.monotonic()), parser.trailing_data[0]

    def _record(self, request: Request, response: tuple[int, dict[str, str], bytes] | None) -> None:
        recorder = RECORDER.get(None)
        if recorder is not None:
            url = self.base_url + request.path
            recorder.record(request.method, url, request.headers, request.content, response, secret=self._api_key)
