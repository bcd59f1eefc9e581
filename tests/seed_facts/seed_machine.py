"""What ``x-state-machine`` says of one row and one trigger, read with an evaluator of CEL that the server does not use.

The notation is the specification's; nothing of this module is taken from the server or its interpreter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seed_spec import Spec

ROOT = "/x-state-machine"
NOW = 1_700_000_000_000
MOST_STEPS = 20
GROUPS = ("operations", "actions", "internal")
UNITS = {"seconds": 1000, "minutes": 60 * 1000, "hours": 60 * 60 * 1000}


@dataclass
class Outcome:
    """Where a trigger led: the row after it, its answer, the rows created, the transient states passed."""

    row: dict[str, Any]
    answer: int | str | None = None
    headers: dict[str, Any] = field(default_factory=dict)
    created: dict[str, dict[str, Any]] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    step: str = "nothing happened"


def instants(value: Any) -> Any:
    """``{now: n}`` of the facts as a number."""
    if isinstance(value, dict):
        return NOW + value["now"] if set(value) == {"now"} else {key: instants(inner) for key, inner in value.items()}
    return value


def milliseconds(constant: dict[str, Any]) -> Any:
    """The value of a constant in expressions: a duration, or a list of them, in milliseconds."""
    for unit, factor in UNITS.items():
        if unit in constant:
            times = constant[unit]
            return [time * factor for time in times] if isinstance(times, list) else times * factor
    return constant["value"]


def pairs(spec: Spec) -> Iterator[tuple[str, str, str]]:
    """Every change of state that the machine makes: from, to, and by what."""
    machine = spec.get(ROOT)
    for group in GROUPS:
        for name, trigger in machine.get(group, {}).items():
            for step in trigger["steps"]:
                yield from ((state, step["to"], name) for state in step.get("from", []) if "to" in step)
    for timer in machine["timers"].values():
        yield from ((state, timer["to"], "timer") for state in timer["from"] if "to" in timer)
    for state, steps in machine.get("entering", {}).items():
        yield from ((state, step["to"], "entering") for step in steps if "to" in step)


class Machine:
    """The machine of a specification, over one row."""

    def __init__(self, spec: Spec, defaults: dict[str, Any]) -> None:
        self.spec = spec
        self.text = spec.get(ROOT)
        self.defaults = defaults
        constants = self.text["constants"].items()
        self.constants = {name: milliseconds(constant) for name, constant in constants}

    def place(self, trigger: str) -> str:
        """The pointer of a trigger."""
        if trigger == "timers":
            return f"{ROOT}/timers"
        group = next((group for group in GROUPS if trigger in self.text.get(group, {})), "actions")
        self.spec.get(f"{ROOT}/{group}/{trigger}")
        return f"{ROOT}/{group}/{trigger}"

    def run(self, trigger: str, row: dict[str, Any], **given: Any) -> Outcome:
        """Judge ``trigger``; ``given`` are its caller, body, params and related rows."""
        place, outcome = self.place(trigger), Outcome(row)
        if trigger == "timers":
            self._fire(outcome)
            return outcome
        definition = self.spec.get(place)
        names = self._names(trigger, row, given)
        for name, related in definition.get("related", {}).items():
            names[name] = self._same(row, names) if "unique" in related["where"] else names.get(name)
        if "each" not in definition or self._value(definition["each"], outcome.row, names):
            self._judge(definition["steps"], outcome, names)
        return outcome

    def told(self, row: dict[str, Any]) -> str | None:
        """The event that a change into the row's state tells: the first that fits."""
        events = self.text["states"][row["status"]].get("events", [])
        return next((one["name"] for one in events if "when" not in one or self._value(one["when"], row, {})), None)

    def _names(self, trigger: str, row: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        related = dict.fromkeys(self.text.get("related", {})) | instants(given.get("related") or {})
        body = dict(given.get("body") or {})
        if trigger in self.text["operations"]:
            if "requestBody" in self.spec.get(self.spec.operation(trigger)):
                pointer = self.spec.message(trigger, request=True, response=None) + "/schema"
                body = dict.fromkeys(self.spec.schema(pointer)["properties"]) | body
        elif trigger == "createJob":
            body = self.defaults | body
        params = {"jobId": row["id"]} | (given.get("params") or {})
        caller = given.get("caller") or body.get("runtimeInstanceId") or row.get("lockedBy") or "runtime-001"
        inputs = given.get("inputs") or {}
        return {"body": body, "caller": caller, "path": {"jobId": row["id"]}, "params": params, **related, **inputs}

    def _same(self, row: dict[str, Any], names: dict[str, Any]) -> dict[str, Any] | None:
        keyed = [names["body"].get(column) for column in self.text["unique"]]
        return row if None not in keyed and keyed == [row[column] for column in self.text["unique"]] else None

    def _value(self, expression: Any, row: dict[str, Any], names: dict[str, Any], now: int = NOW) -> Any:
        if not isinstance(expression, str):
            return expression
        for _ in range(MOST_STEPS):
            inner = expression
            for name, meaning in self.text["define"].items():
                text = meaning["value"] if isinstance(meaning, dict) else meaning
                expression = re.sub(rf"(?<![\w.'-]){name}(?![\w'(-])", lambda _, text=text: f"({text})", expression)
            if inner == expression:
                break
        variables = self.constants | names | {"job": row, "now": now}
        return cel.evaluate(expression, cel.Context(variables=variables, functions={"redact": lambda text: text}))

    def _judge(self, steps: list[dict[str, Any]], outcome: Outcome, names: dict[str, Any], now: int = NOW) -> None:
        old = dict(outcome.row)
        for step in steps:
            if "require" in step:
                if self._value(step["require"], old, names, now):
                    continue
                outcome.answer, outcome.step = step["else"], step["id"]
                return
            if old["status"] not in step.get("from", [old["status"]]):
                continue
            if "when" in step and not self._value(step["when"], old, names, now):
                continue
            outcome.answer, outcome.step = step.get("answer", outcome.answer), step["id"]
            headers = step.get("headers", {}).items()
            outcome.headers = {name: self._value(expression, old, names, now) for name, expression in headers}
            for entity, created in step.get("create", {}).items():
                outcome.created[entity] = self._created(entity, created, old, names)
            self._change(step, outcome, names, now)
            return
        raise AssertionError(f"no step decides for status {old['status']}")

    def _created(
        self, entity: str, created: dict[str, Any], row: dict[str, Any], names: dict[str, Any]
    ) -> dict[str, Any]:
        new = dict(self.defaults) if entity == self.text["entity"] else {}
        for source, wanted in created.get("copy", {}).items():
            values = row if source == "job" else names[source]
            new |= values if wanted == "all" else {column: values.get(column) for column in wanted}
        return new | {key: self._value(text, row, names) for key, text in created.items() if key != "copy"}

    def _change(self, step: dict[str, Any], outcome: Outcome, names: dict[str, Any], now: int) -> None:
        old = dict(outcome.row)
        for effect in step.get("set", []):
            values = self.text["effects"][effect] if isinstance(effect, str) else effect
            outcome.row = outcome.row | {column: self._value(text, old, names, now) for column, text in values.items()}
        if "to" in step:
            outcome.row = outcome.row | {"status": step["to"]}
            if self.text["states"][step["to"]].get("transient"):
                outcome.passed.append(step["to"])
                self._judge(self.text["entering"][step["to"]], outcome, names, now)

    def _fire(self, outcome: Outcome) -> None:
        for _ in range(MOST_STEPS):
            due = []
            for order, timer in enumerate(self.text["timers"].values()):
                if outcome.row["status"] in timer["from"]:
                    limit = self._value(timer.get("after", timer.get("at")), outcome.row, {})
                    first = None if limit is None else limit + ("after" in timer)
                    if first is not None and first <= NOW:
                        due.append((first, order, timer))
            if not due:
                return
            first, _, timer = min(due, key=lambda one: one[:2])
            self._change(timer, outcome, {}, first)
        raise AssertionError("the timers never come to rest")
