"""getSnapshot over HTTP: who may read, what is there, and what of it a Runtime may see."""

from __future__ import annotations

import pytest

from mock_server.privacy import Privacy

SECTIONS = {
    "jobId",
    "snapshotId",
    "snapshotVersion",
    "privacyScope",
    "userProfile",
    "aiSettings",
    "learningBehaviorSummary",
    "materialProgressSummary",
    "behaviorSignals",
    "scoreSignals",
    "constraints",
    "allowedModelFields",
}


def code(answer):
    return answer.status_code, answer.json()["errorCode"]


def test_the_holder_reads_it_and_nothing_changes(world):
    made = world.state("job")
    world.lock(made["jobId"])
    before = world.inspect(made["jobId"])
    answer = world.snapshot(made["jobId"])
    assert answer.status_code == 200
    assert set(answer.json()) == {*SECTIONS, "documentContent"}
    assert (answer.json()["jobId"], answer.json()["snapshotId"]) == (made["jobId"], made["snapshotId"])
    assert answer.json()["snapshotVersion"] == "ai_snapshot_v1"
    assert world.snapshot(made["jobId"]).json() == answer.json()
    assert world.inspect(made["jobId"]) == before


def test_nobody_else_reads_it(world):
    job = world.state("job")["jobId"]
    assert code(world.snapshot(job)) == (409, "LOCK_NOT_HELD")
    world.lock(job)
    assert code(world.snapshot(job, by="runtime-2")) == (409, "LOCK_NOT_HELD")
    assert code(world.snapshot("job-x")) == (404, "JOB_NOT_FOUND")
    world.state("advance-time", seconds=60)
    assert world.snapshot(job).status_code == 200
    world.state("advance-time", seconds=0.001)
    assert code(world.snapshot(job)) == (409, "LOCK_NOT_HELD")


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("missing", (404, "SNAPSHOT_NOT_FOUND")),
        ("none", (404, "SNAPSHOT_NOT_FOUND")),
        ("expired", (410, "SNAPSHOT_EXPIRED")),
    ],
)
def test_a_snapshot_that_is_not_there_any_more(world, kind, told):
    job = world.locked(snapshot=kind)
    assert code(world.snapshot(job)) == told
    assert world.inspect(job)["status"] == "locked"
    assert code(world.snapshot(job, by="runtime-2")) == (409, "LOCK_NOT_HELD")


@pytest.mark.parametrize(
    ("params", "profile", "document"),
    [
        ({}, {"learningGoal", "currentLevel"}, True),
        ({"allowDocumentContent": False}, {"learningGoal", "currentLevel"}, False),
        ({"allowedModelFields": []}, set(), True),
        ({"allowedModelFields": ["currentLevel"]}, {"currentLevel"}, True),
        ({"allowedModelFields": ["displayName", "documentContent", "noSuchField"]}, {"displayName"}, True),
    ],
)
def test_a_runtime_sees_what_it_may(world, params, profile, document):
    shown = world.snapshot(world.locked(**params)).json()
    assert set(shown["userProfile"]) == profile
    assert ("documentContent" in shown) is document
    assert shown["privacyScope"] == {"allowDocumentContent": params.get("allowDocumentContent", True)}
    assert shown["allowedModelFields"] == params.get("allowedModelFields", ["learningGoal", "currentLevel"])


RULES = [
    {"section": "userProfile", "only-fields-in": "/allowedModelFields"},
    {"section": "documentContent", "only-if": "/privacyScope/allowDocumentContent"},
]


@pytest.mark.parametrize("allowed", [None, 0, 1, "true", "absent"])
def test_a_section_needs_a_plain_yes(allowed):
    content = {"documentContent": "text", "privacyScope": {"allowDocumentContent": allowed}}
    if allowed == "absent":
        del content["privacyScope"]
    assert "documentContent" not in Privacy(RULES).applied(content)


@pytest.mark.parametrize("fields", [{}, {"allowedModelFields": None}, {"allowedModelFields": []}])
def test_no_list_of_fields_means_no_fields(fields):
    assert Privacy(RULES).applied({"userProfile": {"a": 1}, **fields})["userProfile"] == {}


def test_what_is_stored_stays_whole():
    content = {"userProfile": {"a": 1, "b": 2}, "allowedModelFields": ["a"], "documentContent": 1, "privacyScope": {}}
    shown = Privacy(RULES).applied(content)
    assert (shown["userProfile"], "documentContent" in shown) == ({"a": 1}, False)
    assert (content["userProfile"], content["documentContent"]) == ({"a": 1, "b": 2}, 1)
