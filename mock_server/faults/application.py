"""Seeded faults of the application's side: creation, cancel, rerun, consent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.faults.edits import set_step, step
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    pass


FAULTS = (
    Mutant(
        "create.twice",
        "the same idempotencyKey makes another job",
        ("RT-IDEM-01",),
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
        ("RT-CANCEL-04", "RT-HB-09"),
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
)
