"""Sequences of commands on a hub: the ways to each situation, what is tried there, and how one is played."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.model.believed import stepper
from contract_tests.agent_hub.model.commands import BEHIND, CALLERS, OPERATIONS, WAYS, needs
from contract_tests.agent_hub.model.playing import Play
from contract_tests.checks import CheckSkipped
from contract_tests.model.sequences import MAKE, TIME, Command, Plays

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contract_tests.agent_hub.given import HubGiven

LAST = -1
"""The number of the job that was made last."""


def way(made: str, *steps: str) -> tuple[Command, ...]:
    """A job and what happens to the one made last; ``time after`` and ``make behind`` are kinds with their ways."""
    found = [Command(MAKE, what=made)]
    for step in steps:
        kind, _, what = step.partition(" ")
        found.append(Command(kind, LAST, "owner" if kind in OPERATIONS else "", what))
    return tuple(found)


SITUATIONS = {
    "queued": way("long", f"make {BEHIND}"),
    "queued, its node is off": way("long", f"make {BEHIND}", "offline", "time third"),
    "queued for a retry, its node is off": way("limited", "time after", "offline", "time after"),
    "queued again, its round goes on": way("told", "time third", "cancel", "retry"),
    "running": way("long", "time third"),
    "running, of a silent node": way("lost", "time third"),
    "running, for ever": way("hanging script"),
    "running, before a failure": way("limited"),
    "running again": way("limited", "time after", "time after"),
    "running, retried by hand": way("broken", "time after", "time third", "retry"),
    "running, telling": way("told", "time after"),
    "running again, telling": way("told, broken", "time after", "time after", "time after", "time after"),
    "running, its node is off": way("told", "offline", "time third"),
    "running, silent before its node is off": way("lost", "time third", "offline", "time third"),
    "running, its round is over and its node is off": way("limited", "offline", "time third"),
    "running, its limit is over and its node is off": way("hanging script", "time before", "offline", "time third"),
    "running, its node was off": way("long", "time third", "offline", "time third", "online"),
    "done": way("done", "time after", "time third"),
    "waiting": way("limited", "time after", "time third"),
    "waiting again": way("limited", "time after", "time after", "time after"),
    "waiting, retried by hand": way(
        "limited", "time after", "time after", "time after", "cancel", "retry", "time after"
    ),
    "waiting, lost": way("lost", "time after", "time after"),
    "waiting, lost with its node": way("long", "time third", "offline", "time after"),
    "failed": way("broken", "time after", "time third"),
    "failed for the last time": way("limited, once", "time after"),
    "failed by a limit": way("hanging", "time after"),
    "cancelled in the queue": way("long", f"make {BEHIND}", "cancel"),
    "cancelled before it told anything": way("done", "cancel"),
    "cancelled while it ran": way("long", "time third", "cancel", "time third"),
    "cancelled while it ran, its node is off": way("long", "time third", "cancel", "offline", "time third"),
    "cancelled while it waited": way("limited", "time after", "cancel"),
}
"""Every state of the text, and what its guards and timers tell apart in it."""
OFF = "its node is off"
"""Situations in which a job's node is away end so."""
PACE = 5.0
"""Seconds that have to last long enough to look at something: those of the shortest rounds."""
NEEDED = ("node", "outcome", "advance-time")


def offered(commands: Iterable[Command], given: HubGiven) -> bool:
    """Whether a build's provider states and keys reach so far."""
    found = [*commands]
    wanted = frozenset[str]().union(*(needs(command) for command in found))
    return wanted <= given.states.offered and (given.other is not None or all(one.who != "stranger" for one in found))


def ready(given: HubGiven) -> None:
    """Skip the check where nodes can't be told what to do, or instants can't be met."""
    given.clock.needs_advance()
    given.clock.needs_pace(PACE)
    for state in NEEDED:
        if state not in given.states.offered:
            raise CheckSkipped(f"needs the provider state {state}")


def plays(given: HubGiven) -> Plays:
    """How sequences are played on a hub."""
    return Plays(lambda: Play(given, stepper(given.timing)), given.api.transport)


def tried(kind: str, situation: str) -> list[Command]:
    """What is tried in a situation: by each key, or at each limit."""
    if kind in OPERATIONS:
        return [Command(kind, LAST, who) for who in CALLERS]
    if kind == MAKE and not situation.endswith(OFF):
        return []  # a job more is one like any other
    return [Command(kind, LAST, "", what) for what in (WAYS[kind][1:] if kind == TIME else WAYS[kind])]


async def visited(given: HubGiven, state: str, kinds: Sequence[str]) -> None:
    """Try these kinds of commands in the situations of a state. Fails the check with what differs."""
    for name, commands in SITUATIONS.items():
        if name.startswith(state) and offered(commands, given):
            cells = [one for kind in kinds for one in tried(kind, name) if offered([one], given)]
            await plays(given).tried(commands, cells)
