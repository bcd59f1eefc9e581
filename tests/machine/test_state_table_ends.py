"""Rows 8 to 15 of the state table (decisions A3): lapsed locks, time limits, cancelling, reruns; at exact limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from machine_world import KEY, START, World, changed

if TYPE_CHECKING:
    from mock_server.executor import Outcome

ENDED = ("succeeded", "failed", "cancelled")
UNLOCKED = {"lockedBy": None, "lockedAt": None, "lockUntil": None}


@pytest.fixture
def world() -> World:
    return World()


def refuses(outcome: Outcome, code: str) -> bool:
    return outcome.answer == code and not outcome.changed and not outcome.created


class TestRows8To11Timers:
    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_a_lapsed_lock_gives_the_job_back(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        world.advance(60_000)
        assert world.row(job) == before
        world.advance(1)
        expected = {
            "status": "pending", "retryCount": 1, "attemptNo": 1, "errorCode": "JOB_TIMEOUT",
            "updatedAt": START + 60_001, **UNLOCKED,
        }  # fmt: skip
        if state == "running":
            expected["startedAt"] = None
        assert changed(before, world.row(job)) == expected
        assert world.lock(job, "r2").answer == 200

    def test_a_run_may_last_its_time_limit_and_no_longer_heartbeats_or_not(self, world: World) -> None:
        job = world.running(timeoutSeconds=90)
        for second in (50, 89):
            world.until(START + second * 1_000)
            assert world.heartbeat(job).answer == 204
        world.until(START + 90_000)
        assert world.heartbeat(job).answer == 204
        assert world.row(job)["status"] == "running"
        world.advance(1)
        assert refuses(world.heartbeat(job), "LOCK_NOT_HELD")
        row = world.row(job)
        assert (row["status"], row["errorCode"], row["retryCount"], row["startedAt"]) == (
            "pending",
            "JOB_TIMEOUT",
            1,
            None,
        )

    def test_the_time_limit_counts_from_the_first_heartbeat(self, world: World) -> None:
        job = world.locked(timeoutSeconds=30)
        world.advance(59_000)
        assert world.heartbeat(job).answer == 204
        world.advance(30_000)
        assert world.row(job)["status"] == "running"
        world.advance(1)
        assert world.row(job)["status"] == "pending"

    def test_a_job_that_only_is_locked_has_no_time_limit_but_the_lock(self, world: World) -> None:
        job = world.locked(timeoutSeconds=1)
        world.advance(60_000)
        assert world.row(job)["status"] == "locked"

    @pytest.mark.parametrize("limit", ["lock", "run"])
    @pytest.mark.parametrize("retries", [0, 1])
    def test_without_retries_left_the_job_has_failed(self, world: World, limit: str, retries: int) -> None:
        timeout = 10 if limit == "run" else 600
        job = world.job(maxRetryCount=retries, timeoutSeconds=timeout)
        for _ in range(retries + 1):
            world.lock(job)
            world.heartbeat(job)
            started = world.now()
            world.advance(timeout * 1_000 + 1 if limit == "run" else 60_001)
        row = world.row(job)
        assert (row["status"], row["retryCount"], row["attemptNo"], row["errorCode"]) == (
            "failed",
            retries,
            retries,
            "JOB_TIMEOUT",
        )
        assert {column: row[column] for column in UNLOCKED} == UNLOCKED
        assert row["startedAt"] == started
        assert row["finishedAt"] == row["updatedAt"] == world.now()

    def test_an_older_failures_text_does_not_stay(self, world: World) -> None:
        job = world.running()
        world.fail(job, errorMessage="older", rawError="older")
        world.lock(job)
        world.advance(60_001)
        row = world.row(job)
        assert (row["errorCode"], row["errorMessage"]) == ("JOB_TIMEOUT", None)

    def test_expired_is_never_seen(self, world: World) -> None:
        for retries in (0, 3):
            world.locked(maxRetryCount=retries)
        world.locked(userId="user-2")
        world.revoke("user-2")
        world.advance(60_001)
        assert sorted(row["status"] for row in world.rows()) == ["cancelled", "failed", "pending"]


class TestRows12To14Cancelling:
    def test_a_pending_job_is_cancelled(self, world: World) -> None:
        job = world.job()
        before = world.row(job)
        world.advance(1_000)
        assert world.cancel(job).answer == 200
        assert changed(before, world.row(job)) == {
            "status": "cancelled",
            "finishedAt": START + 1_000,
            "updatedAt": START + 1_000,
        }

    @pytest.mark.parametrize("state", ["locked", "running", *ENDED])
    def test_another_one_is_not(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.cancel(job), "CONFLICT")
        assert world.row(job) == before

    @pytest.mark.parametrize("action", ["cancel", "rerun"])
    def test_a_job_that_does_not_exist(self, world: World, action: str) -> None:
        assert refuses(getattr(world, action)("job-none"), "JOB_NOT_FOUND")

    def test_revoking_consent_cancels_what_waits_and_asks_for_a_stop_of_what_runs(self, world: World) -> None:
        jobs = {state: world.in_state(state) for state in ("pending", "locked", "running", *ENDED)}
        others = {state: world.in_state(state, userId="user-2") for state in ("pending", "locked", "running")}
        before = {job: world.row(job) for job in (*jobs.values(), *others.values())}
        world.advance(1_000)
        world.revoke("user-1")
        after = {job: changed(before[job], world.row(job)) for job in before}
        stop = {"cancelRequested": True, "updatedAt": START + 1_000}
        assert after[jobs["pending"]] == {
            "status": "cancelled",
            "finishedAt": START + 1_000,
            "updatedAt": START + 1_000,
        }
        assert after[jobs["locked"]] == after[jobs["running"]] == stop
        assert not any(after[jobs[state]] for state in ENDED)
        assert not any(after[job] for job in others.values())

    def test_revoking_consent_of_a_user_without_jobs(self, world: World) -> None:
        job = world.job()
        world.revoke("user-9")
        assert world.row(job)["status"] == "pending"

    def test_jobs_created_after_a_revocation_are_unaffected(self, world: World) -> None:
        world.revoke()
        job = world.running()
        assert world.row(job)["cancelRequested"] is False

    @pytest.mark.parametrize("state", ["locked", "running"])
    @pytest.mark.parametrize("retryable", [True, False])
    def test_a_failure_then_ends_the_job_as_cancelled_with_what_was_sent(
        self, world: World, state: str, retryable: bool
    ) -> None:
        job = world.in_state(state)
        world.revoke()
        before = world.row(job)
        world.advance(1_000)
        outcome = world.fail(job, retryable=retryable, rawError="raw")
        assert outcome.answer == 200
        assert changed(before, world.row(job)) == {
            "status": "cancelled", "finishedAt": START + 1_000, "errorCode": "MODEL_TIMEOUT",
            "errorMessage": "too slow", "rawError": "raw", "updatedAt": START + 1_000, **UNLOCKED,
        }  # fmt: skip

    @pytest.mark.parametrize("state", ["locked", "running"])
    @pytest.mark.parametrize("schema", ["analysis_output_v1", "unknown"])
    def test_a_result_is_refused_and_yet_the_job_is_cancelled(self, world: World, state: str, schema: str) -> None:
        job = world.in_state(state)
        world.revoke()
        before = world.row(job)
        outcome = world.result(job, schemaVersion=schema)
        assert (outcome.answer, outcome.created) == ("JOB_CANCELLED", {})
        assert changed(before, world.row(job)) == {"status": "cancelled", "finishedAt": START, **UNLOCKED}
        assert world.stored_result(job) is None
        assert refuses(world.result(job), "JOB_CANCELLED")

    def test_a_strangers_result_cancels_nothing(self, world: World) -> None:
        job = world.running()
        world.revoke()
        assert refuses(world.result(job, "r2"), "LOCK_NOT_HELD")
        assert world.row(job)["status"] == "running"

    @pytest.mark.parametrize("limit", ["lock", "run"])
    def test_a_limit_that_passes_ends_the_job_as_cancelled(self, world: World, limit: str) -> None:
        job = world.running(timeoutSeconds=10 if limit == "run" else 600)
        world.revoke()
        world.advance(86_400_000)
        row = world.row(job)
        ended = START + (10_001 if limit == "run" else 60_001)
        assert (row["status"], row["errorCode"], row["finishedAt"], row["retryCount"]) == (
            "cancelled",
            "JOB_TIMEOUT",
            ended,
            0,
        )
        assert row["cancelRequested"] is True
        assert {column: row[column] for column in UNLOCKED} == UNLOCKED


class TestRow15Rerun:
    def test_is_a_new_job_with_the_inputs_of_the_old_one(self, world: World) -> None:
        inputs: dict[str, Any] = {
            **KEY, "snapshotId": "snap-1", "priority": 7, "params": {"count": 5}, "apiKeyMode": "user_deepseek_key",
            "credentialId": "cred-1", "modelProvider": "other", "modelName": "m-1", "promptVersion": "p-1",
            "outputSchemaVersion": "quiz_output_v1", "maxRetryCount": 1, "timeoutSeconds": 33,
        }  # fmt: skip
        old = world.running(**inputs)
        world.fail(old)
        world.lock(old)
        world.heartbeat(old)
        world.fail(old, rawError="raw")
        before = world.row(old)
        assert before["status"] == "failed"
        world.advance(1_000)
        outcome = world.rerun(old)
        new = outcome.created["Job"]
        assert outcome.answer == 201
        assert world.row(old) == before
        assert new["id"] != old
        assert world.row(new["id"]) == new
        assert {column: new[column] for column in inputs if column != "idempotencyKey"} == {
            column: value for column, value in inputs.items() if column != "idempotencyKey"
        }
        rest = {column: value for column, value in new.items() if column not in inputs or column == "idempotencyKey"}
        assert {column: value for column, value in rest.items() if value is not None and column != "id"} == {
            "retriedFromJobId": old, "status": "pending", "attemptNo": 0, "retryCount": 0, "cancelRequested": False,
            "createdAt": START + 1_000, "updatedAt": START + 1_000,
        }  # fmt: skip

    def test_every_rerun_is_another_job(self, world: World) -> None:
        old = world.in_state("failed", **KEY)
        jobs = {world.rerun(old).created["Job"]["id"] for _ in range(3)}
        assert len(jobs) == 3

    def test_a_rerun_can_fail_and_be_rerun(self, world: World) -> None:
        second = world.rerun(world.in_state("failed")).created["Job"]["id"]
        world.lock(second)
        world.fail(second, retryable=False)
        assert world.rerun(second).created["Job"]["retriedFromJobId"] == second

    @pytest.mark.parametrize("state", ["pending", "locked", "running", "succeeded", "cancelled"])
    def test_of_a_job_that_did_not_fail_is_refused(self, world: World, state: str) -> None:
        job = world.in_state(state)
        assert refuses(world.rerun(job), "CONFLICT")
        assert len(world.rows()) == 1
