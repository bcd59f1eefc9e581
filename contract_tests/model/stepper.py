"""Steps through ``x-state-machine``: what becomes of a row by a trigger or by time, as the text has it.

Pure: rows come in, rows come out. It knows nothing of HTTP, and nothing of how the reference executes the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from contract_tests.model.language import Formula, Inputs, Language, NoValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contract_tests.model.language import Functions

Row = dict[str, Any]
GROUPS = ("operations", "actions", "internal")
MOST_FIRINGS = 50
"""Timers of one row that fire one after the other, at most: a text that loops is told, not followed."""


class Undecided(RuntimeError):  # noqa: N818 - a fault of the text, not of the build
    """No step decides, or one leads back to itself for ever."""


@dataclass(frozen=True)
class Taken:
    """What a trigger or a timer does.

    ``step`` is the id of what decided; ``answer`` a success status, an error code, or None; ``row`` what the row is
    afterwards, ``steps`` all that had a part in it (those of a state that is left at once, too).
    """

    step: str
    answer: int | str | None
    row: Row | None
    changed: bool = False
    headers: Mapping[str, Any] = field(default_factory=dict)
    created: Mapping[str, Row] = field(default_factory=dict)
    show: str | None = None
    rules: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    at: int = 0
    """The instant that it took for now."""


class _Step:
    def __init__(self, item: Mapping[str, Any], effects: Mapping[str, Any], language: Language) -> None:
        self.id, self.sources, self.to = item["id"], item.get("from"), item.get("to")
        self.require = language.formula(item["require"]) if "require" in item else None
        self.when = language.formula(item["when"]) if "when" in item else None
        self.answer = item["else"] if self.require is not None else item.get("answer")
        self.set = assigned(item.get("set", ()), effects, language)
        self.headers = {name: language.formula(value) for name, value in item.get("headers", {}).items()}
        self.create = {entity: _Creation(made, language) for entity, made in item.get("create", {}).items()}
        self.show, self.rules = item.get("show"), tuple(item.get("requirements", ()))

    def decides(self, inputs: Inputs, status: str | None) -> bool:
        if self.require is not None:
            return not self.require(inputs)
        if self.sources is not None and status not in self.sources:
            return False
        return self.when is None or bool(self.when(inputs))


class _Creation:
    def __init__(self, item: Mapping[str, Any], language: Language) -> None:
        self.values = {name: language.formula(value) for name, value in item.items() if name != "copy"}
        self.copies: list[tuple[str, Any]] = list(item.get("copy", {}).items())

    def row(self, inputs: Inputs) -> Row:
        made: Row = {}
        for name, columns in self.copies:
            origin = inputs[name]
            made |= origin if columns == "all" else {column: origin.get(column) for column in columns}
        return made | {name: value(inputs) for name, value in self.values.items()}


class _Timer:
    def __init__(self, name: str, item: Mapping[str, Any], effects: Mapping[str, Any], language: Language) -> None:
        self.name, self.sources, self.to = name, item["from"], item.get("to")
        self.late = 1 if "after" in item else 0
        self.instant = language.formula(item["after" if "after" in item else "at"])
        self.fires, self.given = item.get("fires"), item.get("with", {})
        self.set, self.rules = assigned(item.get("set", ()), effects, language), tuple(item.get("requirements", ()))

    def due(self, inputs: Inputs) -> int | None:
        """The first instant at which it fires; None where it is not armed."""
        try:
            instant = self.instant(inputs)
        except NoValue:
            return None
        return None if instant is None else int(instant) + self.late


def assigned(items: Sequence[Any], effects: Mapping[str, Any], language: Language) -> dict[str, Formula]:
    """The columns that a ``set`` writes, groups of ``effects`` among them."""
    found: dict[str, Formula] = {}
    for item in items:
        for column, value in (effects[item] if isinstance(item, str) else item).items():
            found[column] = language.formula(value)
    return found


class Stepper:
    """One machine."""

    def __init__(self, text: Mapping[str, Any], numbers: Mapping[str, Any], functions: Functions) -> None:
        """``text`` is the extension as a specification has it; the rest as :class:`Language` takes it."""
        self.text = text
        self.row = text.get("row", text["entity"][0].lower() + text["entity"][1:])
        self.stamp, self.initial = text.get("stamp"), text["initial"]
        language, effects = Language(text, numbers, functions), text.get("effects", {})
        self.constants, self.value = language.constants, language.formula
        self.derived = {name: language.formula(value) for name, value in text.get("derived", {}).items()}
        self._steps = {
            (group, name): [_Step(step, effects, language) for step in item["steps"]]
            for group in GROUPS
            for name, item in text.get(group, {}).items()
        }
        own = {(group, name): item.get("related", {}) for group in GROUPS for name, item in text.get(group, {}).items()}
        self._related = {
            key: {
                name: (item["of"], {column: language.formula(value) for column, value in item["where"].items()})
                for name, item in (text.get("related", {}) | more).items()
            }
            for key, more in own.items()
        }
        self._finds = {
            (group, name): (language.formula(item["find"]["where"]), str(item["find"]["else"]))
            for group in GROUPS
            for name, item in text.get(group, {}).items()
            if "where" in item.get("find", {})
        }
        self._each = {
            (group, name): language.formula(item["each"])
            for group in GROUPS
            for name, item in text.get(group, {}).items()
            if "each" in item
        }
        self._entering = {
            state: [_Step(step, effects, language) for step in steps]
            for state, steps in text.get("entering", {}).items()
        }
        self._timers = [_Timer(name, item, effects, language) for name, item in text.get("timers", {}).items()]
        self._holds = {
            name: language.formula(state["holds"]) for name, state in text["states"].items() if "holds" in (state or {})
        }

    def transitions(self) -> Iterator[str]:
        """The ids of all steps, and the names of all timers."""
        for steps in (*self._steps.values(), *self._entering.values()):
            yield from (step.id for step in steps)
        yield from (timer.name for timer in self._timers)

    def judge(self, group: str, name: str, inputs: Inputs) -> Taken:
        """The trigger on the row in ``inputs``. Raises :class:`Undecided`."""
        row: Row | None = inputs.get(self.row)
        status = row["status"] if row is not None else None
        step = next((step for step in self._steps[group, name] if step.decides(inputs, status)), None)
        if step is None:
            raise Undecided(f"no step of {name} decides in state {status}")
        steps: list[str] = [step.id]
        changed = step.require is None and row is not None and (step.to is not None or bool(step.set))
        if changed and row is not None:
            row = self._moved(row, step.to, step.set, inputs, steps)
        shown = {} if step.require is not None else {name: value(inputs) for name, value in step.headers.items()}
        created = {} if step.require is not None else {entity: made.row(inputs) for entity, made in step.create.items()}
        return Taken(
            step.id, step.answer, row, changed, shown, created, step.show, step.rules, tuple(steps), inputs["now"]
        )

    def related(self, group: str, name: str, inputs: Inputs, tables: Mapping[str, Sequence[Row]]) -> Inputs:
        """The rows of ``tables`` (by entity) that the trigger's expressions see; None where there is none.

        ``unique: body`` finds the row with the body's values in the machine's ``unique`` columns, none of them null.
        """
        found: Inputs = {}
        for called, (entity, where) in self._related[group, name].items():
            wanted = self._wanted(where, inputs)
            rows = tables.get(entity, ()) if None not in wanted.values() else ()
            found[called] = next((row for row in rows if wanted.items() <= row.items()), None)
        return found

    def _wanted(self, where: Mapping[str, Formula], inputs: Inputs) -> Row:
        if "unique" in where:
            body = inputs[where["unique"].text or ""]
            return {column: body.get(column) for column in self.text["unique"]}
        try:
            return {column: value(inputs) for column, value in where.items()}
        except NoValue:  # of a trigger that has no row, or no body
            return {"": None}

    def concerns(self, group: str, name: str, inputs: Inputs) -> bool:
        """Whether a trigger on many rows is about this one."""
        return bool(self._each[group, name](inputs))

    def missed(self, group: str, name: str, inputs: Inputs) -> str | None:
        """The error code where the trigger does not find the row in ``inputs``; None where it does."""
        if (group, name) not in self._finds:
            return None
        where, otherwise = self._finds[group, name]
        return None if where(inputs) else otherwise

    def due(self, row: Row) -> int | None:
        """The first instant at which a timer of the row fires."""
        return min((instant for instant, _ in self._armed(row)), default=None)

    def passes(self, row: Row, now: int, inputs: Inputs | None = None) -> list[Taken]:
        """What time does to the row until now, in order; the last one's row is what becomes of it."""
        taken: list[Taken] = []
        while True:
            due = self.due(row)
            if due is None or due > now:
                return taken
            if len(taken) == MOST_FIRINGS:
                raise Undecided("timers of the row fire for ever")
            taken.append(self.fire(row, inputs))
            row = taken[-1].row or row

    def fire(self, row: Row, inputs: Inputs | None = None) -> Taken:
        """Fire the row's next timer, at the first instant at which it is due."""
        instant, order = min(self._armed(row))
        return self._fired(self._timers[order], row, instant, inputs or {})

    def holds(self, row: Row, inputs: Inputs) -> bool:
        """Whether what the text says of every row in the row's state is true of this one."""
        holds = self._holds.get(row["status"])
        return holds is None or bool(holds({**inputs, self.row: row}))

    def _armed(self, row: Row) -> Iterator[tuple[int, int]]:
        """Instants of timers with their place in the text."""
        for order, timer in enumerate(self._timers):
            if row["status"] in timer.sources:
                instant = timer.due({self.row: row})
                if instant is not None:
                    yield instant, order

    def _fired(self, timer: _Timer, row: Row, instant: int, inputs: Inputs) -> Taken:
        inputs = {**inputs, self.row: row, "now": instant, **timer.given}
        if timer.fires is not None:
            taken = self.judge("internal", timer.fires, inputs)
            return replace(taken, steps=(timer.name, *taken.steps))
        steps: list[str] = [timer.name]
        new = self._moved(row, timer.to, timer.set, inputs, steps)
        return Taken(timer.name, None, new, True, rules=timer.rules, steps=tuple(steps), at=instant)

    def _moved(self, row: Row, to: str | None, effects: Mapping[str, Formula], inputs: Inputs, steps: list[str]) -> Row:
        new = row | {column: value(inputs) for column, value in effects.items()}
        if self.stamp is not None:
            new[self.stamp] = inputs["now"]
        if to is None:
            return new
        new["status"] = to
        if to not in self._entering:
            return new
        if len(steps) > len(self._entering) + 1:
            raise Undecided(f"{to} is entered again and again")
        inputs = {**inputs, self.row: new}
        step = next((step for step in self._entering[to] if step.decides(inputs, to)), None)
        if step is None:
            raise Undecided(f"no step of entering {to} decides")
        steps.append(step.id)
        return self._moved(new, step.to, step.set, inputs, steps)
