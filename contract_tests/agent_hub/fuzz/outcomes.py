"""What a request of the right form is to be answered, by the situation in which it finds what it is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from contract_tests.agent_hub.fuzz.situations import BATCH, JOB
from contract_tests.fuzz.judging import Expected, refused

if TYPE_CHECKING:
    from contract_tests.agent_hub.fuzz.situations import Subject
    from contract_tests.fuzz.trials import Step

SUCCEEDS = {
    "submitJobs": ("HUB-SUB-05", 202),
    "listJobs": ("HUB-LIST-01", 200),
    "getJob": ("HUB-GET-01", 200),
    "streamJob": ("HUB-SSE-01", 200),
    "cancelHubJob": ("HUB-CANCEL-01", 200),
    "retryHubJob": ("HUB-RETRY-06", 200),
    "getBatch": ("HUB-BATCH-03", 200),
    "cancelBatch": ("HUB-BATCH-16", 200),
    "listProjects": ("HUB-PROJ-01", 200),
    "getOverview": ("HUB-OVW-01", 200),
}
"""The rule by which an operation succeeds, and with which status."""
SURE_KEY = 12
"""A shorter ``Idempotency-Key`` may have been used by anybody."""


def outcome(step: Step[Subject]) -> Expected:
    """The answer; ``statuses`` of less than 400 are successes."""
    subject = step.subject
    if subject is None:
        return success(step.operation_id)
    if step.operation_id == "submitJobs":
        return _of_submission(step, subject)
    if step.operation_id == "listJobs" and "unknown=" in step.request.path:
        return success(step.operation_id, "HUB-LIST-65")
    id_ = named_in(step)
    if subject.situation.kind == JOB and id_ is not None:
        return _of_job(step.operation_id, subject) if id_ == subject.job else _unknown("job", "HUB-ERR-53")
    if subject.situation.kind == BATCH and id_ is not None and id_ != subject.batch:
        return _unknown("batch", "HUB-ERR-54")
    return success(step.operation_id)


def success(operation_id: str, rule: str | None = None) -> Expected:
    """A success, told under ``rule`` where it does not come, or under the operation's own."""
    own, status = SUCCEEDS[operation_id]
    return Expected(frozenset({status}), rules=(rule or own,))


def _unknown(what: str, rule: str) -> Expected:
    return refused(404, f"{what}_not_found", rules=[rule])


def named_in(step: Step[Subject]) -> str | None:
    """The id in the request's path; None where it has none."""
    tokens = step.request.path.partition("?")[0].split("/")
    return unquote(tokens[3], errors="replace") if len(tokens) > 3 else None


def _of_job(operation_id: str, subject: Subject) -> Expected:
    row = subject.row or {}
    waiting = subject.state == "failed" and row.get("nextRetryAt") is not None
    match operation_id, subject.state:
        case "cancelHubJob", "queued" | "running":
            return success(operation_id, "HUB-CANCEL-02" if subject.state == "queued" else "HUB-CANCEL-03")
        case "cancelHubJob", _:
            if waiting:
                return success(operation_id, "HUB-CANCEL-51")
            rule = "HUB-CANCEL-05" if subject.state == "done" else "HUB-CANCEL-52"
            return refused(409, "job_finished", rules=[rule])
        case "retryHubJob", "failed" | "cancelled":
            return success(operation_id, "HUB-RETRY-07")
        case "retryHubJob", _:
            return refused(409, "job_not_retryable", rules=["HUB-RETRY-08"])
    return success(operation_id)


def _of_submission(step: Step[Subject], subject: Subject) -> Expected:
    key = step.request.headers.get("idempotency-key")
    if key is not None and len(key) < SURE_KEY:
        return Expected(frozenset({200, 202, 422}), frozenset({"idempotency_key_reused"}), rules=("HUB-SUB-05",))
    body = json.loads(step.request.content)
    if key in subject.sent:
        if same(json.loads(subject.sent[key].request.content), body):
            return Expected(frozenset({200}), rules=("HUB-IDEM-03",))
        return refused(422, "idempotency_key_reused", rules=["HUB-IDEM-55"])
    placed = _placed(subject, body["items"])
    return placed if key is None or not placed.succeeds else success("submitJobs", "HUB-IDEM-59")


def _placed(subject: Subject, items: list[dict[str, Any]]) -> Expected:
    """Whether there is a place for each job; of several kinds of fault the first counts (HUB-SUB-63)."""
    faults: dict[str, str] = {}
    for item in items:
        wanted = item.get("nodeId")
        having = [
            online
            for id_, (online, has) in subject.nodes.items()
            if has and item["projectId"] == subject.project.id and wanted in (None, id_)
        ]
        if not having:
            nowhere = item["projectId"] != subject.project.id
            known = wanted in subject.nodes
            faults["project_not_found"] = "HUB-FIELD-03" if nowhere else "HUB-SUB-62" if known else "HUB-SUB-61"
        elif len(having) > 1:
            faults["ambiguous_project"] = "HUB-NODE-01"
        elif not having[0]:
            faults["node_offline"] = "HUB-NODE-05"
    for code, status in (("project_not_found", 400), ("ambiguous_project", 400), ("node_offline", 409)):
        if code in faults:
            return refused(status, code, rules=[faults[code]])
    return success("submitJobs")


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; numbers beyond 2^53 may have lost precision (HUB-FIELD-53)."""
    try:
        return _same(one, other)
    except RecursionError:  # deeper than we can look
        return True


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (abs(one) > 2**53 and abs(one - other) <= abs(one) * 1e-9)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
