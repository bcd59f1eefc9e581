"""Seeded faults of reading requests: media types, sizes, JSON, types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.calls import Refusal, Violation
from mock_server.faults.edits import part, put, schema
from mock_server.judgement import OperationJudge, refused
from mock_server.mutants import Mutant
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Exchange


class AnyMedia(OperationJudge):
    """Looks at no content type."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        exchange.headers = {**exchange.headers, b"content-type": b"application/json"}
        return await super().judge(scope, receive, exchange, path)


class Unreadable500(OperationJudge):
    """Does not catch what the parser throws."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        try:
            return super()._parsed(raw, violations)
        except Refusal:
            raise Refusal("INTERNAL_ERROR", "The body could not be read.") from None


class EmptyIs415(OperationJudge):
    """Takes a body that is not there for one of another type."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        if not raw:
            raise Refusal("UNSUPPORTED_MEDIA_TYPE", "There is no body.")
        return super()._parsed(raw, violations)


class AnyBytes(OperationJudge):
    """Replaces bytes that are no UTF-8."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        return super()._parsed(raw.decode("utf-8", "replace").encode(), violations)


class Coerces(OperationJudge):
    """Makes numbers of texts and truth values."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        body = super()._parsed(raw, violations)
        if isinstance(body, dict) and isinstance(body.get("limit"), str | bool):
            try:
                body["limit"] = int(float(body["limit"]))
            except ValueError:
                return body
        return body


class NoFractions(OperationJudge):
    """Takes 2.0 for a fraction."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        body = super()._parsed(raw, violations)
        if isinstance(body, dict) and isinstance(body.get("limit"), float):
            what = "/limit must be an integer"
            raise refused([*violations, Violation("/limit", "type", "integer", body["limit"], what)])
        return body


class NullIsAbsent(OperationJudge):
    """Takes null for a property that was left out."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        body = super()._parsed(raw, violations)
        if not isinstance(body, dict):
            return body
        return {name: value for name, value in body.items() if value is not None}


class AnyObject(OperationJudge):
    """Takes a body that is no object for an empty one with the header's instance id."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        body = super()._parsed(raw, violations)
        return body if isinstance(body, dict) else {"runtimeInstanceId": "nobody", "supportedJobTypes": ["none"]}


class JobFirst(OperationJudge):
    """Looks for the job before it reads the body."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        if "jobId" in path and await exchange.world.engine.job(path["jobId"]) is None:
            raise Refusal("JOB_NOT_FOUND", "No such job.")
        return await super().judge(scope, receive, exchange, path)


class NotesRefusals(OperationJudge):
    """Writes on the job that a request about it was invalid."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        try:
            return await super().judge(scope, receive, exchange, path)
        except Refusal as refusal:
            engine = exchange.world.engine
            row = await engine.job(path.get("jobId", ""))
            if refusal.code == "INVALID_REQUEST" and row is not None:
                changed = {**row, "errorCode": refusal.code}
                await engine.store.commit([Change("Job", row, changed, engine.executor.due(changed, row["id"]))])
            raise


class LongIdIs400(OperationJudge):
    """Judges the form of an id like that of any other parameter."""

    def _judge_path(self, path: Mapping[str, str], exchange: Exchange) -> None:
        broken: list[Violation] = []
        for parameter in self.path:
            parameter.judge(path.get(parameter.name), exchange, broken)
        if broken:
            raise refused(broken)


class NulIs500(OperationJudge):
    """Hands an id to a database that stores no NUL."""

    def _judge_path(self, path: Mapping[str, str], exchange: Exchange) -> None:
        if "\0" in path.get("jobId", ""):
            raise Refusal("INTERNAL_ERROR", "The database refused.")
        super()._judge_path(path, exchange)


FAULTS = (
    Mutant(
        "errors.any-media",
        "any content type is accepted",
        ("RT-ERR-54", "RT-ERR-55"),
        parts=part(judge=AnyMedia),
    ),
    Mutant(
        "requests.unreadable-500",
        "a body that is no JSON is 500",
        ("RT-ERR-57", "RT-ERR-58", "RT-ERR-59"),
        parts=part(judge=Unreadable500),
    ),
    Mutant("requests.empty-415", "an empty body is 415", ("RT-ERR-58",), parts=part(judge=EmptyIs415)),
    Mutant("requests.any-bytes", "bytes that are no UTF-8 are accepted", ("RT-ERR-59",), parts=part(judge=AnyBytes)),
    Mutant(
        "requests.coerces",
        "a text or true is accepted as a number",
        ("RT-ERR-70", "RT-ERR-60"),
        parts=part(judge=Coerces),
    ),
    Mutant("requests.no-fractions", "2.0 is no integer", ("RT-ERR-69",), parts=part(judge=NoFractions)),
    Mutant(
        "requests.null-is-absent",
        "null is accepted everywhere",
        ("RT-ERR-72", "RT-ERR-60"),
        parts=part(judge=NullIsAbsent),
    ),
    Mutant("requests.any-object", "a body that is no object is accepted", ("RT-ERR-60",), parts=part(judge=AnyObject)),
    Mutant(
        "requests.job-first",
        "the job is looked for before the body is read",
        ("RT-ERR-61",),
        parts=part(judge=JobFirst),
    ),
    Mutant(
        "requests.noted",
        "an invalid request is noted on the job",
        ("RT-ERR-62", "RT-HB-53", "RT-SM-54"),
        parts=part(judge=NotesRefusals),
    ),
    Mutant("requests.long-id-400", "a job id too long is 400", ("RT-ERR-79",), parts=part(judge=LongIdIs400)),
    Mutant("requests.nul-500", "a NUL in a job id is 500", ("RT-ERR-80", "RT-ERR-79"), parts=part(judge=NulIs500)),
    Mutant(
        "requests.strict",
        "an unknown property of a heartbeat is refused",
        ("RT-ERR-63",),
        edit=schema("HeartbeatRequest", additionalProperties=False),
    ),
    Mutant(
        "requests.100-kilobytes",
        "bodies over 100 KB are refused",
        ("RT-ERR-74",),
        edit=put("x-limits", "bodyBytes", value=102_400),
    ),
)
