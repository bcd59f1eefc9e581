"""Seeded faults of invocation logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from mock_server.calls import Answer, Refusal, Violation
from mock_server.faults.edits import part, put, schema, schema_property, several
from mock_server.judgement import OperationJudge, refused
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Call, Exchange
    from mock_server.mutants import Parts

LOGS = "submitInvocationLogs"


def forbids(finds: Callable[[Any], bool]) -> Callable[[Parts], None]:
    """Logs are refused for their keys where ``finds`` finds one in the body, and for nothing else that is unknown."""

    class Finds(OperationJudge):
        """Looks for keys in another way."""

        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.forbidden = frozenset()

        async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
            call = await super().judge(scope, receive, exchange, path)
            if self.operation_id == LOGS and finds(call.body):
                raise refused([Violation("/logs", "x-forbidden-names", "no key", None, "a key must not be there")])
            return call

    return part(judge=Finds)


def anywhere(value: Any, is_key: Callable[[str], bool]) -> bool:
    """Whether an object in the value has such a property."""
    if isinstance(value, dict):
        return any(is_key(name) or anywhere(item, is_key) for name, item in value.items())
    return isinstance(value, list) and any(anywhere(item, is_key) for item in value)


class StoresTheGoodOnes(OperationJudge):
    """Stores the logs before the first bad one."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal as refusal:
            places = [item.location.split("/") for item in refusal.details]
            bad = [int(place[2]) for place in places if place[1:2] == ["logs"] and len(place) > 2]
            if self.operation_id == LOGS and bad:
                logs = orjson.loads(exchange.request_body)["logs"][: min(bad)]
                rows = [{"jobId": log["jobId"], "log": log} for log in logs]
                await exchange.world.engine.insert_all("StoredLog", rows)
            raise


class AlwaysOne(RuntimeApi):
    """Answers that one log was accepted."""

    async def logs(self, call: Call) -> Answer:
        answer = await super().logs(call)
        return Answer(answer.status, {"accepted": 1})


class Acknowledges(RuntimeApi):
    """Answers 200."""

    async def logs(self, call: Call) -> Answer:
        return Answer(200, (await super().logs(call)).body)


class NeedsTheJob(RuntimeApi):
    """Refuses logs of jobs that do not exist."""

    async def logs(self, call: Call) -> Answer:
        for log in call.body["logs"]:
            if await call.world.engine.job(log["jobId"]) is None:
                raise Refusal("JOB_NOT_FOUND", "A log is of a job that does not exist.")
        return await super().logs(call)


class DropsStrays(RuntimeApi):
    """Stores nothing of a batch with a stray log, and says nothing of it."""

    async def logs(self, call: Call) -> Answer:
        for log in call.body["logs"]:
            if await call.world.engine.job(log["jobId"]) is None:
                return Answer(201, {"accepted": len(call.body["logs"])})
        return await super().logs(call)


class NeedsTheLock(RuntimeApi):
    """Refuses logs from another than the job's holder."""

    async def logs(self, call: Call) -> Answer:
        for log in call.body["logs"]:
            job = await call.world.engine.job(log["jobId"])
            if job is not None and job["lockedBy"] != log["runtimeInstanceId"]:
                raise Refusal("LOCK_NOT_HELD", "A log is of a job that its Runtime does not hold.")
        return await super().logs(call)


OPEN = schema("InvocationLog", additionalProperties=True)


def log_property(name: str, value: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Another schema for a property of a log."""
    return put("components", "schemas", "InvocationLog", "properties", name, value=value)


FAULTS = (
    Mutant(
        "logs.key-accepted",
        "a log with apiKey is accepted",
        ("RT-LOG-08", "RT-LOG-50", "RT-LOG-52"),
        edit=OPEN,
        parts=forbids(lambda _: False),
    ),
    Mutant(
        "logs.key-below",
        "apiKey below the log's own level is accepted",
        ("RT-LOG-50", "RT-LOG-52", "RT-LOG-60"),
        edit=OPEN,
        parts=forbids(lambda body: any(name.lower() == "apikey" for log in body["logs"] for name in log)),
    ),
    Mutant(
        "logs.key-in-first-only",
        "only the first log of a batch is searched for keys",
        ("RT-LOG-50", "RT-LOG-52", "RT-LOG-60"),
        edit=OPEN,
        parts=forbids(lambda body: anywhere(body["logs"][0], lambda name: name.lower() == "apikey")),
    ),
    Mutant(
        "logs.key-if-filled",
        "an apiKey that is null or empty is accepted",
        ("RT-LOG-50", "RT-LOG-52", "RT-LOG-51"),
        edit=several(OPEN, log_property("apiKey", {"nullable": True})),
        parts=forbids(lambda body: any(log.get("apiKey") for log in body["logs"])),
    ),
    Mutant(
        "logs.key-exact-case",
        "apikey in other letters is accepted",
        ("RT-LOG-51", "RT-LOG-52"),
        edit=OPEN,
        parts=forbids(lambda body: anywhere(body, lambda name: name == "apiKey")),
    ),
    Mutant(
        "logs.key-beside",
        "an apiKey beside the logs is accepted",
        ("RT-LOG-60",),
        parts=forbids(lambda body: anywhere(body["logs"], lambda name: name.lower() == "apikey")),
    ),
    Mutant("logs.unknown-accepted", "unknown properties of a log are accepted", ("RT-LOG-52",), edit=OPEN),
    Mutant(
        "logs.strict-beside",
        "an unknown property beside the logs is refused",
        ("RT-ERR-63",),
        edit=schema("LogsRequest", additionalProperties=False),
    ),
    Mutant(
        "logs.part-stored",
        "of a refused batch the logs before the bad one are stored",
        ("RT-LOG-53", "RT-ERR-62"),
        parts=part(judge=StoresTheGoodOnes),
    ),
    Mutant("logs.accepted-one", "accepted is always 1", ("RT-LOG-54",), parts=part(runtime_api=AlwaysOne)),
    Mutant("logs.acknowledged", "logs are answered 200", ("RT-LOG-11",), parts=part(runtime_api=Acknowledges)),
    Mutant(
        "logs.499",
        "a batch of 500 logs is refused",
        ("RT-LOG-55",),
        edit=schema_property("LogsRequest", "logs", maxItems=499),
    ),
    Mutant(
        "logs.any-number",
        "a batch may have any number of logs",
        ("RT-LOG-55", "RT-ERR-60"),
        edit=schema_property("LogsRequest", "logs", maxItems=100_000),
    ),
    Mutant(
        "logs.none",
        "an empty batch is accepted",
        ("RT-LOG-55", "RT-ERR-60"),
        edit=schema_property("LogsRequest", "logs", minItems=0),
    ),
    Mutant(
        "logs.needs-job",
        "logs of an unknown job are refused",
        ("RT-LOG-57",),
        parts=part(runtime_api=NeedsTheJob),
    ),
    Mutant("logs.drops-strays", "a stray log loses its batch", ("RT-LOG-57",), parts=part(runtime_api=DropsStrays)),
    Mutant("logs.needs-lock", "logs need the job's lock", ("RT-LOG-56",), parts=part(runtime_api=NeedsTheLock)),
    Mutant(
        "logs.example-refused",
        "a cost of 3, as the protocol's own example has it, is refused",
        ("RT-LOG-01", "RT-LOG-11", "RT-LOG-59"),
        edit=schema_property("InvocationLog", "costEstimate", maximum=1),
    ),
    Mutant(
        "logs.codes-only",
        "a log's errorCode has to be one of upper-case letters",
        ("RT-LOG-58",),
        edit=log_property("errorCode", {"type": "string", "nullable": True, "pattern": "^[A-Z][A-Z0-9_]{0,63}$"}),
    ),
    Mutant(
        "logs.negative",
        "negative latencies are accepted",
        ("RT-LOG-59", "RT-ERR-60"),
        edit=log_property("latencyMs", {"type": "integer"}),
    ),
    Mutant(
        "logs.fraction",
        "fractions of tokens are accepted",
        ("RT-LOG-59", "RT-ERR-60"),
        edit=log_property("totalTokens", {"type": "number", "minimum": 0}),
    ),
    Mutant(
        "logs.whole-cost",
        "a cost with a fraction is refused",
        ("RT-LOG-59",),
        edit=schema_property("InvocationLog", "costEstimate", type="integer"),
    ),
    Mutant(
        "logs.no-success",
        "success may be left out",
        ("RT-LOG-61", "RT-ERR-60"),
        edit=schema("InvocationLog", required=["jobId", "provider", "model", "apiKeyMode", "runtimeInstanceId"]),
    ),
    Mutant(
        "logs.trace-required",
        "traceId has to be there",
        ("RT-LOG-61",),
        edit=schema(
            "InvocationLog",
            required=["jobId", "provider", "model", "apiKeyMode", "success", "runtimeInstanceId", "traceId"],
        ),
    ),
    Mutant(
        "logs.trace-not-null",
        "traceId null is refused",
        ("RT-LOG-62",),
        edit=log_property("traceId", {"type": "string"}),
    ),
)
