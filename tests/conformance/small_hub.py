"""A build of the hub that knows keys and says back whatever it was told: a test of what we tell, not of a hub."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A client may go away at any time."""


class FakeHub:
    """Answers 401 to a key that it does not know, otherwise ``status`` with all of the request in its body."""

    def __init__(self, *tokens: str, status: int = 200, says: str = "") -> None:
        self.asked: list[tuple[str, str, str]] = []
        """Method, path and token of each request."""

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

            def answer(handler) -> None:
                content = handler.rfile.read(int(handler.headers.get("content-length") or 0)).decode("utf-8", "replace")
                token = handler.headers.get("authorization", "").removeprefix("Bearer ")
                self.asked.append((handler.command, handler.path, token))
                known = token in tokens
                data = {"path": handler.path, "headers": dict(handler.headers), "content": content, "says": says}
                body = json.dumps({"data": data, "requestId": "req_1"} if known else {"error": token}).encode()
                handler.send_response_only(status if known else 401)
                handler.send_header("content-type", "application/json")
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = answer

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
