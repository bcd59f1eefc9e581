"""The harness's stepper and the server's executor read the same text alike: triggers and timers, on random rows."""

from __future__ import annotations

import random

import pytest
from test_cel_agreement import CONTRACTS, FAILS, FUNCTIONS, NOW, inputs_of, machine_of

from contract_tests.model.language import NoValue
from contract_tests.model.stepper import Stepper, Undecided
from mock_server.executor import Executor

ROWS = 150
GROUPS = {"operation": "operations", "action": "actions", "internal": "internal"}
STEPPERS = {contract.name: Stepper(contract.document["x-state-machine"], {}, FUNCTIONS) for contract in CONTRACTS}
EXECUTORS = {contract.name: Executor(machine_of(contract)) for contract in CONTRACTS}
TRIGGERS = [
    pytest.param(contract, trigger, id=f"{contract.name}-{trigger.name}")
    for contract in CONTRACTS
    for trigger in machine_of(contract).triggers()
    if trigger.kind in GROUPS
]


def executed(contract, trigger, inputs):
    try:
        outcome = EXECUTORS[contract.name].judge(trigger, {**inputs, **FUNCTIONS, "string": str})
    except (TypeError, AttributeError, LookupError, RuntimeError):
        return FAILS
    return outcome.step, outcome.answer, outcome.changed, outcome.row, outcome.headers, outcome.created


def stepped(contract, trigger, inputs):
    row = inputs[machine_of(contract).row]
    try:
        taken = STEPPERS[contract.name].judge(GROUPS[trigger.kind], trigger.name, inputs)
    except (NoValue, Undecided):
        return FAILS
    shown = inputs[taken.show] if taken.show else taken.row
    headers = {name: value for name, value in taken.headers.items() if value is not None}
    assert taken.row is not row or not taken.changed  # a new row is a copy
    return taken.step, taken.answer, taken.changed, shown, headers, taken.created


@pytest.mark.parametrize(("contract", "trigger"), TRIGGERS)
def test_triggers(contract, trigger):
    rng = random.Random(trigger.name)
    steps = set()
    for _ in range(ROWS):
        inputs = inputs_of(contract, trigger, rng)
        one, other = executed(contract, trigger, inputs), stepped(contract, trigger, inputs)
        assert one == other, inputs
        steps.add(one[0])
    assert steps - {FAILS[0]}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_time(contract):
    rng = random.Random(contract.name)
    stepper, executor, name = STEPPERS[contract.name], EXECUTORS[contract.name], machine_of(contract).row
    fired = 0
    for _ in range(ROWS * 4):
        row = inputs_of(contract, None, rng)[name]
        if row["status"] in machine_of(contract).entering or row.get("attempt", 1) not in (1, 2, 3):
            continue
        later = NOW + rng.choice((0, 1, 30_000, 60_001, 10**9))
        one, count = row, 0
        while (due := executor.due(one, "id")) is not None and due.instant <= later and count < 10:
            one, count = executor.fire(due, one, {**FUNCTIONS, "string": str}).row, count + 1
        if count == 10:
            continue
        taken = stepper.passes(row, later)
        assert len(taken) == count
        assert (taken[-1].row if taken else row) == one
        fired += count
    assert fired > 50


def test_what_no_value_has_and_what_decides_nothing_are_told():
    stepper = STEPPERS["runtime-api"]
    with pytest.raises(NoValue, match="no there"):
        stepper.value("there + 1")({})
    with pytest.raises(NoValue, match="null"):
        stepper.value("job.lockUntil + 1")({"job": {"lockUntil": None}})
    text = {
        "entity": "Job",
        "initial": "a",
        "states": {"a": {}},
        "operations": {"go": {"steps": [{"id": "x", "from": ["b"]}]}},
    }
    with pytest.raises(Undecided, match="go decides in state a"):
        Stepper(text, {}, {}).judge("operations", "go", {"job": {"status": "a"}, "now": 1})


def test_definitions_stand_in_parentheses_and_strings_are_left_alone():
    text = {"entity": "Job", "initial": "a", "states": {"a": {}}, "define": {"either": "x || y", "both": "either && z"}}
    stepper = Stepper(text, {}, {})
    assert stepper.value("both == 'either' || job.either").text == "((x || y) && z) == 'either' || job.either"


def test_a_text_that_loops_is_told():
    timer = {"from": ["a"], "at": "job.at", "to": "a"}
    stepper = Stepper({"entity": "Job", "initial": "a", "states": {"a": {}}, "timers": {"again": timer}}, {}, {})
    with pytest.raises(Undecided, match="for ever"):
        stepper.passes({"status": "a", "at": 1}, 2)
