"""A server of event streams that a test writes byte by byte, with the pages beside them, as a world has them."""

from __future__ import annotations

import json
import queue
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mock_server import pages

PATIENCE = 10.0
"""Seconds that a test waits for what must come."""


class Stream:
    """One connection to a stream, open until it ends."""

    def __init__(self, handler):
        self.path, self.headers = handler.path, dict(handler.headers)
        self._socket = handler.connection
        self._closed = threading.Event()

    def send(self, data):
        """Bytes or text, as one chunk."""
        data = data.encode() if isinstance(data, str) else data
        self._socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, name, id_, **job):
        """An event as the hub sends it."""
        self.send(f"id: {id_}\nevent: {name}\ndata: {json.dumps(job, ensure_ascii=False)}\n\n")

    def end(self):
        """End the answer in order."""
        self._socket.sendall(b"0\r\n\r\n")

    def cut(self):
        """Break the connection in the middle of the answer."""
        self._socket.shutdown(2)

    def gone(self, seconds=PATIENCE):
        """Whether the client closed the connection within this time."""
        return self._closed.wait(seconds)

    def watch(self):
        """Return when the client closed the connection, or it broke."""
        try:
            while self._socket.recv(4096):
                pass
        except OSError:
            pass
        self._closed.set()


class EventServer(ThreadingHTTPServer):
    """Hands each stream that a client opens to the test."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.streams = queue.Queue()
        self.refusals = []
        """Answers for the next streams, in order: status, headers, body."""

    def refuse(self, status, body="", **headers):
        """Answer the next stream that is asked for with this instead."""
        self.refusals.append((status, {name.replace("_", "-"): value for name, value in headers.items()}, body))

    def stream(self):
        """The next stream that a client opened."""
        return self.streams.get(timeout=PATIENCE)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.startswith(pages.BASE_PATH):
            return self._answer(*pages.answer("GET", self.path))
        if self.server.refusals:
            status, headers, body = self.server.refusals.pop(0)
            return self._answer(status, {"content-length": str(len(body)), **headers}, body.encode())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("connection", "close")
        self.end_headers()
        stream = Stream(self)
        self.server.streams.put(stream)
        return stream.watch()

    def _answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def event_server():
    """A running :class:`EventServer`."""
    with EventServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
