"""Event streams: which changes are events, and which are none (seed 002 section 3.1)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.sse_steps import (
    AT_ONCE,
    KINDS,
    beat,
    behind_another,
    counted,
    fields_of,
    following,
    has,
    is_nothing,
    judge_ids,
    reported,
    reports,
    scripted,
)
from contract_tests.calls import UNSET
from contract_tests.checks import about, alone, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Job
    from contract_tests.clock import Clock
    from contract_tests.transport import ProviderStates

RETRIABLE = {"result": "failed", "failureType": "llm_error", "retriable": True, "message": "429 rate limited"}
FIRST = {"toolCalls": 1, "tokensIn": 20, "tokensOut": 30, "iterations": 4, "lastActivity": "reads a.py"}


@requirement("HUB-SSE-06")
async def test_each_value_of_progress_is_told(given: HubGiven, clock: Clock) -> None:
    """While the job runs `job.progress` tells every change: of a count, of tokens, of an iteration, of the activity."""
    step = beat(given)
    changes: list[dict[str, Any]] = [{"toolCalls": 2}, {"tokensIn": 21}, {"tokensOut": 31}, {"iterations": 5}]
    changes.append({"lastActivity": "writes b.py"})
    job = await scripted(given, {"afterSeconds": 40 * step, "progress": reports(step, FIRST, *changes)})
    wanted = dict(FIRST)
    async with following(given, job) as follower:
        for change in ({}, *changes):
            wanted |= change
            await clock.advance(step)
            event = await follower.until("job.progress")
            progress = fields_of(event).get("progress") or {}
            for name, value in wanted.items():
                expect(progress.get(name) == value, f"`{name}` {value}", str(progress.get(name)), f"/progress/{name}")


@requirement("HUB-SSE-06")
async def test_a_new_attempt_is_told(given: HubGiven, clock: Clock) -> None:
    """When a job that failed runs again the stream, which stays open, tells it."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": step, **RETRIABLE}, {"afterSeconds": 40 * step})
    async with following(given, job) as follower:
        await given.until(job, "failed", seconds=2 * step)
        seen = len(follower.stream.events)
        await clock.advance(given.timing.backoff[0])
        await follower.until(("job.state", "job.progress"), status="running")
        while len(follower.stream.events) <= seen:
            await follower.until(("job.state", "job.progress"), status="running")


@requirement("HUB-SSE-07")
async def test_a_job_that_is_done_is_told_and_the_stream_ends(given: HubGiven, clock: Clock) -> None:
    """`job.completed`, then the server closes the connection."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 2 * step, "progress": counted(step, 1)})
    async with following(given, job) as follower:
        await clock.advance(2 * step)
        await follower.finishes("job.completed")


@requirement("HUB-SSE-08")
@pytest.mark.parametrize(
    ("attempt", "fields"),
    [
        ({"result": "failed", "failureType": "engine_error"}, {}),
        ({"result": "failed", "failureType": "llm_error", "retriable": False}, {}),
        (RETRIABLE, {"maxAttempts": 1}),
        ({"result": "failed", "failureType": "script_failed"}, {"kind": "script"}),
    ],
    ids=["engine_error", "not_retriable", "last_attempt", "script"],
)
async def test_a_final_failure_is_told_and_the_stream_ends(
    given: HubGiven, clock: Clock, attempt: dict[str, Any], fields: dict[str, Any]
) -> None:
    """A failure with no retry to come: `job.failed`, then the server closes the connection."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": step, **attempt}, **fields)
    async with following(given, job) as follower:
        await clock.advance(step)
        await follower.finishes("job.failed")


@requirement("HUB-SSE-08")
async def test_a_lost_node_is_told_and_the_stream_ends(given: HubGiven, clock: Clock) -> None:
    """The node is lost in the last attempt: `job.failed` at that moment, then the end."""
    job = await given.running_job(maxAttempts=1)
    async with following(given, job) as follower:
        await given.offline(job.project.node)
        await clock.advance(given.timing.node_lost + 2 * clock.margin)
        await follower.finishes("job.failed")


@requirement("HUB-SSE-09")
async def test_no_failure_is_told_while_a_retry_is_to_come(given: HubGiven, clock: Clock) -> None:
    """The first of two attempts fails: no `job.failed`, and the stream stays open; the second one's is told."""
    step = beat(given)
    attempt = {"afterSeconds": 2 * step, **RETRIABLE}
    job = await scripted(given, attempt, maxAttempts=2)
    async with following(given, job) as follower:
        stream = follower.stream
        await given.until(job, "failed", seconds=3 * step)
        await clock.advance(given.timing.backoff[0])
        await given.until(job, "running")
        final = [event for event in stream.events if event.event == "job.failed"]
        expect(not final, "no `job.failed` before the last attempt", "one after the first", "event")
        expect(stream.ended is None, "a stream that stays open", "its end after the first attempt")
        await clock.advance(2 * step)
        with about("HUB-SSE-08", step="a failure that is final"):
            event = await follower.finishes("job.failed")
        has(event, **({"nextRetryAt": None} if "nextRetryAt" in fields_of(event) else {}))


@requirement("HUB-SSE-10")
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_a_cancelled_job_is_told_and_the_stream_ends(api: HubApi, given: HubGiven, state: str) -> None:
    """`job.cancelled`, once, then the server closes the connection."""
    job = await given.in_state(state)
    async with following(given, job) as follower:
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        await follower.finishes("job.cancelled")


@requirement("HUB-SSE-10")
async def test_a_cancelled_batch_is_told_to_each_stream(api: HubApi, given: HubGiven) -> None:
    """Each job of a batch that is cancelled tells it to who follows it."""
    batch, project = given.unique("batch"), await given.project()
    jobs = [await given.running_job(project, batch=batch), *[await given.job(project, batch=batch) for _ in range(2)]]
    streams = [await api.events(job).opens() for job in jobs]
    with about("HUB-BATCH-16", step="cancelling a batch"):
        await api.cancel_batch(batch).succeeds()
    for stream in streams:
        await stream.until("job.cancelled", within=given.clock.grace + 1)
        await stream.ends(within=given.clock.grace + 1)


@alone
@requirement("HUB-SSE-11")
async def test_a_job_that_is_gone_is_told_and_the_stream_ends(
    api: HubApi, given: HubGiven, states: ProviderStates
) -> None:
    """The record no longer exists: `job.deleted`, then the server closes the connection."""
    jobs = [await given.in_state(state) for state in ("queued", "running", "waiting")]
    streams = [await api.events(job).opens() for job in (*jobs, jobs[0])]
    for stream in streams:
        with about("HUB-SSE-05", step="the first event of a stream"):
            await stream.next("job.state")
    await states.set_up("reset", {})
    for stream in streams:
        await stream.until("job.deleted")
        await stream.ends()


@alone
@requirement("HUB-SSE-58")
async def test_a_job_that_is_gone_is_named(api: HubApi, given: HubGiven, states: ProviderStates) -> None:
    """The data of `job.deleted` is one line of JSON with the `id` of the job at least."""
    job = await given.queued_job()
    async with following(given, job) as follower:
        await states.set_up("reset", {})
        with about("HUB-SSE-11", step="a job that is gone"):
            event = await follower.until("job.deleted")
        expect(event.data_lines == 1, "data on one line", f"{event.data_lines} lines", "data")
        has(event, id=job.id)


@requirement("HUB-SSE-15")
async def test_a_stream_is_no_stream_of_tokens(given: HubGiven, clock: Clock) -> None:
    """Over a round with three reports nothing comes but the events of the seed, and no more than was reported."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 4 * step, "progress": counted(step, 3, tokensOut=5000)})
    async with following(given, job) as follower:
        for _ in range(4):
            await clock.advance(step)
        with about("HUB-SSE-07", step="a job that is done"):
            await follower.finishes("job.completed")
        events = follower.stream.events
    others = sorted({event.event for event in events} - set(KINDS))
    expect(not others, f"no event but {', '.join(KINDS)}", ", ".join(others), "event")
    told = sum(event.event == "job.progress" for event in events)
    heartbeats = 4 * step // 10
    most = 3 + heartbeats + 1  # each report, the heartbeats in between, and the report of the end
    expect(told <= most, f"at most {most} reports of progress", str(told), "event")


@requirement("HUB-SSE-52")
@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
async def test_a_finished_job_is_told_as_such(api: HubApi, given: HubGiven, state: str) -> None:
    """Followed after its end: `job.state`, its final event, and the end of the stream, as often as one comes."""
    job = await given.in_state(state)
    final = {"done": "job.completed", "failed": "job.failed", "cancelled": "job.cancelled"}[state]
    for after in (0, 7):
        async with api.events(job, last_event_id=str(after) if after else UNSET) as stream:
            has(await stream.next("job.state", within=AT_ONCE), id=job.id, status=state)
            has(await stream.next(final, within=AT_ONCE), id=job.id, status=state)
            await stream.ends(within=AT_ONCE)
            with about("HUB-SSE-13", step="the numbers of events"):
                judge_ids(stream.events, after + 1)


@requirement("HUB-SSE-52")
async def test_what_ended_while_nobody_listened_is_told(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """The connection is lost, the job ends meanwhile: who comes back is told its end, once, and the stream ends."""
    step = beat(given)
    job = await scripted(given, {"afterSeconds": 2 * step, "progress": counted(step, 1)})
    async with following(given, job) as follower:
        await clock.advance(step)
        with about("HUB-SSE-06", step="progress"):
            last = await follower.until("job.progress")
    await given.until(job, "done", seconds=2 * step)
    async with api.events(job, last_event_id=last.id) as stream:
        has(await stream.next("job.state"), status="done")
        await stream.next("job.completed")
        await stream.ends()


@requirement("HUB-SSE-53", "HUB-SSE-54")
async def test_every_change_of_status_is_told(given: HubGiven, clock: Clock) -> None:
    """Queued to running, a failure with a retry to come, queued again, a new attempt: `job.state` each, in order."""
    step = beat(given)
    attempts: list[dict[str, Any]] = [{"afterSeconds": 2 * step, **RETRIABLE}, {"afterSeconds": 2 * step}]
    job = await behind_another(given, *attempts, lasts=step)
    async with following(given, job) as follower:
        has(follower.first, status="queued", attempt=0)
        with about("HUB-SSE-53"):
            await clock.advance(step)
            session = fields_of(await follower.tells("job.state", status="running", attempt=1)).get("sessionId")
            await clock.advance(2 * step)
            event = await follower.tells("job.state", status="failed", attempt=1)
            waits = fields_of(event).get("nextRetryAt")
            expect(waits is not None, "a retry to come", "nextRetryAt null", "data/nextRetryAt")
            await given.offline(job.project.node)
            await clock.advance(given.timing.backoff[0])
            await follower.tells("job.state", status="queued", nextRetryAt=None)
        with about("HUB-SSE-54"):
            await given.online(job.project.node)
            event = await follower.tells("job.state", status="running", attempt=2)
            came = fields_of(event).get("sessionId")
            expect(came not in (None, session), "a session of its own", str(came), "data/sessionId")
        await clock.advance(2 * step)
        with about("HUB-SSE-07", step="a job that is done"):
            await follower.tells("job.completed", attempt=2)
            await follower.ends()
        with about("HUB-SSE-03", step="the numbers of events"):
            judge_ids(follower.stream.events)


@requirement("HUB-SSE-53")
async def test_a_lost_node_with_a_retry_to_come_is_a_state(given: HubGiven, clock: Clock) -> None:
    """The node is lost in the first attempt: `job.state` with the failure, and the stream goes on."""
    job = await given.running_job()
    async with following(given, job) as follower:
        await given.offline(job.project.node)
        await clock.advance(given.timing.node_lost + 2 * clock.margin)
        event = await follower.tells("job.state", status="failed")
        failure = fields_of(event).get("failure") or {}
        expect(failure.get("type") == "node_lost", "`node_lost`", str(failure.get("type")), "data/failure/type")
        await clock.advance(given.timing.backoff[0])
        await follower.tells("job.state", status="queued")


@requirement("HUB-SSE-53")
async def test_a_retry_by_hand_is_a_state(api: HubApi, given: HubGiven) -> None:
    """A job that waits for its retry is retried by hand while another one keeps its project busy: queued again."""
    job = await given.waiting_job()
    await given.running_job(job.project)
    async with following(given, job) as follower:
        with about("HUB-RETRY-07", step="a retry by hand"):
            await api.retry(job).succeeds()
        await follower.tells("job.state", status="queued", attempt=0)


@requirement("HUB-SSE-55")
async def test_a_change_of_blocked_alone_is_no_event(api: HubApi, given: HubGiven) -> None:
    """The node of a queued job goes offline and comes back, twice: no event; the cancel is the next one."""
    job = await given.queued_job()
    async with following(given, job) as follower:
        for _ in range(2):
            await turned(given, job, online=False)
            await turned(given, job, online=True)
        with about("HUB-CANCEL-02", step="cancelling a job"):
            await api.cancel(job).succeeds()
        await follower.stream.next("job.cancelled", within=follower.within)


async def turned(given: HubGiven, job: Job, *, online: bool) -> None:
    """The job's node comes or goes, and its detail shows it."""
    await (given.online if online else given.offline)(job.project.node)
    blocked = (await given.detail(job)).get("blocked")
    with about("HUB-NODE-07", step="a queued job of a node that is offline"):
        expect((blocked is None) is online, "null" if online else "`blocked`", str(blocked), "/data/blocked")


@requirement("HUB-SSE-56")
async def test_a_report_of_nothing_new_is_no_event(given: HubGiven, clock: Clock) -> None:
    """Reports with the same numbers and the same activity, and the node's heartbeat: no `job.progress`."""
    step = beat(given)
    told = reports(step, FIRST, FIRST, {}, {"lastActivity": "writes b.py"}, {"lastActivity": "writes b.py"}, {})
    job = await scripted(given, {"afterSeconds": 12 * step, "progress": told})
    async with following(given, job) as follower:
        for _ in range(12):
            await clock.advance(step)
        with about("HUB-SSE-07", step="a job that is done"):
            await follower.finishes("job.completed")
        events = follower.stream.events
    for before, event in itertools.pairwise(events):
        new = event.event != "job.progress" or reported(event) != reported(before)
        expect(new, "no event without a new number or activity", f"`{event.event}` with {event.text[:300]}", "event")
    changes = [reported(event) for event in events if event.event == "job.progress" and not is_nothing(event)]
    with about("HUB-SSE-06", step="progress"):
        expect(len(changes) == 2, "the two changes of progress", str(changes), "event")
