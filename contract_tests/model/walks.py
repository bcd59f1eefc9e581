"""Random sequences of commands over several jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from contract_tests.model.sequences import MAKE, Command

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


@dataclass(frozen=True)
class Walks:
    """What walks are made of; ``often`` says how often a kind comes, in relation to the others.

    ``made``: jobs that are made. ``ways``: how a command of each kind can be given. ``callers``: who gives those of the
    kinds in ``asked``; nobody gives the others. ``length``: commands of one sequence after its jobs are made.
    """

    made: Sequence[str]
    often: Mapping[str, int]
    ways: Mapping[str, Sequence[str]]
    callers: Sequence[str]
    asked: Collection[str]
    length: int
    jobs: int = 2

    def commands(self) -> st.SearchStrategy[Command]:
        """One command."""
        kinds = st.sampled_from([kind for kind, often in self.often.items() for _ in range(often)])
        return kinds.flatmap(
            lambda kind: st.builds(
                Command,
                st.just(kind),
                st.integers(0, self.jobs - 1),
                st.sampled_from(self.callers) if kind in self.asked else st.just(""),
                st.sampled_from(self.ways[kind]),
            )
        )

    def sequences(self) -> st.SearchStrategy[tuple[Command, ...]]:
        """Jobs, and what happens to them."""
        making = st.builds(Command, st.just(MAKE), what=st.sampled_from(self.made))
        jobs = st.lists(making, min_size=self.jobs, max_size=self.jobs)
        happens = st.lists(self.commands(), min_size=self.length, max_size=self.length)
        return st.builds(lambda made, more: (*made, *more), jobs, happens)
