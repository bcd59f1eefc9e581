"""Submissions under one `Idempotency-Key` at the same moment: one set of jobs, whichever comes first."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import listed
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.agent_hub.client import Call, HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven

AT_ONCE = 12
ROUNDS = 3
LATER = 0.015
"""Real seconds in which nobody has made a large submission's jobs, or has: either is to be right."""
PATIENCE = 2.0
"""Real seconds after which nobody can be at work on a small submission any more."""
IN_PROGRESS = "409 idempotency_in_progress"


async def later(api: HubApi, calls: Sequence[Call], seconds: float) -> list[HubAnswer]:
    """Send calls together, so many real seconds later than others are."""
    await asyncio.sleep(seconds)
    return await api.together(calls)


def told(answer: HubAnswer) -> str:
    """``202``, or ``409 idempotency_in_progress``."""
    return str(answer.status) if answer.status < 300 else describe(answer.response)


@requirement("HUB-IDEM-62", "HUB-IDEM-63")
@pytest.mark.parametrize("number", [1, 40], ids=["one item", "40 items"])
async def test_sent_twelve_times_at_once_it_is_done_once(api: HubApi, given: HubGiven, number: int) -> None:
    """Twelve equal submissions, at once or while it is worked on: one 202, the others 200 or 409; one set of jobs."""
    project = await given.project()
    for _ in range(ROUNDS if number == 1 else 1):
        batch, key = given.unique("batch"), given.unique("order")
        call = api.submit([item(project, prompt=f"number {i}") for i in range(number)], batch=batch, key=key)
        half = [call] * (AT_ONCE // 2)
        waves = await asyncio.gather(api.together(half), later(api, half, LATER if number > 1 else 0))
        answers = [answer for wave in waves for answer in wave]
        outcomes = [told(answer) for answer in answers]
        sets = {tuple(job_ids(answer)) for answer in answers if answer.status < 300}
        with about("HUB-IDEM-62"):
            expect(len(sets) == 1, "one set of jobs", f"{len(sets)}, of {sorted(outcomes)}", "/data/items")
            found = await listed(given, batchId=batch)
            expect({job.get("id") for job in found} <= {*sets.pop()}, f"{number} jobs in all", f"{len(found)}")
        with about("HUB-IDEM-63"):
            expect(outcomes.count("202") == 1, "202 once", str(sorted(outcomes)))
            wrong = {outcome for outcome in outcomes if outcome not in ("200", "202", IN_PROGRESS)}
            expect(not wrong, f"200 or {IN_PROGRESS} to the others", ", ".join(sorted(wrong)))
            again = await call.answers()
            expect(again.status == 200, "200 when it is sent once more", describe(again.response))


@requirement("HUB-IDEM-62")
async def test_of_two_bodies_at_once_one_is_done(api: HubApi, given: HubGiven) -> None:
    """Different bodies under one key at the same moment: one is accepted, and its jobs are the only ones."""
    project = await given.project()
    for _ in range(ROUNDS):
        batch, key = given.unique("batch"), given.unique("order")
        calls = [api.submit(item(project, prompt=f"number {i}"), batch=batch, key=key) for i in range(AT_ONCE)]
        answers = await api.together(calls)
        outcomes = sorted(told(answer) for answer in answers)
        made = {id_ for answer in answers if answer.status < 300 for id_ in job_ids(answer)}
        expect(len(made) == 1 and "202" in outcomes, "one 202, and its job alone", str(outcomes))
        found = await listed(given, batchId=batch)
        expect({job.get("id") for job in found} == made, "its job alone", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-62")
async def test_keys_do_not_hinder_each_other(api: HubApi, given: HubGiven) -> None:
    """The same body under twelve keys at the same moment, each twice: twelve jobs."""
    project, batch = await given.project(), given.unique("batch")
    calls = [api.submit(item(project), batch=batch, key=given.unique("order")) for _ in range(AT_ONCE)]
    answers = await api.together([*calls, *calls])
    made = {id_ for answer in answers if answer.status < 300 for id_ in job_ids(answer)}
    expect(len(made) == AT_ONCE, f"{AT_ONCE} jobs", f"{len(made)}", "/data/items")
    found = {job.get("id") for job in await listed(given, batchId=batch)}
    expect(found == made, "the jobs that were answered", f"{len(found)} jobs", "/data/items")


@requirement("HUB-IDEM-62", "HUB-IDEM-63")
@pytest.mark.parametrize("unsent", [1, 0], ids=["cut off", "whole"])
async def test_who_dies_while_submitting_can_come_back(api: HubApi, given: HubGiven, unsent: int) -> None:
    """The client's connection ends before its answer; what it sends again is accepted in time, and done once."""
    project, batch, key = await given.project(), given.unique("batch"), given.unique("order")
    call = api.submit([item(project, prompt=f"number {i}") for i in range(3)], batch=batch, key=key)
    await api.abandoned(call, unsent=unsent)
    deadline = time.monotonic() + given.clock.grace + PATIENCE
    while True:
        answer = await call.answers()
        if told(answer) != IN_PROGRESS or time.monotonic() > deadline:
            break
        await asyncio.sleep(0.1)
    with about("HUB-IDEM-63"):
        expect(answer.status in (200, 202), ["202", "200"], f"{told(answer)}, {PATIENCE:g} s later")
    with about("HUB-IDEM-62"):
        found = await listed(given, batchId=batch)
        expect({job.get("id") for job in found} == {*job_ids(answer)}, "3 jobs in all", f"{len(found)}", "/data/items")
