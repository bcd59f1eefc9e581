"""Builds that are wrong on the wire, each a thread on a loopback port."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable


def html(connection: socket.socket) -> None:
    """Answers every request with a page."""
    body = b"<html><body>502 Bad Gateway</body></html>"
    head = b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n" % len(body)
    connection.sendall(head + body)


def nothing(_: socket.socket) -> None:
    """Closes every connection without a word."""


def too_short(connection: socket.socket) -> None:
    """Promises a thousand bytes and sends ten."""
    connection.sendall(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n" + b'{"jobs": ['
    )


def never(connection: socket.socket) -> None:
    """Reads and never answers, until the client goes away."""
    connection.settimeout(60)
    while connection.recv(65536):
        pass


def after_one_answer(behaviour: Callable[[socket.socket], None]) -> Callable[[socket.socket], None]:
    """Answers the first request as an empty queue does, the others by ``behaviour``."""
    first = threading.Lock()

    def behave(connection: socket.socket) -> None:
        if first.acquire(blocking=False):
            body = b'{"jobs": []}'
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
        else:
            behaviour(connection)

    return behave


def no_such_key(connection: socket.socket) -> None:
    """Refuses every key."""
    connection.sendall(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n")


class FakeBuild:
    """Serves a behaviour, one thread a connection, while the ``with`` block lasts."""

    def __init__(self, behaviour: Callable[[socket.socket], None]) -> None:
        self.behaviour = behaviour
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked, self.closed = threading.Semaphore(0), threading.Event()
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def was_asked(self) -> None:
        """Wait for a request (the look whether anybody listens sends none)."""
        assert self.asked.acquire(timeout=30)

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.settimeout(5)
                if not connection.recv(65536):
                    return
                self.asked.release()
                self.behaviour(connection)
                self.closed.set()
            except OSError:
                self.closed.set()
