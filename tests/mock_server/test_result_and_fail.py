"""submitResult and failJob over HTTP: stored once, replays, what is redacted, and what a refusal leaves as it was."""

from __future__ import annotations

import pytest


def code(answer):
    return answer.status_code, answer.json()["errorCode"]


def test_a_result_is_stored_once_and_its_replays_are_answered_alike(world):
    job = world.locked()
    first = world.result(job, attemptNo=2)
    assert first.status_code == 201
    assert first.json() == {"jobId": job, "status": "succeeded", "resultIdempotencyKey": f"{job}:2:hash-1"}
    row = world.inspect(job)
    assert (row["status"], row["resultCount"], row["lockedBy"], row["lockUntil"]) == ("succeeded", 1, None, None)
    assert row["startedAt"] == row["finishedAt"] is not None
    world.state("advance-time", seconds=1000)
    for again in (
        world.result(job, attemptNo=2),
        world.result(job, attemptNo=3),
        world.result(job, by="runtime-2", attemptNo=2),
        world.result(job, attemptNo=2, schemaVersion="no_such_version", validatedOutput={}),
    ):
        assert (again.status_code, again.json()) == (200, first.json())
    assert code(world.result(job, outputHash="hash-2")) == (409, "RESULT_ALREADY_EXISTS")
    assert world.inspect(job) == row


def test_a_whole_number_written_with_a_fraction_makes_the_same_key(world):
    job = world.locked()
    assert world.result(job, attemptNo=1.0).json()["resultIdempotencyKey"] == f"{job}:1:hash-1"


@pytest.mark.parametrize("version", ["no_such_version", "quiz_output_v1", ""])
def test_a_version_that_is_not_the_jobs_is_refused(world, version):
    job = world.locked()
    before = world.inspect(job)
    assert code(world.result(job, schemaVersion=version)) == (422, "RESULT_SCHEMA_UNSUPPORTED")
    assert world.inspect(job) == before
    assert world.result(job).status_code == 201


def test_a_version_that_is_the_jobs_and_not_the_apis_is_refused(world):
    job = world.locked(outputSchemaVersion="other_v9")
    assert code(world.result(job, schemaVersion="other_v9")) == (422, "RESULT_SCHEMA_UNSUPPORTED")


def test_only_the_holder_submits(world):
    job = world.state("job")["jobId"]
    assert code(world.result("job-x")) == (404, "JOB_NOT_FOUND")
    assert code(world.result(job)) == (409, "LOCK_NOT_HELD")
    world.lock(job)
    assert code(world.result(job, by="runtime-2")) == (409, "LOCK_NOT_HELD")
    world.state("advance-time", seconds=60.001)
    assert code(world.result(job)) == (409, "LOCK_NOT_HELD")
    assert world.inspect(job)["resultCount"] == 0


def test_an_unwanted_result_moves_the_job_and_is_not_stored(world):
    job = world.locked(userId="u9")
    world.state("revoke-ai-consent", userId="u9")
    assert code(world.result(job, by="runtime-2")) == (409, "LOCK_NOT_HELD")
    assert world.inspect(job)["status"] == "locked"
    assert code(world.result(job, schemaVersion="no_such_version")) == (409, "JOB_CANCELLED")
    row = world.inspect(job)
    assert (row["status"], row["resultCount"], row["cancelRequested"], row["errorCode"]) == ("cancelled", 0, True, None)
    assert code(world.result(job)) == (409, "JOB_CANCELLED")
    assert code(world.fail(job)) == (409, "LOCK_NOT_HELD")
    assert world.inspect(job) == row


BAD = {
    "runtimeInstanceId": [None, "", 7],
    "schemaVersion": [None, 7],
    "status": [None, "failed", True],
    "validatedOutput": [None, [], "text"],
    "attemptNo": [None, -1, 1.5, True, "0", 2**53],
    "outputHash": [None, "", "x" * 257, 7],
    "validationErrors": [None, {}, "none"],
    "usage": [None, [], {"inputTokens": -1}, {"inputTokens": 1.5}, {"costEstimate": -0.1}, {"latencyMs": None}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_an_ill_formed_result_changes_nothing(world, name, value):
    job = world.locked()
    before = world.inspect(job)
    answer = world.result(job, **{name: value})
    assert code(answer) == (400, "INVALID_REQUEST")
    assert answer.json()["details"][0]["location"].startswith(f"/{name}")
    assert world.inspect(job) == before


@pytest.mark.parametrize("raw", [None, "text", 1.5, [], {"a": [None]}, True])
def test_a_raw_output_is_any_json(world, raw):
    more = {"validationErrors": [None, {"a": 1}], "usage": {"inputTokens": 1.0, "costEstimate": 0.003, "new": "x"}}
    assert world.result(world.locked(), rawOutput=raw, **more, more={"unknown": True}).status_code == 201


def test_failures_are_counted_until_the_last(world):
    job = world.locked(maxRetryCount=1)
    answer = world.fail(job)
    assert (answer.status_code, answer.json()) == (200, {"jobId": job, "status": "pending", "retryCount": 1})
    assert code(world.fail(job)) == (409, "LOCK_NOT_HELD")
    row = world.inspect(job)
    assert (row["attemptNo"], row["errorCode"], row["errorMessage"]) == (1, "MODEL_TIMEOUT", "too slow")
    assert (row["startedAt"], row["lockedBy"], row["lockUntil"], row["finishedAt"]) == (None, None, None, None)
    world.lock(job)
    assert world.fail(job).json() == {"jobId": job, "status": "failed", "retryCount": 1}
    assert world.inspect(job)["finishedAt"] is not None


@pytest.mark.parametrize("retryable", [True, False])
def test_an_unwanted_job_that_fails_is_cancelled(world, retryable):
    job = world.locked(userId="u9")
    world.state("revoke-ai-consent", userId="u9")
    answer = world.fail(job, retryable=retryable, errorCode="JOB_CANCELLED")
    assert (answer.status_code, answer.json()) == (200, {"jobId": job, "status": "cancelled", "retryCount": 0})
    row = world.inspect(job)
    assert (row["errorCode"], row["cancelRequested"]) == ("JOB_CANCELLED", True)


def test_what_is_stored_of_a_failure_holds_no_key(world):
    made = world.state("credential", userId="u1")
    own = {"apiKeyMode": "user_deepseek_key", "credentialId": made["credentialId"]}
    job = world.locked(userId="u1", **own)
    key = world.resolve(job, **own).json()["apiKey"]
    platform = world.resolve(world.locked()).json()["apiKey"]
    told = f"401 for {key}, {platform} and sk-of_some-body"
    assert world.fail(job, errorMessage=told, rawError=f"Authorization: Bearer {key}\n{told}").status_code == 200
    row = world.inspect(job)
    assert row["errorMessage"] == "401 for [redacted], [redacted] and [redacted]"
    assert row["rawError"] == f"Authorization: Bearer [redacted]\n{row['errorMessage']}"


def test_a_failure_without_raw_error_forgets_the_last_one(world):
    job = world.locked()
    world.fail(job, rawError="first")
    assert world.inspect(job)["rawError"] == "first"
    world.lock(job)
    world.fail(job)
    assert world.inspect(job)["rawError"] is None


BAD_FAILURES = {
    "runtimeInstanceId": [None, ""],
    "errorCode": [None, "", "lower", "1A", "_A", "A" * 65, "A B", "A\n"],
    "errorMessage": [None, 7],
    "retryable": [None, "true", 1],
    "rawError": [7, {}],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD_FAILURES for value in BAD_FAILURES[name]])
def test_an_ill_formed_failure_changes_nothing(world, name, value):
    job = world.locked()
    before = world.inspect(job)
    assert code(world.fail(job, **{name: value})) == (400, "INVALID_REQUEST")
    assert world.inspect(job) == before


@pytest.mark.parametrize(
    "good", [{"errorCode": "A" * 64}, {"errorCode": "X"}, {"rawError": None}, {"errorMessage": ""}]
)
def test_what_a_failure_may_say(world, good):
    assert world.fail(world.locked(), **good).status_code == 200
