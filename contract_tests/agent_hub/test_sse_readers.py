"""Event streams: many that follow the same job, and what a reader that is slow or gone does to the others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from contract_tests.agent_hub.sse_steps import beat, counted, fields_of, following, judge_ids, scripted
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock

READERS = 6
REPORTS = 32
SPACING = 0.5
"""Seconds between two reports where there are many; a ping falls due among them, at the same instant as one."""
VANISHING = 30
NEVER_READING = 3
TEXT = 200 * 1024
"""Characters of an activity that fill what connections hold for a reader who never reads."""
PATIENCE = 15.0
"""Real seconds in which a reader has read all that: how fast it comes is not judged."""


@requirement("HUB-SSE-03")
async def test_many_streams_of_a_busy_job_are_whole(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Reports in quick succession, and pings among them, to several readers: no stream has a broken line."""
    text = "“quick” \n\n: ping\r\ndata: {} "
    told = counted(SPACING, REPORTS, lastActivity=text)
    job = await scripted(given, {"afterSeconds": SPACING * (REPORTS + 1), "progress": told})
    async with AsyncExitStack() as open_:
        streams = [await open_.enter_async_context(api.events(job)) for _ in range(READERS)]
        await clock.advance(SPACING * (REPORTS + 1))
        for stream in streams:
            with about("HUB-SSE-07", step="a job that is done"):
                await stream.until("job.completed", within=PATIENCE)
                await stream.ends(within=PATIENCE)
            judge_ids(stream.events)


@requirement("HUB-SSE-57")
async def test_streams_of_one_job_agree(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Two who follow a job, the second one from the middle on, are told the same events with the same data."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 5 * step, "progress": counted(step, 4)})
    async with following(given, job) as one:
        await clock.advance(step)
        with about("HUB-SSE-06", step="progress"):
            await one.until("job.progress")
        async with following(given, job, last_event_id="20") as two:
            seen = len(one.stream.events)
            for _ in range(4):
                await clock.advance(step)
            with about("HUB-SSE-07", step="a job that is done"):
                await one.finishes("job.completed")
                await two.finishes("job.completed")
    first, second = one.stream.events[seen:], two.stream.events[1:]
    names = [event.event for event in first], [event.event for event in second]
    expect(names[0] == names[1], f"the events of the first stream, {names[0]}", str(names[1]), "event")
    for mine, other in zip(first, second, strict=True):
        expect(fields_of(mine) == fields_of(other), f"the same data, {mine.text[:200]}", other.text[:200], "data")


@requirement("HUB-SSE-06", "HUB-SSE-07")
async def test_readers_that_vanish_take_nobody_with_them(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Many connections to the same job are opened and dropped: who stays is told everything."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 2 * step, "progress": counted(step, 1)})
    async with following(given, job) as follower:
        request = api.events(job).request
        for stream in await asyncio.gather(*(api.transport.open(request) for _ in range(VANISHING))):
            await stream.close()
        await clock.advance(step)
        with about("HUB-SSE-06"):
            await follower.until("job.progress")
        await clock.advance(step)
        with about("HUB-SSE-07"):
            await follower.finishes("job.completed")


@requirement("HUB-SSE-06", "HUB-SSE-07")
async def test_readers_that_never_read_hold_nobody_up(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Some connections to the same job are never read, until they can take no more: who reads is told everything."""
    told = counted(SPACING, REPORTS)
    told[0]["lastActivity"] = "x" * TEXT
    job = await scripted(given, {"afterSeconds": SPACING * (REPORTS + 1), "progress": told})
    request = api.events(job).request
    async with AsyncExitStack() as open_:
        for _ in range(NEVER_READING):
            await open_.enter_async_context(await api.transport.open(request))
        async with following(given, job) as follower:
            await clock.advance(SPACING * (REPORTS + 1))
            with about("HUB-SSE-06"):
                await follower.stream.until("job.progress", within=PATIENCE)
            with about("HUB-SSE-07"):
                await follower.finishes("job.completed", within=PATIENCE)
