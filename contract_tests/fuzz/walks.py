"""Sequences that Hypothesis makes, the same for the same seed; playing and shrinking them is ours (`model`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis

from contract_tests.fuzz.generation import generated, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

Made = TypeVar("Made")


SKIPPED = 2
"""Examples of a run that are no walks yet: Hypothesis begins with the simplest one, then varies it."""


async def drawn(strategy: SearchStrategy[Made], seed: int, count: int) -> Sequence[Made]:
    """So many values of a strategy, each of a run of its own: one run spends most of them on variations of others."""
    return [await _drawn(strategy, f"{seed} {number}") for number in range(count)]


async def _drawn(strategy: SearchStrategy[Made], seed: str) -> Made:
    found: list[Made] = []

    def keep(made: Any) -> None:
        found.append(made)

    def draw() -> None:
        hypothesis.seed(seed)(settings(SKIPPED + 1)(hypothesis.given(strategy)(keep)))()

    await generated(draw)
    return found[-1]
