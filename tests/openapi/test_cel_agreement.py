"""The server's closures and an independent CEL evaluator give the same value for every expression of the machines.

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
from openapi.expressions import Binary, Conditional, Expression, Field, Index, ListOf, Literal, Name, Not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi.contract import Contract
    from openapi.machine import Machine, Trigger

ROWS = 40
NOW = 1_700_000_000_000
INSTANTS_AND_COUNTS = (0, 1, 2, 3, NOW - 120_000, NOW - 1, NOW, NOW + 1, NOW + 60_000)
TEXTS = ("x", "y", "quiz_output_v1")
FAILS = "fails"

CONTRACTS = [openapi.load(name) for name in ("runtime-api", "agent-hub")]
NOTHING: dict[str, Any] = {}
FUNCTIONS = {
    "redact": lambda text: None if text is None else f"<{text}>",
    "merge": lambda first, second: (first or NOTHING) | second,
    "differs": lambda first, second: any(
        (first or NOTHING).get(name) != value for name, value in second.items() if name != "updatedAt"
    ),
}


def of_trigger(trigger: Trigger) -> list[tuple[str, Expression]]:
    """The trigger's expressions, with those that find the related rows they name."""
    found: list[tuple[str, Expression]] = []
    if trigger.find is not None:
        found.append((f"{trigger.name}-find", trigger.find.id))
        if trigger.find.where is not None:
            found.append((f"{trigger.name}-where", trigger.find.where))
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


def machine_of(contract: Contract) -> Machine:
    assert contract.machine is not None
    return contract.machine


def of_machine(machine: Machine) -> Iterator[tuple[str, Trigger | None, Expression]]:
    """Each expression once, with its place and its trigger."""
    seen = set()
    for trigger in machine.triggers():
        for place, expression in of_trigger(trigger):
            if isinstance(expression, Literal):
                continue
            if (trigger.name, expression) not in seen:
                seen.add((trigger.name, expression))
                yield place, trigger, expression
    for timer in machine.timers.values():
        yield f"{timer.name}-due", None, timer.instant
    for state in machine.states.values():
        if state.holds is not None:
            yield f"{state.name}-holds", None, state.holds
        yield from ((f"{state.name}-tells-{told.name}", None, told.when) for told in state.events if told.when)
    yield from ((f"{name}-derived", None, expression) for name, expression in machine.derived.items())


def value_of(contract: Contract, schema: Mapping[str, Any], rng: random.Random, *, nullable: bool) -> Any:
    schema = {key: item for part in schema.get("allOf", ()) for key, item in contract.resolve(part).items()} | dict(
        schema
    )
    if "$ref" in schema:
        schema = contract.resolve(schema)
    if (nullable or schema.get("nullable")) and rng.random() < 0.3:
        return None
    if "enum" in schema:
        return rng.choice(schema["enum"])
    return {
        "string": lambda: rng.choice(TEXTS),
        "integer": lambda: rng.choice(INSTANTS_AND_COUNTS),
        "boolean": lambda: rng.random() < 0.5,
    }.get(schema.get("type", ""), dict)()


def row_of(
    contract: Contract, schema: Mapping[str, Any], rng: random.Random, *, optional_null: bool = False
) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        column: value_of(contract, item, rng, nullable=optional_null and column not in required)
        for column, item in schema["properties"].items()
    }


def of_the_node(rng: random.Random) -> dict[str, Any]:
    """What a simulated node hands to the hub's internal triggers."""
    update = {"toolCalls": rng.choice((1, 2)), "lastActivity": rng.choice(TEXTS), "updatedAt": NOW}
    failures = ("done", "llm_error", "node_lost", "timeout")
    report = {"type": rng.choice(failures), "message": rng.choice(TEXTS), "retriable": rng.choice((None, False, True))}
    return {
        "report": {**report, "result": rng.choice((None, {"summary": "x"}))},
        "update": dict(rng.sample(list(update.items()), 2)),
        "round": {"seconds": 1},
        "newSession": rng.choice(TEXTS),
        "nextPlace": NOW + 1,
    }


def inputs_of(contract: Contract, trigger: Trigger | None, rng: random.Random) -> dict[str, Any]:
    machine = machine_of(contract)
    schemas = contract.document["components"]["schemas"]
    related = trigger.related if trigger else machine.related
    inputs: dict[str, Any] = {
        "now": NOW,
        "caller": rng.choice(TEXTS),
        machine.row: row_of(contract, schemas[machine.entity], rng),
        **of_the_node(rng),
    }
    inputs["path"] = inputs["params"] = {"jobId": rng.choice(TEXTS), "userId": rng.choice(TEXTS)}
    for name, item in related.items():
        inputs[name] = row_of(contract, schemas[item.entity], rng) if rng.random() < 0.8 else None
    body = schemas[machine.entity]
    if trigger is not None and trigger.kind == "operation":
        request = contract.operations[trigger.name].document.get("requestBody")
        body = request["content"]["application/json"]["schema"] if request else {"properties": {}}
    inputs["body"] = row_of(contract, contract.resolve(body), rng, optional_null=True)
    return inputs


def by_closures(expression: Expression, inputs: Mapping[str, Any]) -> Any:
    evaluate = compile_expression(expression)
    try:
        return evaluate({**inputs, **FUNCTIONS, "string": str})
    except (TypeError, AttributeError, LookupError):
        return FAILS


def by_cel(program: cel.Program, names: set[str], inputs: Mapping[str, Any]) -> Any:
    variables = {name: value for name, value in inputs.items() if name in names}
    try:
        return program.execute(cel.Context(variables=variables, functions=FUNCTIONS))
    except (TypeError, ValueError, RuntimeError, LookupError, ArithmeticError):
        return FAILS


def names_in(expression: Expression) -> set[str]:
    return {node.name for node in expressions.walk(expression) if isinstance(node, Name)}


def shown(value: Any) -> str:
    """A value with its types, since 1 is not true; objects in the order of their keys."""
    return repr(sorted(value.items())) if isinstance(value, dict) else repr(value)


@pytest.mark.parametrize(
    ("contract", "trigger", "expression"),
    [
        pytest.param(contract, trigger, text, id=f"{contract.name}-{place}")
        for contract in CONTRACTS
        for place, trigger, text in of_machine(machine_of(contract))
    ],
)
def test_closures_and_cel_agree(contract: Contract, trigger: Trigger | None, expression: Expression) -> None:
    rng = random.Random(expressions.render(expression))
    program, names = cel.compile(expressions.render(expression)), names_in(expression)
    values = []
    for _ in range(ROWS):
        inputs = inputs_of(contract, trigger, rng)
        value, other = by_closures(expression, inputs), by_cel(program, names, inputs)
        given = {name: inputs[name] for name in names}
        assert shown(value) == shown(other), f"{expressions.render(expression)} on {given}"
        values.append(value)
    assert any(value != FAILS for value in values), "no row made the expression succeed"


def test_both_see_most_of_the_machines() -> None:
    texts = {place for contract in CONTRACTS for place, _, _ in of_machine(machine_of(contract))}
    assert {
        "lock-guard",
        "heartbeat.held-guard",
        "expired.retried-guard",
        "run-times-out-due",
        "pending-holds",
        "cancelHubJob-where",
        "report.retried-set-nextRetryAt",
        "progress-set-progress",
        "round-limit-due",
        "failed-tells-job.state",
        "durationMs-derived",
    } <= texts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[30, 120, 600][0]", 30),
        ("[30, 120, 600][i - 1]", 120),
        ("[30, 120, 600][2] + 1", 601),
        ("row.items[i - 1].name", "second"),
        ("[[1], [2]][1][0]", 2),
        ("[30, 120, 600][3]", FAILS),
        ("[30, 120, 600][0 - 1]", FAILS),
        ("[30, 120, 600][null]", FAILS),
        ("[30, 120, 600]['0']", FAILS),
        ("[][0]", FAILS),
        ("row.nothing[0]", FAILS),
    ],
)
def test_items_are_counted_from_0_and_one_that_is_not_there_is_an_error(text: str, value: Any) -> None:
    inputs = {"i": 2, "row": {"items": [{"name": "first"}, {"name": "second"}], "nothing": None}}
    expression = expressions.parse(text)
    assert shown(by_closures(expression, inputs)) == shown(value)
    assert shown(by_cel(cel.compile(text), names_in(expression), inputs)) == shown(value)


# Beyond the machine: any well-typed expression of the subset, as text for one and as a tree for the other.

simple = st.one_of(
    st.integers(-1000, 1000).map(Literal), st.sampled_from("ij").map(Name), st.just(Field(Name("row"), "count"))
)
items = st.lists(simple, min_size=1, max_size=3).flatmap(
    lambda found: st.integers(0, len(found) - 1).map(lambda n: Index(ListOf(tuple(found)), Literal(n)))
)
ints = st.one_of(simple, items)
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
