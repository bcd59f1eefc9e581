"""The provider states of the reference: what checks and teams put it into."""

from __future__ import annotations

import json

import pytest

COLUMNS = {
    "id",
    "userId",
    "jobType",
    "targetType",
    "targetId",
    "snapshotId",
    "status",
    "priority",
    "idempotencyKey",
    "apiKeyMode",
    "credentialId",
    "modelProvider",
    "modelName",
    "promptVersion",
    "outputSchemaVersion",
    "attemptNo",
    "retriedFromJobId",
    "lockedBy",
    "lockedAt",
    "lockUntil",
    "startedAt",
    "finishedAt",
    "retryCount",
    "maxRetryCount",
    "timeoutSeconds",
    "errorCode",
    "errorMessage",
    "createdAt",
    "updatedAt",
    "cancelRequested",
    "resultCount",
    "logCount",
    "rawError",
}
STATES = ["reset", "job", "credential", "cancel-job", "rerun-job", "revoke-ai-consent", "advance-time", "inspect-job"]


def refused(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()["error"]


def test_the_states_are_listed(world):
    assert world.control("GET", "/provider-states/runtime-api").json() == {"system": "runtime-api", "states": STATES}


def test_a_job_has_the_models_defaults(world):
    values = world.state("job")
    row = world.state("inspect-job", jobId=values["jobId"])
    now = world.state("advance-time", seconds=0)["now"]
    assert set(row) >= COLUMNS
    shown = {
        "jobType": "learning_state_analysis",
        "targetType": "material",
        "targetId": "mat-1",
        "userId": "user-1",
        "status": "pending",
        "priority": 0,
        "apiKeyMode": "platform_key",
        "modelProvider": "deepseek",
        "modelName": "deepseek-chat",
        "attemptNo": 0,
        "retryCount": 0,
        "maxRetryCount": 3,
        "timeoutSeconds": 120,
        "outputSchemaVersion": "analysis_output_v1",
        "cancelRequested": False,
        "lockedBy": None,
        "errorCode": None,
        "idempotencyKey": None,
        "resultCount": 0,
        "logCount": 0,
        "createdAt": now,
        "snapshotId": values["snapshotId"],
    }
    assert {name: row[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("quiz_generation", "quiz_output_v1"),
        ("flashcard_generation", "flashcard_output_v1"),
        ("weak_point_analysis", "analysis_output_v1"),
    ],
)
def test_the_output_version_is_that_of_the_type(world, kind, version):
    job = world.state("job", jobType=kind)["jobId"]
    assert world.state("inspect-job", jobId=job)["outputSchemaVersion"] == version


def test_every_parameter_of_a_job_is_taken(world):
    given = {
        "jobType": "quiz_generation",
        "targetType": "user",
        "targetId": "t",
        "userId": "u",
        "priority": 3,
        "maxRetryCount": 0,
        "timeoutSeconds": 7,
        "idempotencyKey": "k",
        "apiKeyMode": "user_deepseek_key",
        "credentialId": "c",
        "promptVersion": "p",
        "outputSchemaVersion": "o",
        "params": {"n": [1]},
    }
    job = world.state("job", **given)["jobId"]
    row = world.state("inspect-job", jobId=job)
    assert {name: row[name] for name in given} == given


def test_null_counts_as_absent(world):
    job = world.state("job", priority=None, snapshot=None, params=None)["jobId"]
    assert world.state("inspect-job", jobId=job)["priority"] == 0


def test_an_idempotency_key_gives_the_job_again(world):
    one = world.state("job", idempotencyKey="k")
    assert world.state("job", idempotencyKey="k", snapshot="none") == one
    assert world.state("job", idempotencyKey="k", userId="other")["jobId"] != one["jobId"]


@pytest.mark.parametrize("kind", ["valid", "expired", "missing"])
def test_a_job_names_its_snapshot(world, kind):
    assert world.state("job", snapshot=kind)["snapshotId"]


def test_a_job_may_have_no_snapshot(world):
    assert world.state("job", snapshot="none")["snapshotId"] is None


@pytest.mark.parametrize(("version", "listed"), [("ai_snapshot_v1", 1), ("ai_snapshot_v0", 0)])
def test_a_snapshots_version_is_what_a_poll_filters_by(world, version, listed):
    world.state("job", snapshotVersion=version)
    answer = world.poll(capabilities={"supportedSnapshotVersions": ["ai_snapshot_v1"]})
    assert len(answer.json()["jobs"]) == listed


def test_a_credential_is_handed_out_once_for_each_call(world):
    one, other = world.state("credential"), world.state("credential", userId="u2", status="invalid")
    assert one["apiKey"].startswith("sk-")
    assert one["apiKey"] != other["apiKey"]
    assert (one["userId"], other["userId"]) == ("user-1", "u2")


def test_a_pending_job_is_cancelled_and_no_other(world):
    job = world.state("job")["jobId"]
    assert world.state("cancel-job", jobId=job) == {"status": "cancelled"}
    assert "cancelled" in refused(world.try_state("cancel-job", jobId=job), 409)
    assert world.poll().json() == {"jobs": []}


def test_only_a_failed_job_is_rerun(world):
    job = world.state("job", maxRetryCount=0, priority=4, params={"a": 1})["jobId"]
    refused(world.try_state("rerun-job", jobId=job), 409)
    world.lock(job)
    world.state("advance-time", seconds=61)
    new = world.state("rerun-job", jobId=job)["jobId"]
    row = world.state("inspect-job", jobId=new)
    assert (row["status"], row["retriedFromJobId"], row["priority"], row["params"]) == ("pending", job, 4, {"a": 1})


def test_revoking_consent_stops_what_runs_and_cancels_what_waits(world):
    waiting, locked, others = world.state("job"), world.state("job"), world.state("job", userId="u2")
    world.lock(locked["jobId"])
    assert world.state("revoke-ai-consent", userId="user-1") == {}
    rows = [world.state("inspect-job", jobId=values["jobId"]) for values in (waiting, locked, others)]
    assert [(row["status"], row["cancelRequested"]) for row in rows] == [
        ("cancelled", False),
        ("locked", True),
        ("pending", False),
    ]
    answer = world.heartbeat(locked["jobId"])
    assert (answer.status_code, answer.headers["x-job-cancel-requested"]) == (204, "true")


def test_time_moves_by_fractions_and_stands(world):
    now = world.state("advance-time", seconds=0)["now"]
    assert world.state("advance-time", seconds=0.001)["now"] == now + 1
    assert world.state("advance-time", seconds=1.5)["now"] == now + 1501
    assert world.state("advance-time", seconds=0)["now"] == now + 1501


def test_a_lock_holds_to_the_millisecond(world):
    job = world.state("job")["jobId"]
    until = world.lock(job).json()["lockUntil"]
    now = world.state("advance-time", seconds=60)["now"]
    assert now == until
    assert world.heartbeat(job).status_code == 204
    world.state("advance-time", seconds=60.001)
    assert world.heartbeat(job).json()["errorCode"] == "LOCK_NOT_HELD"
    row = world.state("inspect-job", jobId=job)
    assert (row["status"], row["retryCount"], row["errorCode"]) == ("pending", 1, "JOB_TIMEOUT")


def test_a_reset_removes_rows_and_brings_back_real_time(world):
    world.state("advance-time", seconds=10**6)
    job = world.state("job")["jobId"]
    assert world.state("reset") == {}
    assert world.lock(job).status_code == 404
    assert world.poll().json() == {"jobs": []}
    import time

    assert abs(world.state("advance-time", seconds=0)["now"] - time.time() * 1000) < 10_000


WRONG = {
    "unknown parameter": ("job", {"prioritty": 1}, "prioritty"),
    "wrong type": ("job", {"priority": "high"}, "priority"),
    "unknown value": ("job", {"jobType": "poem"}, "jobType"),
    "unknown snapshot": ("job", {"snapshot": "old"}, "snapshot"),
    "missing parameter": ("inspect-job", {}, "jobId"),
    "missing because null": ("inspect-job", {"jobId": None}, "jobId"),
    "unknown job": ("inspect-job", {"jobId": "job-x"}, "job-x"),
    "unknown job to cancel": ("cancel-job", {"jobId": "job-x"}, "job-x"),
    "unknown job to rerun": ("rerun-job", {"jobId": "job-x"}, "job-x"),
    "time runs forward": ("advance-time", {"seconds": -1}, "seconds"),
    "time is a number": ("advance-time", {"seconds": "60"}, "seconds"),
    "no user": ("revoke-ai-consent", {}, "userId"),
    "reset has none": ("reset", {"hard": True}, "hard"),
}


@pytest.mark.parametrize(("state", "params", "named"), WRONG.values(), ids=WRONG)
def test_a_wrong_parameter_is_named(world, state, params, named):
    assert named in refused(world.try_state(state, **params), 400)


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"action": "setup", "state": "jab"}, 501, "job"),
        ({"action": "teardown", "state": "job"}, 400, "/action"),
        ({"state": "job"}, 400, "/action"),
        ({"action": "setup"}, 400, "/state"),
        ({"action": "setup", "state": "job", "params": []}, 400, "/params"),
    ],
)
def test_a_wrong_request_is_named(world, body, status, named):
    assert named in refused(world.control("POST", "/provider-states/runtime-api", json=body), status)


def test_params_may_be_left_out(world):
    answer = world.control(
        "POST",
        "/provider-states/runtime-api",
        content=json.dumps({"action": "setup", "state": "job"}),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 200


def test_there_are_no_states_of_another_system(world):
    assert world.control("GET", "/provider-states/model-provider").status_code == 404
