"""x."""
from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven


@requirement("HUB-CANCEL-02")
async def test_cancel_of_a_queued_job(given: HubGiven) -> None:
    """A queued job is cancelled at once."""
    job = await given.cancelled_job()
    expect((await given.detail(job))["status"] == "cancelled", "cancelled", "other", "/data/status")
