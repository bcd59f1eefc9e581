"""Cancelling: what is not started never starts, what runs is dropped (seed 002 section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    cancels,
    ends,
    failed_by,
    fails,
    failure,
    falls_silent,
    goes_on,
    hangs,
    is_still,
    retries,
    scripted,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import instant
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.clock import Clock

OPEN = ("queued", "running", "waiting")
"""Jobs that can be cancelled."""
FINISHED = ("done", "failed", "cancelled")


@requirement("HUB-CANCEL-01")
@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_cancel_is_taken(api: HubApi, given: HubGiven, state: str) -> None:
    """`POST /v1/jobs/{id}/cancel` of a job that is not finished succeeds."""
    await api.cancel(await given.in_state(state)).succeeds()


@requirement("HUB-CANCEL-02")
async def test_a_queued_job_is_cancelled_at_once(api: HubApi, given: HubGiven) -> None:
    """The next look at a queued job that was cancelled shows it cancelled, and it never starts."""
    project = await given.project()
    async with Started(given) as start:
        blocker = await given.job(project, **await scripted(given, project, ends(20)))
        job = await given.job(project)
        last = await given.job(project)
    await becomes(given, blocker, "running")
    with about("HUB-CANCEL-01", step="cancelling a queued job"):
        await api.cancel(job).succeeds()
    expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")
    await start.reach(20 + 1)
    await becomes(given, last, "done")
    detail = await given.detail(job)
    expect_fields(detail, {"status": "cancelled"}, "/data")
    for name in ("startedAt", "sessionId", "result"):
        expect(detail.get(name) is None, f"{name} null: it never started", str(detail.get(name)), f"/data/{name}")


@requirement("HUB-CANCEL-02")
async def test_a_job_of_an_offline_node_is_cancelled_at_once(api: HubApi, given: HubGiven) -> None:
    """A queued job whose node is offline: cancelled at once, and it does not start when the node is back."""
    job = await given.queued_job()
    node = job.project.node
    await given.offline(node)
    with about("HUB-CANCEL-01", step="cancelling a queued job"):
        await api.cancel(job).succeeds()
    expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")
    async with Since(given) as back:
        await given.online(node)
    await back.reach(2)
    expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")


@requirement("HUB-CANCEL-03")
async def test_a_running_job_changes_its_status_alone(api: HubApi, given: HubGiven) -> None:
    """A running job is cancelled at once; which round it was, since when, and how far it came, still shows."""
    told = [{"atSeconds": 0.5, "toolCalls": 3, "lastActivity": "reads"}]
    async with Started(given) as start:
        [job] = await side_by_side(given, ends(600, progress=told))
    await start.reach(1)
    before = await becomes(given, job, "running")
    with about("HUB-CANCEL-01", step="cancelling a running job"):
        await api.cancel(job).succeeds()
    after = await given.detail(job)
    expect_fields(after, {"status": "cancelled"}, "/data")
    names = ("attempt", "sessionId", "startedAt", "queuedAt", "nodeId")
    is_still(before, after, *names)
    with about("HUB-GET-24", step="the last progress of a job that ended"):
        is_still(before, after, "progress")


LATE: dict[str, tuple[dict[str, Any], float]] = {
    "done": (ends(20, summary="late", progress=[{"atSeconds": 15, "toolCalls": 99}]), 20),
    "failed": (fails(20, type="engine_error", message="late"), 20),
    "retriable": (fails(20, message="late"), 20),
    "lost": (falls_silent(20), 50),
    "timeout": (hangs(), 60),
}
"""Rounds that go on after a cancel, and the seconds after which they are over."""


@requirement("HUB-CANCEL-04")
@pytest.mark.parametrize("late", LATE)
async def test_a_late_report_is_dropped(api: HubApi, given: HubGiven, late: str) -> None:
    """Whatever the node reports of a round that was cancelled: the job stays cancelled, without a result."""
    script, over = LATE[late]
    async with Started(given) as start:
        [job] = await side_by_side(given, script, kind="script", timeoutSeconds=60)
    await start.reach(1)
    await becomes(given, job, "running")
    await cancels(given, job)
    before = await becomes(given, job, "cancelled", rules=("HUB-CANCEL-03",))
    for seconds in (over + 1, over + 1 + given.timing.backoff[0] + 1):
        await start.reach(seconds)
        after = await given.detail(job)
        is_still(before, after, "status", "attempt", "sessionId", "failure", "finishedAt", "nextRetryAt")
        with about("HUB-GET-23", step="progress of a job that does not run any more"):
            is_still(before, after, "progress")
        expect(after.get("result") is None, "no result", str(after.get("result")), "/data/result")


@requirement("HUB-CANCEL-04")
@pytest.mark.parametrize("late", ["done", "failed", "retriable"])
async def test_a_late_report_does_not_end_the_next_round(api: HubApi, given: HubGiven, late: str) -> None:
    """Cancelled while it ran and retried by hand: what the old round reports is no part of the new one."""
    script, over = LATE[late]
    async with Started(given) as start:
        [job] = await side_by_side(given, script)
    await start.reach(1)
    await becomes(given, job, "running")
    await given.script(job.project, ends(30, summary="new"))
    await cancels(given, job)
    await retries(given, job)
    await start.reach(over - 0.5)
    await becomes(given, job, "queued", "running")  # a build may free the project at once
    await start.reach(over + 2)
    detail = await becomes(given, job, "running")
    for name in ("result", "failure", "finishedAt"):
        came = detail.get(name)
        expect(came is None, f"{name} null: the new round goes on", str(came), f"/data/{name}")
    await start.reach(over + 30)
    detail = await becomes(given, job, "done")
    result = detail.get("result")
    summary = result.get("summary") if isinstance(result, dict) else None
    expect(summary == "new", "the new round's result", str(summary), "/data/result/summary")


@requirement("HUB-CANCEL-05")
async def test_a_done_job_cannot_be_cancelled(api: HubApi, given: HubGiven) -> None:
    """A job that is done: 409 job_finished, and it stays done, its result kept."""
    job = await given.done_job()
    before = await given.detail(job)
    await api.cancel(job).fails(409, "job_finished")
    is_still(before, await given.detail(job), "status", "result", "failure", "finishedAt")


@requirement("HUB-CANCEL-52")
@pytest.mark.parametrize("state", FINISHED)
async def test_a_finished_job_cannot_be_cancelled(api: HubApi, given: HubGiven, state: str) -> None:
    """done, failed for good, cancelled: 409 job_finished each time one asks, and nothing changes."""
    job = await given.in_state(state)
    before = await given.detail(job)
    for _ in range(2):
        await api.cancel(job).fails(409, "job_finished")
    is_still(before, await given.detail(job), "status", "failure", "result", "finishedAt", "nextRetryAt", "sessionId")


@requirement("HUB-CANCEL-52")
async def test_a_job_that_used_up_its_attempts_is_finished(api: HubApi, given: HubGiven) -> None:
    """Failed for good though retriable, since `maxAttempts` is reached: 409 job_finished."""
    async with Started(given) as start:
        [job] = await side_by_side(given, fails(), maxAttempts=1)
    await start.reach(1)
    with about("HUB-RETRY-01", step="the last attempt that is allowed"):
        detail = await becomes(given, job, "failed")
        expect(detail.get("nextRetryAt") is None, "no retry to come", "a nextRetryAt", "/data/nextRetryAt")
    await api.cancel(job).fails(409, "job_finished")


@requirement("HUB-CANCEL-50", "HUB-CANCEL-53", "HUB-CANCEL-54", "HUB-CANCEL-55")
@pytest.mark.parametrize("state", OPEN)
async def test_what_a_cancelled_job_shows(api: HubApi, given: HubGiven, clock: Clock, state: str) -> None:
    """200 with the job: cancelled, `failure.type` cancelled, finished now, and no retry to come."""
    job = await given.in_state(state)
    async with Since(given) as pause:
        pass
    await pause.reach(3)
    async with Since(given) as cancelled:
        answer = await api.cancel(job).answers()
    if state == "waiting":
        with about("HUB-CANCEL-51", step="cancelling a waiting job"):
            expect(answer.status < 300, "a success (2xx)", str(answer.status))
    with about("HUB-CANCEL-50"):
        expect(answer.status == 200, "200", str(answer.status))
        expect_fields(answer.inner, {"id": job.id, "status": "cancelled"}, "/data")
    for told in (answer.inner, await given.detail(job)):
        with about("HUB-CANCEL-53"):
            failed_by(told, "cancelled")
        with about("HUB-CANCEL-55"):
            expect_fields(told, {"nextRetryAt": None}, "/data")
        with about("HUB-CANCEL-54"):
            expect(told.get("finishedAt") is not None, "`finishedAt`", "null", "/data/finishedAt")
            came = instant(told, "finishedAt")
            if clock.advances:
                low, high = cancelled.began, cancelled.ended
                expect(low <= came <= high, f"finishedAt within {low} to {high}", str(came), "/data/finishedAt")


@requirement("HUB-CANCEL-51")
async def test_a_waiting_job_is_cancelled(api: HubApi, given: HubGiven) -> None:
    """A failed job with a retry to come: cancelled at once, and the retry never comes."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [fails(), ends()])
    await start.reach(1)
    await waits(given, job)
    await api.cancel(job).succeeds()
    before = await given.detail(job)
    expect_fields(before, {"status": "cancelled"}, "/data")
    await start.reach(1 + given.timing.backoff[0] + 3)
    is_still(before, await given.detail(job))


@requirement("HUB-CANCEL-56")
@pytest.mark.parametrize("state", ["queued", "running", "waiting", "running again", "waiting again", "queued again"])
async def test_the_reason_that_a_cancelled_job_keeps(api: HubApi, given: HubGiven, state: str) -> None:
    """`failure.lastError` is the message of the last attempt that failed, null where none did."""
    again = state.endswith("again")
    second = ends(600) if state == "running again" else fails(message="reason 2")
    first = {"queued": fails(5), "running": ends(600)}.get(state, fails(message="reason 1"))
    project = await given.project()
    async with Started(given) as start:
        if state == "queued":
            await given.job(project, **await scripted(given, project, ends(600)))
        job = await given.job(project, **await scripted(given, project, first, second))
        if state == "queued again":  # it comes in while the first one waits, and stays
            await given.job(project, **await scripted(given, project, ends(600)))
    status = {"waiting": "failed"}.get(state.split()[0], state.split()[0])
    await start.reach(1)
    if again or status == "failed":
        await waits(given, job)
    if again:
        await goes_on(given, job, status, after=1.2 if state == "waiting again" else 0.2)
    await becomes(given, job, status)
    await cancels(given, job, "waiting" if status == "failed" else status)
    wanted = {"queued": None, "running": None, "waiting": "reason 1", "waiting again": "reason 2"}.get(
        state, "reason 1"
    )
    told = failure(await given.detail(job))
    expect_fields(told, {"lastError": wanted}, "/data/failure")
