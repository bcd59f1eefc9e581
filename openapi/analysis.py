"""What can be told of a machine without running it: names that lead nowhere, nulls that would break an expression,
states that can't be reached, steps that can never decide and triggers that do not always decide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from openapi import expressions
from openapi.documents import at_pointer
from openapi.expressions import Binary, Call, Conditional, Expression, Field, ListOf, Literal, Name, Not

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from openapi.contract import Contract
    from openapi.machine import Fault, Machine, Step, Timer, Trigger

_MAX_ATOMS = 12
_NEEDS_VALUE = frozenset({"<", "<=", ">", ">=", "+", "-", "*"})
_NULL = Literal(None)


def analyse(contract: Contract) -> list[Fault]:
    """Every fault of the contract's machine, as (pointer below ``x-state-machine``, message, mend)."""
    machine = contract.machine
    if machine is None:
        return []
    analysis = _Analysis(contract, machine)
    if unknown := list(analysis.entities()):
        return unknown
    return [*analysis.states(), *analysis.steps(), *analysis.texts(), *analysis.decisions()]


@dataclass(frozen=True, slots=True)
class _Text:
    """An expression at its place, with what is known to be non-null before it is judged."""

    pointer: str
    expression: Expression
    trigger: Trigger | None
    facts: frozenset[str]


class _Analysis:
    def __init__(self, contract: Contract, machine: Machine) -> None:
        self.contract, self.machine = contract, machine
        self.schemas: Mapping[str, Any] = contract.document["components"]["schemas"]
        self.columns = self.schemas.get(machine.entity, {}).get("properties", {})
        self.holds = {
            name: self.known(state.holds) if state.holds is not None else frozenset()
            for name, state in machine.states.items()
        }

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

    # Expressions: names and nulls

    def texts(self) -> Iterator[Fault]:
        """Unresolved names, unknown fields, operands that can be null."""
        for name, definition in self.machine.definitions.items():
            yield from self.names(_Text(f"/define/{name}", definition, None, frozenset()))
        for text in self.all_texts():
            yield from self.names(text)
            yield from (
                (text.pointer, message, mend) for message, mend in self.nulls(text.expression, text.facts, text)
            )

    def all_texts(self) -> Iterator[_Text]:
        for name, state in self.machine.states.items():
            if state.holds is not None:
                yield _Text(f"/states/{name}/holds", state.holds, None, frozenset())
        for trigger in self.machine.triggers():
            if trigger.find is not None:
                yield _Text(f"{trigger.pointer}/find/id", trigger.find.id, trigger, frozenset())
            if trigger.each is not None:
                yield _Text(f"{trigger.pointer}/each", trigger.each, trigger, frozenset())
            for related in trigger.related.values():
                for column, value in related.where.items():
                    yield _Text(f"{related.pointer}/where/{column}", value, None, frozenset())
            facts: frozenset[str] = frozenset()
            for step in trigger.steps:
                known = facts | self.of_states(step.sources)
                if step.guard is not None:
                    at = "require" if step.require is not None else "when"
                    yield _Text(f"{step.pointer}/{at}", step.guard, trigger, known)
                if step.require is not None:
                    facts |= self.known(step.require)
                    continue
                if step.when is not None:
                    known |= self.known(step.when)
                values = [(step.set_at[column], value) for column, value in step.set.items()]
                values += [(f"{step.pointer}/headers/{name}", value) for name, value in step.headers.items()]
                for creation in step.create:
                    at = f"{step.pointer}/create/{creation.entity}"
                    values += [(f"{at}/{column}", value) for column, value in creation.values.items()]
                yield from (_Text(pointer, value, trigger, known) for pointer, value in values)
        for timer in self.machine.timers.values():
            known = self.of_states(timer.sources)
            yield _Text(f"{timer.pointer}/{'after' if timer.strictly_after else 'at'}", timer.instant, None, known)
            yield from (_Text(timer.set_at[column], value, None, known) for column, value in timer.set.items())

    def of_states(self, names: Sequence[str] | None) -> frozenset[str]:
        """What is non-null in every one of these states, by their ``holds``."""
        known = [self.holds.get(name, frozenset()) for name in names or ()]
        return frozenset.intersection(*known) if known else frozenset()

    def names(self, text: _Text) -> Iterator[Fault]:
        rows = {self.machine.row: self.machine.entity}
        related = text.trigger.related if text.trigger else self.machine.related
        rows |= {name: item.entity for name, item in related.items()}
        for node in expressions.walk(text.expression):
            match node:
                case Name(name) if name not in rows and name not in self.machine.inputs:
                    yield text.pointer, f"`{name}` is not known here", "use an input, a constant or a definition"
                case Call(function, _) if function not in self.machine.functions:
                    yield text.pointer, f"`{function}` is no function", "name it under `functions`"
                case Field(Name(of), name) if of in rows and name not in self.schemas[rows[of]]["properties"]:
                    yield text.pointer, f"`{of}.{name}` is no column of {rows[of]}", "correct the name"
                case Field(Name("body"), name) if not self.in_body(text.trigger, name):
                    yield text.pointer, f"the body has no property `{name}`", "correct the name"

    def in_body(self, trigger: Trigger | None, name: str) -> bool:
        if trigger is None:  # a definition or a related row is for several triggers; each use is looked at, too
            return any(self.in_body(each, name) for each in self.machine.triggers())
        if trigger.kind != "operation":
            return name in self.columns
        operation = self.contract.operations.get(trigger.name)
        if operation is None:
            return True
        content = operation.document.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = content.get("schema", {})
        if "$ref" in schema:
            schema = at_pointer(self.contract.document, schema["$ref"].removeprefix("#"))
        return name in schema.get("properties", {})

    def nulls(self, node: Expression, facts: frozenset[str], text: _Text) -> Iterator[tuple[str, str]]:
        """Operands that may be null where that breaks the expression; ``&&``, ``||`` and ``?:`` add what they test."""
        match node:
            case Binary("&&", left, right):
                yield from self.nulls(left, facts, text)
                yield from self.nulls(right, facts | self.known(left), text)
                return
            case Binary("||", left, right):
                yield from self.nulls(left, facts, text)
                yield from self.nulls(right, facts | self.known(left, truth=False), text)
                return
            case Conditional(test, yes, no):
                yield from self.nulls(test, facts, text)
                yield from self.nulls(yes, facts | self.known(test), text)
                yield from self.nulls(no, facts | self.known(test, truth=False), text)
                return
            case Binary(sign, left, right) if sign in _NEEDS_VALUE:
                operands: tuple[Expression, ...] = (left, right)
            case Call("string", arguments):
                operands = arguments
            case Field(Name(_) as of, _):
                operands = (of,)
            case _:
                operands = ()
        for operand in operands:
            if self.nullable(operand, text.trigger) and expressions.render(operand) not in facts:
                name = expressions.render(operand)
                yield (
                    f"`{name}` may be null in `{expressions.render(node)}`",
                    f"test `{name} != null` to the left of it",
                )
        for child in expressions.children(node):
            yield from self.nulls(child, facts, text)

    def nullable(self, node: Expression, trigger: Trigger | None) -> bool:
        related = trigger.related if trigger else self.machine.related
        match node:
            case Name(name):
                return name in related
            case Field(Name(of), name) if of == self.machine.row:
                return bool(self.columns.get(name, {}).get("nullable"))
            case Field(Name(of), name) if of in related:
                return bool(self.schemas[related[of].entity]["properties"].get(name, {}).get("nullable"))
        return False

    def known(self, node: Expression, *, truth: bool = True) -> frozenset[str]:
        """What is certainly non-null when the expression is true (or false)."""
        match node:
            case Binary("!=", of, Literal(None)) if truth:
                return frozenset({expressions.render(of)})
            case Binary("==", of, Literal(None)) if not truth:
                return frozenset({expressions.render(of)})
            case Binary("&&", left, right) if truth:
                return self.known(left) | self.known(right)
            case Binary("||", left, right) if not truth:
                return self.known(left, truth=False) | self.known(right, truth=False)
            case Not(operand):
                return self.known(operand, truth=not truth)
            case Binary("in", Field(Name(row), "status"), ListOf(items)) if truth and row == self.machine.row:
                return self.of_states([str(item.value) for item in items if isinstance(item, Literal)])
        return frozenset()

    # Decisions: truth tables

    def decisions(self) -> Iterator[Fault]:
        """Steps that can never decide and triggers that do not always decide, over states x truth of every atom."""
        for trigger in self.machine.triggers():
            has_row = trigger.find is not None or trigger.each is not None or trigger.kind == "internal"
            states = [name for name, state in self.machine.states.items() if not state.transient] if has_row else [None]
            if trigger.kind == "entering":
                states = [trigger.name]
            yield from self.table(trigger, states)

    def table(self, trigger: Trigger, states: Sequence[str | None]) -> Iterator[Fault]:
        found: dict[str, Expression] = {}
        for step in trigger.steps:
            found |= {
                expressions.render(atom): atom for atom in _atoms(step.guard) if self.about_state(atom, None) is None
            }
        if len(found) > _MAX_ATOMS:
            yield trigger.pointer, f"{len(found)} different conditions are more than a truth table can hold", "split it"
            return
        atoms = {text: n for n, text in enumerate(found)}
        guards = [self.condition(step.guard, atoms) if step.guard is not None else None for step in trigger.steps]
        judged = list(zip(trigger.steps, guards, strict=True))
        deciding: set[str] = set()
        undecided: set[str | None] = set()
        for state in states:
            for values in product((True, False), repeat=len(found)):
                decider = next((step for step, guard in judged if _decides(step, guard, state, values)), None)
                if decider is None:
                    undecided.add(state)
                else:
                    deciding.add(decider.id)
        yield from (
            (step.pointer, f"`{step.id}` can never decide", "drop it, or move it up")
            for step in trigger.steps
            if step.id not in deciding
        )
        if undecided:
            where = ", ".join(sorted(str(state) for state in undecided))
            yield trigger.pointer, f"no step may decide in state {where}", "end with a step that always decides"

    def condition(self, node: Expression, atoms: Mapping[str, int]) -> _Condition:
        """A guard over the state and the truth of every atom, in the order of ``atoms``."""
        match node:
            case Binary("&&" | "||" as sign, left, right):
                one, two = self.condition(left, atoms), self.condition(right, atoms)
                if sign == "&&":
                    return lambda state, values: one(state, values) and two(state, values)
                return lambda state, values: one(state, values) or two(state, values)
            case Not(operand):
                inner = self.condition(operand, atoms)
                return lambda state, values: not inner(state, values)
        if self.about_state(node, None) is None:
            n = atoms[expressions.render(node)]
            return lambda _, values: values[n]
        told = {state: bool(self.about_state(node, state)) for state in (None, *self.machine.states)}
        return lambda state, _: told[state]

    def about_state(self, node: Expression, state: str | None) -> bool | None:
        """The truth of a test of the state itself; None for any other expression."""
        status = Field(Name(self.machine.row), "status")
        match node:
            case Binary("in", of, ListOf(items)) if of == status:
                return Literal(state) in items
            case Binary("==", of, item) if of == status:
                return Literal(state) == item
            case Binary("!=", of, item) if of == status:
                return Literal(state) != item
            case Literal(bool() as value):
                return value
        return None


_Condition: TypeAlias = "Callable[[str | None, Sequence[bool]], bool]"


def _decides(step: Step, guard: _Condition | None, state: str | None, values: Sequence[bool]) -> bool:
    if step.require is not None:
        return guard is not None and not guard(state, values)
    return (step.sources is None or state in step.sources) and (guard is None or guard(state, values))


def _atoms(node: Expression | None) -> Iterator[Expression]:
    """The conditions of a guard below ``&&``, ``||`` and ``!``."""
    match node:
        case None:
            return
        case Binary("&&" | "||", left, right):
            yield from _atoms(left)
            yield from _atoms(right)
        case Not(operand):
            yield from _atoms(operand)
        case _:
            yield node
