"""Event streams of jobs (server-sent events): each connection a queue that never holds up who tells."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mock_server.agenda import Item
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

STATE = "job.state"
DELETED = "job.deleted"
PROGRESS = "job.progress"
_PING = b": ping\n\n"
_AFTER = 2_000
_SLOW = 256
"""A reader that is so many frames behind gets no progress any more that a later one replaces."""


class Stream:
    """One connection that follows a job: an async iterator of frames."""

    def __init__(self, streams: Streams, job_id: str, number: int) -> None:
        """``number``: the id of the first event."""
        self.streams, self.job_id, self.number = streams, job_id, number
        self._frames: deque[tuple[str, Any]] = deque()
        self._more = asyncio.Event()
        self._ended = False
        self.ping_item: Item | None = None

    def put(self, event: str, data: Any) -> None:
        """Tell an event; ``data`` is its JSON."""
        if self._ended:
            return
        if event == PROGRESS and len(self._frames) > _SLOW and self._frames[-1][0] == PROGRESS:
            self._frames.pop()
        self._frames.append((event, data))
        self._more.set()

    def ping(self) -> None:
        """Keep the connection alive."""
        if len(self._frames) <= _SLOW:
            self.put("", None)

    def end(self) -> None:
        """No more events come."""
        self._ended = True
        self._more.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The frames, as they come, until the end."""
        try:
            while True:
                while self._frames:
                    yield self.frame(*self._frames.popleft())
                if self._ended:
                    return
                self._more.clear()
                await self._more.wait()
        finally:
            self.close()

    def close(self) -> None:
        """Nobody reads any more."""
        self.streams.leave(self)

    def frame(self, event: str, data: Any) -> bytes:
        """An event on the wire, numbered as it goes out; without a name it is a ping."""
        if not event:
            return _PING
        number, self.number = self.number, self.number + 1
        return f"id: {number}\nevent: {event}\ndata: ".encode() + self.line(data) + b"\n\n"

    @staticmethod
    def line(data: Any) -> bytes:
        """The event's data: one line of JSON."""
        return orjson.dumps(data)


class Streams:
    """All open streams of a hub."""

    stream = Stream

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._open: dict[str, set[Stream]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    async def open(self, row: Row, after: int) -> Stream:
        """Follow a job: a ping and its present state at once, then what happens; numbers go on after ``after``."""
        stream = self.stream(self, row["id"], after + 1)
        self._open.setdefault(row["id"], set()).add(stream)
        detail = await self.hub.detail(row)
        self.greet(stream, row, detail)
        self._keep_alive(stream, self.hub.clock.now())
        if self.hub.shapes.is_final(row):
            self.finish(stream, self.hub.build.executor.event(row) or "", detail)
        return stream

    def greet(self, stream: Stream, _: Row, detail: dict[str, Any]) -> None:
        """The beginning of a stream (HUB-SSE-05, 50, 61)."""
        stream.ping()
        stream.put(STATE, detail)

    def _keep_alive(self, stream: Stream, now: int) -> None:
        async def ping(instant: int) -> None:
            stream.ping()
            self._keep_alive(stream, instant)

        stream.ping_item = self.hub.agenda.add(now + self.hub.constants["ping"], _AFTER, ping)

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        """Tell everybody who follows a job; after a final event their streams end."""
        final = self.hub.shapes.is_final(row)
        for stream in list(self._open.get(row["id"], ())):
            if final:
                self.finish(stream, event, detail)
            else:
                stream.put(event, detail)

    def finish(self, stream: Stream, event: str, detail: dict[str, Any]) -> None:
        """The last event, and the end."""
        stream.put(event, detail)
        stream.end()

    def delete_all(self) -> None:
        """No job is there any more (HUB-SSE-11)."""
        for stream in self._all():
            self.finish(stream, DELETED, {"id": stream.job_id})

    def end_all(self) -> None:
        """The server goes away."""
        for stream in self._all():
            stream.end()

    def _all(self) -> list[Stream]:
        return [stream for streams in self._open.values() for stream in streams]

    def leave(self, stream: Stream) -> None:
        """A connection is at its end, by us or by the client."""
        self.hub.agenda.drop(stream.ping_item)
        streams = self._open.get(stream.job_id, set())
        streams.discard(stream)
        if not streams:
            self._open.pop(stream.job_id, None)
