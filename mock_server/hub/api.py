"""The Agent Hub's handlers: thin, since the machine and the hub's parts decide."""

from __future__ import annotations

import re
import secrets
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from mock_server.app import iso
from mock_server.calls import Answer, Refusal, Violation
from mock_server.hub.entities import JOB, NODE
from mock_server.hub.errors import REQUEST_ID, request_id
from mock_server.judgement import refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mock_server.calls import Call, Handler
    from mock_server.hub.hub import Hub
    from mock_server.hub.submission import Submissions
    from mock_server.store import Row
    from openapi import Contract

_FILTERS = ("status", "nodeId", "projectId", "batchId", "externalId")
_INDEXED = ("batchId", "externalId")
_STREAM = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}
_WHOLE = re.compile(r"[0-9]{1,18}")


class HubApi:
    """Handlers of one contract by operationId; they hold no state. A seeded fault subclasses it."""

    def __init__(self, contract: Contract, submissions: Submissions) -> None:
        self.contract, self.submissions = contract, submissions

    def handlers(self) -> dict[str, Handler]:
        """The handler of each operation."""
        return {
            "submitJobs": self.submit,
            "listJobs": self.list_jobs,
            "getJob": self.get_job,
            "streamJob": self.stream_job,
            "cancelHubJob": self.operate,
            "retryHubJob": self.operate,
            "getBatch": self.get_batch,
            "cancelBatch": self.cancel_batch,
            "listProjects": self.list_projects,
            "getOverview": self.get_overview,
        }

    @staticmethod
    def answered(call: Call, status: int, data: Any) -> Answer:
        """A success in the hub's envelope."""
        id_ = request_id(call.exchange)
        return Answer(status, {"data": data, "requestId": id_}, {REQUEST_ID: id_})

    async def submit(self, call: Call) -> Answer:
        """Queue jobs, all or none; no other request comes between the look-up of the key and the jobs (HUB-IDEM-62)."""
        hub, account = call.world.hub, call.caller
        self.submissions.read(call.body)
        now = await hub.settle()
        raw = call.headers.get(b"idempotency-key")
        key = None if raw is None else raw.decode("latin-1")
        if key is not None:
            earlier = await self.submissions.earlier(hub, account, key, call.body, now)
            if earlier is not None:
                return self.answered(call, 200, earlier)
        digest = self.submissions.digest(call.body) if key is not None else ""
        batch_id, items = self.submissions.judge(hub, call.body, call.world.redactor)
        nodes = await self.submissions.place(hub, items)
        batch_id = batch_id or f"batch_{secrets.token_hex(6)}"
        rows = self.submissions.rows(hub, account, batch_id, items, nodes, await self.next_place(hub, account, now))
        data = {"batchId": batch_id, "accepted": len(rows), "items": [self.submitted(row) for row in rows]}
        await self.submissions.create(hub, rows)
        if key is not None:
            await self.submissions.remember(hub, account, key, digest, data, now)
        await hub.done()
        return self.answered(call, 202, data)

    @staticmethod
    def submitted(row: Row) -> dict[str, Any]:
        """A job as the answer to its submission shows it (HUB-SUB-09 to 11)."""
        fields = {name: row.get(name) for name in ("id", "externalId", "nodeId", "projectId")}
        return {**fields, "status": "queued"}

    @staticmethod
    async def next_place(hub: Hub, account: str, now: int) -> int:
        """Where the account's next job stands: now, or right behind its newest (HUB-LIST-56)."""
        newest = next(await hub.store.newest(JOB, "account", (account,)), None)
        return now if newest is None else max(now, newest["queuedAt"] + 1)

    async def list_jobs(self, call: Call) -> Answer:
        """A page of jobs, newest first (HUB-LIST-*)."""
        hub, query = call.world.hub, call.query
        await hub.settle()
        wanted = {name: query[name] for name in _FILTERS if query[name] is not None}
        rows = self.matching(await self.candidates(hub, call.caller, wanted, self.cursor(query["cursor"])), wanted)
        page = list(islice(rows, query["limit"] + 1))
        more, page = len(page) > query["limit"], page[: query["limit"]]
        items = [await hub.detail(row) for row in page]
        return self.answered(call, 200, {"items": items, "nextCursor": self.next_cursor(page) if more else None})

    @staticmethod
    async def candidates(hub: Hub, account: str, wanted: dict[str, Any], before: int | None) -> Iterator[Row]:
        """The shortest list that holds what is wanted, its newest row first."""
        for name in _INDEXED:
            if name in wanted:
                index = "batch" if name == "batchId" else name
                return await hub.store.newest(JOB, index, (account, wanted[name]), before)
        return await hub.store.newest(JOB, "account", (account,), before)

    @staticmethod
    def matching(rows: Iterable[Row], wanted: dict[str, Any]) -> Iterator[Row]:
        """The rows that every filter lets through (HUB-LIST-07)."""
        return (row for row in rows if all(row[name] == value for name, value in wanted.items()))

    @staticmethod
    def next_cursor(page: list[Row]) -> str:
        """The ``queuedAt`` of a page's last job (HUB-LIST-11)."""
        return iso(page[-1]["queuedAt"])

    @staticmethod
    def cursor(text: str | None) -> int | None:
        """The instant below which a page begins, epoch milliseconds. Raises :class:`Refusal` for an ill-formed one."""
        if text is None:
            return None
        try:
            seconds = datetime.fromisoformat(text)
        except ValueError:
            what = "cursor must be the nextCursor of a page"
            raise refused([Violation("cursor", "format", "an instant", None, what)]) from None
        micros = round(seconds.timestamp()) * 1_000_000 if not seconds.microsecond else 0
        if seconds.microsecond:
            micros = round(seconds.replace(microsecond=0).timestamp()) * 1_000_000 + seconds.microsecond
        return -(-micros // 1000)

    async def job(self, call: Call) -> Row:
        """The job that the path names. Raises :class:`Refusal` where the key has none such."""
        row = await call.world.hub.job(call.caller, call.path["jobId"])
        if row is None:
            raise self.refusal("job_not_found")
        call.exchange.job = row
        return row

    def refusal(self, code: str) -> Refusal:
        """A refusal in the specification's words."""
        return Refusal(code, f"{self.contract.errors[code].description}.")

    async def get_job(self, call: Call) -> Answer:
        """A job's detail."""
        return self.answered(call, 200, await call.world.hub.detail(await self.job(call)))

    async def stream_job(self, call: Call) -> Answer:
        """Follow a job (HUB-SSE-*)."""
        row = await self.job(call)
        hub = call.world.hub
        stream = await hub.streams.open(row, self.after(call))
        hub.driver.arm(await hub.engine.next_instant())
        return Answer(200, stream, {**_STREAM, REQUEST_ID: request_id(call.exchange)})

    @staticmethod
    def after(call: Call) -> int:
        """The number after which ids go on: the header's, else the query's, else 0 (HUB-SSE-13, 14, 59, 60)."""
        header = call.headers.get(b"last-event-id", b"").decode("latin-1")
        for text in (header, call.query["since"] or ""):
            if _WHOLE.fullmatch(text):
                return int(text)
        return 0

    async def operate(self, call: Call) -> Answer:
        """An operation of the machine: cancel, retry."""
        hub, account = call.world.hub, call.caller
        now = await hub.settle()
        place = await self.next_place(hub, account, now)
        inputs = {"caller": account, "path": call.path, "nextPlace": place}
        outcome = await hub.engine.perform(call.operation_id, inputs)
        call.exchange.job = outcome.row
        if not isinstance(outcome.answer, int) or outcome.row is None:
            raise self.refusal(str(outcome.answer))
        data = await hub.detail(outcome.row)
        await hub.done()
        return self.answered(call, outcome.answer, data)

    async def batch(self, call: Call) -> list[Row]:
        """The jobs of the path's batch. Raises :class:`Refusal` where the key has none such."""
        await call.world.hub.settle()
        jobs = await call.world.hub.batch(call.caller, call.path["batchId"])
        if not jobs:
            raise self.refusal("batch_not_found")
        return jobs

    async def get_batch(self, call: Call) -> Answer:
        """A batch's summary."""
        jobs = await self.batch(call)
        return self.answered(call, 200, call.world.hub.build.summaries.summary(call.path["batchId"], jobs))

    async def cancel_batch(self, call: Call) -> Answer:
        """Cancel each job of a batch that can be cancelled, and count those (HUB-BATCH-16, 17, 68 to 71)."""
        hub = call.world.hub
        cancelled = 0
        for row in await self.batch(call):
            inputs = {"caller": call.caller, "path": {"jobId": row["id"]}}
            outcome = await hub.engine.perform("cancelHubJob", inputs)
            cancelled += outcome.changed
        await hub.done()
        return self.answered(call, 200, {"cancelled": cancelled})

    async def list_projects(self, call: Call) -> Answer:
        """Every project on every node that has it (HUB-PROJ-50, 51)."""
        nodes = await call.world.hub.store.rows(NODE)
        items = [
            {"projectId": project, "nodeId": node["id"], "nodeLabel": node["label"], "nodeOnline": node["online"]}
            for node in nodes
            for project in node["projects"]
        ]
        return self.answered(call, 200, {"items": items})

    async def get_overview(self, call: Call) -> Answer:
        """The nodes, and the load that is the key's own (HUB-OVW-*)."""
        hub = call.world.hub
        now = await hub.settle()
        nodes = [
            {
                "nodeId": node["id"],
                "label": node["label"],
                "online": node["online"],
                "lastSeen": hub.shapes.last_seen(node, now),
            }
            for node in await hub.store.rows(NODE)
        ]
        return self.answered(call, 200, {"nodes": nodes, "load": await hub.load(call.caller)})
