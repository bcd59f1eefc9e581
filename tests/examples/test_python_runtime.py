"""The Python example: it keeps the rules; its faults are named well."""

import contextlib
import json
import signal
import subprocess
import time

import pytest
from runtime_world import TOKEN, Front, Place, completion, until

from conformance import reference
from conformance.examples.python_runtime.variants import VARIANTS


@pytest.fixture(scope="module")
def mock():
    with reference.serve(TOKEN) as url:
        yield url


@pytest.fixture
def place(mock):
    world = reference.make_world(mock)
    with Front(world) as front:
        yield Place(world, front)
    reference.drop_world(mock, world)


def end(process, seconds=30):
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=seconds)
    assert TOKEN not in output
    return output


def test_jobs_of_every_type_are_done_and_logged(place):
    kinds = (
        "learning_state_analysis",
        "weak_point_analysis",
        "next_action_planning",
        "quiz_generation",
        "flashcard_generation",
    )
    with place.runtime() as process:
        jobs = [place.job(jobType=kind, params={"count": 2}) for kind in kinds]
        for job in jobs:
            place.reaches(job, "succeeded")
        until(lambda: len(place.logs()) == len(jobs), "a log for each call")
        health = until(lambda: (said := place.health())["activeJobs"] == 0 and said, "no job")
        assert end(process) == ""
    assert process.returncode == 0
    assert len({log["traceId"] for log in place.logs()}) == len(jobs)
    assert all(log["success"] and log["totalTokens"] == 17 for log in place.logs())
    assert health["lastJobAt"] > health["startedAt"]
    for result in (place.bodies("submitResult", job)[0] for job in jobs):
        assert result["usage"]["totalTokens"] == 17
        assert result["outputHash"].startswith("sha256-")


def test_only_what_is_named_reaches_the_model(place):
    job = place.job(allowedModelFields=["learningGoal", "constraints"], params={"theme": "slopes"})
    with place.runtime():
        place.reaches(job, "succeeded")
    told = json.loads(place.front.calls[0]["messages"][1]["content"])
    assert told["userProfile"].keys() == {"learningGoal"}
    assert told.keys() == {"userProfile", "constraints", "params"}


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (401, "INVALID_CREDENTIAL", False),
        (403, "INVALID_CREDENTIAL", False),
        (408, "MODEL_TIMEOUT", True),
        (418, "MODEL_REQUEST_REFUSED", False),
        (429, "MODEL_RATE_LIMIT", True),
        (503, "TEMPORARY_PROVIDER_ERROR", True),
        (307, "TEMPORARY_PROVIDER_ERROR", True),
    ],
)
def test_the_models_refusals_are_told_by_their_class(place, status, code, retryable):
    place.front.model = lambda _: (status, {"error": {"message": place.front.keys[-1]}})
    job = place.job(maxRetryCount=0)
    with place.runtime():
        place.reaches(job, "failed")
        until(place.logs, "a log")
    [failure] = place.bodies("failJob", job)
    assert (failure["errorCode"], failure["retryable"]) == (code, retryable)
    assert not place.logs()[0]["success"]


@pytest.mark.parametrize("text", ["Sure!", '{"learningState": "in', "", "[1]", "NaN"])
def test_what_is_no_json_object_is_no_output(place, text):
    place.front.model = lambda _: (200, completion(text))
    job = place.job()
    with place.runtime():
        place.reaches(job, "failed")
    [failure] = place.bodies("failJob", job)
    assert (failure["errorCode"], failure["retryable"]) == ("INVALID_SCHEMA", False)


def test_a_model_that_never_answers_times_out(place):
    place.front.model = lambda _: None
    job = place.job(maxRetryCount=0, timeoutSeconds=3)
    with place.runtime(MODEL_TIMEOUT_MS="1000"):
        place.reaches(job, "failed")
    assert place.bodies("failJob", job)[0]["errorCode"] == "MODEL_TIMEOUT"
    other = place.job(maxRetryCount=0, timeoutSeconds=2)
    with place.runtime(MODEL_TIMEOUT_MS="60000"):
        place.reaches(other, "failed")
    assert place.bodies("failJob", other)[0]["errorCode"] == "JOB_TIMEOUT"


@pytest.mark.parametrize(
    ("params", "code", "retryable"),
    [
        ({"snapshot": "expired"}, "SNAPSHOT_EXPIRED", True),
        ({"snapshot": "missing"}, "INVALID_SNAPSHOT", False),
        ({"snapshot": "none"}, "INVALID_SNAPSHOT", False),
        ({"apiKeyMode": "user_deepseek_key", "credentialId": "stranger"}, "INVALID_CREDENTIAL", False),
    ],
)
def test_without_inputs_there_is_no_model_call(place, params, code, retryable):
    job = place.job(maxRetryCount=0, **params)
    with place.runtime():
        place.reaches(job, "failed")
    [failure] = place.bodies("failJob", job)
    assert (failure["errorCode"], failure["retryable"]) == (code, retryable)
    assert place.front.calls == []


def test_a_cancelled_job_is_stopped_at_once(place):
    place.front.model = lambda _: None
    job = place.job(userId="leaving")
    with place.runtime():
        until(lambda: place.front.calls, "a model call")
        place.state("revoke-ai-consent", userId="leaving")
        row = place.reaches(job, "cancelled")
        until(place.logs, "the log of the call that was aborted")
    assert row["errorCode"] == "JOB_CANCELLED"
    assert [body["retryable"] for body in place.bodies("failJob", job)] == [False]
    assert not place.logs()[0]["success"]


def test_a_lock_that_no_heartbeat_keeps_is_given_up(place):
    place.front.model = lambda _: None
    place.fault({"kind": "hang"}, operationId="heartbeatJob")
    job = place.job()
    with place.runtime(HEARTBEAT_INTERVAL_MS="250"):
        until(place.logs, "the log of the call that was aborted")
        assert place.health()["activeJobs"] == 0
    assert place.bodies("failJob", job) == place.bodies("submitResult", job) == []


def test_a_lock_lost_by_an_answer_is_given_up(place):
    place.front.model = lambda _: None
    place.fault({"kind": "status", "status": 409}, operationId="heartbeatJob", when={"from": 2})
    job = place.job()
    with place.runtime():
        until(place.logs, "the log of the call that was aborted")
        until(lambda: place.health()["activeJobs"] == 0, "no job")
    assert place.bodies("failJob", job) == []
    assert len(place.journal("heartbeatJob", job)) == 2


@pytest.mark.parametrize("fault", [{"kind": "reset", "at": "after-commit"}, {"kind": "status", "status": 502}])
def test_a_result_is_sent_again_until_it_is_answered(place, fault):
    place.fault(fault, operationId="submitResult", when={"nth": [1, 2]})
    job = place.job()
    with place.runtime():
        until(lambda: len(place.journal("submitResult", job)) == 3, "three tries")
        place.reaches(job, "succeeded")
    sent = place.bodies("submitResult", job)
    assert sent[0] == sent[1] == sent[2]


def test_a_refused_result_is_a_failure(place):
    place.fault({"kind": "status", "status": 422}, operationId="submitResult")
    job = place.job()
    with place.runtime():
        place.reaches(job, "failed")
    assert len(place.journal("submitResult", job)) == 1
    assert place.bodies("failJob", job)[0]["errorCode"] == "INVALID_SCHEMA"


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "status", "status": 500},
        {"kind": "status", "status": 401},
        {"kind": "truncated-json"},
        {"kind": "wrong-types"},
        {"kind": "empty"},
        {"kind": "status", "status": 418, "errorCode": "IM_A_TEAPOT"},
    ],
)
def test_odd_poll_answers_are_survived(place, fault):
    place.fault(fault, operationId="pollJobs", when={"nth": [1, 2]})
    job = place.job()
    with place.runtime():
        place.reaches(job, "succeeded")


def test_a_refused_lock_lets_others_go_first(place):
    refused, other = place.job(priority=0), place.job(priority=1)
    place.fault({"kind": "status", "status": 409}, operationId="lockJob", jobId=refused)
    with place.runtime(RUNTIME_VARIANT="one-at-a-time"):
        place.reaches(other, "succeeded")
    assert place.journal("getSnapshot", refused) == []


def test_a_late_api_is_waited_for(place):
    job = place.job()
    place.fault({"kind": "close"}, when={"nth": [1, 2, 3]}, operationId="pollJobs")
    with place.runtime():
        place.reaches(job, "succeeded")


def test_a_signal_lets_the_running_call_end_and_takes_nothing_new(place):
    gate = [True]
    place.front.model = lambda body: place.front.good(body) if until(lambda: not gate, "the gate") is True else None
    job = place.job()
    with place.runtime() as process:
        until(lambda: place.front.calls, "a model call")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        until(lambda: place.health()["status"] == "draining", "it drains")
        late = place.job()
        beats = len(place.journal("heartbeatJob", job))
        until(lambda: len(place.journal("heartbeatJob", job)) > beats + 1, "heartbeats go on")
        gate.clear()
        assert process.wait(timeout=10) == 0
    assert place.columns(job)["status"] == "succeeded"
    assert place.columns(late)["status"] == "pending"
    assert len(place.logs()) == 1


def test_a_call_that_does_not_end_is_failed_before_the_exit(place):
    place.front.model = lambda _: None
    job = place.job()
    with place.runtime(MODEL_TIMEOUT_MS="60000") as process:
        until(lambda: place.front.calls, "a model call")
        started = time.monotonic()
        end(process)
        assert time.monotonic() - started < 20
    assert place.bodies("failJob", job)[0]["retryable"] is True
    assert [log["success"] for log in place.logs()] == [False]


def test_a_lock_granted_after_the_signal_is_given_back(place):
    place.fault({"kind": "delay", "seconds": 1, "at": "answer"}, operationId="lockJob")
    job = place.job()
    with place.runtime() as process:
        place.reaches(job, "locked")
        end(process)
    assert [body["retryable"] for body in place.bodies("failJob", job)] == [True]
    assert place.front.calls == []


@pytest.mark.parametrize("after", [0.0, 0.05, 0.1, 0.2])
def test_an_early_signal_ends_it(place, after):
    with place.runtime() as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=after)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_does_jobs(place, variant):
    place.fault({"kind": "reset", "at": "after-commit"}, operationId="lockJob", when={"nth": [2]})
    jobs = [place.job(), place.job()]
    with place.runtime("--variant", variant) as process:
        until(lambda: "succeeded" in [place.columns(job)["status"] for job in jobs], "one is done")
        end(process)
    assert place.logs()
    assert process.returncode == 0
