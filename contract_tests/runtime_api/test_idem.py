"""Jobs and results that repeat (seed 000 section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import CheckFailed, about, expect, expect_fields, requirement
from contract_tests.client import JobRef, RuntimeApi, describe
from contract_tests.steps import second_attempt, shown_key
from contract_tests.transport import StateBroken, StateRefused

if TYPE_CHECKING:
    from contract_tests.given import Given

FIVE = {"jobType": "quiz_generation", "targetType": "material", "targetId": "mat-1"}


async def again(given: Given, made: dict[str, Any]) -> JobRef:
    """What comes of a creation that was made before. An error is the build's: it took the first one of the same."""
    try:
        return await given.job(**made)
    except (StateRefused, StateBroken) as error:
        raise CheckFailed("the job that is there", str(error)) from None


@requirement("RT-IDEM-01")
async def test_the_same_job_is_not_created_twice(given: Given) -> None:
    """userId, jobType, targetType, targetId and idempotencyKey again: the same job."""
    made = {"userId": given.unique("user"), "idempotencyKey": given.unique("idem"), **FIVE}
    first = await given.job(**made)
    second = await again(given, made)
    expect(first.id == second.id, f"the job {first.id} again", second.id, "/jobId")


@requirement("RT-IDEM-02")
async def test_without_a_key_jobs_repeat(given: Given) -> None:
    """Without an idempotencyKey the same creation makes another job."""
    made = {"userId": given.unique("user"), **FIVE}
    first, second = await given.job(**made), await given.job(**made)
    expect(first.id != second.id, "another job", "the same job", "/jobId")


@requirement("RT-IDEM-50")
@pytest.mark.parametrize("state", ["locked", "cancelled"])
async def test_the_existing_job_answers_whatever_its_state(api: RuntimeApi, given: Given, state: str) -> None:
    """A creation that repeats a locked or cancelled job gets that job; the job is left alone."""
    made = {"userId": given.unique("user"), "idempotencyKey": given.unique("idem"), **FIVE}
    job = await given.job(**made)
    if state == "locked":
        await api.lock(job).succeeds()
    else:
        await given.states.set_up("cancel-job", {"jobId": job.id})
    before = await given.inspect(job)
    same = await again(given, made)
    expect(same.id == job.id, f"the job {job.id} again", same.id, "/jobId")
    expect(
        same.snapshot_id == job.snapshot_id, "no new snapshot", f"another snapshot: {same.snapshot_id}", "/snapshotId"
    )
    await given.unchanged(job, before)


@requirement("RT-IDEM-51")
async def test_only_the_five_together_are_unique(given: Given) -> None:
    """The same key with another user, type or target makes a job of its own."""
    made = {"userId": given.unique("user"), "idempotencyKey": given.unique("idem"), **FIVE}
    ids = {(await given.job(**made)).id}
    others: list[dict[str, Any]] = [{"userId": given.unique("user")}, {"jobType": "flashcard_generation"}]
    others += [{"targetType": "user"}, {"targetId": "mat-2"}, {"idempotencyKey": given.unique("idem")}]
    for other in others:
        id_ = (await given.job(**{**made, **other})).id
        expect(id_ not in ids, f"a job of its own with another {next(iter(other))}", "the job that was there", "/jobId")
        ids.add(id_)


@requirement("RT-IDEM-06")
async def test_a_repeated_result_is_stored_once(api: RuntimeApi, given: Given) -> None:
    """The same result twice more: 200 each, and the job has one result."""
    job = await given.running_job()
    await api.result(job).succeeds()
    for _ in range(2):
        await api.result(job).succeeds(200)
        expect_fields(await given.inspect(job), {"resultCount": 1})


@requirement("RT-RES-14", "RT-SM-12", "RT-IDEM-06")
async def test_a_result_whose_answer_nobody_takes(api: RuntimeApi, given: Given) -> None:
    """A Runtime dies as it has sent its result; sent again it is a success, stored once, and the job succeeded."""
    job = await given.running_job()
    await api.abandoned(api.result(job))
    answer = await api.result(job).answers()
    with about("RT-IDEM-06"):
        expect(answer.status in (200, 201), ["200", "201"], describe(answer.response))
        expect_fields(await given.inspect(job), {"resultCount": 1})
    with about("RT-RES-14", "RT-SM-12"):
        await given.becomes(job, "succeeded")


@requirement("RT-IDEM-04")
async def test_a_results_key_has_separators(api: RuntimeApi, given: Given) -> None:
    """Attempt 1 with hash `1x` is not attempt 11 with hash `x`; a key that is shown is `jobId:attemptNo:hash`."""
    job = await second_attempt(given, by="runtime-a")
    answer = await api.result(job, attempt=1, hash="1x").succeeds()
    shown = shown_key(answer)
    expect(shown in ("", f"{job.id}:1:1x"), f"the key {job.id}:1:1x", shown, "/resultIdempotencyKey")
    await api.result(job, attempt=11, hash="x").refused()
