"""Seeded faults of the application's side: creation, cancel, rerun, consent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.faults.edits import machine, part, schema_property, set_step, several, step
from mock_server.mutants import Mutant
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.executor import Outcome


class CreateTouches(Engine):
    """Writes an upsert: a creation that repeats a job stamps it."""

    async def act(self, action: str, params: Mapping[str, Any]) -> Outcome:
        outcome = await super().act(action, params)
        if outcome.step == "create.same" and outcome.row is not None:
            row = outcome.row
            changed = {**row, "updatedAt": row["updatedAt"] + 1}
            await self.store.commit([Change("Job", row, changed, self.executor.due(changed, row["id"]))])
        return outcome


class RevokedForEver(Engine):
    """Marks every later job of a user who once revoked consent."""

    async def act(self, action: str, params: Mapping[str, Any]) -> Outcome:
        users: set[str] = self.__dict__.setdefault("revoked", set())
        if action == "revokeConsent":
            users.add(params["userId"])
        if action == "createJob" and params["userId"] in users:
            params = {**params, "cancelRequested": True}
        return await super().act(action, params)


FAULTS = (
    Mutant(
        "create.twice",
        "the same idempotencyKey makes another job",
        ("RT-IDEM-01", "RT-IDEM-50"),
        edit=lambda document: document["x-state-machine"].update(unique=["id", "idempotencyKey"]),
    ),
    Mutant(
        "cancel.running",
        "a running job can be cancelled outright",
        ("RT-CANCEL-51",),
        edit=set_step("cancel", **{"from": ["pending", "locked", "running"]}),
    ),
    Mutant(
        "revoke.not-pending",
        "switching AI off leaves pending jobs",
        ("RT-CANCEL-03",),
        edit=set_step("revoke.pending", to=None, set=[{"errorCode": None}]),
    ),
    Mutant(
        "revoke.not-running",
        "switching AI off does not mark running jobs",
        ("RT-CANCEL-04", "RT-HB-09", "RT-CANCEL-53"),
        edit=set_step("revoke.active", set=[{"errorCode": None}]),
    ),
    Mutant(
        "revoke.retried",
        "an unwanted job that lapses is handed out again",
        ("RT-CANCEL-50",),
        edit=set_step("expired.cancelled", when="job.cancelRequested && job.retryCount > 100"),
    ),
    Mutant(
        "rerun.any-state",
        "a cancelled job can be rerun",
        ("RT-ADMIN-50",),
        edit=set_step("rerun", **{"from": ["failed", "cancelled"]}),
    ),
    Mutant(
        "rerun.no-origin",
        "a rerun does not record its origin",
        ("RT-ADMIN-03",),
        edit=lambda document: step(document, "rerun")["create"]["Job"].pop("retriedFromJobId"),
    ),
    Mutant(
        "create.no-key-needed",
        "a job is not created twice, with or without a key",
        ("RT-IDEM-02", "RT-IDEM-51"),
        edit=machine("unique", value=["userId", "jobType", "targetType", "targetId"]),
    ),
    Mutant(
        "create.key-per-user",
        "a user's key is taken whatever the job",
        ("RT-IDEM-51",),
        edit=machine("unique", value=["userId", "idempotencyKey"]),
    ),
    Mutant(
        "create.touches",
        "a creation that repeats a job stamps it",
        ("RT-IDEM-50", "RT-SM-54"),
        parts=part(engine=CreateTouches),
    ),
    Mutant(
        "create.one-schema",
        "every job type has the analyses' output schema",
        ("RT-DB-52", "RT-DB-53"),
        edit=machine("define", "defaultSchema", value="'analysis_output_v1'"),
    ),
    Mutant(
        "create.schema-by-name",
        "weak point analyses have an output schema of their own",
        ("RT-DB-51",),
        edit=machine(
            "define",
            "defaultSchema",
            value="body.jobType == 'weak_point_analysis' ? 'weak_point_v1' : body.jobType == 'quiz_generation' ? "
            "'quiz_output_v1' : body.jobType == 'flashcard_generation' ? 'flashcard_output_v1' : 'analysis_output_v1'",
        ),
    ),
    Mutant(
        "create.no-params",
        "the params of a job are dropped",
        ("RT-DB-55", "RT-POLL-62", "RT-LOCK-53"),
        edit=lambda document: step(document, "create")["create"]["Job"].update(params=None),
    ),
    *(
        Mutant(
            f"create.{name}",
            f"`{column}` defaults to {value}",
            rules,
            edit=schema_property("Job", column, default=value),
        )
        for name, column, value, rules in (
            ("model-reasoner", "modelName", "deepseek-reasoner", ("RT-DB-18",)),
            ("priority-5", "priority", 5, ("RT-DB-13",)),
            ("five-retries", "maxRetryCount", 5, ("RT-DB-29", "RT-RETRY-06", "RT-RETRY-53")),
            ("empty-code", "errorCode", "", ("RT-DB-31",)),
            ("empty-credential", "credentialId", "", ("RT-DB-16",)),
            ("empty-origin", "retriedFromJobId", "", ("RT-DB-22",)),
            ("locked-in-1970", "lockedAt", 0, ("RT-DB-24",)),
            ("lock-until-1970", "lockUntil", 0, ("RT-DB-25",)),
            ("started-in-1970", "startedAt", 0, ("RT-DB-26",)),
            ("finished-in-1970", "finishedAt", 0, ("RT-DB-27",)),
            ("empty-message", "errorMessage", "", ("RT-DB-32",)),
            ("cancel-unknown", "cancelRequested", None, ("RT-DB-50",)),
        )
    ),
    Mutant(
        "cancel.never",
        "a pending job can't be cancelled",
        ("RT-SM-17", "RT-CANCEL-01"),
        edit=set_step("cancel", **{"from": ["expired"]}),
    ),
    Mutant(
        "cancel.not-finished",
        "a cancelled job has no finishedAt",
        ("RT-CANCEL-52",),
        edit=set_step("cancel", set=None),
    ),
    Mutant(
        "revoke.not-locked",
        "switching AI off marks running jobs, not locked ones",
        ("RT-CANCEL-53",),
        edit=several(
            set_step("revoke.active", **{"from": ["running"]}),
            set_step("revoke.finished", **{"from": ["locked", "succeeded", "failed", "cancelled"]}),
        ),
    ),
    Mutant(
        "revoke.takes-the-lock",
        "switching AI off ends the lock at once",
        ("RT-CANCEL-54", "RT-HB-54", "RT-HB-09"),
        edit=set_step("revoke.active", set=[{"cancelRequested": "true", "lockUntil": "now"}]),
    ),
    Mutant(
        "revoke.not-retried",
        "switching AI off leaves pending jobs that ran before",
        ("RT-CANCEL-61", "RT-CANCEL-03"),
        edit=several(
            set_step("revoke.pending", when="job.retryCount == 0"),
            set_step("revoke.finished", **{"from": ["pending", "succeeded", "failed", "cancelled"]}),
        ),
    ),
    Mutant(
        "revoke.for-ever",
        "jobs created after a revocation are marked, too",
        ("RT-CANCEL-62",),
        parts=part(engine=RevokedForEver),
    ),
    Mutant(
        "revoke.keeps-lock",
        "an unwanted job that lapses keeps its lock's columns",
        ("RT-CANCEL-55",),
        edit=set_step("expired.cancelled", set=["finish"]),
    ),
    Mutant(
        "revoke.own-code",
        "an unwanted job that lapses says JOB_CANCELLED",
        ("RT-CANCEL-58", "RT-TIME-50", "RT-TIME-51"),
        edit=set_step("expired.cancelled", set=["finish", "release", {"errorCode": "'JOB_CANCELLED'"}]),
    ),
    Mutant(
        "revoke.done-with",
        "an unwanted job that lapses is not marked any more",
        ("RT-CANCEL-60",),
        edit=set_step("expired.cancelled", set=["finish", "release", {"cancelRequested": "false"}]),
    ),
    Mutant(
        "rerun.never",
        "a failed job can't be rerun",
        ("RT-ADMIN-01", "RT-ADMIN-02"),
        edit=set_step("rerun", **{"from": ["expired"]}),
    ),
    Mutant(
        "rerun.in-place",
        "a rerun puts the failed job back",
        ("RT-ADMIN-02", "RT-ADMIN-04", "RT-SM-53"),
        edit=set_step("rerun", create=None, to="pending", set=[{"retryCount": "0", "attemptNo": "0"}]),
    ),
    Mutant(
        "rerun.clears-the-old",
        "a rerun clears the old job's error",
        ("RT-ADMIN-04", "RT-SM-54"),
        edit=set_step("rerun", set=[{"errorCode": None}]),
    ),
    Mutant(
        "rerun.keeps-counters",
        "a rerun keeps the old job's counters",
        ("RT-ADMIN-52",),
        edit=lambda document: step(document, "rerun")["create"]["Job"]["copy"]["job"].extend(
            ["retryCount", "attemptNo"]
        ),
    ),
    Mutant(
        "rerun.keeps-status",
        "a rerun copies the status, too",
        ("RT-ADMIN-51", "RT-ADMIN-01", "RT-SM-02"),
        edit=lambda document: step(document, "rerun")["create"]["Job"]["copy"]["job"].append("status"),
    ),
    Mutant(
        "rerun.no-params",
        "a rerun drops the params",
        ("RT-ADMIN-54",),
        edit=lambda document: step(document, "rerun")["create"]["Job"]["copy"]["job"].remove("params"),
    ),
)
