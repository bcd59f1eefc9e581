"""Every transition of the machine, and every state x operation x caller, beside a model that reads the text itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import fuzz, requirement
from contract_tests.runtime_api.model.sequences import ready, visited

if TYPE_CHECKING:
    from contract_tests.given import Given

STATES = ("pending", "locked", "running", "succeeded", "failed", "cancelled")


@fuzz
@requirement("RT-LOCK-50", "RT-HB-50", "RT-SNAP-50", "RT-CRED-50")
@pytest.mark.parametrize("state", STATES)
async def test_every_caller(given: Given, state: str) -> None:
    """Locks, heartbeats, reads and resolves by everybody, in every situation: all is as the machine has it."""
    ready(given)
    await visited(given, state, ("lock", "heartbeat", "snapshot", "resolve"))


@fuzz
@requirement("RT-RES-64", "RT-FAIL-50")
@pytest.mark.parametrize("state", STATES)
async def test_every_end(given: Given, state: str) -> None:
    """Results and failures by everybody, in every situation: all is as the machine has it."""
    ready(given)
    await visited(given, state, ("result", "fail"))


@fuzz
@requirement("RT-CANCEL-51", "RT-CANCEL-54", "RT-ADMIN-50", "RT-IDEM-50", "RT-RETRY-51")
@pytest.mark.parametrize("state", STATES)
async def test_every_action(given: Given, state: str) -> None:
    """Cancels, revocations, reruns, repetitions and every limit, in every situation: all is as the machine has it."""
    ready(given)
    await visited(given, state, ("cancel", "revoke", "rerun", "again", "time"))
