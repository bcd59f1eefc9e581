"""Rows 1 to 7 of the state table (decisions A3): creation, lock, heartbeat, result, failure; at their exact limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from machine_world import KEY, START, World, changed, run

if TYPE_CHECKING:
    from mock_server.executor import Outcome

ENDED = ("succeeded", "failed", "cancelled")
UNLOCKED = {"lockedBy": None, "lockedAt": None, "lockUntil": None}


@pytest.fixture
def world() -> World:
    return World()


def refuses(outcome: Outcome, code: str) -> bool:
    return outcome.answer == code and not outcome.changed and not outcome.created


class TestRow1Creation:
    def test_a_new_job_has_the_defaults_of_the_model(self, world: World) -> None:
        outcome = world.create()
        job = outcome.created["Job"]
        assert outcome.answer == 201
        assert world.row(job["id"]) == job
        assert {column: value for column, value in job.items() if value is not None and column != "id"} == {
            "userId": "user-1", "jobType": "learning_state_analysis", "targetType": "material", "targetId": "mat-1",
            "status": "pending", "priority": 0, "apiKeyMode": "platform_key", "modelProvider": "deepseek",
            "modelName": "deepseek-chat", "outputSchemaVersion": "analysis_output_v1", "attemptNo": 0, "retryCount": 0,
            "maxRetryCount": 3, "timeoutSeconds": 120, "cancelRequested": False, "createdAt": START, "updatedAt": START,
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("kind", "schema"),
        [
            ("learning_state_analysis", "analysis_output_v1"),
            ("weak_point_analysis", "analysis_output_v1"),
            ("next_action_planning", "analysis_output_v1"),
            ("quiz_generation", "quiz_output_v1"),
            ("flashcard_generation", "flashcard_output_v1"),
        ],
    )
    def test_schema_version_goes_by_the_type(self, world: World, kind: str, schema: str) -> None:
        assert world.create(jobType=kind).created["Job"]["outputSchemaVersion"] == schema
        assert world.create(jobType=kind, outputSchemaVersion="own").created["Job"]["outputSchemaVersion"] == "own"

    def test_null_counts_as_left_out(self, world: World) -> None:
        assert world.create(maxRetryCount=None, priority=None).created["Job"]["maxRetryCount"] == 3

    def test_ids_differ(self, world: World) -> None:
        assert len({world.job() for _ in range(20)}) == 20

    @pytest.mark.parametrize("state", ["pending", "locked", "running", *ENDED])
    def test_the_same_five_columns_give_the_existing_job_whatever_its_state(self, world: World, state: str) -> None:
        job = world.in_state(state, **KEY)
        before = world.row(job)
        world.advance(1)
        outcome = world.create(**KEY, priority=7)
        assert (outcome.answer, outcome.row, outcome.created) == (200, before, {})
        assert world.rows() == [before]

    @pytest.mark.parametrize(
        ("column", "other"),
        [
            ("userId", "user-2"),
            ("jobType", "flashcard_generation"),
            ("targetType", "user"),
            ("targetId", "mat-2"),
            ("idempotencyKey", "key-2"),
        ],
    )
    def test_one_of_the_five_differs(self, world: World, column: str, other: str) -> None:
        job = world.job(**KEY)
        assert world.job(**KEY | {column: other}) != job
        assert len(world.rows()) == 2

    def test_without_a_key_every_job_is_new(self, world: World) -> None:
        assert world.job(**KEY | {"idempotencyKey": None}) != world.job(**KEY | {"idempotencyKey": None})

    def test_an_id_that_exists_is_refused_and_not_tried_for_ever(self, world: World) -> None:
        """Rows given by hand (seed data) may name their id; a second one with that id can't be stored."""
        store, tries = world.store, 0
        commit = store.commit

        async def counted(changes: Any) -> bool:
            nonlocal tries
            tries += 1
            assert tries < 50, "the engine tries for ever"
            return await commit(changes)

        world.create(id="job-1")
        store.commit = counted  # type: ignore[method-assign]
        with pytest.raises(KeyError, match="job-1"):
            world.create(id="job-1")


class TestRow2Lock:
    def test_pending_becomes_locked_for_60_seconds(self, world: World) -> None:
        job = world.job()
        before = world.row(job)
        world.advance(5)
        outcome = world.lock(job, "r1")
        assert outcome.answer == 200
        assert outcome.row == world.row(job)
        assert changed(before, world.row(job)) == {
            "status": "locked", "lockedBy": "r1", "lockedAt": START + 5, "lockUntil": START + 60_005,
            "updatedAt": START + 5,
        }  # fmt: skip

    @pytest.mark.parametrize("state", ["locked", "running", *ENDED])
    @pytest.mark.parametrize("by", ["r1", "r2"])
    def test_a_job_that_is_not_pending_is_refused(self, world: World, state: str, by: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.lock(job, by), "JOB_ALREADY_LOCKED")
        assert world.row(job) == before

    @pytest.mark.parametrize("operation", ["lockJob", "heartbeatJob", "submitResult", "failJob", "getSnapshot"])
    def test_a_job_that_does_not_exist(self, world: World, operation: str) -> None:
        assert refuses(world.operate(operation, "job-none", "r1", retryable=True), "JOB_NOT_FOUND")

    @pytest.mark.parametrize(("past", "answer"), [(1, 200), (0, "JOB_ALREADY_LOCKED"), (-1, "JOB_ALREADY_LOCKED")])
    def test_a_pending_row_whose_lock_is_not_yet_past_is_refused(
        self, world: World, past: int, answer: int | str
    ) -> None:
        needed = {"userId": "u", "jobType": "quiz_generation", "targetType": "user", "targetId": "t"}
        row = run(world.engine.insert("Job", needed | {"lockUntil": START - past}))
        assert world.lock(row["id"]).answer == answer


class TestRows3And4Heartbeat:
    def test_the_first_starts_the_run(self, world: World) -> None:
        job = world.locked()
        before = world.row(job)
        world.advance(1_000)
        assert world.heartbeat(job).answer == 204
        assert changed(before, world.row(job)) == {
            "status": "running", "startedAt": START + 1_000, "lockUntil": START + 61_000, "updatedAt": START + 1_000,
        }  # fmt: skip

    def test_a_later_one_extends_the_lock_alone(self, world: World) -> None:
        job = world.running()
        before = world.row(job)
        world.advance(1_000)
        assert world.heartbeat(job).answer == 204
        assert changed(before, world.row(job)) == {"lockUntil": START + 61_000, "updatedAt": START + 1_000}

    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_the_lock_holds_at_its_last_millisecond_and_no_longer(self, world: World, state: str) -> None:
        at_limit, too_late = world.in_state(state), world.in_state(state)
        world.until(world.row(at_limit)["lockUntil"])
        assert world.heartbeat(at_limit).answer == 204
        world.advance(1)
        assert refuses(world.heartbeat(too_late), "LOCK_NOT_HELD")
        assert world.heartbeat(at_limit).answer == 204

    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_a_stranger_is_refused(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.heartbeat(job, "r2"), "LOCK_NOT_HELD")
        assert world.row(job) == before

    @pytest.mark.parametrize("state", ["pending", *ENDED])
    def test_a_job_that_is_not_held_is_refused(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.heartbeat(job), "LOCK_NOT_HELD")
        assert world.row(job) == before

    def test_the_header_is_there_only_when_the_job_is_to_be_stopped(self, world: World) -> None:
        job = world.locked()
        assert world.heartbeat(job).headers == {}
        world.revoke()
        for _ in range(2):
            outcome = world.heartbeat(job)
            assert (outcome.answer, outcome.headers) == (204, {"x-job-cancel-requested": "true"})
        other = world.locked()
        world.revoke()
        assert world.heartbeat(other).headers == {"x-job-cancel-requested": "true"}
        assert world.row(other)["status"] == "running"


class TestRow5Result:
    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_is_stored_and_the_job_succeeds(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        world.advance(1_000)
        outcome = world.result(job, attemptNo=0, usage={"totalTokens": 3})
        assert outcome.answer == 201
        expected = {"status": "succeeded", "finishedAt": START + 1_000, "updatedAt": START + 1_000, **UNLOCKED}
        if state == "locked":
            expected["startedAt"] = START + 1_000
        assert changed(before, world.row(job)) == expected
        assert world.stored_result(job) == outcome.created["Result"] == {
            "jobId": job, "resultIdempotencyKey": f"{job}:0:hash-1", "outputHash": "hash-1", "attemptNo": 0,
            "schemaVersion": "analysis_output_v1", "rawOutput": None, "validatedOutput": {"riskLevel": "low"},
            "validationErrors": None, "usage": {"totalTokens": 3},
        }  # fmt: skip

    def test_clears_an_earlier_failure(self, world: World) -> None:
        job = world.running()
        world.fail(job, retryable=True, rawError="raw")
        world.lock(job, "r2")
        assert world.row(job)["errorCode"] == "MODEL_TIMEOUT"
        assert world.result(job, "r2", attemptNo=1).answer == 201
        row = world.row(job)
        assert (row["errorCode"], row["errorMessage"], row["attemptNo"]) == (None, None, 1)

    def test_the_same_again_is_acknowledged_whoever_asks_and_however_late(self, world: World) -> None:
        job = world.running()
        world.result(job)
        stored, row = world.stored_result(job), world.row(job)
        world.advance(86_400_000)
        for by, attempt in (("r1", 0), ("r2", 0), ("r1", 5)):
            outcome = world.result(job, by, attemptNo=attempt)
            assert (outcome.answer, outcome.changed, outcome.created) == (200, False, {})
        assert refuses(world.result(job, outputHash="hash-2"), "RESULT_ALREADY_EXISTS")
        assert (world.stored_result(job), world.row(job)) == (stored, row)

    @pytest.mark.parametrize("version", ["analysis_output_v2", "quiz_output_v1"], ids=["unknown", "not-the-jobs"])
    def test_another_schema_is_refused_and_the_lock_kept(self, world: World, version: str) -> None:
        job = world.running()
        before = world.row(job)
        assert refuses(world.result(job, schemaVersion=version), "RESULT_SCHEMA_UNSUPPORTED")
        assert world.row(job) == before
        assert world.result(job).answer == 201

    def test_the_lock_is_judged_before_the_schema(self, world: World) -> None:
        assert refuses(world.result(world.running(), "r2", schemaVersion="v9"), "LOCK_NOT_HELD")

    def test_at_the_last_millisecond_of_the_lock(self, world: World) -> None:
        in_time, late = world.locked(), world.locked()
        world.advance(60_000)
        assert world.result(in_time).answer == 201
        world.advance(1)
        assert refuses(world.result(late), "LOCK_NOT_HELD")
        assert world.stored_result(late) is None

    @pytest.mark.parametrize(
        ("state", "code"), [("pending", "LOCK_NOT_HELD"), ("failed", "LOCK_NOT_HELD"), ("cancelled", "JOB_CANCELLED")]
    )
    def test_of_a_job_that_is_not_held(self, world: World, state: str, code: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.result(job), code)
        assert (world.row(job), world.stored_result(job)) == (before, None)


class TestRows6And7Failure:
    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_retryable_with_retries_left_is_pending_again_at_once(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        world.advance(1_000)
        outcome = world.fail(job, errorCode="NETWORK_ERROR", errorMessage="broke", rawError="raw")
        assert outcome.answer == 200
        expected = {
            "status": "pending", "retryCount": 1, "attemptNo": 1, "errorCode": "NETWORK_ERROR", "errorMessage": "broke",
            "rawError": "raw", "updatedAt": START + 1_000, **UNLOCKED,
        }  # fmt: skip
        if state == "running":
            expected["startedAt"] = None
        assert changed(before, world.row(job)) == expected
        assert world.lock(job, "r2").answer == 200

    @pytest.mark.parametrize("state", ["locked", "running"])
    def test_not_retryable_is_final(self, world: World, state: str) -> None:
        job = world.in_state(state)
        before = world.row(job)
        world.advance(1_000)
        assert world.fail(job, retryable=False).answer == 200
        assert changed(before, world.row(job)) == {
            "status": "failed", "finishedAt": START + 1_000, "errorCode": "MODEL_TIMEOUT", "errorMessage": "too slow",
            "updatedAt": START + 1_000, **UNLOCKED,
        }  # fmt: skip

    @pytest.mark.parametrize("retries", [0, 1, 3])
    def test_a_job_runs_once_more_than_it_may_be_retried(self, world: World, retries: int) -> None:
        job = world.job(maxRetryCount=retries)
        for attempt in range(retries + 1):
            row = world.row(job)
            assert (row["status"], row["attemptNo"], row["retryCount"]) == ("pending", attempt, attempt)
            world.lock(job)
            world.fail(job)
        row = world.row(job)
        assert (row["status"], row["attemptNo"], row["retryCount"]) == ("failed", retries, retries)

    @pytest.mark.parametrize("retryable", [True, False])
    @pytest.mark.parametrize("state", ["pending", *ENDED])
    def test_of_a_job_that_is_not_held(self, world: World, state: str, retryable: bool) -> None:
        job = world.in_state(state)
        before = world.row(job)
        assert refuses(world.fail(job, retryable=retryable), "LOCK_NOT_HELD")
        assert world.row(job) == before

    def test_sent_twice_counts_once(self, world: World) -> None:
        job = world.running()
        world.fail(job)
        assert refuses(world.fail(job), "LOCK_NOT_HELD")
        assert world.row(job)["retryCount"] == 1

    def test_by_a_stranger(self, world: World) -> None:
        job = world.running()
        assert refuses(world.fail(job, "r2"), "LOCK_NOT_HELD")
        assert world.row(job)["status"] == "running"

    def test_at_the_last_millisecond_of_the_lock(self, world: World) -> None:
        in_time, late = world.locked(), world.locked()
        world.advance(60_000)
        assert world.fail(in_time).answer == 200
        world.advance(1)
        assert refuses(world.fail(late), "LOCK_NOT_HELD")
        assert world.row(late)["errorCode"] == "JOB_TIMEOUT"

    @pytest.mark.parametrize("retryable", [True, False])
    def test_texts_are_redacted_and_a_missing_one_stays_null(self, retryable: bool) -> None:
        world = World(redact=lambda text: text.replace("sk-1", "[redacted]"))
        job, silent = world.running(), world.running()
        world.fail(job, errorMessage="key sk-1", rawError="raw sk-1", retryable=retryable)
        world.fail(silent, retryable=retryable)
        row = world.row(job)
        assert (row["errorMessage"], row["rawError"]) == ("key [redacted]", "raw [redacted]")
        assert world.row(silent)["rawError"] is None
