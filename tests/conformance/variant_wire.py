"""HTTP in manners that are allowed and rare: a small server, and a small client, since no common one can be told to."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

import h11

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lower(name: str) -> str:
    return name.lower()


def title(name: str) -> str:
    """``X-Request-ID``, ``Cache-Control``."""
    return "-".join(part.upper() if len(part) < 4 else part.capitalize() for part in name.split("-"))


@dataclass(frozen=True)
class Style:
    """How answers are written; no answer has a `Date`, which a server without a clock may leave out."""

    name: Callable[[str], str] = lower
    """How a header's name is written."""
    framing: Literal["length", "chunked", "close"] = "length"
    """Where a body ends: where its length says, in chunks of any size, or where the connection ends.

    A body that is sent while it is made has no length: it comes in chunks, then.
    """
    lingers: float = 0
    """Seconds for which the connection stays open after the answer, asked for or not."""
    version: Literal["1.0", "1.1"] = "1.1"
    """With 1.0 there are no chunks."""


class Front:
    """Serves an ASGI app in a style."""

    def __init__(self, app: Any, style: Style) -> None:
        self.app, self.style, self.rng = app, style, random.Random(7)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: requests and their answers, one unless it stays open."""
        try:
            seconds: float | None = None
            while True:
                async with asyncio.timeout(seconds):
                    scope, body = await self._request(reader)
                await self._serve(scope, body, reader, writer)
                if not self.style.lingers:
                    break
                seconds = self.style.lingers
        except TimeoutError:
            pass
        except h11.RemoteProtocolError:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        except (OSError, EOFError):
            pass  # the client went away
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve(
        self, scope: dict[str, Any], body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        answer = Answering(self.style, self.rng, scope["method"], writer)
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            with contextlib.suppress(OSError):
                while await reader.read(2**16):
                    pass
            return {"type": "http.disconnect"}

        await self.app(scope, receive, answer.send)
        await asyncio.sleep(0)  # who waited for the client to go, reads no more

    @staticmethod
    async def _request(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=2**17)
        head: h11.Request | None = None
        body: list[bytes] = []
        while True:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                parser.receive_data(await reader.read(2**18))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                break
            else:
                raise EOFError
        path, _, query = head.target.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": head.method.decode(),
            "root_path": "",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "headers": [(name.lower(), value) for name, value in head.headers],
        }
        return scope, b"".join(body)


class Answering:
    """One answer on its way: whole where the app gives it whole, otherwise in the pieces in which it comes."""

    def __init__(self, style: Style, rng: random.Random, method: str, writer: asyncio.StreamWriter) -> None:
        self.style, self.rng, self.method, self.writer = style, rng, method, writer
        self._start: dict[str, Any] = {}
        self._framing = ""
        """Of an answer whose head is written."""

    async def send(self, message: dict[str, Any]) -> None:
        """What the app sends; nobody may be there to read it any more."""
        if self.writer.is_closing():
            return
        with contextlib.suppress(OSError):
            self._take(message)
            await self.writer.drain()

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        content, more = message.get("body", b""), message.get("more_body", False)
        if not self._framing:
            self._head(content, more)
        if self.method == "HEAD" or self._start["status"] == 204:
            return
        if self._framing == "chunked":
            self.writer.writelines(self._chunks(content))
            if not more:
                self.writer.write(b"0\r\n\r\n")
        else:
            self.writer.write(content)

    def _head(self, content: bytes, more: bool) -> None:
        style, status = self.style, self._start["status"]
        self._framing = "chunked" if more and style.framing == "length" else style.framing
        lines = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._start["headers"]
            if name != b"content-length"
        ]
        lines.append(("connection", "keep-alive" if style.lingers else "close"))
        if status != 204:
            if self._framing == "chunked":
                lines.append(("transfer-encoding", "chunked"))
            elif self._framing == "length":
                lines.append(("content-length", str(len(content))))
        self.rng.shuffle(lines)
        start = "".join(f"{style.name(name)}: {value}\r\n" for name, value in lines)
        self.writer.write(f"HTTP/{style.version} {status} As It Is\r\n{start}\r\n".encode("latin-1"))

    def _chunks(self, content: bytes) -> list[bytes]:
        chunks = []
        while content:
            size = self.rng.randint(1, max(1, min(len(content), 400)))
            part, content = content[:size], content[size:]
            chunks.append(b"%X;part=%d\r\n%s\r\n" % (size, len(chunks), part))
        return chunks


@dataclass(frozen=True)
class Posting:
    """How a client writes its requests."""

    version: Literal["1.0", "1.1"] = "1.1"
    name: Callable[[str], str] = lower
    """How a header's name is written."""
    chunked: bool = False
    """Whether the body comes in chunks, with no length told."""
    expects: bool = False
    """Whether it asks with ``Expect: 100-continue`` before it sends the body, and waits for the answer."""
    more: tuple[tuple[str, str], ...] = ()
    """Further headers."""

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """POST on a connection of its own; the status. Raises ``OSError`` or ``EOFError`` where none comes."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
        try:
            writer.write(self._head(parts.path or "/", parts.netloc, headers, content))
            if self.expects and await self._status(reader) != 100:
                raise EOFError
            writer.write(self._body(content))
            while (status := await self._status(reader)) == 100:
                pass
            return status
        finally:
            writer.close()

    def _head(self, path: str, host: str, headers: Mapping[str, str], content: bytes) -> bytes:
        lines = [("host", host), *headers.items(), *self.more]
        lines.append(("transfer-encoding", "chunked") if self.chunked else ("content-length", str(len(content))))
        if self.expects:
            lines.append(("expect", "100-continue"))
        start = "".join(f"{self.name(name)}: {value}\r\n" for name, value in lines)
        return f"POST {path} HTTP/{self.version}\r\n{start}\r\n".encode("latin-1")

    def _body(self, content: bytes) -> bytes:
        if not self.chunked:
            return content
        half = len(content) // 2
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (content[:half], content[half:]) if piece)
        return pieces + b"0\r\n\r\n"

    @staticmethod
    async def _status(reader: asyncio.StreamReader) -> int:
        """The status of the next head."""
        head = await reader.readuntil(b"\r\n\r\n")
        return int(head.split(b" ", 2)[1])
