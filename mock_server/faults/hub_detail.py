"""Seeded faults of a hub job's detail."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import effect, machine, part
from mock_server.hub.api import HubApi
from mock_server.hub.nodes import Nodes
from mock_server.hub.shapes import Shapes
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call
    from mock_server.hub.hub import Hub
    from mock_server.hub.submission import Item
    from mock_server.store import Row

NO_RESULT = {
    "summary": "",
    "producedFiles": [],
    "usage": {"inputTokens": 0, "outputTokens": 0},
    "iterations": 0,
    "toolCalls": 0,
}


def shown(change: Callable[[dict[str, Any], Row, Row | None], dict[str, Any]]) -> type[Shapes]:
    """Details that differ from the row; ``change`` makes fields of the detail, the job's row and its node's."""

    class Shown(Shapes):
        def detail(self, row: Row, node: Row | None) -> dict[str, Any]:
            values = super().detail(row, node)
            return {**values, **change(values, row, node)}

    return Shown


def without(*names: str) -> type[Shapes]:
    """Details that leave fields out while they are null."""

    class Without(Shapes):
        def detail(self, row: Row, node: Row | None) -> dict[str, Any]:
            values = super().detail(row, node)
            return {name: value for name, value in values.items() if value is not None or name not in names}

    return Without


def in_text(change: Callable[[str], str]) -> type[Shapes]:
    """Details whose instants are written otherwise."""

    class InText(Shapes):
        def detail(self, row: Row, node: Row | None) -> dict[str, Any]:
            values = super().detail(row, node)
            times = {name: values[name] and change(values[name]) for name in self.instants}
            progress = values["progress"]
            if progress:
                times["progress"] = {**progress, "updatedAt": change(progress["updatedAt"])}
            return {**values, **times}

    return InText


class LatestStart(Shapes):
    """Shows when the round that runs has begun."""

    def field(self, name: str, row: Row, node: Row | None) -> Any:
        return super().field(name, {**row, "startedAt": row["roundStartedAt"] or row["startedAt"]}, node)


class FailureStays(Shapes):
    """Shows the last failure until the next one."""

    def failure(self, row: Row) -> dict[str, Any] | None:
        if row["failureType"] is None and row["lastError"] is not None and row["status"] in ("queued", "running"):
            return {"type": "llm_error", "message": row["lastError"], "lastError": None}
        return super().failure(row)


class ErrorTwice(Shapes):
    """Tells the message of the first failure as its last error, too."""

    def failure(self, row: Row) -> dict[str, Any] | None:
        failure = super().failure(row)
        return failure and {**failure, "lastError": failure["lastError"] or failure["message"]}


class ErrorSwapped(Shapes):
    """Takes the earlier reason for the current one."""

    def failure(self, row: Row) -> dict[str, Any] | None:
        failure = super().failure(row)
        if failure is None or failure["lastError"] is None:
            return failure
        return {**failure, "message": failure["lastError"], "lastError": failure["message"]}


class CancelledQuietly(Shapes):
    """Shows no failure of cancelled jobs."""

    def failure(self, row: Row) -> dict[str, Any] | None:
        return None if row["status"] == "cancelled" else super().failure(row)


class OneKindOfFailure(Shapes):
    """Shows every failure of an engine as one of it."""

    def failure(self, row: Row) -> dict[str, Any] | None:
        failure = super().failure(row)
        known = ("engine_error", "llm_error", "cancelled")
        return failure and {**failure, "type": failure["type"] if failure["type"] in known else "engine_error"}


class BlockedWhatever(Shapes):
    """Shows every job of a node that is offline as blocked."""

    def blocked(self, row: Row, node: Row | None) -> dict[str, Any] | None:
        return super().blocked({**row, "status": "queued"}, node)


class NeverBlocked(Shapes):
    """Shows no job as blocked."""

    def blocked(self, row: Row, node: Row | None) -> dict[str, Any] | None:
        return None


class OneSession(Nodes):
    """Runs all rounds in one session."""

    @staticmethod
    def new_session(_: Row) -> str:
        return "sess_1"


class TitleOfUnits(Submissions):
    """Counts a title's characters as UTF-16 does."""

    def rows(self, hub: Hub, account: str, batch_id: str, items: list[Item], nodes: list[str], first: int) -> list[Row]:
        rows = super().rows(hub, account, batch_id, items, nodes, first)
        most = 2 * hub.constants["titleLength"]
        return [{**row, "title": row["title"].encode("utf-16-le")[:most].decode("utf-16-le", "ignore")} for row in rows]


class TitleOfCommands(Submissions):
    """Names scripts by what they are, not by their command."""

    def rows(self, hub: Hub, account: str, batch_id: str, items: list[Item], nodes: list[str], first: int) -> list[Row]:
        rows = super().rows(hub, account, batch_id, items, nodes, first)
        return [{**row, "title": "script" if row["kind"] == "script" else row["title"]} for row in rows]


class LastFirst(Submissions):
    """Queues the last item first."""

    def rows(self, hub: Hub, account: str, batch_id: str, items: list[Item], nodes: list[str], first: int) -> list[Row]:
        rows = super().rows(hub, account, batch_id, items, nodes, first)
        return [{**row, "queuedAt": first + len(rows) - 1 - at} for at, row in enumerate(rows)]


class FirstLookMisses(HubApi):
    """Reads from a copy that is late: the first look at a job finds none."""

    _seen: set[str]

    async def get_job(self, call: Call) -> Answer:
        self._seen = getattr(self, "_seen", set())
        row = await self.job(call)
        if row["id"] not in self._seen:
            self._seen.add(row["id"])
            raise self.refusal("job_not_found")
        return await super().get_job(call)


class BareDetail(HubApi):
    """Answers the detail without an envelope."""

    async def get_job(self, call: Call) -> Answer:
        answer = await super().get_job(call)
        answer.body = answer.body["data"]
        return answer


class PlainRequestIds(HubApi):
    """Names requests without a prefix."""

    @staticmethod
    def answered(call: Call, status: int, data: Any) -> Answer:
        answer = HubApi.answered(call, status, data)
        answer.body["requestId"] = secrets.token_hex(8)
        return answer


class NoRequestId(HubApi):
    """Leaves the requestId out of the overview."""

    async def get_overview(self, call: Call) -> Answer:
        answer = await super().get_overview(call)
        del answer.body["requestId"]
        return answer


def clean(value: Any) -> Any:
    """A JSON value without what is null."""
    if isinstance(value, dict):
        return {name: clean(item) for name, item in value.items() if item is not None}
    return [clean(item) for item in value] if isinstance(value, list) else value


def absolute(detail: dict[str, Any], *_: Any) -> dict[str, Any]:
    """Files by absolute paths."""
    result = detail["result"]
    return {"result": result and {**result, "producedFiles": [f"/w/{name}" for name in result["producedFiles"]]}}


def derived(name: str, text: str) -> Callable[[dict[str, Any]], None]:
    """Replace the expression of a derived field."""
    return machine("derived", name, value=text)


def fault(id_: str, title: str, *rules: str, edit: Any = None, **parts: Any) -> Mutant:
    """A fault of the detail."""
    return Mutant(f"hub-detail.{id_}", title, rules, edit=edit, parts=part(**parts) if parts else None)


BOTH = "job.startedAt == null || job.finishedAt == null"
FAULTS = (
    fault("first-look-404", "the first look at a job finds none", "HUB-GET-01", api=FirstLookMisses),
    fault("bare", "the detail has no envelope", "HUB-GET-02", "HUB-GET-26", "HUB-ERR-52", api=BareDetail),
    fault(
        "label-is-id",
        "nodeLabel is the node's id",
        "HUB-GET-03",
        shapes=shown(lambda it, row, _: {"nodeLabel": row["nodeId"]}),
    ),
    fault(
        "kind-upper", "kind is in upper case", "HUB-GET-04", shapes=shown(lambda it, *_: {"kind": it["kind"].upper()})
    ),
    fault(
        "retrying",
        "a job that waits for its retry has a status of its own",
        "HUB-GET-05",
        "HUB-RETRY-50",
        shapes=shown(lambda it, *_: {"status": "retrying"} if it["nextRetryAt"] else {}),
    ),
    fault(
        "title-of-scripts",
        "a script's title is not its command",
        "HUB-GET-06",
        "HUB-GET-69",
        submissions=TitleOfCommands,
    ),
    fault(
        "title-whole",
        "the title is the whole text",
        "HUB-GET-69",
        edit=machine("constants", "titleLength", "value", value=8000),
    ),
    fault("title-units", "the title's characters are counted in UTF-16", "HUB-GET-69", submissions=TitleOfUnits),
    fault(
        "attempts-left",
        "attempt counts down",
        "HUB-GET-07",
        "HUB-GET-51",
        "HUB-GET-52",
        shapes=shown(lambda it, *_: {"attempt": it["maxAttempts"] - it["attempt"]}),
    ),
    fault(
        "priority-text",
        "priority is a text",
        "HUB-GET-09",
        shapes=shown(lambda it, *_: {"priority": str(it["priority"])}),
    ),
    fault(
        "offset",
        "instants have an offset, not Z",
        "HUB-GET-10",
        shapes=in_text(lambda text: text.replace("Z", "+00:00")),
    ),
    fault(
        "seconds",
        "instants have whole seconds",
        "HUB-GET-50",
        "HUB-LIST-56",
        "HUB-GET-53",
        shapes=in_text(lambda text: f"{text[:19]}Z"),
    ),
    fault("micros", "instants have microseconds", "HUB-GET-50", shapes=in_text(lambda text: f"{text[:23]}000Z")),
    fault(
        "duration-seconds",
        "durationMs is in seconds",
        "HUB-GET-11",
        shapes=shown(lambda it, *_: {"durationMs": it["durationMs"] and it["durationMs"] // 1000}),
    ),
    fault(
        "duration-from-queued",
        "durationMs counts from queuedAt",
        "HUB-GET-11",
        edit=derived("durationMs", f"{BOTH} ? null : job.finishedAt - job.queuedAt"),
    ),
    fault(
        "duration-0",
        "durationMs is 0 while a job runs",
        "HUB-GET-56",
        "HUB-RETRY-54",
        "HUB-RETRY-59",
        edit=derived("durationMs", f"{BOTH} ? 0 : job.finishedAt - job.startedAt"),
    ),
    fault(
        "wait-0",
        "waitMs is 0 while a job waits",
        "HUB-GET-56",
        "HUB-RETRY-59",
        edit=derived("waitMs", "job.startedAt == null ? 0 : job.startedAt - job.queuedAt"),
    ),
    fault(
        "wait-to-end",
        "waitMs counts to the end",
        "HUB-GET-12",
        edit=derived("waitMs", f"{BOTH} ? null : job.finishedAt - job.queuedAt"),
    ),
    fault(
        "no-next-retry",
        "nextRetryAt is not told",
        "HUB-GET-13",
        "HUB-RETRY-50",
        "HUB-RETRY-51",
        shapes=shown(lambda *_: {"nextRetryAt": None}),
    ),
    fault(
        "retry-a-second-late",
        "the retry comes a second after its time",
        "HUB-GET-13",
        "HUB-RETRY-51",
        "HUB-RETRY-53",
        shapes=shown(lambda it, row, _: {"nextRetryAt": it["finishedAt"]}),
    ),
    fault("one-session", "all jobs have one session", "HUB-GET-14", "HUB-RETRY-03", nodes=OneSession),
    fault(
        "usage-flat",
        "a result's usage is one number",
        "HUB-GET-15",
        shapes=shown(lambda it, *_: {"result": it["result"] and {**it["result"], "usage": 24400}}),
    ),
    fault("absolute-files", "produced files are absolute paths", "HUB-GET-16", shapes=shown(absolute)),
    fault(
        "failure-text",
        "failure is a text",
        "HUB-GET-17",
        "HUB-GET-18",
        "HUB-CANCEL-53",
        shapes=shown(lambda it, *_: {"failure": it["failure"] and it["failure"]["message"]}),
    ),
    fault(
        "one-failure-type",
        "most failures are told as engine_error",
        "HUB-GET-18",
        "HUB-FAIL-50",
        "HUB-FAIL-53",
        shapes=OneKindOfFailure,
    ),
    fault(
        "errors-swapped",
        "message and lastError are swapped",
        "HUB-GET-19",
        "HUB-GET-62",
        "HUB-RETRY-55",
        shapes=ErrorSwapped,
    ),
    fault(
        "error-twice", "lastError is the first failure's own message", "HUB-GET-62", "HUB-RETRY-60", shapes=ErrorTwice
    ),
    fault("blocked-whatever", "jobs that are not queued are blocked, too", "HUB-GET-20", shapes=BlockedWhatever),
    fault("never-blocked", "no job is blocked", "HUB-GET-20", "HUB-NODE-07", shapes=NeverBlocked),
    fault(
        "metadata-text",
        "metadata comes back as a text",
        "HUB-GET-25",
        "HUB-FIELD-22",
        "HUB-FIELD-52",
        shapes=shown(lambda it, *_: {"metadata": it["metadata"] and json.dumps(it["metadata"])}),
    ),
    fault(
        "metadata-no-nulls",
        "nulls within metadata are lost",
        "HUB-GET-25",
        "HUB-FIELD-22",
        "HUB-FIELD-52",
        shapes=shown(lambda it, *_: {"metadata": clean(it["metadata"])}),
    ),
    fault(
        "plain-request-ids", "request ids have no prefix", "HUB-GET-26", "HUB-GET-02", "HUB-ERR-52", api=PlainRequestIds
    ),
    fault("no-request-id", "the overview has no requestId", "HUB-GET-26", "HUB-ERR-52", api=NoRequestId),
    fault(
        "attempt-from-1",
        "attempt is 1 before the first one",
        "HUB-GET-51",
        "HUB-RETRY-57",
        "HUB-GET-52",
        shapes=shown(lambda it, *_: {"attempt": it["attempt"] or 1}),
    ),
    fault(
        "attempt-of-failures",
        "attempt is raised by failures",
        "HUB-GET-52",
        "HUB-GET-07",
        shapes=shown(
            lambda it, *_: {"attempt": it["attempt"] - 1 if it["status"] in ("running", "done") else it["attempt"]}
        ),
    ),
    fault("last-item-first", "the last item is queued first", "HUB-GET-53", submissions=LastFirst),
    fault("latest-start", "startedAt is the latest attempt's", "HUB-GET-54", shapes=LatestStart),
    fault(
        "first-end",
        "finishedAt stays when a retry begins",
        "HUB-GET-55",
        "HUB-RETRY-54",
        edit=effect("again", "finishedAt"),
    ),
    fault(
        "empty-result",
        "a job without a result has an empty one",
        "HUB-GET-57",
        "HUB-RETRY-59",
        shapes=shown(lambda it, *_: {"result": it["result"] or NO_RESULT}),
    ),
    fault("no-result", "a done job has no result", "HUB-GET-58", shapes=shown(lambda *_: {"result": None})),
    fault(
        "result-text",
        "a failed job has a text for a result",
        "HUB-GET-59",
        "HUB-GET-15",
        shapes=shown(lambda it, *_: {"result": "none" if it["status"] == "failed" else it["result"]}),
    ),
    fault("failure-stays", "a failure is shown until the next one", "HUB-GET-60", "HUB-RETRY-54", shapes=FailureStays),
    fault(
        "cancelled-quietly", "a cancelled job has no failure", "HUB-GET-61", "HUB-CANCEL-53", shapes=CancelledQuietly
    ),
    fault(
        "nulls-left-out",
        "fields that are null are left out",
        "HUB-GET-70",
        shapes=without("startedAt", "blocked", "sessionId"),
    ),
    fault(
        "metadata-left-out",
        "metadata that was not given is left out",
        "HUB-GET-71",
        shapes=without("metadata", "externalId"),
    ),
    fault(
        "metadata-empty",
        "metadata that was not given is an empty object",
        "HUB-GET-71",
        shapes=shown(lambda it, *_: {"metadata": {} if it["metadata"] is None else it["metadata"]}),
    ),
)
