"""Rounds that a cancel left behind at their node: how they end, and that the job is told nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.rounds import (
    Started,
    becomes,
    cancels,
    ends,
    falls_silent,
    hangs,
    retries,
    scripted,
    side_by_side,
)
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

LIMIT = 20
SILENT = 2


@requirement("HUB-CANCEL-57")
@pytest.mark.parametrize("way", ["limit", "silence"])
async def test_a_round_left_behind_ends(api: HubApi, given: HubGiven, way: str) -> None:
    """Its project is free again then: the job that was retried by hand, or the next one there, is run."""
    silent = way == "silence"
    end = SILENT + given.timing.node_lost if silent else LIMIT
    script: dict[str, Any] = falls_silent(SILENT) if silent else hangs()
    async with Started(given) as start:
        again, left = await side_by_side(given, script, script, kind="script", timeoutSeconds=300 if silent else LIMIT)
    await start.reach(SILENT / 2)
    for job in (again, left):
        with about("HUB-GET-05", step="a job that runs"):  # of a queued one no round is left behind
            await becomes(given, job, "running")
    with about("HUB-CANCEL-03", step="cancelling a running job"):
        for job in (again, left):
            await api.cancel(job.id).succeeds()
    with about("HUB-RETRY-06", step="retrying a cancelled job"):
        await api.retry(again.id).succeeds()
    behind = await given.job(left.project)
    await start.reach(end + 0.001)
    for job in (again, behind):
        await becomes(given, job, "running")


@requirement("HUB-GET-23")
async def test_a_queued_job_has_no_progress_of_a_round_left_behind(given: HubGiven) -> None:
    """Cancelled while it ran and retried by hand, it waits for another job: `progress` stays null as the round ends."""
    over, project = 20, await given.project()
    told = [{"atSeconds": 0.5, "toolCalls": 3}, {"atSeconds": 12, "toolCalls": 9}]
    async with Started(given) as start:
        job = await given.job(project, **await scripted(given, project, ends(over, progress=told)))
        await given.job(project, priority=10, **await scripted(given, project, ends(600)))
    await start.reach(1)
    await cancels(given, job)
    await retries(given, job)
    for seconds in (1, 13, over + 1):
        await start.reach(seconds)
        with about("HUB-FIELD-17", step="a job behind one of higher priority"):
            detail = await becomes(given, job, "queued")
        came = detail.get("progress")
        expect(came is None, "progress null of a job that does not run", str(came), "/data/progress")
