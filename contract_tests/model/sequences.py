"""Sequences of commands: playing them beside the model, trying what can be done somewhere, telling what differs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from contract_tests.checks import CheckFailed
from contract_tests.model.shrinking import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from contract_tests.transport import Transport

MAKE, TIME = "make", "time"
"""The kinds of command that every model has: a job is made; time passes."""


@dataclass(frozen=True)
class Command:
    """One thing that happens to job number ``job``; ``what`` says more, by kind; ``who`` is empty where nobody asks."""

    kind: str
    job: int = 0
    who: str = ""
    what: str = ""

    def __str__(self) -> str:
        by = f" by the {self.who}" if self.who else ""
        return f"{self.kind}{f' ({self.what})' if self.what else ''}{by}, job {self.job}"


class Play(Protocol):
    """One sequence at work, on the build and on the model side by side."""

    async def do(self, command: Command, *, look: bool = True) -> None:
        """Do one thing and compare its answer, then (with ``look``) the job. Fails the check with what differs."""

    def changes(self, command: Command) -> bool:
        """Whether the text has something changed by a command, were it given now."""

    def cell(self, command: Command) -> Hashable:
        """What a command comes to now: of two that come to the same one is enough."""


def _as_it_is(_: Command, failure: CheckFailed) -> CheckFailed:
    return failure


@dataclass(frozen=True)
class Plays:
    """How sequences are played: each by a play of its own, which ``begin`` makes, on jobs that nobody else has.

    ``begins``: how a failure is told of the command by which it shows, where that belongs to the way to a situation.
    """

    begin: Callable[[], Play]
    transport: Transport
    begins: Callable[[Command, CheckFailed], CheckFailed] = _as_it_is

    async def played(self, commands: Sequence[Command]) -> CheckFailed | None:
        """Play a sequence, looking after each command; the failure, if there is one."""
        play = self.begin()
        try:
            for command in commands:
                await play.do(command)
        except CheckFailed as failure:
            return failure
        return None

    async def shown(self, commands: Sequence[Command], failure: CheckFailed) -> CheckFailed:
        """The failure by the shortest sequence that shows it."""
        return await explained(commands, failure, self.played, self.transport, numbered)

    async def walk(self, commands: Sequence[Command]) -> None:
        """Play a sequence. Fails the check with what differs, by the shortest one that shows it."""
        failure = await self.played(commands)
        if failure is not None:
            raise await self.shown(commands, failure)

    async def tried(self, way: Sequence[Command], cells: Iterable[Command]) -> None:
        """Try commands where a way leads. Fails the check with what differs.

        What the text has changing nothing is tried on one job, one after the other, and the job is looked at
        afterwards; then whatever changes it, each on a job of its own. Limits are met one after the other, on one job.
        """
        play = await self._there(way)
        different: dict[Hashable, Command] = {}
        for command in cells:
            different.setdefault(play.cell(command), command)
        sent = [command for command in different.values() if not play.changes(command)]
        for number in range(1, len(sent) + 1):
            await self._done(play, [*way, *sent[:number]], look=number == len(sent))
        for number, command in enumerate([command for command in different.values() if command not in sent]):
            if number and command.kind != TIME:
                play, sent = await self._there(way), []
            sent.append(command)
            await self._done(play, [*way, *sent], look=True)

    async def _there(self, way: Sequence[Command]) -> Play:
        play = self.begin()
        for number, command in enumerate(way, 1):
            try:
                await self._done(play, way[:number], look=number == len(way))
            except CheckFailed as failure:
                raise self.begins(command, failure) from None
        return play

    async def _done(self, play: Play, commands: Sequence[Command], *, look: bool) -> None:
        try:
            await play.do(commands[-1], look=look)
        except CheckFailed as failure:
            raise await self.shown(commands, failure) from None


def numbered(commands: Sequence[Command]) -> list[Command]:
    """The same with jobs that the sequence itself makes, by their numbers from 0."""
    made, found = 0, []
    for command in commands:
        made += command.kind == MAKE
        found.append(command if command.kind == MAKE or not made else replace(command, job=command.job % made))
    return found
