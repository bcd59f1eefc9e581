"""The target's one clock, as checks see it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contract_tests.checks import CheckSkipped, about, expect
from contract_tests.transport import StateBroken

if TYPE_CHECKING:
    from contract_tests.transport import ProviderStates


class Clock:
    """The target's one clock: advanced through a provider state where there is one, otherwise waited for.

    ``stands`` tells whether it moves only when it is advanced; ``margin`` are the seconds to keep from a limit.
    """

    def __init__(self, states: ProviderStates, *, rate: float, grace: float) -> None:
        """``rate``: target seconds a real second, 0 where its clock stands; ``grace``: the sweep, real seconds."""
        self._states = states
        self.rate, self.grace = rate, grace
        self.advances = "advance-time" in states.offered
        self.stands = self.advances and rate == 0
        self.margin = 0.05 * max(rate, 1)
        self._told: int | None = None
        """The instant that was told last: where the clock stands it is that still, until a reset."""
        states.listen(self._heard)

    async def now(self) -> int:
        """The target's instant, epoch milliseconds; skips the check where the target does not tell it."""
        self.needs_advance()
        if self.stands and self._told is not None:
            return self._told
        return await self._moved(0)

    async def advance(self, seconds: float) -> None:
        """Let the target's time pass."""
        if self.advances:
            await self._moved(seconds)
        else:
            await asyncio.sleep(max(seconds, 0))

    async def _moved(self, seconds: float) -> int:
        before, self._told = self._told, None  # should the target not answer
        try:
            now = await self._asked(seconds)
        except StateBroken:
            if not self.stands or before is None:
                raise
            now = await self._resumed(before + round(seconds * 1000))
        self._told = now
        return now

    async def _resumed(self, instant: int) -> int:
        """Go on to an instant where the build broke on the way: whether it did what was due by then its API shows.

        A build that breaks again is given up: then the instant was not reached.
        """
        now = await self._asked(0)
        return now if now >= instant else await self._asked((instant - now) / 1000)

    async def _asked(self, seconds: float) -> int:
        return int((await self._states.set_up("advance-time", {"seconds": seconds}))["now"])

    def _heard(self, state: str, *_: object) -> None:
        if state == "reset":
            self._told = None

    async def reach(self, instant: int, rule: str) -> None:
        """Advance to an instant, epoch milliseconds. Only where the clock stands is that exact.

        ``rule`` is the one of level seed that an instant breaks which is told as one to come and has passed already.
        """
        self.needs_to_stand()
        now = await self.now()
        with about(rule, step="telling an instant to come"):
            expect(instant >= now, f"an instant not before {now}", str(instant))
        await self.advance((instant - now) / 1000)

    def needs_advance(self) -> None:
        """Skip the check unless the target's clock can be moved."""
        if not self.advances:
            raise CheckSkipped("needs the provider state advance-time")

    def needs_pace(self, seconds: float) -> None:
        """Skip the check unless one can look at something that lasts so many seconds: requests take real time."""
        if not self.stands and seconds < 10 * self.margin:
            raise CheckSkipped(f"needs a clock on which {seconds:g} s last long enough to look at something")

    def needs_to_stand(self) -> None:
        """Skip the check unless the target's clock stands: exact milliseconds can be met only there."""
        if not self.stands:
            raise CheckSkipped("needs a clock that stands (exact milliseconds)")
