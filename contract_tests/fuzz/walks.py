"""Sequences that Hypothesis makes, the same for the same seed; playing and shrinking them is ours (`model`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis

from contract_tests.fuzz.generation import generated, settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

Made = TypeVar("Made")


async def drawn(strategy: SearchStrategy[Made], seed: int, count: int) -> Sequence[Made]:
    """So many values of a strategy."""
    found: list[Made] = []

    def keep(made: Any) -> None:
        found.append(made)

    def draw() -> None:
        hypothesis.seed(seed)(settings(count)(hypothesis.given(strategy)(keep)))()

    if count:
        await generated(draw)
    return found
