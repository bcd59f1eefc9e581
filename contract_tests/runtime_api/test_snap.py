"""Snapshots (seed 003 section 4.4): what they hold, who may read them, and what privacy leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import Answer, RuntimeApi, describe
from contract_tests.given import STATES, ids_of
from contract_tests.steps import FORMER, second_hand_job

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given

VERSION = "ai_snapshot_v1"
SECTIONS = (
    "privacyScope",
    "userProfile",
    "aiSettings",
    "learningBehaviorSummary",
    "materialProgressSummary",
    "behaviorSignals",
    "scoreSignals",
    "constraints",
)
NAMES = {str: "a string", bool: "a boolean", float: "a number"}


async def snapshot_of(api: RuntimeApi, given: Given, **params: Any) -> Answer:
    """The snapshot of a job of its own, as its holder reads it; ``params`` are the provider state's."""
    return await read(api, await given.locked_job(**params))


async def read(api: RuntimeApi, job: JobRef, *, by: str = "runtime-a") -> Answer:
    """The snapshot, as the job's holder reads it: what checks of its content start from."""
    with about("RT-SNAP-03", step="reading the snapshot"):
        return await api.snapshot(job, by=by).succeeds()


def section(answer: Answer, name: str, **fields: type) -> dict[str, Any]:
    """A section, an object; those of the seed's example ``fields`` that it has are of the seed's type."""
    part = answer.get(name)
    expect(isinstance(part, dict), f"`{name}`, an object", json.dumps(part)[:100], f"/{name}")
    for field, kind in fields.items():
        if field in part:
            value = part[field]
            good = isinstance(value, int | float if kind is float else kind) and isinstance(value, bool) is (
                kind is bool
            )
            expect(good, f"`{field}`, {NAMES[kind]}", json.dumps(value)[:100], f"/{name}/{field}")
    return dict(part)


@requirement("RT-SNAP-01", "RT-SNAP-03")
@pytest.mark.parametrize("allowed", [True, False], ids=["documents", "no documents"])
async def test_the_holder_gets_the_snapshot(api: RuntimeApi, given: Given, allowed: bool) -> None:
    """`GET /internal/runtime/jobs/{jobId}/snapshot` by the holder: 200 with a JSON object."""
    job = await given.locked_job(allowDocumentContent=allowed)
    answer = await api.raw("GET", f"{job.path}/snapshot").succeeds(200)
    expect(bool(answer.fields), "a snapshot", "an empty object")


@requirement("RT-SNAP-02", "RT-SNAP-04", "RT-SNAP-05")
async def test_each_job_has_its_own_snapshot(api: RuntimeApi, given: Given) -> None:
    """Of two jobs, read in turn, each gives its own `jobId` and its own `snapshotId`."""
    jobs = [await given.locked_job(), await given.locked_job()]
    for job in (*jobs, jobs[0]):
        answer = await read(api, job)
        expect_fields(answer.fields, {"jobId": job.id})
        snapshot = answer.get("snapshotId")
        good = snapshot == job.snapshot_id if job.snapshot_id else isinstance(snapshot, str)
        expect(good, f"snapshotId {job.snapshot_id or 'a string'}", json.dumps(snapshot)[:100], "/snapshotId")


@requirement("RT-SNAP-06")
async def test_it_says_its_version(api: RuntimeApi, given: Given) -> None:
    """`snapshotVersion` is a string that is not empty."""
    version = (await snapshot_of(api, given)).get("snapshotVersion")
    expect(isinstance(version, str) and bool(version), "a version", json.dumps(version)[:100], "/snapshotVersion")


@requirement("RT-SNAP-07", "RT-SNAP-09")
@pytest.mark.parametrize("allowed", [True, False])
async def test_it_says_what_is_allowed(api: RuntimeApi, given: Given, allowed: bool) -> None:
    """`privacyScope` and `aiSettings` are objects, `allowDocumentContent` is what the user chose."""
    answer = await snapshot_of(api, given, allowDocumentContent=allowed)
    scope = section(answer, "privacyScope", allowDocumentContent=bool)
    came = scope.get("allowDocumentContent", allowed)
    expect(came is allowed, f"allowDocumentContent {allowed}".lower(), json.dumps(came), "/privacyScope")
    section(answer, "aiSettings", allowAiAnalysis=bool)


@requirement("RT-SNAP-08", "RT-SNAP-15")
@pytest.mark.parametrize("fields", [["learningGoal", "currentLevel"], ["currentLevel"], []], ids=["two", "one", "none"])
async def test_it_has_the_profile(api: RuntimeApi, given: Given, fields: list[str]) -> None:
    """`userProfile` is an object and `allowedModelFields` lists what the user allowed, also where that is nothing."""
    answer = await snapshot_of(api, given, allowedModelFields=fields)
    section(answer, "userProfile", learningGoal=str, currentLevel=str)
    allowed = answer.get("allowedModelFields")
    good = isinstance(allowed, list) and all(isinstance(name, str) for name in allowed)
    expect(good, "`allowedModelFields`, a list of strings", json.dumps(allowed)[:100], "/allowedModelFields")
    expect(sorted(allowed) == sorted(fields), json.dumps(fields), json.dumps(allowed)[:100], "/allowedModelFields")


@requirement("RT-SNAP-10", "RT-SNAP-11")
async def test_it_has_the_summaries(api: RuntimeApi, given: Given) -> None:
    """`learningBehaviorSummary` and `materialProgressSummary` are objects, their numbers numbers."""
    answer = await snapshot_of(api, given)
    section(answer, "learningBehaviorSummary", totalActiveSeconds=float)
    section(answer, "materialProgressSummary", progress=float)


@requirement("RT-SNAP-12")
async def test_it_has_the_signals(api: RuntimeApi, given: Given) -> None:
    """`behaviorSignals` is an object, `engagementSignal` a string."""
    section(await snapshot_of(api, given), "behaviorSignals", engagementSignal=str)


@requirement("RT-SNAP-13", "RT-SNAP-14")
async def test_it_has_scores_and_constraints(api: RuntimeApi, given: Given) -> None:
    """`scoreSignals` and `constraints` are objects, their numbers numbers."""
    answer = await snapshot_of(api, given)
    section(answer, "scoreSignals", masteryRiskScore=float)
    section(answer, "constraints", dailyAvailableMinutes=float)


@requirement("RT-SNAP-16", "RT-ERR-09")
async def test_a_missing_snapshot_is_404(api: RuntimeApi, given: Given) -> None:
    """A `snapshotId` that no snapshot has: 404 SNAPSHOT_NOT_FOUND, not retryable."""
    job = await given.locked_job(snapshot="missing")
    answer = await api.snapshot(job).fails(404, "SNAPSHOT_NOT_FOUND")
    expect(answer.json.get("retryable", False) is False, "retryable false", "true", "/retryable")


@requirement("RT-SNAP-17", "RT-ERR-08")
async def test_an_expired_snapshot_is_410(api: RuntimeApi, given: Given) -> None:
    """An expired snapshot: 410 SNAPSHOT_EXPIRED, retryable, and nothing of the snapshot in the answer."""
    job = await given.locked_job(snapshot="expired")
    answer = await api.snapshot(job).fails(410, "SNAPSHOT_EXPIRED")
    expect(answer.json.get("retryable", True) is True, "retryable true", "false", "/retryable")
    told = [name for name in SECTIONS if name in answer.json]
    expect(not told, "no section of the snapshot", ", ".join(told))


@requirement("RT-SNAP-51")
async def test_a_job_without_a_snapshot_is_404(api: RuntimeApi, given: Given) -> None:
    """`snapshotId` null: 404 SNAPSHOT_NOT_FOUND."""
    await api.snapshot(await given.locked_job(snapshot="none")).fails(404, "SNAPSHOT_NOT_FOUND")


@requirement("RT-SNAP-50")
@pytest.mark.parametrize("state", STATES)
async def test_only_the_holder_may_read(api: RuntimeApi, given: Given, state: str) -> None:
    """In each state: the holder's 200, while there is one; 409 LOCK_NOT_HELD for a former holder and a stranger."""
    job = await second_hand_job(given, state)
    for caller in (FORMER, "runtime-b", "runtime-A"):
        await api.snapshot(job, by=caller).fails(409, "LOCK_NOT_HELD")
    if state in ("locked", "running"):
        await api.snapshot(job).succeeds(200)
    else:
        await api.snapshot(job).fails(409, "LOCK_NOT_HELD")


@requirement("RT-SNAP-50")
@pytest.mark.parametrize("kind", ["expired", "missing", "none"])
async def test_the_lock_is_judged_before_the_snapshot(api: RuntimeApi, given: Given, kind: str) -> None:
    """A stranger learns nothing of a snapshot, not even that it is gone: 409 LOCK_NOT_HELD."""
    job = await given.locked_job(snapshot=kind)
    await api.snapshot(job, by="runtime-b").fails(409, "LOCK_NOT_HELD")


@requirement("RT-SNAP-50")
async def test_a_lapsed_lock_opens_nothing(api: RuntimeApi, given: Given) -> None:
    """After its lock lapsed the holder gets 409, before and after another has locked the job."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    await api.snapshot(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await given.comes_back(job, by="runtime-b")
    await api.snapshot(job, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    await api.snapshot(job, by="runtime-b").succeeds(200)


@requirement("RT-SNAP-50")
async def test_the_lock_opens_to_its_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At the very millisecond of `lockUntil` 200, a millisecond later 409."""
    clock.needs_to_stand()
    job = await given.job()
    until = (await api.lock(job).succeeds(200)).integer("lockUntil")
    await clock.reach(until, "RT-TIME-05")
    await api.snapshot(job).succeeds(200)
    await clock.advance(0.001)
    await api.snapshot(job).fails(409, "LOCK_NOT_HELD")


@requirement("RT-ERR-06")
async def test_no_job_no_snapshot(api: RuntimeApi) -> None:
    """The snapshot of a job that does not exist: 404 JOB_NOT_FOUND."""
    await api.snapshot("no-such-job").fails(404, "JOB_NOT_FOUND")


@requirement("RT-AUTH-08")
async def test_anothers_job_gives_no_data(api: RuntimeApi, given: Given) -> None:
    """A Runtime that holds a job of its own reads no snapshot of the job that another holds."""
    other, own = await given.locked_job("runtime-b"), await given.locked_job("runtime-a")
    await api.snapshot(other, by="runtime-a").refused()
    await read(api, own)


@requirement("RT-SNAP-52")
async def test_reading_changes_nothing(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Every column of the job is what it was before it was read, and before a read was refused."""
    job = await given.locked_job()
    before = await given.inspect(job)
    await clock.advance(2)
    first = await read(api, job)
    again = await read(api, job)
    await api.snapshot(job, by="runtime-b").answers()
    expect(first.json == again.json, "the same snapshot when read again", describe(again.response))
    await given.unchanged(job, before)


@requirement("RT-SNAP-52")
async def test_reading_is_no_heartbeat(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A lock lapses 60 s after it was taken however often its holder reads the snapshot."""
    job = await given.locked_job("runtime-a")
    await clock.advance(given.timing.lock / 2)
    await read(api, job)
    await clock.advance(given.timing.lock / 2 + 2 * clock.margin)
    await given.comes_back(job, by="runtime-b")


@requirement("RT-SNAP-53")
@pytest.mark.parametrize(
    "fields",
    [[], ["learningGoal"], ["currentLevel"], ["learningGoal", "currentLevel"], ["no_such_field"], ["userProfile"]],
    ids=["none", "the goal", "the level", "both", "another", "its own name"],
)
async def test_the_profile_holds_only_what_is_allowed(api: RuntimeApi, given: Given, fields: list[str]) -> None:
    """`userProfile` has no field that `allowedModelFields` does not name; nothing named: nothing there."""
    answer = await snapshot_of(api, given, allowedModelFields=fields)
    came = sorted(set(section(answer, "userProfile")) - set(fields))
    expect(not came, f"only fields of {json.dumps(fields)}", f"also {', '.join(came)}", "/userProfile")


@requirement("RT-SNAP-54")
@pytest.mark.parametrize("fields", [["learningGoal"], ["documentContent"]], ids=["not named", "named"])
async def test_documents_that_are_not_allowed_are_absent(api: RuntimeApi, given: Given, fields: list[str]) -> None:
    """With `allowDocumentContent` false there is no `documentContent`, at any depth, named as a model field or not."""
    answer = await snapshot_of(api, given, allowDocumentContent=False, allowedModelFields=fields)
    places = list(places_of("documentContent", answer.json))
    expect(not places, "no documentContent", "it is there", places[0] if places else None)


@requirement("RT-SNAP-55")
async def test_documents_change_nothing_else(api: RuntimeApi, given: Given) -> None:
    """`documentContent` is optional: what a snapshot has without it, it has with it, too."""
    without, with_it = [
        (await snapshot_of(api, given, allowDocumentContent=allowed)).fields for allowed in (False, True)
    ]
    lost = sorted(set(without) - set(with_it))
    expect(
        not lost,
        "all other sections beside documentContent",
        f"{', '.join(lost)} left out",
        f"/{lost[0]}" if lost else None,
    )


def places_of(name: str, value: Any, at: str = "") -> Any:
    """The JSON Pointers at which a property of that name stands."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == name:
                yield f"{at}/{key}"
            yield from places_of(name, item, f"{at}/{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from places_of(name, item, f"{at}/{i}")


@requirement("RT-DB-54")
async def test_the_version_has_a_default(api: RuntimeApi, given: Given) -> None:
    """A snapshot that is made without a version has `ai_snapshot_v1`."""
    version = (await snapshot_of(api, given)).get("snapshotVersion")
    expect(version == VERSION, VERSION, json.dumps(version)[:100], "/snapshotVersion")


@requirement("RT-SNAP-57")
async def test_the_api_supports_one_version(api: RuntimeApi, given: Given) -> None:
    """A poll for `ai_snapshot_v1` alone lists the job of such a snapshot; the next version alone is 422."""
    job = await given.listed_job(snapshotVersion=VERSION)
    versions = {"supportedSnapshotVersions": [VERSION], "supportedOutputSchemaVersions": [job.schema, "quiz_output_v1"]}
    entries = await given.polled(types=["learning_state_analysis"], capabilities=versions)
    expect(job.id in ids_of(entries), "the job is listed", f"{len(entries)} others are", "/jobs")
    other = {"supportedSnapshotVersions": ["ai_snapshot_v2"]}
    await api.poll(capabilities=other).fails(422, "RUNTIME_VERSION_INCOMPATIBLE")
