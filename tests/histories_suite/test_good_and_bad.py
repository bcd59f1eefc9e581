"""The checkers on histories made by hand: good ones, bad ones with their evidence, and ones that nobody can tell."""

from __future__ import annotations

import pytest
from history_tape import Tape

from contract_tests.histories.checkers import CHECKERS, Checker, ends
from contract_tests.histories.operations import histories
from contract_tests.histories.verdicts import judge, judge_all

GOOD = {
    "a life without trouble": Tape().lock("a", 0).beat("a", 0.5).result("a", 1.2).seen(2, "succeeded"),
    "locks at once, one wins": Tape()
    .lock("a", 0, ends=0.05)
    .lock("b", 0.001, "locked", ends=0.05)
    .result("a", 0.1)
    .seen(1, "succeeded"),
    "taken again after a lapse": Tape()
    .lock("a", 0)
    .beat("a", 0.9)
    .lock("b", 1.91, attempt=1)
    .beat("a", 1.95, "held")
    .result("b", 2)
    .seen(3, "succeeded", 1),
    "taken again while the failure is on its way": Tape()
    .lock("a", 0)
    .fail("a", 0.1, ends=0.3)
    .lock("b", 0.15, attempt=1)
    .result("b", 0.4)
    .seen(1, "succeeded", 1),
    "a heartbeat and another's lock cross at the end": Tape()
    .lock("a", 0)
    .beat("a", 0.95, "held", ends=1.1)
    .lock("b", 0.96, attempt=1, ends=1.1)
    .result("b", 1.2)
    .seen(2, "succeeded", 1),
    "a result, its copy, and another": Tape()
    .lock("a", 0)
    .result("a", 0.1)
    .result("a", 0.2, 200)
    .result("b", 0.3, 200)
    .result("b", 0.4, "exists", "y")
    .lock("b", 0.5, "locked")
    .seen(1, "succeeded"),
    "revoked while it was held": Tape()
    .lock("a", 0)
    .revoke(0.1)
    .beat("a", 0.2)
    .fail("a", 0.3, status="cancelled", count=0)
    .seen(1, "cancelled"),
    "revoked, and the result crosses": Tape().lock("a", 0).result("a", 0.1, ends=0.3).revoke(0.2).seen(1, "succeeded"),
    "the last retry fails": Tape(retries=1)
    .lock("a", 0)
    .fail("a", 0.1)
    .lock("b", 0.2, attempt=1)
    .fail("b", 0.3, status="failed")
    .lock("a", 0.4, "locked")
    .seen(1, "failed", 1),
    "the run's time limit frees the job": Tape(timeout=2.0)
    .lock("a", 0)
    .beat("a", 0.1)
    .beat("a", 0.9)
    .beat("a", 1.7)
    .lock("b", 2.11, attempt=1)
    .result("b", 2.2)
    .seen(3, "succeeded", 1),
    "no attempt is told": Tape()
    .add("lock", "a", 0, 200)
    .fail("a", 0.1)
    .add("lock", "b", 0.2, 200)
    .result("b", 0.3)
    .seen(1, "succeeded", 1),
}
BAD = {
    "two at once": (
        Tape().lock("a", 0, ends=0.05).lock("b", 0.001, ends=0.05),
        {"ownership": [("lock", "a"), ("lock", "b")], "one-win": [("lock", "a"), ("lock", "b")]},
    ),
    "another's while the lock lasts": (
        Tape().lock("a", 0).beat("a", 0.5).lock("b", 1.1, attempt=1),
        {"ownership": [("lock", "a"), ("heartbeat", "a"), ("lock", "b")]},
    ),
    "its own again": (
        Tape().lock("a", 0).lock("a", 0.5),
        {"ownership": [("lock", "a"), ("lock", "a")], "one-win": [("lock", "a"), ("lock", "a")]},
    ),
    "none of those who ask for a new job": (
        Tape().lock("a", 0, "locked", ends=0.05).lock("b", 0.01, "locked"),
        {"some-win": [("create", ""), ("lock", "a")]},
    ),
    "never free again": (
        Tape().lock("a", 0).lock("b", 1.6, "locked").seen(4, "locked"),
        {"some-win": [("lock", "a"), ("lock", "b")], "ends": [("lock", "a"), ("inspect", "")]},
    ),
    "a stranger's heartbeat": (Tape().lock("a", 0).beat("b", 0.1), {"holders-only": [("heartbeat", "b")]}),
    "a heartbeat after the lapse": (
        Tape().lock("a", 0).beat("a", 1.1),
        {"holders-only": [("lock", "a"), ("heartbeat", "a")]},
    ),
    "a loser's heartbeat": (
        Tape().lock("a", 0).lock("b", 1.1, attempt=1).beat("a", 1.2),
        {"holders-only": [("lock", "a"), ("lock", "b"), ("heartbeat", "a")]},
    ),
    "a heartbeat after the own failure": (
        Tape().lock("a", 0).fail("a", 0.1).beat("a", 0.2),
        {"holders-only": [("lock", "a"), ("fail", "a"), ("heartbeat", "a")]},
    ),
    "the holder is refused": (
        Tape().lock("a", 0).beat("a", 0.5).beat("a", 1.2, "held"),
        {"holders-stay": [("lock", "a"), ("heartbeat", "a"), ("heartbeat", "a")]},
    ),
    "locked after its result": (
        Tape().lock("a", 0).result("a", 0.1).lock("b", 0.2, attempt=1),
        {"finished": [("result", "a"), ("lock", "b")]},
    ),
    "two ends": (
        Tape().lock("a", 0).fail("a", 0.1, status="failed", count=0, ends=0.5).result("a", 0.2, ends=0.4),
        {"finished": [("fail", "a"), ("result", "a")]},
    ),
    "failed, and then seen pending": (
        Tape().lock("a", 0).fail("a", 0.1, status="failed", count=0).seen(1, "pending"),
        {"finished": [("fail", "a"), ("inspect", "")], "ends": [("fail", "a"), ("inspect", "")]},
    ),
    "two results at once": (
        Tape().lock("a", 0).result("a", 0.1, ends=0.5).result("a", 0.2, ends=0.5),
        {"result-stays": [("result", "a"), ("result", "a")]},
    ),
    "another result taken": (
        Tape().lock("a", 0).result("a", 0.1).result("a", 0.2, 200, "y"),
        {"result-stays": [("result", "a"), ("result", "a")]},
    ),
    "a copy refused": (
        Tape().lock("a", 0).result("a", 0.1).result("a", 0.2, "held"),
        {"result-stays": [("result", "a"), ("result", "a")]},
    ),
    "a copy of nothing": (Tape().lock("a", 0).result("a", 0.1, 200), {"result-stays": [("result", "a")]}),
    "stored twice": (
        Tape().lock("a", 0).result("a", 0.1).seen(1, "succeeded", results=2),
        {"result-stays": [("result", "a"), ("inspect", "")]},
    ),
    "a step of two": (
        Tape().lock("a", 0).fail("a", 0.1).lock("b", 0.2, attempt=2),
        {"counters": [("lock", "a"), ("lock", "b")]},
    ),
    "a failure counted twice": (
        Tape().lock("a", 0).fail("a", 0.1, count=2),
        {"counters": [("lock", "a"), ("fail", "a")]},
    ),
    "a failure taken twice": (
        Tape().lock("a", 0).fail("a", 0.1, ends=0.3).fail("a", 0.2, ends=0.3),
        {"counters": [("lock", "a"), ("fail", "a"), ("fail", "a")]},
    ),
    "one run more than allowed": (
        Tape(retries=0).lock("a", 0).lock("b", 1.1, attempt=1),
        {"counters": [("lock", "b")]},
    ),
    "given out after it was revoked": (Tape().revoke(0).lock("a", 0.1), {"stopped": [("revoke", ""), ("lock", "a")]}),
    "stored after it was revoked": (
        Tape().lock("a", 0).revoke(0.1).result("a", 0.2),
        {"stopped": [("revoke", ""), ("result", "a")]},
    ),
}
UNKNOWN = {
    "whose lock was lost heartbeats": (Tape().lock("a", 0, "lost").beat("a", 0.1), {"holders-only"}),
    "whose failure was lost": (
        Tape().lock("a", 0).fail("a", 0.1, "lost").lock("b", 0.2, attempt=1),
        {"ownership"},
    ),
    "a refusal that a lost lock explains": (Tape().lock("a", 0, "lost").lock("b", 0.1, "locked"), {"some-win"}),
    "an attempt that a lost lock explains": (
        Tape().lock("a", 0, "lost").lock("b", 1.1, attempt=1),
        {"counters"},
    ),
    "a copy of a result that was lost": (
        Tape().lock("a", 0).result("a", 0.1, "lost").result("a", 0.2, 200).seen(1, "succeeded"),
        {"result-stays"},
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_histories_are_valid(name):
    assert GOOD[name].words() == {}


@pytest.mark.parametrize("name", BAD)
def test_bad_histories_are_invalid_by_the_fewest_operations(name):
    tape, expected = BAD[name]
    words = tape.words()
    assert {checker: tape.evidence(checker) for checker in expected} == expected
    assert {words[checker] for checker in expected} == {"invalid"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_lost_answers_that_leave_both_readings_open_are_unknown(name):
    tape, expected = UNKNOWN[name]
    words = {checker: word for checker, word in tape.words().items() if checker != "ends"}
    assert words == dict.fromkeys(expected, "unknown")


def test_a_lost_answer_is_no_excuse_for_what_it_does_not_explain():
    tape = Tape().lock("a", 0, "lost").lock("b", 0.1).beat("a", 0.2)
    assert tape.words()["holders-only"] == "invalid"
    assert tape.evidence("holders-only") == [("lock", "a"), ("lock", "b"), ("heartbeat", "a")]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_an_answer_of_5xx_or_of_who_stands_between_is_lost(status):
    assert Tape().lock("a", 0, status).beat("a", 0.1).words()["holders-only"] == "unknown"
    assert "invalid" not in Tape().lock("a", 0, status).words().values()


def test_an_end_that_nobody_saw_is_unknown():
    assert judge(ends, Tape().lock("a", 0).history).word == "unknown"


def test_what_was_seen_before_the_last_that_was_done_does_not_tell_how_it_ended():
    tape = Tape().lock("a", 0).seen(0.1, "locked").beat("a", 0.5)
    assert judge(ends, tape.history).word == "unknown"
    assert judge(ends, tape.seen(3, "running").history).word == "invalid"


def test_a_checker_that_breaks_down_is_unknown_and_never_valid():
    def broken(history):
        raise KeyError(history.job)

    checker = Checker("broken", "breaks down", (), broken)
    [invariant] = judge_all([Tape().history], [checker])
    assert invariant.word == "unknown"
    assert "KeyError" in invariant.broken_down[0][1].text


def test_a_rule_of_which_no_job_tells_is_unknown():
    invariants = judge_all([Tape().lock("a", 0).history])
    assert {invariant.checker.name for invariant in invariants if invariant.word == "unknown"} == {"ends"}
    assert {invariant.word for invariant in judge_all([])} == {"unknown"}


def test_one_bad_job_of_many_makes_the_rule_invalid():
    good, (bad, _) = GOOD["a life without trouble"], BAD["two at once"]
    invariants = {invariant.checker.name: invariant for invariant in judge_all([good.history, bad.history])}
    assert invariants["ownership"].word == "invalid"
    assert invariants["ownership"].counts == {"valid": 1, "unknown": 0, "invalid": 1}
    assert len(invariants) == len(CHECKERS)


def test_operations_are_told_apart_by_job_and_ordered_by_when_they_were_sent():
    tape = Tape().lock("b", 0.5).lock("a", 0.1)
    [history] = histories(tape.operations, tape.history.limits, {"job-1": {"retries": 2}})
    assert [item.process for item in history.operations] == ["", "a", "b"]
    assert history.retries == 2


def test_evidence_tells_times_sender_and_answer():
    shown = [item.shown() for item in Tape().lock("a", 0).fail("a", 0.1, "held").beat("a", 0.2, "lost").operations]
    assert shown[1] == "   0.0000    0.0020  a            lock -> 200 attemptNo=0"
    assert shown[2].endswith("fail retryable=True -> 409 LOCK_NOT_HELD")
    assert shown[3].endswith("heartbeat -> no answer")
