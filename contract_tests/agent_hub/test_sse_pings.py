"""Event streams: the comment that keeps a connection alive (seed 002 section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.sse_steps import (
    AT_ONCE,
    beat,
    counted,
    following,
    ping,
    pings,
    scripted,
)
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock


@requirement("HUB-SSE-12")
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_a_ping_comes_every_15_seconds(given: HubGiven, clock: Clock, state: str) -> None:
    """A comment line `: ping` comes whenever 15 s have passed, whatever state the job is in."""
    job = await given.in_state(state)
    async with following(given, job) as follower:
        stream = follower.stream
        times = 3 if clock.advances else 2
        for _ in range(times):
            before = pings(stream)
            await clock.advance(given.timing.ping + 2 * clock.margin)
            await ping(stream, before + 1, within=AT_ONCE)
        expect(stream.ended is None, "a stream that stays open", "its end")


@requirement("HUB-SSE-50")
async def test_a_ping_comes_at_once(given: HubGiven) -> None:
    """The stream of a job of which there is nothing new begins with a comment line `: ping`."""
    job = await given.queued_job()
    async with given.api.events(job) as stream:
        await ping(stream, 1, within=AT_ONCE)


@requirement("HUB-SSE-51")
async def test_pings_come_between_other_events(given: HubGiven, clock: Clock) -> None:
    """Progress every few seconds puts no ping off: the first one comes 15 s after the connection was made."""
    step = beat(given)
    number = int(given.timing.ping // step) + 1
    job = await scripted(given, {"afterSeconds": 100 * step, "progress": counted(step, 2 * number)})
    async with following(given, job) as follower:
        for _ in range(2):
            before = pings(follower.stream)
            for _ in range(number):
                await clock.advance(step)
                with about("HUB-SSE-06", step="progress"):
                    await follower.until("job.progress")
            await ping(follower.stream, before + 1, within=AT_ONCE)


@requirement("HUB-SSE-51")
async def test_pings_come_to_the_millisecond(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """At 15 s and at 30 s, and none a millisecond before either: the end of the stream comes first there."""
    clock.needs_to_stand()
    every = given.timing.ping
    jobs = [await given.queued_job() for _ in range(3)]
    first, second, last = [await api.events(job).opens() for job in jobs]
    now = 0.0
    for at, stream, job, due in ((every - 0.001, first, jobs[0], 0), (2 * every - 0.001, second, jobs[1], 1)):
        await clock.advance(round(at - now, 3))
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        with about("HUB-SSE-10", step="a job that is cancelled"):
            await stream.until("job.cancelled")
            await stream.ends()
        came = pings(stream) - 1  # the one at once is another check's
        expect(came <= due, f"{due} pings within {at:g} s, beside the one at once", str(came), "comment")
        await clock.advance(0.001)
        now = at + 0.001
        await ping(last, due + 2, within=AT_ONCE)


@requirement("HUB-SSE-51")
async def test_pings_are_counted_from_the_connection(given: HubGiven, clock: Clock) -> None:
    """Of two streams that were opened 5 s apart each gets its pings 15 s after it was opened."""
    clock.needs_to_stand()
    every = given.timing.ping
    apart = every / 3
    job = await given.queued_job()
    async with following(given, job) as early:
        await clock.advance(apart)
        async with following(given, job) as late:
            await clock.advance(every - apart)
            await ping(early.stream, 2, within=AT_ONCE)
            await clock.advance(apart)
            await ping(late.stream, 2, within=AT_ONCE)
            came = pings(early.stream), pings(late.stream)
            expect(came == (2, 2), "one ping each, beside the one at once", f"{came}", "comment")
