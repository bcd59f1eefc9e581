"""Random sequences of commands over jobs of a hub."""

from __future__ import annotations

from contract_tests.agent_hub.model.commands import BEHIND, OPERATIONS, ROUNDS, WAYS
from contract_tests.model.sequences import TIME
from contract_tests.model.walks import Walks

SELDOM = (BEHIND, "hanging")
"""What is not made at first: it needs another job, or costs a hub 150 heartbeats."""
MOVES = ("third", "before", "at", "after", "after", "after")

WALKS = Walks(
    made=(*(kind for kind in ROUNDS if kind not in SELDOM), "limited", "limited", "broken", "told, broken"),
    often={"cancel": 3, "retry": 3, "offline": 2, "online": 3, "make": 1, "time": 14},
    ways={**WAYS, TIME: MOVES},
    callers=(*("owner",) * 5, "stranger"),
    asked=OPERATIONS,
    length=16,
)
