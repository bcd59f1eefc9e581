"""Monitors of locks, and of cancel requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime_suite.tape import BASE, Tape

AREAS = ("locking", "heartbeats", "polling", "cancelling", "requests", "errors")


def taken(**more: Any) -> Tape:
    return Tape().poll("job-1", "job-2").lock("job-1", **more)


def test_a_normal_life_keeps_them() -> None:
    tape = taken().snapshot("job-1").resolve("job-1").model("job-1").result("job-1").log("job-1").whole("job-2").poll()
    assert tape.failing() == set()
    assert [tape.status(f"RT-LOCK-{rule}") for rule in ("01", "02", "14")] == ["passed"] * 3
    assert [tape.status(f"RT-LOCK-{rule}") for rule in (60, 61, 63)] == ["untested"] * 3


@pytest.mark.parametrize(("method", "path"), [("PUT", "/jobs/job-1/lock"), ("POST", "/jobs/lock")])
def test_other_endpoints_are_told(method: str, path: str) -> None:
    assert Tape().call(method, BASE + path, {"a": 1}, 404).status("RT-LOCK-01") == "failed"
    assert Tape().call("POST", f"{BASE}/jobs/job-1/unrelated", {"a": 1}, 404).status("RT-LOCK-01") == "untested"


def test_a_body_without_the_id_is_told() -> None:
    tape = Tape().poll("job-1").call("POST", f"{BASE}/jobs/job-1/lock", None, 400, Tape().error("INVALID_REQUEST", 400))
    assert tape.failing(*AREAS) == {"RT-LOCK-02"}


# No work without a lock


@pytest.mark.parametrize(
    "refused",
    [
        {"status": 409},
        {"status": 500, "code": "INTERNAL_ERROR"},
        {"status": 404, "code": "JOB_NOT_FOUND"},
        {"status": 0, "answer": "", "lost": True},
        {"lost": True},
    ],
)
@pytest.mark.parametrize("work", ["snapshot", "resolve", "result"])
def test_work_after_a_lock_that_was_not_granted_is_told(refused: dict[str, Any], work: str) -> None:
    tape = getattr(taken(**refused), work)("job-1")
    assert tape.failing("locking", "heartbeats") == {"RT-LOCK-14"}
    assert tape.said("RT-LOCK-14").broken[0].expected.startswith("a granted lock of job-1")


def test_work_without_asking_is_told() -> None:
    tape = Tape().poll("job-1").snapshot("job-1").resolve("job-1").model("job-1")
    assert "never asked for" in tape.said("RT-LOCK-14").broken[0].actual
    assert len(tape.said("RT-LOCK-14").broken) == 3


def test_work_before_the_answer_is_told() -> None:
    assert taken(took=2.0).snapshot("job-1").status("RT-LOCK-14") == "failed"
    assert taken(took=0.2).snapshot("job-1").status("RT-LOCK-14") == "passed"


def test_a_heartbeat_that_is_answered_tells_that_a_lost_lock_is_held() -> None:
    found_out = taken(lost=True).heartbeat("job-1").snapshot("job-1")
    assert found_out.failing(*AREAS) == set()
    assert found_out.status("RT-LOCK-14") == "passed"
    assert taken(lost=True).heartbeat("job-1", 500, "INTERNAL_ERROR").snapshot("job-1").status("RT-LOCK-14") == "failed"


def test_work_that_begins_when_the_job_was_settled_is_told() -> None:
    settled = taken().snapshot("job-1").fail("job-1", "NETWORK_ERROR", retryable=True)
    assert settled.status("RT-LOCK-14") == "passed"
    assert settled.snapshot("job-1", at=9).status("RT-LOCK-14") == "failed"


# After a refusal


def test_what_may_follow_a_lost_lock() -> None:
    assert taken(lost=True).lock("job-1", 409).poll(at=9).failing(*AREAS) == set()
    assert taken(lost=True).heartbeat("job-1", 409).poll(at=9).failing(*AREAS) == set()
    assert taken(lost=True).poll().poll(at=9).failing(*AREAS) == set()
    assert taken(lost=True).lock("job-1", 409).heartbeat("job-1").snapshot("job-1").failing(*AREAS) == set()


def test_a_refused_job_is_left_alone_until_it_is_listed() -> None:
    good = taken(status=409).whole("job-2").poll("job-1").whole("job-1").poll()
    assert (good.failing(), good.status("RT-LOCK-60")) == (set(), "passed")
    bad = taken(status=409).lock("job-1", 409).poll()
    assert bad.failing("locking", "heartbeats") == {"RT-LOCK-60"}
    assert "lockJob 0.29 s after it" in bad.said("RT-LOCK-60").broken[0].actual
    assert taken(status=409).poll().heartbeat("job-1", 409).status("RT-LOCK-60") == "failed"
    assert taken(status=500, code="INTERNAL_ERROR").lock("job-1").status("RT-LOCK-60") == "untested"
    assert taken(status=409).status("RT-LOCK-60") == "untested"


def test_a_request_under_way_is_no_fault() -> None:
    assert taken(status=409).lock("job-1", 409, at=1.7).failing("locking") == set()


def test_after_a_refusal_it_goes_on_to_others() -> None:
    good = taken(status=409).whole("job-2").poll()
    assert (good.failing(), good.status("RT-LOCK-61")) == (set(), "passed")
    bad = taken(status=409)
    for _ in range(20):
        bad.poll("job-2")
    assert bad.failing("locking", "polling") == {"RT-LOCK-61"}
    assert "job-2 was listed" in bad.said("RT-LOCK-61").broken[0].actual
    assert taken(status=409).poll().poll(at=20).status("RT-LOCK-61") == "untested"


def test_the_refused_job_alone_is_told() -> None:
    tape = Tape().poll("job-1", "job-2").lock("job-1", 409).poll("job-1", "job-2").lock("job-1").whole("job-2")
    assert tape.failing("locking") == {"RT-LOCK-61"}
    only = Tape().poll("job-1").lock("job-1", 409).poll("job-1").lock("job-1").whole("job-2")
    assert only.failing("locking") == set()


def test_a_storm_of_locks_is_told() -> None:
    tape = taken(status=409)
    for i in range(3):
        tape.lock("job-1", 409, at=1.65 + i / 50)
    assert "RT-LOCK-60" in tape.failing("locking")


def test_a_busy_runtime_need_not() -> None:
    tape = Tape().poll("job-1", "job-2", "job-3").lock("job-3").lock("job-1", 409)
    for _ in range(20):
        tape.poll("job-2")
    assert tape.status("RT-LOCK-61") == "untested"


# One run at a time


def again(tape: Tape, status: int = 200) -> Tape:
    return tape.poll("job-1").lock("job-1", status, grant={"attemptNo": 1})


def test_a_job_that_came_back_may_be_locked_again() -> None:
    tape = again(taken().snapshot("job-1").fail("job-1", "NETWORK_ERROR", retryable=True)).snapshot("job-1")
    assert tape.failing("locking", "heartbeats") == set()
    assert tape.status("RT-LOCK-63") == "passed"


def test_a_listed_job_that_it_runs_is_left_alone() -> None:
    tape = taken().snapshot("job-1").resolve("job-1").poll("job-1").model("job-1").result("job-1")
    assert (tape.failing(*AREAS), tape.status("RT-LOCK-63")) == (set(), "passed")


def test_a_lock_during_a_model_call_is_told() -> None:
    tape = again(taken().snapshot("job-1").resolve("job-1").model("job-1", took=5.0))
    assert tape.failing("locking") == {"RT-LOCK-63"}
    assert "model call" in tape.said("RT-LOCK-63").broken[0].actual


def test_a_lock_during_a_report_is_told() -> None:
    assert again(taken().snapshot("job-1").result("job-1", took=5.0)).failing("locking") == {"RT-LOCK-63"}
    repeated = again(taken().snapshot("job-1").result("job-1", lost=True)).result("job-1")
    assert repeated.failing("locking") == {"RT-LOCK-63"}


def test_a_refused_lock_of_a_job_that_it_runs_is_told() -> None:
    tape = again(taken().snapshot("job-1"), 409).resolve("job-1").model("job-1").result("job-1")
    assert "RT-LOCK-63" in tape.failing("locking")


def test_what_was_dropped_may_take_a_moment_to_end() -> None:
    begin = taken().snapshot("job-1").resolve("job-1", at=2.5)
    lost = begin.model("job-1", at=2.6, took=1.0).heartbeat("job-1", 409, at=3.0).poll("job-1", at=3.1)
    assert lost.lock("job-1", at=3.2, grant={"attemptNo": 1}).failing("locking") == set()


def test_a_run_that_came_to_nothing_is_none() -> None:
    tape = again(taken().snapshot("job-1").heartbeat("job-1", 409).poll(at=9.0)).snapshot("job-1").resolve("job-1")
    assert tape.model("job-1").result("job-1").failing("locking", "heartbeats") == set()


def test_another_process_knows_nothing_of_the_run() -> None:
    tape = taken().snapshot("job-1").event("signal", signal="KILL").event("exited", status=-9).event("started")
    assert again(tape).snapshot("job-1").failing("locking") == set()


# Cancel requests


def told(heartbeat: float = 5.0, **more: Any) -> Tape:
    tape = Tape(heartbeat=heartbeat).poll("job-1").lock("job-1").snapshot("job-1").resolve("job-1")
    return tape.model("job-1", **more).heartbeat("job-1", cancel=True)


CANCEL = ("RT-CANCEL-05", "RT-CANCEL-70", "RT-CANCEL-71")


def test_a_job_that_is_stopped_and_said_so() -> None:
    tape = told().fail("job-1", "JOB_CANCELLED", retryable=False).poll(at=9)
    assert [tape.status(rule) for rule in CANCEL] == ["passed"] * 3
    assert tape.failing(*AREAS) == set()


def test_what_ends_at_once_was_seen() -> None:
    tape = (
        told().fail("job-1", "JOB_CANCELLED", retryable=False).event("signal", signal="TERM").event("exited", status=0)
    )
    assert [tape.status(rule) for rule in CANCEL] == ["passed"] * 3


def test_nothing_is_said_without_a_signal() -> None:
    tape = Tape().poll("job-1").whole("job-1")
    assert {tape.status(rule) for rule in (*CANCEL, "RT-CANCEL-72")} == {"untested"}


def test_a_result_in_spite_of_the_signal_is_told() -> None:
    tape = told().result("job-1", at=5.0).poll(at=30)
    assert "RT-CANCEL-05" in tape.failing("cancelling")
    assert "RT-CANCEL-70" not in tape.failing("cancelling")


def test_a_result_under_way_is_no_fault() -> None:
    tape = told().result("job-1", 409, "JOB_CANCELLED", at=2.9).poll(at=30)
    assert tape.failing(*AREAS) == set()
    assert tape.status("RT-CANCEL-72") == "passed"
    assert told().result("job-1", at=2.9).poll(at=30).failing(*AREAS) == set()


def test_a_further_model_call_is_told() -> None:
    tape = told().model("job-1").fail("job-1", "JOB_CANCELLED", retryable=False).poll(at=9)
    assert tape.failing(*AREAS) == {"RT-CANCEL-70"}


def test_a_call_that_follows_one_that_was_broken_off_is_told() -> None:
    begin = Tape(heartbeat=5).poll("job-1").lock("job-1", at=1.6).snapshot("job-1").resolve("job-1", at=2.0)
    begin.model("job-1", at=2.1, took=0.92, lost=True).heartbeat("job-1", cancel=True, at=3.0)
    again = begin.model("job-1", at=3.02).fail("job-1", "JOB_CANCELLED", retryable=False).poll(at=9)
    assert again.failing("cancelling") == {"RT-CANCEL-70"}


@pytest.mark.parametrize(("code", "retryable"), [("JOB_CANCELLED", True), ("NETWORK_ERROR", True), ("OTHER", False)])
def test_another_failure_is_told(code: str, retryable: bool) -> None:
    tape = told().fail("job-1", code, retryable=retryable).poll(at=9)
    assert tape.failing("cancelling") == {"RT-CANCEL-71"}
    assert code in tape.said("RT-CANCEL-71").broken[0].actual


def test_silence_after_the_signal_is_told_when_the_time_is_over() -> None:
    assert told().poll(at=12).failing("cancelling") == {"RT-CANCEL-71"}
    assert told().poll(at=7).status("RT-CANCEL-71") == "untested"
    assert told(heartbeat=45).poll(at=30).status("RT-CANCEL-71") == "untested"
    assert told(heartbeat=45).poll(at=40).status("RT-CANCEL-71") == "failed"
    assert told().event("signal", signal="KILL").poll(at=40).status("RT-CANCEL-71") == "untested"


def test_a_failure_that_is_repeated_counts_from_its_first_try() -> None:
    tape = told().fail("job-1", "JOB_CANCELLED", retryable=False, lost=True)
    assert tape.fail("job-1", "JOB_CANCELLED", retryable=False, at=12).failing("cancelling") == set()


def test_reports_after_the_settlement_are_told() -> None:
    settled = told().result("job-1", 409, "JOB_CANCELLED", at=2.9)
    assert settled.result("job-1", 409, "JOB_CANCELLED").status("RT-CANCEL-72") == "failed"
    polite = (
        told().result("job-1", 409, "JOB_CANCELLED", at=2.9).fail("job-1", "JOB_CANCELLED", retryable=False, status=409)
    )
    assert polite.failing("cancelling") == {"RT-CANCEL-72"}


def test_what_a_poll_lists_is_locked_before_it_is_worked_on() -> None:
    assert Tape().poll("job-1").whole("job-1").status("RT-POLL-02") == "passed"
    at_once = Tape().poll("job-1").snapshot("job-1", 409, "LOCK_NOT_HELD")
    assert at_once.status("RT-POLL-02") == "failed"
    assert at_once.said("RT-POLL-02").broken[0].actual == "no lock had been asked for"
    assert Tape().poll("job-1").status("RT-POLL-02") == "untested"


def test_a_cancel_request_is_learnt_from_the_next_heartbeat() -> None:
    told = Tape().lock("job-1").snapshot("job-1").resolve("job-1").heartbeat("job-1", cancel=True)
    assert told.fail("job-1", "JOB_CANCELLED", retryable=False).status("RT-HB-09") == "passed"
    deaf = Tape().lock("job-1").snapshot("job-1").resolve("job-1").heartbeat("job-1", cancel=True)
    assert deaf.model("job-1", at=5).result("job-1", 409, "JOB_CANCELLED", at=9).status("RT-HB-09") == "failed"
    assert Tape().lock("job-1").heartbeat("job-1").status("RT-HB-09") == "untested"
