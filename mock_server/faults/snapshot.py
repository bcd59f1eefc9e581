"""Seeded faults of snapshots: whom they are given to, what they hold, and what privacy leaves out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mock_server.calls import Answer
from mock_server.faults.edits import error, machine, part, schema_property, set_step, several
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Call
    from mock_server.faults.edits import Document
    from mock_server.mutants import Parts
    from mock_server.store import Row
    from openapi import Contract


class AnyFormerHolder(RuntimeApi):
    """Gives the snapshot to whoever held the job once, as long as anybody holds it."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.held: set[tuple[str, str]] = set()

    async def operate(self, call: Call) -> Answer:
        job = call.path.get("jobId", "")
        if call.operation_id == "getSnapshot" and (job, call.caller) in self.held:
            row = await call.world.engine.job(job)
            call.caller = (row or {}).get("lockedBy") or call.caller
        answer = await super().operate(call)
        if call.operation_id == "lockJob":
            self.held.add((job, call.caller))
        return answer


class KeptByPrivacy(RuntimeApi):
    """Keeps what it has filtered by the settings of privacy alone, and gives it where they come again."""

    def __init__(self, contract: Contract) -> None:
        super().__init__(contract)
        self.kept: dict[str, Row] = {}

    def snapshot(self, job: Row, snapshot: Row) -> dict[str, Any]:
        settings = [
            snapshot["snapshotVersion"],
            snapshot["content"]["privacyScope"],
            snapshot["content"]["allowedModelFields"],
        ]
        return super().snapshot(job, self.kept.setdefault(json.dumps(settings), snapshot))


class PartialContent(RuntimeApi):
    """Calls a snapshot without documents partial."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "getSnapshot" and "documentContent" not in answer.body:
            answer.status = 206
        return answer


class NotThereIsEmpty(RuntimeApi):
    """Answers 200 and an empty object where there is no snapshot."""

    async def operate(self, call: Call) -> Answer:
        answer = await super().operate(call)
        if call.operation_id == "getSnapshot" and answer.status == 200 and answer.body["snapshotId"] is None:
            answer.body = {}
        return answer

    def snapshot(self, job: Row, snapshot: Row) -> dict[str, Any]:
        return super().snapshot(job, snapshot) if snapshot else {"snapshotId": None}


def shown(change: Callable[[dict[str, Any], Row], None]) -> Callable[[Parts], None]:
    """Change what is shown of a snapshot: ``change`` gets the answer's body and the content that is stored."""

    class Changed(RuntimeApi):
        def snapshot(self, job: Row, snapshot: Row) -> dict[str, Any]:
            body = super().snapshot(job, snapshot)
            change(body, snapshot["content"])
            return body

    return part(runtime_api=Changed)


def profile_when(filtered: Callable[[list[str]], bool]) -> Callable[[Parts], None]:
    """Filter the profile only where ``filtered`` says so of ``allowedModelFields``."""

    def change(body: dict[str, Any], content: Row) -> None:
        if not filtered(body["allowedModelFields"]):
            body["userProfile"] = content["userProfile"]

    return shown(change)


def without(*names: str) -> Callable[[Parts], None]:
    """Leave sections out."""

    def change(body: dict[str, Any], _: Row) -> None:
        for name in names:
            body.pop(name, None)

    return shown(change)


def empty_left_out(body: dict[str, Any], _: Row) -> None:
    """What is empty is not written."""
    for name in ("userProfile", "allowedModelFields"):
        if not body[name]:
            del body[name]


def numbers_as_text(body: dict[str, Any], _: Row) -> None:
    """Decimal columns come from the database as strings."""
    for name in ("materialProgressSummary", "scoreSignals"):
        body[name] = {key: str(value) for key, value in body[name].items()}


def documents_all_the_same(body: dict[str, Any], content: Row) -> None:
    """Show documents whatever the scope says."""
    body["documentContent"] = content["documentContent"]


def documents_when_named(body: dict[str, Any], content: Row) -> None:
    """A field that the list names is shown, whatever the scope says."""
    if "documentContent" in body["allowedModelFields"]:
        body["documentContent"] = content["documentContent"]


def documents_within(body: dict[str, Any], content: Row) -> None:
    """Documents that are taken out of one place and left in another."""
    body["materialProgressSummary"] = {**body["materialProgressSummary"], "material": dict(content)}


def documents_instead(body: dict[str, Any], _: Row) -> None:
    """A size guard drops what it takes for less important."""
    if "documentContent" in body:
        body.pop("behaviorSignals")


def posted(document: Document) -> None:
    """POST instead of GET."""
    path = document["paths"]["/internal/runtime/jobs/{jobId}/snapshot"]
    path["post"] = path.pop("get")


def lock_last(document: Document) -> None:
    """The lock is judged after the snapshot."""
    steps = document["x-state-machine"]["operations"]["getSnapshot"]["steps"]
    steps.insert(2, steps.pop(0))


def no_snapshot_no_job(document: Document) -> None:
    """The job is looked up together with its snapshot."""
    steps = document["x-state-machine"]["operations"]["getSnapshot"]["steps"]
    steps.insert(
        1,
        {
            "id": "snapshot.named",
            "require": "job.snapshotId != null",
            "else": "JOB_NOT_FOUND",
            "requirements": ["RT-SNAP-51"],
        },
    )


FAULTS = (
    Mutant("snapshot.posted", "the snapshot is read by POST", ("RT-SNAP-01",), edit=posted),
    Mutant(
        "snapshot.partial",
        "a snapshot without documents is 206",
        ("RT-SNAP-03",),
        parts=part(runtime_api=PartialContent),
    ),
    Mutant(
        "snapshot.stranger",
        "whoever asks gets the snapshot of a job in work",
        ("RT-SNAP-50", "RT-AUTH-08", "RT-ERR-75"),
        edit=set_step("snapshot.held", require="job.status in ['locked', 'running'] && now <= job.lockUntil"),
    ),
    Mutant(
        "snapshot.no-lock",
        "the snapshot of a job that nobody holds is given",
        ("RT-SNAP-50", "RT-AUTH-08", "RT-ERR-75"),
        edit=set_step("snapshot.held", require="job.lockedBy == null || job.lockedBy == caller"),
    ),
    Mutant(
        "snapshot.former-holder",
        "who held the job once may still read its snapshot",
        ("RT-SNAP-50", "RT-ERR-75", "RT-AUTH-08"),
        parts=part(runtime_api=AnyFormerHolder),
    ),
    Mutant(
        "snapshot.lock-last",
        "a stranger learns that a snapshot has expired",
        ("RT-SNAP-50", "RT-ERR-75"),
        edit=lock_last,
    ),
    Mutant(
        "snapshot.kept",
        "a snapshot is kept and given for other jobs with the same settings",
        ("RT-SNAP-02", "RT-SNAP-05", "RT-AUTH-08"),
        parts=part(runtime_api=KeptByPrivacy),
    ),
    Mutant(
        "snapshot.own-id",
        "jobId is the snapshot's id",
        ("RT-SNAP-04",),
        parts=shown(lambda body, _: body.update(jobId=body["snapshotId"])),
    ),
    Mutant("snapshot.no-version", "the version is left out", ("RT-SNAP-06",), parts=without("snapshotVersion")),
    Mutant(
        "snapshot.scope-as-list",
        "privacyScope is a list of what is allowed",
        ("RT-SNAP-07",),
        parts=shown(lambda body, _: body.update(privacyScope=["documentContent"])),
    ),
    Mutant(
        "snapshot.scope-as-numbers",
        "booleans of the database come as 0 and 1",
        ("RT-SNAP-07", "RT-SNAP-09"),
        parts=shown(
            lambda body, _: body.update(privacyScope={"allowDocumentContent": 1}, aiSettings={"allowAiAnalysis": 1})
        ),
    ),
    Mutant(
        "snapshot.empty-left-out",
        "a profile and a list that are empty are left out",
        ("RT-SNAP-08", "RT-SNAP-15"),
        parts=shown(empty_left_out),
    ),
    Mutant(
        "snapshot.numbers-as-text",
        "progress and scores are strings",
        ("RT-SNAP-11", "RT-SNAP-13"),
        parts=shown(numbers_as_text),
    ),
    Mutant(
        "snapshot.no-signals",
        "signals are left out",
        ("RT-SNAP-12", "RT-SNAP-13"),
        parts=without("behaviorSignals", "scoreSignals"),
    ),
    Mutant(
        "snapshot.no-numbers",
        "what holds numbers alone is left out",
        ("RT-SNAP-10", "RT-SNAP-14"),
        parts=without("learningBehaviorSummary", "constraints"),
    ),
    Mutant("snapshot.no-settings", "aiSettings is left out", ("RT-SNAP-09",), parts=without("aiSettings")),
    Mutant(
        "snapshot.missing-500",
        "a snapshot that is not there is an internal error",
        ("RT-SNAP-16", "RT-ERR-09", "RT-SNAP-51"),
        edit=set_step("snapshot.there", **{"else": "INTERNAL_ERROR"}),
    ),
    Mutant(
        "snapshot.missing-is-empty",
        "a snapshot that is not there is 200 and an empty object",
        ("RT-SNAP-16", "RT-SNAP-51", "RT-ERR-09"),
        edit=several(
            set_step("snapshot.there", require="snapshot != null || job.id != ''"),
            set_step(
                "snapshot.current",
                require="snapshot == null || snapshot.expiresAt == null || now <= snapshot.expiresAt",
            ),
        ),
        parts=part(runtime_api=NotThereIsEmpty),
    ),
    Mutant(
        "snapshot.none-is-no-job",
        "a job without a snapshot is JOB_NOT_FOUND",
        ("RT-SNAP-51",),
        edit=no_snapshot_no_job,
    ),
    Mutant(
        "snapshot.expired-given",
        "an expired snapshot is given",
        ("RT-SNAP-17", "RT-ERR-08"),
        edit=set_step("snapshot.current", require="snapshot.expiresAt == null || snapshot.expiresAt < now + lockTime"),
    ),
    Mutant(
        "snapshot.expired-404",
        "an expired snapshot is SNAPSHOT_NOT_FOUND",
        ("RT-SNAP-17", "RT-ERR-08"),
        edit=set_step("snapshot.current", **{"else": "SNAPSHOT_NOT_FOUND"}),
    ),
    Mutant(
        "snapshot.expired-final",
        "SNAPSHOT_EXPIRED is called not retryable",
        ("RT-ERR-08", "RT-ERR-64"),
        edit=error("SNAPSHOT_EXPIRED", retryable=False),
    ),
    Mutant(
        "snapshot.extends-lock",
        "reading the snapshot extends the lock",
        ("RT-SNAP-52",),
        edit=set_step("snapshot", set=["renew"]),
    ),
    Mutant(
        "snapshot.starts-run",
        "reading the snapshot starts the run",
        ("RT-SNAP-52",),
        edit=set_step("snapshot", **{"from": ["locked", "running"], "to": "running", "set": [{"startedAt": "now"}]}),
    ),
    Mutant(
        "snapshot.whole-profile",
        "the profile is not filtered",
        ("RT-SNAP-53",),
        parts=profile_when(lambda _: False),
    ),
    Mutant(
        "snapshot.none-is-all",
        "an empty list of model fields filters nothing",
        ("RT-SNAP-53",),
        parts=profile_when(bool),
    ),
    Mutant(
        "snapshot.named-is-all",
        "a list that names the section shows all of it",
        ("RT-SNAP-53",),
        parts=profile_when(lambda fields: "userProfile" not in fields),
    ),
    Mutant(
        "snapshot.documents-always",
        "documents are shown whatever the user chose",
        ("RT-SNAP-54",),
        parts=shown(documents_all_the_same),
    ),
    Mutant(
        "snapshot.documents-null",
        "documents that are not allowed are null, not absent",
        ("RT-SNAP-54",),
        parts=shown(lambda body, _: body.setdefault("documentContent", None)),
    ),
    Mutant(
        "snapshot.documents-when-named",
        "documents that are not allowed are shown where a model field names them",
        ("RT-SNAP-54",),
        parts=shown(documents_when_named),
    ),
    Mutant(
        "snapshot.documents-within",
        "documents that are not allowed are left in another section",
        ("RT-SNAP-54",),
        parts=shown(documents_within),
    ),
    Mutant(
        "snapshot.documents-instead",
        "with documents the signals are left out",
        ("RT-SNAP-55", "RT-SNAP-12"),
        parts=shown(documents_instead),
    ),
    Mutant(
        "snapshot.version-v2",
        "snapshots are made as ai_snapshot_v2",
        ("RT-DB-54",),
        edit=schema_property("Snapshot", "snapshotVersion", default="ai_snapshot_v2"),
    ),
    Mutant(
        "snapshot.supports-v2",
        "ai_snapshot_v2 is supported, too",
        ("RT-SNAP-57",),
        edit=machine("constants", "snapshotVersions", value={"value": ["ai_snapshot_v1", "ai_snapshot_v2"]}),
    ),
)
