"""Monitors of heartbeats."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime_suite.tape import BASE, Tape

AREAS = ("locking", "heartbeats", "cancelling", "requests", "errors")
RULES = ("RT-HB-10", "RT-HB-60", "RT-HB-61", "RT-HB-62", "RT-HB-63", "RT-HB-64")
LONG = 200.0


def working(*beats: float | tuple[float, dict[str, Any]], until: float = LONG, **lock: Any) -> Tape:
    """Locked at 2 s; heartbeats at these instants; a model call up to ``until``, then the result."""
    tape = Tape().poll("job-1", at=1.0).lock("job-1", at=2.0, grant={"timeoutSeconds": 600, **lock})
    tape.snapshot("job-1").resolve("job-1")
    tape.model("job-1", at=3.0, took=until - 3.0)
    for beat in beats:
        at, more = beat if isinstance(beat, tuple) else (beat, {})
        tape.heartbeat("job-1", at=at, **more)
    return tape.result("job-1", at=until + 0.1).log("job-1").poll(at=until + 20)


FIVE_HUNDRED = {"status": 500, "code": "INTERNAL_ERROR"}


def test_a_long_life_keeps_them() -> None:
    tape = working(*range(17, 200, 15))
    assert tape.failing() == set()
    assert [tape.status(rule) for rule in ("RT-HB-01", "RT-HB-02", "RT-HB-10", "RT-HB-64")] == ["passed"] * 4
    assert {tape.status(rule) for rule in ("RT-HB-60", "RT-HB-61", "RT-HB-62", "RT-HB-63")} == {"untested"}


@pytest.mark.parametrize("every", [1, 5, 29, 50])
def test_any_cadence_below_the_lock_is_right(every: int) -> None:
    assert working(*range(2 + every, 200, every)).failing("heartbeats") == set()


def test_a_short_job_needs_no_heartbeat() -> None:
    tape = working(until=40)
    assert tape.failing() == set()
    assert {tape.status(rule) for rule in RULES} == {"untested"}


def test_other_endpoints_and_bodies_are_told() -> None:
    assert Tape().call("PUT", f"{BASE}/jobs/job-1/heartbeat", {"a": 1}, 405).status("RT-HB-01") == "failed"
    tape = Tape().poll("job-1").lock("job-1").call("POST", f"{BASE}/jobs/job-1/heartbeat", {}, 400)
    assert tape.failing("heartbeats", "locking") == {"RT-HB-02"}


# Gaps


def test_no_heartbeat_at_all_is_told() -> None:
    tape = working()
    assert tape.failing("heartbeats", "locking") == {"RT-HB-10", "RT-HB-64"}
    assert "198.1 s" in tape.said("RT-HB-64").broken[0].actual


def test_an_interval_of_the_locks_length_is_told() -> None:
    assert working(62, 122, 182).failing("heartbeats") == {"RT-HB-10", "RT-HB-64"}
    assert working(2.1, 62.1, 122.1, 182.1).failing("heartbeats") == {"RT-HB-64"}


def test_heartbeats_that_stop_are_told() -> None:
    assert working(17, 32, 47).failing("heartbeats") == {"RT-HB-64"}


def test_one_that_was_held_up_a_little_is_not() -> None:
    assert working(17, 32, 92.3, 107, 122, 137, 152, 167, 182).failing("heartbeats") == set()


def test_who_makes_other_requests_is_not_held_up() -> None:
    tape = Tape().poll("job-1", "job-2", at=1.0).lock("job-1", at=2.0).lock("job-2", at=2.0)
    for at in range(12, 62, 10):
        tape.heartbeat("job-1", at=at)
    tape.result("job-1", at=62.0).snapshot("job-2", 409, "LOCK_NOT_HELD", at=62.2)
    assert tape.failing("heartbeats") == {"RT-HB-10", "RT-HB-64"}


def test_time_in_which_the_process_stood_still_does_not_count() -> None:
    tape = working(17).event("signal", signal="STOP", at=20.0).event("signal", signal="CONT", at=120.0)
    assert tape.status("RT-HB-64") == "passed"


def test_the_lock_of_the_run_counts() -> None:
    tape = Tape(lock=3).poll("job-1").lock("job-1", at=2.0).model("job-1", at=2.1, took=6).result("job-1", at=8.2)
    assert "RT-HB-64" in tape.failing("heartbeats")


def test_a_lock_that_it_never_knew_of_needs_no_heartbeats() -> None:
    tape = Tape().poll("job-1").lock("job-1", lost=True).poll(at=100).lock("job-1", grant={"attemptNo": 1})
    assert tape.failing("heartbeats") == set()


# Failed heartbeats


@pytest.mark.parametrize("failure", [FIVE_HUNDRED, {"lost": True}, {"lost": True, "took": 10.0}])
def test_a_failed_heartbeat_that_is_tried_again_is_right(failure: dict[str, Any]) -> None:
    tape = working(17, (32, failure), *range(47, 200, 15))
    assert (tape.failing("heartbeats"), tape.status("RT-HB-61")) == (set(), "passed")


@pytest.mark.parametrize("failure", [FIVE_HUNDRED, {"lost": True}, {"lost": True, "took": 100.0}])
def test_a_failed_heartbeat_that_is_the_last_is_told(failure: dict[str, Any]) -> None:
    tape = working(17, (32, failure), until=76)
    tape.entries = [entry for entry in tape.entries if "/result" not in entry["request"]["url"]]
    tape.poll(at=120)
    assert tape.failing("heartbeats") == {"RT-HB-61"}
    assert "RT-HB-61" in working(17, (32, failure), until=77.2).failing("heartbeats")
    assert working(17, (32, failure), until=100).failing("heartbeats") == {"RT-HB-61", "RT-HB-63"}
    finding = tape.said("RT-HB-61").broken[0]
    assert finding.call is not None
    assert finding.call.sent == pytest.approx(32)


def test_one_that_ends_with_the_job_is_not() -> None:
    assert working(17, (32, FIVE_HUNDRED), until=40).status("RT-HB-61") == "untested"
    killed = Tape().poll("job-1").lock("job-1").heartbeat("job-1", **FIVE_HUNDRED).event("signal", signal="KILL")
    assert killed.poll(at=200).status("RT-HB-61") == "untested"


# The lock is lost


def lost(status: int = 409, code: str = "LOCK_NOT_HELD") -> Tape:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1").resolve("job-1").model("job-1", took=0.2)
    return tape.heartbeat("job-1", status, code)


@pytest.mark.parametrize(("status", "code"), [(409, "LOCK_NOT_HELD"), (404, "JOB_NOT_FOUND")])
@pytest.mark.parametrize("what", ["result", "heartbeat", "model"])
def test_what_is_sent_after_a_lost_lock_is_told(status: int, code: str, what: str) -> None:
    assert lost(status, code).log("job-1", success=False).poll(at=9).status("RT-HB-62") == "passed"
    tape = getattr(lost(status, code), what)("job-1", at=6.0)
    assert tape.failing("heartbeats", "locking") == {"RT-HB-62"}
    assert code in tape.said("RT-HB-62").broken[0].expected


def test_a_failure_after_a_lost_lock_is_told() -> None:
    tape = lost().fail("job-1", "JOB_CANCELLED", retryable=False, status=409)
    assert tape.failing(*AREAS) == {"RT-HB-62"}


def test_what_was_under_way_is_not() -> None:
    assert lost().result("job-1", 409, "LOCK_NOT_HELD", at=2.95).failing("heartbeats") == set()
    assert lost().status("RT-HB-62") == "untested"


def test_a_storm_of_refused_heartbeats_is_told() -> None:
    tape = lost()
    for i in range(3):
        tape.heartbeat("job-1", 409, at=3.0 + i / 50)
    assert tape.failing("heartbeats") == {"RT-HB-62"}


def test_other_refusals_lose_no_lock() -> None:
    assert lost(409, "JOB_ALREADY_LOCKED").result("job-1").status("RT-HB-62") == "untested"


def test_a_later_grant_is_another_lock() -> None:
    assert lost().poll("job-1").whole("job-1").poll(at=20).failing("heartbeats", "locking") == set()


def test_a_lost_result_may_be_repeated_when_a_heartbeat_says_the_job_is_done() -> None:
    tape = Tape().poll("job-1").lock("job-1").result("job-1", lost=True).heartbeat("job-1", 409).result("job-1", 200)
    assert tape.failing("heartbeats") == set()


# No heartbeat is answered


def in_vain(*more: float, until: float, failure: dict[str, Any] | None = None) -> Tape:
    failing = failure or {"lost": True, "took": 5.0}
    tape = Tape().poll("job-1", at=1.0).lock("job-1", at=2.0).snapshot("job-1").resolve("job-1")
    tape.model("job-1", at=3.0, took=until - 3.0, lost=True)
    for at in (17.0, 32.0, 47.0, *more):
        tape.heartbeat("job-1", at=at, **failing)
    return tape


@pytest.mark.parametrize("failure", [FIVE_HUNDRED, {"lost": True}, {"lost": True, "took": 10.0}])
def test_it_stops_when_the_lock_must_have_lapsed(failure: dict[str, Any]) -> None:
    tape = in_vain(until=62, failure=failure).log("job-1", success=False, at=63).poll(at=80)
    assert tape.failing("heartbeats", "locking") == set()
    assert tape.status("RT-HB-63") == "passed"


@pytest.mark.parametrize("what", ["result", "model", "heartbeat"])
def test_what_is_sent_when_the_lock_has_lapsed_is_told(what: str) -> None:
    tape = getattr(in_vain(until=80), what)("job-1", at=81.0)
    assert tape.failing("heartbeats", "locking") == {"RT-HB-63"}
    assert "79 s" in tape.said("RT-HB-63").broken[0].actual


def test_heartbeats_that_go_on_beyond_the_lock_are_told() -> None:
    assert in_vain(62, 77, until=80).failing("heartbeats") == {"RT-HB-63"}


def test_an_answer_in_time_renews_it() -> None:
    tape = in_vain(until=100).heartbeat("job-1", at=58).heartbeat("job-1", at=75).heartbeat("job-1", at=90)
    assert tape.result("job-1", at=100.1).poll(at=120).failing("heartbeats") == set()


def test_the_recording_may_end_too_soon() -> None:
    assert in_vain(until=62).poll(at=63).status("RT-HB-63") == "untested"


def stalled(*, woken: float) -> Tape:
    tape = working(17, until=21).event("signal", signal="STOP", at=18.0).event("signal", signal="CONT", at=woken)
    tape.entries = [entry for entry in tape.entries if "/result" not in entry["request"]["url"]]
    return tape


def test_a_process_that_stood_still_beyond_its_lock_stops() -> None:
    assert stalled(woken=100.0).poll(at=110).status("RT-HB-63") == "passed"
    asked = stalled(woken=100.0).heartbeat("job-1", 409, at=100.1).poll(at=110)
    assert asked.failing("heartbeats") == set()
    assert stalled(woken=100.0).result("job-1", 409, "LOCK_NOT_HELD", at=100.1).failing("heartbeats") == {"RT-HB-63"}
    assert stalled(woken=50.0).result("job-1", at=50.1).failing("heartbeats") == set()


# lockUntil is off


def off_by(seconds: float) -> dict[str, int]:
    return {"lockUntil": round((1_700_000_000 + 2 + 60 + seconds) * 1000)}


@pytest.mark.parametrize("seconds", [-3600.0, -45.0, 45.0, 3600.0, 1e8])
def test_a_lock_until_that_is_off_changes_nothing(seconds: float) -> None:
    tape = working(*range(17, 200, 15), **off_by(seconds))
    assert tape.failing("heartbeats") == set()
    assert tape.status("RT-HB-60") == "passed"
    assert (tape.status("RT-HB-10"), tape.status("RT-HB-64")) == ("untested", "untested")


def test_a_heartbeat_that_comes_late_by_its_skew_is_told() -> None:
    tape = working(92, **off_by(45))
    assert tape.failing("heartbeats") == {"RT-HB-60"}
    assert "off by 45 s" in tape.said("RT-HB-60").broken[0].expected


def test_a_storm_of_heartbeats_is_told() -> None:
    tape = working(*[3 + i / 10 for i in range(200)], until=40, **off_by(-3600))
    assert tape.failing("heartbeats") == {"RT-HB-60"}
    assert "every 0.1 s" in tape.said("RT-HB-60").broken[0].actual


def test_eager_heartbeats_are_none() -> None:
    first = working(*[3 + i / 2 for i in range(60)], until=40)
    first.poll("job-2").lock("job-2", grant={"lockUntil": 1_000}).heartbeat("job-2")
    for _ in range(20):
        first.heartbeat("job-2")
    first.result("job-2")
    assert first.failing("heartbeats") == set()


def test_a_job_that_is_given_up_is_told() -> None:
    tape = Tape().poll("job-1", at=1.0).lock("job-1", at=2.0, grant=off_by(-3600)).poll(at=100)
    assert tape.failing("heartbeats") == {"RT-HB-60"}
    failed = (
        Tape()
        .poll("job-1", at=1.0)
        .lock("job-1", at=2.0, grant=off_by(-3600))
        .fail("job-1", "JOB_TIMEOUT", retryable=True)
    )
    assert failed.failing("heartbeats") == {"RT-HB-60"}


def test_a_short_job_says_nothing_of_a_lock_until_in_the_future() -> None:
    assert working(until=10, **off_by(3600)).status("RT-HB-60") == "untested"
    assert working(until=10, **off_by(-3600)).status("RT-HB-60") == "passed"


def test_a_failed_heartbeat_of_a_job_whose_result_is_then_settled_needs_no_other() -> None:
    tape = Tape().lock("job-1").heartbeat("job-1").model("job-1").result("job-1", 409, "JOB_CANCELLED", at=3, took=2)
    tape.heartbeat("job-1", 503, "INTERNAL_ERROR", at=4.9).poll(at=5.2).poll(at=90).poll(at=150)
    assert tape.status("RT-HB-61") == "untested"
    still = Tape().lock("job-1").heartbeat("job-1").heartbeat("job-1", 503, "INTERNAL_ERROR", at=4.9)
    assert still.poll(at=5.2).poll(at=90).poll(at=150).status("RT-HB-61") == "failed"
