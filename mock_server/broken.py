"""Parts of a build that are wrong in one way each, for faults that no specification can say."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.app import Errors, KeyJudge, iso
from mock_server.engine import Engine
from mock_server.judgement import OperationJudge
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call, Exchange, Refusal
    from mock_server.executor import Outcome
    from mock_server.store import QueueQuery, Row


class SlowLock(Engine):
    """Reads, lets others in, then writes what it read before: the race of check-then-write."""

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        if operation_id != "lockJob":
            return await super().operate(operation_id, caller=caller, path=path, body=body)
        before = await self.store.get("Job", path["jobId"])
        await asyncio.sleep(0.002)
        now = await self.store.get("Job", path["jobId"])
        if before is not None and now is not None and before["status"] == "pending" and now["status"] == "locked":
            changed = dict(now, lockedBy=caller)
            outcome = await super().operate(operation_id, caller=caller, path=path, body=body)
            outcome.answer, outcome.row = 200, changed
            return outcome
        return await super().operate(operation_id, caller=caller, path=path, body=body)


class PollAll(RuntimeApi):
    """Lists jobs of every type."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        every = frozenset(self.contract.document["components"]["schemas"]["JobType"]["enum"])
        return await super().listed(call, replace(query, groups=every))


class PollNoLimit(RuntimeApi):
    """Lists a thousand jobs."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return await super().listed(call, replace(query, limit=1000))


class PollNoVersions(RuntimeApi):
    """Filters by no version."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        return await super().listed(call, replace(query, output_schema_versions=None, snapshot_versions=None))


class PollTellsUser(RuntimeApi):
    """Shows whose job it is."""

    def entry(self, row: Row) -> dict[str, Any]:
        return {**super().entry(row), "userId": row["userId"]}


class PollLocks(RuntimeApi):
    """Locks what it lists."""

    async def listed(self, call: Call, query: QueueQuery) -> list[Row]:
        rows = await super().listed(call, query)
        for row in rows:
            await call.world.engine.operate("lockJob", caller=call.caller, path={"jobId": row["id"]}, body={})
        return rows


class LockInSeconds(RuntimeApi):
    """Answers seconds for milliseconds."""

    def body(self, call: Call, outcome: Outcome, fields: tuple[str, ...]) -> dict[str, Any]:
        body = super().body(call, outcome, fields)
        if "lockUntil" in body:
            body["lockUntil"] //= 1000
        return body


class HeartbeatWithBody(RuntimeApi):
    """Answers 200 with a body."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        answer = super().answer(call, outcome)
        if call.operation_id == "heartbeatJob":
            answer.status, answer.body = 200, {"ok": True}
        return answer


class PollEmptyIsNull(RuntimeApi):
    """Answers null for an empty list."""

    async def poll(self, call: Call) -> Answer:
        answer = await super().poll(call)
        if not answer.body["jobs"]:
            answer.body = {"jobs": None}
        return answer


class AnyKey(KeyJudge):
    """Lets any key in."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if not headers.get(self.header):
            super().judge(path, headers, exchange)


class KeyPrefix(KeyJudge):
    """Lets in what begins with the key."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        key = exchange.world.options.api_key.encode()
        if not headers.get(self.header, b"").startswith(key):
            super().judge(path, headers, exchange)


class NoTimestamp(Errors):
    """Leaves the timestamp out."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        del answer.body["timestamp"]
        return answer


class LocalTime(Errors):
    """Writes timestamps with an offset."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        answer.body["timestamp"] = iso(exchange.world.clock.now()).replace("Z", "+00:00")
        return answer


class FirstViolationOnly(Errors):
    """Names one violation."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        refusal.details = refusal.details[:1]
        return super().answer(refusal, exchange)


class Echo(Errors):
    """Repeats the request."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        answer.body["message"] += exchange.request_body.decode("utf-8", "replace")[:500]
        return answer


class HeaderCaller(OperationJudge):
    """Takes the caller from the header."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        call = await super().judge(scope, receive, exchange, path)
        call.caller = exchange.headers[b"x-runtime-instance-id"].decode("latin-1")
        return call


class AnyMedia(OperationJudge):
    """Looks at no content type."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        exchange.headers = {**exchange.headers, b"content-type": b"application/json"}
        return await super().judge(scope, receive, exchange, path)
