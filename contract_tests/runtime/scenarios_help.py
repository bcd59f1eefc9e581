"""What scenarios' worlds are built of: rows, fault plans and model scripts, as the control plane takes them."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contract_tests.runtime.stage import Plan, Timing

TYPES = (
    "learning_state_analysis",
    "weak_point_analysis",
    "next_action_planning",
    "quiz_generation",
    "flashcard_generation",
)
QUIZ, CARDS = TYPES[3], TYPES[4]
CONTENT = "documentContent"
SECTIONS = (
    "privacyScope",
    "userProfile",
    "aiSettings",
    "learningBehaviorSummary",
    "materialProgressSummary",
    "behaviorSignals",
    "scoreSignals",
    "constraints",
)
FIELDS = ("learningGoal", "currentLevel")
Json = dict[str, Any]


# Rows


def canary(of: str) -> str:
    """A text that stands nowhere else (``cnry-`` and 16 hex digits), the same in every run."""
    return f"cnry-{hashlib.sha256(of.encode()).hexdigest()[:16]}"


def content(marked: str = "", *, fields: Iterable[str] = FIELDS, document: bool = True, ai: bool = True) -> Json:
    """The sections of a snapshot before privacy. ``marked``: each has a canary of its own, named after this."""
    sections: Json = {
        "privacyScope": {"allowDocumentContent": document},
        "userProfile": {"learningGoal": "exam", "currentLevel": "intermediate", "dailyGoalMinutes": 45},
        "aiSettings": {"allowAiAnalysis": ai},
        "learningBehaviorSummary": {"totalActiveSeconds": 3600},
        "materialProgressSummary": {"progress": 0.6},
        "behaviorSignals": {"engagementSignal": "high"},
        "scoreSignals": {"masteryRiskScore": 0.3},
        "constraints": {"dailyAvailableMinutes": 60},
        CONTENT: {"title": "Linear equations", "text": "A line has a slope and an intercept."},
    }
    if marked:
        for name in (*SECTIONS, CONTENT):
            sections[name]["note"] = canary(f"{marked}/{name}")
        sections["userProfile"]["learningGoal"] = f"exam {canary(f'{marked}/learningGoal')}"
    return {**sections, "allowedModelFields": list(fields)}


def job(id_: str, **columns: Any) -> Json:
    """A job of a world's data, by its columns. ``content``, ``expiresAt``: of its snapshot, which is its own."""
    return {"id": id_, **columns}


def data(timing: Timing, *jobs: Json, credentials: Sequence[Json] = ()) -> Json:
    """Rows of a world: these jobs, each with a snapshot of its own unless it names one (``snapshotId``; None: none)."""
    rows: list[Json] = []
    snapshots: list[Json] = []
    for entry in jobs:
        columns = dict(entry)
        own: Json = {name: columns.pop(name) for name in ("content", "expiresAt") if name in columns}
        if "snapshotId" not in columns:
            columns["snapshotId"] = f"snap-{columns['id']}"
            snapshots.append({"id": columns["snapshotId"], "content": content(), **own})
        rows.append(
            {
                "userId": "user-1",
                "jobType": TYPES[0],
                "targetType": "material",
                "targetId": "mat-1",
                "promptVersion": "prompt_v1",
                "timeoutSeconds": timing.seconds,
                **columns,
            }
        )
    return {"snapshots": snapshots, "credentials": list(credentials), "jobs": rows}


def locks(timing: Timing, number: float) -> int:
    """So many locks as a job's ``timeoutSeconds``: whole seconds, rounded up."""
    return math.ceil(timing.lock * number)


def params(kind: str) -> Json:
    """``params`` that jobs of a type have."""
    if kind == QUIZ:
        return {"questionCount": 3, "difficulty": "medium", "language": "en"}
    return {"cardCount": 3} if kind == CARDS else {}


# Faults


def plan(
    fault: Mapping[str, Any],
    operation: str | None = None,
    job: str | None = None,
    *,
    answers: Sequence[int] = (),
    nth: Sequence[int] = (),
    first: int = 0,
    **when: Any,
) -> Plan:
    """A fault plan: this fault at requests of an operation, about a job. ``answers``: only those of these statuses.

    ``first`` is ``from`` of the plan's ``when``; ``nth``, ``every``, ``times`` are as there.
    """
    match: Json = {}
    if operation is not None:
        match["operationId"] = operation
    if job is not None:
        match["jobId"] = job
    if answers:
        match["status"] = list(answers)
    if nth:
        when["nth"] = list(nth)
    if first:
        when["from"] = first
    return {"match": match, "when": when, "fault": dict(fault)}


def status(number: int, code: str | None = None, **headers: str) -> Json:
    """The API's own error body with a status. Names of ``headers`` have ``_`` for ``-``."""
    fault: Json = {"kind": "status", "status": number}
    if code is not None:
        fault["errorCode"] = code
    if headers:
        fault["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
    return fault


def gateway(number: int = 502) -> Json:
    """What a gateway answers for an API that it can't reach: no JSON, by its content type."""
    return status(number, content_type="text/html")


def rate_limit(seconds: int = 1) -> Json:
    """429 with ``Retry-After``."""
    return {"kind": "rate-limit", "retryAfter": seconds}


def cut(kind: str, at: str = "before") -> Json:
    """The connection is ``reset`` or ``close``d ``before`` anything is handled, ``after-commit`` or ``mid-body``."""
    return {"kind": kind, "at": at}


def spoilt(kind: str) -> Json:
    """``truncated-json``, ``malformed-json`` or ``empty``."""
    return {"kind": kind}


def hang(seconds: float | None = None) -> Json:
    """Never answered; ``seconds``: closed after them."""
    return {"kind": "hang"} if seconds is None else {"kind": "hang", "seconds": seconds}


def delay(seconds: float, at: str = "request") -> Json:
    """It waits before it is handled, or its ``answer`` waits."""
    return {"kind": "delay", "seconds": seconds, "at": at}


def skew(seconds: float) -> Json:
    """``lockUntil`` as by a clock that is ahead (+) or behind (-)."""
    return {"kind": "skew", "seconds": seconds}


def patch(*operations: Json) -> Json:
    """The answer's body is changed (RFC 6902)."""
    return {"kind": "patch", "operations": list(operations)}


def add(path: str, value: Any) -> Json:
    """An operation of a patch: a value more."""
    return {"op": "add", "path": path, "value": value}


def put(path: str, value: Any) -> Json:
    """An operation of a patch: another value; the path "" is the whole body."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> Json:
    """An operation of a patch: a value less."""
    return {"op": "remove", "path": path}


# The model


def script(job: str | None, *calls: Json) -> Json:
    """What the model answers to a job's calls (None: to any job's); the last one repeats."""
    return {"calls": list(calls)} if job is None else {"jobId": job, "calls": list(calls)}


def good(after: float = 0, **more: Any) -> Json:
    """A completion that fits, ``after`` seconds. ``variant``: another output; ``usage`` False: it tells no tokens."""
    return _after(after, {"kind": "good", **more})


def unfit(kind: str, after: float = 0) -> Json:
    """``prose``, ``cut-json``, ``empty-text``, ``not-object``, ``wrong-schema``, ``no-completion`` or ``not-json``."""
    return _after(after, {"kind": kind})


def refusal(number: int, after: float = 0, **more: Any) -> Json:
    """A status from 400 on. ``headers``, ``message``, ``echoKey``: as the control plane has them."""
    return _after(after, {"kind": "status", "status": number, **more})


def never() -> Json:
    """The model takes the request and never answers."""
    return {"kind": "hang"}


def broken(kind: str, at: str = "before") -> Json:
    """The model's connection is ``close``d or ``reset``, ``before`` the answer or ``mid-body``."""
    return {"kind": kind, "at": at}


def elsewhere(number: int = 307) -> Json:
    """A redirect to a place that no resolve named."""
    return {"kind": "redirect", "status": number}


def _after(seconds: float, outcome: Json) -> Json:
    return outcome | {"afterSeconds": seconds} if seconds else outcome
