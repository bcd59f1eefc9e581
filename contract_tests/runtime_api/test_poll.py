"""Polling for jobs (seed 003 section 4.1, seed 000 section 10)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, alone, expect, expect_fields, is_integer, requirement
from contract_tests.client import ANALYSES, BASE, JOB_TYPES, RuntimeApi
from contract_tests.given import POLL_LIMIT, Given, ids_of, jobs_of

if TYPE_CHECKING:
    from contract_tests.client import JobRef

SNAPSHOT, ANALYSIS, QUIZ = "ai_snapshot_v1", "analysis_output_v1", "quiz_output_v1"
SEED_EXAMPLE = (
    b'{"runtimeInstanceId":"runtime-001","supportedJobTypes":["learning_state_analysis","quiz_generation"],"limit":5,'
    b'"capabilities":{"supportedSnapshotVersions":["ai_snapshot_v1"],'
    b'"supportedOutputSchemaVersions":["analysis_output_v1","quiz_output_v1"]}}'
)
STRINGS = ("id", "jobType", "targetType", "targetId")
NULLABLE_STRINGS = ("snapshotId", "promptVersion", "outputSchemaVersion")
FIELDS = (*STRINGS, *NULLABLE_STRINGS, "priority")


async def entry_of(given: Given, job: JobRef, type_: str = ANALYSES[0], **fields: Any) -> dict[str, Any]:
    """The poll entry of a job. Fails the check where it is not listed."""
    entries = await given.polled(types=[type_], **fields)
    found = [entry for entry in entries if entry.get("id") == job.id]
    if not found and len(entries) >= POLL_LIMIT:
        # Filtered out, or crowded out by others, although it was made to come first? A plain job in a plain poll tells.
        plain = await given.job(jobType=type_, priority=given.first())
        seen = ids_of(await given.polled(types=[type_]))
        with about("RT-SCHED-02", step="listing a job of the highest priority"):
            expect(plain.id in seen, f"job {plain.id} among the first {POLL_LIMIT}", f"others: {seen}", "/jobs")
    expect(len(found) == 1, f"job {job.id} listed once", f"{len(found)} times among {ids_of(entries)}")
    return found[0]


@requirement("RT-POLL-01", "RT-POLL-02", "RT-POLL-08", "RT-POLL-09", "RT-SM-02")
async def test_a_poll_lists_pending_jobs(api: RuntimeApi, given: Given) -> None:
    """A poll is 200 with `jobs`, among them a job that was just created."""
    job = await given.job(priority=given.first())
    await api.poll(types=[ANALYSES[0]], limit=50).succeeds()
    with about("RT-POLL-02", "RT-SM-02"):
        await entry_of(given, job)


@requirement("RT-POLL-01", "RT-POLL-08", "RT-POLL-09")
async def test_the_seeds_own_example_is_answered(api: RuntimeApi) -> None:
    """The request of seed 003 section 4.1, as it stands there."""
    with about("RT-POLL-01"):
        answer = await api.raw("POST", f"{BASE}/jobs/poll", content=SEED_EXAMPLE, by="runtime-001").succeeds()
    with about("RT-POLL-08"):
        expect(answer.status == 200, "200", str(answer.status))
    jobs_of(answer)


@requirement("RT-POLL-10", "RT-POLL-11", "RT-DB-13")
async def test_an_entry_has_the_seeds_fields(given: Given) -> None:
    """An entry carries the eight fields of the example, with their types, as the job has them."""
    made = {
        "targetType": "knowledge_point",
        "targetId": "kp-1",
        "priority": given.first(),
        "promptVersion": "learning_state_v1",
    }
    job = await given.job(**made, outputSchemaVersion=ANALYSIS)
    entry = await entry_of(given, job)
    with about("RT-POLL-10"):
        for name in FIELDS:
            expect(name in entry, f"`{name}` in the entry", json.dumps(entry)[:300], f"/jobs/0/{name}")
    with about("RT-POLL-11"):
        for name in STRINGS:
            expect(isinstance(entry[name], str), f"`{name}`, a string", json.dumps(entry[name]), f"/jobs/0/{name}")
        for name in NULLABLE_STRINGS:
            good = entry[name] is None or isinstance(entry[name], str)
            expect(good, f"`{name}`, a string or null", json.dumps(entry[name]), f"/jobs/0/{name}")
        priority = entry["priority"]
        expect(is_integer(priority), "`priority`, an integer", json.dumps(priority), "/jobs/0/priority")
    wanted = {
        **made,
        "id": job.id,
        "jobType": ANALYSES[0],
        "outputSchemaVersion": ANALYSIS,
        "snapshotId": job.snapshot_id,
    }
    expect_fields(entry, wanted, "/jobs/0", {**dict.fromkeys(wanted, ("RT-POLL-10",)), "priority": ("RT-DB-13",)})


@requirement("RT-DB-10", "RT-DB-11", "RT-DB-19", "RT-DB-20")
async def test_nullable_columns_are_null(given: Given) -> None:
    """A job without snapshot and prompt version has null there."""
    job = await given.job(snapshot="none", priority=given.first())
    entry = await entry_of(given, job)
    rules = {"snapshotId": ("RT-DB-11",), "promptVersion": ("RT-DB-19",)}
    expect_fields(entry, {"snapshotId": None, "promptVersion": None}, "/jobs/0", rules)
    for name, rule in (("targetId", "RT-DB-10"), ("outputSchemaVersion", "RT-DB-20")):
        with about(rule):
            expect(
                isinstance(entry.get(name), str), f"{name}, a string", json.dumps(entry.get(name)), f"/jobs/0/{name}"
            )


@requirement("RT-DB-09")
@pytest.mark.parametrize("target_type", ["user", "material", "knowledge_point"])
async def test_target_types(given: Given, target_type: str) -> None:
    """Each target type is listed as it was given."""
    job = await given.job(targetType=target_type, priority=given.first())
    came = (await entry_of(given, job)).get("targetType")
    expect(came == target_type, f"targetType {target_type}", str(came), "/jobs/0/targetType")


@requirement("RT-POLL-12", "RT-DB-01", "RT-DB-02", "RT-DB-03", "RT-DB-04", "RT-DB-05", "RT-DB-06")
@pytest.mark.parametrize("type_", JOB_TYPES)
async def test_only_the_asked_types_are_listed(given: Given, type_: str) -> None:
    """A job of each type is listed to who asks for its type, and not to who asks for the four others."""
    job = await given.job(jobType=type_, priority=given.first())
    with about(f"RT-DB-{JOB_TYPES.index(type_) + 1:02}", "RT-DB-06"):
        entry = await entry_of(given, job, type_)
        expect(entry["jobType"] == type_, f"jobType {type_}", str(entry["jobType"]), "/jobs/0/jobType")
    others = [other for other in JOB_TYPES if other != type_]
    entries = await given.polled(types=others)
    wrong = [entry.get("jobType") for entry in entries if entry.get("jobType") not in others]
    with about("RT-POLL-12"):
        expect(not wrong, f"only jobs of {', '.join(others)}", f"jobs of {wrong}", "/jobs")


@requirement("RT-POLL-12")
async def test_types_filter_jobs_that_came_back_too(given: Given) -> None:
    """A quiz whose first attempt failed is listed to who asks for quizzes, and not to who asks for another type."""
    job = await given.running_job(jobType="quiz_generation", priority=given.first())
    await given.fails(job)
    listed = ids_of(await given.polled(types=["quiz_generation"]))
    expect(job.id in listed, "the quiz for who asks for quizzes", str(listed), "/jobs")
    listed = ids_of(await given.polled(types=[ANALYSES[0]]))
    expect(job.id not in listed, "no quiz for who asks for analyses", f"{job.id} is listed", "/jobs")


@requirement("RT-POLL-13")
async def test_snapshot_versions_filter(given: Given) -> None:
    """A job is listed only to who can read its snapshot's version."""
    job = await given.job(priority=given.first(), snapshotVersion="ai_snapshot_v9")
    known = await given.job(priority=given.first())
    entries = await given.polled(types=[ANALYSES[0]], capabilities={"supportedSnapshotVersions": [SNAPSHOT]})
    expect(known.id in ids_of(entries), "the job of a known version", str(ids_of(entries)), "/jobs")
    expect(job.id not in ids_of(entries), "no job of another version", f"{job.id} is listed", "/jobs")
    both = await given.polled(
        types=[ANALYSES[0]], capabilities={"supportedSnapshotVersions": [SNAPSHOT, "ai_snapshot_v9"]}
    )
    expect(job.id in ids_of(both), "the job for who can read its version", str(ids_of(both)), "/jobs")


@requirement("RT-POLL-14")
async def test_output_schema_versions_filter(given: Given) -> None:
    """A job is listed only to who can write its output schema."""
    quiz = await given.job(jobType="quiz_generation", outputSchemaVersion=QUIZ, priority=given.first())
    types = ["quiz_generation"]
    entries = await given.polled(types=types, capabilities={"supportedOutputSchemaVersions": [ANALYSIS]})
    expect(quiz.id not in ids_of(entries), "no job of another output schema", f"{quiz.id} is listed", "/jobs")
    entries = await given.polled(types=types, capabilities={"supportedOutputSchemaVersions": [ANALYSIS, QUIZ]})
    expect(quiz.id in ids_of(entries), "the job for who can write its schema", str(ids_of(entries)), "/jobs")


@requirement("RT-POLL-50")
@alone
async def test_limit_defaults_to_ten(api: RuntimeApi, given: Given) -> None:
    """Without `limit` a poll lists ten of twelve jobs."""
    for _ in range(12):
        await given.job()
    count = len(jobs_of(await api.poll().succeeds()))
    expect(count == 10, "10 jobs", f"{count} jobs", "/jobs")


@requirement("RT-POLL-51")
async def test_limit_is_1_to_50(api: RuntimeApi) -> None:
    """1 and 50 are accepted; -1, 0, 51 and 10^9 are 400."""
    for limit in (1, 50):
        await api.poll(limit=limit).succeeds()
    for limit in (-1, 0, 51, 10**9):
        await api.poll(limit=limit).fails(400, "INVALID_REQUEST")


@requirement("RT-POLL-52")
async def test_types_are_required(api: RuntimeApi) -> None:
    """`supportedJobTypes` left out or empty is 400."""
    await api.raw("POST", f"{BASE}/jobs/poll", body={"runtimeInstanceId": "runtime-a"}).fails(400, "INVALID_REQUEST")
    await api.poll(types=[]).fails(400, "INVALID_REQUEST")


@requirement("RT-POLL-53")
async def test_an_unknown_type_matches_nothing(api: RuntimeApi, given: Given) -> None:
    """A type that the API does not know is allowed: it matches nothing, and the others still match."""
    job = await given.job(priority=given.first())
    expect(not jobs_of(await api.poll(types=["poetry"]).succeeds()), "no jobs", "some jobs", "/jobs")
    entries = await given.polled(types=["poetry", ANALYSES[0]])
    expect(job.id in ids_of(entries), "the jobs of the known type", str(ids_of(entries)), "/jobs")


@requirement("RT-POLL-54", "RT-POLL-55")
async def test_what_is_left_out_filters_nothing(given: Given) -> None:
    """Without `capabilities`, or with one list only, jobs of any other version are listed."""
    job = await given.job(
        priority=given.first(), snapshotVersion="ai_snapshot_v9", outputSchemaVersion="analysis_output_v9"
    )
    filters: list[dict[str, Any]] = [
        {},
        {"capabilities": {}},
        {"capabilities": {"supportedSnapshotVersions": ["ai_snapshot_v9", SNAPSHOT]}},
        {"capabilities": {"supportedOutputSchemaVersions": ["analysis_output_v9", ANALYSIS]}},
    ]
    for fields in filters:
        with about("RT-POLL-55" if fields.get("capabilities") else "RT-POLL-54"):
            await entry_of(given, job, **fields)


@requirement("RT-POLL-56")
async def test_an_empty_list_of_versions_lists_nothing(given: Given) -> None:
    """A list that is there and empty makes the answer empty, jobs without a snapshot included."""
    await given.job(priority=given.first())
    await given.job(priority=given.first(), snapshot="none")
    for name in ("supportedSnapshotVersions", "supportedOutputSchemaVersions"):
        entries = await given.polled(types=[ANALYSES[0]], capabilities={name: []})
        expect(not entries, f"no jobs with {name} []", str(ids_of(entries)), "/jobs")


@requirement("RT-POLL-57", "RT-POLL-58")
@pytest.mark.parametrize("snapshot", ["none", "missing"])
async def test_a_job_without_snapshot_passes_its_filter(given: Given, snapshot: str) -> None:
    """No snapshot, or one that does not exist, passes the snapshot filter."""
    job = await given.job(priority=given.first(), snapshot=snapshot)
    with about("RT-POLL-57" if snapshot == "none" else "RT-POLL-58"):
        await entry_of(given, job, capabilities={"supportedSnapshotVersions": [SNAPSHOT]})


@requirement("RT-POLL-59")
async def test_only_unknown_versions_are_422(api: RuntimeApi) -> None:
    """A list that names no version that the API supports: 422 RUNTIME_VERSION_INCOMPATIBLE."""
    for name in ("supportedSnapshotVersions", "supportedOutputSchemaVersions"):
        await api.poll(capabilities={name: ["no_such_version"]}).fails(422, "RUNTIME_VERSION_INCOMPATIBLE")
    some = {"supportedSnapshotVersions": ["no_such_version", SNAPSHOT]}
    await api.poll(capabilities=some).succeeds()


@requirement("RT-POLL-60", "RT-POLL-61", "RT-POLL-62")
async def test_an_entry_tells_what_the_runtime_needs(given: Given) -> None:
    """attemptNo, apiKeyMode, credentialId, modelProvider, modelName, timeoutSeconds and params."""
    params = {"questionCount": 3, "nested": {"a": [1, None]}}
    job = await given.job(jobType="quiz_generation", params=params, timeoutSeconds=77, priority=given.first())
    entry = await entry_of(given, job, "quiz_generation")
    wanted = {
        "attemptNo": 0,
        "apiKeyMode": "platform_key",
        "credentialId": None,
        "modelProvider": "deepseek",
        "modelName": "deepseek-chat",
        "timeoutSeconds": 77,
        "params": params,
    }
    rules = {**dict.fromkeys(wanted, ("RT-POLL-61",)), "attemptNo": ("RT-POLL-60",), "params": ("RT-POLL-62",)}
    expect_fields(entry, wanted, "/jobs/0", rules)
    plain = await given.job(priority=given.first())
    came = (await entry_of(given, plain)).get("params", "absent")
    with about("RT-POLL-62"):
        expect(came is None, "params null", json.dumps(came), "/jobs/0/params")


@requirement("RT-POLL-63", "RT-POLL-64")
async def test_an_entry_tells_no_more(given: Given) -> None:
    """No userId, no idempotencyKey, no API key in an entry."""
    credential = await given.states.set_up("credential", {"userId": given.unique("user")})
    mine = {
        "userId": credential["userId"],
        "credentialId": credential["credentialId"],
        "apiKeyMode": "user_deepseek_key",
    }
    job = await given.job(**mine, idempotencyKey=given.unique("idem"), priority=given.first())
    entry = await entry_of(given, job)
    for name in ("userId", "idempotencyKey", "apiKey"):
        with about("RT-POLL-64" if name == "apiKey" else "RT-POLL-63"):
            expect(name not in entry, f"no `{name}` in the entry", json.dumps(entry)[:200], f"/jobs/0/{name}")
    with about("RT-POLL-64"):
        expect(credential["apiKey"] not in json.dumps(entry), "no key in the entry", "the user's key is in it")


@requirement("RT-POLL-02")
async def test_polling_changes_nothing(api: RuntimeApi, given: Given) -> None:
    """Two Runtimes see the same job, and either can still lock it."""
    job = await given.job(priority=given.first())
    for by in ("runtime-a", "runtime-b", "runtime-a"):
        await entry_of(given, job)
        await api.poll(by=by, types=[ANALYSES[0]]).succeeds()
    await api.lock(job, by="runtime-b").succeeds()


@requirement("RT-DB-51", "RT-DB-52", "RT-DB-53")
@pytest.mark.parametrize(
    ("type_", "version"),
    [
        *((analysis, ANALYSIS) for analysis in ANALYSES),
        ("quiz_generation", QUIZ),
        ("flashcard_generation", "flashcard_output_v1"),
    ],
)
async def test_output_schemas_by_type(given: Given, type_: str, version: str) -> None:
    """A job that was created without an output schema version has its type's."""
    job = await given.job(jobType=type_, priority=given.first())
    rule = {"quiz_generation": "RT-DB-52", "flashcard_generation": "RT-DB-53"}.get(type_, "RT-DB-51")
    with about(f"RT-DB-{JOB_TYPES.index(type_) + 1:02}", step=f"listing a job of type {type_}"):
        came = (await entry_of(given, job, type_)).get("outputSchemaVersion")
    with about(rule):
        expect(came == version, f"outputSchemaVersion {version}", str(came), "/jobs/0/outputSchemaVersion")
