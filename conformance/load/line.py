"""A connection that is kept, for many requests one after the other; and answers that are lost on purpose."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httptools
import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_SECONDS = 15.0
CONNECT_SECONDS = 5.0
GIVEN_UP = 50
"""After so many connections in a row that could not be opened the target is gone."""


class Gone(RuntimeError):  # noqa: N818
    """The target can't be reached any more; the text says why."""


class Place:
    """A base URL, and how often it could not be reached in a row."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host, self.port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self.prefix, self.authority = parts.path.rstrip("/"), parts.netloc
        self.ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self.refused = 0

    def request(self, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> bytes:
        """The bytes of a request whose path is below the URL."""
        content = b"" if body is None else orjson.dumps(body)
        lines = [f"{method} {self.prefix}{path} HTTP/1.1", f"host: {self.authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += ["content-type: application/json", f"content-length: {len(content)}"] if content else []
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + content


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered."""

    status: int
    content: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body where it is an object, otherwise nothing."""
        try:
            found = orjson.loads(self.content)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


class Line(asyncio.Protocol):
    """One connection to a place, opened when it is needed and again when it was closed. One request at a time."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply | None] | None = None
        self._parser: Any = None
        self._body: list[bytes] = []
        self._until_end = False
        """Whether the answer's head was there and named no length: it ends with the connection."""
        self._framed = False

    async def ask(self, request: bytes) -> Reply | None:
        """The answer; None where none came whole. Raises :class:`Gone`."""
        transport = await self._open()
        if transport is None:
            return None
        self._parser, self._body = httptools.HttpResponseParser(self), []
        self._until_end, self._framed = False, False
        self._waiting = asyncio.get_running_loop().create_future()
        transport.write(request)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._waiting
        except TimeoutError:
            return None
        finally:
            if self._waiting.cancelled() or not self._waiting.done() or self._waiting.result() is None:
                self.close()
            self._waiting = None

    async def lose(self, request: bytes, seconds: float) -> None:
        """Send a request, and hang up so many seconds later, whatever came meanwhile. Raises :class:`Gone`."""
        transport = await self._open()
        if transport is not None:
            transport.write(request)
            await asyncio.sleep(seconds)
            self.close()

    def close(self) -> None:
        """Hang up."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    async def _open(self) -> asyncio.Transport | None:
        if self._transport is not None and not self._transport.is_closing():
            return self._transport
        place = self.place
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                self._transport, _ = await asyncio.get_running_loop().create_connection(
                    lambda: self, place.host, place.port, ssl=place.ssl
                )
        except (OSError, TimeoutError) as error:
            place.refused += 1
            if place.refused >= GIVEN_UP:
                reason = os.strerror(error.errno) if error.errno else "no connection in time"
                raise Gone(f"{place.url} can't be reached: {reason}") from None
            await asyncio.sleep(0.02)
            return None
        place.refused = 0
        return self._transport

    def _end(self, reply: Reply | None) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(reply)

    def data_received(self, data: bytes) -> None:
        """What came, for the parser."""
        if self._waiting is None:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side hung up, or we did."""
        if self._transport is None or self._transport.is_closing():
            self._transport = None
            self._end(self._reply() if self._until_end and exc is None else None)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head."""
        del value
        self._framed = self._framed or name.lower() in (b"content-length", b"transfer-encoding")

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._until_end = not self._framed and self._parser.get_status_code() >= 200

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        status = self._parser.get_status_code()
        if status >= 200:
            if not self._parser.should_keep_alive():
                self.close()
            self._end(self._reply())

    def _reply(self) -> Reply:
        return Reply(self._parser.get_status_code(), b"".join(self._body))
