"""What a sequence is made of: jobs, what becomes of them, and what their nodes do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.rounds import ends, fails, falls_silent, hangs
from contract_tests.model.sequences import MAKE, TIME, Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RATE_LIMITED, BROKE = "429 rate limited", "the engine broke"
LIMITED = fails(5, message=RATE_LIMITED)
LONG = ends(70)
"""Longer than anything that is looked at; rounds that never end would cost the hub a heartbeat for all time to come."""
TOLD = [
    {"atSeconds": 2, "toolCalls": 3, "tokensIn": 700, "lastActivity": "reads"},
    {"atSeconds": 14, "tokensOut": 40, "iterations": 2},
]
BEHIND = "behind"
ROUNDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "long": [LONG],
    "done": [ends(5)],
    "broken": [fails(5, type="engine_error", retriable=False, message=BROKE), ends(5)],
    "limited": [LIMITED, LIMITED, ends(5)],
    "limited, once": [LIMITED],
    "lost": [falls_silent(5), LONG],
    "hanging": [hangs()],
    "hanging script": [hangs()],
    "told": [ends(16, progress=TOLD)],
    "told, broken": [{**LIMITED, "afterSeconds": 12, "progress": TOLD}, {**LONG, "progress": TOLD[1:]}],
    BEHIND: [ends(5)],
}
"""Jobs that ``make`` makes, by what their node does with them; one that is made behind another shares its project."""
ITEMS: Mapping[str, Mapping[str, Any]] = {
    "limited, once": {"maxAttempts": 1},
    "hanging script": {"kind": "script", "timeoutSeconds": 25},
}
"""What is submitted for them beside three attempts."""
WAYS: Mapping[str, tuple[str, ...]] = {
    "cancel": ("",),
    "retry": ("",),
    "offline": ("",),
    "online": ("",),
    MAKE: (BEHIND,),
    TIME: ("third", "before", "at", "after"),
}
"""How a command of each kind can be given."""
OPERATIONS = {"cancel": "cancelHubJob", "retry": "retryHubJob"}
"""The trigger of the machine that a request is."""
CALLERS = ("stranger", "owner")
NEEDS = {"offline": "node-online", "online": "node-online"}
"""The provider state without which a command can't be given; beside those that are always needed."""


def needs(command: Command) -> frozenset[str]:
    """The provider states that it takes."""
    return frozenset({NEEDS[command.kind]} if command.kind in NEEDS else ())
