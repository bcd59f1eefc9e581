"""Every transition of a job, and every state x operation x key, beside a model that reads the text itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.model.sequences import ready, visited
from contract_tests.checks import fuzz, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

STATES = ("queued", "running", "done", "waiting", "failed", "cancelled")


@fuzz
@requirement("HUB-CANCEL-52", "HUB-CANCEL-54", "HUB-CANCEL-55", "HUB-RETRY-56", "HUB-RETRY-57", "HUB-RETRY-59")
@pytest.mark.parametrize("state", STATES)
async def test_every_operation(given: HubGiven, state: str) -> None:
    """Cancels and retries in every situation, by each key: the answer and the job are as the machine has them."""
    ready(given)
    await visited(given, state, ("cancel", "retry"))


@fuzz
@requirement("HUB-RETRY-51", "HUB-RETRY-52", "HUB-RETRY-53", "HUB-RETRY-54", "HUB-GET-54", "HUB-GET-55")
@pytest.mark.parametrize("state", STATES)
async def test_every_limit(given: HubGiven, state: str) -> None:
    """Before what is due, at it and after it, in every situation: the job is as the machine has it."""
    ready(given)
    await visited(given, state, ("time",))


@fuzz
@requirement(
    "HUB-FAIL-50", "HUB-FAIL-51", "HUB-FAIL-52", "HUB-NODE-53", "HUB-GET-63", "HUB-GET-64", "HUB-GET-65", "HUB-GET-66"
)
@pytest.mark.parametrize("state", STATES)
async def test_every_node(given: HubGiven, state: str) -> None:
    """Its node goes offline or comes back, in every situation: the job is as the machine has it."""
    ready(given)
    await visited(given, state, ("offline", "online", "make"))
