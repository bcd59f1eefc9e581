"""The three clocks of a world, on a fake system time: nothing here waits."""

from __future__ import annotations

import time

import pytest

from mock_server.clock import ManualClock, RealClock, ScaledClock, make_clock

START = 1_700_000_000_000


class System:
    """The machine's own time; ``real`` and monotonic time pass together, a set-back concerns the real time alone."""

    def __init__(self) -> None:
        self.real, self.monotonic = START * 1_000_000, 5_000_000_000

    def passes(self, milliseconds: float) -> None:
        self.real += int(milliseconds * 1_000_000)
        self.monotonic += int(milliseconds * 1_000_000)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System()
    monkeypatch.setattr(time, "time_ns", lambda: system.real)
    monkeypatch.setattr(time, "monotonic_ns", lambda: system.monotonic)
    return system


def test_real_clock_is_real_time_in_whole_milliseconds(system: System) -> None:
    clock = RealClock()
    assert clock.now() == START
    system.passes(1.9)
    assert clock.now() == START + 1


def test_real_clock_flows_on_from_where_it_was_advanced_to(system: System) -> None:
    clock = RealClock()
    assert clock.advance(60_000) == START + 60_000
    system.passes(5)
    assert clock.advance(1_000) == clock.now() == START + 61_005
    clock.reset()
    assert clock.now() == START + 5


def test_manual_clock_stands_until_it_is_advanced(system: System) -> None:
    clock = ManualClock()
    system.passes(3_600_000)
    assert clock.now() == START
    assert clock.advance(1) == START + 1
    system.passes(1)
    assert clock.now() == START + 1


def test_manual_clock_is_reset_to_the_present(system: System) -> None:
    clock = ManualClock()
    clock.advance(86_400_000)
    system.passes(250)
    clock.reset()
    assert clock.now() == START + 250


@pytest.mark.parametrize(
    ("rate", "passed", "expected"), [(60, 1_000, 60_000), (60, 0.1, 6), (0.5, 1_000, 500), (1.5, 10, 15)]
)
def test_scaled_clock_flows_at_its_rate(system: System, rate: float, passed: float, expected: int) -> None:
    clock = ScaledClock(rate)
    assert clock.now() == START
    system.passes(passed)
    assert clock.now() == START + expected


def test_scaled_clock_is_advanced_by_its_own_milliseconds(system: System) -> None:
    clock = ScaledClock(60)
    system.passes(1_000)
    assert clock.advance(500) == START + 60_500
    system.passes(1_000)
    assert clock.now() == START + 120_500
    clock.reset()
    assert clock.now() == START + 2_000


def test_scaled_clock_never_goes_back_when_the_system_time_does(system: System) -> None:
    clock = ScaledClock(2)
    system.real -= 3_600_000_000_000
    system.monotonic += 1_000_000
    assert clock.now() == START + 2


@pytest.mark.parametrize(
    ("kind", "class_"), [("real", RealClock), ("manual", ManualClock), ("x60", ScaledClock), ("x0.5", ScaledClock)]
)
def test_make_clock(kind: str, class_: type) -> None:
    clock = make_clock(kind)
    assert type(clock) is class_
    assert clock.kind == kind


@pytest.mark.parametrize("kind", ["x1000000", "x1234567.5"])
def test_a_clock_is_named_as_it_was_asked_for(kind: str) -> None:
    assert make_clock(make_clock(kind).kind).kind == make_clock(kind).kind == kind


@pytest.mark.parametrize(
    "kind", ["", "Real", "x", "x0", "x-1", "60", "x1e3", "x60 ", pytest.param("x" + "9" * 400, id="no-finite-rate")]
)
def test_make_clock_refuses_and_says_what_there_is(kind: str) -> None:
    with pytest.raises(ValueError, match="is no clock: use `real`, `manual`, or a rate such as `x60`"):
        make_clock(kind)


@pytest.mark.parametrize(("kind", "flows"), [("real", 2_000), ("manual", 0), ("x60", 120_000)])
@pytest.mark.parametrize("instant", [0, START - 86_400_000, START + 86_400_000])
def test_a_clock_that_is_set_goes_on_from_there_in_its_own_way(
    system: System, kind: str, flows: int, instant: int
) -> None:
    clock = make_clock(kind)
    system.passes(1_000)
    clock.advance(500)
    clock.set(instant)
    assert clock.now() == instant
    system.passes(2_000)
    assert clock.now() == instant + flows
    clock.reset()
    assert clock.now() == START + 3_000
