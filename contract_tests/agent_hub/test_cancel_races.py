"""Cancels and retries at the same moment, or at the moment at which a round ends: one order of events explains it all.

Each race is run with several jobs at once: all requests are released together, in changing order.
"""

from __future__ import annotations

import asyncio
import time
from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.rounds import Started, becomes, cancels, ends, fails, is_over, side_by_side, waits
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven, Job
    from contract_tests.clock import Clock

JOBS = 3
LEADS = (0, 2, 4)
"""Milliseconds by which a moment passes before the requests are released: each order is to occur."""
RELEASE = 0.011
"""Seconds after which `together` has opened its connections and releases the requests."""
REFUSED = {"cancel": "409 job_finished", "retry": "409 job_not_retryable"}
TAKEN = {"cancel": {"open", "waiting"}, "retry": {"waiting", "failed", "cancelled"}}
BECOMES = {"cancel": "cancelled", "retry": "open"}
"""What each operation takes, and makes of it; `open` is queued or running."""


def histories(state: str, operations: Sequence[str]) -> set[tuple[tuple[str, ...], str]]:
    """The outcomes of operations, in the order in which they are given, and the state after them, for each order."""
    found = set()
    for order in permutations(range(len(operations))):
        now, outcomes = state, dict.fromkeys(range(len(operations)), "")
        for index in order:
            operation = operations[index]
            taken = now in TAKEN[operation]
            outcomes[index] = "2xx" if taken else REFUSED[operation]
            now = BECOMES[operation] if taken else now
        found.add((tuple(outcomes.values()), now))
    return found


async def jobs_in(given: HubGiven, state: str) -> list[Job]:
    """Some jobs in one state, each in a project of its own; what runs, runs long."""
    rounds: dict[str, list[dict[str, Any]]] = {
        "open": [ends(1000)],
        "waiting": [fails(), ends(1000)],
        "failed": [fails(type="engine_error")],
        "cancelled": [ends(20)],
    }
    async with Started(given) as start:
        jobs = await side_by_side(given, *[rounds[state] for _ in range(JOBS + 1)])
    await start.reach(1)
    for job in jobs:
        if state == "cancelled":
            await cancels(given, job)
        elif state == "open":
            await becomes(given, job, "running")
        else:
            await (waits(given, job) if state == "waiting" else is_over(given, job))
    if state == "cancelled":
        await start.reach(21)
        with about("HUB-CANCEL-04", step="the end of a round that was cancelled"):
            for job in jobs:
                await becomes(given, job, "cancelled")
    for project in {job.project.id for job in jobs} if state in ("failed", "cancelled", "waiting") else ():
        await given.script(project, ends(1000))
    return jobs


def rule_of(operation: str, state: str) -> str:
    """The rule by which an operation is taken, or refused, in a state."""
    taken = state in TAKEN[operation]
    if operation == "retry":
        return "HUB-RETRY-06" if taken else "HUB-RETRY-08"
    return {"open": "HUB-CANCEL-02", "waiting": "HUB-CANCEL-51"}.get(state, "HUB-CANCEL-52")


async def one_by_one(given: HubGiven, state: str, operations: Sequence[str]) -> list[Job]:
    """Jobs in a state, for a race of these operations: one after the other each does what it has to.

    What fails without a race is told where it belongs.
    """
    *jobs, first = await jobs_in(given, state)
    now = state
    for operation in operations:
        taken = now in TAKEN[operation]
        with about(rule_of(operation, now), step=f"a {operation} alone, of a job that is {now}"):
            call = given.api.cancel(first) if operation == "cancel" else given.api.retry(first)
            came, wanted = outcome(await call.answers()), "2xx" if taken else REFUSED[operation]
            expect(came == wanted, wanted, came)
            now = BECOMES[operation] if taken else now
            status = (await given.detail(first)).get("status")
            expect((status in ("queued", "running")) is (now == "open"), now, str(status), "/data/status")
    return jobs


async def race(api: HubApi, jobs: Sequence[Job], operations: Sequence[str]) -> list[list[HubAnswer]]:
    """Send all operations on all jobs together, those of each second job in reverse; the answers as given."""
    calls = {"cancel": api.cancel, "retry": api.retry}
    turned = [list(operations)[:: -1 if i % 2 else 1] for i in range(len(jobs))]
    pairs = zip(jobs, turned, strict=True)
    answers = iter(await api.together([calls[name](job) for job, names in pairs for name in names]))
    came = [[next(answers) for _ in operations] for _ in jobs]
    return [pair[:: -1 if i % 2 else 1] for i, pair in enumerate(came)]


def outcome(answer: HubAnswer) -> str:
    """``2xx``, or ``409 job_finished``."""
    return "2xx" if 200 <= answer.status < 300 else describe_code(answer)


def describe_code(answer: HubAnswer) -> str:
    """A refusal's status and code."""
    error = answer.json.get("error") if isinstance(answer.json, dict) else None
    code = error.get("code") if isinstance(error, dict) else describe(answer.response)
    return f"{answer.status} {code}"


async def consistent(
    given: HubGiven, job: Job, state: str, operations: Sequence[str], answers: Sequence[HubAnswer]
) -> None:
    """Fail the check where no order of the operations explains the answers and the state after them."""
    came = tuple(map(outcome, answers))
    allowed = histories(state, operations)
    told = {outcomes for outcomes, _ in allowed}
    expect(came in told, [" and ".join(one) for one in sorted(told)], " and ".join(came))
    status = (await given.detail(job)).get("status")
    now = "open" if status in ("queued", "running") else str(status)
    left = {after for outcomes, after in allowed if outcomes == came}
    expect(now in left, " or ".join(sorted(left)), f"{status} after {' and '.join(came)}", "/data/status")


@requirement("HUB-CANCEL-52")
@pytest.mark.parametrize("state", ["open", "waiting"])
async def test_two_cancels(api: HubApi, given: HubGiven, state: str) -> None:
    """Three cancels at once: one is taken, the others are told job_finished."""
    operations = ("cancel", "cancel", "cancel")
    jobs = await one_by_one(given, state, operations)
    for job, answers in zip(jobs, await race(api, jobs, operations), strict=True):
        await consistent(given, job, state, operations, answers)


@requirement("HUB-RETRY-08")
@pytest.mark.parametrize("state", ["waiting", "failed", "cancelled"])
async def test_two_retries(api: HubApi, given: HubGiven, state: str) -> None:
    """Three retries by hand at once: one is taken, the others are told job_not_retryable."""
    operations = ("retry", "retry", "retry")
    jobs = await one_by_one(given, state, operations)
    for job, answers in zip(jobs, await race(api, jobs, operations), strict=True):
        await consistent(given, job, state, operations, answers)


@requirement("HUB-CANCEL-52", "HUB-RETRY-56")
@pytest.mark.parametrize("state", ["open", "waiting", "failed", "cancelled"])
async def test_a_cancel_against_a_retry(api: HubApi, given: HubGiven, state: str) -> None:
    """Cancels and retries at once: some order of them explains every answer and the state after them."""
    operations = ("cancel", "retry", "cancel", "retry")
    jobs = await one_by_one(given, state, operations)
    for job, answers in zip(jobs, await race(api, jobs, operations), strict=True):
        await consistent(given, job, state, operations, answers)


async def meanwhile(what: Coroutine[Any, Any, Any], before: float) -> Any:
    """Do something when the requests of a race are released, or so many milliseconds before."""
    await asyncio.sleep(RELEASE - before / 1000)
    return await what


@requirement("HUB-CANCEL-04", "HUB-CANCEL-05")
@pytest.mark.parametrize("before", LEADS)
async def test_a_cancel_against_the_end(api: HubApi, given: HubGiven, clock: Clock, before: float) -> None:
    """A cancel as the round ends: cancelled and no result, or job_finished and done; and so it stays."""
    clock.needs_advance()
    async with Started(given) as start:
        jobs = await side_by_side(given, *[ends(20, summary="well") for _ in range(JOBS)])
    await start.before(20)
    passing = clock.advance(2 * clock.margin)
    answers, _ = await asyncio.gather(race(api, jobs, ["cancel"]), meanwhile(passing, before))
    seen = []
    for job, [answer] in zip(jobs, answers, strict=True):
        came = outcome(answer)
        with about("HUB-CANCEL-05"):
            expect(came in ("2xx", "409 job_finished"), ["2xx", "409 job_finished"], came)
        detail = await becomes(given, job, "done", "cancelled")
        seen.append(detail)
        with about("HUB-CANCEL-04" if came == "2xx" else "HUB-CANCEL-05"):
            expect_fields(detail, {"status": "cancelled" if came == "2xx" else "done"}, "/data")
        with about("HUB-CANCEL-04"):
            there = detail.get("result") is not None
            expect(there is (came != "2xx"), "a result of a done job alone", str(detail.get("result")), "/data/result")
    await start.reach(30)
    for job, earlier in zip(jobs, seen, strict=True):
        status = (await given.detail(job)).get("status")
        with about("HUB-CANCEL-04"):
            expect(status == earlier["status"], f"{earlier['status']} as before", str(status), "/data/status")


@requirement("HUB-CANCEL-51")
@pytest.mark.parametrize("before", LEADS)
async def test_a_cancel_against_the_retry_timer(api: HubApi, given: HubGiven, clock: Clock, before: float) -> None:
    """A cancel as a waiting job's retry comes: it is cancelled, just before or just after, and nothing revives it."""
    clock.needs_advance()
    over, backoff = 1, given.timing.backoff[0]
    async with Started(given) as start:
        jobs = await side_by_side(given, *[[fails(), ends(1000)] for _ in range(JOBS)])
    await start.reach(1)
    for job in jobs:
        await waits(given, job)
    await start.before(over + backoff)
    passing = clock.advance(2 * clock.margin)
    answers, _ = await asyncio.gather(race(api, jobs, ["cancel"]), meanwhile(passing, before))
    for job, [answer] in zip(jobs, answers, strict=True):
        running = (await given.detail(job)).get("status") == "running"
        with about("HUB-CANCEL-01", step="cancelling a running job") if running else about():
            expect(outcome(answer) == "2xx", "2xx", outcome(answer))
        expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")
    await start.reach(over + sum(given.timing.backoff))
    for job in jobs:
        expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")


@requirement("HUB-NODE-51")
async def test_submissions_against_each_other(api: HubApi, given: HubGiven) -> None:
    """Both keys submit to one free project at once: one of the jobs runs, the others wait."""
    stranger, project = given.stranger, await given.project()
    await given.script(project, ends(1000))
    calls = [key.submit(item(project)) for _ in range(4) for key in (api, stranger)]
    answers = await api.together(calls)
    jobs = []
    for answer, key in zip(answers, (api, stranger) * 4, strict=True):
        with about("HUB-SUB-05", step="submitting a job"):
            expect(answer.status == 202, "202", describe(answer.response))
        jobs.append((job_ids(answer)[0], key))
        await given.catch_up(jobs[-1][0], api=key)
    deadline = time.monotonic() + given.clock.grace + 1
    while True:
        states = [(await given.detail(id_, api=key)).get("status") for id_, key in jobs]
        if "running" in states or given.clock.stands or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.05)
    expect(states.count("running") == 1, "one running job", f"{states}", "/data/status")
