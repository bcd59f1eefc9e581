"""How long a world may stay without a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Lease:
    """The lifetime of a world, in real seconds since its last request. While one is in progress, it does not end."""

    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        """``monotonic`` gives real seconds, from any zero."""
        self.seconds, self._monotonic = seconds, monotonic
        self._busy, self._used = 0, monotonic()

    def begin(self) -> None:
        """A request to the world begins."""
        self._busy += 1

    def end(self) -> None:
        """A request to the world ended: from here on its lifetime runs anew."""
        self._busy -= 1
        self.touch()

    def touch(self) -> None:
        """The lifetime begins anew."""
        self._used = self._monotonic()

    def left(self) -> float:
        """Seconds until the world goes away if nobody touches it; 0 when it is time."""
        if self._busy:
            return self.seconds
        return max(0.0, self._used + self.seconds - self._monotonic())
