"""What an Admin does: reruns (seed 000 section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import CheckFailed, about, expect, expect_fields, requirement
from contract_tests.client import RuntimeApi
from contract_tests.steps import USER_MODE, credential, job_with_credential, rerun, runs_out
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given


@requirement("RT-ADMIN-01", "RT-ADMIN-02", "RT-ADMIN-04")
async def test_a_failed_job_can_be_rerun(api: RuntimeApi, given: Given) -> None:
    """A rerun makes another job that can be locked; the old one stays failed."""
    job = await given.failed_job()
    await given.settles(job)
    with about("RT-ADMIN-01"):
        try:
            new = await rerun(given, job)
        except StateRefused as refused:
            raise CheckFailed("a failed job is rerun", str(refused)) from None
    with about("RT-ADMIN-02", "RT-ADMIN-04"):
        expect(new.id != job.id, "a new job", "the old job", "/jobId")
    with about("RT-ADMIN-01"):
        await api.lock(new).succeeds()
    with about("RT-ADMIN-04"):
        await api.lock(job).refused()


@requirement("RT-ADMIN-03", "RT-DB-22")
async def test_a_rerun_records_its_origin(given: Given) -> None:
    """`retriedFromJobId` of the new job is the old job's id."""
    job = await given.failed_job()
    await given.settles(job)
    expect_fields(await given.inspect(await rerun(given, job)), {"retriedFromJobId": job.id})


@requirement("RT-ADMIN-51", "RT-ADMIN-52", "RT-ADMIN-53", "RT-ADMIN-54")
async def test_a_rerun_copies_the_input(given: Given) -> None:
    """Pending, counters 0, no idempotencyKey; every other input column, snapshotId and params too, as the old job's."""
    inputs: dict[str, Any] = {
        "jobType": "flashcard_generation",
        "targetType": "user",
        "targetId": "t-1",
        "priority": 4,
        "timeoutSeconds": 99,
    }
    more: dict[str, Any] = {
        "promptVersion": "flash_v1",
        "outputSchemaVersion": "flashcard_output_v1",
        "params": {"cardCount": 2},
    }
    job = await given.failed_job(**inputs, **more, idempotencyKey=given.unique("idem"))
    await given.settles(job)
    old, row = await given.inspect(job), await given.inspect(await rerun(given, job))
    wanted = {"status": "pending", "retryCount": 0, "attemptNo": 0, "idempotencyKey": None, **inputs, **more}
    copied = ("userId", "snapshotId", "apiKeyMode", "credentialId", "modelProvider", "modelName", "maxRetryCount")
    wanted |= {name: old[name] for name in copied}
    rules = {**dict.fromkeys(wanted, ("RT-ADMIN-54",)), "status": ("RT-ADMIN-51",), "idempotencyKey": ("RT-ADMIN-53",)}
    rules |= dict.fromkeys(("retryCount", "attemptNo"), ("RT-ADMIN-52",))
    expect_fields(row, wanted, rules=rules)


@requirement("RT-ADMIN-54")
async def test_a_rerun_uses_the_same_key(api: RuntimeApi, given: Given) -> None:
    """The rerun of a job that uses a user's key names that key, too."""
    id_, user, _ = await credential(given)
    job = await job_with_credential(given, id_, user)
    await api.fail(job, retryable=False).succeeds()
    await given.settles(job)
    row = await given.inspect(await rerun(given, job))
    expect_fields(row, {"apiKeyMode": USER_MODE, "credentialId": id_})


@requirement("RT-ADMIN-50")
@pytest.mark.parametrize("state", ["pending", "locked", "running", "succeeded", "cancelled"])
async def test_only_a_failed_job_can_be_rerun(given: Given, state: str) -> None:
    """A rerun of any other job is refused (409), and the job stays as it is."""
    job = await given.in_state(state)
    before = await given.inspect(job)
    try:
        await rerun(given, job)
    except StateRefused:
        await given.unchanged(job, before)
        return
    expect(False, "a refusal (409)", f"a rerun of a {state} job")


@requirement("RT-ADMIN-02", "RT-ADMIN-04")
async def test_a_rerun_leaves_the_old_job(given: Given) -> None:
    """Each rerun makes one more job; no column of the failed one changes."""
    job = await given.failed_job()
    before = await given.inspect(job)
    new = [await rerun(given, job) for _ in range(2)]
    with about("RT-ADMIN-02"):
        expect(len({job.id, *(item.id for item in new)}) == 3, "two new jobs", str([item.id for item in new]), "/jobId")
    with about("RT-ADMIN-04"):
        await given.unchanged(job, before)


@requirement("RT-ADMIN-52", "RT-ADMIN-54")
async def test_a_rerun_has_its_whole_quota(given: Given, clock: Clock) -> None:
    """A job that used up its retries is rerun: the new one has as many attempts as the old one had."""
    clock.needs_advance()
    job = await given.job(maxRetryCount=1)
    await runs_out(given, job, 2, ("RT-RETRY-07",))
    new = await rerun(given, job)
    with about("RT-ADMIN-52"):
        expect_fields(await given.inspect(new), {"retryCount": 0, "attemptNo": 0})
    await runs_out(given, new, 2, ("RT-ADMIN-54",))
