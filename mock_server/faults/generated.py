"""Seeded faults that no scenario meets: it takes generated requests to say what brings them about."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

from mock_server.app import Errors
from mock_server.calls import Refusal
from mock_server.engine import Engine
from mock_server.faults.edits import part, put
from mock_server.judgement import OperationJudge
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call, Exchange
    from mock_server.executor import Outcome


class Utf8ThreeBytes(RuntimeApi):
    """Stores text as MySQL's ``utf8`` does, which has no character above U+FFFF."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "lockJob" and any(ord(char) > 0xFFFF for char in call.caller):
            raise RuntimeError("Incorrect string value")
        return await super().operate(call)


class ShortColumn(RuntimeApi):
    """Keeps the hash in a column of 191 characters."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "submitResult" and len(call.body["outputHash"]) > 191:
            raise RuntimeError("value too long for type character varying(191)")
        return await super().operate(call)


class NoNul(RuntimeApi):
    """Stores text in PostgreSQL, which refuses U+0000."""

    async def operate(self, call: Call) -> Answer:
        if call.operation_id == "failJob" and "\0" in f"{call.body['errorMessage']}{call.body.get('rawError')}":
            raise RuntimeError("invalid byte sequence for encoding UTF8: 0x00")
        return await super().operate(call)


class EmptyIsFalse(RuntimeApi):
    """Takes an empty text for one that was left out, and then misses it."""

    async def logs(self, call: Call) -> Answer:
        for log in call.body["logs"]:
            if log.get("traceId") == "":
                raise RuntimeError("KeyError: traceId")
        return await super().logs(call)


class OwnParser(OperationJudge):
    """Reads results with Python's own parser, and then takes numbers for integers."""

    def _parsed(self, raw: bytes, violations: Any) -> Any:
        if self.operation_id == "submitResult":
            with contextlib.suppress(ValueError):
                for value in _leaves(json.loads(raw)):
                    if isinstance(value, float) and not math.isnan(value):
                        int(value)
        return super()._parsed(raw, violations)


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return [leaf for item in items for leaf in _leaves(item)]
    return [value]


class Shallow(OperationJudge):
    """Walks a result by recursion, a hundred deep at most."""

    def _parsed(self, raw: bytes, violations: Any) -> Any:
        body = super()._parsed(raw, violations)
        if self.operation_id == "submitResult" and _depth(body) > 100:
            raise RecursionError("maximum recursion depth exceeded")
        return body


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            item
            for node in level
            if isinstance(node, dict | list)
            for item in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


class TouchedByRefusal(RuntimeApi):
    """Saves the row that it loaded whenever a result of an unknown version is refused: ``updatedAt`` moves."""

    async def operate(self, call: Call) -> Answer:
        try:
            return await super().operate(call)
        except Refusal as refusal:
            if refusal.code == "RESULT_SCHEMA_UNSUPPORTED":
                await _touch(call.world.engine, call.path["jobId"])
            raise


class TouchedByForm(OperationJudge):
    """Marks the job as seen before it looks at the body."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal:
            if self.operation_id == "heartbeatJob":
                await _touch(exchange.world.engine, path["jobId"])
            raise


class TouchedByRead(RuntimeApi):
    """Marks the job whose snapshot is read."""

    def answer(self, call: Call, outcome: Outcome) -> Answer:
        if call.operation_id == "getSnapshot" and outcome.row is not None and outcome.answer == 200:
            outcome.row["updatedAt"] += 1
        return super().answer(call, outcome)


async def _touch(engine: Engine, key: str) -> None:
    row = await engine.store.get("Job", key)
    if row is not None:
        row["updatedAt"] += 1


class PathIsFile(RuntimeApi):
    """Keeps snapshots in files that are named by the job's id."""

    async def operate(self, call: Call) -> Answer:
        id_ = call.path.get("jobId", "")
        if call.operation_id == "getSnapshot" and not id_.isprintable():
            raise ValueError("embedded null byte")
        return await super().operate(call)


class NoIndex(Errors):
    """Names the field that is wrong, but not in which of the logs."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        for violation in refusal.details:
            tokens = violation.location.split("/")
            violation.location = "/".join(token for token in tokens if not token.isdigit())
        return super().answer(refusal, exchange)


_COLUMN: dict[str, Any] = {}

FAULTS = (
    Mutant(
        "generated.emoji-500",
        "a lock by an instance with an emoji in its id is 500",
        ("RT-LOCK-04", "RT-LOCK-05", "RT-LOCK-03"),
        parts=part(runtime_api=Utf8ThreeBytes),
        generated=True,
    ),
    Mutant(
        "generated.long-hash-500",
        "a result whose hash is longer than 191 characters is 500",
        ("RT-RES-50", "RT-RES-66", "RT-RES-68"),
        parts=part(runtime_api=ShortColumn),
        generated=True,
    ),
    Mutant(
        "generated.nul-500",
        "a failure with U+0000 in its message is 500",
        ("RT-FAIL-61", "RT-FAIL-65", "RT-FAIL-10"),
        parts=part(runtime_api=NoNul),
        generated=True,
    ),
    Mutant(
        "generated.empty-500",
        "a log with an empty traceId is 500",
        ("RT-LOG-54", "RT-LOG-57", "RT-LOG-11"),
        parts=part(runtime_api=EmptyIsFalse),
        generated=True,
    ),
    Mutant(
        "generated.huge-number-500",
        "a number beyond doubles (1e400) in a result is 500",
        ("RT-RES-66", "RT-RES-50", "RT-RES-13"),
        parts=part(judge=OwnParser),
        generated=True,
    ),
    Mutant(
        "generated.deep-500",
        "a raw output that is nested deeply is 500",
        ("RT-RES-66", "RT-RES-50", "RT-RES-13"),
        parts=part(judge=Shallow),
        generated=True,
    ),
    Mutant(
        "generated.usage-not-looked-at",
        "latencyMs of a result's usage may be anything",
        ("RT-RES-69", "RT-ERR-60"),
        edit=put("components", "schemas", "Usage", "properties", "latencyMs", value=_COLUMN),
        generated=True,
    ),
    Mutant(
        "generated.versions-not-looked-at",
        "versions in a poll's capabilities may be numbers",
        ("RT-POLL-51", "RT-POLL-52", "RT-ERR-60"),
        edit=put(
            "components",
            "schemas",
            "PollRequest",
            "properties",
            "capabilities",
            "properties",
            "supportedSnapshotVersions",
            value={"type": "array"},
        ),
        generated=True,
    ),
    Mutant(
        "generated.refusal-touches",
        "a result that is refused for its version moves updatedAt",
        ("RT-RES-50", "RT-RES-66", "RT-RES-63"),
        parts=part(runtime_api=TouchedByRefusal),
        generated=True,
    ),
    Mutant(
        "generated.form-touches",
        "a heartbeat that is refused for its form moves updatedAt",
        ("RT-ERR-62", "RT-HB-53"),
        parts=part(judge=TouchedByForm),
        generated=True,
    ),
    Mutant(
        "generated.read-touches",
        "reading a snapshot moves updatedAt",
        ("RT-SNAP-52",),
        parts=part(runtime_api=TouchedByRead),
        generated=True,
    ),
    Mutant(
        "generated.path-nul-500",
        "an id with a control character in the path is 500",
        ("RT-SNAP-03", "RT-ERR-79", "RT-ERR-80"),
        parts=part(runtime_api=PathIsFile),
        generated=True,
    ),
    Mutant(
        "generated.no-index",
        "details of a batch do not say which log is wrong",
        ("RT-ERR-65", "RT-LOG-52", "RT-LOG-53"),
        parts=part(errors=NoIndex),
        generated=True,
    ),
)
