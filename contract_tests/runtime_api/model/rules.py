"""Which rule a difference between build and model breaks: the narrowest that this suite can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openapi

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from contract_tests.checks import CheckFailed
    from contract_tests.model.sequences import Command

ANSWERS = {
    "make": "RT-IDEM-02",
    "again": "RT-IDEM-50",
    "lock": "RT-LOCK-50",
    "heartbeat": "RT-HB-50",
    "snapshot": "RT-SNAP-50",
    "resolve": "RT-CRED-50",
    "result": "RT-RES-64",
    "fail": "RT-FAIL-50",
    "cancel": "RT-CANCEL-51",
    "revoke": "RT-CANCEL-54",
    "rerun": "RT-ADMIN-50",
    "time": "RT-RETRY-51",
}
"""The decision that a command shows by its answer, and by leaving a job alone that it does not concern."""
MOVES = {
    "lock": "RT-LOCK-10",
    "heartbeat.first": "RT-HB-04",
    "heartbeat": "RT-HB-04",
    "result": "RT-RES-14",
    "result.unwanted": "RT-CANCEL-50",
    "fail.retried": "RT-RETRY-01",
    "fail.final": "RT-FAIL-08",
    "fail.cancelled": "RT-FAIL-51",
    "cancel": "RT-CANCEL-01",
    "revoke.pending": "RT-CANCEL-03",
    "revoke.active": "RT-CANCEL-54",
    "expired.cancelled": "RT-CANCEL-50",
    "expired.retried": "RT-RETRY-51",
    "expired.final": "RT-RETRY-52",
}
"""What a step does to the job where it decides."""
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "revoke.active": {"cancelRequested": "RT-CANCEL-04"},
    "result": {"lockedBy": "RT-RES-58", "lockedAt": "RT-RES-58", "lockUntil": "RT-RES-58"},
    "fail.final": {"finishedAt": "RT-FAIL-56"},
    "rerun": {
        "status": "RT-ADMIN-51",
        "retryCount": "RT-ADMIN-52",
        "attemptNo": "RT-ADMIN-52",
        "idempotencyKey": "RT-ADMIN-53",
        "retriedFromJobId": "RT-ADMIN-03",
    },
}
"""Columns of which a step has a rule of their own."""
STAMP, MOVED = "updatedAt", "RT-DB-34"
COPIED = "RT-ADMIN-54"
BEGINS = {"lock": "RT-LOCK-03", "heartbeat": "RT-HB-05", "result": "RT-RES-13", "fail": "RT-FAIL-10"}
"""The seed's rule of the success of an operation: where that is what a check starts from, it fails there once."""


def of_columns(kind: str, steps: Sequence[str], wrong: Collection[str], *, new: bool, moved: bool) -> str:
    """The rule of columns that are wrong after a command, ``new`` ones of a job that it made.

    ``moved``: whether the text has the command change the job; ``steps`` are those that decided.
    """
    if moved and set(wrong) == {STAMP}:
        return MOVED
    decided = steps[-1] if steps else kind
    for column, rule in COLUMNS.get("rerun" if new and kind == "rerun" else decided, {}).items():
        if column in wrong:
            return rule
    if new:
        return COPIED if kind == "rerun" else _of_column(min(wrong, default="status"))
    return MOVES.get(decided, ANSWERS[kind]) if moved else ANSWERS[kind]


def _of_column(column: str) -> str:
    schema: Mapping[str, Any] = openapi.load("runtime-api").document["components"]["schemas"]["Job"]["properties"]
    rule: str = schema.get(column, {}).get("x-rules", ["RT-SM-02"])[0]
    return rule


def begins(command: Command, failure: CheckFailed) -> CheckFailed:
    """The failure of a command by which a check starts: it is told once, under the rule that has checks of its own."""
    rule = BEGINS.get(command.kind)
    if rule and failure.step is None:
        failure.rules, failure.step = (rule,), f"{command.kind} where checks begin"
    return failure
