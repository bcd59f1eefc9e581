"""Whose result is taken, in which state, and in which order that is judged (seed 000 sections 5.4, 8.2 and 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contract_tests.checks import expect_fields, requirement
from contract_tests.client import RuntimeApi
from contract_tests.steps import SHORT, not_retryable, reached, second_attempt, within

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

OTHER_HASH = "sha256-another"
UNKNOWN = "no_such_output_v9"
CARDS = {"cards": [{"front": "slope", "back": "how steep a line is"}]}


@requirement("RT-TIME-03")
async def test_a_lapsed_locks_result_is_refused(api: RuntimeApi, given: Given) -> None:
    """A's result after its lock lapsed is refused, before and after B has the job; B's is stored."""
    job = await given.running_job("runtime-a", timeoutSeconds=600, outputSchemaVersion="analysis_output_v1")
    await given.lapse()
    await api.result(job, by="runtime-a").refused()
    await given.comes_back(job, by="runtime-b")
    await api.result(job, by="runtime-a").refused()
    await api.heartbeat(job, by="runtime-b").succeeds()
    await api.result(job, by="runtime-b", attempt=1).succeeds()


STRANGERS = [
    ("pending", "runtime-a"),
    ("locked", "runtime-b"),
    ("locked", "runtime-A"),
    ("running", "runtime-b"),
    ("failed", "runtime-a"),
    ("failed", "runtime-b"),
]


@requirement("RT-RES-53")
@pytest.mark.parametrize(("state", "by"), STRANGERS)
async def test_who_holds_no_lock_is_409(api: RuntimeApi, given: Given, clock: Clock, state: str, by: str) -> None:
    """A result by another than the holder: 409 LOCK_NOT_HELD, no result stored, every column as it was."""
    job = await given.in_state(state, by="runtime-a")
    before = await given.inspect(job)
    await clock.advance(0.01)
    await api.result(job, by=by).fails(409, "LOCK_NOT_HELD")
    await given.unchanged(job, before)


@requirement("RT-RES-53")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_former_holder_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """A lost the job by a lapse, B holds it: A's result is LOCK_NOT_HELD, and B's is stored, though its hash is A's."""
    job = await given.in_state(state, by="runtime-a", timeoutSeconds=600)
    await given.lapse()
    await api.result(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(job, by="runtime-b")
    await api.result(job, by="runtime-a", attempt=1).fails(409, "LOCK_NOT_HELD")
    await api.heartbeat(job, by="runtime-b").succeeds()
    await api.result(job, by="runtime-b", attempt=1).succeeds()
    expect_fields(await given.inspect(job), {"status": "succeeded", "resultCount": 1})


@requirement("RT-RES-53")
async def test_who_failed_the_job_is_409(api: RuntimeApi, given: Given) -> None:
    """A failed its attempt: A's result afterwards is LOCK_NOT_HELD, while the job waits and while B holds it."""
    job = await given.running_job("runtime-a")
    await api.fail(job, by="runtime-a").succeeds()
    await api.result(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    job = await second_attempt(given, by="runtime-b")
    await api.result(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")


@requirement("RT-TIME-55")
async def test_a_result_counts_at_the_locks_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `lockUntil` the holder's result is stored; a millisecond later it is LOCK_NOT_HELD."""
    clock.needs_to_stand()
    held, lost = await given.job(), await given.job()
    for job in (held, lost):
        until = (await api.lock(job).succeeds()).integer("lockUntil")
        await api.heartbeat(job).succeeds()  # at the same instant: the lock lasts as long
    await clock.reach(until, "RT-TIME-05")
    await api.result(held).succeeds()
    await clock.reach(until + 1, "RT-TIME-05")
    await api.result(lost).fails(409, "LOCK_NOT_HELD")


@requirement("RT-TIME-56")
async def test_a_result_counts_at_the_runs_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `startedAt` + `timeoutSeconds` a result is stored; a millisecond later it is LOCK_NOT_HELD."""
    clock.needs_to_stand()
    held, lost = [await given.running_job(timeoutSeconds=SHORT) for _ in range(2)]
    limit = await given.instant(lost, "startedAt") + SHORT * 1000
    await clock.reach(limit, "RT-TIME-05")
    await api.result(held).succeeds()
    await clock.reach(limit + 1, "RT-TIME-05")
    await api.result(lost).fails(409, "LOCK_NOT_HELD")


@requirement("RT-RES-61")
async def test_a_repeat_gets_its_answer_whoever_asks(api: RuntimeApi, given: Given) -> None:
    """Long after success the stored hash is a success and another is 409, whoever sends it."""
    job = await given.running_job("runtime-a")
    await api.result(job, by="runtime-a").succeeds()
    for _ in range(2):
        for by in ("runtime-a", "runtime-b"):
            await api.result(job, by=by).succeeds()
            await api.result(job, by=by, hash=OTHER_HASH).fails(409, "RESULT_ALREADY_EXISTS")
        await given.lapse()


@requirement("RT-RES-62", "RT-RES-63")
async def test_a_result_of_another_schema_is_422(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A known version that is not the job's own: 422, the job as it was, and its own version is taken afterwards."""
    job = await given.running_job(jobType="flashcard_generation")
    before = await given.inspect(job)
    await clock.advance(0.01)
    for schema in ("analysis_output_v1", "quiz_output_v1", "FLASHCARD_OUTPUT_V1"):
        await api.result(job, schema=schema).fails(422, "RESULT_SCHEMA_UNSUPPORTED")
    await given.unchanged(job, before)
    await api.result(job, schema="flashcard_output_v1", validatedOutput=CARDS).succeeds()


@requirement("RT-RES-54")
async def test_no_jobs_own_version_is_supported_by_that(api: RuntimeApi, given: Given) -> None:
    """A job whose own version nobody supports: its result is 422, too."""
    job = await given.running_job(outputSchemaVersion=UNKNOWN)
    await api.result(job, schema=UNKNOWN).fails(422, "RESULT_SCHEMA_UNSUPPORTED")


@requirement("RT-RES-63")
async def test_an_unknown_schema_leaves_the_job(api: RuntimeApi, given: Given) -> None:
    """After a 422 for an unknown version every column is as it was, and nobody else gets the job."""
    job = await given.running_job("runtime-a")
    before = await given.inspect(job)
    await api.result(job, by="runtime-a", schema=UNKNOWN).fails(422, "RESULT_SCHEMA_UNSUPPORTED")
    await given.unchanged(job, before)
    await api.lock(job, by="runtime-b").refused()


@requirement("RT-RES-64")
async def test_results_are_judged_in_order(api: RuntimeApi, given: Given) -> None:
    """Does the job exist, did it succeed, is it cancelled, does the caller hold it, and only then the schema."""
    await api.result("no-such-job", by="runtime-b", schema=UNKNOWN).fails(404, "JOB_NOT_FOUND")
    succeeded = await given.succeeded_job("runtime-a")
    await api.result(succeeded, by="runtime-b", schema=UNKNOWN).succeeds()
    await api.result(succeeded, by="runtime-b", schema=UNKNOWN, hash=OTHER_HASH).fails(409, "RESULT_ALREADY_EXISTS")
    await api.result(await given.cancelled_job(), schema=UNKNOWN).fails(409, "JOB_CANCELLED")
    for job in (await given.job(), await given.running_job("runtime-a"), await given.failed_job("runtime-a")):
        await api.result(job, by="runtime-b", schema=UNKNOWN).fails(409, "LOCK_NOT_HELD")
    unwanted = await given.running_job("runtime-a")
    await given.revoke_ai_consent(unwanted.user_id)
    await api.result(unwanted, by="runtime-b", schema=UNKNOWN).fails(409, "LOCK_NOT_HELD")
    await api.heartbeat(unwanted, by="runtime-a").succeeds()
    await api.result(unwanted, by="runtime-a", schema=UNKNOWN).fails(409, "JOB_CANCELLED")


@requirement("RT-RES-52", "RT-ERR-76")
async def test_a_cancelled_jobs_result_is_409(api: RuntimeApi, given: Given) -> None:
    """A result for a job that was cancelled while it waited: 409 JOB_CANCELLED, not retryable, whoever sends it."""
    job = await given.cancelled_job()
    before = await given.inspect(job)
    for by in ("runtime-a", "runtime-b"):
        not_retryable(await api.result(job, by=by).fails(409, "JOB_CANCELLED"))
    await given.unchanged(job, before)


@requirement("RT-RES-52", "RT-CANCEL-50")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_an_unwanted_result_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """With `cancelRequested` the holder's result is JOB_CANCELLED, again too, and the job is never handed out again."""
    job = await given.in_state(state)
    await given.revoke_ai_consent(job.user_id)
    for _ in range(2):
        await api.result(job).fails(409, "JOB_CANCELLED")
    await api.heartbeat(job).refused()
    await given.stays_away(job)


@requirement("RT-CANCEL-56")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_an_unwanted_result_is_not_stored(api: RuntimeApi, given: Given, state: str) -> None:
    """With `cancelRequested` no result is stored, neither the first nor another."""
    job = await given.in_state(state)
    await given.revoke_ai_consent(job.user_id)
    for hash_ in ("sha256-abc123", OTHER_HASH):
        await api.result(job, hash=hash_)
    expect_fields(await given.inspect(job), {"resultCount": 0})


@requirement("RT-CANCEL-55", "RT-CANCEL-60")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_an_unwanted_result_ends_the_job(api: RuntimeApi, given: Given, clock: Clock, state: str) -> None:
    """With `cancelRequested`, which stays, a result sets `finishedAt` and clears the lock fields."""
    job = await given.in_state(state)
    await given.revoke_ai_consent(job.user_id)
    before = await clock.now()
    await api.result(job)
    after, row = await clock.now(), await reached(given, job, "cancelled")
    expect_fields(row, {"cancelRequested": True, "lockedBy": None, "lockedAt": None, "lockUntil": None})
    within(row, "finishedAt", before, after)


@requirement("RT-CANCEL-59")
@pytest.mark.parametrize("failed_before", [False, True], ids=["first attempt", "second attempt"])
async def test_an_unwanted_result_leaves_the_error(api: RuntimeApi, given: Given, failed_before: bool) -> None:
    """With `cancelRequested` a result leaves `errorCode` and `errorMessage`, null or of an older failure."""
    job = await (second_attempt(given, by="runtime-a") if failed_before else given.running_job())
    code, message = ("NETWORK_ERROR", "attempt 1 broke") if failed_before else (None, None)
    await given.revoke_ai_consent(job.user_id)
    await api.result(job).refused()
    expect_fields(await given.inspect(job), {"errorCode": code, "errorMessage": message})


@requirement("RT-RES-60")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_a_late_unwanted_result_is_409(api: RuntimeApi, given: Given, state: str) -> None:
    """After a lapse with `cancelRequested`: JOB_CANCELLED or LOCK_NOT_HELD, and nothing is stored."""
    job = await given.in_state(state, timeoutSeconds=600)
    await given.revoke_ai_consent(job.user_id)
    await given.lapse()
    await api.result(job).fails(409, ["JOB_CANCELLED", "LOCK_NOT_HELD"])
    await given.settles(job)
    expect_fields(await given.inspect(job), {"status": "cancelled", "resultCount": 0})
