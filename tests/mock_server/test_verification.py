"""Expectations held against hand-made histories, good and bad."""

from __future__ import annotations

import pytest
from histories import JOB, START, History

from mock_server.journal import MAX_BODY
from mock_server.verification import Expectation, in_order, report

LOCKED = {"operationId": "lockJob", "jobId": JOB, "status": 200}
TWO_LOCKS = {"calls": LOCKED, "count": {"exactly": 2}}
BEATS = {
    "calls": {"operationId": "heartbeatJob", "jobId": JOB},
    "after": LOCKED,
    "before": {"operationId": ["submitResult", "failJob"]},
    "maxGapSeconds": 30,
}
SILENCE = {"calls": {"jobId": JOB}, "after": {"jobId": JOB, "status": 409}, "count": {"exactly": 0}}
ORDER = {
    "calls": {"jobId": JOB},
    "order": [
        {"operationId": "lockJob", "status": 200},
        {"operationId": "getSnapshot"},
        {"operationId": "resolveCredential"},
        {"operationId": "submitResult"},
    ],
}
HEADER = {"every": {"requestHeaders": {"X-Runtime-Instance-Id": True}}}


def h():
    return History()


def judged(expectation, history, lost=0):
    return Expectation(expectation).judge(in_order(history.entries), lost).document()


GOOD = {
    "two locks of this job, one of another": (TWO_LOCKS, h().lock().lock().lock(job_id="job-2")),
    "a refused lock is none": (TWO_LOCKS, h().lock().lock(409).lock()),
    "at most": ({"calls": LOCKED, "count": {"atMost": 1}}, h().heartbeat()),
    "at least and at most": ({"calls": LOCKED, "count": {"atLeast": 1, "atMost": 2}}, h().lock().lock()),
    "heartbeats in time": (BEATS, h().lock().wait(30).heartbeat().wait(29).heartbeat().wait(30).result()),
    "heartbeats of another job do not matter": (
        BEATS,
        h().lock().wait(20).heartbeat().wait(5).heartbeat(job_id="job-2").wait(10).result(),
    ),
    "a job that is done before its first heartbeat": (
        {**BEATS, "count": {"atLeast": 0}},
        h().lock().wait(10).result(),
    ),
    "silent after the conflict": (SILENCE, h().lock().heartbeat(409).lock(job_id="job-2")),
    "what came before the conflict does not matter": (SILENCE, h().lock().heartbeat().heartbeat(409)),
    "no conflict, where that may be": ({**SILENCE, "optional": True}, h().lock().heartbeat()),
    "the order": (ORDER, h().lock().snapshot().resolve().heartbeat().result()),
    "the order, with a step again": (ORDER, h().lock().snapshot().lock().snapshot(410).resolve().result()),
    "the order, a step twice": (
        {"order": [{"operationId": "lockJob"}, {"operationId": "heartbeatJob"}, {"operationId": "lockJob"}]},
        h().lock().lock().heartbeat().lock(),
    ),
    "every call has the header": (HEADER, h().lock().heartbeat()),
    "first and last": (
        {"calls": {"jobId": JOB}, "first": {"operationId": "lockJob"}, "last": {"operationId": "submitResult"}},
        h().lock().heartbeat().result(),
    ),
    "polls a second apart": (
        {"calls": {"operationId": "pollJobs"}, "minGapSeconds": 1},
        h().call("pollJobs").wait(1).call("pollJobs").wait(2).call("pollJobs"),
    ),
    "a pause after 429": (
        {"calls": {}, "after": {"status": 429}, "minGapSeconds": 5},
        h().call("pollJobs", 429).wait(5).call("pollJobs"),
    ),
    "a part of a body": (
        {"calls": {"requestBody": {"usage": {"totalTokens": 5}, "tags": [1, "a"]}}},
        h().result(sent={"usage": {"totalTokens": 5.0, "more": 1}, "tags": [1, "a"], "status": "succeeded"}),
    ),
    "null is a value": ({"calls": {"requestBody": {"rawOutput": None}}}, h().result(sent={"rawOutput": None})),
    "classes of status": ({"calls": {"status": ["2xx", 409]}, "count": {"exactly": 2}}, h().lock().lock(409).lock(404)),
    "no such header": ({"calls": {"requestHeaders": {"origin": False}}}, h().lock()),
    "a header's value": ({"calls": {"requestHeaders": {"x-runtime-instance-id": "runtime-1"}}}, h().lock()),
    "each job on its own": (
        {"per": "jobId", "calls": {"operationId": "lockJob"}, "count": {"exactly": 1}},
        h().lock().lock(job_id="job-2").call("pollJobs", job_id=None),
    ),
    "each conflict's job on its own": (
        {"per": "jobId", "calls": {}, "after": {"status": 409}, "count": {"exactly": 0}},
        h().lock(409).lock(job_id="job-2").heartbeat(job_id="job-2"),
    ),
}


@pytest.mark.parametrize(("expectation", "history"), GOOD.values(), ids=GOOD)
def test_it_holds(expectation, history):
    answer = judged(expectation, history)
    assert (answer["verdict"], answer["ok"]) == ("ok", True), answer["message"]
    assert "firstDifference" not in answer
    assert answer["nearMisses"] == []


BAD = {
    "a lock too few": (
        TWO_LOCKS,
        h().lock().lock(409),
        "expected exactly 2 x lockJob of job-1 answered 200, but 1 came: #1. "
        "The nearest is #2 lockJob (answered 409): /status is 409, expected 200.",
        {"at": "/count", "expected": "exactly 2", "actual": 1},
    ),
    "none at all": (
        {"calls": LOCKED},
        h().call("pollJobs", job_id=None),
        "expected at least 1 x lockJob of job-1 answered 200, but none came. "
        "The nearest is #1 pollJobs (answered 200): "
        "/operationId is pollJobs, expected lockJob; /jobId is missing, expected job-1.",
        {"at": "/count", "expected": "at least 1", "actual": 0},
    ),
    "a lock too many": (
        TWO_LOCKS,
        h().lock().lock().lock(),
        "expected exactly 2 x lockJob of job-1 answered 200, but 3 came: #1, #2, #3.",
        {"number": 3, "at": "/count", "expected": "exactly 2", "actual": 3},
    ),
    "a late heartbeat": (
        BEATS,
        h().lock().wait(20).heartbeat().wait(30.001).heartbeat().result(),
        "30.001 s passed between #2 heartbeatJob (answered 204) and #3 heartbeatJob (answered 204), at most 30 s may.",
        {"number": 3, "at": "/at", "expected": "at most 30 s later", "actual": 30.001},
    ),
    "a late first heartbeat": (
        BEATS,
        h().lock().wait(42).heartbeat().result(),
        "42 s passed between #1 lockJob (answered 200) and #2 heartbeatJob (answered 204), at most 30 s may.",
        {"number": 2, "at": "/at", "expected": "at most 30 s later", "actual": 42},
    ),
    "no heartbeat up to the report": (
        BEATS,
        h().lock().wait(5).heartbeat().wait(60).result(),
        "60 s passed between #2 heartbeatJob (answered 204) and #3 submitResult (answered 200), at most 30 s may.",
        {"number": 3, "at": "/at", "expected": "at most 30 s later", "actual": 60},
    ),
    "no report": (
        BEATS,
        h().lock().heartbeat(),
        "nothing is `before` (submitResult or failJob), so there is nothing to look at.",
        {"at": "/before", "expected": "submitResult or failJob"},
    ),
    "a request after the conflict": (
        SILENCE,
        h().lock().heartbeat(409).heartbeat(409),
        "expected exactly 0 x calls of job-1, but 1 came: #3.",
        {"number": 3, "at": "/count", "expected": "exactly 0", "actual": 1},
    ),
    "no conflict": (
        SILENCE,
        h().lock().heartbeat(),
        "nothing is `after` (calls of job-1 answered 409), so there is nothing to look at. "
        "The nearest is #2 heartbeatJob (answered 204): /status is 204, expected 409.",
        {"at": "/after", "expected": "calls of job-1 answered 409"},
    ),
    "a snapshot before the lock": (
        ORDER,
        h().snapshot().lock().snapshot().resolve().result(),
        "#1 getSnapshot (answered 200) came before lockJob answered 200.",
        {"number": 1, "at": "/order", "expected": "lockJob answered 200", "actual": "getSnapshot"},
    ),
    "a step left out": (
        ORDER,
        h().lock().snapshot().result(),
        "#3 submitResult (answered 200) came before resolveCredential.",
        {"number": 3, "at": "/order", "expected": "resolveCredential", "actual": "submitResult"},
    ),
    "an end left out": (
        ORDER,
        h().lock().snapshot().resolve(),
        "submitResult did not come after #3 resolveCredential (answered 200).",
        {"at": "/order/3", "expected": "submitResult"},
    ),
    "a call without the header": (
        HEADER,
        h().lock().heartbeat(400, headers={"x-runtime-instance-id": ""}),
        "#2 heartbeatJob (answered 400): /requestHeaders/x-runtime-instance-id is missing, expected a value.",
        {"number": 2, "at": "/requestHeaders/x-runtime-instance-id", "expected": "a value"},
    ),
    "another end": (
        {"calls": {"jobId": JOB}, "last": {"operationId": "submitResult"}},
        h().lock().result().heartbeat(409, error_code="LOCK_NOT_HELD"),
        "the last call, #3 heartbeatJob (answered 409 LOCK_NOT_HELD): "
        "/operationId is heartbeatJob, expected submitResult.",
        {"number": 3, "at": "/operationId", "expected": "submitResult", "actual": "heartbeatJob"},
    ),
    "polls too fast": (
        {"calls": {"operationId": "pollJobs"}, "minGapSeconds": 1},
        h().call("pollJobs").wait(0.25).call("pollJobs"),
        "only 0.25 s passed between #1 pollJobs (answered 200) and #2 pollJobs (answered 200), at least 1 s must.",
        {"number": 2, "at": "/at", "expected": "at least 1 s later", "actual": 0.25},
    ),
    "another body": (
        {"calls": {"operationId": "submitResult", "requestBody": {"attemptNo": 1, "usage": {"a": True}}}},
        h().result(sent={"attemptNo": 0, "usage": {"a": 1}}),
        'expected at least 1 x submitResult with requestBody {"attemptNo":1,"usage":{"a":true}}, but none came. '
        "The nearest is #1 submitResult (answered 200): "
        "/requestBody/attemptNo is 0, expected 1; /requestBody/usage/a is 1, expected true.",
        {"at": "/count", "expected": "at least 1", "actual": 0},
    ),
    "one job of two": (
        {"per": "jobId", "calls": {"operationId": "lockJob"}, "count": {"exactly": 1}},
        h().lock().lock(job_id="job-2").lock(job_id="job-2"),
        "jobId job-2: expected exactly 1 x lockJob, but 2 came: #2, #3.",
        {"number": 3, "at": "/count", "expected": "exactly 1", "actual": 2},
    ),
    "no job at all": (
        {"per": "jobId", "calls": {"operationId": "lockJob"}},
        h().call("pollJobs", job_id=None),
        "expected at least 1 x lockJob, but none came.",
        {"at": "/count", "expected": "at least 1", "actual": 0},
    ),
}


@pytest.mark.parametrize(("expectation", "history", "message", "difference"), BAD.values(), ids=BAD)
def test_it_does_not_hold_and_says_why(expectation, history, message, difference):
    answer = judged(expectation, history)
    assert (answer["verdict"], answer["ok"]) == ("failed", False)
    assert answer["message"] == message
    assert answer["firstDifference"] == difference


def test_near_misses_are_those_with_the_fewest_differences_the_latest_first():
    history = (
        h().lock(409).lock(409, caller="runtime-2").call("pollJobs", job_id=None).lock(409).heartbeat(job_id="job-2")
    )
    answer = judged({"calls": {**LOCKED, "caller": "runtime-1"}}, history)
    assert [(item["number"], len(item["differs"])) for item in answer["nearMisses"]] == [(4, 1), (1, 1), (3, 2)]
    assert answer["nearMisses"][0]["differs"] == [{"at": "/status", "expected": 200, "actual": 409}]


def test_what_has_nothing_in_common_is_no_near_miss():
    assert judged({"calls": {"operationId": "lockJob"}}, h().heartbeat())["nearMisses"] == []


@pytest.mark.parametrize("history", [h(), h().lock(), h().lock().lock()], ids=["none", "one", "two"])
def test_where_the_journal_dropped_calls_it_can_not_be_told(history):
    answer = judged(TWO_LOCKS, history, lost=500)
    assert (answer["verdict"], answer["ok"]) == ("unknown", False)
    assert "dropped 500 of the calls concerned" in answer["message"]


def test_where_a_body_is_cut_it_can_not_be_told():
    cut = {"request_body": '{"attemptNo":0', "request_bytes": MAX_BODY + 1}
    wanted = {"calls": {"operationId": "submitResult", "requestBody": {"attemptNo": 1}}}
    answer = judged(wanted, h().result(**cut))
    assert answer["verdict"] == "unknown"
    assert "#1 is cut in the journal" in answer["message"]
    # A call that can't be meant does not matter.
    assert judged(wanted, h().heartbeat(**cut).result(sent={"attemptNo": 1}))["verdict"] == "ok"


def test_a_call_that_was_under_way_at_the_conflict_was_not_made_after_it():
    begun = {"real_at": float(START), "duration_ms": 2000.0}
    history = h().lock(real_at=START - 1.0).heartbeat(409, real_at=START + 1000.0).heartbeat(**begun)
    assert judged(SILENCE, history)["verdict"] == "ok"
    assert judged(SILENCE, history.heartbeat(real_at=START + 1000.6))["entries"] == [4]


def test_only_too_many_wrong_or_too_fast_calls_are_final():
    def final(expectation, history):
        return Expectation(expectation).judge(in_order(history.entries)).problem.final

    assert final(TWO_LOCKS, h().lock().lock().lock())
    assert final(HEADER, h().lock(headers={}))
    assert not final(TWO_LOCKS, h().lock())
    assert not final(ORDER, h().lock())


def test_the_answer_tells_all_that_does_not_hold():
    entries = in_order(h().lock().heartbeat().entries)
    wanted = [{**TWO_LOCKS, "name": "locks"}, HEADER, {**SILENCE, "name": "silence"}]
    answer = report([Expectation(item).judge(entries) for item in wanted])
    assert (answer["ok"], answer["verdict"]) == (False, "failed")
    assert [line.partition(":")[0] for line in answer["message"].splitlines()] == ["locks", "silence"]
    assert report([Expectation(HEADER).judge(entries)])["message"] == "All 1 hold."
    assert report([Expectation(HEADER).judge(entries, lost=1)])["verdict"] == "unknown"


def test_an_expectation_without_a_name_is_named_by_its_calls():
    assert judged({"calls": LOCKED}, h().lock())["name"] == "lockJob of job-1 answered 200"


def test_a_long_list_is_cut():
    history = h()
    for _ in range(150):
        history.heartbeat()
    answer = judged({"calls": {}}, history)
    assert (answer["matched"], len(answer["entries"])) == (150, 100)
    assert "and 140 more" in answer["message"]
