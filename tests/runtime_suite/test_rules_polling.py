"""Monitors of polls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime_suite.tape import BASE, Tape

SHAPES = (
    "RT-POLL-01",
    "RT-POLL-03",
    "RT-POLL-04",
    "RT-POLL-05",
    "RT-POLL-06",
    "RT-POLL-07",
    "RT-POLL-70",
    "RT-POLL-71",
)
PACE = ("RT-SCHED-07", "RT-SCHED-60", "RT-SCHED-61", "RT-SCHED-62")


def test_a_normal_life_keeps_them() -> None:
    tape = Tape().poll().poll(status=500).poll("job-1").whole("job-1").poll()
    rules = (*SHAPES, *PACE, "RT-POLL-72")
    assert [tape.status(rule) for rule in rules] == ["passed"] * len(rules)
    assert tape.failing() == set()


def test_nothing_is_said_without_polls() -> None:
    assert {Tape().status(rule) for rule in (*SHAPES, *PACE, "RT-POLL-72", "RT-POLL-73")} == {"untested"}


def bare(**body: Any) -> Tape:
    asked = {"runtimeInstanceId": "runtime-a", "supportedJobTypes": ["quiz_generation"], **body}
    return Tape().call("POST", f"{BASE}/jobs/poll", asked, 200, {"jobs": []})


def test_what_may_be_left_out_may() -> None:
    assert bare().failing() == set()
    assert [bare().status(rule) for rule in SHAPES[3:7]] == ["untested"] * 4
    assert bare(limit=5.0, more=1).failing() == set()


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({"runtimeInstanceId": 7}, "RT-POLL-03"),
        ({"runtimeInstanceId": ""}, "RT-POLL-03"),
        ({"supportedJobTypes": None}, "RT-POLL-04"),
        ({"supportedJobTypes": []}, "RT-POLL-04"),
        ({"supportedJobTypes": "quiz_generation"}, "RT-POLL-04"),
        ({"limit": "5"}, "RT-POLL-05"),
        ({"limit": 0}, "RT-POLL-05"),
        ({"capabilities": {"supportedSnapshotVersions": "ai_snapshot_v1"}}, "RT-POLL-06"),
        ({"capabilities": {"supportedOutputSchemaVersions": [1]}}, "RT-POLL-07"),
        ({"limit": 51}, "RT-POLL-70"),
        ({"supportedJobTypes": ["quiz_generation", "essay_writing"]}, "RT-POLL-71"),
    ],
)
def test_wrong_bodies_are_told(body: dict[str, Any], rule: str) -> None:
    assert bare(**body).failing() == {rule}
    assert bare(**body).said(rule).broken[0].call is not None


def test_a_body_that_was_cut_is_not_judged() -> None:
    tape = bare()
    tape.entries[0]["request"]["postData"] = {"text": "{", "comment": "cut"}
    tape.entries[0]["request"]["bodySize"] = 99999
    assert [tape.status(rule) for rule in SHAPES[1:]] == ["untested"] * 7


@pytest.mark.parametrize(("method", "path"), [("GET", "/jobs/poll"), ("POST", "/jobs/poll/"), ("POST", "/poll")])
def test_other_endpoints_for_polls_are_told(method: str, path: str) -> None:
    assert Tape().call(method, BASE + path, status=404).status("RT-POLL-01") == "failed"


# Every type


def of_type(kind: str) -> dict[str, Any]:
    return Tape.entry("job-1", jobType=kind)


def test_a_failure_without_a_reason_is_told() -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1").fail("job-1", "INVALID_SNAPSHOT", retryable=False)
    assert tape.failing("polling") == {"RT-POLL-72"}
    assert "learning_state_analysis" in tape.said("RT-POLL-72").broken[0].expected


def test_a_failure_with_a_reason_is_none() -> None:
    for reason in ("RATE", "TIME", "AI"):
        tape = Tape().poll("job-1").lock("job-1", grant={"timeoutSeconds": 2 if reason == "TIME" else 120})
        content = {"aiSettings": {"allowAiAnalysis": False}} if reason == "AI" else {}
        tape.snapshot("job-1", content=content).resolve("job-1")
        tape.model("job-1", **({"status": 429, "outcome": "status"} if reason == "RATE" else {}))
        tape.fail("job-1", "X", retryable=True, at=5)
        assert tape.status("RT-POLL-72") == "untested"


def test_a_failure_for_want_of_a_key_is_none() -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1").resolve("job-1", content={"apiKey": None})
    assert tape.fail("job-1", "INVALID_CREDENTIAL", retryable=False).status("RT-POLL-72") == "untested"
    tape.runtime["ownKey"] = True
    assert tape.status("RT-POLL-72") == "failed"


def test_jobs_that_it_asks_for_and_never_takes_are_told() -> None:
    tape = Tape()
    for _ in range(20):
        tape.poll("job-1")
    assert tape.failing("polling", "locking") == {"RT-POLL-72"}
    other = Tape()
    for _ in range(20):
        other.poll(of_type("weak_point_analysis"))
    assert other.status("RT-POLL-72") == "untested"


def test_a_job_that_is_locked_and_forgotten_is_told() -> None:
    assert Tape().poll("job-1").lock("job-1").poll(at=100).status("RT-POLL-72") == "failed"
    assert Tape().poll("job-1").lock("job-1").poll(at=50).status("RT-POLL-72") == "untested"


def test_a_busy_runtime_may_leave_jobs_waiting() -> None:
    tape = Tape().poll("job-1", "job-2").lock("job-1")
    for _ in range(30):
        tape.poll("job-2")
    assert tape.status("RT-POLL-72") == "untested"


def test_an_unknown_type_does_not_stop_it() -> None:
    odd = of_type("essay_writing")
    assert Tape().poll(odd).poll().status("RT-POLL-73") == "passed"
    assert Tape().poll(odd).event("exited", status=1).failing("polling") == {"RT-POLL-73"}
    assert Tape().poll(odd).event("note", at=30.0, text="end").failing("polling") == {"RT-POLL-73"}
    assert Tape().poll(odd).event("note", at=5.0, text="end").status("RT-POLL-73") == "untested"


# How often


def paced(step: float, *, polls: int = 4, **more: Any) -> Tape:
    tape = Tape(poll=1.0)
    tape.step = step
    for _ in range(polls):
        tape.poll(**more)
    return tape


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        ({}, {"RT-SCHED-07", "RT-SCHED-60"}),
        ({"status": 500}, {"RT-SCHED-60"}),
        ({"lost": True}, {"RT-SCHED-60"}),
    ],
)
def test_polls_that_come_too_soon_are_told(more: dict[str, Any], rules: set[str]) -> None:
    assert paced(0.82, **more).failing() == set()
    assert paced(1.3, **more).failing() == set()
    assert paced(0.6, **more).failing() == rules
    assert "0.59 s" in paced(0.6, **more).said("RT-SCHED-60").broken[0].actual


def test_polls_that_are_answered_at_once_are_judged_like_others() -> None:
    assert paced(0.1, took=0.0002).failing() == {"RT-SCHED-07", "RT-SCHED-60"}


def test_the_wait_counts_from_the_answer() -> None:
    tape = Tape(poll=1.0).poll(at=1.0, took=0.9).poll(at=2.0)
    assert tape.failing() == {"RT-SCHED-07", "RT-SCHED-60"}


def test_a_poll_that_listed_jobs_may_be_followed_at_once() -> None:
    tape = paced(0.05, polls=1).poll("job-1", at=3.0).poll("job-2", at=3.05)
    assert tape.failing("polling") == set()


def test_another_process_need_not_wait() -> None:
    tape = Tape(poll=1.0).poll().event("signal", signal="KILL", at=1.35).event("exited", status=-9, at=1.36)
    assert tape.event("started", at=1.4).poll(at=1.45).failing() == set()


def test_an_unknown_interval_is_not_judged() -> None:
    tape = paced(0.1)
    tape.runtime["pollIntervalMs"] = None
    assert (tape.status("RT-SCHED-07"), tape.status("RT-SCHED-60")) == ("untested", "untested")


def test_polls_that_end_are_told() -> None:
    assert Tape().poll().event("note", at=30.0, text="end").failing() == {"RT-SCHED-61"}
    assert Tape().poll(status=500).event("note", at=30.0, text="end").failing() == {"RT-SCHED-61", "RT-SCHED-62"}
    assert Tape().poll().event("exited", status=1).failing() == {"RT-SCHED-61"}
    assert Tape().poll("job-1").whole("job-1").poll("job-1").poll(at=20.0).poll("job-1").failing("polling") == set()
    after = Tape().poll("job-1").lock("job-1").poll("job-1").result("job-1").event("note", at=30.0, text="end")
    assert after.failing("polling") == {"RT-SCHED-61"}


@pytest.mark.parametrize("signal", ["TERM", "KILL", "STOP"])
def test_a_process_that_can_not_poll_need_not(signal: str) -> None:
    tape = Tape().poll(status=500).event("signal", signal=signal).event("note", at=30.0, text="end")
    assert {tape.status(rule) for rule in PACE} == {"untested"}


def test_a_busy_runtime_may_pause() -> None:
    tape = Tape().poll(status=500).poll("job-1").lock("job-1", at=1.9).poll(at=2.2)
    for i in range(4):
        tape.heartbeat("job-1", at=15.0 * (i + 1))
    tape.result("job-1", at=62.0).poll(at=62.5)
    assert tape.failing("polling") == set()
    assert Tape().poll("job-1").lock("job-1").poll().event("note", at=40.0, text="end").failing("polling") == set()


def test_the_next_poll_after_a_failed_one_may_take_ten_seconds() -> None:
    assert Tape().poll(status=503).poll(at=10.5).failing() == set()
    tape = Tape().poll(status=503).poll(at=14.0)
    assert tape.failing() == {"RT-SCHED-62"}
    assert "503" in tape.said("RT-SCHED-62").broken[0].expected
    assert Tape().poll().poll(at=12.0).status("RT-SCHED-62") == "untested"
