"""Monitors of health and of SIGTERM."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime_suite.tape import BASE, ZERO, Tape

SHAPES = tuple(f"RT-HEALTH-{rule}" for rule in ("02", "03", "04", "05", "06", "07", "08", "09", "10"))
ALL = (*SHAPES, "RT-HEALTH-51", "RT-HEALTH-52", "RT-HEALTH-53", "RT-HEALTH-54", "RT-TIME-05")


def ms(at: float) -> int:
    return round((ZERO + at) * 1000)


def run(until: float = 10.0) -> Tape:
    """Locked at 2 s, at work from 2.1 s on, the result at ``until``."""
    tape = Tape().poll("job-1", at=1.5).lock("job-1", at=2.0).snapshot("job-1", at=2.1).resolve("job-1", at=2.2)
    return tape.model("job-1", at=2.3, took=until - 2.4).result("job-1", at=until)


def ended(at: float, last: Any, **more: Any) -> Tape:
    return run().poll(at=20).health(0, at=at, body={"lastJobAt": last}, **more)


def test_a_normal_life_keeps_them() -> None:
    tape = run().log("job-1").health(0, at=1.0).health(1, at=5.0, body={"lastJobAt": ms(2)}).poll(at=20)
    tape.health(0, at=21, body={"lastJobAt": ms(2)})
    assert [tape.status(rule) for rule in ALL] == ["passed"] * len(ALL)
    assert tape.failing() == set()


@pytest.mark.parametrize("no", [{"status": None, "body": None}, {"status": 404, "body": {}}])
def test_health_is_optional(no: dict[str, Any]) -> None:
    tape = run()
    for at in (1.0, 5.0, 12.0):
        tape.event("health", at, **{"seconds": 1.0, **no})
    assert {tape.status(rule) for rule in ALL} == {"untested"}


HUNG: dict[str, Any] = {"status": None, "body": None, "seconds": 2.0, "instead": "hung"}


def test_health_that_is_taken_and_never_answered_is_told() -> None:
    twice = Tape().event("health", 1.0, **HUNG).event("health", 5.0, **HUNG).poll(at=9)
    assert twice.failing() == {"RT-HEALTH-03"}
    assert "2 requests were taken" in twice.said("RT-HEALTH-03").broken[0].actual
    at_work = run().event("health", 1.0, **HUNG).event("health", 5.0, **HUNG).poll(at=20)
    assert at_work.failing("health") == {"RT-HEALTH-03", "RT-HEALTH-54"}


@pytest.mark.parametrize(
    "tape",
    [
        Tape().event("health", 1.0, **HUNG),
        Tape().event("health", 1.0, **HUNG).event("health", 5.0, **HUNG).event("health", 9.0, **HUNG | {"status": 404}),
        Tape().event("signal", signal="TERM", at=0.5).event("health", 1.0, **HUNG).event("health", 5.0, **HUNG),
        Tape()
        .event("health", 1.0, **HUNG | {"instead": "closed"})
        .event("health", 5.0, **HUNG | {"instead": "closed"}),
    ],
)
def test_health_that_may_be_there_or_not_is_not_told(tape: Tape) -> None:
    assert tape.poll(at=12).status("RT-HEALTH-03") == "untested"


def test_health_that_is_no_http_is_told() -> None:
    garbled = HUNG | {"instead": "garbled", "seconds": 0.01}
    assert Tape().event("health", 1.0, **garbled).failing() == {"RT-HEALTH-03"}
    ends = Tape().event("health", 1.0, **garbled).event("exited", 1.005, status=0)
    assert ends.status("RT-HEALTH-03") == "untested"


def test_health_that_is_asked_of_the_api_is_told() -> None:
    tape = Tape().call("GET", f"{BASE}/health", status=404)
    assert tape.failing() == {"RT-HEALTH-02"}


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"status": 204}, "RT-HEALTH-03"),
        ({"status": 500}, "RT-HEALTH-03"),
        ({"status": 401}, "RT-HEALTH-10"),
        ({"body": {"runtimeInstanceId": "another"}}, "RT-HEALTH-04"),
        ({"body": {"status": "fine"}}, "RT-HEALTH-05"),
        ({"body": {"version": 1}}, "RT-HEALTH-06"),
        ({"body": {"startedAt": "2024-01-01T00:00:00Z"}}, "RT-HEALTH-07"),
        ({"body": {"startedAt": ms(-500)}}, "RT-HEALTH-07"),
        ({"body": {"activeJobs": "0"}}, "RT-HEALTH-09"),
        ({"body": {"startedAt": round(ZERO)}}, "RT-TIME-05"),
        ({"body": {"activeJobs": 1}}, "RT-HEALTH-53"),
        ({"body": {"lastJobAt": ms(0)}}, "RT-HEALTH-51"),
    ],
)
def test_wrong_answers_are_told(more: dict[str, Any], rule: str) -> None:
    assert Tape().health(0, at=1.0, **more).failing() == {rule}


@pytest.mark.parametrize("field", ["runtimeInstanceId", "status", "version", "startedAt", "lastJobAt", "activeJobs"])
def test_what_is_missing_is_told(field: str) -> None:
    tape = Tape().health(at=1.0)
    del tape.events[-1]["body"][field]
    assert len(tape.failing()) == 1
    [rule] = tape.failing()
    assert field in tape.said(rule).broken[0].expected


def test_any_status_while_draining() -> None:
    tape = Tape().event("signal", signal="TERM").health(0, body={"status": "draining"})
    assert tape.status("RT-HEALTH-05") == "passed"
    assert Tape().event("signal", signal="TERM").health(0, status=503).status("RT-HEALTH-03") == "untested"


# lastJobAt


@pytest.mark.parametrize("at", [2.0, 2.1, 10.0, 10.1])
def test_last_job_at_is_start_or_end(at: float) -> None:
    assert ended(21, ms(at)).status("RT-HEALTH-52") == "passed"


@pytest.mark.parametrize("last", [None, ms(6), ms(21), ms(-30), "x"])
def test_another_last_job_at_is_told(last: Any) -> None:
    assert "RT-HEALTH-52" in ended(21, last).failing("health")


def test_of_two_jobs_the_last_counts() -> None:
    tape = run().poll("job-2", at=30).lock("job-2", at=31).snapshot("job-2").result("job-2", at=40).poll(at=50)
    assert tape.health(0, at=51, body={"lastJobAt": ms(40)}).status("RT-HEALTH-52") == "passed"
    assert tape.health(0, at=52, body={"lastJobAt": ms(10)}).failing("health") == {"RT-HEALTH-52"}


def test_while_the_first_runs_null_may_stand() -> None:
    assert run().health(1, at=5.0).status("RT-HEALTH-52") == "untested"
    second = run().poll("job-2", at=30).lock("job-2", at=31).snapshot("job-2").result("job-2", at=50)
    assert second.health(1, at=40.0, body={"lastJobAt": ms(10)}).failing("health") == set()


def test_another_process_begins_with_null() -> None:
    tape = run().event("exited", at=12, status=0).event("started", at=13).poll(at=14)
    assert tape.health(0, at=15, body={"startedAt": ms(13)}).failing("health") == set()


# activeJobs


@pytest.mark.parametrize(("at", "right"), [(5.0, {1}), (1.8, {0, 1}), (10.3, {0, 1}), (12.0, {0})])
def test_active_jobs_is_true_within_half_a_second(at: float, right: set[int]) -> None:
    for count in (0, 1, 2):
        tape = run().poll(at=20).health(count, at=at)
        assert tape.status("RT-HEALTH-53") == ("passed" if count in right else "failed")


def test_what_is_not_known_is_not_judged() -> None:
    waiting = Tape().poll("job-1").lock("job-1")
    assert {waiting.health(n, at=5.0).status("RT-HEALTH-53") for n in (0, 1)} == {"passed"}
    logging = run().log("job-1", at=10.2, took=5.0)
    assert logging.health(1, at=12.0).status("RT-HEALTH-53") == "passed"


def test_silence_while_jobs_run_is_told() -> None:
    silent: dict[str, Any] = {"status": None, "body": None, "seconds": 1.0}
    tape = run().health(0, at=1.0).event("health", 5.0, **silent)
    assert tape.failing("health") == {"RT-HEALTH-54"}
    assert "job-1 runs" in tape.said("RT-HEALTH-54").broken[0].expected
    killed = run().health(0, at=1.0).event("signal", signal="STOP", at=4.0).event("health", 5.0, **silent)
    assert killed.status("RT-HEALTH-54") == "untested"


def test_answers_that_wait_for_the_end_of_the_work_are_told() -> None:
    tape = run().health(0, at=1.0).health(0, at=5.0, seconds=5.05).health(0, at=7.0, seconds=3.1).poll(at=20)
    assert "RT-HEALTH-54" in tape.failing("health")
    assert run().health(0, at=1.0).health(0, at=8.0, seconds=2.1).status("RT-HEALTH-54") == "untested"
    quick = run().health(1, at=4.0).health(0, at=5.0, seconds=5.05).health(0, at=7.0, seconds=3.1)
    assert quick.status("RT-HEALTH-54") == "passed"


# SIGTERM

TERM = tuple(f"RT-HEALTH-{rule}" for rule in (60, 61, 62, 63, 64))


def test_it_ends_what_it_holds_and_then_itself() -> None:
    tape = (
        run(until=22).heartbeat("job-1", at=17).event("signal", signal="TERM", at=10.0).event("exited", at=23, status=0)
    )
    assert tape.failing("process") == set()
    assert [tape.status(rule) for rule in TERM] == ["passed", "untested", "passed", "passed", "passed"]


def test_nothing_is_said_without_a_signal() -> None:
    assert {run().poll(at=100).status(rule) for rule in TERM} == {"untested"}


def test_it_may_give_back_what_it_holds() -> None:
    tape = run(until=40).event("signal", signal="TERM", at=10.0).fail("job-1", "ANY", retryable=True, at=10.1)
    tape.entries = [entry for entry in tape.entries if "/result" not in entry["request"]["url"]]
    assert tape.event("exited", at=10.5, status=-15).failing("process") == set()


def test_a_new_job_is_told() -> None:
    tape = Tape().poll().event("signal", signal="TERM", at=3.0).poll("job-1", at=3.2).lock("job-1", at=4.0)
    tape.snapshot("job-1").result("job-1").event("exited", at=9.0, status=0)
    assert tape.failing("process") == {"RT-HEALTH-60"}
    assert "lockJob of job-1" in tape.said("RT-HEALTH-60").broken[0].actual


def crossing(**more: Any) -> Tape:
    """A lock that was under way when the signal came."""
    return Tape().poll("job-1").lock("job-1", at=3.0, took=1.0, **more).event("signal", signal="TERM", at=3.5)


def test_a_lock_that_crossed_the_signal_is_given_back() -> None:
    good = crossing().fail("job-1", "ANY", retryable=True, at=4.1).event("exited", at=5.0, status=0)
    assert (good.failing("process"), good.status("RT-HEALTH-61")) == (set(), "passed")
    assert crossing().event("exited", at=5.0, status=0).failing("process") == {"RT-HEALTH-61"}
    done = crossing().snapshot("job-1").result("job-1").event("exited", at=9.0, status=0)
    assert done.failing("process") == {"RT-HEALTH-61"}
    final = crossing().fail("job-1", "ANY", retryable=False, at=4.1).event("exited", at=5.0, status=0)
    assert final.failing("process") == {"RT-HEALTH-61"}
    assert crossing(lost=True).event("exited", at=5.0, status=0).status("RT-HEALTH-61") == "untested"


def draining(*beats: float, lock: float = 3.0) -> Tape:
    tape = Tape(lock=lock).poll("job-1", at=1.0).lock("job-1", at=2.0).model("job-1", at=2.1, took=10.0)
    for at in beats:
        tape.heartbeat("job-1", at=at)
    tape.event("signal", signal="TERM", at=4.5).result("job-1", at=12.2)
    return tape.event("exited", at=12.5, status=0)


def test_heartbeats_that_end_at_the_signal_are_told() -> None:
    assert draining(*[2.75 + i * 0.75 for i in range(12)]).failing("process", "heartbeats") == set()
    silent = draining(2.75, 3.5, 4.25)
    assert silent.failing("process") == {"RT-HEALTH-62"}
    assert "RT-HB-64" not in silent.failing()
    assert draining(2.75, 3.5, 4.25, 5.0).failing("process") == {"RT-HEALTH-62"}
    assert draining(17.0, lock=60).status("RT-HEALTH-62") == "untested"


def test_what_it_leaves_is_told() -> None:
    tape = run(until=40).event("signal", signal="TERM", at=10.0).event("exited", at=11.0, status=0)
    tape.entries = [entry for entry in tape.entries if "/result" not in entry["request"]["url"]]
    assert tape.failing("process") == {"RT-HEALTH-63"}
    assert "job-1" in tape.said("RT-HEALTH-63").broken[0].expected


@pytest.mark.parametrize(("code", "retryable", "said"), [("ANY", False, "failed"), ("INVALID_SCHEMA", False, "passed")])
def test_a_failure_for_good_needs_a_reason(code: str, retryable: bool, said: str) -> None:
    tape = run(until=40).event("signal", signal="TERM", at=10.0).fail("job-1", code, retryable=retryable, at=10.2)
    tape.entries = [entry for entry in tape.entries if "/result" not in entry["request"]["url"]]
    assert tape.event("exited", at=11.0, status=0).status("RT-HEALTH-63") == said


def test_a_process_that_does_not_end_is_told() -> None:
    assert Tape().event("signal", signal="TERM", at=3).poll(at=50).failing("process") == {"RT-HEALTH-64"}
    late = Tape().event("signal", signal="TERM", at=3).event("exited", at=45, status=0)
    assert late.failing("process") == {"RT-HEALTH-64"}
    assert Tape().event("signal", signal="TERM", at=3).poll(at=20).status("RT-HEALTH-64") == "untested"
    killed = Tape().event("signal", signal="TERM", at=3).event("signal", signal="KILL", at=34.0)
    assert killed.event("exited", at=34.1, status=-9).status("RT-HEALTH-64") == "failed"
    killed = Tape().event("signal", signal="TERM", at=3).event("signal", signal="KILL", at=10)
    assert killed.event("exited", at=10.1, status=-9).status("RT-HEALTH-64") == "untested"
    assert (
        Tape().event("signal", signal="TERM", at=3).event("exited", at=32, status=3).status("RT-HEALTH-64") == "passed"
    )


def test_what_had_lapsed_before_the_signal_is_not_held() -> None:
    tape = Tape(lock=3).poll("job-1", at=1.0).lock("job-1", at=2.0).model("job-1", at=2.1, took=2.9, lost=True)
    tape.heartbeat("job-1", 503, "INTERNAL_ERROR", at=3.0).heartbeat("job-1", 503, "INTERNAL_ERROR", at=4.0)
    tape.event("signal", signal="TERM", at=6.0).event("exited", at=6.1, status=0)
    assert tape.failing("process") == set()
    assert tape.status("RT-HEALTH-63") == "untested"


def test_who_hears_nothing_may_give_a_job_up_before_its_lock_lapses() -> None:
    def tape(active: int, at: float) -> Tape:
        made = Tape().lock("job-1", at=1).snapshot("job-1").heartbeat("job-1", 503, "INTERNAL_ERROR", at=16)
        made.heartbeat("job-1", 503, "INTERNAL_ERROR", at=31).heartbeat("job-1", 503, "INTERNAL_ERROR", at=46)
        return made.heartbeat("job-1", 503, "INTERNAL_ERROR", at=57).health(active, at=at).poll(at=80)

    assert tape(0, at=56).status("RT-HEALTH-53") == "passed"
    assert tape(0, at=30).status("RT-HEALTH-53") == "failed"
