"""Generated sequences over all operations, along the links of the specification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import fuzz, requirement
from contract_tests.runtime_api.fuzz.sequences import Sequences

if TYPE_CHECKING:
    from contract_tests.given import Given
    from contract_tests.reach import Reach


@fuzz
@requirement("RT-SNAP-52", "RT-ERR-75", "RT-RES-64")
async def test_along_the_links(given: Given, reach: Reach, seed: int, examples: int) -> None:
    """Generated sequences, poll to result and beyond: documented answers; refusals and reads change nothing."""
    await Sequences(given, reach, seed).run(5 + examples)
