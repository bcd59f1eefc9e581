"""The connection under a request, for what no ASGI message can say: reset it, close it, write bytes of one's own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

WIRE = "mock_server.wire"
"""Key of the :class:`Wire` in ``scope["state"]``."""

_LINGER_ZERO = struct.pack("ii", 1, 0)
_REACH = 0.02
"""Seconds that bytes have to reach the client before a reset throws away what is on its way."""


class Wire:
    """One connection; ``lost`` is set when it is gone, ``stopping`` (the server's own) when that is asked to stop."""

    __slots__ = ("lost", "stopping", "transport")

    def __init__(self, transport: Any, stopping: asyncio.Event) -> None:
        self.transport, self.stopping = transport, stopping
        self.lost = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.transport.write(data)

    def reset(self, send: Any) -> None:
        """End the connection by an RST, which a client sees as ``ECONNRESET``."""
        with contextlib.suppress(OSError):  # the client may have been faster
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self.transport.abort()
        _no_answer(send)

    def close(self, send: Any) -> None:
        """End the connection in order, by a FIN after all that was written."""
        self.transport.close()
        _no_answer(send)

    async def reached(self) -> None:
        """Return when what was written should be with a client that reads."""
        await asyncio.sleep(_REACH)


def _no_answer(send: Any) -> None:
    # As if the client had gone: uvicorn would take a request without an answer for a fault of the app and log it.
    send.__self__.disconnected = True


def wired(protocol: type[Any]) -> type[Any]:
    """One of uvicorn's HTTP protocols that hands each connection's :class:`Wire` to the app, in the scope's state."""

    class Wired(protocol):  # type: ignore[misc]
        app_state: dict[str, Any]

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.wire = Wire(transport, _stopping(self.server_state))
            self.app_state = {**self.app_state, WIRE: self.wire}  # copied into the scope of every request

        def connection_lost(self, exc: Exception | None) -> None:
            self.wire.lost.set()
            super().connection_lost(exc)

    return Wired


def _stopping(state: Any) -> asyncio.Event:
    event: asyncio.Event | None = getattr(state, "stopping", None)
    if event is None:
        event = state.stopping = asyncio.Event()
    return event


HTTP = wired(AutoHTTPProtocol)
"""What ``uvicorn.Config(http=...)`` is given: httptools where it is installed, otherwise h11."""


class WiredServer(uvicorn.Server):
    """Lets requests that a fault plan holds up go on when it is asked to stop, those of lost connections included."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        _stopping(self.server_state).set()
        await super().shutdown(sockets)
