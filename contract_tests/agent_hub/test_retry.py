"""Retries that come by themselves: how often, when, and as what (seed 002 section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.given import Project
from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    ends,
    failed_by,
    fails,
    failure,
    falls_silent,
    goes_on,
    is_lost,
    is_still,
    scripted,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import instant
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven, Job
    from contract_tests.clock import Clock

NEVER_RETRIED = ("engine_error", "timeout", "max_iterations", "project_not_found", "rejected", "script_failed")


@requirement("HUB-RETRY-01")
async def test_a_job_runs_as_often_as_it_may(given: HubGiven, clock: Clock) -> None:
    """`maxAttempts` 1 to 4, and 4 where it was not given: so many attempts, then failed for good."""
    clock.needs_advance()
    wanted = (1, 2, 3, 4, 4)
    fields = [{"maxAttempts": most} for most in wanted[:-1]]
    async with Started(given) as start:
        jobs = await side_by_side(given, *[fails() for _ in wanted], fields=[*fields, {}])
    await start.reach(1)
    await waits(given, jobs[-1])
    await start.reach(2 * sum(given.timing.backoff) + 10)
    for job, most in zip(jobs, wanted, strict=True):
        detail = await becomes(given, job, "failed")
        came = detail.get("attempt")
        expect(came == most, f"{most} attempts", str(came), "/data/attempt")


@requirement("HUB-RETRY-01")
@pytest.mark.parametrize("script", [fails(), falls_silent(0)], ids=["llm_error", "node_lost"])
async def test_with_one_attempt_the_first_failure_is_final(given: HubGiven, script: dict[str, object]) -> None:
    """`maxAttempts` 1: a failure that others would be retried for ends the job."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [script, ends()], maxAttempts=1)
    over = 1 + (given.timing.node_lost * 1.5 if script["result"] == "node_lost" else 0)
    await start.reach(over)
    before = await becomes(given, job, "failed")
    await start.reach(over + given.timing.backoff[0] + 2)
    is_still(before, await given.detail(job))


@requirement("HUB-RETRY-02")
async def test_the_backoff_grows(given: HubGiven) -> None:
    """30 s after the first failure, 2 minutes after the second, 10 after the third: no sooner, not much later."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [fails(), fails(), fails(), ends(1000)])
    since: Since = start
    steps = given.timing.backoff if given.clock.advances else given.timing.backoff[:1]
    for attempt, backoff in enumerate(steps, 1):
        await since.reach(1)
        before = await waits(given, job, attempt)
        await since.before(1 + backoff * 0.9)  # the seed's example has 117 s for 2 minutes
        is_still(before, await given.detail(job), "status", "attempt")
        await since.reach(1 + backoff * 1.05)
        async with Since(given) as since:
            detail = await given.detail(job)
        ran = detail.get("attempt") != before.get("attempt")
        expect(ran, f"attempt {attempt + 1} within {backoff * 1.05:g} s", f"status {detail.get('status')}")


@requirement("HUB-RETRY-02")
async def test_a_long_backoff_holds_up_nobody(given: HubGiven, clock: Clock) -> None:
    """One job waits its 10 minutes, another fails for the first time: that one runs again 30 s later."""
    clock.needs_advance()
    node = await given.node([given.unique("proj"), given.unique("proj")])
    one, two = (Project(name, node) for name in node.projects)
    async with Started(given) as start:
        slow = await given.job(one, **await scripted(given, one, fails()))
    await start.reach(1)
    for attempt in (1, 2):
        await waits(given, slow, attempt)
        await goes_on(given, slow, "failed", after=1.2)
    before = await waits(given, slow, 3)
    async with Started(given) as start:
        quick = await given.job(two, **await scripted(given, two, fails(), ends()))
    await start.reach(1)
    await waits(given, quick)
    await start.reach(1 + 1.1 * given.timing.backoff[0] + 1)
    await becomes(given, quick, "done")
    is_still(before, await given.detail(slow), "status", "attempt")


@requirement("HUB-RETRY-03")
@pytest.mark.parametrize("script", [fails(20), falls_silent(20)], ids=["llm_error", "node_lost"])
async def test_each_attempt_is_a_new_session(given: HubGiven, clock: Clock, script: dict[str, object]) -> None:
    """`sessionId` is another in each of four attempts."""
    clock.needs_advance()
    lost = script["result"] == "node_lost"
    async with Started(given):
        [job] = await side_by_side(given, [script, script, script, ends(1000)])
    seen = [(await becomes(given, job, "running")).get("sessionId")]
    for attempt in (1, 2, 3):
        await clock.advance(20 + (given.timing.node_lost * 1.2 if lost else 0))
        await (is_lost(given, job, attempt) if lost else waits(given, job, attempt))
        seen.append((await goes_on(given, job, "running")).get("sessionId"))
    expect(None not in seen and len(set(seen)) == 4, "four sessions", f"{seen}", "/data/sessionId")


@requirement("HUB-RETRY-50", "HUB-RETRY-51", "HUB-RETRY-53")
async def test_a_failure_with_a_retry_to_come(given: HubGiven, clock: Clock) -> None:
    """After attempts 1 to 3 `nextRetryAt` is `finishedAt` + 30 s, 2 and 10 min, and is kept to the millisecond."""
    clock.needs_advance()
    async with Started(given) as start:
        first, *_ = jobs = await side_by_side(given, *[[fails(message="429 rate limited")] for _ in range(3)])
    await start.reach(1)
    for attempt, backoff in enumerate(given.timing.backoff, 1):
        for job in jobs:
            waits_for(await waits(given, job, attempt), backoff)
        next_at = instant(await given.detail(first), "nextRetryAt")
        await goes_on_at(given, first, next_at, attempt + 1)
        await clock.advance(1.2)


def waits_for(detail: dict[str, object], backoff: float) -> None:
    """A failed job that is going to be retried so many seconds after its end."""
    with about("HUB-RETRY-50"):
        failed_by(detail, "llm_error")
        message = failure(detail).get("message")
        expect(message == "429 rate limited", "the node's message", str(message), "/data/failure/message")
        for name in ("finishedAt", "nextRetryAt"):
            expect(detail.get(name) is not None, f"`{name}`", "null", f"/data/{name}")
    with about("HUB-RETRY-51"):
        came = instant(detail, "nextRetryAt") - instant(detail, "finishedAt")
        expect(came == backoff * 1000, f"finishedAt + {backoff:g} s", f"{came} ms", "/data/nextRetryAt")


async def goes_on_at(given: HubGiven, job: Job, next_at: int, attempt: int) -> None:
    """The job waits until ``next_at``, epoch milliseconds, and is running in its next attempt then."""
    clock = given.clock
    async with Since(given) as now:
        pass
    seconds = (next_at - now.began) / 1000
    with about("HUB-RETRY-53"):
        await now.before(seconds)
        expect_fields(await given.detail(job), {"status": "failed", "attempt": attempt - 1}, "/data")
        await now.exactly(seconds)
        detail = await becomes(given, job, "running", "done", "failed", attempt=attempt)
        if clock.stands:
            expect(detail.get("status") == "running", "status running", str(detail.get("status")), "/data/status")


@requirement("HUB-RETRY-52")
async def test_other_failures_are_final(given: HubGiven) -> None:
    """Every other failure: `nextRetryAt` null, retriable or not; and the last one that `maxAttempts` allows."""
    cases = [(type_, retriable) for type_ in NEVER_RETRIED for retriable in (True, False)]
    rounds = [fails(type=type_, retriable=retriable) for type_, retriable in cases]
    async with Started(given) as start:
        jobs = await side_by_side(
            given,
            *rounds,
            fails(retriable=False),
            fails(),
            fields=[*({"kind": "script"} if "script" in type_ else {} for type_, _ in cases), {}, {"maxAttempts": 1}],
        )
    await start.reach(1)
    for job in jobs:
        detail = await becomes(given, job, "failed")
        what = f"nextRetryAt null after {failure(detail).get('type')}"
        came = detail.get("nextRetryAt", "left out")
        expect(came is None, what, str(came), "/data/nextRetryAt")


@requirement("HUB-RETRY-52")
async def test_the_last_attempt_is_final(given: HubGiven) -> None:
    """Attempt 2 of 2, lost or failed: `nextRetryAt` null."""
    async with Started(given) as start:
        jobs = await side_by_side(given, fails(), [fails(), falls_silent(0)], maxAttempts=2)
    await start.reach(1)
    with about("HUB-RETRY-01", step="the first of two attempts"):
        for job in jobs:
            detail = await becomes(given, job, "failed")
            expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
    await goes_on(given, jobs[0], "running", "failed", after=given.timing.node_lost * 1.2)
    for job in jobs:
        with about("HUB-RETRY-02", step="a retry that comes"):
            detail = await becomes(given, job, "failed", attempt=2)
        expect(detail.get("nextRetryAt") is None, "null", str(detail.get("nextRetryAt")), "/data/nextRetryAt")


@requirement("HUB-RETRY-53", "HUB-RETRY-54")
async def test_queued_for_a_retry(given: HubGiven) -> None:
    """The project is busy when the retry is due: the job is queued then, with nothing of the failed attempt's end."""
    project = await given.project()
    async with Started(given) as start:
        job = await given.job(project, **await scripted(given, project, fails()))
        blocker = await given.job(project, **await scripted(given, project, ends(600)))
    await start.reach(1)
    failed = await waits(given, job)
    with about("HUB-BATCH-11", step="a job that waits for another one"):
        await becomes(given, blocker, "running")
    await goes_on(given, job, "queued", after=0)
    with about("HUB-RETRY-53"):
        detail = await becomes(given, job, "queued")
        is_still(failed, detail, "attempt")
    with about("HUB-RETRY-54"):
        empty = dict.fromkeys(("nextRetryAt", "finishedAt", "durationMs", "failure"))
        expect_fields(detail, empty, "/data")


@requirement("HUB-RETRY-55")
async def test_the_reason_of_the_attempt_before(given: HubGiven, clock: Clock) -> None:
    """Each failure tells its own message and, as `lastError`, that of the attempt before, whatever ended it."""
    clock.needs_advance()
    rounds = [fails(message=f"reason {n}") for n in (1, 2, 3, 4)]
    async with Started(given) as start:
        chain, final = await side_by_side(
            given, rounds, [fails(message="reason 1"), fails(type="rejected", message="no approval")]
        )
    before = None
    await start.reach(1)
    for attempt in (1, 2, 3, 4):
        told = failure(await becomes(given, chain, "failed"))
        expect_fields(told, {"message": f"reason {attempt}", "lastError": before}, "/data/failure")
        before = f"reason {attempt}"
        if attempt < 4:
            await waits(given, chain, attempt)
            await goes_on(given, chain, "failed", after=1.2)
        if attempt == 1:
            told = failure(await becomes(given, final, "failed"))
            expect_fields(told, {"message": "no approval", "lastError": "reason 1"}, "/data/failure")


@requirement("HUB-RETRY-55")
async def test_the_reason_of_a_lost_attempt(given: HubGiven) -> None:
    """Attempt 1 was lost, attempt 2 fails: `lastError` is the message that attempt 1 ended with."""
    async with Started(given) as start:
        [job] = await side_by_side(given, [falls_silent(0), fails(type="engine_error", message="it broke")])
    await start.reach(given.timing.node_lost * 1.2)
    message = failure(await is_lost(given, job)).get("message")
    told = failure(await goes_on(given, job, "failed", after=1.2))
    expect_fields(told, {"type": "engine_error", "message": "it broke", "lastError": message}, "/data/failure")
