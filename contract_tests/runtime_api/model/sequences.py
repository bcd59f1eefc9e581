"""Sequences of commands: the ways to each situation, what is tried there, and how one is played."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contract_tests.checks import CheckFailed, CheckSkipped
from contract_tests.model.shrinking import explained
from contract_tests.runtime_api.model.believed import stepper
from contract_tests.runtime_api.model.commands import CALLERS, OPERATIONS, WAYS, Command, needs
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
        found.append(Command(kind, 0, who or "holder", what))
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
    callers = CALLERS if kind in OPERATIONS else CALLERS[:1]
    return [Command(kind, 0, who, what) for who in callers for what in (ways if who == "holder" else ways[:1])]


def offered(commands: Iterable[Command], given: Given) -> bool:
    """Whether a build's provider states reach so far; what time does is seen by `inspect-job` alone."""
    wanted = frozenset[str]().union(*(needs(command) for command in commands))
    return wanted <= given.states.offered and ("advance-time" not in wanted or "inspect-job" in given.states.offered)


def ready(given: Given) -> None:
    """Skip the check where a build's instants or jobs can't be known."""
    given.clock.needs_advance()
    if "job" not in given.states.offered:
        raise CheckSkipped("needs the provider state job")


async def played(given: Given, commands: Sequence[Command]) -> CheckFailed | None:
    """Play a sequence on jobs of its own, looking after each command; the failure, if there is one."""
    play = Play(given, stepper(given.timing))
    try:
        for command in commands:
            await play.do(command)
    except CheckFailed as failure:
        return failure
    return None


async def shown(given: Given, commands: Sequence[Command], failure: CheckFailed) -> CheckFailed:
    """The failure by the shortest sequence that shows it."""
    return await explained(commands, failure, lambda less: played(given, less), given.api.transport, numbered)


def numbered(commands: Sequence[Command]) -> list[Command]:
    """The same with jobs that the sequence itself makes, by their numbers from 0."""
    made, found = 0, []
    for command in commands:
        made += command.kind == "make"
        found.append(command if command.kind == "make" or not made else replace(command, job=command.job % made))
    return found


async def visited(given: Given, state: str, kinds: Sequence[str]) -> None:
    """Try these kinds of commands in the situations of a state, by every caller. Fails the check with what differs.

    What the text has changing nothing is tried on one job, one after the other, and the job is looked at afterwards;
    whatever changes it is tried on a job of its own.
    """
    for name, commands in SITUATIONS.items():
        if name.startswith(state) and offered(commands, given):
            cells = [one for kind in kinds for one in tried(kind, name)]
            await _visited(given, commands, [one for one in cells if offered([one], given)])


async def _visited(given: Given, commands: Sequence[Command], cells: Sequence[Command]) -> None:
    """The cells of one situation."""
    if not cells:
        return
    play = await _there(given, commands)
    sent: list[Command] = []
    seen: set[tuple[str, str, str]] = set()
    changing: list[Command] = []
    for command in cells:
        cell = (command.kind, play.caller(command), command.what)
        if cell in seen:
            continue
        seen.add(cell)
        if play.changes(command):
            changing.append(command)
            continue
        sent.append(command)
        await _done(given, play, [*commands, *sent], look=False)
    if sent:
        try:
            await play.unchanged(sent[-1])
        except CheckFailed as failure:
            raise await shown(given, [*commands, *sent], failure) from None
    for number, command in enumerate(changing):
        if number and command.kind != "time":  # limits are met one after the other, on one job
            play, sent = await _there(given, commands), []
        sent.append(command)
        await _done(given, play, [*commands, *sent], look=True)


async def _there(given: Given, commands: Sequence[Command]) -> Play:
    play = Play(given, stepper(given.timing))
    for number, command in enumerate(commands):
        try:
            await play.do(command, look=number == len(commands) - 1)
        except CheckFailed as failure:
            raise begins(command.kind, await shown(given, commands[: number + 1], failure)) from None
    return play


async def _done(given: Given, play: Play, commands: Sequence[Command], *, look: bool) -> None:
    try:
        await play.do(commands[-1], look=look)
    except CheckFailed as failure:
        raise await shown(given, commands, failure) from None
