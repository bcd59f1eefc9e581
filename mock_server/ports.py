"""Listening: the server's own port, and ports of worlds that come and go while it runs."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING

from mock_server.wire import WiredServer

if TYPE_CHECKING:
    from typing import Any

    import uvicorn

BACKLOG = 2048


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches the host (a name or an address, without port and brackets)."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(authority: str) -> str:
    """The host of a ``Host`` header without its port, in brackets where it is an IPv6 address."""
    return authority.rpartition("]")[0] + "]" if authority.startswith("[") else authority.partition(":")[0]


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 picks one. Raises ``OSError``."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


class PortsServer(WiredServer):
    """A server of one app that can listen on more ports while it runs: for worlds, on loopback alone."""

    def __init__(self, config: uvicorn.Config, sock: socket.socket) -> None:
        """``sock`` is the server's own port, bound already."""
        super().__init__(config)
        self.sock = sock
        host, self.port = sock.getsockname()[:2]
        self.host: str = host if is_loopback(host) else "127.0.0.1"
        self._opened: dict[int, asyncio.Server] = {}

    async def open(self, port: int) -> int:
        """Listen on one more port; 0 picks one. Raises ``OSError``."""
        sock = bind(self.host, port)

        def protocol() -> Any:  # as uvicorn's own startup makes it
            return self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        server = await asyncio.get_running_loop().create_server(protocol, sock=sock, backlog=BACKLOG)
        number: int = sock.getsockname()[1]
        self._opened[number] = server
        self.servers.append(server)  # closed at shutdown, with the server's own
        return number

    def close(self, port: int) -> None:
        """Stop listening there; what is being answered is answered, then its connections end."""
        server = self._opened.pop(port, None)
        if server is None:
            return
        self.servers.remove(server)
        server.close()
        for connection in list(self.server_state.connections):
            if getattr(connection, "server", None) == (self.host, port):
                connection.shutdown()
