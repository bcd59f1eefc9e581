"""What a fault is: a Runtime with one part that does its work wrongly."""

from __future__ import annotations

from typing import Any, ClassVar

from conformance.examples.python_runtime.heartbeats import Heart
from conformance.examples.python_runtime.jobs import Hold, LockLost
from conformance.examples.python_runtime.runtime import Runtime

FAULTS: dict[str, type[Fault]] = {}


class Fault(Runtime):
    """A Runtime that breaks rules. The docstring says what it does wrong.

    ``rules``: those that it breaks, named before it was ever judged, the narrowest first; judging it has to fail one of
    them. ``rows``: of the collection of faults seen in the field (CF-...) those that it plays. ``needs``: what has to
    happen for the fault to show.
    """

    name: ClassVar[str]
    rules: ClassVar[tuple[str, ...]]
    rows: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = "a job that succeeds"

    def __init_subclass__(cls) -> None:
        if cls.name in FAULTS:
            raise TypeError(f"two faults are called {cls.name}")
        FAULTS[cls.name] = cls


class CarelessHold(Hold):
    """A lock that is taken to hold until the API says otherwise."""

    def check(self) -> None:
        """No look at the clock."""
        if self.lost.is_set():
            raise LockLost


class CarelessHeart(Heart):
    """Heartbeats without a look at how long none was answered."""

    async def watch(self) -> None:
        """Nobody watches."""


def listed() -> list[dict[str, Any]]:
    """Every fault, as data."""
    return [
        {
            "name": name,
            "doc": " ".join((made.__doc__ or "").split()),
            "rules": list(made.rules),
            "rows": list(made.rows),
            "needs": made.needs,
        }
        for name, made in FAULTS.items()
    ]
