"""Seeded faults of access and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.app import Errors, KeyJudge, iso
from mock_server.faults.edits import error, part
from mock_server.judgement import OperationJudge
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Answer, Call, Exchange, Refusal


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


class HeaderCaller(OperationJudge):
    """Takes the caller from the header."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        call = await super().judge(scope, receive, exchange, path)
        call.caller = exchange.headers[b"x-runtime-instance-id"].decode("latin-1")
        return call


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


class AnyMedia(OperationJudge):
    """Looks at no content type."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        exchange.headers = {**exchange.headers, b"content-type": b"application/json"}
        return await super().judge(scope, receive, exchange, path)


FAULTS = (
    Mutant("auth.any-key", "any key opens", ("RT-AUTH-03", "RT-AUTH-50"), parts=part(key=AnyKey)),
    Mutant("auth.key-prefix", "a key that only begins rightly opens", ("RT-AUTH-03",), parts=part(key=KeyPrefix)),
    Mutant(
        "auth.header-counts",
        "the header says who asks, not the body",
        ("RT-AUTH-52",),
        parts=part(judge=HeaderCaller),
    ),
    Mutant("errors.no-timestamp", "errors have no timestamp", ("RT-ERR-01",), parts=part(errors=NoTimestamp)),
    Mutant(
        "errors.other-timestamp",
        "timestamps end in +00:00",
        ("RT-ERR-05", "RT-TIME-06"),
        parts=part(errors=LocalTime),
    ),
    Mutant(
        "errors.first-only",
        "a 400 names the first violation only",
        ("RT-ERR-66",),
        parts=part(errors=FirstViolationOnly),
    ),
    Mutant("errors.echo", "an error repeats the request, keys included", ("RT-ERR-67",), parts=part(errors=Echo)),
    Mutant(
        "errors.any-media",
        "any content type is accepted",
        ("RT-ERR-54", "RT-ERR-55"),
        parts=part(judge=AnyMedia),
    ),
    Mutant(
        "errors.not-retryable",
        "JOB_ALREADY_LOCKED is called not retryable",
        ("RT-ERR-64",),
        edit=error("JOB_ALREADY_LOCKED", retryable=False),
    ),
    Mutant(
        "errors.unknown-job-410",
        "an unknown job is 410",
        ("RT-ERR-06",),
        edit=error("JOB_NOT_FOUND", status=410),
    ),
)
