"""The reference behind something that changes what it answers: builds that are wrong in one way."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

API = "/internal/runtime"
_LEFT_OUT = ("content-length", "transfer-encoding", "connection", "date", "host")


@dataclass(frozen=True)
class Answered:
    """What the reference answered. ``state`` is the provider state that was asked for, if one was."""

    path: str
    state: str | None
    status: int
    body: bytes

    @property
    def of_api(self) -> bool:
        return API in self.path

    def json(self, status: int, data: object) -> bytes:
        """An answer on the wire, instead."""
        return wire(status, json.dumps(data).encode())


def wire(status: int, body: bytes, *, length: int | None = None) -> bytes:
    """An answer's bytes, which may lie about their length."""
    head = f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body) if length is None else length}\r\n\r\n".encode() + body


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # checks open many connections at once

    def handle_error(self, *_: object) -> None:
        """A client may go away at any time."""


class RewritingProxy:
    """Serves ``rewrite(answered)`` where that is no None, otherwise what the reference answered."""

    def __init__(self, reference: str, rewrite: Callable[[Answered], bytes | None]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

            def forward(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length") or 0))
                connection = http.client.HTTPConnection(urlsplit(reference).netloc, timeout=30)
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _LEFT_OUT}
                connection.request(self.command, self.path, content, headers)
                response = connection.getresponse()
                body = response.read()
                connection.close()
                state = json.loads(content)["state"] if "provider-states" in self.path and content else None
                changed = rewrite(Answered(self.path, state, response.status, body))
                if changed is not None:
                    self.wfile.write(changed)
                    return
                self.send_response_only(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in _LEFT_OUT:
                        self.send_header(name, value)
                if response.status != 204:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = forward

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.states = f"{self.url}/__control__/provider-states/runtime-api"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
