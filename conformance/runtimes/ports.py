"""Free ports for Runtimes' health operations."""

from __future__ import annotations

import random
import socket

_RANGE = range(20_000, 32_000)
"""Below those that systems take for outgoing connections: none of these is there before the Runtime."""
_taken: set[int] = set()


def free_port() -> int:
    """A loopback port that nobody listens on, another one each time. Raises ``OSError`` where none is found."""
    for _ in range(200):
        port = random.choice(_RANGE)  # noqa: S311 - no secret
        if port in _taken:
            continue
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
        _taken.add(port)
        return port
    raise OSError("no free port was found from 20000 to 31999")
