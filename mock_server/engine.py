"""A world's machine at work: rows from the store, time from the clock, behaviour from the contract.

Every entry settles first: all timers due by now fire, earliest first, at their own instant. So one step of 24 hours
gives exactly what waiting would have given.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mock_server.clock import LATEST, TOO_LATE
from mock_server.executor import Executor, Inputs, Outcome
from mock_server.store import Change, Due, List, MemoryStore, Queue, QueueQuery, Row, Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mock_server.agenda import Agenda
    from mock_server.clock import Clock
    from openapi import Contract
    from openapi.machine import Related, Trigger

Watch = Callable[[Row | None, Row, str | None, int], Awaitable[None]]
"""Is told of a row of the machine's entity: before (None: it is new), after, the event to be told, the instant."""

_MAX_FIRINGS = 64
_MAX_ROUNDS = 1000


@dataclass(slots=True)
class Firings:
    """The timers that fired: how many, and the first ``most`` of them in the order in which they did.

    An entry has ``at`` (epoch ms), ``timer``, ``jobId``, and the job's states ``from`` and ``to``.
    """

    most: int
    count: int = 0
    entries: list[dict[str, Any]] = field(default_factory=list)

    def add(self, due: Due, old: Row, outcome: Outcome) -> None:
        """Note one timer that fired."""
        self.count += 1
        if len(self.entries) < self.most and outcome.row is not None:
            states = {"from": old["status"], "to": outcome.row["status"]}
            self.entries.append({"at": due.instant, "timer": outcome.step, "jobId": due.key, **states})


class Rows:
    """What the contract says of rows: keys, defaults, unique sets and the queue. Shared by all worlds."""

    def __init__(self, contract: Contract) -> None:
        machine = contract.machine
        if machine is None:
            raise ValueError(f"{contract.name} has no state machine")
        schemas = contract.document["components"]["schemas"]
        entities = {name: schema for name, schema in schemas.items() if "x-row" in schema}
        self.keys: dict[str, str] = {name: schema["x-row"]["key"] for name, schema in entities.items()}
        self.by: dict[str, str] = {
            name: schema["x-row"]["by"] for name, schema in entities.items() if "by" in schema["x-row"]
        }
        self.lists: dict[str, dict[str, List]] = {
            name: {list_: _list(kept) for list_, kept in schema["x-row"]["lists"].items()}
            for name, schema in entities.items()
            if "lists" in schema["x-row"]
        }
        self.defaults: dict[str, Row] = {
            name: {column: item.get("default") for column, item in schema["properties"].items()}
            for name, schema in entities.items()
        }
        self.unique: dict[str, tuple[str, ...]] = {machine.entity: machine.unique} if machine.unique else {}
        self.queue: Queue | None = None
        for operation in contract.operations.values():
            listed = operation.document.get("x-list")
            if listed:
                states = frozenset(listed["from"])
                self.queue = Queue(listed["entity"], states, listed["group"], _order(listed["order"]))

    def store(self) -> MemoryStore:
        """An empty store for these rows."""
        return MemoryStore(self.keys, self.unique, self.queue, self.by, self.lists)


def _list(kept: Mapping[str, Any]) -> List:
    return List(tuple(kept["by"]), _order(kept["order"]), frozenset(kept["from"]) if "from" in kept else None)


def _order(columns: Sequence[str]) -> tuple[tuple[str, int], ...]:
    return tuple((column.removeprefix("-"), -1 if column.startswith("-") else 1) for column in columns)


class Engine:
    """Operations, actions and timers of one world. Instants are epoch milliseconds."""

    def __init__(
        self,
        executor: Executor,
        rows: Rows,
        store: Store,
        clock: Clock,
        redact: Callable[[str], str] = str,
        *,
        agenda: Agenda | None = None,
        watch: Watch | None = None,
    ) -> None:
        """``agenda``: what plain code has to do, in one order with the timers; ``watch`` is told of each change."""
        self.executor, self.machine, self.rows = executor, executor.machine, rows
        self.store, self.clock, self.agenda, self.watch = store, clock, agenda, watch
        self._functions: Inputs = {
            "string": str,
            "redact": lambda text: None if text is None else redact(text),
            "merge": _merge,
            "differs": _differs,
        }

    async def operate(
        self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Mapping[str, Any] | None
    ) -> Outcome:
        """Perform an operation of the machine for ``caller`` (a runtimeInstanceId)."""
        return await self.perform(operation_id, {"caller": caller, "path": path, "body": body or {}})

    async def perform(self, operation_id: str, inputs: Inputs) -> Outcome:
        """Perform an operation of the machine; ``inputs`` are those of the machine, but for ``now``."""
        return await self._perform(self.machine.operations[operation_id], inputs)

    async def fire(self, name: str, key: str, now: int, **given: Any) -> Outcome:
        """Fire an internal trigger on a row at an instant; ``given`` are inputs. Raises ``KeyError`` for no row."""
        trigger = self.machine.internal[name]
        for _ in range(_MAX_ROUNDS):
            row = await self.store.get(self.machine.entity, key)
            if row is None:
                raise KeyError(key)
            outcome = self.executor.judge(trigger, {**self._functions, **given, self.machine.row: row, "now": now})
            if await self._commit(row, outcome, now):
                return outcome
        raise RuntimeError(f"{name} can't be stored: others are always faster")

    async def act(self, action: str, params: Mapping[str, Any]) -> Outcome:
        """Perform an action: createJob (``params`` are the columns), cancelJob, rerunJob, revokeConsent.

        Raises ``KeyError`` when a new row is given a key that exists already.
        """
        trigger = self.machine.actions[action]
        inputs: Inputs = {"params": params, "body": params}
        if trigger.each is None:
            return await self._perform(trigger, inputs)
        now = await self.settle()
        outcome = Outcome(trigger.name, None, None)
        for row in await self.store.rows(self.machine.entity):
            inputs = {**inputs, **self._functions, self.machine.row: row, "now": now}
            if self.executor.concerns(trigger, inputs):
                outcome = await self._perform(trigger, inputs, row)
        return outcome

    async def settle(self, fired: Firings | None = None) -> int:
        """Fire every timer that is due by now, in due order, and note them in ``fired``.

        Returns that instant: what follows is judged at it.
        """
        now = self.clock.now()
        last: tuple[str, int] | None = None
        firings = 0
        while True:
            due = await self.store.next_due()
            if self.agenda is not None and (item := self.agenda.take(now, due)) is not None:
                await item.do(item.instant)
                continue
            if due is None or due.instant > now:
                return now
            firings = firings + 1 if last == (due.key, due.instant) else 0
            last = (due.key, due.instant)
            if firings > _MAX_FIRINGS:
                raise RuntimeError(f"timers of {due.key} fire for ever at {due.instant}")
            row = await self.store.get(self.machine.entity, due.key)
            if row is not None:
                outcome = self.executor.fire(due, row, dict(self._functions))
                if await self._commit(row, outcome, due.instant) and fired is not None:
                    fired.add(due, row, outcome)

    async def next_instant(self) -> int | None:
        """When the next timer, or the next thing of the agenda, is due."""
        due = await self.store.next_due()
        item = self.agenda.head if self.agenda is not None else None
        instants = [next_.instant for next_ in (due, item) if next_ is not None]
        return min(instants, default=None)

    async def advance(self, milliseconds: int, fired: Firings | None = None) -> int:
        """Move the clock forward; everything due by then has happened when this returns the new instant.

        Raises ``ValueError`` where the clock would go past the year 9999.
        """
        if self.clock.now() + milliseconds > LATEST:
            raise ValueError(TOO_LATE)
        now = self.clock.advance(milliseconds)
        await self.settle(fired)
        return now

    async def job(self, key: str) -> Row | None:
        """A row of the machine's entity as it is now."""
        await self.settle()
        return await self.store.get(self.machine.entity, key)

    async def poll(self, query: QueueQuery) -> list[Row]:
        """The first rows of the queue that match."""
        await self.settle()
        return await self.store.queue(query)

    async def insert(self, entity: str, values: Mapping[str, Any]) -> Row:
        """Store a new row, columns left out taking their defaults. Raises ``KeyError`` when the key exists already."""
        return (await self.insert_all(entity, [values]))[0]

    async def insert_all(self, entity: str, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Store new rows, all or none. Raises ``KeyError`` with the keys when one of them exists already."""
        now = self.clock.now()
        made = await self._store(entity, rows, now)
        if self.watch is not None and entity == self.machine.entity:
            for row in made:
                await self.watch(None, row, None, now)
        return made

    async def load(self, entity: str, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        """Store rows as :meth:`insert_all` does, and tell nobody: they were there before."""
        return await self._store(entity, rows, self.clock.now())

    async def _store(self, entity: str, rows: Sequence[Mapping[str, Any]], now: int) -> list[Row]:
        made = [self._row(entity, values, now) for values in rows]
        changes = [
            Change(entity, None, row, self.executor.due(row, row["id"]) if entity == self.machine.entity else None)
            for row in made
        ]
        if not await self.store.commit(changes):
            raise KeyError(*(row[self.rows.keys[entity]] for row in made))
        return made

    async def replace(self, entity: str, row: Row) -> None:
        """Store a row of an entity that has no machine, in the place of the one with its key where there is one."""
        old = await self.store.get(entity, row[self.rows.keys[entity]])
        await self.store.commit([Change(entity, old, {**self.rows.defaults[entity], **row})])

    async def rows_of(self, entity: str, value: str) -> Sequence[Row]:
        """The rows of an entity whose ``x-row.by`` column has that value, oldest first."""
        return await self.store.rows(entity, value)

    async def reset(self) -> None:
        """Remove every row; the clock goes back to real time."""
        await self.store.clear()
        self.clock.reset()

    async def _perform(self, trigger: Trigger, inputs: Inputs, row: Row | None = None) -> Outcome:
        now = await self.settle()
        inputs = {**self._functions, **inputs, "now": now}
        lost = False
        for _ in range(_MAX_ROUNDS):
            if trigger.find is not None:
                row = await self.store.get(self.machine.entity, self.executor.key(trigger, inputs))
                inputs[self.machine.row] = row
                if row is None or not self.executor.found(trigger, inputs):
                    return Outcome("find", trigger.find.otherwise, None)
            inputs[self.machine.row] = row
            related = {
                name: await self._related(trigger.related[name], inputs) for name in self.executor.related(trigger)
            }
            inputs.update(related)
            outcome = self.executor.judge(trigger, inputs)
            outcome.related = related
            if await self._commit(row, outcome, now):
                return outcome
            if lost:  # not by a race: what it creates is there already
                await self._refuse_existing(outcome)
            lost = True
            if trigger.find is None and row is not None:
                row = await self.store.get(self.machine.entity, row[self.rows.keys[self.machine.entity]])
        raise RuntimeError(f"{trigger.name} can't be stored: it breaks a unique set, or others are always faster")

    async def _refuse_existing(self, outcome: Outcome) -> None:
        for entity, row in outcome.created.items():
            key = row[self.rows.keys[entity]]
            if await self.store.get(entity, key) is not None:
                raise KeyError(key)

    async def _related(self, related: Related, inputs: Inputs) -> Row | None:
        if related.unique:
            where = {column: inputs["body"].get(column) for column in self.machine.unique}
        else:
            where = self.executor.where(related.name, inputs)
        if None in where.values():
            return None
        return await self.store.find(related.entity, where)

    async def _commit(self, old: Row | None, outcome: Outcome, now: int) -> bool:
        """Store what an outcome changed and created; False when another was faster and the row must be judged again."""
        changes = []
        key = self.rows.keys[self.machine.entity]
        if outcome.changed and outcome.row is not None:
            due = self.executor.due(outcome.row, outcome.row[key])
            changes.append(Change(self.machine.entity, old, outcome.row, due))
        for entity, values in outcome.created.items():
            row = outcome.created[entity] = self._row(entity, values, now)
            due = self.executor.due(row, row[key]) if entity == self.machine.entity else None
            changes.append(Change(entity, None, row, due))
        if changes and not await self.store.commit(changes):
            return False
        if self.watch is not None and outcome.changed and outcome.row is not None:
            await self.watch(old, outcome.row, outcome.event, now)
        return True

    def _row(self, entity: str, values: Mapping[str, Any], now: int) -> Row:
        defaults = self.rows.defaults[entity]
        given = {column: value for column, value in values.items() if value is not None and column in defaults}
        row = {**defaults, **given}
        key = self.rows.keys[entity]
        if row[key] is None:
            row[key] = f"{entity.lower()}-{secrets.token_hex(8)}"
        for column in ("createdAt", "updatedAt"):
            if column in row and row[column] is None:
                row[column] = now
        return row


def _merge(old: Row | None, new: Row) -> Row:
    return {**(old or {}), **new}


def _differs(old: Row | None, new: Row) -> bool:
    known = old or {}
    return any(known.get(name) != value for name, value in new.items() if name != "updatedAt")
