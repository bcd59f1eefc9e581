"""Random sequences of commands over several jobs."""

from __future__ import annotations

from hypothesis import strategies as st

from contract_tests.runtime_api.model.commands import WAYS, Command

JOBS = 2
LENGTH = 24
"""Commands of one sequence after its jobs are made."""
OFTEN = {
    "lock": 8,
    "heartbeat": 6,
    "snapshot": 1,
    "resolve": 2,
    "result": 2,
    "fail": 3,
    "cancel": 1,
    "revoke": 1,
    "rerun": 1,
    "again": 1,
    "time": 8,
}
"""How often a kind comes, in relation to the others."""
MADE = ("plain", "twice", "once", "short", "short, once", "named", "key valid")
HOLDERS = (*("holder",) * 4, "former", "stranger")

_kinds = st.sampled_from([kind for kind, often in OFTEN.items() for _ in range(often)])


@st.composite
def commands(draw: st.DrawFn) -> Command:
    """One command."""
    kind = draw(_kinds)
    job = draw(st.integers(0, JOBS - 1))
    return Command(kind, job, draw(st.sampled_from(HOLDERS)), draw(st.sampled_from(WAYS[kind])))


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Command, ...]:
    """Jobs, and what happens to them."""
    made = [Command("make", what=draw(st.sampled_from(MADE))) for _ in range(JOBS)]
    return (*made, *draw(st.lists(commands(), min_size=LENGTH, max_size=LENGTH)))
