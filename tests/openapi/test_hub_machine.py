"""The hub's machine as it stands: no step, wherever it is taken, breaks the invariant of the state that it leads to.

The steps are judged here, not by the server: what is looked at is the specification.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

import openapi
from mock_server.executor import compile_expression
from openapi.expressions import Binary, Expression, Field, Literal, Name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi.machine import Step, Trigger

CONTRACT = openapi.load("agent-hub")
assert CONTRACT.machine is not None
MACHINE = CONTRACT.machine
COLUMNS = CONTRACT.document["components"]["schemas"]["HubJob"]["properties"]
NULLABLE = [name for name, column in COLUMNS.items() if column.get("nullable")]
NOW = 1_700_000_000_000
ROWS = 60
REPORTS = [
    {"type": type_, "message": "m", "retriable": retriable, "result": {"summary": "s"} if type_ == "done" else None}
    for type_ in ("done", "node_lost", "llm_error", "timeout")
    for retriable in (None, False, True)
]
FUNCTIONS = {
    "merge": lambda first, second: (first or {}) | second,
    "differs": lambda first, second: any((first or {}).get(name) != value for name, value in second.items()),
}
#: What a round at a node needs: a job that was cancelled, or retried by hand, keeps it until the round ends.
OF_THE_ROUND = {"roundStartedAt", "silentSince", "round"}


def conjuncts(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Binary) and expression.operator == "&&":
        yield from conjuncts(expression.left)
        yield from conjuncts(expression.right)
    else:
        yield expression


def value_of(column: str) -> Any:
    if column in ("progress", "result", "round"):
        return {"toolCalls": 1}
    return {"integer": NOW - 1000}.get(COLUMNS[column].get("type", ""), "x")


def row_in(state: str, rng: random.Random) -> dict[str, Any]:
    """A row of which the state's invariant is true; the rest of its columns is null or not, as it comes."""
    row = {column: value_of(column) for column in COLUMNS}
    row |= {column: None for column in NULLABLE if rng.random() < 0.5}
    holds = MACHINE.states[state].holds
    assert holds is not None
    for test in conjuncts(holds):
        assert isinstance(test, Binary)
        assert isinstance(test.left, Field)
        assert isinstance(test.right, Literal)
        if test.operator == "==":
            row[test.left.name] = test.right.value
        elif row[test.left.name] is None:
            row[test.left.name] = value_of(test.left.name)
    return row | {"status": state, "attempt": rng.randint(1, 4), "maxAttempts": 4, "account": "a"}


def holds(row: dict[str, Any]) -> bool:
    expression = MACHINE.states[row["status"]].holds
    assert expression is not None
    return bool(compile_expression(expression)({"job": row}))


def judged(trigger: Trigger, inputs: dict[str, Any]) -> tuple[Step, dict[str, Any]]:
    """The step that decides, and the row after it."""
    row = inputs["job"]
    for step in trigger.steps:
        if step.sources is not None and row["status"] not in step.sources:
            continue
        if step.when is None or compile_expression(step.when)(inputs):
            new = {column: compile_expression(value)(inputs) for column, value in step.set.items()}
            return step, {**row, **new, "status": step.to or row["status"]}
    raise AssertionError(f"no step of {trigger.name} decides")


def inputs_of(row: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    update = {"toolCalls": 2, "updatedAt": NOW}
    given = {"report": report, "update": update, "round": {}, "newSession": "s", "nextPlace": NOW}
    return {"job": row, "now": NOW, "caller": "a", "path": {"jobId": row["id"]}, **given, **FUNCTIONS}


@pytest.mark.parametrize("state", [*MACHINE.states])
def test_rows_of_this_test_are_as_their_state_says(state: str) -> None:
    rng = random.Random(state)
    assert all(holds(row_in(state, rng)) for _ in range(ROWS))


@pytest.mark.parametrize("state", [*MACHINE.states])
@pytest.mark.parametrize("trigger", [*MACHINE.triggers()], ids=lambda trigger: trigger.name)
def test_no_step_breaks_the_invariant_of_its_state(trigger: Trigger, state: str) -> None:
    rng = random.Random(f"{trigger.name} {state}")
    for _ in range(ROWS):
        for report in REPORTS:
            before = row_in(state, rng)
            step, after = judged(trigger, inputs_of(before, report))
            assert holds(after), f"{step.id} makes of {before} {after}"


@pytest.mark.parametrize("state", [*MACHINE.states])
def test_no_timer_breaks_the_invariant_of_its_state(state: str) -> None:
    rng = random.Random(state)
    for timer in MACHINE.timers.values():
        if state not in timer.sources:
            continue
        for _ in range(ROWS):
            before = row_in(state, rng)
            if compile_expression(timer.instant)({"job": before}) is None:
                continue
            if timer.fires is None:
                new = {
                    column: compile_expression(value)({"job": before, "now": NOW})
                    for column, value in timer.set.items()
                }
                after = {**before, **new, "status": timer.to}
            else:
                report = {"retriable": None, "result": None, **timer.given["report"]}
                after = judged(MACHINE.internal[timer.fires], inputs_of(before, report))[1]
            assert holds(after), f"{timer.name} makes of {before} {after}"
            armed = compile_expression(timer.instant)({"job": after}) if after["status"] in timer.sources else None
            assert armed is None, f"{timer.name} would fire again and again"


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_is_retried_by_hand_is_like_a_new_one(state: str) -> None:
    rng = random.Random(state)
    submitted = {"externalId", "prompt", "command", "timeoutSeconds", "mode", "metadata", "callbackUrl"}
    kept = submitted | OF_THE_ROUND
    for _ in range(ROWS):
        before = row_in(state, rng)
        step, after = judged(MACHINE.operations["retryHubJob"], inputs_of(before, REPORTS[0]))
        assert step.id == "retry"
        assert {name: after[name] for name in NULLABLE if name not in kept} == dict.fromkeys(set(NULLABLE) - kept)
        assert (after["attempt"], after["status"]) == (COLUMNS["attempt"]["default"], MACHINE.initial)
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_only_the_end_of_a_round_frees_the_project() -> None:
    steps = [step for trigger in MACHINE.triggers() for step in trigger.steps]
    ends = {step.id for step in steps if step.set.get("roundStartedAt") == Literal(None)}
    assert ends == {"report.done", "report.retried", "report.final", "report.dropped"}
    begins = {step.id for step in steps if step.set.get("roundStartedAt") == Name("now")}
    assert begins == {"take"}
