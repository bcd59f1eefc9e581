"""What checks of event streams share: following a job from its present state on, and what events are to hold."""

from __future__ import annotations

import json
import math
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.following import FINAL
from contract_tests.agent_hub.shapes import FIELDS, iso
from contract_tests.checks import CheckFailed, about, expect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from contract_tests.agent_hub.client import Identified
    from contract_tests.agent_hub.following import EventStream
    from contract_tests.agent_hub.given import HubGiven, Job, Project
    from contract_tests.agent_hub.sse import Event

PING = " ping"
"""What stands behind the colon of the comment that keeps a stream alive."""
AT_ONCE = 2.0
"""Real seconds in which what is to come at once has come, a slow machine allowed for."""
BEGINS = 0.1
"""Seconds in which a round has begun: a key's jobs of the same millisecond are queued one millisecond apart."""
NUMBERS = ("toolCalls", "tokensIn", "tokensOut", "iterations")
KINDS = ("job.state", "job.progress", *FINAL)
"""Every event that there is."""


@dataclass
class Following:
    """A stream whose first event, the job's present state, was taken."""

    given: HubGiven
    stream: EventStream
    first: Event

    @property
    def within(self) -> float:
        """Real seconds in which an event comes that is due by the build's clock."""
        return self.given.clock.grace + 1

    async def tells(self, kind: str | Sequence[str], **fields: Any) -> Event:
        """The next event is of ``kind``, and its data has these fields; a progress of nothing is passed over."""
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        event = await self.stream.next(within=self.within)
        while is_nothing(event):
            event = await self.stream.next(within=self.within)
        wanted = " or ".join(f"`{kind}`" for kind in kinds)
        expect(event.event in kinds, f"an event {wanted}", f"`{event.event}` with {event.text[:200]}", "event")
        has(event, **fields)
        return event

    async def until(self, kind: str | Sequence[str], **fields: Any) -> Event:
        """The next event of ``kind`` whose data has these fields; those before it are passed over."""
        deadline = time.monotonic() + self.within
        while True:
            event = await self.stream.until(kind, within=max(deadline - time.monotonic(), 0))
            data = fields_of(event)
            if not is_nothing(event) and all(data.get(name) == value for name, value in fields.items()):
                return event

    async def ends(self) -> None:
        """The stream ends, with no further event."""
        await self.stream.ends(within=self.within)

    async def finishes(self, kind: str, within: float | None = None) -> Event:
        """Up to its final event, and the end behind it; ``within``: real seconds where much comes before it."""
        event = await self.stream.until(FINAL, within=within or self.within)
        expect(event.event == kind, f"`{kind}`", f"`{event.event}` with {event.text[:200]}", "event")
        await self.ends()
        return event


@asynccontextmanager
async def following(given: HubGiven, job: Identified | str, **parts: Any) -> AsyncIterator[Following]:
    """Follow a job: what checks start from; ``parts`` as of ``api.events``."""
    async with given.api.events(job, **parts) as stream:
        with about("HUB-SSE-05", step="the first event of a stream"):
            first = await stream.next("job.state", within=given.clock.grace + 1)
        yield Following(given, stream, first)


def beat(given: HubGiven) -> int:
    """Seconds between two things that nodes report, so many that a check's own exchanges fit in between."""
    return max(2, math.ceil(20 * given.clock.margin)) if given.clock.margin > 0.1 else 2


async def ping(stream: EventStream, number: int, within: float) -> float:
    """When the ping of that number, from 1, came; waits for it. Other comments may come. Fails where it does not."""
    deadline, looked, seen = time.monotonic() + within, 0, 0
    while True:
        comment = await stream.comment(looked + 1, within=max(deadline - time.monotonic(), 0))
        looked += 1
        if comment.text == PING:
            seen += 1
            if seen == number:
                return comment.at


def pings(stream: EventStream) -> int:
    """How many pings came so far."""
    return sum(comment.text == PING for comment in stream.comments)


def fields_of(event: Event) -> dict[str, Any]:
    """The data of an event, an object. Fails the check, under HUB-SSE-03, where it is none."""
    with about("HUB-SSE-03", step="the data of an event"):
        expect(isinstance(event.data, dict), "data that is an object", event.text[:200], "data")
    return dict(event.data)


def has(event: Event, **fields: Any) -> None:
    """The event's data has these fields."""
    data = fields_of(event)
    for name, value in fields.items():
        expect(data.get(name) == value, f"`{name}` {json.dumps(value)}", json.dumps(data.get(name)), f"/{name}")


def reported(event: Event) -> tuple[Any, ...] | None:
    """The numbers of ``progress`` and ``lastActivity``; None where it is null."""
    progress = fields_of(event).get("progress")
    if not isinstance(progress, dict):
        return None
    return tuple(progress.get(name) for name in (*NUMBERS, "lastActivity"))


def is_nothing(event: Event) -> bool:
    """Whether it is a `job.progress` of nothing at all, as a heartbeat before the first report may make it.

    Whether that is a change, after null, no rule says.
    """
    return event.event == "job.progress" and reported(event) == (0, 0, 0, 0, "")


def judge_detail_of(event: Event, detail: Mapping[str, Any], *, stands: bool) -> None:
    """The event's data is the job's detail as a GET shows it at the same time.

    ``stands``: whether the clock does; where it flows the next report may have come in between, which is newer then. A
    field that is left out counts as null: that it is to be there, other rules say.
    """
    data = fields_of(event)
    with about("HUB-SSE-58"):
        missing = [name for name in FIELDS if name in detail and name not in data and detail[name] is not None]
        expect(not missing, f"the job's detail, with {', '.join(missing)}", event.text[:200], "data")
    with about("HUB-SSE-57"):
        for name in FIELDS:
            told, shown = data.get(name), detail.get(name)
            if name == "progress" and not stands:
                if _is_newer(shown, told):
                    continue
                told, shown = _without_instant(told), _without_instant(shown)
            if told != shown:
                expected, came = json.dumps(shown)[:200], json.dumps(told)[:200]
                raise CheckFailed(f"`{name}` {expected}, as GET shows it", came, f"data/{name}")


def _is_newer(progress: Any, other: Any) -> bool:
    """Whether a progress was reported after another one, both being there."""
    times = [one.get("updatedAt") if isinstance(one, dict) else None for one in (progress, other)]
    return all(isinstance(time, str) for time in times) and iso(times[0]) > iso(times[1])


def _without_instant(progress: Any) -> Any:
    """Without `updatedAt`; a progress of nothing at all, which a heartbeat may bring at any time, counts as null."""
    if not isinstance(progress, dict):
        return progress
    told = {name: value for name, value in progress.items() if name != "updatedAt"}
    return told if any(told.get(name) for name in (*NUMBERS, "lastActivity")) else None


def judge_ids(events: Sequence[Event], first: int = 1) -> None:
    """Each event has an id of its own, whole numbers that rise by one from ``first``."""
    for number, event in enumerate(events, first):
        expect(event.id == str(number), f"id {number}", f"id {event.id} of `{event.event}`", "id")


async def scripted(given: HubGiven, *attempts: Mapping[str, Any], on: Project | None = None, **fields: Any) -> Job:
    """A job of its own, which has begun where its project is free; ``fields`` are those of the item.

    What its node reports at an instant of the script has come when so much time has passed from here on.
    """
    project = on or await given.project()
    external_id = given.unique("task")
    await given.script(project, *attempts, external_id=external_id)
    job = await given.job(project, externalId=external_id, **fields)
    await given.clock.advance(BEGINS)
    return job


def reports(step: float, *values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A report of progress every ``step`` seconds."""
    return [{"atSeconds": round(step * number, 3), **one} for number, one in enumerate(values, 1)]


def counted(step: float, number: int, **values: Any) -> list[dict[str, Any]]:
    """So many reports, one every ``step`` seconds, each with a tool call more than the one before."""
    return reports(step, *({**values, "toolCalls": one} for one in range(1, number + 1)))


async def behind_another(given: HubGiven, *attempts: Mapping[str, Any], lasts: float, **fields: Any) -> Job:
    """A queued job that waits for another one, which is done after so many seconds."""
    project = await given.project()
    await scripted(given, {"afterSeconds": lasts, "result": "done"}, on=project)
    return await scripted(given, *attempts, on=project, **fields)
