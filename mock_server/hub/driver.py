"""Lets a hub's time pass by itself where its clock flows: events come when they are due, not when somebody asks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mock_server.hub.hub import Hub

log = logging.getLogger("mock_server")


class Driver:
    """Wakes a hub at the next instant at which something is due; never where its clock stands."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._timer: asyncio.TimerHandle | None = None
        self._at = 0
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def arm(self, instant: int | None) -> None:
        """Wake at an instant (None: nothing is due), instead of at the one before."""
        clock = self._hub.clock
        if self._timer is not None:
            if instant == self._at:
                return
            self._timer.cancel()
            self._timer = None
        if instant is None or clock.rate == 0 or self._stopped:
            return
        self._at = instant
        seconds = (instant - clock.now()) / 1000 / clock.rate
        self._timer = asyncio.get_running_loop().call_later(max(seconds, 0), self._wake)

    def rearm(self, instant: int | None) -> None:
        """The clock was set or moved: what was armed holds no more."""
        self._at = -1
        self.arm(instant)

    def stop(self) -> None:
        """Wake no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        try:
            await self._hub.settle()
        except Exception:
            log.exception("the hub's own time stopped")
