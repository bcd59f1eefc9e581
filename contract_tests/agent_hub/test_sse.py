"""Event streams: how they open, and what each event is made of (seed 002 section 3.1)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import STREAM_TYPE, HubApi, is_stream
from contract_tests.agent_hub.sse_steps import (
    AT_ONCE,
    beat,
    behind_another,
    counted,
    fields_of,
    following,
    has,
    judge_detail_of,
    judge_ids,
    scripted,
)
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.sse import Event
    from contract_tests.clock import Clock


TOLD = {"job.state": "HUB-SSE-53", "job.progress": "HUB-SSE-06", "job.completed": "HUB-SSE-07"}
"""The rule by which an event comes at all."""


@requirement("HUB-SSE-01")
async def test_events_of_a_job_are_a_stream(api: HubApi, given: HubGiven) -> None:
    """`GET /v1/jobs/{id}/events` of a job is 200 `text/event-stream`, and stays open while the job runs."""
    job = await given.running_job()
    async with await api.transport.open(api.events(job).request) as stream:
        came = f"{stream.status} with content-type {stream.headers.get('content-type', 'left out')}"
        expect(stream.status == 200 and is_stream(stream), f"200 with content-type {STREAM_TYPE}", came)
        expect(bool(await stream.read(given.clock.grace + 1)), "a stream that is open", "its end")


@requirement("HUB-SSE-02")
async def test_a_stream_needs_the_key(api: HubApi, given: HubGiven) -> None:
    """Without the API key, with a wrong one, or with the key in another place, no stream opens."""
    job = await given.queued_job()
    calls = [api.events(job, token=token) for token in (UNSET, f"{api.token}x", "")]
    elsewhere = api.events(job, token=UNSET, headers={"x-api-key": api.token})
    path = f"{elsewhere.request.path}?token={api.token}&access_token={api.token}"
    elsewhere.request = replace(elsewhere.request, path=path)
    for call in (*calls, elsewhere):
        await call.refused()
    async with following(given, job):
        pass


@requirement("HUB-SSE-05")
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_the_present_state_comes_at_once(api: HubApi, given: HubGiven, state: str) -> None:
    """The first event is `job.state` with the job as it is; it does not wait for a change, and comes once."""
    job = await given.in_state(state)
    async with api.events(job) as stream:
        first = await stream.next("job.state", within=AT_ONCE)
        has(first, id=job.id, status="failed" if state == "waiting" else state)
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        await stream.until("job.cancelled", within=given.clock.grace + 1)
        states = [event for event in stream.events[1:] if event.event == "job.state"]
        again = [event for event in states if fields_of(event).get("status") == fields_of(first).get("status")]
        expect(not again, "`job.state` of the present state once", f"again {len(again)} times", "event")


@requirement("HUB-SSE-04")
async def test_the_first_event_tells_the_progress(given: HubGiven, clock: Clock) -> None:
    """The data of `job.state` has `id`, `status` and `progress`, as the job's detail shows them."""
    step = beat(given)
    told = counted(step, 1, tokensIn=7, tokensOut=5, iterations=3, lastActivity="reads “设计.md”\n: ping\n\nid: 9")
    job = await scripted(given, {"afterSeconds": 40 * step, "progress": told})
    await clock.advance(1.5 * step)
    detail = await given.detail(job)
    with about("HUB-GET-21", step="a job that has progress"):
        expect(isinstance(detail.get("progress"), dict), "progress", str(detail.get("progress")), "/data/progress")
    async with following(given, job) as follower:
        data = fields_of(follower.first)
    for name in ("id", "status"):
        expect(data.get(name) == detail[name], f"`{name}` {detail[name]}", str(data.get(name)), f"data/{name}")
    progress = data.get("progress")
    expect(isinstance(progress, dict), "`progress`, an object", str(progress), "data/progress")
    for name in ("toolCalls", "tokensIn", "tokensOut", "iterations", "lastActivity"):
        want, came = detail["progress"].get(name), dict(progress or {}).get(name)
        expect(came == want, f"`{name}` {want}", str(came), f"data/progress/{name}")


@requirement("HUB-SSE-03")
async def test_every_event_has_id_name_and_data(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """Each event of a job's life has `id`, counted from 1, `event` and JSON `data`; pings take no number."""
    step = beat(given)
    end = 8 * step
    job = await behind_another(given, {"afterSeconds": end, "progress": counted(step, 3)}, lasts=step)
    async with api.events(job) as stream:
        for _ in range(4):
            await clock.advance(step)
        await clock.advance(given.timing.ping)
        await clock.advance(end)
        with about("HUB-SSE-07", step="the end of a stream"):
            events = await stream.rest(within=given.clock.grace + 1)
    expect(len(events) > 1, "the events of a job's life", str([event.event for event in events]))
    for event in events:
        expect(event.id is not None, "an id in each event", f"none in `{event.event}`", "id")
        expect(event.event.startswith("job."), "a name in each event", f"`{event.event}`", "event")
        expect(isinstance(event.data, dict), "data that is an object", event.text[:200], "data")
    judge_ids(events)


@requirement("HUB-SSE-03")
async def test_each_stream_counts_for_itself(given: HubGiven, clock: Clock) -> None:
    """A second stream of the same job, and one of another job, begin with id 1 again."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 40 * step, "progress": counted(step, 2)})
    async with following(given, job) as one:
        await clock.advance(step)
        with about("HUB-SSE-06", step="progress"):
            await one.until("job.progress")
        for other in (job, await given.queued_job()):
            async with following(given, other) as second:
                judge_ids(second.stream.events)
        judge_ids(one.stream.events)


@requirement("HUB-SSE-57", "HUB-SSE-58")
async def test_every_event_is_what_a_get_shows(given: HubGiven, clock: Clock) -> None:
    """From queued to done, with a failure in between: the data of each event is the detail, on one line of JSON."""
    step = beat(given)
    failing = {"afterSeconds": 2 * step, "result": "failed", "failureType": "llm_error", "retriable": True}
    last = {"afterSeconds": 3 * step, "summary": "two\r\nlines: “行” <b>", "producedFiles": ["a/b c.md"]}
    attempts = [{**failing, "message": "429\nrate limited"}, {**last, "progress": counted(step, 2)}]
    texts = {"prompt": "line 1\nline 2 \u2028 你好", "metadata": {"a": ["\n\r", None, 1.5, "\u2029\x85"]}}
    job = await behind_another(given, *attempts, lasts=step, **texts)
    steps: list[tuple[float, str, dict[str, Any]]] = [
        (step, "job.state", {"status": "running"}),
        (2 * step, "job.state", {"status": "failed"}),
        (given.timing.backoff[0], "job.state", {"status": "running", "attempt": 2}),
        (step, "job.progress", {}),
        (step, "job.progress", {}),
        (step, "job.completed", {}),
    ]
    async with following(given, job) as follower:
        await judge_shown(given, follower.first)
        for seconds, kind, fields in steps:
            await clock.advance(seconds)
            with about(TOLD[kind], step=f"`{kind}`"):
                event = await follower.until(kind, **fields)
            await judge_shown(given, event)


@requirement("HUB-SSE-57", "HUB-SSE-58")
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_a_cancel_is_told_as_a_get_shows_it(api: HubApi, given: HubGiven, state: str) -> None:
    """Once a cancel was answered the stream has told it, with the detail that the answer and a GET show."""
    job = await given.in_state(state)
    async with following(given, job) as follower:
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        with about("HUB-SSE-57"):
            event = await follower.stream.until("job.cancelled", within=AT_ONCE)
        await judge_shown(given, event)


@requirement("HUB-SSE-57", "HUB-SSE-58")
async def test_a_final_failure_is_told_as_a_get_shows_it(given: HubGiven, clock: Clock) -> None:
    """`job.failed` holds the detail, with `failure` and without a retry to come."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": step, "result": "failed", "message": "it\nbroke: {}"})
    async with following(given, job) as follower:
        await clock.advance(step)
        with about("HUB-SSE-08", step="a failure that is final"):
            event = await follower.until("job.failed")
        await judge_shown(given, event)


@requirement("HUB-SSE-62", "HUB-SSE-63")
async def test_nothing_on_the_way_keeps_events_back(api: HubApi, given: HubGiven) -> None:
    """The stream carries `Cache-Control: no-cache` and `X-Accel-Buffering: no`."""
    async with api.events(await given.queued_job()) as stream:
        with about("HUB-SSE-62"):
            came = stream.headers.get("cache-control", "left out")
            expect("no-cache" in re.split(r"[\s,]+", came.lower()), "no-cache", came, "cache-control")
        with about("HUB-SSE-63"):
            came = stream.headers.get("x-accel-buffering", "left out")
            expect(came.strip().lower() == "no", "no", came, "x-accel-buffering")


@requirement("HUB-SSE-64")
@pytest.mark.parametrize("id_", ["job_none", "0", "job x", "x" * 100])
async def test_the_stream_of_an_unknown_job_is_404(api: HubApi, id_: str) -> None:
    """A job that does not exist: 404 `job_not_found` as JSON, not a stream."""
    answer = await api.events(id_).fails(404, "job_not_found")
    judge_json(answer)


@requirement("HUB-SSE-64")
async def test_the_stream_of_another_keys_job_is_404(given: HubGiven) -> None:
    """A job of another key is as unknown as one that does not exist, whatever state it is in."""
    for job in (await given.queued_job(), await given.done_job()):
        judge_json(await given.stranger.events(job).fails(404, "job_not_found"))
        judge_json(await given.stranger.events(job, last_event_id="1", since=1).fails(404, "job_not_found"))


def judge_json(answer: HubAnswer) -> None:
    """An answer that is JSON by its content type."""
    came = answer.headers.get("content-type", "left out")
    expect(came.partition(";")[0].strip().lower() == "application/json", "application/json", came, "content-type")


async def judge_shown(given: HubGiven, event: Event) -> None:
    """An event as the rules have it, held against what a GET shows now."""
    with about("HUB-SSE-58"):
        expect(event.data_lines == 1, "data on one line", f"{event.data_lines} lines: {event.text[:200]!r}", "data")
    judge_detail_of(event, await given.detail(fields_of(event)["id"]), stands=given.clock.stands)
