"""Results: what a first one does, and what repeats get (seed 003 section 4.6, seed 000 section 8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import ANALYSES, RuntimeApi, describe
from contract_tests.given import ids_of
from contract_tests.steps import SHORT, not_retryable, second_attempt, within

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

SCHEMA = "analysis_output_v1"
OTHER_HASH = "sha256-another"
CONNECTIONS = 10
ROUNDS = 4
SEED_EXAMPLE = (
    b'{"runtimeInstanceId":"runtime-001","schemaVersion":"analysis_output_v1","status":"succeeded",'
    b'"rawOutput":{"learningState":"in_progress","confidence":0.85},'
    b'"validatedOutput":{"learningState":"in_progress","riskLevel":"low"},"validationErrors":[],'
    b'"usage":{"inputTokens":1200,"outputTokens":450,"totalTokens":1650,"latencyMs":3200,"costEstimate":3},'
    b'"attemptNo":0,"outputHash":"sha256-abc123"}'
)
OUTPUTS: dict[str, tuple[str, dict[str, Any]]] = {
    "learning_state_analysis": ("analysis_output_v1", {"learningState": "in_progress"}),
    "weak_point_analysis": ("analysis_output_v1", {"weakPoints": [{"name": "slopes"}]}),
    "next_action_planning": ("analysis_output_v1", {"recommendations": [{"action": "repeat"}]}),
    "quiz_generation": ("quiz_output_v1", {"questions": [{"question": "1 + 1?", "answer": "2"}]}),
    "flashcard_generation": ("flashcard_output_v1", {"cards": [{"front": "slope", "back": "steepness"}]}),
}
"""What a job of each type gives: schema version and output."""


@requirement("RT-RES-01", "RT-RES-13")
async def test_the_seeds_own_example_is_stored(api: RuntimeApi, given: Given) -> None:
    """The request of seed 003 section 4.6, as it stands there, from the holder of a running job: 201."""
    job = await given.running_job("runtime-001", outputSchemaVersion=SCHEMA)
    await api.raw("POST", f"{job.path}/result", content=SEED_EXAMPLE, by="runtime-001").succeeds(201)


@requirement("RT-RES-18")
async def test_an_output_may_have_any_structure(api: RuntimeApi, given: Given) -> None:
    """`validatedOutput` with lists, objects, numbers and texts in it is taken."""
    job = await given.running_job(jobType="weak_point_analysis", outputSchemaVersion=SCHEMA)
    points = [{"name": "slopes", "severity": "high", "seen": [1, 2.5, True]}, {"name": "\u5206\u6570", "parts": []}]
    await api.result(job, validatedOutput={"weakPoints": points, "confidence": 0.85}).succeeds()


@requirement("RT-RES-14", "RT-SM-12", "RT-SM-10")
async def test_a_result_makes_the_job_succeeded(api: RuntimeApi, given: Given) -> None:
    """After the result of a running job its status is `succeeded`."""
    job = await given.running_job(outputSchemaVersion=SCHEMA)
    await api.result(job).succeeds()
    expect_fields(await given.inspect(job), {"status": "succeeded"})


@requirement("RT-SM-13")
async def test_succeeded_is_the_end(api: RuntimeApi, given: Given) -> None:
    """A succeeded job takes no failure, lock or heartbeat, is in no poll, and no time brings it back."""
    job = await given.running_job(outputSchemaVersion=SCHEMA, priority=given.first(), timeoutSeconds=SHORT)
    await api.result(job).succeeds()
    await api.fail(job).refused()
    await api.heartbeat(job).refused()
    await given.lapse()
    await given.stays_away(job)
    expect(
        job.id not in ids_of(await given.polled(types=ANALYSES[:1])), "a poll without the job", "it is listed", "/jobs"
    )


@requirement("RT-RES-15")
async def test_the_same_result_again_is_200(api: RuntimeApi, given: Given) -> None:
    """The same attemptNo and outputHash again, as often as one likes: 200."""
    job = await given.running_job(outputSchemaVersion=SCHEMA)
    await api.result(job).succeeds()
    for _ in range(3):
        await api.result(job).succeeds(200)


@requirement("RT-RES-16", "RT-ERR-12")
async def test_another_result_is_409(api: RuntimeApi, given: Given) -> None:
    """Another outputHash after success: 409 RESULT_ALREADY_EXISTS, each time, and the first result stays the job's."""
    job = await given.running_job(outputSchemaVersion=SCHEMA)
    await api.result(job).succeeds()
    for attempt in (0, 1):
        call = api.result(job, hash=OTHER_HASH, attempt=attempt, validatedOutput={"learningState": "done"})
        not_retryable(await call.fails(409, "RESULT_ALREADY_EXISTS"))
    await api.result(job).succeeds()


@requirement("RT-RES-17", "RT-ERR-13")
async def test_an_unknown_schema_is_422(api: RuntimeApi, given: Given) -> None:
    """A schema version that nobody supports: 422 RESULT_SCHEMA_UNSUPPORTED."""
    job = await given.running_job(outputSchemaVersion=SCHEMA)
    not_retryable(await api.result(job, schema="no_such_output_v9").fails(422, "RESULT_SCHEMA_UNSUPPORTED"))


@requirement("RT-RES-19", "RT-DB-35")
async def test_a_job_has_at_most_one_result(api: RuntimeApi, given: Given) -> None:
    """None before, one after the first, one still after the same hash under another attempt and another hash."""
    job = await given.running_job(outputSchemaVersion=SCHEMA)
    expect_fields(await given.inspect(job), {"resultCount": 0})
    await api.result(job).succeeds()
    expect_fields(await given.inspect(job), {"resultCount": 1})
    await api.result(job, attempt=1)
    await api.result(job, hash=OTHER_HASH)
    expect_fields(await given.inspect(job), {"resultCount": 1})


@requirement("RT-RES-15", "RT-IDEM-06")
async def test_of_equal_results_at_once_one_is_stored(api: RuntimeApi, given: Given) -> None:
    """The same result on many connections released together: each is told that it is stored, one that it was new."""
    for _ in range(ROUNDS):
        job = await given.running_job(outputSchemaVersion=SCHEMA)
        answers = await api.together([api.result(job) for _ in range(CONNECTIONS)])
        came = sorted(answer.status for answer in answers)
        good = set(came) <= {200, 201} and came.count(201) <= 1
        expect(good, f"one 201 and {CONNECTIONS - 1} times 200", str(came))


@requirement("RT-RES-16", "RT-RES-19")
async def test_of_different_results_at_once_one_is_stored(api: RuntimeApi, given: Given) -> None:
    """Results with different hashes released together: one is stored, the others 409, and that one stays the job's."""
    for _ in range(ROUNDS):
        job = await given.running_job(outputSchemaVersion=SCHEMA)
        hashes = [f"sha256-{i}" for i in range(CONNECTIONS)]
        answers = await api.together([api.result(job, hash=hash_) for hash_ in hashes])
        stored = [hash_ for hash_, answer in zip(hashes, answers, strict=True) if answer.status < 300]
        expect(len(stored) == 1, "one that is stored", f"{len(stored)} of them: {stored}")
        for answer in answers:
            good = answer.status < 300 or (answer.status, answer.get("errorCode")) == (409, "RESULT_ALREADY_EXISTS")
            expect(good, "409 RESULT_ALREADY_EXISTS for every other", describe(answer.response))
        await api.result(job, hash=stored[0]).succeeds()


@requirement("RT-RES-50")
async def test_the_answer_tells_the_stored_key(api: RuntimeApi, given: Given) -> None:
    """The body of 201 and 200: jobId, status `succeeded` and the stored key, whatever attempt is sent later."""
    job = await given.running_job()
    wanted = {"jobId": job.id, "status": "succeeded", "resultIdempotencyKey": f"{job.id}:0:sha256-abc123"}
    for _ in range(2):
        expect_fields((await api.result(job).succeeds()).json, wanted)
    other = await api.result(job, attempt=5)
    if other.status < 300:
        expect_fields(other.json, wanted)


@requirement("RT-RES-51")
async def test_the_same_hash_under_another_attempt_is_200(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """The same outputHash with another attemptNo: 200, and every column stays as it is."""
    job = await given.succeeded_job()
    await clock.advance(0.01)
    before = await given.inspect(job)
    for attempt in (1, 9):
        await api.result(job, attempt=attempt).succeeds(200)
    await given.unchanged(job, before)


@requirement("RT-RES-54")
@pytest.mark.parametrize("job_type", OUTPUTS)
async def test_all_three_versions_are_supported(api: RuntimeApi, given: Given, job_type: str) -> None:
    """A job of each type takes a result of its own type's schema version."""
    version, output = OUTPUTS[job_type]
    job = await given.running_job(jobType=job_type)
    await api.result(job, schema=version, validatedOutput=output).succeeds()


@requirement("RT-RES-55")
async def test_a_result_needs_no_heartbeat(api: RuntimeApi, given: Given) -> None:
    """The holder of a locked job that never heartbeated submits its result: it is stored."""
    await api.result(await given.locked_job()).succeeds()


@requirement("RT-RES-56")
async def test_a_result_finishes_the_job(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`finishedAt` is the instant of the result."""
    job = await given.running_job()
    await clock.advance(2)
    before = await clock.now()
    await api.result(job).succeeds()
    within(await given.inspect(job), "finishedAt", before, await clock.now())


@requirement("RT-RES-57")
async def test_a_result_starts_a_run_that_no_heartbeat_did(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`startedAt` is the instant of the result where it was null; the one that a heartbeat set stays."""
    locked, running = await given.locked_job(), await given.running_job()
    started = await given.instant(running, "startedAt")
    await clock.advance(2)
    before = await clock.now()
    for job in (locked, running):
        await api.result(job).succeeds()
    within(await given.inspect(locked), "startedAt", before, await clock.now())
    expect_fields(await given.inspect(running), {"startedAt": started})


@requirement("RT-RES-58")
async def test_a_result_gives_the_lock_back(api: RuntimeApi, given: Given) -> None:
    """After a result `lockedBy`, `lockedAt` and `lockUntil` are null."""
    job = await given.running_job()
    await api.result(job).succeeds()
    expect_fields(await given.inspect(job), dict.fromkeys(("lockedBy", "lockedAt", "lockUntil")))


@requirement("RT-RES-59")
async def test_a_result_clears_the_older_failure(api: RuntimeApi, given: Given) -> None:
    """Attempt 1 failed, attempt 2 succeeds: `errorCode` and `errorMessage` are null."""
    job = await second_attempt(given, by="runtime-b")
    await api.result(job, by="runtime-b", attempt=1).succeeds()
    expect_fields(await given.inspect(job), {"errorCode": None, "errorMessage": None})


@requirement("RT-RES-72")
@pytest.mark.parametrize("attempt", [0, 1, 7])
async def test_the_attempt_is_not_compared(api: RuntimeApi, given: Given, attempt: int) -> None:
    """Whatever attemptNo a first result names, on attempt 1 and on attempt 2: it is stored."""
    await api.result(await given.running_job(), attempt=attempt).succeeds()
    second = await second_attempt(given, by="runtime-b")
    await api.result(second, by="runtime-b", attempt=attempt).succeeds()


@requirement("RT-SM-53", "RT-SM-54")
async def test_nothing_changes_a_succeeded_job(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Lock, heartbeat, failure, results, a revocation and time leave every column of a succeeded job as it is."""
    job = await given.succeeded_job(timeoutSeconds=SHORT)
    before = await given.inspect(job)
    before.pop("resultCount", None)  # no column: RT-RES-19 and RT-RES-51 are about it
    await clock.advance(0.01)
    for call in (api.lock(job), api.heartbeat(job), api.fail(job), api.fail(job, retryable=False)):
        await call.refused()
    for fields in ({}, {"hash": OTHER_HASH}, {"by": "runtime-b", "schema": "no_such_output_v9"}):
        await api.result(job, **fields)
    await given.revoke_ai_consent(job.user_id)
    await given.lapse()
    await given.unchanged(job, before)


@requirement("RT-SM-53")
async def test_a_result_and_a_failure_at_once(api: RuntimeApi, given: Given) -> None:
    """Of a result and a final failure of one holder at the same moment one counts; the other is refused."""
    for _ in range(ROUNDS):
        job = await given.running_job()
        result, failure = await api.together([api.result(job), api.fail(job, retryable=False)])
        won = [answer.status for answer in (result, failure) if answer.status < 300]
        expect(len(won) == 1, "one success", f"result {result.status}, failure {failure.status}")
        await api.result(job).succeeds() if result.status < 300 else await api.result(job).refused()
