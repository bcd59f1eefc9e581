"""Sequences of commands: the ways to each situation, what is tried there, and how one is played."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import CheckSkipped
from contract_tests.model.sequences import Command, Plays
from contract_tests.runtime_api.model.believed import stepper
from contract_tests.runtime_api.model.commands import CALLERS, OPERATIONS, WAYS, needs
from contract_tests.runtime_api.model.playing import Play
from contract_tests.runtime_api.model.rules import begins

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contract_tests.given import Given


def way(made: str, *steps: str) -> tuple[Command, ...]:
    """A job and what happens to it; ``result other`` is a kind with its way, ``lock/stranger`` one with its caller."""
    found = [Command("make", what=made)]
    for step in steps:
        word, _, who = step.partition("/")
        kind, _, what = word.partition(" ")
        found.append(Command(kind, 0, who or ("holder" if kind in OPERATIONS else ""), what))
    return tuple(found)


SITUATIONS = {
    "pending": way("plain"),
    "pending, named": way("named"),
    "pending, of a quiz": way("quiz"),
    "pending after a failure": way("plain", "lock", "fail"),
    "pending after a lapse": way("plain", "lock", "time after"),
    "locked": way("plain", "lock", "time third"),
    "locked, named": way("named", "lock"),
    "locked at its last instant": way("plain", "lock", "time at"),
    "locked, to stop": way("plain", "lock", "revoke"),
    "locked for the last time": way("once", "lock"),
    "locked by the next": way("plain", "lock", "fail", "lock/stranger"),
    "running": way("plain", "lock", "time third", "heartbeat", "time third"),
    "running for longer than a lock": way(
        "plain", "lock", "time third", "heartbeat", "time third", "heartbeat", "time third"
    ),
    "running at its last instant": way("short", "lock", "heartbeat", "time at"),
    "running, to stop": way("plain", "lock", "heartbeat", "revoke"),
    "running for the last time": way("twice", "lock", "fail", "lock", "heartbeat"),
    "running, of a quiz": way("quiz", "lock", "heartbeat"),
    "pending after a run too long": way("short", "lock", "heartbeat", "time after"),
    "failed by a run too long": way("short, once", "lock", "heartbeat", "time after"),
    "cancelled by a run too long": way("short", "lock", "heartbeat", "revoke", "time after"),
    "running for the next": way("plain", "lock", "time after", "lock/stranger", "heartbeat"),
    "succeeded": way("plain", "lock", "heartbeat", "result"),
    "succeeded without a heartbeat": way("twice", "lock", "fail", "lock", "result"),
    "failed": way("plain", "lock", "heartbeat", "fail final"),
    "failed, without retries": way("once", "lock", "fail"),
    "failed by a lapse": way("once", "lock", "time after"),
    "cancelled": way("plain", "cancel"),
    "cancelled by a revocation": way("plain", "revoke"),
    "cancelled by a failure": way("plain", "lock", "heartbeat", "revoke", "fail"),
    "cancelled by a result": way("plain", "lock", "heartbeat", "revoke", "result"),
    "cancelled by a lapse": way("plain", "lock", "revoke", "time after"),
    **{
        f"locked, {kind}": way(kind, "lock")
        for kind in (
            "snapshot expired",
            "snapshot missing",
            "snapshot none",
            "key valid",
            "key invalid",
            "key of another",
        )
    },
}
"""Every state of the text, and what its guards tell apart in it."""


OF_READS = ("snapshot", "key")
"""Situations that only reads tell apart have these words behind their state."""


def tried(kind: str, situation: str) -> list[Command]:
    """What is tried in a situation: by each caller, and by whoever holds the lock in each way."""
    state, _, more = situation.partition(", ")
    if more.startswith(OF_READS) and kind not in OF_READS[:1] and kind != "resolve":
        return []
    ways = WAYS[kind]
    if kind == "result" and state != "succeeded":
        ways = tuple(what for what in ways if what != "other")  # one is as good as the other
    callers = CALLERS if kind in OPERATIONS else ("",)
    return [Command(kind, 0, who, what) for who in callers for what in (ways if who in ("", "holder") else ways[:1])]


def offered(commands: Iterable[Command], given: Given) -> bool:
    """Whether a build's provider states reach so far; what time does is seen by `inspect-job` alone."""
    wanted = frozenset[str]().union(*(needs(command) for command in commands))
    return wanted <= given.states.offered and ("advance-time" not in wanted or "inspect-job" in given.states.offered)


def ready(given: Given) -> None:
    """Skip the check where a build's instants or jobs can't be known."""
    given.clock.needs_advance()
    if "job" not in given.states.offered:
        raise CheckSkipped("needs the provider state job")


def plays(given: Given) -> Plays:
    """How sequences are played on a build."""
    return Plays(lambda: Play(given, stepper(given.timing)), given.api.transport, begins)


async def visited(given: Given, state: str, kinds: Sequence[str]) -> None:
    """Try these kinds of commands in the situations of a state, by every caller. Fails the check with what differs."""
    for name, commands in SITUATIONS.items():
        if name.startswith(state) and offered(commands, given):
            cells = [one for kind in kinds for one in tried(kind, name) if offered([one], given)]
            if cells:
                await plays(given).tried(commands, cells)
