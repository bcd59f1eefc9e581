"""What the model believes of a hub's job, and what time, its node and the text do to it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import openapi
from contract_tests.agent_hub.shapes import iso
from contract_tests.model.stepper import Row, Stepper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contract_tests.agent_hub import given
    from contract_tests.agent_hub.given import HubTiming

NAME = "agent-hub"
ACCOUNT, OTHER = "a", "b"
RATE_LIMITED, BROKE = "429 rate limited", "the engine broke"
MESSAGES = (RATE_LIMITED, BROKE)
"""What scripted failures say; what a hub itself says of a failure is left open."""
MOST = 200
"""Things that happen to a job between two looks, at most."""


@dataclass(eq=False)
class Job:
    """A job, what its node does in each attempt, and the rows that it may have: more than one where that is open."""

    ref: given.Job
    rounds: Sequence[Mapping[str, Any]]
    rows: list[Row] = field(default_factory=list)
    free_from: int = 0
    """Before this instant its project is busy with another job."""


def stepper(timing: HubTiming) -> Stepper:
    """The text of the specification, with the times that the build was said to have."""
    return _stepper(
        openapi.load(NAME), tuple(round(one * 1000) for one in timing.backoff), round(timing.node_lost * 1000)
    )


@functools.lru_cache(maxsize=4)
def _stepper(contract: openapi.Contract, backoff: tuple[int, ...], silence: int) -> Stepper:
    def merge(first: Row | None, second: Row) -> Row:
        return (first or {}) | second

    def differs(first: Row | None, second: Row) -> bool:
        return any((first or {}).get(name) != value for name, value in second.items() if name != "updatedAt")

    text = contract.document["x-state-machine"]
    return Stepper(text, {"backoff": list(backoff), "silence": silence}, {"merge": merge, "differs": differs})


def submitted(id_: str, queued_at: int, attempts: int) -> Row:
    """The row of a job that was just submitted."""
    columns = openapi.load(NAME).document["components"]["schemas"]["HubJob"]["properties"]
    row: Row = dict.fromkeys(columns)
    return row | {
        "id": id_,
        "account": ACCOUNT,
        "status": "queued",
        "attempt": 0,
        "maxAttempts": attempts,
        "queuedAt": queued_at,
    }


def later(steps: Stepper, job: Job, row: Row, since: int, now: int) -> Row:
    """The row as time, the scheduler and the node leave it: at each instant reports first, then timers, then starts."""
    for _ in range(MOST):
        happening = [one for one in (_told(row), _due(steps, row), _start(job, row, since)) if one is not None]
        instant, _, what = min(happening, default=(now + 1, 0, ""))
        if instant > now:
            return row
        since = max(since, instant)
        if what == "timer":
            taken = steps.fire(row)
        else:
            inputs = {steps.row: row, "now": instant, **_said(job, row, what)}
            taken = steps.judge("internal", what, inputs)
        row = taken.row or row
    raise RuntimeError(f"more happens to {job.ref.id} than can be followed")


Happening = tuple[int, int, str]


def _told(row: Row) -> Happening | None:
    """The end of the round that the node has in hand, or its silence."""
    if row["roundStartedAt"] is None or not row["round"]:
        return None
    end = row["roundStartedAt"] + round(row["round"].get("afterSeconds", 1) * 1000)
    match row["round"]["result"]:
        case "done" | "failed":
            return (end, 0, "report")
        case "node_lost" if row["silentSince"] is None:
            return (end, 0, "silence")
    return None


def _due(steps: Stepper, row: Row) -> Happening | None:
    due = steps.due(row)
    return None if due is None else (due, 1, "timer")


def _start(job: Job, row: Row, since: int) -> Happening | None:
    """The start of its next round: as soon as it is queued and its project is free."""
    if row["status"] != "queued" or row["roundStartedAt"] is not None:
        return None
    return (max(row["queuedAt"], job.free_from, since), 2, "take")


def _said(job: Job, row: Row, what: str) -> dict[str, Any]:
    if what == "take":
        number = min(row["attempt"], len(job.rounds) - 1)
        return {"round": dict(job.rounds[number]), "newSession": f"session {row['attempt']}"}
    if what == "silence":
        return {}
    entry = row["round"]
    if entry["result"] == "done":
        return {"report": {"type": "done", "message": None, "retriable": None, "result": {"summary": ""}}}
    report = {"type": entry["failureType"], "message": entry["message"], "retriable": entry["retriable"]}
    return {"report": {**report, "result": None}}


def shown(steps: Stepper, row: Row) -> dict[str, Any]:
    """What a job's detail has to tell of a row; instants in epoch milliseconds."""
    derived = {name: value({steps.row: row}) for name, value in steps.derived.items()}
    names = ("status", "attempt", "maxAttempts", "queuedAt", "startedAt", "finishedAt", "nextRetryAt")
    found = {name: row[name] for name in names} | derived
    found |= {"failure.type": row["failureType"], "sessionId": row["sessionId"] is not None}
    if row["status"] != "failed":  # what a round that failed leaves is its own
        found["result"] = row["result"] is not None
    if row["failureType"] is not None:
        if row["failureMessage"] in MESSAGES:
            found["failure.message"] = row["failureMessage"]
        if row["lastError"] is None or row["lastError"] in MESSAGES:
            found["failure.lastError"] = row["lastError"]
    return found


def seen(detail: Mapping[str, Any]) -> dict[str, Any]:
    """A detail in the same words."""
    failure = detail.get("failure") or {}
    found = {name: detail.get(name) for name in ("status", "attempt", "maxAttempts", "durationMs", "waitMs")}
    for name in ("queuedAt", "startedAt", "finishedAt", "nextRetryAt"):
        value = detail.get(name)
        found[name] = None if value is None else iso(value, f"/data/{name}")
    found |= {f"failure.{name}": failure.get(name) for name in ("type", "message", "lastError")}
    return found | {name: detail.get(name) is not None for name in ("sessionId", "result")}
