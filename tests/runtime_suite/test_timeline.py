"""The timeline of a failure reads without our source."""

from __future__ import annotations

from contract_tests.runtime.monitors import broken
from contract_tests.runtime.timeline import MOST, timeline
from tests.runtime_suite.tape import Tape


def _shown(tape: Tape, number: int) -> list[str]:
    history = tape.history
    return timeline(history, broken(history.calls[number], "something else", "this"))


def test_what_was_sent_answered_and_held_is_told_line_by_line() -> None:
    tape = Tape().poll("job-1").lock("job-1").heartbeat("job-1").fail("job-1", "MODEL_TIMEOUT", retryable=True)
    tape.heartbeat("job-1", 409).event("signal", signal="TERM").event("exited", status=0)
    assert _shown(tape, -1) == [
        " seconds  lock   what the Runtime did -> what the mock answered",
        "   0.000         -- the Runtime is started",
        "   1.300         poll, limit 5 -> 200: job-1",
        "   1.600  taken  lock job-1 -> 200",
        "   1.900  held   heartbeat job-1 -> 204",
        "   2.200  held   fail job-1 MODEL_TIMEOUT retryable=true -> 200",
        "   2.500  over   heartbeat job-1 -> 409 LOCK_NOT_HELD  <== here",
        "   2.800         -- SIGTERM is sent to the Runtime",
        "   3.100         -- the Runtime's process ended with status 0",
    ]


def test_a_lock_that_lapsed_is_told() -> None:
    tape = Tape(lock=3).lock("job-1").heartbeat("job-1", lost=True).result("job-1", 409, "LOCK_NOT_HELD", at=9.0)
    held, lapsed = _shown(tape, -1)[-2:]
    assert "held   heartbeat job-1 -> 204, which never arrived" in held
    assert "lapsed  result job-1" in lapsed


def test_what_other_runtimes_did_stands_there_too() -> None:
    tape = Tape().lock("job-1", by="rival-1").lock("job-1", 409)
    tape.runtime["others"] = ["rival-1"]
    assert any("another Runtime: lock job-1 -> 200" in line for line in _shown(tape, 0))


def test_many_alike_are_one_line() -> None:
    tape = Tape()
    for _ in range(9):
        tape.poll()
    lines = _shown(tape.poll("job-1", status=500), -1)
    assert "poll, limit 5 -> 200: no job (9 times, the last at 3.700)" in lines[2]


def test_a_long_one_is_cut_around_what_it_is_about() -> None:
    tape = Tape().lock("job-1")
    for number in range(200):
        tape.fail("job-1", f"CODE_{number}", retryable=True, status=500)
    lines = _shown(tape, 100)
    assert sum("<== here" in line for line in lines) == 1
    assert len(lines) <= MOST + 3
    assert "earlier lines" in lines[1]
    assert "later lines" in lines[-1]
