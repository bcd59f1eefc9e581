"""What successes look like, each part under its rule of level seed; and whether they tell of what was sent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from contract_tests.agent_hub.client import HubAnswer, is_stream, whole
from contract_tests.agent_hub.fuzz.outcomes import same
from contract_tests.agent_hub.fuzz.situations import BATCH
from contract_tests.agent_hub.shapes import STATUSES, instant, iso, judge_detail
from contract_tests.checks import about, expect, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contract_tests.agent_hub.fuzz.situations import Subject
    from contract_tests.fuzz.trials import Step
    from contract_tests.transport import Response

LIMIT, MOST = 50, 200
"""Jobs of a page where no limit is given, and at most."""
LOOKED_AT = 3
"""Entries of a page whose details are judged: they are all made alike."""
_FILTERS = {
    "status": "HUB-LIST-02",
    "nodeId": "HUB-LIST-03",
    "projectId": "HUB-LIST-04",
    "batchId": "HUB-LIST-05",
    "externalId": "HUB-LIST-06",
}


def judge_success(step: Step[Subject], response: Response) -> None:
    """A success of an operation: what the seed says of it."""
    _JUDGES[step.operation_id](step, response)


def _stream(step: Step[Subject], response: Response) -> None:
    with about("HUB-SSE-01"):
        media = response.headers.get("content-type", "none")
        expect(is_stream(response), "content type text/event-stream", media)


def _submitted(step: Step[Subject], response: Response) -> None:
    data = HubAnswer(response, "HUB-SUB-06").data
    sent = json.loads(step.request.content)
    with about("HUB-SUB-07"):
        good = isinstance(data.get("batchId"), str) and data["batchId"] != ""
        expect(good and data["batchId"] == sent.get("batchId", data["batchId"]), "the batch's id", data.get("batchId"))
    with about("HUB-SUB-08"):
        accepted, count = data.get("accepted"), len(sent["items"])
        expect(is_integer(accepted) and accepted == count, f"`accepted` {count}", accepted, "/data/accepted")
    with about("HUB-SUB-09"):
        items = data.get("items")
        good = isinstance(items, list) and all(isinstance(one, dict) for one in items) and len(items) == count
        expect(good, f"`items`, {count} objects", str(items)[:100], "/data/items")
    nodes = step.subject.nodes if step.subject else {}
    wanted = sorted(_echoed(one) for one in sent["items"])
    for number, one in enumerate(items or ()):
        at = f"/data/items/{number}"
        with about("HUB-SUB-09"):
            expect(isinstance(one.get("id"), str) and one["id"] != "", "`id`", json.dumps(one)[:200], f"{at}/id")
        with about("HUB-SUB-10"):
            expect(one.get("status") == "queued", "status queued", one.get("status"), f"{at}/status")
        with about("HUB-SUB-11"):
            expect(one.get("nodeId") in nodes, f"`nodeId`, of {', '.join(nodes)}", one.get("nodeId"), f"{at}/nodeId")
    with about("HUB-FIELD-20"):
        told = sorted(_echoed(one) for one in items or ())
        expect(told == wanted, f"the projects and externalIds that were sent: {_cut(wanted)}", _cut(told))


def _echoed(item: Mapping[str, Any]) -> tuple[str, str]:
    """What is told again of a job that was submitted; "" where it has no externalId."""
    return str(item.get("projectId")), str(item.get("externalId") or "")


def judge_order(step: Step[Subject], response: Response) -> None:
    """The jobs are told in the order in which they were sent (HUB-SUB-50)."""
    with about("HUB-SUB-50"):
        wanted = [_echoed(one) for one in json.loads(step.request.content)["items"]]
        told = [_echoed(one) for one in response.json["data"]["items"]]
        expect(told == wanted, f"in the order sent: {_cut(wanted)}", _cut(told), "/data/items")


def judge_kept(sent: Mapping[str, Any], detail: Mapping[str, Any], *, exact: bool) -> None:
    """A job's detail tells what was submitted. ``exact``: what only decisions say, too."""
    told = {"HUB-GET-04": "kind", "HUB-FIELD-20": "externalId", "HUB-GET-09": "priority", "HUB-GET-07": "maxAttempts"}
    told |= {"HUB-FIELD-52" if exact else "HUB-FIELD-22": "metadata"}
    for rule, name in told.items():
        if name in sent:
            with about(rule):
                good = same(sent[name], detail.get(name))
                expect(good, f"`{name}` as it was sent: {_cut(sent[name])}", _cut(detail.get(name)), f"/data/{name}")
    if not exact:
        return
    with about("HUB-FIELD-50"):
        priority = sent.get("priority", 0)
        expect(detail.get("priority") == priority, f"priority {priority}", detail.get("priority"), "/data/priority")
    with about("HUB-GET-69"):
        title = str(sent.get("prompt") or sent.get("command"))[:80]
        expect(detail.get("title") == title, f"title {_cut(title)}", _cut(detail.get("title")), "/data/title")
    with about("HUB-GET-71"):
        for name in ("externalId", "metadata"):
            good = name in sent or detail.get(name, "left out") is None
            expect(good, f"`{name}` null where none was given", _cut(detail.get(name, "left out")), f"/data/{name}")


def _job(step: Step[Subject], response: Response) -> None:
    data = HubAnswer(response, "HUB-GET-02").data
    judge_detail(data)
    with about("HUB-GET-03"):
        wanted = step.subject.job if step.subject else data.get("id")
        expect(data.get("id") == wanted, f"id {wanted}", data.get("id"), "/data/id")


def _page(step: Step[Subject], response: Response) -> None:
    answer = HubAnswer(response, "HUB-LIST-01")
    with about("HUB-LIST-01"):
        entries = answer.entries
    query = {name: values[0] for name, values in _query(step).items()}
    for entry in entries[:LOOKED_AT]:
        judge_detail(entry)
    limit = int(query.get("limit", LIMIT))
    with about("HUB-LIST-08" if "limit" not in query else "HUB-LIST-09"):
        expect(len(entries) <= min(limit, MOST), f"at most {limit} jobs", len(entries), "/data/items")
    for name, rule in _FILTERS.items():
        if name in query:
            with about(rule):
                other = [entry.get(name) for entry in entries if entry.get(name) != query[name]]
                expect(not other, f"jobs whose `{name}` is {_cut(query[name])}", _cut(other[:1]), "/data/items")
    with about("HUB-LIST-10"):
        at = [instant(entry, "queuedAt") for entry in entries]
        expect(at == sorted(at, reverse=True), "the newest first", "another order", "/data/items")
    if isinstance(answer.json, dict) and answer.inner.get("nextCursor") is not None and entries:
        with about("HUB-LIST-11"):
            last, told = entries[-1].get("queuedAt"), answer.inner["nextCursor"]
            expect(iso(told) == iso(last), f"`nextCursor` {last}", told, "/data/nextCursor")


def _query(step: Step[Subject]) -> dict[str, list[str]]:
    return parse_qs(step.request.path.partition("?")[2], keep_blank_values=True)


def judge_older(step: Step[Subject], response: Response) -> None:
    """After a cursor there are strictly older jobs alone (HUB-LIST-57)."""
    cursor = _query(step).get("cursor")
    if cursor is None:
        return
    before = iso(cursor[0])
    with about("HUB-LIST-57"):
        entries = HubAnswer(response, "HUB-LIST-01").entries
        late = [entry["queuedAt"] for entry in entries if instant(entry, "queuedAt") >= before]
        expect(not late, f"jobs queued before {cursor[0]}", _cut(late[:1]), "/data/items")


def _batch(step: Step[Subject], response: Response) -> None:
    data, subject = HubAnswer(response, "HUB-BATCH-04").data, step.subject
    counts = data.get("counts")
    with about("HUB-BATCH-07"):
        good = isinstance(counts, dict) and all(whole(counts.get(status)) for status in STATUSES)
        expect(good, "`counts` of the five statuses", json.dumps(counts)[:200], "/data/counts")
    if subject is not None and subject.situation.kind == BATCH:
        with about("HUB-BATCH-05"):
            expect(data.get("batchId") == subject.batch, f"batchId {subject.batch}", data.get("batchId"))
        with about("HUB-BATCH-06"):
            expect(data.get("total") == subject.total, f"total {subject.total}", data.get("total"), "/data/total")
    by_status: dict[str, int] = counts or {}
    added = sum(by_status[status] for status in STATUSES)
    with about("HUB-BATCH-08"):
        expect(added == data.get("total"), f"counts that add up to total {data.get('total')}", added, "/data/counts")
    with about("HUB-BATCH-09"):
        share = (by_status["done"] + by_status["failed"] + by_status["cancelled"]) / added if added else 0
        progress = data.get("progress")
        good = isinstance(progress, int | float) and abs(progress - share) <= 0.0051
        expect(good, f"progress {share:.4f}", progress, "/data/progress")


def _batch_cancelled(step: Step[Subject], response: Response) -> None:
    inner, subject = HubAnswer(response, "HUB-BATCH-17").inner, step.subject
    with about("HUB-BATCH-17"):
        came = inner.get("cancelled")
        expect(whole(came), "`cancelled`, an integer from 0 on", json.dumps(came)[:100], "/data/cancelled")
        left = subject.left if subject else came
        expect(came == left, f"cancelled {left}", came, "/data/cancelled")


def _projects(step: Step[Subject], response: Response) -> None:
    with about("HUB-PROJ-01"):
        ids = [entry.get("projectId") for entry in HubAnswer(response, "HUB-PROJ-01").entries]
        wanted = step.subject.project.id if step.subject else ""
        expect(not wanted or wanted in ids, f"the project {wanted} among the projects", _cut(ids))


def _overview(step: Step[Subject], response: Response) -> None:
    with about("HUB-OVW-01"):
        load = HubAnswer(response, "HUB-OVW-01").inner.get("load")
        stalled = load.get("stalledQueued") if isinstance(load, dict) else None
        expect(whole(stalled), "`load.stalledQueued`, a number", json.dumps(load)[:200], "/data/load/stalledQueued")


_JUDGES: Mapping[str, Callable[[Step[Subject], Response], None]] = {
    "submitJobs": _submitted,
    "listJobs": _page,
    "getJob": _job,
    "streamJob": _stream,
    "cancelHubJob": _job,
    "retryHubJob": _job,
    "getBatch": _batch,
    "cancelBatch": _batch_cancelled,
    "listProjects": _projects,
    "getOverview": _overview,
}


def _cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)"
