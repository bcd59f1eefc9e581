"""Rounds that a cancel left behind at their node: they, too, end at their limit, or when the node was silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.rounds import Started, becomes, falls_silent, hangs, side_by_side
from contract_tests.checks import about, requirement

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
    with about("HUB-CANCEL-03", step="cancelling a running job"):
        for job in (again, left):
            await api.cancel(job.id).succeeds()
    with about("HUB-RETRY-06", step="retrying a cancelled job"):
        await api.retry(again.id).succeeds()
    behind = await given.job(left.project)
    await start.over(end)
    for job in (again, behind):
        await becomes(given, job, "running")
