"""Sequences of commands on a hub: the ways to each situation, what is tried there, and how one is played."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contract_tests.agent_hub.model.believed import stepper
from contract_tests.agent_hub.model.playing import TRIGGERS, WAYS, Command, Play
from contract_tests.checks import CheckFailed, CheckSkipped
from contract_tests.model.shrinking import explained

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.agent_hub.given import HubGiven


def way(made: str, *steps: str) -> tuple[Command, ...]:
    """A job and what happens to it; ``time after`` is a kind with its way."""
    found = [Command("make", what=made)]
    for step in steps:
        kind, _, what = step.partition(" ")
        found.append(Command(kind, what=what))
    return tuple(found)


SITUATIONS = {
    "queued": way("behind another"),
    "running": way("long", "time third"),
    "running, of a silent node": way("lost", "time third"),
    "running, for ever": way("hanging"),
    "running, before a failure": way("limited"),
    "running again": way("limited", "time after", "time after"),
    "running, retried by hand": way("broken", "time after", "time third", "retry"),
    "done": way("done", "time after", "time third"),
    "waiting": way("limited", "time after", "time third"),
    "waiting again": way("limited", "time after", "time after", "time after"),
    "waiting, lost": way("lost", "time after"),
    "failed": way("broken", "time after", "time third"),
    "failed for the last time": way("limited, once", "time after"),
    "failed by a limit": way("hanging", "time after"),
    "cancelled in the queue": way("behind another", "cancel"),
    "cancelled while it ran": way("long", "time third", "cancel", "time third"),
    "cancelled while it waited": way("limited", "time after", "cancel"),
}
"""Every state of the text, and what its guards and timers tell apart in it."""
NEEDED = ("node", "outcome", "advance-time")


def ready(given: HubGiven) -> None:
    """Skip the check where nodes can't be told what to do, or instants can't be met."""
    given.clock.needs_to_stand()
    for state in NEEDED:
        if state not in given.states.offered:
            raise CheckSkipped(f"needs the provider state {state}")


async def played(given: HubGiven, commands: Sequence[Command]) -> CheckFailed | None:
    """Play a sequence on jobs of its own, looking after each command; the failure, if there is one."""
    play = Play(given, stepper(given.timing))
    try:
        for command in commands:
            await play.do(command)
    except CheckFailed as failure:
        return failure
    return None


def numbered(commands: Sequence[Command]) -> list[Command]:
    """The same with jobs that the sequence itself makes, by their numbers from 0."""
    made, found = 0, []
    for command in commands:
        made += command.kind == "make"
        found.append(command if command.kind == "make" or not made else replace(command, job=command.job % made))
    return found


async def shown(given: HubGiven, commands: Sequence[Command], failure: CheckFailed) -> CheckFailed:
    """The failure by the shortest sequence that shows it."""
    return await explained(commands, failure, lambda less: played(given, less), given.api.transport, numbered)


async def visited(given: HubGiven, state: str, kinds: Sequence[str]) -> None:
    """Try these kinds of commands in the situations of a state, by each key. Fails the check with what differs."""
    for name, commands in SITUATIONS.items():
        if name.startswith(state):
            callers = ("stranger", "owner") if given.other is not None else ("owner",)
            cells = [Command(kind, 0, who) for kind in kinds if kind in TRIGGERS for who in callers]
            cells += [Command(kind, 0, "owner", what) for kind in kinds if kind == "time" for what in WAYS[kind][1:]]
            await _visited(given, commands, cells)


async def _visited(given: HubGiven, commands: Sequence[Command], cells: Sequence[Command]) -> None:
    """The cells of one situation: what changes nothing first, then each other one on a job of its own."""
    play = await _there(given, commands)
    sent = [command for command in cells if not play.changes(command)]
    for number, command in enumerate(sent):
        await _done(given, play, [*commands, *sent[: number + 1]], look=command is sent[-1])
    for number, command in enumerate(command for command in cells if command not in sent):
        if number and command.kind != "time":  # limits are met one after the other, on one job
            play, sent = await _there(given, commands), []
        sent.append(command)
        await _done(given, play, [*commands, *sent], look=True)


async def _there(given: HubGiven, commands: Sequence[Command]) -> Play:
    play = Play(given, stepper(given.timing))
    for number in range(len(commands)):
        await _done(given, play, commands[: number + 1], look=number == len(commands) - 1)
    return play


async def _done(given: HubGiven, play: Play, commands: Sequence[Command], *, look: bool) -> None:
    try:
        await play.do(commands[-1], look=look)
    except CheckFailed as failure:
        raise await shown(given, commands, failure) from None
