"""Event streams: where numbering goes on after a connection was lost (seed 002 section 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.sse_steps import (
    AT_ONCE,
    beat,
    counted,
    fields_of,
    following,
    has,
    is_nothing,
    judge_ids,
    reported,
    scripted,
)
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock

AFTER = (0, 1, 41, 2**31)
NO_NUMBERS = ("-1", "1.5", "", "abc", "7x")
HUGE = 10**30


def parts(how: str, value: Any) -> dict[str, Any]:
    """The number where a reconnecting client has it."""
    return {"last_event_id": str(value)} if how == "header" else {"since": str(value)}


async def numbering_goes_on(api: HubApi, given: HubGiven, how: str) -> None:
    """The next event after each number has the number behind it, and those that follow go on."""
    job = await given.queued_job()
    for after in AFTER:
        async with following(given, job, **parts(how, after)) as follower:
            judge_ids(follower.stream.events, after + 1)
    async with following(given, job, **parts(how, 41)) as follower:
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        with about("HUB-SSE-10", step="a job that is cancelled"):
            await follower.finishes("job.cancelled")
        judge_ids(follower.stream.events, 42)


@requirement("HUB-SSE-13")
async def test_numbering_goes_on_after_last_event_id(api: HubApi, given: HubGiven) -> None:
    """Reconnected with `Last-Event-ID: N`: the first event has id N + 1, the next one N + 2."""
    await numbering_goes_on(api, given, "header")


@requirement("HUB-SSE-14")
async def test_numbering_goes_on_after_since(api: HubApi, given: HubGiven) -> None:
    """Reconnected with `?since=N`: the same."""
    await numbering_goes_on(api, given, "query")


@requirement("HUB-SSE-13")
async def test_ids_never_repeat_over_three_reconnections(given: HubGiven, clock: Clock) -> None:
    """Cut off and reconnected three times with the last id seen: every id is the one before plus one."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 40 * step, "progress": counted(step, 4)})
    last = 0
    for _ in range(4):
        async with following(given, job, **(parts("header", last) if last else {})) as follower:
            await clock.advance(step)
            with about("HUB-SSE-06", step="progress"):
                await follower.until("job.progress")
            judge_ids(follower.stream.events, last + 1)
            last += len(follower.stream.events)


@requirement("HUB-SSE-59")
async def test_the_header_wins_over_the_query(api: HubApi, given: HubGiven) -> None:
    """`Last-Event-ID: 7` with `?since=3`, or with a larger one, goes on at 8; `0` is a number, too."""
    job = await given.queued_job()
    for header, since in ((7, 3), (7, 30), (0, 5)):
        async with api.events(job, last_event_id=str(header), since=since) as stream:
            first = await stream.next("job.state", within=AT_ONCE)
        came = f"id {first.id} with Last-Event-ID {header} and since={since}"
        expect(first.id == str(header + 1), f"id {header + 1}", came, "id")


@requirement("HUB-SSE-60")
async def test_what_is_no_whole_number_is_ignored(api: HubApi, given: HubGiven) -> None:
    """-1, 1.5, letters or nothing, in the header or in the query: a stream from 1."""
    job = await given.queued_job()
    for how in ("header", "query"):
        for text in NO_NUMBERS:
            answer = f"`{text}` in the {how}"
            async with api.events(job, **parts(how, text)) as stream:
                first = await stream.next("job.state", within=AT_ONCE)
            expect(first.id == "1", f"id 1 with {answer}", f"id {first.id}", "id")


@requirement("HUB-SSE-60")
async def test_an_ill_formed_header_counts_as_absent(api: HubApi, given: HubGiven) -> None:
    """Beside `?since=3` a header that is no number changes nothing: id 4."""
    job = await given.queued_job()
    for text in NO_NUMBERS:
        async with api.events(job, last_event_id=text, since=3) as stream:
            first = await stream.next("job.state", within=AT_ONCE)
        expect(first.id == "4", f"id 4 with Last-Event-ID `{text}` and since=3", f"id {first.id}", "id")
    async with api.events(job, last_event_id="7", since="abc") as stream:
        first = await stream.next("job.state", within=AT_ONCE)
    expect(first.id == "8", "id 8 with Last-Event-ID 7 and since=abc", f"id {first.id}", "id")


@requirement("HUB-SSE-60")
async def test_a_number_that_no_stream_reaches_breaks_nothing(api: HubApi, given: HubGiven) -> None:
    """A number of thirty digits: a stream all the same, that goes on behind it or begins with 1."""
    job = await given.queued_job()
    for how in ("header", "query"):
        async with api.events(job, **parts(how, HUGE)) as stream:
            first = await stream.next("job.state", within=AT_ONCE)
        expect(first.id in ("1", str(HUGE + 1)), f"id 1 or {HUGE + 1}", f"id {first.id}", "id")


@requirement("HUB-SSE-61")
async def test_nothing_is_replayed(given: HubGiven, clock: Clock) -> None:
    """Reconnected three times, with the last id, an early one and none: the present state, then only what is new."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 40 * step, "progress": counted(step, 6)})
    async with following(given, job) as follower:
        for _ in range(3):
            await clock.advance(step)
            with about("HUB-SSE-06", step="progress"):
                last = await follower.until("job.progress")
    for known, again in enumerate((parts("header", last.id), parts("query", 1), {}), 3):
        async with following(given, job, **again) as follower:
            has(follower.first, status="running")
            came = (reported(follower.first) or (None,))[0]
            expect(came == known, f"`job.state` with {known} tool calls", str(came), "data/progress/toolCalls")
            await clock.advance(step)
            with about("HUB-SSE-06", step="progress"):
                await follower.until("job.progress", id=job.id)
            others = [event for event in follower.stream.events[1:] if not is_nothing(event)]
            calls = [(fields_of(event).get("progress") or {}).get("toolCalls") for event in others]
            told = [event.event for event in others]
            expect(calls == [known + 1], f"one event, with {known + 1} tool calls", f"{told} with {calls}", "event")
