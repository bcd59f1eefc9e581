"""Random sequences of commands over jobs of a hub."""

from __future__ import annotations

from hypothesis import strategies as st

from contract_tests.agent_hub.model.playing import ROUNDS, WAYS, Command

JOBS = 2
LENGTH = 14
"""Commands of one sequence after its jobs are made."""
OFTEN = {"cancel": 2, "retry": 2, "time": 6}
"""How often a kind comes, in relation to the others."""
CALLERS = (*("owner",) * 5, "stranger")

_kinds = st.sampled_from([kind for kind, often in OFTEN.items() for _ in range(often)])


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """One command."""
    kind, job = draw(_kinds), draw(st.integers(0, JOBS - 1))
    who = draw(st.sampled_from(CALLERS)) if kind != "time" else "owner"
    return Command(kind, job, who, draw(st.sampled_from(WAYS[kind])))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Command, ...]:
    """Jobs, and what happens to them."""
    made = [Command("make", what=draw(st.sampled_from(list(ROUNDS)))) for _ in range(JOBS)]
    return (*made, *draw(st.lists(commands(), min_size=LENGTH, max_size=LENGTH)))
