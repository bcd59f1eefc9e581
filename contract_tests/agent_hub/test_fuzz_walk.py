"""Generated walks over a job's machine, beside a model that reads its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.model.sequences import offered, plays, ready
from contract_tests.agent_hub.model.walks import WALKS
from contract_tests.checks import fuzz, requirement
from contract_tests.fuzz.walks import drawn

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

COUNT = 3


@fuzz
@requirement(
    "HUB-CANCEL-52", "HUB-CANCEL-54", "HUB-CANCEL-55", "HUB-RETRY-51", "HUB-RETRY-52", "HUB-RETRY-53", "HUB-RETRY-54",
    "HUB-RETRY-56", "HUB-RETRY-57", "HUB-RETRY-59", "HUB-GET-54", "HUB-GET-55", "HUB-GET-63", "HUB-GET-66",
    "HUB-FAIL-50", "HUB-FAIL-51", "HUB-FAIL-52", "HUB-NODE-53",
)  # fmt: skip
async def test_of_the_machine(given: HubGiven, seed: int, examples: int) -> None:
    """Cancels, retries, nodes that go and come, and time, over several jobs: all is as the machine has it."""
    ready(given)
    for sequence in await drawn(WALKS.sequences(), seed, COUNT + examples // 2):
        await plays(given).walk([command for command in sequence if offered([command], given)])
