"""Recordings are read into histories: ours, and those that know nothing of ours."""

from __future__ import annotations

import json

import pytest

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.recorded import RecordingError, histories, parse
from tests.runtime_suite.tape import Tape


def test_a_hold_has_all_that_was_done_about_its_job_up_to_the_next_grant() -> None:
    history = Tape().poll("job-1").whole("job-1").lock("job-1", grant={"attemptNo": 1}).heartbeat("job-1").history
    first, second = history.holds
    assert [call.operation for call in first.calls] == [
        "heartbeatJob",
        "getSnapshot",
        "resolveCredential",
        MODEL,
        "submitResult",
    ]
    assert first.next_lock is second.lock
    assert first.settled is not None
    assert first.settled.operation == "submitResult"
    assert [call.operation for call in second.calls] == ["heartbeatJob"]
    assert second.granted("attemptNo") == 1
    assert second.end is None


def test_a_grant_whose_answer_was_lost_is_a_hold_that_the_runtime_does_not_know_of() -> None:
    history = Tape().lock("job-1", lost=True).heartbeat("job-1").history
    [hold] = history.holds
    assert not hold.lock.heard
    assert hold.known == pytest.approx(hold.heartbeats[0].ended)


def test_a_refused_lock_is_no_hold() -> None:
    assert Tape().lock("job-1", 409).snapshot("job-1", 409, "LOCK_NOT_HELD").history.holds == []


def test_model_calls_belong_to_the_job_of_the_resolve_that_gave_their_base_url() -> None:
    tape = Tape().lock("job-1").resolve("job-1").lock("job-2").resolve("job-2")
    for entry in tape.model("job-2").model("job-1").entries:
        entry.pop("_model", None)
    calls = tape.history.of(MODEL)
    assert [call.job for call in calls] == ["job-2", "job-1"]


def test_an_answer_that_was_cut_was_not_heard_and_one_that_was_spoilt_is_as_the_client_got_it() -> None:
    part = {"plans": [], "handled": True, "got": "part", "bytes": 4}
    odd = {"plans": [], "handled": True, "got": "altered", "body": '{"jobs": null}'}
    first, second = Tape().poll("job-1", _fault=part).poll("job-1", _fault=odd).history.polls
    assert (first.heard, first.answer_text) == (False, '{"jo')
    assert (second.heard, second.garbled, second.answer) == (True, True, {"jobs": None})


def test_other_runtimes_of_the_world_are_told_apart() -> None:
    tape = Tape().lock("job-1", by="rival-1").lock("job-1", 409)
    tape.runtime["others"] = ["rival-1"]
    history = tape.history
    assert [call.status for call in history.calls] == [409]
    assert [call.status for call in history.others] == [200]


def test_a_recording_that_knows_nothing_of_scenarios_gives_a_history_for_each_instance() -> None:
    log = Tape().poll("job-1").lock("job-1").poll(by="runtime-b", body={"runtimeInstanceId": "runtime-b"}).log_document
    del log["_scenarios"]
    found = histories(log)
    assert [(history.facts.instance_id, len(history.calls)) for history in found] == [
        ("runtime-a", 2),
        ("runtime-b", 1),
    ]
    assert found[0].facts.lock == 60


def test_what_another_tool_recorded_of_other_hosts_is_left_out() -> None:
    log = Tape().poll().call("GET", "/style.css").call("GET", "/internal/other").log_document
    del log["_scenarios"]
    log["entries"][1]["request"]["url"] = "https://example.com/style.css"
    [history] = histories(log)
    assert [call.path for call in history.calls] == ["/internal/runtime/jobs/poll", "/internal/other"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "it is no JSON"),
        ("[]", "/log/entries is missing"),
        ('{"log": {}}', "/log/entries is missing"),
    ],
)
def test_what_is_no_archive_is_told(text: str, said: str) -> None:
    with pytest.raises(RecordingError, match=said):
        parse(text)


def test_an_entry_that_can_not_be_read_is_told_with_its_place() -> None:
    log = Tape().poll().poll().log_document
    log["entries"][1]["startedDateTime"] = "yesterday"
    with pytest.raises(RecordingError, match="/log/entries/1/startedDateTime is no ISO 8601"):
        histories(parse(json.dumps({"log": log})))
    del log["entries"][0]["response"]
    log["entries"].pop()
    with pytest.raises(RecordingError, match="/log/entries/0 is no exchange"):
        histories(log)
