"""Data files: what they may hold, and what is said of a wrong one."""

from __future__ import annotations

import asyncio
from importlib.resources import as_file, files

import pytest

from mock_server.seed_data import DataError, SeedData
from mock_server.worlds import Options, Worlds

JOB = "{id: job-1, userId: u, jobType: quiz_generation, targetType: user, targetId: t%s}"


def filled(seeds):
    """The rows of a world with these data."""
    world = Worlds(Options(api_key="some-key", clock="manual")).default

    async def fill():
        await world.fill(seeds)
        return world, {
            name: list(await world.engine.store.rows(name)) for name in ("Job", "Snapshot", "Credential", "Result")
        }

    return asyncio.run(fill())


def read(tmp_path, text):
    path = tmp_path / "data.yaml"
    path.write_text(text)
    return SeedData.read(path)


def test_the_example_has_a_job_of_each_type_and_the_seeds_ids():
    with as_file(files("mock_server").joinpath("data/example.yaml")) as path:
        world, rows = filled(SeedData.read(path))
    assert {row["jobType"] for row in rows["Job"]} == {
        "learning_state_analysis",
        "weak_point_analysis",
        "next_action_planning",
        "quiz_generation",
        "flashcard_generation",
    }
    first = rows["Job"][0]
    assert (first["id"], first["targetId"], first["snapshotId"], first["credentialId"]) == (
        "job-abc123",
        "mat-xyz",
        "snap-001",
        "cred-001",
    )
    assert all(row["params"] for row in rows["Job"] if row["jobType"] in ("quiz_generation", "flashcard_generation"))
    assert {row["snapshotId"] for row in rows["Job"]} <= {row["id"] for row in rows["Snapshot"]}
    assert {row["credentialId"] for row in rows["Job"]} - {None} <= {row["id"] for row in rows["Credential"]}
    assert all(world.redactor.text(row["apiKey"]) == "[redacted]" for row in rows["Credential"])


def test_what_is_left_out_has_the_models_default(tmp_path):
    _, rows = filled(read(tmp_path, f"jobs: [{JOB % ''}]"))
    (row,) = rows["Job"]
    assert (row["status"], row["priority"], row["maxRetryCount"], row["outputSchemaVersion"]) == (
        "pending",
        0,
        3,
        "quiz_output_v1",
    )


def test_jobs_are_as_old_as_their_order_says(tmp_path):
    _, rows = filled(read(tmp_path, f"jobs: [{JOB % ''}, {(JOB % '').replace('job-1', 'a')}]"))
    ages = [row["createdAt"] for row in rows["Job"]]
    assert ages == sorted(set(ages))


def test_a_finished_job_comes_with_its_result(tmp_path):
    job = JOB % ", status: succeeded, startedAt: 1, finishedAt: 2"
    columns = "resultIdempotencyKey: k, outputHash: h, attemptNo: 0, schemaVersion: quiz_output_v1, validatedOutput: {}"
    result = f"{{jobId: job-1, {columns}}}"
    _, rows = filled(read(tmp_path, f"jobs: [{job}]\nresults: [{result}]"))
    assert (rows["Job"][0]["status"], rows["Result"][0]["outputHash"]) == ("succeeded", "h")


UNREADABLE = {
    "no YAML": ("jobs: [", 2, "mend"),
    "no mapping": ("- 1", 1, "mapping"),
    "unknown list": ("\njobz: []", 2, "did you mean `jobs`?"),
    "unknown column": (f"jobs:\n- {JOB % ', prority: 1'}", 2, "did you mean `priority`?"),
    "missing column": ("jobs:\n- id: a", 2, "/jobs/0/userId is required"),
    "wrong type": (f"jobs:\n- {JOB % ', priority: high'}", 2, "integer"),
    "unknown type of job": (f"jobs:\n- {(JOB % '').replace('quiz', 'poem')}", 2, "weak_point_analysis"),
    "not a list": ("jobs: {}", 1, "array"),
    "the same key twice": ("jobs: []\njobs: []", 2, "twice"),
    "a secret of a wrong type": ("credentials:\n- {id: c, userId: u, apiKey: [sk-secret]}", 2, "string"),
}


@pytest.mark.parametrize(("text", "line", "told"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_wrong_file_is_told_with_line_and_mend(tmp_path, text, line, told):
    with pytest.raises(DataError) as raised:
        read(tmp_path, text)
    said = str(raised.value)
    assert f"data.yaml:{line}: " in said
    assert told in said
    assert "sk-secret" not in said


def test_every_problem_is_told_at_once(tmp_path):
    with pytest.raises(DataError) as raised:
        read(tmp_path, f"jobs:\n- {JOB % ', a: 1'}\n- {JOB % ', priority: x'}\ncredentials: 3")
    assert len(str(raised.value).splitlines()) == 3


FITS_NOT = {
    "an id twice": (f"jobs:\n- {JOB % ''}\n- {JOB % ''}", 3, "`job-1` is there already"),
    "an idempotency key twice": (
        f"jobs:\n- {JOB % ', idempotencyKey: k'}\n- {(JOB % ', idempotencyKey: k').replace('job-1', 'job-2')}",
        3,
        "idempotencyKey",
    ),
    "locked by nobody": (f"jobs:\n- {JOB % ', status: locked'}", 2, "lockedBy"),
    "succeeded without a result": (f"jobs:\n- {JOB % ', status: succeeded, finishedAt: 2'}", 2, "result"),
    "a state that no job stays in": (f"jobs:\n- {JOB % ', status: expired'}", 2, "expired"),
}


@pytest.mark.parametrize(("text", "line", "told"), FITS_NOT.values(), ids=FITS_NOT)
def test_rows_that_do_not_fit_are_told_with_line_and_mend(tmp_path, text, line, told):
    with pytest.raises(DataError) as raised:
        filled(read(tmp_path, text))
    assert f"data.yaml:{line}: " in str(raised.value)
    assert told in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.yaml"):
        SeedData.read(tmp_path / "nothing.yaml")


def test_a_snapshot_has_every_section(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_text("snapshots:\n  - {id: s, content: {privacyScope: {}}}\n")
    with pytest.raises(DataError) as told:
        SeedData.read(path)
    assert "/snapshots/0/content/userProfile is required" in str(told.value)
    assert "data.yaml:2" in str(told.value)


def test_numbers_that_no_answer_can_carry_are_refused(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_text(
        "jobs:\n"
        "  - {userId: u, jobType: quiz_generation, targetType: user, targetId: t, priority: 1000000000000000000000}\n"
    )
    with pytest.raises(DataError, match="/jobs/0/priority must be at most"):
        SeedData.read(path)
