"""Which rule a difference between hub and model breaks: the narrowest that this suite can tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.agent_hub.model.seen import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.agent_hub.model.seen import Wrong

ANSWERS = {
    "make": "HUB-GET-54",
    "cancel": "HUB-CANCEL-52",
    "retry": "HUB-RETRY-56",
    "time": "HUB-RETRY-52",
    "offline": "HUB-FAIL-50",
    "online": "HUB-FAIL-51",
}
"""The decision that a command shows by its answer, and by leaving a job alone that it does not concern."""
TAKEN, REFUSED = "HUB-SUB-05", "HUB-NODE-05"
"""The rule of a submission by whether its node is there."""
FIELDS: Mapping[str, Mapping[str, str]] = {
    "make": {"status": "HUB-NODE-53", "attempt": "HUB-GET-52"},
    "cancel": {
        "status": "HUB-CANCEL-02",
        "finishedAt": "HUB-CANCEL-54",
        "durationMs": "HUB-CANCEL-54",
        "nextRetryAt": "HUB-CANCEL-55",
    },
    "retry": {
        "status": "HUB-RETRY-07",
        "attempt": "HUB-RETRY-57",
        "queuedAt": "HUB-RETRY-58",
        "failure.lastError": "HUB-RETRY-60",
        "": "HUB-RETRY-59",
    },
    "time": {
        "nextRetryAt": "HUB-RETRY-51",
        "status": "HUB-RETRY-53",
        "failure.type": "HUB-FAIL-50",
        "attempt": "HUB-GET-52",
        "finishedAt": "HUB-GET-55",
        "durationMs": "HUB-GET-55",
        "startedAt": "HUB-GET-54",
        "waitMs": "HUB-GET-54",
        "failure.lastError": "HUB-RETRY-55",
        "": "HUB-RETRY-54",
    },
    "offline": {"blocked": "HUB-NODE-07", "status": "HUB-NODE-06"},
    "online": {
        "blocked": "HUB-GET-20",
        "failure.type": "HUB-FAIL-52",
        "attempt": "HUB-NODE-53",
        "result": "HUB-FAIL-52",
        "finishedAt": "HUB-FAIL-52",
    },
}
"""The rule of a field that is wrong after a command that had something change; ``""`` of any other."""
TO_BE_NULL = {"nextRetryAt": "HUB-RETRY-52", "finishedAt": "HUB-RETRY-54", "durationMs": "HUB-RETRY-54"}
"""The rule of a field that time has to leave null or make it so."""
REPORTS = {"make": "HUB-GET-64", "time": "HUB-GET-66", "retry": "HUB-RETRY-59", "online": "HUB-FAIL-52"}
"""The rule of the values that a node told."""
LOST = "node_lost"
NO_PROGRESS, KEPT = "HUB-GET-63", "HUB-GET-24"


def of_fields(kind: str, wrong: Wrong) -> str:
    """The rule of fields that are wrong after a command."""
    if all(name.startswith("progress") for name in wrong):
        return _of_progress(kind, wrong)
    rules = dict(FIELDS.get(kind, {}))
    if kind == "time" and LOST in wrong.get("failure.type", ()):
        return rules["failure.type"]
    if kind == "time":
        rules |= {name: rule for name, rule in TO_BE_NULL.items() if name in wrong and wrong[name][0] is None}
    return next((rules[name] for name in rules if name in wrong), rules.get("", ANSWERS[kind]))


def _of_progress(kind: str, wrong: Wrong) -> str:
    if "progress" in wrong:
        if wrong["progress"][0] is None:
            return NO_PROGRESS
        return "HUB-GET-65" if kind == "time" else KEPT
    if set(wrong) == {f"{PROGRESS}updatedAt"}:
        return "HUB-GET-65"
    return REPORTS.get(kind, KEPT)
