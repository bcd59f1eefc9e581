"""The columns of a job (seed 000 section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import ANALYSES, Answer, RuntimeApi, log_entry

if TYPE_CHECKING:
    from contract_tests.clock import Clock
    from contract_tests.given import Given

STATUSES = ("pending", "locked", "running", "succeeded", "failed", "cancelled", "expired")


@requirement("RT-DB-50", "RT-DB-55")
async def test_a_new_job_has_the_further_defaults(given: Given) -> None:
    """`cancelRequested` false, `params` null or as given."""
    rules = {"cancelRequested": ("RT-DB-50",), "params": ("RT-DB-55",)}
    expect_fields(await given.inspect(await given.job()), {"cancelRequested": False, "params": None}, rules=rules)
    params = {"questionCount": 3}
    with about("RT-DB-55"):
        expect_fields(
            await given.inspect(await given.job(jobType="quiz_generation", params=params)), {"params": params}
        )


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
    moved = locked.get("updatedAt")
    good = isinstance(moved, int) and moved >= created["updatedAt"] + 2900
    expect(good, "updatedAt moved by the lock", str(moved), "/updatedAt")


NAMES = {
    "entry": "id jobType targetType targetId priority snapshotId promptVersion outputSchemaVersion",
    "lock": "jobId status lockUntil",
    "snapshot": "jobId snapshotId snapshotVersion privacyScope userProfile aiSettings learningBehaviorSummary "
    "materialProgressSummary behaviorSignals scoreSignals constraints allowedModelFields",
    "credential": "provider model baseUrl apiKeyMode",
    "error": "statusCode errorCode message timestamp",
}
"""What the seed's answers hold (003 sections 3 and 4); the platform's `apiKey` may be absent."""


@requirement("RT-DB-38")
async def test_a_whole_run_in_the_protocols_words(api: RuntimeApi, given: Given) -> None:
    """Poll, lock, heartbeat, snapshot, credential, log, result, failure: asked and answered by the seed's names."""

    def named(what: str, came: Any) -> None:
        for name in NAMES[what].split():
            expect(name in came, f"`{name}` in the answer ({what})", ", ".join(sorted(came))[:200], f"/{name}")

    def body(answer: Answer) -> Any:
        expect(isinstance(answer.json, dict), "an object", answer.response.text[:100])
        return answer.json

    job = await given.job(priority=given.first(), outputSchemaVersion="analysis_output_v1")
    entries = await given.polled(by="runtime-a", types=ANALYSES[:1])
    named("entry", next((entry for entry in entries if entry["id"] == job.id), {}))
    named("lock", body(await api.lock(job).succeeds()))
    named("error", body(await api.lock(job, by="runtime-b").refused()))
    await api.heartbeat(job).succeeds()
    named("snapshot", body(await api.snapshot(job).succeeds()))
    named("credential", body(await api.resolve(job).succeeds()))
    await api.logs(log_entry(job)).succeeds()
    await api.result(job, usage={"inputTokens": 1, "costEstimate": 0.5}).succeeds()
    await api.fail(await given.running_job(), rawError="x").succeeds()
