"""How the process is: one operation on the loopback address, by hand, so that it costs no start-up time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.examples.python_runtime.config import VERSION
from conformance.examples.python_runtime.say import say

if TYPE_CHECKING:
    from conformance.examples.python_runtime.runtime import Runtime

HOST = "127.0.0.1"
PATH = "/internal/runtime/health"
_PATIENCE = 5.0


class Health:
    """Serves health until closed."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.started_at = milliseconds()
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen, where a port is given; a Runtime that can't still works."""
        port = self.runtime.config.health_port
        if port is None:
            return
        try:
            self.server = await self.listen(port)
        except OSError as error:
            say(f"no health on port {port}: {error.strerror}")

    async def listen(self, port: int) -> asyncio.Server:
        """The server on its address (RT-HEALTH-56)."""
        return await asyncio.start_server(self.serve, HOST, port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one answer."""
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                method, target, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
                status, body = await self.answer(method, target.partition("?")[0], head)
                writer.write(_response(status, body, method))
                await writer.drain()
        except (TimeoutError, OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def answer(self, method: str, path: str, head: bytes) -> tuple[int, dict[str, Any]]:
        """Status and body of an answer; no key is asked for (RT-HEALTH-10)."""
        del head
        if path != PATH:
            return 404, {"error": "not found"}
        return (200, self.body()) if method in ("GET", "HEAD") else (405, {"error": "method not allowed"})

    def body(self) -> dict[str, Any]:
        """How it is."""
        return {
            "runtimeInstanceId": self.runtime.config.instance_id,
            "status": "draining" if self.runtime.stopping.is_set() else "ok",
            "version": VERSION,
            "startedAt": self.started_at,
            "lastJobAt": self.runtime.worker.last_job_at,
            "activeJobs": len(self.runtime.worker.holds),
        }

    def close(self) -> None:
        """Stop listening."""
        if self.server is not None:
            self.server.close()


def milliseconds() -> int:
    """Now, as the contract's instants are: epoch milliseconds."""
    return int(time.time() * 1000)


def _response(status: int, body: dict[str, Any], method: str) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
    return head.encode() + (b"" if method == "HEAD" else content)
