"""Submissions under one `Idempotency-Key` at the same moment: one set of jobs, whichever comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.submitting import listed
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven

AT_ONCE = 12
ROUNDS = 3
IN_PROGRESS = "409 idempotency_in_progress"


def told(answer: HubAnswer) -> str:
    """``202``, or ``409 idempotency_in_progress``."""
    return str(answer.status) if answer.status < 300 else describe(answer.response)


@requirement("HUB-IDEM-62", "HUB-IDEM-63")
@pytest.mark.parametrize("number", [1, 40], ids=["one item", "40 items"])
async def test_sent_twelve_times_at_once_it_is_done_once(api: HubApi, given: HubGiven, number: int) -> None:
    """Twelve equal submissions at the same moment: one 202, the others 200 or 409; one set of jobs."""
    project = await given.project()
    for _ in range(ROUNDS if number == 1 else 1):
        batch, key = given.unique("batch"), given.unique("order")
        call = api.submit([item(project, prompt=f"number {i}") for i in range(number)], batch=batch, key=key)
        answers = await api.together([call] * AT_ONCE)
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
