"""What can be told of a machine without running it: names that lead nowhere, nulls that would break an expression,
states that can't be reached, steps that can never decide and triggers that do not always decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.analysis_tables import Tables
from openapi.analysis_texts import Texts
from openapi.documents import escape
from openapi.expressions import Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.contract import Contract
    from openapi.machine import Fault, Machine, Step, Timer, Trigger

_NULL = Literal(None)


def analyse(contract: Contract) -> list[Fault]:
    """Every fault of the contract's machine, as (pointer below ``x-state-machine``, message, mend)."""
    machine = contract.machine
    if machine is None:
        return []
    analysis = _Analysis(contract, machine)
    if unknown := list(analysis.entities()):
        return unknown
    return [
        *analysis.states(),
        *analysis.steps(),
        *analysis.timers(),
        *analysis.events(),
        *analysis.texts.faults(),
        *Tables(machine).decisions(),
    ]


class _Analysis:
    def __init__(self, contract: Contract, machine: Machine) -> None:
        self.contract, self.machine = contract, machine
        self.schemas: Mapping[str, Any] = contract.document["components"]["schemas"]
        self.columns = self.schemas.get(machine.entity, {}).get("properties", {})
        self.texts = Texts(contract, machine)

    # States

    def entities(self) -> Iterator[Fault]:
        """Rows of no schema: nothing else can be told before they are right."""
        if self.machine.entity not in self.schemas:
            yield "/entity", f"`{self.machine.entity}` is no schema", "name one of components.schemas"
        found = {
            related.pointer: related for trigger in self.machine.triggers() for related in trigger.related.values()
        }
        for related in found.values():
            if related.entity not in self.schemas:
                yield f"{related.pointer}/of", f"`{related.entity}` is no schema", "name one of components.schemas"

    def states(self) -> Iterator[Fault]:
        """Unknown and unreachable states, ways out of final ones, transient ones that are not left."""
        machine = self.machine
        names = set(machine.states)
        if machine.initial not in names:
            yield "/initial", f"`{machine.initial}` is no state", "name one of `states`"
        reached = {machine.initial}
        for pointer, sources, target in self.moves():
            if target is not None and target not in names:
                yield f"{pointer}/to", f"`{target}` is no state", "name one of `states`"
            for state in sources:
                if state not in names:
                    yield f"{pointer}/from", f"`{state}` is no state", "name one of `states`"
                elif target not in (None, state) and machine.states[state].final:
                    yield f"{pointer}/from", f"`{state}` is final and is left here", "leave it out of `from`"
            reached.add(target or "")
        for name, known in machine.states.items():
            if name not in reached:
                yield f"/states/{name}", f"nothing leads to `{name}`", "add a transition or drop the state"
            if known.transient != (name in machine.entering):
                yield (
                    f"/states/{name}",
                    f"`{name}` is transient or has steps under `entering`, not both",
                    "give it both",
                )
        for trigger in machine.entering.values():
            yield from (
                (step.pointer, "a transient state is not left", "give the step a `to`")
                for step in trigger.steps
                if step.to is None
            )

    def moves(self) -> Iterator[tuple[str, tuple[str, ...], str | None]]:
        """Every step and timer: place, from, to (None: the state stays)."""
        for trigger in self.machine.triggers():
            for step in trigger.steps:
                yield step.pointer, (trigger.name,) if trigger.kind == "entering" else (step.sources or ()), step.to
        for timer in self.machine.timers.values():
            yield timer.pointer, timer.sources, timer.to

    # Steps: what they set and answer

    def steps(self) -> Iterator[Fault]:
        """Columns that do not exist or can't be null, answers that the operation does not document."""
        ids: set[str] = set()
        for trigger in self.machine.triggers():
            for step in trigger.steps:
                if step.id in ids:
                    yield step.pointer, f"the id `{step.id}` stands twice", "ids of steps are unique"
                ids.add(step.id)
                if step.to is not None and step.sources is None and trigger.kind != "entering":
                    yield step.pointer, "changes the state from any state", "list the states under `from`"
                yield from self.assignments(step)
                yield from self.answers(trigger, step)
        for timer in self.machine.timers.values():
            yield from self.assignments(timer)
        for name in self.machine.derived:
            if name in self.columns:
                yield f"/derived/{name}", f"`{name}` is a column of {self.machine.entity}", "derive it or store it"

    # Timers that fire, and what is told

    def timers(self) -> Iterator[Fault]:
        """Timers that fire no internal trigger, or one that reads what they do not give."""
        for timer in self.machine.timers.values():
            for name in timer.given:
                if name not in self.machine.inputs:
                    yield f"{timer.pointer}/with/{escape(name)}", f"`{name}` is no input", "name it under `inputs`"
            if timer.fires is None:
                continue
            trigger = self.machine.internal.get(timer.fires)
            if trigger is None:
                what = f"`{timer.fires}` is no internal trigger"
                yield f"{timer.pointer}/fires", what, "name one of `internal`"
            else:
                yield from self.texts.given(timer, trigger)

    def events(self) -> Iterator[Fault]:
        """Events that the stream does not have, or that another one is always told in place of."""
        for pointer, name in self.told():
            if not self.contract.events:
                yield pointer, f"tells `{name}`, and no stream of `paths` tells events", "document it with x-events"
            elif name not in self.contract.events:
                yield pointer, f"`{name}` is no event of the stream", "name one of those in its x-events"
        for state in self.machine.states.values():
            always = False
            for i, event in enumerate(state.events):
                if always:
                    pointer = f"/states/{state.name}/events/{i}"
                    yield pointer, f"`{event.name}` is never told", "drop it, or move it up"
                always = always or event.when is None

    def told(self) -> Iterator[tuple[str, str]]:
        """Each place that names an event, with the name."""
        for state in self.machine.states.values():
            for i, event in enumerate(state.events):
                yield f"/states/{state.name}/events/{i}/name", event.name
        for trigger in self.machine.triggers():
            for step in trigger.steps:
                if step.event is not None:
                    yield f"{step.pointer}/event", step.event

    def assignments(self, setter: Step | Timer) -> Iterator[Fault]:
        for column, value in setter.set.items():
            pointer, schema = setter.set_at[column], self.columns.get(column)
            if schema is None:
                yield pointer, f"sets `{column}`, which is no column of {self.machine.entity}", "name a column"
            elif column == "status":
                yield pointer, "sets the status as a column", "use `to`"
            elif value == _NULL and not schema.get("nullable"):
                yield (
                    pointer,
                    f"sets `{column}` to null, which the schema does not allow",
                    "make it nullable or set a value",
                )

    def answers(self, trigger: Trigger, step: Step) -> Iterator[Fault]:
        if trigger.kind != "operation":
            return
        operation = self.contract.operations.get(trigger.name)
        if operation is None:
            yield trigger.pointer, f"`{trigger.name}` is no operation", "name an operationId of `paths`"
            return
        answers: list[tuple[str, int | str | None]] = [(f"{step.pointer}/answer", step.answer)]
        if step.require is not None:
            answers = [(f"{step.pointer}/else", step.otherwise)]
        if trigger.find is not None and step is trigger.steps[0]:
            answers.append((f"{trigger.pointer}/find/else", trigger.find.otherwise))
        for pointer, answer in answers:
            if isinstance(answer, int):
                if answer not in operation.statuses or not 200 <= answer < 300:
                    yield pointer, f"answers {answer}, which {operation.id} does not document", "document it"
            elif answer is None:
                yield pointer, "has no answer", "give it `answer`"
            elif answer not in self.contract.errors:
                yield pointer, f"answers `{answer}`, which is no code of x-errors", "add the code there"
            else:
                status = self.contract.errors[answer].status
                response = self.contract.resolve(operation.document["responses"].get(str(status), {}))
                if answer not in response.get("x-error-codes", ()):
                    what = f"answers `{answer}`, which {operation.id} does not document under {status}"
                    yield pointer, what, "name it in that response's x-error-codes"
