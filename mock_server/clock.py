"""The clocks of a world: real, standing until it is advanced, or scaled. Instants are epoch milliseconds (int)."""

from __future__ import annotations

import re
import time
from typing import Protocol

LATEST = 253_370_764_800_000
"""The start of the year 9999: later instants can't be written as ISO 8601, so no clock is set or advanced past it."""

TOO_LATE = "the clock can't go past the year 9999; advance it by less, or reset the world"

_MAX_RATE = 1e9


class Clock(Protocol):
    """What a world needs of a clock."""

    kind: str
    """``real``, ``manual`` or ``x<rate>``, as ``--clock`` names it."""
    rate: float
    """Its milliseconds a real millisecond; 0 where it stands until it is advanced."""

    def now(self) -> int:
        """The instant, epoch milliseconds."""

    def advance(self, milliseconds: int) -> int:
        """Move forward; time goes on from there in the clock's own way. Returns the new instant."""

    def set(self, instant: int) -> None:
        """Be at an instant, an earlier one too; time goes on from there in the clock's own way."""

    def reset(self) -> None:
        """Back to real time."""


def _system() -> int:
    return time.time_ns() // 1_000_000


class ScaledClock:
    """Flows ``rate`` times as fast as real time, from the real instant at which it was made or reset."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.kind = f"x{rate:.6f}".rstrip("0").rstrip(".")
        self.reset()

    def now(self) -> int:
        """The instant, epoch milliseconds."""
        return self._from + int((time.monotonic_ns() - self._since) * self.rate / 1_000_000)

    def advance(self, milliseconds: int) -> int:
        """Move forward and flow on from there."""
        self._from += milliseconds
        return self.now()

    def set(self, instant: int) -> None:
        """Flow on from an instant."""
        self._from, self._since = instant, time.monotonic_ns()

    def reset(self) -> None:
        """Back to the real instant."""
        self.set(_system())


class RealClock:
    """Real time, plus what it was advanced by."""

    kind = "real"
    rate = 1.0

    def __init__(self) -> None:
        self._ahead = 0

    def now(self) -> int:
        """The instant, epoch milliseconds."""
        return _system() + self._ahead

    def advance(self, milliseconds: int) -> int:
        """Move forward and flow on from there."""
        self._ahead += milliseconds
        return self.now()

    def set(self, instant: int) -> None:
        """Flow on from an instant."""
        self._ahead = instant - _system()

    def reset(self) -> None:
        """Back to real time."""
        self._ahead = 0


class ManualClock:
    """Stands at the real instant at which it was made or reset until it is advanced."""

    kind = "manual"
    rate = 0.0

    def __init__(self) -> None:
        self.reset()

    def now(self) -> int:
        """The instant, epoch milliseconds."""
        return self._now

    def advance(self, milliseconds: int) -> int:
        """Move forward and stand there."""
        self._now += milliseconds
        return self._now

    def set(self, instant: int) -> None:
        """Stand at an instant."""
        self._now = instant

    def reset(self) -> None:
        """Stand at the present real instant."""
        self._now = _system()


def make_clock(kind: str) -> Clock:
    """The clock that ``--clock`` names: ``real``, ``manual`` or ``x60``. Raises ``ValueError`` with the mend."""
    if kind == "real":
        return RealClock()
    if kind == "manual":
        return ManualClock()
    scaled = re.fullmatch(r"x([0-9]+(?:\.[0-9]{1,6})?)", kind)
    if scaled and 0 < float(scaled[1]) <= _MAX_RATE:
        return ScaledClock(float(scaled[1]))
    raise ValueError(f"`{kind}` is no clock: use `real`, `manual`, or a rate such as `x60`")
