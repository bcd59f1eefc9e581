"""Where the rows of a world live. Rows are never changed in place: a transition replaces a row or loses the race."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from sortedcontainers import SortedList

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Row = dict[str, Any]
"""Column name to value, as ``components.schemas`` of the spec names them; instants are epoch milliseconds."""

Saved = Any
"""All rows of a store at one moment, as the store that saved them keeps them."""


@dataclass(frozen=True, slots=True)
class Due:
    """A timer of a row: when it fires, the timer's place in the machine's order, and whose it is."""

    instant: int
    order: int
    key: str


@dataclass(frozen=True, slots=True)
class Change:
    """One row replaced (``old`` is what was judged), created (``old`` None); ``due`` is its next timer."""

    entity: str
    old: Row | None
    new: Row
    due: Due | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A list that an operation serves (``x-list`` in the spec): rows in one of ``states``, grouped and ordered by
    columns, each with 1 for ascending or -1 for descending (numbers only).
    """

    entity: str
    states: frozenset[str]
    group: str
    order: tuple[tuple[str, int], ...]

    def entry(self, row: Row) -> tuple[Any, ...]:
        """The row behind what it is ordered by; the key in the order is unique, so rows are never compared."""
        places = (row[column] if sign > 0 else -row[column] for column, sign in self.order)
        return (*places, _Carried(row))


@dataclass(frozen=True, slots=True)
class List:
    """An ordered list of rows that ``x-row.lists`` keeps: those in one of ``states`` (None: all), one list for each
    value of the columns ``by``. ``order`` are columns, each with 1 for ascending or -1 for descending (numbers only);
    together they tell all rows apart.
    """

    by: tuple[str, ...]
    order: tuple[tuple[str, int], ...]
    states: frozenset[str] | None = None

    def group(self, row: Row) -> tuple[Any, ...] | None:
        """The list that the row is in; None where it is in none."""
        if self.states is not None and row["status"] not in self.states:
            return None
        values = tuple(row[column] for column in self.by)
        return None if None in values else values

    def entry(self, row: Row) -> tuple[Any, ...]:
        """The row in its list, behind what it is ordered by."""
        places = (row[column] if sign > 0 else -row[column] for column, sign in self.order)
        return (*places, _Carried(row))


@dataclass(frozen=True, slots=True)
class QueueQuery:
    """What of a queue is asked for; a filter that is None accepts every row (RT-POLL-12 to 14)."""

    groups: frozenset[str]
    limit: int
    output_schema_versions: frozenset[str] | None = None
    snapshot_versions: frozenset[str] | None = None


class Store(Protocol):
    """The rows of one world. A store may suspend; one that does must judge nothing between read and commit."""

    async def get(self, entity: str, key: str) -> Row | None:
        """The row with that primary key."""

    async def find(self, entity: str, where: Mapping[str, Any]) -> Row | None:
        """The row whose columns have these values, None where there is none; the columns are a unique set."""

    async def rows(self, entity: str, of: str | None = None) -> Sequence[Row]:
        """All rows of an entity, oldest first; with ``of`` those whose ``x-row.by`` column has that value."""

    async def commit(self, changes: Sequence[Change]) -> bool:
        """Apply all changes or none: False when a row is no longer the one that was judged, or exists already."""

    async def next_due(self) -> Due | None:
        """The earliest timer (by instant, then the machine's order, then key)."""

    async def queue(self, query: QueueQuery) -> list[Row]:
        """The first rows of the queue that match, in its order."""

    async def listed(self, entity: str, name: str, group: tuple[Any, ...]) -> Sequence[Row]:
        """The rows of one list of ``x-row.lists``, in its order."""

    async def first(self, entity: str, name: str, group: tuple[Any, ...]) -> Row | None:
        """The first row of a list, None where it is empty."""

    async def newest(self, entity: str, name: str, group: tuple[Any, ...], before: Any | None = None) -> Iterator[Row]:
        """The rows of a list from its end on; with ``before`` those whose first column of order is below it."""

    async def clear(self) -> None:
        """Remove every row."""

    async def save(self) -> Saved:
        """All rows as they are, to be restored by this store as often as is wanted."""

    async def restore(self, saved: Saved) -> None:
        """Have the saved rows, and none else."""


class MemoryStore:
    """Rows in dictionaries. No method suspends: on one event loop nothing comes between judge and commit."""

    def __init__(
        self,
        keys: Mapping[str, str],
        unique: Mapping[str, tuple[str, ...]],
        queue: Queue | None,
        by: Mapping[str, str] | None = None,
        lists: Mapping[str, Mapping[str, List]] | None = None,
    ) -> None:
        """``keys``: primary key by entity; ``unique``: a further unique set of columns, null being different.

        ``by``: a column, never changed, by which rows of an entity can be listed; ``lists``: its ordered lists by name.
        """
        self._keys, self._unique, self._queue, self._by = keys, unique, queue, by or {}
        self._lists = lists or {}
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[str, dict[str, Row]] = {entity: {} for entity in self._keys}
        self._by_unique: dict[str, dict[tuple[Any, ...], Row]] = {entity: {} for entity in self._unique}
        self._due: dict[tuple[str, str], tuple[int, int, str]] = {}
        self._timers: SortedList = SortedList()
        self._groups: dict[str, SortedList] = {}
        self._listed: dict[tuple[str, Any], dict[str, None]] = {}
        self._ordered: dict[tuple[str, tuple[Any, ...]], SortedList] = {}

    async def clear(self) -> None:
        """Remove every row."""
        self._clear()

    async def save(self) -> Saved:
        """All rows as they are: the tables are copied, the rows shared."""
        return _copies(self._rows, self._by_unique, self._due, self._timers, self._groups, self._listed, self._ordered)

    async def restore(self, saved: Saved) -> None:
        """Have the saved rows, and none else."""
        copies = _copies(*saved)
        self._rows, self._by_unique, self._due, self._timers, self._groups, self._listed, self._ordered = copies

    async def get(self, entity: str, key: str) -> Row | None:
        """The row with that primary key."""
        return self._rows[entity].get(key)

    async def find(self, entity: str, where: Mapping[str, Any]) -> Row | None:
        """The row whose columns have these values."""
        columns = tuple(where)
        if columns == (self._keys[entity],):
            return self._rows[entity].get(next(iter(where.values())))
        if set(columns) == set(self._unique.get(entity, ())):
            return self._by_unique[entity].get(tuple(where[column] for column in self._unique[entity]))
        raise LookupError(f"{entity} has no unique set of the columns {', '.join(columns)}")

    async def rows(self, entity: str, of: str | None = None) -> Sequence[Row]:
        """All rows of an entity, or those of one value of its ``by`` column, oldest first."""
        rows = self._rows[entity]
        if of is None:
            return list(rows.values())
        return [rows[key] for key in self._listed.get((entity, of), ())]

    async def commit(self, changes: Sequence[Change]) -> bool:
        """Apply all changes or none."""
        taken: set[tuple[Any, ...]] = set()
        for change in changes:
            key = change.new[self._keys[change.entity]]
            values = self._unique_values(change.entity, change.new)
            claims = {(change.entity, key)} | ({(change.entity, values)} if values is not None else set())
            if self._rows[change.entity].get(key) is not change.old or claims & taken:
                return False
            holder = None if values is None else self._by_unique[change.entity].get(values)
            if holder is not None and holder is not change.old:
                return False
            taken |= claims
        for change in changes:
            self._apply(change)
        return True

    def _unique_values(self, entity: str, row: Row) -> tuple[Any, ...] | None:
        columns = self._unique.get(entity)
        if not columns:
            return None
        values = tuple(row.get(column) for column in columns)
        return None if None in values else values

    def _apply(self, change: Change) -> None:
        entity, old, new = change.entity, change.old, change.new
        key = new[self._keys[entity]]
        self._rows[entity][key] = new
        if old is not None and (former := self._unique_values(entity, old)) is not None:
            del self._by_unique[entity][former]
        values = self._unique_values(entity, new)
        if values is not None:
            self._by_unique[entity][values] = new
        if old is None and entity in self._by:
            self._listed.setdefault((entity, new[self._by[entity]]), {})[key] = None
        if self._queue is not None and entity == self._queue.entity:
            self._requeue(self._queue, old, new)
        for name, kept in self._lists.get(entity, {}).items():
            self._relist(name, kept, old, new)
        before = self._due.pop((entity, key), None)
        if before is not None:
            self._timers.remove(before)
        if change.due is not None:
            entry = (change.due.instant, change.due.order, key)
            self._due[entity, key] = entry
            self._timers.add(entry)

    def _relist(self, name: str, kept: List, old: Row | None, new: Row) -> None:
        before = None if old is None else kept.group(old)
        if old is not None and before is not None:
            rows = self._ordered[name, before]
            rows.remove(kept.entry(old))
            if not rows:
                del self._ordered[name, before]
        after = kept.group(new)
        if after is not None:
            self._ordered.setdefault((name, after), SortedList()).add(kept.entry(new))

    async def listed(self, entity: str, name: str, group: tuple[Any, ...]) -> Sequence[Row]:
        """The rows of one list, in its order."""
        return [entry[-1].row for entry in self._ordered.get((name, group), ())]

    async def first(self, entity: str, name: str, group: tuple[Any, ...]) -> Row | None:
        """The first row of a list, None where it is empty."""
        rows = self._ordered.get((name, group))
        row: Row | None = rows[0][-1].row if rows else None
        return row

    async def newest(self, entity: str, name: str, group: tuple[Any, ...], before: Any | None = None) -> Iterator[Row]:
        """The rows of a list from its end on; with ``before`` those whose first column of order is below it."""
        rows = self._ordered.get((name, group))
        if rows is None:
            return iter(())
        if before is None:
            return (entry[-1].row for entry in reversed(rows))
        return (entry[-1].row for entry in rows.irange(maximum=(before,), inclusive=(True, False), reverse=True))

    def _requeue(self, queue: Queue, old: Row | None, new: Row) -> None:
        # The row itself rides along behind its order; the key in the order is unique, so rows are never compared.
        if old is not None and old["status"] in queue.states:
            self._groups[old[queue.group]].remove(queue.entry(old))
        if new["status"] in queue.states:
            group = self._groups.setdefault(new[queue.group], SortedList())
            group.add(queue.entry(new))

    async def next_due(self) -> Due | None:
        """The earliest timer."""
        return Due(*self._timers[0]) if self._timers else None

    async def queue(self, query: QueueQuery) -> list[Row]:
        """The first rows of the queue that match, in its order."""
        groups = [self._groups[name] for name in query.groups if name in self._groups]
        entries: Iterable[Any] = groups[0] if len(groups) == 1 else heapq.merge(*groups)
        rows = (entry[-1].row for entry in entries)
        if query.output_schema_versions is not None or query.snapshot_versions is not None:
            rows = (row for row in rows if self._readable(row, query))
        return list(islice(rows, query.limit))

    def _readable(self, row: Row, query: QueueQuery) -> bool:
        schemas, versions = query.output_schema_versions, query.snapshot_versions
        if schemas is not None and row["outputSchemaVersion"] not in schemas:
            return False
        snapshot = self._rows["Snapshot"].get(row["snapshotId"])
        return versions is None or snapshot is None or snapshot["snapshotVersion"] in versions


def _copies(
    rows: dict[str, dict[str, Row]],
    by_unique: dict[str, dict[tuple[Any, ...], Row]],
    due: dict[tuple[str, str], tuple[int, int, str]],
    timers: SortedList,
    groups: dict[str, SortedList],
    listed: dict[tuple[str, Any], dict[str, None]],
    ordered: dict[tuple[str, tuple[Any, ...]], SortedList],
) -> tuple[Any, ...]:
    """A memory store's tables, copied as deep as they are changed."""
    return (
        {entity: dict(table) for entity, table in rows.items()},
        {entity: dict(table) for entity, table in by_unique.items()},
        dict(due),
        timers.copy(),
        {name: group.copy() for name, group in groups.items()},
        {value: dict(keys) for value, keys in listed.items()},
        {key: rows.copy() for key, rows in ordered.items()},
    )


class _Carried:
    """A row at the end of a sort key; equal to every other, so that the keys before it decide alone."""

    __slots__ = ("row",)

    def __init__(self, row: Row) -> None:
        self.row = row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Carried)

    def __lt__(self, other: _Carried) -> bool:
        return False

    def __hash__(self) -> int:
        return 0
