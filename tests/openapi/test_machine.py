"""The values that the text of a machine becomes: what stands in their columns, and which text is refused."""

from __future__ import annotations

from typing import Any

import pytest

from openapi import expressions
from openapi.machine import Machine, MachineError, Told
from openapi.machine_text import build

PARSED = expressions.parse
TEXT: dict[str, Any] = {
    "entity": "LongJob",
    "initial": "open",
    "states": {
        "open": {"events": [{"when": "late", "name": "job.late"}, {"name": "job.state"}], "requirements": ["X-A-01"]},
        "closed": {},
    },
    "constants": {
        "short": {"seconds": 10},
        "long": {"minutes": 25},
        "day": {"hours": 24},
        "waits": {"seconds": [30, 120, 600]},
        "size": {"value": 80},
    },
    "inputs": {"now": "the clock", "path": "path parameters"},
    "define": {"late": "longJob.at > long"},
    "derived": {"age": "longJob.at - 1"},
    "operations": {
        "close": {
            "find": {"id": "path.id", "where": "longJob.at != null", "else": "not_found"},
            "steps": [{"id": "close", "from": ["open"], "to": "closed", "answer": 200, "requirements": ["X-A-02"]}],
        }
    },
    "internal": {
        "tick": {
            "steps": [{"id": "tick", "set": [{"at": "waits[0]"}], "event": "job.tick", "requirements": ["X-A-03"]}]
        }
    },
    "timers": {
        "closes": {"from": ["open"], "at": "longJob.at + day", "to": "closed"},
        "ticks": {
            "from": ["open"],
            "after": "longJob.at",
            "fires": "tick",
            "with": {"update": {"n": 1}},
            "requirements": ["X-A-04"],
        },
    },
}


@pytest.fixture(scope="module")
def machine() -> Machine:
    return build(TEXT)


def test_durations_are_milliseconds_whatever_their_unit(machine: Machine) -> None:
    values = {name: constant.value for name, constant in machine.constants.items()}
    assert values == {
        "short": 10_000,
        "long": 1_500_000,
        "day": 86_400_000,
        "waits": [30_000, 120_000, 600_000],
        "size": 80,
    }


def test_the_row_is_called_after_the_entity_or_as_the_text_says(machine: Machine) -> None:
    assert machine.row == "longJob"
    assert build({**TEXT, "row": "job"}).row == "job"
    assert machine.inputs == ("now", "path")


def test_a_state_tells_events_in_order(machine: Machine) -> None:
    assert machine.states["open"].events == (
        Told("job.late", PARSED("longJob.at > 1500000")),
        Told("job.state", None),
    )
    assert machine.states["closed"].events == ()


def test_a_step_tells_an_event(machine: Machine) -> None:
    (step,) = machine.internal["tick"].steps
    assert (step.event, step.to, step.answer) == ("job.tick", None, None)
    assert step.set == {"at": PARSED("[30000, 120000, 600000][0]")}
    assert machine.operations["close"].steps[0].event is None


def test_a_row_that_is_found_has_to_fulfil_where(machine: Machine) -> None:
    find = machine.operations["close"].find
    assert find is not None
    assert (find.id, find.where, find.otherwise) == (PARSED("path.id"), PARSED("longJob.at != null"), "not_found")


def test_derived_values(machine: Machine) -> None:
    assert machine.derived == {"age": PARSED("longJob.at - 1")}


def test_a_timer_moves_the_row_or_fires_a_trigger(machine: Machine) -> None:
    closes, ticks = machine.timers["closes"], machine.timers["ticks"]
    assert (closes.to, closes.fires, closes.given) == ("closed", None, {})
    assert (ticks.to, ticks.fires, ticks.given) == (None, "tick", {"update": {"n": 1}})
    assert (closes.instant, closes.strictly_after) == (PARSED("longJob.at + 86400000"), False)
    assert ticks.strictly_after


def test_internal_triggers_are_triggers_like_others(machine: Machine) -> None:
    assert [(trigger.kind, trigger.name) for trigger in machine.triggers()] == [
        ("operation", "close"),
        ("internal", "tick"),
    ]
    stated = {pointer: ids for pointer, ids in machine.places() if ids}
    assert stated == {
        "/operations/close/steps/0": ("X-A-02",),
        "/internal/tick/steps/0": ("X-A-03",),
        "/timers/ticks": ("X-A-04",),
        "/states/open": ("X-A-01",),
    }


@pytest.mark.parametrize(
    ("key", "value", "pointer"),
    [
        pytest.param("derived", {"age": "longJob.at -"}, "/derived/age", id="derived-value"),
        pytest.param(
            "states", {"open": {"events": [{"name": "a", "when": "&&"}]}}, "/states/open/events/0/when", id="event"
        ),
        pytest.param("constants", {"waits": {"seconds": []}}, "/constants/waits/seconds", id="no-durations"),
        pytest.param("constants", {"wait": {"hours": 1.5}}, "/constants/wait/hours", id="half-an-hour"),
        pytest.param(
            "timers",
            {"ticks": {"from": ["open"], "at": "now", "to": "open", "with": {"a": 1}}},
            "/timers/ticks",
            id="with",
        ),
        pytest.param(
            "timers",
            {"ticks": {"from": ["open"], "at": "now", "fires": "tick", "set": [{"at": 1}]}},
            "/timers/ticks/set",
            id="fires-and-sets",
        ),
        pytest.param(
            "internal",
            {"tick": {"steps": [{"id": "tick", "require": "a", "else": "b", "requirements": ["X-A-03"]}]}},
            "/internal/tick/steps/0/require",
            id="refusal-of-an-internal-trigger",
        ),
        pytest.param(
            "internal", {"tick": {"find": {"id": "path.id", "else": "b"}, "steps": []}}, "/internal/tick", id="find"
        ),
    ],
)
def test_a_text_that_is_refused_names_its_place(key: str, value: dict[str, Any], pointer: str) -> None:
    with pytest.raises(MachineError) as raised:
        build({**TEXT, key: value})
    assert pointer in [at for at, _, _ in raised.value.faults]
