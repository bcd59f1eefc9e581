"""What the application does to jobs, and their columns (seed 000 sections 2, 4, 8 and 9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import expect, requirement
from contract_tests.client import JobRef, RuntimeApi
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from contract_tests.given import Clock, Given

STATUSES = ("pending", "locked", "running", "succeeded", "failed", "cancelled", "expired")
FIVE = {"jobType": "quiz_generation", "targetType": "material", "targetId": "mat-1"}


def same(row: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Fail the check where a column is not as wanted."""
    for name, value in wanted.items():
        came = row.get(name, "absent")
        expect(came == value and type(came) is type(value), f"{name} {json.dumps(value)}", json.dumps(came), f"/{name}")


@requirement(
    "RT-SM-01", "RT-SM-02", "RT-DB-07", "RT-DB-08", "RT-DB-12", "RT-DB-14", "RT-DB-15", "RT-DB-16", "RT-DB-17",
    "RT-DB-18", "RT-DB-21", "RT-DB-22", "RT-DB-23", "RT-DB-24", "RT-DB-25", "RT-DB-26", "RT-DB-27", "RT-DB-28",
    "RT-DB-29", "RT-DB-30", "RT-DB-31", "RT-DB-32", "RT-RETRY-06",
)  # fmt: skip
async def test_a_new_job_has_the_models_defaults(given: Given) -> None:
    """Every column that the creation left out has its default."""
    user = given.unique("user")
    job = await given.job(userId=user)
    row = await given.inspect(job)
    expect(row.get("status") in STATUSES, f"one of {', '.join(STATUSES)}", str(row.get("status")), "/status")
    empty = ("idempotencyKey", "credentialId", "retriedFromJobId", "lockedBy", "lockedAt", "lockUntil", "startedAt")
    defaults = {"status": "pending", "priority": 0, "apiKeyMode": "platform_key", "modelProvider": "deepseek"}
    counters = {
        "modelName": "deepseek-chat",
        "attemptNo": 0,
        "retryCount": 0,
        "maxRetryCount": 3,
        "timeoutSeconds": 120,
    }
    nothing = dict.fromkeys((*empty, "finishedAt", "errorCode", "errorMessage"))
    same(row, {"id": job.id, "userId": user, **defaults, **counters, **nothing})


@requirement("RT-DB-50", "RT-DB-55")
async def test_a_new_job_has_the_further_defaults(given: Given) -> None:
    """`cancelRequested` false, `params` null or as given."""
    same(await given.inspect(await given.job()), {"cancelRequested": False, "params": None})
    params = {"questionCount": 3}
    same(await given.inspect(await given.job(jobType="quiz_generation", params=params)), {"params": params})


@requirement("RT-DB-33", "RT-DB-34")
async def test_stamps(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """`createdAt` is the instant of creation and stays; `updatedAt` moves with every change."""
    before = await clock.now()
    job = await given.job()
    after = await clock.now()
    created = await given.inspect(job)
    for name in ("createdAt", "updatedAt"):
        good = created.get(name) is not None and before <= created[name] <= after
        expect(good, f"{name} within {before} to {after}", str(created.get(name)), f"/{name}")
    await clock.advance(3)
    await api.lock(job).succeeds()
    locked = await given.inspect(job)
    same(locked, {"createdAt": created["createdAt"]})
    expect(
        locked["updatedAt"] >= created["updatedAt"] + 2900,
        "updatedAt moved by the lock",
        str(locked["updatedAt"]),
        "/updatedAt",
    )


@requirement("RT-IDEM-01")
async def test_the_same_job_is_not_created_twice(given: Given) -> None:
    """userId, jobType, targetType, targetId and idempotencyKey again: the same job."""
    made = {"userId": given.unique("user"), "idempotencyKey": given.unique("idem"), **FIVE}
    first, second = await given.job(**made), await given.job(**made)
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
    again = await given.job(**made)
    expect(again.id == job.id, f"the job {job.id} again", again.id, "/jobId")
    expect(
        again.snapshot_id == job.snapshot_id, "no new snapshot", f"another snapshot: {again.snapshot_id}", "/snapshotId"
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


@requirement("RT-SM-17", "RT-CANCEL-01", "RT-CANCEL-52")
async def test_cancelling_sets_its_columns(given: Given, clock: Clock) -> None:
    """A cancelled job: status cancelled, `finishedAt` now."""
    job = await given.job()
    before = await clock.now()
    await given.states.set_up("cancel-job", {"jobId": job.id})
    row, after = await given.inspect(job), await clock.now()
    same(row, {"status": "cancelled"})
    finished = row.get("finishedAt")
    good = finished is not None and before <= finished <= after
    expect(good, f"finishedAt within {before} to {after}", str(finished), "/finishedAt")


@requirement("RT-SM-53", "RT-SM-54")
@pytest.mark.parametrize("state", ["cancelled", "failed"])
async def test_a_finished_job_never_changes(api: RuntimeApi, given: Given, clock: Clock, state: str) -> None:
    """Lock, heartbeat, time and a revocation leave every column of a finished job as it is."""
    job = await (given.cancelled_job() if state == "cancelled" else given.failed_job())
    await given.settles(job)
    before = await given.inspect(job)
    await api.lock(job).refused()
    await api.heartbeat(job, by="runtime-a").refused()
    await given.revoke_ai_consent(job.user_id)
    await clock.advance(given.timing.lock * 3)
    await given.unchanged(job, before)


@requirement("RT-CANCEL-03")
async def test_switching_ai_off_cancels_pending_jobs(api: RuntimeApi, given: Given) -> None:
    """All pending jobs of that user are cancelled; another user's are not."""
    user = given.unique("user")
    mine, other = [await given.job(userId=user) for _ in range(3)], await given.job()
    await given.revoke_ai_consent(user)
    for job in mine:
        await api.lock(job).refused()
    await api.lock(other).succeeds()


@requirement("RT-CANCEL-04", "RT-CANCEL-53", "RT-CANCEL-54")
@pytest.mark.parametrize("state", ["locked", "running"])
async def test_switching_ai_off_marks_jobs_in_work(given: Given, state: str) -> None:
    """A locked or running job keeps its state and its lock, and has `cancelRequested`."""
    job = await (given.locked_job() if state == "locked" else given.running_job())
    before = await given.inspect(job)
    await given.revoke_ai_consent(job.user_id)
    row = await given.inspect(job)
    same(
        row,
        {"cancelRequested": True, "status": state, "lockedBy": before["lockedBy"], "lockUntil": before["lockUntil"]},
    )


@requirement("RT-CANCEL-50", "RT-CANCEL-55", "RT-CANCEL-58", "RT-CANCEL-60")
@pytest.mark.parametrize("how", ["lapse", "timeout"])
async def test_an_unwanted_job_that_lapses_is_cancelled(given: Given, clock: Clock, how: str) -> None:
    """With `cancelRequested` a lapse or a timeout makes the job cancelled, retries or not."""
    job = await given.running_job(timeoutSeconds=600 if how == "lapse" else 3)
    await given.revoke_ai_consent(job.user_id)
    await clock.advance(given.timing.lock + 2 * clock.margin)
    await given.settles(job)
    row = await given.inspect(job)
    same(
        row,
        {
            "status": "cancelled",
            "errorCode": "JOB_TIMEOUT",
            "cancelRequested": True,
            "lockedBy": None,
            "lockUntil": None,
        },
    )
    expect(row.get("finishedAt") is not None, "finishedAt set", "null", "/finishedAt")


@requirement("RT-CANCEL-50")
async def test_an_unwanted_job_is_not_handed_out_again(given: Given) -> None:
    """With `cancelRequested` a lapsed job never comes back."""
    job = await given.locked_job()
    await given.revoke_ai_consent(job.user_id)
    await given.lapse()
    await given.stays_away(job)


@requirement("RT-CANCEL-62")
async def test_jobs_after_a_revocation_are_unaffected(api: RuntimeApi, given: Given) -> None:
    """A job that is created afterwards for the same user can be locked and is not marked."""
    user = given.unique("user")
    await given.revoke_ai_consent(user)
    job = await given.job(userId=user)
    await api.lock(job).succeeds()
    answer = await api.heartbeat(job).succeeds(204)
    expect("x-job-cancel-requested" not in answer.headers, "no cancel request", "a cancel request")


async def rerun(given: Given, job: JobRef) -> JobRef:
    """The job that an Admin's rerun makes of a failed one."""
    values = await given.states.set_up("rerun-job", {"jobId": job.id})
    return JobRef(values["jobId"], job.user_id, None)


@requirement("RT-ADMIN-01", "RT-ADMIN-02", "RT-ADMIN-04")
async def test_a_failed_job_can_be_rerun(api: RuntimeApi, given: Given) -> None:
    """A rerun makes another job that can be locked; the old one stays failed."""
    job = await given.failed_job()
    await given.settles(job)
    new = await rerun(given, job)
    expect(new.id != job.id, "a new job", "the old job", "/jobId")
    await api.lock(new).succeeds()
    await api.lock(job).refused()


@requirement("RT-ADMIN-03", "RT-DB-22")
async def test_a_rerun_records_its_origin(given: Given) -> None:
    """`retriedFromJobId` of the new job is the old job's id."""
    job = await given.failed_job()
    await given.settles(job)
    same(await given.inspect(await rerun(given, job)), {"retriedFromJobId": job.id})


@requirement("RT-ADMIN-51", "RT-ADMIN-52", "RT-ADMIN-53", "RT-ADMIN-54")
async def test_a_rerun_copies_the_input(given: Given) -> None:
    """Pending, counters 0, no idempotencyKey; every other input column, snapshotId and params too, as the old job's."""
    inputs = {
        "jobType": "flashcard_generation",
        "targetType": "user",
        "targetId": "t-1",
        "priority": 4,
        "timeoutSeconds": 99,
    }
    more = {"promptVersion": "flash_v1", "outputSchemaVersion": "flashcard_output_v1", "params": {"cardCount": 2}}
    job = await given.failed_job(**inputs, **more, idempotencyKey=given.unique("idem"))
    await given.settles(job)
    old, row = await given.inspect(job), await given.inspect(await rerun(given, job))
    same(row, {"status": "pending", "retryCount": 0, "attemptNo": 0, "idempotencyKey": None, **inputs, **more})
    copied = ("userId", "snapshotId", "apiKeyMode", "credentialId", "modelProvider", "modelName", "maxRetryCount")
    same(row, {name: old[name] for name in copied})


@requirement("RT-ADMIN-50")
@pytest.mark.parametrize("state", ["pending", "locked", "running", "cancelled"])
async def test_only_a_failed_job_can_be_rerun(given: Given, state: str) -> None:
    """A rerun of any other job is refused (409), and the job stays as it is."""
    make = {
        "pending": given.job,
        "locked": given.locked_job,
        "running": given.running_job,
        "cancelled": given.cancelled_job,
    }
    job = await make[state]()
    before = await given.inspect(job)
    try:
        await rerun(given, job)
    except StateRefused:
        await given.unchanged(job, before)
        return
    expect(False, "a refusal (409)", f"a rerun of a {state} job")
