"""The server's closures and an independent CEL evaluator give the same value for every expression of the machine.

Two evaluators that agree on random rows make a slip in either improbable. Rows are typed by ``components.schemas``, so
that only those errors come up that a row of the contract could cause; there both have to fail.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openapi
from mock_server.executor import compile_expression
from openapi import expressions
from openapi.expressions import Binary, Conditional, Expression, Field, ListOf, Literal, Name, Not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.machine import Trigger

ROWS = 40
NOW = 1_700_000_000_000
INSTANTS_AND_COUNTS = (0, 1, 2, 3, NOW - 120_000, NOW - 1, NOW, NOW + 1, NOW + 60_000)
TEXTS = ("x", "y", "quiz_output_v1")
FAILS = "fails"

CONTRACT = openapi.load("runtime-api")
MACHINE = CONTRACT.machine
assert MACHINE is not None
FUNCTIONS = {"redact": lambda text: None if text is None else f"<{text}>"}


def of_trigger(trigger: Trigger) -> list[tuple[str, Expression]]:
    """The trigger's expressions, with those that find the related rows they name."""
    found: list[tuple[str, Expression]] = []
    if trigger.find is not None:
        found.append((f"{trigger.name}-find", trigger.find.id))
    if trigger.each is not None:
        found.append((f"{trigger.name}-each", trigger.each))
    for step in trigger.steps:
        if step.guard is not None:
            found.append((f"{step.id}-guard", step.guard))
        found += [(f"{step.id}-set-{column}", value) for column, value in step.set.items()]
        found += [(f"{step.id}-header-{header}", value) for header, value in step.headers.items()]
        for creation in step.create:
            found += [(f"{step.id}-create-{column}", value) for column, value in creation.values.items()]
    named = {name for _, expression in found for name in names_in(expression)}
    for name in sorted(named & set(trigger.related)):
        where = trigger.related[name].where
        found += [(f"{trigger.name}-{name}.{column}", value) for column, value in where.items()]
    return found


def of_machine() -> Iterator[tuple[str, Trigger | None, Expression]]:
    """Each expression once, with its place and its trigger."""
    assert MACHINE is not None
    seen = set()
    for trigger in MACHINE.triggers():
        for place, expression in of_trigger(trigger):
            if isinstance(expression, Literal):
                continue
            if (trigger.name, expression) not in seen:
                seen.add((trigger.name, expression))
                yield place, trigger, expression
    for timer in MACHINE.timers.values():
        yield f"{timer.name}-due", None, timer.instant
    for state in MACHINE.states.values():
        if state.holds is not None:
            yield f"{state.name}-holds", None, state.holds


def value_of(schema: Mapping[str, Any], rng: random.Random, *, nullable: bool) -> Any:
    schema = {key: item for part in schema.get("allOf", ()) for key, item in CONTRACT.resolve(part).items()} | dict(
        schema
    )
    if "$ref" in schema:
        schema = CONTRACT.resolve(schema)
    if (nullable or schema.get("nullable")) and rng.random() < 0.3:
        return None
    if "enum" in schema:
        return rng.choice(schema["enum"])
    return {
        "string": lambda: rng.choice(TEXTS),
        "integer": lambda: rng.choice(INSTANTS_AND_COUNTS),
        "boolean": lambda: rng.random() < 0.5,
    }.get(schema.get("type", ""), dict)()


def row_of(schema: Mapping[str, Any], rng: random.Random, *, optional_null: bool = False) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        column: value_of(item, rng, nullable=optional_null and column not in required)
        for column, item in schema["properties"].items()
    }


def inputs_of(trigger: Trigger | None, rng: random.Random) -> dict[str, Any]:
    assert MACHINE is not None
    schemas = CONTRACT.document["components"]["schemas"]
    related = trigger.related if trigger else MACHINE.related
    inputs: dict[str, Any] = {
        "now": NOW,
        "caller": rng.choice(TEXTS),
        MACHINE.row: row_of(schemas[MACHINE.entity], rng),
    }
    inputs["path"] = inputs["params"] = {"jobId": rng.choice(TEXTS), "userId": rng.choice(TEXTS)}
    for name, item in related.items():
        inputs[name] = row_of(schemas[item.entity], rng) if rng.random() < 0.8 else None
    body = schemas[MACHINE.entity]
    if trigger is not None and trigger.kind == "operation":
        request = CONTRACT.operations[trigger.name].document.get("requestBody")
        body = request["content"]["application/json"]["schema"] if request else {"properties": {}}
    inputs["body"] = row_of(CONTRACT.resolve(body), rng, optional_null=True)
    return inputs


def by_closures(expression: Expression, inputs: Mapping[str, Any]) -> Any:
    evaluate = compile_expression(expression)
    try:
        return evaluate({**inputs, **FUNCTIONS, "string": str})
    except (TypeError, AttributeError):
        return FAILS


def by_cel(program: cel.Program, names: set[str], inputs: Mapping[str, Any]) -> Any:
    variables = {name: value for name, value in inputs.items() if name in names}
    try:
        return program.execute(cel.Context(variables=variables, functions=FUNCTIONS))
    except (TypeError, ValueError, RuntimeError, LookupError, ArithmeticError):
        return FAILS


def names_in(expression: Expression) -> set[str]:
    return {node.name for node in expressions.walk(expression) if isinstance(node, Name)}


@pytest.mark.parametrize(
    ("trigger", "expression"), [pytest.param(trigger, text, id=place) for place, trigger, text in of_machine()]
)
def test_closures_and_cel_agree(trigger: Trigger | None, expression: Expression) -> None:
    rng = random.Random(expressions.render(expression))
    program, names = cel.compile(expressions.render(expression)), names_in(expression)
    values = []
    for _ in range(ROWS):
        inputs = inputs_of(trigger, rng)
        value, other = by_closures(expression, inputs), by_cel(program, names, inputs)
        shown = {name: inputs[name] for name in names}
        assert repr(value) == repr(other), f"{expressions.render(expression)} on {shown}"
        values.append(value)
    assert any(value != FAILS for value in values), "no row made the expression succeed"


def test_both_see_most_of_the_machine() -> None:
    texts = {place for place, _, _ in of_machine()}
    assert {
        "lock-guard",
        "heartbeat.held-guard",
        "expired.retried-guard",
        "run-times-out-due",
        "pending-holds",
    } <= texts


# Beyond the machine: any well-typed expression of the subset, as text for one and as a tree for the other.

ints = st.one_of(
    st.integers(-1000, 1000).map(Literal), st.sampled_from("ij").map(Name), st.just(Field(Name("row"), "count"))
)
texts = st.one_of(
    st.text(alphabet="ab'\"\\\n\t中", max_size=3).map(Literal), st.just(Name("s")), st.just(Field(Name("row"), "text"))
)


def compounds(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    numbers = st.one_of(ints, st.builds(Binary, st.sampled_from(["+", "-", "*"]), ints, ints))
    comparison = st.builds(Binary, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers, numbers)
    member = st.builds(
        Binary, st.just("in"), texts, st.lists(texts, max_size=3).map(lambda items: ListOf(tuple(items)))
    )
    joined = st.builds(Binary, st.just("=="), st.builds(Binary, st.just("+"), texts, texts), texts)
    return st.one_of(
        comparison,
        member,
        joined,
        st.builds(Not, inner),
        st.builds(Binary, st.sampled_from(["&&", "||", "==", "!="]), inner, inner),
        st.builds(Conditional, inner, inner, inner),
    )


conditions = st.recursive(st.booleans().map(Literal), compounds, max_leaves=10)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(conditions, st.integers(-1000, 1000), st.integers(-1000, 1000), st.sampled_from(["", "a", "b'"]))
def test_closures_and_cel_agree_on_any_condition(expression: Expression, i: int, j: int, s: str) -> None:
    inputs = {"i": i, "j": j, "s": s, "row": {"count": j, "text": s}}
    program = cel.compile(expressions.render(expression))
    assert by_closures(expression, inputs) is by_cel(program, names_in(expression), inputs)
