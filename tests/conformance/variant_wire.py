"""HTTP/1.1 in manners that are allowed and rare: a small server of its own, since no common one can be told to."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import h11

if TYPE_CHECKING:
    from collections.abc import Callable


def lower(name: str) -> str:
    return name.lower()


@dataclass(frozen=True)
class Style:
    """How answers are written; no answer has a `Date`, which a server without a clock may leave out."""

    name: Callable[[str], str] = lower
    """How a header's name is written."""
    framing: Literal["length", "chunked", "close"] = "length"
    """Where a body ends: where its length says, in chunks of any size, or where the connection ends."""
    lingers: float = 0
    """Seconds for which the connection stays open after the answer, asked for or not."""


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
                writer.write(await self._answer(scope, body))
                await writer.drain()
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

    async def _answer(self, scope: dict[str, Any], body: bytes) -> bytes:
        sent: list[dict[str, Any]] = []
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            return messages.pop(0) if messages else {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        headers = [(name, value) for name, value in sent[0]["headers"] if name != b"content-length"]
        return self._bytes(sent[0]["status"], headers, content, scope["method"] == "HEAD")

    def _bytes(self, status: int, headers: list[tuple[bytes, bytes]], content: bytes, head_only: bool) -> bytes:
        lines = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        lines.append(("connection", "keep-alive" if self.style.lingers else "close"))
        if status != 204:
            if self.style.framing == "chunked":
                lines.append(("transfer-encoding", "chunked"))
                content = b"".join(self._chunks(content))
            elif self.style.framing == "length":
                lines.append(("content-length", str(len(content))))
        self.rng.shuffle(lines)
        start = "".join(f"{self.style.name(name)}: {value}\r\n" for name, value in lines)
        shown = b"" if head_only or status == 204 else content
        return f"HTTP/1.1 {status} As It Is\r\n{start}\r\n".encode("latin-1") + shown

    def _chunks(self, content: bytes) -> list[bytes]:
        chunks = []
        while content:
            size = self.rng.randint(1, max(1, min(len(content), 400)))
            part, content = content[:size], content[size:]
            chunks.append(b"%X;part=%d\r\n%s\r\n" % (size, len(chunks), part))
        return [*chunks, b"0\r\n\r\n"]
