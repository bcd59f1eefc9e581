"""Seeded faults of what the hub's event streams tell, and of their pings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from mock_server.faults.edits import machine, part, set_step
from mock_server.faults.hub_stream import streams_of
from mock_server.hub.entities import JOB
from mock_server.hub.scheduler import Scheduler
from mock_server.hub.streams import PROGRESS, STATE, Stream, Streams
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from mock_server.store import Row


# What is told


class StillPending(Streams):
    """Every failure is told as final."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        if row["status"] != "failed":
            await super().tell(row, event, detail)
            return
        for stream in list(self._open.get(row["id"], ())):
            self.finish(stream, "job.failed", detail)


class NotEnded(Streams):
    """After a final event the stream stays open."""

    def finish(self, stream: Stream, event: str, detail: dict[str, Any]) -> None:
        stream.put(event, detail)


class EndedWithoutEvent(Streams):
    """The stream of a job that was cancelled just ends."""

    def finish(self, stream: Stream, event: str, detail: dict[str, Any]) -> None:
        if event != "job.cancelled":
            stream.put(event, detail)
        stream.end()


class DeletedUnsaid(Streams):
    """Streams of jobs that are gone just end."""

    def delete_all(self) -> None:
        self.end_all()


class Twice(Streams):
    """A final event is told twice."""

    def finish(self, stream: Stream, event: str, detail: dict[str, Any]) -> None:
        stream.put(event, detail)
        super().finish(stream, event, detail)


class QueuedUntold(Streams):
    """That a job is queued again is not told."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        if row["status"] != "queued":
            await super().tell(row, event, detail)


class FirstStateAlone(Streams):
    """No state is told but the first one and the last event."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        if event != STATE:
            await super().tell(row, event, detail)


class FurtherStartsUntold(Streams):
    """That a further attempt begins is not told."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        if event != STATE or row["status"] != "running" or row["attempt"] == 1:
            await super().tell(row, event, detail)


class TokenStream(Streams):
    """Every report of tokens is a stream of them."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        if event == PROGRESS:
            for stream in self._open.get(row["id"], ()):
                stream.put("job.token", {"id": row["id"], "token": "..."})
        await super().tell(row, event, detail)


class BlockedTold(Scheduler):
    """A node that comes or goes is told to who follows its queued jobs."""

    async def node_changed(self, node_id: str, now: int) -> None:
        for row in await self.hub.store.rows(JOB):
            if row["nodeId"] == node_id and row["status"] == "queued":
                await self.hub.streams.tell(row, STATE, await self.hub.detail(row))
        await super().node_changed(node_id, now)


class OldDetail(Streams):
    """A change of status is told with the detail as it was before, but for the status."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub)
        self._before: dict[str, dict[str, Any]] = {}

    def greet(self, stream: Stream, row: Row, detail: dict[str, Any]) -> None:
        self._before[row["id"]] = detail
        super().greet(stream, row, detail)

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        before = self._before.get(row["id"], detail)
        self._before[row["id"]] = detail
        await super().tell(row, event, detail if event == PROGRESS else {**before, "status": detail["status"]})


class NumbersAlone(Streams):
    """A new activity is no progress."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub)
        self._numbers: dict[str, Any] = {}

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        numbers = {**(detail["progress"] or {}), "lastActivity": None, "updatedAt": None}
        if event != PROGRESS or self._numbers.get(row["id"]) != numbers:
            await super().tell(row, event, detail)
        self._numbers[row["id"]] = numbers


class SummaryAlone(Stream):
    """The data is the seed's example, and not the detail."""

    def put(self, event: str, data: Any) -> None:
        if event:
            data = {name: data.get(name) for name in ("id", "status", "progress")}
        super().put(event, data)


class WithoutProgress(Stream):
    """A state is told without the progress."""

    def put(self, event: str, data: Any) -> None:
        if event == STATE:
            data = {name: value for name, value in data.items() if name != "progress"}
        super().put(event, data)


class Pretty(Stream):
    """The data is JSON over several lines, each with its ``data:``."""

    @staticmethod
    def line(data: Any) -> bytes:
        return orjson.dumps(data, option=orjson.OPT_INDENT_2).replace(b"\n", b"\ndata: ")


class RawText(Stream):
    """Line breaks in texts are written as they are."""

    @staticmethod
    def line(data: Any) -> bytes:
        return orjson.dumps(data).replace(b"\\n", b"\n")


class NoName(Stream):
    """Events have no name of their own; it stands in the data."""

    def frame(self, event: str, data: Any) -> bytes:
        frame = super().frame(event, data)
        return frame.replace(f"event: {event}\n".encode(), b"", 1) if event else frame


# Pings


class PingsWhenIdle(Streams):
    """A ping comes 15 s after the last event."""

    async def tell(self, row: Row, event: str, detail: dict[str, Any]) -> None:
        await super().tell(row, event, detail)
        for stream in self._open.get(row["id"], ()):
            self.hub.agenda.drop(stream.ping_item)
            self._keep_alive(stream, self.hub.clock.now())


class PingsTogether(Streams):
    """All streams are pinged at the same instants, multiples of 15 s."""

    def _keep_alive(self, stream: Stream, now: int) -> None:
        super()._keep_alive(stream, now - now % self.hub.constants["ping"])


class OtherComment(Stream):
    """The connection is kept alive by another comment."""

    def frame(self, event: str, data: Any) -> bytes:
        return super().frame(event, data) if event else b":keep-alive\n\n"


FAULTS = (
    # what is told
    Mutant("hub-stream.no-progress", "progress is not told", ("HUB-SSE-06",), edit=set_step("progress", event=None)),
    Mutant(
        "hub-stream.numbers-alone", "a new activity is no progress", ("HUB-SSE-06",), parts=part(streams=NumbersAlone)
    ),
    Mutant(
        "hub-stream.every-report",
        "every report is told, news or not",
        ("HUB-SSE-56",),
        edit=set_step("progress.same", event="job.progress"),
    ),
    Mutant(
        "hub-stream.still-pending",
        "a failure with a retry to come is told as final",
        (
            "HUB-SSE-09",
            "HUB-SSE-53",
        ),
        parts=part(streams=StillPending),
    ),
    Mutant(
        "hub-stream.not-ended",
        "after a final event the stream stays open",
        (
            "HUB-SSE-07",
            "HUB-SSE-08",
            "HUB-SSE-10",
        ),
        parts=part(streams=NotEnded),
    ),
    Mutant(
        "hub-stream.ended-without-event",
        "the stream of a job that is cancelled just ends",
        ("HUB-SSE-10", "HUB-SSE-52"),
        parts=part(streams=EndedWithoutEvent),
    ),
    Mutant(
        "hub-stream.deleted-unsaid",
        "streams of jobs that are gone just end",
        ("HUB-SSE-11",),
        parts=part(streams=DeletedUnsaid),
    ),
    Mutant(
        "hub-stream.twice",
        "a final event is told twice",
        (
            "HUB-SSE-07",
            "HUB-SSE-08",
            "HUB-SSE-10",
        ),
        parts=part(streams=Twice),
    ),
    Mutant(
        "hub-stream.further-starts-untold",
        "the begin of a second attempt is not told",
        ("HUB-SSE-54",),
        parts=part(streams=FurtherStartsUntold),
    ),
    Mutant(
        "hub-stream.no-states",
        "no state is told but the first one",
        (
            "HUB-SSE-53",
            "HUB-SSE-54",
        ),
        parts=part(streams=FirstStateAlone),
    ),
    Mutant(
        "hub-stream.no-queued",
        "that a job is queued again is not told",
        ("HUB-SSE-53",),
        parts=part(streams=QueuedUntold),
    ),
    Mutant(
        "hub-stream.failed-as-done",
        "a final failure is told as `job.completed`",
        ("HUB-SSE-08", "HUB-WH-51"),
        edit=machine(
            "states",
            "failed",
            "events",
            value=[{"when": "retryToCome", "name": "job.state"}, {"name": "job.completed"}],
        ),
    ),
    Mutant(
        "hub-stream.tokens",
        "every report of tokens is a stream of them",
        ("HUB-SSE-15",),
        parts=part(streams=TokenStream),
    ),
    Mutant(
        "hub-stream.blocked",
        "a change of `blocked` is told as a state",
        ("HUB-SSE-55",),
        parts=part(scheduler=BlockedTold),
    ),
    Mutant(
        "hub-stream.old-detail",
        "a change of status is told with the detail as it was before",
        ("HUB-SSE-57",),
        parts=part(streams=OldDetail),
    ),
    Mutant(
        "hub-stream.summary-alone",
        "the data is no detail, but the seed's example",
        ("HUB-SSE-58",),
        parts=part(streams=streams_of(SummaryAlone)),
    ),
    Mutant(
        "hub-stream.without-progress",
        "the data of `job.state` leaves out the progress",
        ("HUB-SSE-04", "HUB-SSE-58"),
        parts=part(streams=streams_of(WithoutProgress)),
    ),
    Mutant(
        "hub-stream.pretty",
        "the data is JSON over several lines",
        ("HUB-SSE-58",),
        parts=part(streams=streams_of(Pretty)),
    ),
    Mutant(
        "hub-stream.raw-text",
        "line breaks in texts are written as they are",
        ("HUB-SSE-03", "HUB-SSE-58"),
        parts=part(streams=streams_of(RawText)),
    ),
    Mutant("hub-stream.no-name", "events have no name", ("HUB-SSE-03",), parts=part(streams=streams_of(NoName))),
    # pings
    Mutant(
        "hub-stream.slow-pings",
        "a ping comes every 20 s",
        ("HUB-SSE-12", "HUB-SSE-51"),
        edit=machine("constants", "ping", "seconds", value=20),
    ),
    Mutant(
        "hub-stream.quick-pings",
        "a ping comes every 10 s",
        ("HUB-SSE-51", "HUB-SSE-12"),
        edit=machine("constants", "ping", "seconds", value=10),
    ),
    Mutant(
        "hub-stream.pings-when-idle",
        "a ping comes 15 s after the last event",
        ("HUB-SSE-51", "HUB-SSE-12"),
        parts=part(streams=PingsWhenIdle),
    ),
    Mutant(
        "hub-stream.pings-together",
        "all streams are pinged at the same instants",
        ("HUB-SSE-51",),
        parts=part(streams=PingsTogether),
    ),
    Mutant(
        "hub-stream.other-comment",
        "the connection is kept alive by another comment",
        (
            "HUB-SSE-12",
            "HUB-SSE-50",
        ),
        parts=part(streams=streams_of(OtherComment)),
    ),
)
