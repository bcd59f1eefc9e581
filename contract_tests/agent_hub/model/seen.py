"""What a job's detail has to tell of a row, and what it tells instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.model.believed import ENDED, HEARD, NOTHING
from contract_tests.agent_hub.model.commands import BROKE, RATE_LIMITED
from contract_tests.agent_hub.shapes import iso

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.agent_hub.model.believed import Heard
    from contract_tests.model.stepper import Row, Stepper

MESSAGES = (RATE_LIMITED, BROKE)
"""What scripted failures say; what a hub itself says of a failure is left open."""
INSTANTS = ("queuedAt", "startedAt", "finishedAt", "nextRetryAt")
PROGRESS = "progress."

Wrong = dict[str, tuple[Any, Any]]
"""Fields that are not as they should be, by name: what was wanted, and what came."""


def seen(detail: Mapping[str, Any]) -> dict[str, Any]:
    """A detail in the words of :func:`differences`; instants in epoch milliseconds."""
    failure, progress = detail.get("failure") or {}, detail.get("progress")
    found = {name: detail.get(name) for name in ("status", "attempt", "maxAttempts", "durationMs", "waitMs")}
    for name in INSTANTS:
        value = detail.get(name)
        found[name] = None if value is None else iso(value, f"/data/{name}")
    found |= {f"failure.{name}": failure.get(name) for name in ("type", "message", "lastError")}
    found |= {name: detail.get(name) is not None for name in ("sessionId", "result", "blocked")}
    if not isinstance(progress, dict):
        return found | {"progress": progress}
    told = {f"{PROGRESS}{name}": progress.get(name) for name in NOTHING}
    return found | told | {f"{PROGRESS}updatedAt": iso(progress.get("updatedAt"), "/data/progress/updatedAt")}


def differences(steps: Stepper, row: Row, came: Mapping[str, Any], *, online: bool, slack: int) -> Wrong:
    """What a detail (as of :func:`seen`) tells otherwise than the row has it; ``online`` is its node.

    ``slack`` is by how many milliseconds instants may differ: none where the clock stands.
    """
    derived = {name: value({steps.row: row}) for name, value in steps.derived.items()}
    names = ("status", "attempt", "maxAttempts", *INSTANTS)
    wanted = {name: row[name] for name in names} | derived
    wanted |= {"failure.type": row["failureType"], "sessionId": row["sessionId"] is not None}
    wanted["blocked"] = row["status"] == "queued" and not online
    if row["status"] != "failed":  # what a round that failed leaves is its own
        wanted["result"] = row["result"] is not None
    if row["failureType"] is not None:
        if row["failureMessage"] in MESSAGES:
            wanted["failure.message"] = row["failureMessage"]
        if row["lastError"] is None or row["lastError"] in MESSAGES:
            wanted["failure.lastError"] = row["lastError"]
    wrong = {name: (value, came.get(name)) for name, value in wanted.items() if came.get(name) != value}
    return wrong | _of_progress(row, came, slack)


def arrived(row: Row, came: Mapping[str, Any], slack: int) -> Row:
    """The row with the instants that a detail tells, where they may be those.

    The end of a round that was told late may count from when it ended, or from any instant until then.
    """
    new = dict(row)
    for name in ("queuedAt", "startedAt"):
        if _near(row[name], came[name], slack):
            new[name] = came[name]
    if new["startedAt"] != row["startedAt"] and row["roundStartedAt"] == row["startedAt"]:
        new |= {"roundStartedAt": new["startedAt"], HEARD: row[HEARD] and row[HEARD].begun(new["startedAt"])}
    high, finished = row["finishedAt"], came["finishedAt"]
    low = high if row[ENDED] is None else row[ENDED]
    if high is not None and isinstance(finished, int) and low - slack <= finished <= high + slack:
        due = row["nextRetryAt"]
        new |= {"finishedAt": finished, "nextRetryAt": None if due is None else due - high + finished}
    return new


def _near(wanted: Any, came: Any, slack: int) -> bool:
    return isinstance(wanted, int) and isinstance(came, int) and abs(wanted - came) <= slack


def _of_progress(row: Row, came: Mapping[str, Any], slack: int) -> Wrong:
    """What is wrong with the progress that a detail tells.

    A node reports at its own times, ten seconds apart: before ten seconds have passed there may be none yet.
    """
    told = {name: came.get(f"{PROGRESS}{name}") for name in NOTHING} if f"{PROGRESS}updatedAt" in came else None
    heard: Heard | None = row[HEARD]
    wanted = row["progress"]
    if heard is None:  # no round of this quota was taken
        return {} if told is None else {"progress": (None, told)}
    early = heard.fresh <= heard.taken + slack  # nothing had to be told yet
    if told is None:
        return {} if early or heard.past else {"progress": (wanted, None)}
    if early and not slack and heard.until == heard.taken:
        return {"progress": (None, told)}
    values = wanted or NOTHING
    wrong: Wrong = {f"{PROGRESS}{name}": (values[name], value) for name, value in told.items() if value != values[name]}
    updated = came[f"{PROGRESS}updatedAt"]
    if not heard.fresh - slack <= updated <= heard.until + slack:
        wrong[f"{PROGRESS}updatedAt"] = (f"{heard.fresh} to {heard.until}", updated)
    return wrong
