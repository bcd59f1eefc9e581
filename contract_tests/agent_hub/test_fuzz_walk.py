"""Generated walks over a job's machine, beside a model that reads its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.model.sequences import played, ready, shown
from contract_tests.agent_hub.model.walks import sequences
from contract_tests.checks import fuzz, requirement
from contract_tests.fuzz.walks import drawn

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

WALKS = 3


@fuzz
@requirement(
    "HUB-CANCEL-52", "HUB-CANCEL-54", "HUB-CANCEL-55", "HUB-RETRY-51", "HUB-RETRY-52", "HUB-RETRY-53", "HUB-RETRY-54",
    "HUB-RETRY-56", "HUB-RETRY-57", "HUB-RETRY-59", "HUB-GET-54", "HUB-GET-55",
)  # fmt: skip
async def test_of_the_machine(given: HubGiven, seed: int, examples: int) -> None:
    """Any sequence of cancels, retries and time, over several jobs: all is as the machine has it."""
    ready(given)
    for sequence in await drawn(sequences(), seed, WALKS + examples // 2):
        possible = [command for command in sequence if command.who == "owner" or given.other is not None]
        failure = await played(given, possible)
        if failure is not None:
            raise await shown(given, possible, failure)
