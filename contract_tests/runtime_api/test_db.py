"""The columns of a job (seed 000 section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.checks import expect, expect_fields, requirement
from contract_tests.client import RuntimeApi

if TYPE_CHECKING:
    from contract_tests.given import Clock, Given

STATUSES = ("pending", "locked", "running", "succeeded", "failed", "cancelled", "expired")


@requirement("RT-DB-50", "RT-DB-55")
async def test_a_new_job_has_the_further_defaults(given: Given) -> None:
    """`cancelRequested` false, `params` null or as given."""
    expect_fields(await given.inspect(await given.job()), {"cancelRequested": False, "params": None})
    params = {"questionCount": 3}
    expect_fields(await given.inspect(await given.job(jobType="quiz_generation", params=params)), {"params": params})


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
    expect_fields(locked, {"createdAt": created["createdAt"]})
    expect(
        locked["updatedAt"] >= created["updatedAt"] + 2900,
        "updatedAt moved by the lock",
        str(locked["updatedAt"]),
        "/updatedAt",
    )
