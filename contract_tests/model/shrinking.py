"""Sequences that show a failure, made shorter as long as they still show it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from contract_tests.checks import CheckFailed, NoAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from contract_tests.transport import Transport

Item = TypeVar("Item")
MOST_SECONDS = 5.0
"""How long a failure is made shorter."""


async def shortest(
    sequence: Sequence[Item], shows: Callable[[Sequence[Item]], Awaitable[bool]], *, seconds: float = MOST_SECONDS
) -> list[Item]:
    """The sequence without what it does not need: nothing more can be left out, or the time is over."""
    best, deadline = list(sequence), time.monotonic() + seconds
    size = max(len(best) // 2, 1)
    while time.monotonic() < deadline:
        at, before = 0, len(best)
        while at < len(best) and time.monotonic() < deadline:
            less = best[:at] + best[at + size :]
            if less and await shows(less):
                best = less
            else:
                at += size
        if size == 1 and len(best) == before:
            break
        size = max(size // 2, 1)
    return best


async def explained(
    sequence: Sequence[Item],
    failure: CheckFailed,
    play: Callable[[Sequence[Item]], Awaitable[CheckFailed | None]],
    transport: Transport,
    simpler: Callable[[Sequence[Item]], Sequence[Item]] = list,
) -> CheckFailed:
    """The failure by the shortest sequence, repeated on its own: its commands are those of the repetition.

    Played alone, with a look after each item, it may show another failure before: then that one is told. Where none can
    be repeated, it is told as it was, with all that was sent.
    """
    if isinstance(failure, NoAnswer):
        return failure
    repeated = await play(sequence)
    if repeated is None or isinstance(repeated, NoAnswer):
        return failure

    async def shows(less: Sequence[Item]) -> bool:
        found = await play(less)
        return found is not None and (found.rules, found.pointer) == (repeated.rules, repeated.pointer)

    best: Sequence[Item] = await shortest(sequence, shows)
    simple = simpler(best)
    best = simple if list(simple) != list(best) and await shows(simple) else best
    transport.mark(True)
    found = await play(best)
    if found is None or found.rules != repeated.rules:
        transport.mark(False)
        return failure
    return told(found, best)


def told(failure: CheckFailed, sequence: Sequence[Item]) -> CheckFailed:
    """The failure with the sequence that shows it."""
    words = f"{failure.actual} (by: {'; '.join(map(str, sequence))})"
    found = CheckFailed(failure.expected, words, failure.pointer)
    found.rules, found.step = failure.rules, failure.step
    return found
