"""Seeded faults of submissions: what is taken, what is refused and how, and what is queued of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.calls import Refusal, Violation
from mock_server.faults.edits import error, part, put, schema_property
from mock_server.hub.api import HubApi
from mock_server.hub.entities import NODE, SUBMISSION
from mock_server.hub.errors import HubErrors
from mock_server.hub.submission import Submissions
from mock_server.judgement import refused
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mock_server.calls import Answer, Call, Exchange
    from mock_server.hub.hub import Hub
    from mock_server.store import Row
    from openapi.redaction import Redactor

Item = dict[str, Any]


def keeps(which: Callable[[int, set[int]], bool], *codes: str) -> Callable[[Any], None]:
    """Of a refused submission those items are queued that ``which`` says of their index and the bad ones' indexes."""

    class Keeps(HubApi):
        """Queues a part of what it refuses."""

        async def submit(self, call: Call) -> Answer:
            try:
                return await super().submit(call)
            except Refusal as refusal:
                places = [item.location.split("/") for item in refusal.details]
                bad = {int(place[2]) for place in places if place[1:2] == ["items"] and len(place) > 2}
                if bad and refusal.code.lower() in codes:
                    body = orjson.loads(call.exchange.request_body)
                    body["items"] = [item for i, item in enumerate(body["items"]) if which(i, bad)]
                    headers = {name: value for name, value in call.headers.items() if name != b"idempotency-key"}
                    with contextlib.suppress(Refusal):
                        await super().submit(replace(call, body=body, headers=headers))
                raise

    return part(api=Keeps)


def answers(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], None]:
    """The data of an accepted submission is told otherwise than it is."""

    class Tells(HubApi):
        """Tells something else."""

        async def submit(self, call: Call) -> Answer:
            answer = await super().submit(call)
            change(answer.body["data"])
            return answer

    return part(api=Tells)


def details(change: Callable[[list[Violation]], list[Violation]]) -> Callable[[Any], None]:
    """The violations of a submission are told otherwise than they were found."""

    class Finds(Submissions):
        """Finds something else."""

        def judge(self, hub: Hub, body: Any, redactor: Redactor) -> tuple[str | None, list[Item]]:
            try:
                return super().judge(hub, body, redactor)
            except Refusal as refusal:
                raise refused(change(refusal.details)) from None

    return part(submissions=Finds)


def entries(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], None]:
    """Entries of ``details`` are written otherwise."""

    class Writes(HubErrors):
        """Writes something else."""

        @staticmethod
        def entry(violation: Violation) -> dict[str, Any]:
            entry = HubErrors.entry(violation)
            change(entry)
            return entry

    return part(errors=Writes)


class NoDetails(HubErrors):
    """Says in a sentence what is wrong."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        return super().answer(Refusal(refusal.code, refusal.message, None, refusal.headers), exchange)


class TakesExternalIds(HubApi):
    """Takes a job with the same externalId for the same submission (SF-73)."""

    async def submit(self, call: Call) -> Answer:
        hub, body = call.world.hub, call.body
        items = body.get("items") if isinstance(body, dict) else None
        first = items[0] if isinstance(items, list) and len(items) == 1 else None
        task = first.get("externalId") if isinstance(first, dict) else None
        key = self.submissions.key(call.caller, call.headers.get(b"idempotency-key", b"").decode("latin-1"))
        known = await hub.store.get(SUBMISSION, key) is not None
        earlier = await hub.batch(call.caller, str(body.get("batchId"))) if isinstance(task, str) and not known else []
        for row in earlier:
            if row["externalId"] == task:
                data = {"batchId": body["batchId"], "accepted": 1, "items": [self.submitted(row)]}
                return self.answered(call, 200, data)
        return await super().submit(call)


class AnyNode(Submissions):
    """Looks the node up by the project where the one that was given is not known."""

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        known = {node["id"] for node in await hub.store.rows(NODE)}
        return await super().place(hub, [_without_node(item, item.get("nodeId") not in known) for item in items])


class AnotherNode(Submissions):
    """Moves a job to a node that has its project."""

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        having = {node["id"]: node["projects"] for node in await hub.store.rows(NODE)}
        moved = [
            _without_node(item, item.get("nodeId") in having and item["projectId"] not in having[item["nodeId"]])
            for item in items
        ]
        return await super().place(hub, moved)


def _without_node(item: Item, really: bool) -> Item:
    return {name: value for name, value in item.items() if not (really and name == "nodeId")}


class OneByOne(Submissions):
    """Judges item after item: the first bad one decides which fault is answered."""

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        placed: list[str] = []
        for item in items:
            placed += await super().place(hub, [item])
        return placed


class OfflineFirst(Submissions):
    """Asks whether nodes are online before anything else about places."""

    async def place(self, hub: Hub, items: Iterable[Item]) -> list[str]:
        items = list(items)
        for item in items:
            try:
                await super().place(hub, [item])
            except Refusal as refusal:
                if refusal.code == "node_offline":
                    raise
        return await super().place(hub, items)


class PlacesFirst(HubApi):
    """Answers what is wrong with projects and nodes before what is wrong with the form of items."""

    async def submit(self, call: Call) -> Answer:
        try:
            return await super().submit(call)
        except Refusal as refusal:
            if refusal.code != "INVALID_REQUEST" or not isinstance(call.body, dict):
                raise
            items = call.body.get("items")
            named = [item for item in items if self._names(item)] if isinstance(items, list) else []
            await self.submissions.place(call.world.hub, named)
            raise

    @staticmethod
    def _names(item: Any) -> bool:
        return isinstance(item, dict) and isinstance(item.get("projectId"), str) and bool(item["projectId"])


class PriorityOrder(HubApi):
    """Answers items in the order in which they are going to run."""

    async def submit(self, call: Call) -> Answer:
        answer = await super().submit(call)
        items = call.body.get("items") or []
        if answer.status == 202:
            listed = answer.body["data"]["items"]
            order = sorted(range(len(listed)), key=lambda i: -items[i].get("priority", 0))
            listed[:] = [listed[i] for i in order]
        return answer


class LosesTheLast(Submissions):
    """Loses the last of more than five jobs."""

    async def create(self, hub: Hub, rows: list[Row]) -> list[Row]:
        return await super().create(hub, rows[:-1] if len(rows) > 5 else rows)


FAULTS = (
    Mutant(
        "hub-submission.before-the-bad-one",
        "items before the bad one are queued",
        ("HUB-SUB-15",),
        parts=keeps(lambda i, bad: i < min(bad), "invalid_request", "project_not_found", "ambiguous_project"),
    ),
    Mutant(
        "hub-submission.all-but-the-bad",
        "every good item is queued beside a bad one",
        ("HUB-SUB-15",),
        parts=keeps(lambda i, bad: i not in bad, "invalid_request", "project_not_found"),
    ),
    Mutant(
        "hub-submission.after-the-offline",
        "items after one whose node is offline are queued",
        ("HUB-SUB-15",),
        parts=keeps(lambda i, bad: i > max(bad), "node_offline"),
    ),
    Mutant(
        "hub-submission.loses-the-last",
        "the last of more than five jobs is answered and not queued",
        ("HUB-SUB-08", "HUB-SUB-09"),
        parts=part(submissions=LosesTheLast),
    ),
    Mutant(
        "hub-submission.accepts-501",
        "501 items are accepted",
        ("HUB-SUB-51", "HUB-SUB-53"),
        edit=schema_property("Submission", "items", maxItems=501),
    ),
    Mutant(
        "hub-submission.accepts-none",
        "a submission without items is accepted",
        ("HUB-SUB-51", "HUB-SUB-53"),
        edit=schema_property("Submission", "items", minItems=0),
    ),
    Mutant(
        "hub-submission.refuses-500",
        "500 items are too many",
        ("HUB-SUB-52", "HUB-SUB-05"),
        edit=schema_property("Submission", "items", maxItems=499),
    ),
    Mutant(
        "hub-submission.unprocessable",
        "what breaks a rule of its form is 422",
        ("HUB-SUB-53", "HUB-SUB-14", "HUB-SUB-51"),
        edit=error("invalid_request", status=422),
    ),
    Mutant(
        "hub-submission.projects-counted",
        "`accepted` counts projects",
        ("HUB-SUB-08",),
        parts=answers(lambda data: data.update(accepted=len({item["projectId"] for item in data["items"]}))),
    ),
    Mutant(
        "hub-submission.a-batch-of-its-own",
        "the answer tells another batchId than the jobs have",
        ("HUB-SUB-07",),
        parts=answers(lambda data: data.update(batchId=f"batch_{data['batchId']}")),
    ),
    Mutant(
        "hub-submission.running",
        "a job that starts at once is answered as running",
        ("HUB-SUB-10",),
        edit=put("components", "schemas", "SubmittedJob", "properties", "status", "enum", value=["queued", "running"]),
        parts=answers(lambda data: [item.update(status="running") for item in data["items"]]),
    ),
    Mutant(
        "hub-submission.node-as-given",
        "`nodeId` in the answer is that of the request",
        ("HUB-SUB-11",),
        edit=put(
            "components", "schemas", "SubmittedJob", "properties", "nodeId", value={"type": "string", "nullable": True}
        ),
        parts=answers(lambda data: [item.update(nodeId=None) for item in data["items"]]),
    ),
    Mutant(
        "hub-submission.by-priority",
        "items are answered by priority",
        ("HUB-SUB-50",),
        parts=part(api=PriorityOrder),
    ),
    Mutant(
        "hub-submission.unique-collision",
        "the same batchId and externalId again are taken for a repetition",
        ("HUB-SUB-05", "HUB-BATCH-51"),
        parts=part(api=TakesExternalIds),
    ),
    Mutant(
        "hub-submission.first-violation",
        "details name the first violation only",
        ("HUB-SUB-55",),
        parts=details(lambda found: found[:1]),
    ),
    Mutant(
        "hub-submission.100-violations",
        "details name the first 100 violations",
        ("HUB-SUB-55",),
        parts=details(lambda found: found[:100]),
    ),
    Mutant(
        "hub-submission.no-details", "a 400 has no details", ("HUB-SUB-54", "HUB-SUB-55"), parts=part(errors=NoDetails)
    ),
    Mutant(
        "hub-submission.no-field",
        "entries of details have no `field`",
        ("HUB-SUB-54",),
        parts=entries(lambda entry: entry.pop("field")),
    ),
    Mutant(
        "hub-submission.pointers",
        "entries of details have a pointer in place of index and field",
        ("HUB-SUB-54", "HUB-SUB-56", "HUB-SUB-58"),
        parts=entries(lambda entry: entry.update(path=f"items[{entry.pop('index')}].{entry.pop('field')}")),
    ),
    Mutant(
        "hub-submission.index-0",
        "what the body has wrong is told of the first item",
        ("HUB-SUB-58",),
        parts=entries(lambda entry: entry.update(index=entry["index"] or 0)),
    ),
    Mutant(
        "hub-submission.index-from-1",
        "items are counted from 1 in details",
        ("HUB-SUB-55", "HUB-SUB-57"),
        parts=entries(lambda entry: entry.update(index=entry["index"] and entry["index"] + 1)),
    ),
    Mutant(
        "hub-submission.project-404",
        "an unknown project is 404",
        ("HUB-SUB-59", "HUB-SUB-14", "HUB-FIELD-03"),
        edit=error("project_not_found", status=404),
    ),
    Mutant(
        "hub-submission.ambiguous-409",
        "an ambiguous project is 409",
        ("HUB-SUB-60",),
        edit=error("ambiguous_project", status=409),
    ),
    Mutant(
        "hub-submission.any-node",
        "a node that does not exist counts as left out",
        ("HUB-SUB-61", "HUB-NODE-04"),
        parts=part(submissions=AnyNode),
    ),
    Mutant(
        "hub-submission.another-node",
        "a job goes to another node where the one that was given does not have its project",
        ("HUB-SUB-62", "HUB-NODE-04"),
        parts=part(submissions=AnotherNode),
    ),
    Mutant(
        "hub-submission.one-by-one",
        "the first bad item decides which fault is answered",
        ("HUB-SUB-63",),
        parts=part(submissions=OneByOne),
    ),
    Mutant(
        "hub-submission.offline-first",
        "an offline node is answered before an unknown project",
        ("HUB-SUB-63",),
        parts=part(submissions=OfflineFirst),
    ),
    Mutant(
        "hub-submission.places-first",
        "projects and nodes are judged before what breaks a rule of its form",
        ("HUB-SUB-63",),
        parts=part(api=PlacesFirst),
    ),
    Mutant(
        "hub-submission.a-mebibyte",
        "bodies over 1 MiB are refused",
        ("HUB-ERR-63",),
        edit=put("x-limits", "bodyBytes", value=2**20),
    ),
)
