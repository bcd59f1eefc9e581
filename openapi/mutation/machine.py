"""Mutants of ``x-state-machine``: its steps, timers, states and effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.documents import escape
from openapi.mutation.edit import MACHINE, drop, put, swap
from openapi.mutation.texts import expressions_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi.machine import Machine
    from openapi.mutation.edit import Data
    from openapi.mutation.places import Places

_UNITS = ("seconds", "minutes", "hours")


def add_machine(places: Places) -> None:
    """Add every mutant of the contract's machine, where it has one."""
    if places.contract.machine is None:
        return
    edits = _Machine(places, places.contract.machine, places.document["x-state-machine"])
    for pointer, words, steps in edits.lists():
        edits.steps(pointer, words, steps)
    edits.triggers()
    edits.timers()
    edits.constants()
    edits.groups()
    edits.events()
    edits.unique()
    for kind in ("define", "derived"):
        for name, text in edits.text.get(kind, {}).items():
            expressions_at(places, f"{MACHINE}/{kind}/{name}", (name,), text, rules=places.using(name))


class _Machine:
    def __init__(self, places: Places, machine: Machine, text: Data) -> None:
        self.places, self.machine, self.text = places, machine, text
        self.columns: Data = places.document["components"]["schemas"][machine.entity]["properties"]
        self.resting = [name for name, state in machine.states.items() if not state.transient]

    def lists(self) -> Iterator[tuple[str, str, list[Data]]]:
        """Each list of steps with its pointer and the name of its trigger."""
        for group in ("operations", "actions", "internal"):
            for name, trigger in self.text.get(group, {}).items():
                yield f"{MACHINE}/{group}/{name}/steps", name, trigger["steps"]
        for name, steps in self.text.get("entering", {}).items():
            yield f"{MACHINE}/entering/{name}", name, steps

    # Steps

    def steps(self, pointer: str, trigger: str, steps: list[Data]) -> None:
        """The steps of one trigger."""
        codes = list(dict.fromkeys(code for step in steps for code in _codes(step)))
        for i, step in enumerate(steps):
            at, id_ = f"{pointer}/{i}", step["id"]
            refuses = bool(_codes(step))
            what = f"{trigger} without its step `{id_}`"
            if len(steps) > 1:
                self.places.add("refusal" if refuses else "step", [id_], at, what, drop(at))
            if i + 1 < len(steps):
                other = steps[i + 1]["id"]
                rules = steps[i + 1]["requirements"]
                what = f"{trigger} judges `{other}` before `{id_}`"
                self.places.add(
                    "steps-swapped",
                    [id_, other],
                    at,
                    what,
                    swap(pointer, i, i + 1),
                    rules=[*step["requirements"], *rules],
                )
            self.sources(at, id_, step)
            self.conditions(at, id_, step)
            self.effects(at, id_, step)
            self.targets(at, id_, step)
            self.answers(at, trigger, step, codes)
            self.rows(at, id_, step)

    def sources(self, at: str, id_: str, item: Data) -> None:
        """States in which a step or a timer is taken."""
        if "from" not in item:
            return
        for i, state in enumerate(item["from"]):
            if len(item["from"]) > 1:
                what = f"`{id_}` is not taken in {state}"
                self.places.add("source-removed", [id_, state], f"{at}/from/{i}", what, drop(f"{at}/from/{i}"))
        for state in self.resting:
            if state not in item["from"]:
                what = f"`{id_}` is taken in {state}, too"
                change = put(f"{at}/from", [*item["from"], state])
                self.places.add("source-added", [id_, state], f"{at}/from", what, change)

    def conditions(self, at: str, id_: str, step: Data) -> None:
        """The condition of a step."""
        if "when" in step:
            self.places.add(
                "guard", [id_], f"{at}/when", f"`{id_}` is taken whatever `{step['when']}` says", drop(f"{at}/when")
            )
        for key in ("when", "require"):
            if key in step:
                expressions_at(self.places, f"{at}/{key}", (id_,), step[key])

    def effects(self, at: str, id_: str, item: Data) -> None:
        """What a step or a timer sets."""
        for i, group in enumerate(item.get("set", ())):
            place = f"{at}/set/{i}"
            if isinstance(group, str):
                what = f"`{id_}` does without `{group}`"
                self.places.add("effect-dropped", [id_, group], place, what, drop(place), rules=self.places.near(at))
            else:
                self.columns_set(place, id_, group)

    def columns_set(self, place: str, words: str, group: Data, rules: list[str] | None = None) -> None:
        """Columns set at one place."""
        for column, value in group.items():
            at = f"{place}/{column}"
            what = f"`{words}` leaves {column} as it is"
            self.places.add("effect-dropped", [words, column], at, what, drop(at), rules=rules or ())
            other = self.other(column, value)
            if other is not None:
                what = f"`{words}` sets {column} to {_shown(other)}, not {_shown(value)}"
                change = put(at, other[0])
                self.places.add("effect-replaced", [words, column], at, what, change, rules=rules or ())
            if isinstance(value, str):
                expressions_at(self.places, at, (words, column), value, rules=rules or ())
            elif isinstance(value, int) and not isinstance(value, bool):
                self.number(at, (words, column), value, rules=rules or ())

    def other(self, column: str, value: Any) -> tuple[Any] | None:
        """Another value for a column, in a tuple; None where there is none that is plainly wrong."""
        schema = self.columns.get(column, {})
        if isinstance(value, bool):
            return (not value,)
        if value is not None:
            return (None,) if schema.get("nullable") else None
        row = self.machine.row
        types = {"integer": f"{row}.{'queuedAt' if 'queuedAt' in self.columns else 'createdAt'}", "string": f"{row}.id"}
        return (types[schema["type"]],) if schema.get("type") in types else None

    def targets(self, at: str, id_: str, item: Data) -> None:
        """The state that is entered."""
        if "to" not in item:
            return
        for state in self.machine.states:
            if state != item["to"]:
                what = f"`{id_}` leads to {state}, not to {item['to']}"
                self.places.add("target", [id_, state], f"{at}/to", what, put(f"{at}/to", state))

    def answers(self, at: str, trigger: str, step: Data, codes: list[str]) -> None:
        """What a step answers, with which headers and event."""
        operation = self.places.contract.operations.get(trigger)
        statuses = [status for status in operation.statuses if status < 300] if operation else [200, 201]
        documented = list(codes)
        for status, item in (operation.document["responses"] if operation else {}).items():
            if int(status) in (404, 409, 410, 422):
                documented += self.places.contract.resolve(item).get("x-error-codes", ())
        for key in ("answer", "else"):
            told = step.get(key)
            if told is None:
                continue
            others: list[Any] = list(dict.fromkeys(documented)) if isinstance(told, str) else list(statuses)
            for other in others:
                if other not in (told, "NOT_FOUND"):
                    what = f"`{step['id']}` answers {other}, not {told}"
                    self.places.add("answer", [step["id"], other], f"{at}/{key}", what, put(f"{at}/{key}", other))
        for name, text in step.get("headers", {}).items():
            place = f"{at}/headers/{escape(name)}"
            what = f"`{step['id']}` answers without {name}"
            self.places.add("header", [step["id"], name.lower()], place, what, drop(place))
            expressions_at(self.places, place, (step["id"], name.lower()), text)
        if "show" in step:
            what = f"`{step['id']}` does not show `{step['show']}`"
            self.places.add("answer", [step["id"], "show"], f"{at}/show", what, drop(f"{at}/show"))
        if "event" in step:
            what = f"`{step['id']}` tells no event"
            self.places.add("event", [step["id"], "none"], f"{at}/event", what, drop(f"{at}/event"))

    def rows(self, at: str, id_: str, step: Data) -> None:
        """Rows that a step creates."""
        for entity, item in step.get("create", {}).items():
            place = f"{at}/create/{entity}"
            for column, value in item.items():
                if column != "copy":
                    what = f"`{id_}` does not set {column} of the new {entity}"
                    self.places.add("copy", [id_, column], f"{place}/{column}", what, drop(f"{place}/{column}"))
                    if isinstance(value, str):
                        expressions_at(self.places, f"{place}/{column}", (id_, column), value)
            for source, columns in item.get("copy", {}).items():
                for i, column in enumerate(columns if isinstance(columns, list) else ()):
                    spot = f"{place}/copy/{source}/{i}"
                    what = f"`{id_}` does not copy {column} to the new {entity}"
                    self.places.add("copy", [id_, column], spot, what, drop(spot))

    # Triggers, timers, constants, groups of effects, events

    def triggers(self) -> None:
        """What stands beside the steps: which row, or which rows."""
        for group in ("operations", "actions"):
            for name, trigger in self.text.get(group, {}).items():
                at = f"{MACHINE}/{group}/{name}"
                find = trigger.get("find", {})
                if "where" in find:
                    what = f"{name} finds a row whatever `{find['where']}` says"
                    self.places.add("guard", [name, "find"], f"{at}/find/where", what, drop(f"{at}/find/where"))
                if "else" in find:
                    codes = [code for step in trigger["steps"] for code in _codes(step)]
                    for other in dict.fromkeys(codes):
                        if other != find["else"]:
                            what = f"{name} answers {other}, not {find['else']}, where there is no row"
                            self.places.add(
                                "answer", [name, "find", other], f"{at}/find/else", what, put(f"{at}/find/else", other)
                            )
                if "each" in trigger:
                    what = f"{name} changes every row, whatever `{trigger['each']}` says"
                    self.places.add("guard", [name, "each"], f"{at}/each", what, put(f"{at}/each", "true"))

    def timers(self) -> None:
        """The timers."""
        for name, timer in self.text.get("timers", {}).items():
            at = f"{MACHINE}/timers/{name}"
            self.places.add("timer", [name], at, f"the timer {name} never fires", drop(at))
            self.sources(at, name, timer)
            self.targets(at, name, timer)
            self.effects(at, name, timer)
            key, other = ("after", "at") if "after" in timer else ("at", "after")
            what = f"the timer {name} fires {other} its instant, not {key} it"
            self.places.add("boundary", [name, other], f"{at}/{key}", what, _renamed(at, key, other))
            expressions_at(self.places, f"{at}/{key}", (name,), timer[key])

    def constants(self) -> None:
        """Numbers and lists of the protocol."""
        for name, item in self.text.get("constants", {}).items():
            key = next(key for key in (*_UNITS, "value") if key in item)
            at, value = f"{MACHINE}/constants/{name}/{key}", item[key]
            rules = [*item.get("requirements", ()), *self.places.using(name)]
            unit = f" {key}" if key in _UNITS else ""
            for i, number in enumerate(value if isinstance(value, list) else [value]):
                place = f"{at}/{i}" if isinstance(value, list) else at
                words = (name, i) if isinstance(value, list) else (name,)
                if isinstance(number, int):
                    self.number(place, words, number, unit, rules)
                elif isinstance(value, list):
                    what = f"{name} without {number}"
                    rest = [other for other in value if other != number]
                    self.places.add("listed", [name, number], place, what, put(at, rest), rules=rules)

    def number(
        self, at: str, words: tuple[object, ...], number: int, unit: str = "", rules: list[str] | tuple[()] = ()
    ) -> None:
        """A number, one more and one less."""
        for step, sign in ((1, "more"), (-1, "less")):
            what = f"{'.'.join(map(str, words))} is {number + step}{unit}, not {number}"
            self.places.add("number", [*words, sign], at, what, put(at, number + step), rules=rules)

    def groups(self) -> None:
        """Groups of effects, which several steps use."""
        for name, group in self.text.get("effects", {}).items():
            self.columns_set(f"{MACHINE}/effects/{name}", name, group, self.places.using(name))

    def events(self) -> None:
        """What changes into states tell."""
        names = self.places.contract.events
        for state, item in self.text["states"].items():
            for i, event in enumerate((item or {}).get("events", ())):
                at = f"{MACHINE}/states/{state}/events/{i}"
                for name in names:
                    if name != event["name"]:
                        what = f"a change into {state} tells {name}, not {event['name']}"
                        self.places.add("event", [state, i, name], f"{at}/name", what, put(f"{at}/name", name))
                if "when" in event:
                    what = f"a change into {state} tells {event['name']} whatever `{event['when']}` says"
                    self.places.add("guard", [state, "event", i], f"{at}/when", what, drop(f"{at}/when"))

    def unique(self) -> None:
        """The columns that make two rows the same."""
        for i, column in enumerate(self.text.get("unique", ())):
            at = f"{MACHINE}/unique/{i}"
            rules = self.places.near(f"{MACHINE}/actions/createJob")
            self.places.add("key", [column], at, f"rows are the same whatever {column} is", drop(at), rules=rules)


def _codes(step: Data) -> list[str]:
    return [code for code in (step.get("answer"), step.get("else")) if isinstance(code, str)]


def _shown(value: Any) -> str:
    value = value[0] if isinstance(value, tuple) else value
    return "null" if value is None else f"`{value}`"


def _renamed(at: str, key: str, other: str) -> Any:
    def change(document: Data) -> None:
        node = document["x-state-machine"]["timers"][at.rpartition("/")[2]]
        node[other] = node.pop(key)

    return change
