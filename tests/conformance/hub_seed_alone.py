"""A hub by the seed alone, which has decided everything otherwise that the seed leaves open: right at level seed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from variant_traits import Trait

from mock_server.faults.edits import put
from mock_server.hub.streams import PROGRESS, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from variant_rewrites import Reply

# mypy: disable-error-code="misc"

_NAMED = ("job_finished", "job_not_retryable", "node_offline", "ambiguous_project")
"""The codes that the seed spells."""
_STATUSES = {401: 403, 405: 404, 413: 400, 415: 400, 422: 409}
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z")


def rewrite(reply: Reply) -> None:
    """Other statuses and codes, other shapes where no example shows one, times with microseconds."""
    if not reply.of_api:
        return
    for name in (b"x-request-id", b"x-accel-buffering", b"cache-control", b"allow"):
        reply.headers.pop(name, None)
    if isinstance(reply.data, dict):
        reply.data = _times(reply.data)
        if reply.kind == "event":
            reply.data = {name: reply.data.get(name) for name in ("id", "status", "progress")}
        elif reply.kind == "webhook":
            reply.data = {"event": reply.data["type"], "about": _no_nulls(reply.data["data"])}
        elif reply.status >= 400:
            _refusal(reply)
        else:
            _success(reply)


def _refusal(reply: Reply) -> None:
    error = reply.data.get("error")
    if error is None:  # what lies outside `/v1` is another API's
        return
    if error["code"] == "ambiguous_project":
        reply.status = 409
    reply.status = _STATUSES.get(reply.status, reply.status)
    code = error["code"] if error["code"] in _NAMED else f"E{reply.status}"
    reply.data = {"error": {"code": code, "message": error["message"]}}


def _success(reply: Reply) -> None:
    data, method = reply.data["data"], reply.method
    if method == "POST" and reply.path != "/v1/jobs":
        reply.status = 202
    if reply.path.endswith("/cancel") and "cancelled" in data:
        reply.data = {**data, "requestId": reply.data["requestId"]}
    elif reply.path == "/v1/projects":
        reply.data["data"] = [{"projectId": item["projectId"]} for item in data["items"]]
    elif reply.path == "/v1/overview":
        reply.data["data"] = {"load": {"stalledQueued": data["load"]["stalledQueued"]}}
    elif reply.path == "/v1/jobs" and method == "GET":
        del reply.data["data"]
        reply.data = {**_no_nulls(data), **reply.data}
    elif method == "GET" and "/jobs/" in reply.path:
        reply.data["data"] = _no_nulls(data)


def _no_nulls(value: Any) -> Any:
    """Without what is null, but in what the client sent."""
    if isinstance(value, dict):
        return {
            name: item if name == "metadata" else _no_nulls(item) for name, item in value.items() if item is not None
        }
    return [_no_nulls(item) for item in value] if isinstance(value, list) else value


def _times(value: Any) -> Any:
    """With times to the microsecond, but in what the client sent."""
    if isinstance(value, dict):
        return {name: item if name == "metadata" else _times(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_times(item) for item in value]
    return _INSTANT.sub(r"\g<1>000Z", value) if isinstance(value, str) else value


class WholeTitle:
    """The title is the whole text; what there is no earlier error of, is an empty one."""

    def field(self: Any, name: str, row: Any, node: Any) -> Any:
        if name == "title":
            return row["prompt"] or row["command"]
        value = super().field(name, row, node)
        return {**value, "lastError": value["lastError"] or ""} if name == "failure" and value else value


class WaitingIsQueued:
    """A job that waits for its retry counts as queued, and its failure as none; shares have two places."""

    def counts(self: Any, jobs: Any) -> dict[str, int]:
        rows = [row if self.shapes.is_final(row) or row["status"] != "failed" else _queued(row) for row in jobs]
        counts: dict[str, int] = super().counts(rows)
        return counts

    def failures(self: Any, jobs: Any) -> Sequence[dict[str, Any]]:
        failures: list[dict[str, Any]] = super().failures([row for row in jobs if self.shapes.is_final(row)])
        return failures[::-1]

    def progress(self: Any, counts: dict[str, int], total: int) -> float:
        return round(float(super().progress(counts, total)), 2)


def _queued(row: Any) -> dict[str, Any]:
    return {**row, "status": "queued"}


class ProgressAlone:
    """After the first event nothing but progress is told until the end; a new attempt is progress, too."""

    def greet(self: Any, stream: Any, _: Any, detail: Any) -> None:
        stream.put(STATE, detail)

    async def tell(self: Any, row: Any, event: str, detail: Any) -> None:
        if event != STATE:
            await super().tell(row, event, detail)
        elif row["status"] == "running":
            await super().tell(row, PROGRESS, detail)


class NeverAgain:
    """What is not taken is given up."""

    def __init__(self: Any, hub: Any) -> None:
        super().__init__(hub)
        self.retries = []


TRAIT = Trait(
    rewrite=rewrite,
    edits=(
        put("components", "schemas", "JobItem", "additionalProperties", value=True),
        put("components", "schemas", "Submission", "additionalProperties", value=True),
    ),
    layers={
        "shapes": WholeTitle,
        "summaries": WaitingIsQueued,
        "streams": ProgressAlone,
        "webhooks": NeverAgain,
    },
    secret=None,
    tells_secret=False,
    arguments=("--level", "seed"),
)
