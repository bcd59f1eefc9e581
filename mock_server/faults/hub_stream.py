"""Seeded faults of the hub's event streams."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from mock_server.calls import Answer, Refusal
from mock_server.faults.edits import part
from mock_server.hub.api import HubApi
from mock_server.hub.errors import BearerJudge
from mock_server.hub.streams import DELETED, STATE, Stream, Streams
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Exchange
    from mock_server.store import Row


def streams_of(stream_: type[Stream]) -> type[Streams]:
    """Streams whose connections are of that class."""

    class Own(Streams):
        """Made of a fault's connections."""

        stream = stream_

    return Own


# How a stream opens


class NoGreeting(Streams):
    """The present state is not told: the first event comes with the next change."""

    def greet(self, stream: Stream, _: Row, detail: dict[str, Any]) -> None:
        stream.ping()


class NoFirstPing(Streams):
    """The first ping comes after 15 s."""

    def greet(self, stream: Stream, _: Row, detail: dict[str, Any]) -> None:
        stream.put(STATE, detail)


class Replays(Streams):
    """Whoever comes back is told the whole history again."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub)
        self._told: dict[str, list[tuple[str, Any]]] = {}

    def greet(self, stream: Stream, row: Row, detail: dict[str, Any]) -> None:
        stream.ping()
        for event, data in self._told.setdefault(row["id"], [(STATE, detail)]):
            stream.put(event, data)

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        self._told.setdefault(row["id"], []).append((event, detail))
        await super().tell(row, event, detail)


class OpenAfterTheEnd(Streams):
    """The stream of a finished job tells its state, and stays open with nothing more to come."""

    async def open(self, row: Row, after: int) -> Stream:
        stream = self.stream(self, row["id"], after + 1)
        self._open.setdefault(row["id"], set()).add(stream)
        self.greet(stream, row, await self.hub.detail(row))
        self._keep_alive(stream, self.hub.clock.now())
        return stream


class NoStateOfTheFinished(Streams):
    """The stream of a finished job begins with its final event."""

    def greet(self, stream: Stream, row: Row, detail: dict[str, Any]) -> None:
        stream.ping()
        if not self.hub.shapes.is_final(row):
            stream.put(STATE, detail)


class StreamOfNothing(HubApi):
    """The stream of an unknown job opens, tells that it is gone, and ends."""

    async def stream_job(self, call: Call) -> Answer:
        hub, id_ = call.world.hub, call.path["jobId"]
        if await hub.job(call.caller, id_) is not None:
            return await super().stream_job(call)
        stream = Stream(hub.streams, id_, 1)
        hub.streams.finish(stream, DELETED, {"id": id_})
        return Answer(200, stream, {"content-type": "text/event-stream"})


class AnybodysStream(HubApi):
    """A stream looks for its job under every key."""

    async def job(self, call: Call) -> Row:
        if call.operation_id == "streamJob":
            for call.caller in ("a", "b"):
                if await call.world.hub.job(call.caller, call.path["jobId"]) is not None:
                    break
        return await super().job(call)


class Headers(HubApi):
    """Some headers of a stream are others; None takes one away."""

    changed: ClassVar[dict[str, str | None]] = {}

    async def stream_job(self, call: Call) -> Answer:
        answer = await super().stream_job(call)
        headers = {**answer.headers, **self.changed}
        answer.headers = {name: value for name, value in headers.items() if value is not None}
        return answer


class Cacheable(Headers):
    """A stream does not say that it is not to be kept."""

    changed: ClassVar = {"cache-control": None}


class AnotherType(Headers):
    """A stream is bytes of no kind."""

    changed: ClassVar = {"content-type": "application/octet-stream"}


class NoKey(BearerJudge):
    """A stream is everybody's."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        try:
            super().judge(path, headers, exchange)
        except Refusal:
            if not path.endswith("/events"):
                raise
            exchange.caller = "a"


class Bufferable(Headers):
    """A stream does not tell proxies to pass it on at once."""

    changed: ClassVar = {"x-accel-buffering": None}


# Numbers


class After(HubApi):
    """How a stream finds the number after which it goes on."""

    order: tuple[str, ...] = ("header", "query")
    number = re.compile(r"[0-9]{1,18}")

    @classmethod
    def after(cls, call: Call) -> int:
        texts = {
            "header": call.headers.get(b"last-event-id", b"").decode("latin-1"),
            "query": call.query["since"] or "",
        }
        for source in cls.order:
            if cls.number.fullmatch(texts[source]):
                return int(float(texts[source]))
        return 0


class NoHeader(After):
    """``Last-Event-ID`` is not read."""

    order = ("query",)


class NoQuery(After):
    """``since`` is not read."""

    order = ("header",)


class QueryFirst(After):
    """``since`` wins over ``Last-Event-ID``."""

    order = ("query", "header")


class AnyNumber(After):
    """Negative numbers and fractions count, too."""

    number = re.compile(r"-?[0-9]{1,18}(\.[0-9]+)?")


class HeaderOrNothing(After):
    """A header that is no number hides the query."""

    @classmethod
    def after(cls, call: Call) -> int:
        return super().after(call) if cls.number.fullmatch(call.headers.get(b"last-event-id", b"0").decode()) else 0


class FromZero(Stream):
    """Ids are counted from 0."""

    def __init__(self, streams: Streams, job_id: str, number: int) -> None:
        super().__init__(streams, job_id, 0 if number == 1 else number)


class NumberedPings(Stream):
    """Pings take numbers."""

    def frame(self, event: str, data: Any) -> bytes:
        frame = super().frame(event, data)
        self.number += not event
        return frame


class NumberedByJob(Streams):
    """Ids are counted for a job, not for a stream."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub)
        self._numbers: dict[str, int] = {}

    async def open(self, row: Row, after: int) -> Stream:
        after = after or self._numbers.get(row["id"], 0)
        self._numbers[row["id"]] = after + 1
        return await super().open(row, after)

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        self._numbers[row["id"]] = self._numbers.get(row["id"], 0) + 1
        await super().tell(row, event, detail)


FAULTS = (
    # how a stream opens
    Mutant(
        "hub-stream.no-greeting",
        "no present state is told: the first event comes with the next change",
        ("HUB-SSE-05", "HUB-SSE-61", "HUB-SSE-52"),
        parts=part(streams=NoGreeting),
    ),
    Mutant(
        "hub-stream.no-first-ping", "the first ping comes after 15 s", ("HUB-SSE-50",), parts=part(streams=NoFirstPing)
    ),
    Mutant(
        "hub-stream.replays",
        "who comes back is told the whole history again",
        ("HUB-SSE-61", "HUB-SSE-05"),
        parts=part(streams=Replays),
    ),
    Mutant(
        "hub-stream.open-after-the-end",
        "the stream of a finished job stays open, with nothing more to come",
        ("HUB-SSE-52", "HUB-SSE-07", "HUB-SSE-10"),
        parts=part(streams=OpenAfterTheEnd),
    ),
    Mutant(
        "hub-stream.no-state-of-the-finished",
        "the stream of a finished job begins with its final event",
        ("HUB-SSE-52", "HUB-SSE-05"),
        parts=part(streams=NoStateOfTheFinished),
    ),
    Mutant(
        "hub-stream.stream-of-nothing",
        "the stream of an unknown job opens, tells that it is gone, and ends",
        ("HUB-SSE-64", "HUB-ERR-53", "HUB-AUTH-54"),
        parts=part(api=StreamOfNothing),
    ),
    Mutant(
        "hub-stream.anybodys",
        "a stream finds a job of any key",
        ("HUB-SSE-64", "HUB-AUTH-54"),
        parts=part(api=AnybodysStream),
    ),
    Mutant(
        "hub-stream.without-key",
        "a stream needs no key",
        ("HUB-SSE-02", "HUB-AUTH-01", "HUB-AUTH-50"),
        parts=part(gate=NoKey),
    ),
    Mutant(
        "hub-stream.cacheable",
        "a stream does not say that it is not to be kept",
        ("HUB-SSE-62",),
        parts=part(api=Cacheable),
    ),
    Mutant(
        "hub-stream.bufferable",
        "a stream does not tell proxies to pass it on at once",
        ("HUB-SSE-63",),
        parts=part(api=Bufferable),
    ),
    Mutant(
        "hub-stream.another-type",
        "a stream is `application/octet-stream`",
        ("HUB-SSE-01",),
        parts=part(api=AnotherType),
    ),
    # numbers
    Mutant(
        "hub-stream.no-header", "`Last-Event-ID` is not read", ("HUB-SSE-13", "HUB-SSE-59"), parts=part(api=NoHeader)
    ),
    Mutant("hub-stream.no-query", "`since` is not read", ("HUB-SSE-14",), parts=part(api=NoQuery)),
    Mutant("hub-stream.query-first", "`since` wins over `Last-Event-ID`", ("HUB-SSE-59",), parts=part(api=QueryFirst)),
    Mutant(
        "hub-stream.any-number", "negative numbers and fractions count, too", ("HUB-SSE-60",), parts=part(api=AnyNumber)
    ),
    Mutant(
        "hub-stream.header-or-nothing",
        "a header that is no number hides the query",
        ("HUB-SSE-60",),
        parts=part(api=HeaderOrNothing),
    ),
    Mutant("hub-stream.from-zero", "the first id is 0", ("HUB-SSE-03",), parts=part(streams=streams_of(FromZero))),
    Mutant(
        "hub-stream.numbered-pings",
        "pings take numbers",
        ("HUB-SSE-03",),
        parts=part(streams=streams_of(NumberedPings)),
    ),
    Mutant(
        "hub-stream.numbered-by-job",
        "ids are counted for a job, not for a stream",
        ("HUB-SSE-03",),
        parts=part(streams=NumberedByJob),
    ),
)
