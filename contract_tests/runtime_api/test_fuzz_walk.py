"""Generated walks over the whole machine, beside a model that reads its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import CheckSkipped, fuzz, requirement
from contract_tests.fuzz.walks import drawn
from contract_tests.runtime_api.model.sequences import offered, plays, ready
from contract_tests.runtime_api.model.walks import WALKS

if TYPE_CHECKING:
    from contract_tests.given import Given

COUNT = 5


@fuzz
@requirement(
    "RT-LOCK-50", "RT-HB-50", "RT-SNAP-50", "RT-CRED-50", "RT-RES-64", "RT-FAIL-50", "RT-CANCEL-51", "RT-CANCEL-54",
    "RT-ADMIN-50", "RT-IDEM-50", "RT-RETRY-51",
)  # fmt: skip
async def test_of_the_machine(given: Given, seed: int, examples: int) -> None:
    """Any sequence over several jobs: each answer, and every column of the jobs, are as the machine has them."""
    ready(given)
    if "inspect-job" not in given.states.offered:
        raise CheckSkipped("needs the provider state inspect-job")
    for sequence in await drawn(WALKS.sequences(), seed, COUNT + examples):
        await plays(given).walk([command for command in sequence if offered([command], given)])
