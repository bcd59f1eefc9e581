"""What plain code has to do at an instant of a world's clock, beside the timers of rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sortedcontainers import SortedList

if TYPE_CHECKING:
    from mock_server.store import Due

Do = Callable[[int], Awaitable[None]]
"""Is given the instant at which it is due, epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something to do; ``order`` among what is due at the same instant: below 0 before the timers of rows."""

    instant: int
    order: int
    number: int
    do: Do

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it stands in the agenda."""
        return self.instant, self.order, self.number


class Agenda:
    """Things to do, the earliest first. It is derived from rows and open connections: nothing is kept in it alone."""

    def __init__(self) -> None:
        self._items: Any = SortedList(key=lambda item: item.place)
        self._number = 0

    @property
    def head(self) -> Item | None:
        """What is due first."""
        item: Item | None = self._items[0] if self._items else None
        return item

    def take(self, now: int, due: Due | None) -> Item | None:
        """What is due by ``now`` and comes before a timer of a row; it is off the agenda then."""
        item = self.head
        if item is None or item.instant > now:
            return None
        if due is not None and (due.instant, due.order) < (item.instant, item.order):
            return None
        self.drop(item)
        return item

    def add(self, instant: int, order: int, do: Do) -> Item:
        """Put something on the agenda; the item is the handle by which it is taken off."""
        self._number += 1
        item = Item(instant, order, self._number, do)
        self._items.add(item)
        return item

    def drop(self, item: Item | None) -> None:
        """Take something off; it may be gone already."""
        if item is not None:
            self._items.discard(item)

    def clear(self) -> None:
        """Take everything off."""
        self._items.clear()
