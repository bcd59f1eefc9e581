"""Seeded faults of the way on which the hub's event streams reach their readers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mock_server.app import Sender
from mock_server.faults.edits import part
from mock_server.faults.hub_stream import streams_of
from mock_server.hub.streams import Stream, Streams
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_AHEAD = 4
"""Frames that a reader may be ahead of the slowest one, where all wait for it."""


class Buffered(Sender):
    """A stream goes out in pieces of 4 KiB."""

    async def parts(self, body: Any, send: Any) -> None:
        held = b""
        async for frame in body:
            held += frame
            if len(held) >= 4096:
                await send({"type": "http.response.body", "body": held, "more_body": True})
                held = b""
        await send({"type": "http.response.body", "body": held})


class OneBehind(Sender):
    """Each frame goes out with the next one."""

    async def parts(self, body: Any, send: Any) -> None:
        held = b""
        async for frame in body:
            await send({"type": "http.response.body", "body": held, "more_body": True})
            held = frame
        await send({"type": "http.response.body", "body": held})


class Interleaved(Stream):
    """Pings are written by another task: one that falls due while an event is on its way stands within it."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for frame in super().__aiter__():
            ping_next = bool(self._frames) and not self._frames[0][0]
            if ping_next and frame.startswith(b"id"):
                self._frames.popleft()
                middle = len(frame) // 2
                frame = frame[:middle] + b"\n: ping\n" + frame[middle:]
            yield frame


class InStep(Stream):
    """All who follow a job are written to in turn: who does not read holds the others up."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.taken = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for frame in super().__aiter__():
            self.taken += 1
            while self.ahead():  # noqa: ASYNC110 - a fault has no need to be quick
                await asyncio.sleep(0.002)
            yield frame

    def ahead(self) -> bool:
        """Whether another one has to be waited for."""
        waiting = [other for other in self.streams._open.get(self.job_id, ()) if other._frames]
        return any(isinstance(other, InStep) and self.taken - other.taken > _AHEAD for other in waiting)


class TakesAll(Streams):
    """Where one reader vanishes, the job is no longer told to anybody."""

    def leave(self, stream: Stream) -> None:
        super().leave(stream)
        if not stream._ended:
            self._open.pop(stream.job_id, None)


FAULTS = (
    Mutant(
        "hub-stream.buffered",
        "a stream goes out in pieces of 4 KiB",
        ("HUB-SSE-05", "HUB-SSE-50", "HUB-SSE-57"),
        parts=part(sender=Buffered),
    ),
    Mutant(
        "hub-stream.one-behind",
        "each frame goes out with the next one",
        ("HUB-SSE-05", "HUB-SSE-57"),
        parts=part(sender=OneBehind),
    ),
    Mutant(
        "hub-stream.interleaved",
        "a ping that falls due while an event is written stands within it",
        ("HUB-SSE-03", "HUB-SSE-58"),
        parts=part(streams=streams_of(Interleaved)),
    ),
    Mutant(
        "hub-stream.in-step",
        "who does not read holds up all who follow the job",
        ("HUB-SSE-06", "HUB-SSE-07", "HUB-SSE-57"),
        parts=part(streams=streams_of(InStep)),
    ),
    Mutant(
        "hub-stream.takes-all",
        "where one reader vanishes the job is told to nobody any more",
        ("HUB-SSE-06", "HUB-SSE-07", "HUB-SSE-53"),
        parts=part(streams=TakesAll),
    ),
)
