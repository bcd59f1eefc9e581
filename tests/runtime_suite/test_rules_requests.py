"""Monitors of what stands in every request, and of what a Runtime makes of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime_suite.tape import BASE, ME, Tape

AREAS = ("requests", "errors")
RULES = ("RT-AUTH-02", "RT-AUTH-04", "RT-AUTH-09", "RT-AUTH-60", "RT-AUTH-64", "RT-DB-38")
FAULTED: dict[str, Any] = {"plans": [{"id": "f", "kind": "status"}], "handled": False, "got": "whole"}


def test_a_normal_life_keeps_them() -> None:
    tape = Tape().poll().poll("job-1").whole("job-1").poll()
    assert [tape.status(rule) for rule in RULES] == ["passed"] * len(RULES)
    assert tape.failing() == set()


def test_nothing_is_said_without_requests() -> None:
    rules = (*RULES, "RT-AUTH-61", "RT-AUTH-62", "RT-ERR-16", "RT-ERR-84", "RT-ERR-85")
    assert {Tape().status(rule) for rule in rules} == {"untested"}


def test_header_names_of_any_case_and_a_closed_connection_are_right() -> None:
    sent = {"x-internal-api-key": "", "X-Internal-Api-Key": "[redacted]", "connection": "close"}
    assert Tape().poll(headers=sent).failing() == set()


@pytest.mark.parametrize(("key", "status"), [("", 401), (None, 401)])
def test_a_request_without_the_right_key_is_told(key: str | None, status: int) -> None:
    tape = Tape().poll(status=status, headers={} if key is None else {"x-internal-api-key": key})
    [finding] = tape.said("RT-AUTH-02").broken
    assert tape.failing(*AREAS) == {"RT-AUTH-02"}
    assert finding.call is not None
    assert finding.call.operation == "pollJobs"


def test_a_planned_401_is_no_wrong_key() -> None:
    assert Tape().poll(status=401, _fault=FAULTED).poll().status("RT-AUTH-02") == "passed"


def test_a_request_without_the_instance_id_is_told() -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1", headers={"x-runtime-instance-id": ""})
    assert tape.failing(*AREAS) == {"RT-AUTH-04"}
    assert "getSnapshot of job-1 without it" in tape.said("RT-AUTH-04").broken[0].actual


@pytest.mark.parametrize(
    "sent",
    [
        {"headers": {"x-runtime-instance-id": "another"}},
        {"body": {"runtimeInstanceId": "another"}},
    ],
)
def test_another_id_in_header_or_body_is_told(sent: dict[str, Any]) -> None:
    tape = Tape().poll("job-1").lock("job-1", **sent)
    assert tape.failing(*AREAS) == {"RT-AUTH-60"}
    assert "'another'" in tape.said("RT-AUTH-60").broken[0].actual


def test_another_id_in_a_log_is_told() -> None:
    tape = Tape().poll("job-1").whole("job-1").log("job-1", entry={"runtimeInstanceId": "another"})
    assert tape.status("RT-AUTH-60") == "failed"


def test_a_job_that_no_poll_listed_is_told() -> None:
    tape = Tape().poll().lock("job-9")
    assert tape.failing(*AREAS) == {"RT-AUTH-09"}


def test_a_job_of_a_poll_that_could_not_be_read_is_not() -> None:
    altered = {"plans": [{"id": "f", "kind": "patch"}], "handled": True, "got": "altered", "body": "{}"}
    assert Tape().poll("job-9", _fault=altered).lock("job-9").status("RT-AUTH-09") == "untested"


@pytest.mark.parametrize("path", ["/v1/jobs", "/health", "/__control__/worlds", f"{BASE}/../../v1/jobs"])
def test_other_paths_are_told(path: str) -> None:
    tape = Tape().call("GET", path, status=404)
    assert tape.failing(*AREAS) >= {"RT-AUTH-64"}
    assert path in tape.said("RT-AUTH-64").broken[0].actual


def test_wrong_paths_of_the_model_are_no_paths_of_the_api() -> None:
    assert Tape().call("POST", "/__model__/x/v1/completions", {}, 404).status("RT-AUTH-64") == "untested"


@pytest.mark.parametrize("path", ["/jobs/next", "/jobs/job-1/complete", "/invocationLogs"])
def test_endpoints_of_other_names_are_told(path: str) -> None:
    assert Tape().call("POST", BASE + path, {"a": 1}, 404).failing(*AREAS) == {"RT-DB-38"}


@pytest.mark.parametrize("wrong", ["runtime_instance_id", "RuntimeInstanceId", "runtimeInstanceID"])
def test_fields_of_other_spelling_are_told(wrong: str) -> None:
    tape = (
        Tape()
        .poll("job-1")
        .call("POST", f"{BASE}/jobs/job-1/lock", {wrong: ME}, 400, Tape().error("INVALID_REQUEST", 400))
    )
    assert tape.failing(*AREAS) == {"RT-DB-38"}
    assert tape.said("RT-DB-38").broken[0].actual == f"the field {wrong}"


def test_fields_inside_are_judged_as_far_as_the_contract_names_them() -> None:
    tape = Tape().poll("job-1").whole("job-1")
    body = {"capabilities": {"supported_snapshot_versions": ["ai_snapshot_v1"]}}
    assert tape.poll(body=body).status("RT-DB-38") == "failed"
    inner = {"validatedOutput": {"total_tokens": 1}, "rawOutput": {"job_id": 1}, "extra": 1}
    assert Tape().poll("job-1").whole("job-1").result("job-1", body=inner).status("RT-DB-38") == "passed"


# 401 and 403


def refused(what: str, times: int, **more: Any) -> Tape:
    tape = Tape().poll("job-1")
    if what != "lock":
        tape.lock("job-1")
    for _ in range(times):
        getattr(tape, what)("job-1", 401, "UNAUTHORIZED", _fault=FAULTED, **more)
    return tape


@pytest.mark.parametrize("what", ["lock", "heartbeat", "snapshot", "resolve", "result"])
def test_a_refused_request_may_be_sent_once_more(what: str) -> None:
    assert refused(what, 1).poll().status("RT-AUTH-61") == "passed"
    assert refused(what, 2).poll().status("RT-AUTH-61") == "passed"
    tape = refused(what, 3).poll()
    assert tape.failing(*AREAS) == {"RT-AUTH-61"}
    assert "3 times" in tape.said("RT-AUTH-61").broken[0].actual


def test_a_lock_that_a_poll_lists_again_is_a_new_request() -> None:
    tape = Tape()
    for _ in range(4):
        tape.poll("job-1").lock("job-1", 401, "UNAUTHORIZED", _fault=FAULTED)
    assert tape.poll().failing(*AREAS) == set()


def test_polls_go_on_after_refusals_at_their_interval() -> None:
    tape = Tape()
    for _ in range(6):
        tape.poll(status=401, _fault=FAULTED)
    assert tape.poll().failing() == set()
    assert tape.status("RT-AUTH-62") == "passed"


def test_polls_that_are_repeated_at_once_are_told() -> None:
    tape = Tape()
    tape.step = 0.02
    for _ in range(4):
        tape.poll(status=401, _fault=FAULTED)
    assert tape.status("RT-AUTH-61") == "failed"


def test_the_model_may_refuse_as_often_as_it_likes() -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1").resolve("job-1")
    for _ in range(4):
        tape.model("job-1", 401, outcome="status")
    assert tape.status("RT-AUTH-61") == "untested"


def test_no_poll_after_a_refusal_is_told() -> None:
    tape = Tape().poll(status=401, _fault=FAULTED).event("note", at=30.0, text="end")
    assert tape.failing(*AREAS, "polling") == {"RT-AUTH-62"}
    assert Tape().poll(status=401, _fault=FAULTED).event("note", at=8.0, text="end").status("RT-AUTH-62") == "untested"


def test_an_exit_after_a_refusal_is_told_unless_it_was_ordered() -> None:
    tape = Tape().poll(status=403, _fault=FAULTED).event("exited", status=1)
    assert tape.failing(*AREAS, "polling") == {"RT-AUTH-62"}
    ordered = Tape().poll(status=403, _fault=FAULTED).event("signal", signal="TERM").event("exited", status=0)
    assert ordered.status("RT-AUTH-62") == "untested"
    assert Tape().poll(status=403, _fault=FAULTED).event("exited", status=-9).status("RT-AUTH-62") == "untested"


# Codes


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        ("snapshot", 404, "SNAPSHOT_NOT_FOUND"),
        ("resolve", 422, "CREDENTIAL_INVALID"),
        ("result", 409, "RESULT_ALREADY_EXISTS"),
    ],
)
def test_what_is_not_retryable_is_not_repeated(what: str, status: int, code: str) -> None:
    good = getattr(Tape().poll("job-1").lock("job-1"), what)("job-1", status, code).poll(at=9)
    assert good.status("RT-ERR-16") == "passed"
    bad = getattr(getattr(Tape().poll("job-1").lock("job-1"), what)("job-1", status, code), what)("job-1", status, code)
    assert bad.failing(*AREAS) == {"RT-ERR-16"}
    assert code in bad.said("RT-ERR-16").broken[0].expected


def test_what_is_retryable_may_be_repeated() -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1", 500, "INTERNAL_ERROR").snapshot("job-1").poll(at=9)
    assert tape.status("RT-ERR-16") == "untested"


def test_a_job_that_is_not_there_is_not_locked_again_unless_listed() -> None:
    gone = Tape().poll("job-1").lock("job-1", 404, "JOB_NOT_FOUND")
    assert gone.status("RT-ERR-16") == "passed"
    assert gone.lock("job-1", 404, "JOB_NOT_FOUND").status("RT-ERR-16") == "failed"
    listed = Tape().poll("job-1").lock("job-1", 404, "JOB_NOT_FOUND").poll("job-1").lock("job-1")
    assert listed.status("RT-ERR-16") == "untested"


NEW = "SOMETHING_NEW"


def test_a_lock_refused_with_an_unknown_code_is_a_refused_lock() -> None:
    good = Tape().poll("job-1").lock("job-1", 409, NEW).poll().poll().poll().poll().poll()
    assert (good.status("RT-ERR-84"), good.status("RT-ERR-85")) == ("passed", "passed")
    assert Tape().poll("job-1").lock("job-1", 409, NEW).snapshot("job-1").status("RT-ERR-84") == "failed"


def test_a_report_refused_with_an_unknown_code_is_judged_by_its_status() -> None:
    held = Tape().poll("job-1").lock("job-1").result("job-1", 503, NEW)
    assert held.status("RT-ERR-84") == "untested"
    assert held.result("job-1").status("RT-ERR-84") == "passed"
    never = Tape().poll("job-1").lock("job-1").result("job-1", 503, NEW).poll(at=30)
    assert never.status("RT-ERR-84") == "failed"
    short = Tape(lock=3).poll("job-1").lock("job-1").result("job-1", 503, NEW).poll(at=6)
    assert short.status("RT-ERR-84") == "failed"
    assert (
        Tape().poll("job-1").lock("job-1").result("job-1", 422, NEW).result("job-1", 422, NEW).status("RT-ERR-84")
        == "failed"
    )


@pytest.mark.parametrize(
    ("status", "retryable", "said"),
    [
        (404, False, "passed"),
        (404, True, "failed"),
        (410, True, "passed"),
        (410, False, "failed"),
        (503, False, "failed"),
    ],
)
def test_a_snapshot_refused_with_an_unknown_code_is_judged_by_its_status(
    status: int, retryable: bool, said: str
) -> None:
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1", status, NEW).fail("job-1", "X", retryable=retryable)
    assert tape.status("RT-ERR-84") == said


def test_the_words_of_a_status_are_no_unknown_code() -> None:
    assert (
        Tape().poll(status=503, answer=Tape().error("SERVICE_UNAVAILABLE", 503)).poll().status("RT-ERR-85")
        == "untested"
    )


def altered(**body: Any) -> dict[str, Any]:
    import json

    return {"plans": [{"id": "f", "kind": "patch"}], "handled": True, "got": "altered", "body": json.dumps(body)}


def test_an_unknown_property_does_not_stop_it() -> None:
    odd = altered(jobs=[], hint="x")
    assert Tape().poll(_fault=odd).poll().status("RT-ERR-85") == "passed"
    silent = Tape().poll(_fault=odd).event("note", at=30.0, text="end")
    assert silent.failing(*AREAS, "polling") == {"RT-ERR-85"}
    assert "unknown property hint" in silent.said("RT-ERR-85").broken[0].expected
    assert Tape().poll(_fault=odd).event("exited", status=101).failing(*AREAS, "polling") == {"RT-ERR-85"}


def test_an_unknown_property_does_not_fail_the_job() -> None:
    odd = {"content": {"hint": 1}}
    tape = Tape().poll("job-1").lock("job-1").snapshot("job-1", **odd)
    assert tape.fail("job-1", "INVALID_SNAPSHOT", retryable=False).failing(*AREAS) == {"RT-ERR-85"}
    dropped = Tape().poll("job-1").lock("job-1", grant={"hint": 1}).poll(at=100)
    assert dropped.failing(*AREAS) == {"RT-ERR-85"}
    assert Tape().poll("job-1").lock("job-1", grant={"hint": 1}).poll().status("RT-ERR-85") == "untested"
    unread = Tape()
    for _ in range(20):
        unread.poll(Tape.entry("job-1", hint=1))
    assert unread.failing(*AREAS, "polling") == {"RT-ERR-85"}
    good = Tape().poll("job-1").lock("job-1").snapshot("job-1", **odd).resolve("job-1").model("job-1").result("job-1")
    assert good.status("RT-ERR-85") == "passed"
