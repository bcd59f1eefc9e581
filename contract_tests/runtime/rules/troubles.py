"""Inputs of a job that were refused, failed or are not usable, and what a Runtime has to report then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import LOST_HOLD
from contract_tests.runtime.monitors import Finding, broken, kept
from contract_tests.runtime.rules.reporting import (
    WIRE,
    code_of,
    first,
    missing,
    said,
    soon,
    time_is_up,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

SNAPSHOT, CREDENTIAL = "getSnapshot", "resolveCredential"
VERSION = "ai_snapshot_v1"
"""The version of snapshots that the API has (RT-DB-54)."""
_NEEDED: dict[str, type] = {
    "snapshotVersion": str,
    "privacyScope": dict,
    "userProfile": dict,
    "aiSettings": dict,
    "allowedModelFields": list,
}
"""Without these nobody can tell what may reach the model; of the others only a wrong type is judged."""
_SECTIONS = ("learningBehaviorSummary", "materialProgressSummary", "behaviorSignals", "scoreSignals", "constraints")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with an input: ``kind``, with the words for it."""

    kind: str
    words: str


def malformed(content: Any) -> str | None:
    """What is wrong with a snapshot's form or version, for a sentence; None: nothing that everybody must refuse."""
    if not isinstance(content, dict):
        return "a snapshot that is no object"
    for name, type_ in _NEEDED.items():
        if not isinstance(content.get(name), type_):
            return f"a snapshot whose {name} is {'missing' if name not in content else 'of the wrong type'}"
    if not all(isinstance(name, str) for name in content["allowedModelFields"]):
        return "a snapshot whose allowedModelFields are not strings"
    for name in _SECTIONS:
        if name in content and not isinstance(content[name], dict):
            return f"a snapshot whose {name} is of the wrong type"
    if content["snapshotVersion"] != VERSION:
        return f"a snapshot of the version {content['snapshotVersion'][:40]}"
    return None


def of_snapshot(call: Call) -> Trouble | None:
    """What is wrong with a snapshot's answer. ``unreadable``: 200 without JSON, which a client may read either way."""
    if call.failed:
        return Trouble("failed", f"a snapshot request with {_answer(call)}")
    if call.status == 410:
        return Trouble("expired", "410 on the snapshot")
    if (call.status, call.code) == (404, "SNAPSHOT_NOT_FOUND"):
        return Trouble("absent", "404 SNAPSHOT_NOT_FOUND")
    if call.status != 200 or call.answer_cut:
        return Trouble("other", f"{call.status} on the snapshot") if call.status != 200 else None
    if call.answer is None and call.answer_text.strip() != "null":
        return Trouble("unreadable", "a snapshot that is no JSON")
    wrong = malformed(call.answer)
    if wrong is not None:
        return Trouble("malformed", wrong)
    if call.answer["aiSettings"].get("allowAiAnalysis") is False:
        return Trouble("forbidden", "aiSettings.allowAiAnalysis false")
    return None


def of_credential(history: History, call: Call) -> Trouble | None:
    """What is wrong with a resolve's answer."""
    if call.failed:
        return Trouble("failed", f"a resolve with {_answer(call)}")
    if call.status in (404, 422) and (call.status, call.code) not in LOST_HOLD:
        return Trouble("refused", f"{call.status} on the credential")
    if call.status != 200 or call.answer_cut:
        return Trouble("other", f"{call.status} on the credential") if call.status != 200 else None
    if not isinstance(call.answer, dict):
        return Trouble("unreadable", "a resolve whose answer is no JSON object")
    if not call.answer.get("apiKey") and history.facts.own_key is False:
        return Trouble("no key", "a resolve without apiKey, and no key of the Runtime's own")
    return None


def _answer(call: Call) -> str:
    return "no answer" if call.lost else f"the answer {call.status}"


def troubles(history: History, hold: Hold, operation: str) -> list[tuple[Call, Trouble | None]]:
    """The hold's requests for an input with what is wrong with each answer."""
    calls = hold.of(operation)
    return [(call, of_snapshot(call) if operation == SNAPSHOT else of_credential(history, call)) for call in calls]


def last(history: History, hold: Hold, operation: str) -> tuple[Call, Trouble | None] | None:
    """The last of them before the hold's first report; None where there is none."""
    until = hold.reports[0].sent if hold.reports else float("inf")
    found = [item for item in troubles(history, hold, operation) if item[0].sent < until]
    return found[-1] if found else None


def has_to_fail(
    history: History,
    operation: str,
    kind: str,
    codes: set[str] | None,
    *,
    retryable: bool | None,
    no_model: bool = False,
    silence: bool = True,
) -> Iterator[Finding]:
    """Holds in which an input came to this: they end with such a failure.

    Where both inputs are in trouble either may be reported: nothing is judged then. ``codes`` None: any;
    ``retryable`` None: either; ``no_model``: and without a model call.
    ``silence``: whether a missing report is a fault here, not that of another rule.
    """
    flag = "" if retryable is None else f" with retryable {str(retryable).lower()}"
    wanted = "a failure" if codes is None else f"fail {' or '.join(sorted(codes))}"
    for hold in history.holds:
        call, trouble = last(history, hold, operation) or (hold.lock, None)
        if trouble is None or trouble.kind != kind or _both(history, hold, operation):
            continue
        expected = f"{wanted}{flag} after {trouble.words}"
        model = next((item for item in hold.model_calls if item.sent > call.ended + WIRE), None)
        if no_model and model is not None:
            yield broken(model, f"no model call after {trouble.words}", f"a model call for {hold.job}")
            continue
        report = first(history, hold)
        if report is None:
            within = _rest(hold, call) if kind == "failed" else soon(hold)
            due = missing(history, hold, call.ended, within)
            if due is not None and silence:
                yield broken(due, expected, f"no report of {hold.job} by then")
        elif _right(hold, report, codes, retryable, late=kind == "failed"):
            yield kept(report)
        else:
            yield broken(report, expected, said(report))


def _right(hold: Hold, report: Call, codes: set[str] | None, retryable: bool | None, *, late: bool) -> bool:
    code = code_of(report)
    if code is None or (late and code == "JOB_TIMEOUT" and time_is_up(hold, report.sent)):
        return code is not None
    return (codes is None or code in codes) and (retryable is None or report.get("retryable") is retryable)


def _both(history: History, hold: Hold, operation: str) -> bool:
    other = last(history, hold, CREDENTIAL if operation == SNAPSHOT else SNAPSHOT)
    return other is not None and other[1] is not None


def _rest(hold: Hold, call: Call) -> float:
    """What is left of the job's time: so long an input that failed may be asked for again."""
    return max(soon(hold), 0.0 if hold.limit is None else hold.begin + hold.limit - call.ended)
