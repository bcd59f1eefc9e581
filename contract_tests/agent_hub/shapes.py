"""What a job's detail looks like, field by field, each under the rule that says so (seed 002 section 2)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from contract_tests.checks import about, expect, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STATUSES = ("queued", "running", "done", "failed", "cancelled")
FAILURE_TYPES = (
    "node_lost",
    "llm_error",
    "engine_error",
    "timeout",
    "max_iterations",
    "project_not_found",
    "rejected",
    "cancelled",
    "script_failed",
)
INSTANTS = ("queuedAt", "startedAt", "finishedAt", "nextRetryAt")
FIELDS = (
    "id",
    "externalId",
    "kind",
    "status",
    "nodeId",
    "nodeLabel",
    "projectId",
    "batchId",
    "title",
    "attempt",
    "maxAttempts",
    "priority",
    *INSTANTS,
    "durationMs",
    "waitMs",
    "sessionId",
    "result",
    "failure",
    "blocked",
    "progress",
    "metadata",
)
"""Every field of the seed's example."""
STEP = "the shape of a job's detail"

_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")
_WITH_MILLISECONDS = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")


def iso(value: Any, at: str = "") -> int:
    """An instant, ISO 8601 in UTC ending in Z, as epoch milliseconds; ``at`` is its place.

    Fails the check, under HUB-GET-10, where it is none.
    """
    with about("HUB-GET-10", step="an instant"):
        good = isinstance(value, str) and bool(_INSTANT.fullmatch(value))
        expect(good, "an instant like 2026-11-09T10:05:00.000Z", json.dumps(value)[:100], at)
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            expect(False, "an instant that exists", value, at)
    return round((instant - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def instant(detail: Mapping[str, Any], name: str) -> int:
    """An instant of a detail, epoch milliseconds. Fails the check, under HUB-GET-10, where it is null or left out."""
    return iso(detail.get(name), f"/data/{name}")


def judge_milliseconds(detail: Mapping[str, Any]) -> None:
    """Every instant of a detail has three places of a second (HUB-GET-50)."""
    blocked, progress = detail.get("blocked") or {}, detail.get("progress") or {}
    told = {f"/data/{name}": detail.get(name) for name in INSTANTS}
    told |= {"/data/blocked/lastSeen": blocked.get("lastSeen"), "/data/progress/updatedAt": progress.get("updatedAt")}
    with about("HUB-GET-50"):
        for place, value in told.items():
            good = value is None or (isinstance(value, str) and bool(_WITH_MILLISECONDS.fullmatch(value)))
            expect(good, "an instant with milliseconds", json.dumps(value), place)


def judge_presence(detail: Mapping[str, Any]) -> None:
    """Every field is there, with null where it means nothing yet (HUB-GET-70, HUB-GET-71)."""
    for name in FIELDS:
        with about("HUB-GET-71" if name in ("externalId", "metadata") else "HUB-GET-70"):
            expect(name in detail, f"`{name}`, null where it means nothing yet", "left out", f"/data/{name}")


def judge_detail(detail: Mapping[str, Any]) -> None:
    """The shape of a job's detail as the seed shows it; a field that may be null may be left out, too."""
    _strings(detail)
    with about("HUB-GET-04", step=STEP):
        _one_of(detail, "kind", ("ai", "script"))
    with about("HUB-GET-05", step=STEP):
        _one_of(detail, "status", STATUSES)
    with about("HUB-GET-06", step=STEP):
        _field(detail, "title", "a string", _is_text)
    with about("HUB-GET-07", step=STEP):
        _field(detail, "attempt", "an integer from 0 on", _is_count)
        _field(detail, "maxAttempts", "an integer of 1 to 4", lambda value: _is_count(value) and 1 <= value <= 4)
    with about("HUB-GET-09", step=STEP):
        _field(detail, "priority", "an integer", is_integer)
    _times(detail)
    with about("HUB-GET-14", step=STEP):
        _maybe(detail, "sessionId", "a string", _is_name)
    _result(detail.get("result"))
    _failure(detail.get("failure"))
    _blocked(detail.get("blocked"))
    _progress(detail.get("progress"))


def _strings(detail: Mapping[str, Any]) -> None:
    with about("HUB-GET-03", step=STEP):
        for name in ("id", "nodeId", "projectId", "batchId"):
            _field(detail, name, "a string that is not empty", _is_name)
        _field(detail, "nodeLabel", "a string", _is_text)
        _maybe(detail, "externalId", "a string", _is_text)


def _times(detail: Mapping[str, Any]) -> None:
    iso(detail.get("queuedAt"), "/data/queuedAt")
    for name in INSTANTS[1:]:
        if detail.get(name) is not None:
            iso(detail[name], f"/data/{name}")
    for rule, name in (("HUB-GET-11", "durationMs"), ("HUB-GET-12", "waitMs")):
        with about(rule, step=STEP):
            _maybe(detail, name, "an integer from 0 on", _is_count)


def _result(result: Any) -> None:
    if result is None:
        return
    with about("HUB-GET-15", step=STEP):
        expect(isinstance(result, dict), "an object or null", json.dumps(result)[:100], "/data/result")
        at = "/data/result"
        _field(result, "summary", "a string", _is_text, at)
        files = result.get("producedFiles")
        good = isinstance(files, list) and all(isinstance(name, str) for name in files)
        expect(good, "`producedFiles`, a list of strings", json.dumps(files)[:100], f"{at}/producedFiles")
        usage = result.get("usage")
        expect(isinstance(usage, dict), "`usage`, an object", json.dumps(usage)[:100], f"{at}/usage")
        for name in ("inputTokens", "outputTokens"):
            _field(usage, name, "an integer from 0 on", _is_count, f"{at}/usage")
        for name in ("iterations", "toolCalls"):
            _field(result, name, "an integer from 0 on", _is_count, at)


def _failure(failure: Any) -> None:
    if failure is None:
        return
    at = "/data/failure"
    with about("HUB-GET-17", step=STEP):
        expect(isinstance(failure, dict), "an object or null", json.dumps(failure)[:100], at)
        _field(failure, "message", "a string", _is_text, at)
        _maybe(failure, "lastError", "a string or null", _is_text, at)
    with about("HUB-FAIL-01", step=STEP):
        _one_of(failure, "type", FAILURE_TYPES, at)


def _blocked(blocked: Any) -> None:
    if blocked is None:
        return
    at = "/data/blocked"
    with about("HUB-NODE-07", step=STEP):
        expect(isinstance(blocked, dict), "an object or null", json.dumps(blocked)[:100], at)
        _one_of(blocked, "reason", ("node_offline",), at)
        _field(blocked, "nodeId", "a string that is not empty", _is_name, at)
        good = isinstance(blocked.get("lastSeen"), str) and bool(_INSTANT.fullmatch(blocked["lastSeen"]))
        expect(good, "`lastSeen`, an instant", json.dumps(blocked.get("lastSeen")), f"{at}/lastSeen")


def _progress(progress: Any) -> None:
    if progress is None:
        return
    at = "/data/progress"
    with about("HUB-GET-21", step=STEP):
        expect(isinstance(progress, dict), "an object or null", json.dumps(progress)[:100], at)
        for name in ("toolCalls", "tokensIn", "tokensOut", "iterations"):
            _field(progress, name, "an integer from 0 on", _is_count, at)
        _field(progress, "lastActivity", "a string", _is_text, at)
        good = isinstance(progress.get("updatedAt"), str) and bool(_INSTANT.fullmatch(progress["updatedAt"]))
        expect(good, "`updatedAt`, an instant", json.dumps(progress.get("updatedAt")), f"{at}/updatedAt")


def _field(held: Mapping[str, Any], name: str, what: str, good: Callable[[Any], bool], at: str = "/data") -> None:
    came = json.dumps(held[name])[:100] if name in held else "left out"
    expect(name in held and good(held[name]), f"`{name}`, {what}", came, f"{at}/{name}")


def _maybe(held: Mapping[str, Any], name: str, what: str, good: Callable[[Any], bool], at: str = "/data") -> None:
    if held.get(name) is not None:
        _field(held, name, what, good, at)


def _one_of(held: Mapping[str, Any], name: str, values: tuple[str, ...], at: str = "/data") -> None:
    _field(held, name, f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values, at)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 0
