"""Seeded faults of the hub's keys, and of how it judges and refuses requests."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from mock_server.app import Sender
from mock_server.calls import Answer, Refusal
from mock_server.faults.edits import error, part, put
from mock_server.hub.api import HubApi
from mock_server.hub.errors import REQUEST_ID, BearerJudge, HubErrors
from mock_server.judgement import OperationJudge, judge_media_type, read_body
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Exchange, Violation
    from mock_server.store import Row


class AnyToken(BearerJudge):
    """Lets any bearer token in, as the first key's."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        try:
            super().judge(path, headers, exchange)
        except Refusal:
            if not headers.get(b"authorization"):
                raise
            exchange.caller = "a"


class NoToken(BearerJudge):
    """Lets in who sends no token."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if b"authorization" in headers:
            super().judge(path, headers, exchange)
        else:
            exchange.caller = "a"


class ServiceKey(BearerJudge):
    """The internal service key opens it, too."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        keys = (headers.get(b"x-internal-api-key", b""), headers.get(b"authorization", b"").removeprefix(b"Bearer "))
        if exchange.world.api_key in keys or b"test-internal-key" in keys:
            exchange.caller = "a"
        else:
            super().judge(path, headers, exchange)


class StreamsOpen(BearerJudge):
    """Asks nobody who follows a job for a key: a browser's EventSource can't send one."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if path.endswith("/events"):
            exchange.caller = "a"
        else:
            super().judge(path, headers, exchange)


class ProjectsOpen(BearerJudge):
    """Guards every endpoint but the list of projects, which is no secret."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if path == f"{self.base_path}/projects":
            exchange.caller = "a"
        else:
            super().judge(path, headers, exchange)


def outside(document: dict[str, Any]) -> None:
    """The overview is served outside the base path."""
    document["paths"]["/overview"] = document["paths"].pop("/v1/overview")


class PathFirst(BearerJudge):
    """Asks for the key only where there is something."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        if path.startswith(("/v1/jobs", "/v1/batches/", "/v1/projects", "/v1/overview")):
            super().judge(path, headers, exchange)


class OneAccount(BearerJudge):
    """Takes both keys for the same account."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        super().judge(path, headers, exchange)
        exchange.caller = exchange.caller and "a"


class ForeignJobs(HubApi):
    """Shows a job to whoever knows its id."""

    async def job(self, call: Call) -> Row:
        for account in ("a", "b"):
            row = await call.world.hub.job(account, call.path["jobId"])
            if row is not None:
                return row
        raise self.refusal("job_not_found")


class ForeignBatches(HubApi):
    """Shows a batch to whoever knows its id."""

    async def batch(self, call: Call) -> list[Row]:
        for account in ("a", "b"):
            jobs = await call.world.hub.batch(account, call.path["batchId"])
            if jobs:
                return jobs
        raise self.refusal("batch_not_found")


class ListsAll(HubApi):
    """Lists the jobs of both keys."""

    async def list_jobs(self, call: Call) -> Answer:
        own = await super().list_jobs(call)
        call.caller = "b" if call.caller == "a" else "a"
        others = await super().list_jobs(call)
        items = [*own.body["data"]["items"], *others.body["data"]["items"]]
        data = {**own.body["data"], "items": sorted(items, key=lambda item: item["queuedAt"], reverse=True)}
        return Answer(200, {**own.body, "data": data}, own.headers)


class FlatErrors(HubErrors):
    """Errors as the Runtime API has them."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        told = answer.body["error"]
        body = {"errorCode": told["code"], "message": told["message"], "requestId": answer.body["requestId"]}
        return Answer(answer.status, body, answer.headers)


class NoRequestId(HubErrors):
    """A failure has no request id."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        return Answer(answer.status, {"error": answer.body["error"]}, answer.headers)


class OtherRequestId(Sender):
    """The header names another request than the body."""

    async def send(self, answer: Answer, exchange: Exchange, send: Any) -> None:
        headers = {**answer.headers}
        if REQUEST_ID in headers:
            headers[REQUEST_ID] = f"{headers[REQUEST_ID]}-2"
        await super().send(Answer(answer.status, answer.body, headers), exchange, send)


class UpperCaseCodes(HubErrors):
    """Codes in capitals, like the Runtime API's."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        error = {**answer.body["error"], "code": answer.body["error"]["code"].upper()}
        return Answer(answer.status, {**answer.body, "error": error}, answer.headers)


class NoAllow(HubErrors):
    """A method that is not allowed, and none that is."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        refusal.headers.pop("allow", None)
        return super().answer(refusal, exchange)


class MediaTypeEverywhere(OperationJudge):
    """Judges the media type of what it does not read."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        typed = exchange.headers.get(b"content-type")
        refusal = judge_media_type(typed, b"") if typed is not None else None
        if refusal is not None:
            raise refusal
        return await super().judge(scope, receive, exchange, path)


class DetailsByField(HubErrors):
    """Tells what is wrong by the field's name."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        told = answer.body["error"]
        if "details" in told:
            told["details"] = {str(entry["field"]): entry["message"] for entry in told["details"]}
        return answer


class LenientJson(OperationJudge):
    """Reads JSON as people write it: a comma too many, NaN, a byte that is no UTF-8."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        text = re.sub(r",(\s*[\]}])", r"\1", raw.decode(errors="replace"))
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return super()._parsed(raw, violations)


class Malformed500(OperationJudge):
    """Reads the body where nobody expects that it can't be read."""

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        try:
            return super()._parsed(raw, violations)
        except Refusal:
            raise Refusal("internal_error", "The body can't be read.") from None


class MediaTypeBeforeKey(OperationJudge):
    """Judges the media type before the form of the `Idempotency-Key`."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        refusal = judge_media_type(exchange.headers.get(b"content-type"), b"x") if self.has_body else None
        if refusal is not None:
            raise refusal
        return await super().judge(scope, receive, exchange, path)


class SizeBeforeMediaType(OperationJudge):
    """Judges how long a body is by its header, before its media type."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        if self.has_body and int(exchange.headers.get(b"content-length", b"0")) > self.limit:
            raise Refusal("payload_too_large", "The body is too large.")
        return await super().judge(scope, receive, exchange, path)


class ReadsEveryBody(OperationJudge):
    """Reads the body of what has none, and refuses what is no JSON."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        if not self.has_body:
            raw, _ = await read_body(receive, self.limit)
            if raw:
                self._parsed(raw, [])
        return await super().judge(scope, receive, exchange, path)


class AnyMediaType(OperationJudge):
    """Takes a body of any media type for JSON."""

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        exchange.headers = {**exchange.headers, b"content-type": b"application/json"}
        return await super().judge(scope, receive, exchange, path)


FAULTS = (
    Mutant(
        "hub-access.any-token",
        "Any bearer token opens the hub",
        ("HUB-AUTH-50", "HUB-AUTH-51", "HUB-AUTH-52"),
        parts=part(gate=AnyToken),
    ),
    Mutant(
        "hub-access.no-token",
        "Who sends no token is let in",
        ("HUB-AUTH-50", "HUB-AUTH-51", "HUB-AUTH-01"),
        parts=part(gate=NoToken),
    ),
    Mutant(
        "hub-access.service-key",
        "The service key opens the hub",
        ("HUB-AUTH-52", "HUB-AUTH-50"),
        parts=part(gate=ServiceKey),
    ),
    Mutant(
        "hub-access.streams-open",
        "Streams ask for no key",
        ("HUB-SSE-02", "HUB-AUTH-01", "HUB-AUTH-50"),
        parts=part(gate=StreamsOpen),
    ),
    Mutant(
        "hub-access.projects-open",
        "The list of projects asks for no key",
        ("HUB-AUTH-01",),
        parts=part(gate=ProjectsOpen),
    ),
    Mutant("hub-access.overview-outside", "The overview is no path under /v1", ("HUB-AUTH-03",), edit=outside),
    Mutant(
        "hub-access.everywhere",
        "The key is asked for on every path",
        ("HUB-AUTH-53",),
        edit=put("x-base-path", value=""),
    ),
    Mutant(
        "hub-access.path-first",
        "An unknown path is 404 without a key",
        ("HUB-AUTH-51", "HUB-ERR-65", "HUB-AUTH-50"),
        parts=part(gate=PathFirst),
    ),
    Mutant(
        "hub-access.one-account",
        "Both keys see the same data",
        ("HUB-AUTH-54", "HUB-AUTH-55", "HUB-AUTH-56"),
        parts=part(gate=OneAccount),
    ),
    Mutant("hub-access.foreign-jobs", "A job is shown to another key", ("HUB-AUTH-54",), parts=part(api=ForeignJobs)),
    Mutant(
        "hub-access.foreign-batches",
        "A batch is shown to another key",
        ("HUB-AUTH-55", "HUB-BATCH-52"),
        parts=part(api=ForeignBatches),
    ),
    Mutant("hub-access.lists-all", "The list has the jobs of both keys", ("HUB-AUTH-56",), parts=part(api=ListsAll)),
    Mutant(
        "hub-access.unauthorized-is-403",
        "A wrong key is 403",
        ("HUB-AUTH-50", "HUB-AUTH-51"),
        edit=error("unauthorized", status=403),
    ),
    Mutant(
        "hub-errors.flat",
        "Errors have the Runtime API's shape",
        ("HUB-ERR-01", "HUB-SUB-54", "HUB-NODE-01"),
        parts=part(errors=FlatErrors),
    ),
    Mutant(
        "hub-errors.no-request-id",
        "A failure has no requestId",
        ("HUB-ERR-50", "HUB-ERR-52"),
        parts=part(errors=NoRequestId),
    ),
    Mutant(
        "hub-errors.other-request-id",
        "Header and body differ in the id",
        ("HUB-ERR-52",),
        parts=part(sender=OtherRequestId),
    ),
    Mutant(
        "hub-errors.upper-case",
        "Codes are in capitals",
        ("HUB-ERR-02", "HUB-AUTH-50", "HUB-ERR-53"),
        parts=part(errors=UpperCaseCodes),
    ),
    Mutant("hub-errors.no-allow", "A 405 has no Allow", ("HUB-ERR-57",), parts=part(errors=NoAllow)),
    Mutant(
        "hub-errors.job-not-found-is-410",
        "An unknown job is 410",
        ("HUB-ERR-53", "HUB-AUTH-54", "HUB-SSE-64"),
        edit=error("job_not_found", status=410),
    ),
    Mutant(
        "hub-errors.batch-not-found-is-400",
        "An unknown batch is 400",
        ("HUB-ERR-54", "HUB-AUTH-55"),
        edit=error("batch_not_found", status=400),
    ),
    Mutant(
        "hub-errors.not-found-is-400", "An unknown path is 400", ("HUB-ERR-55",), edit=error("not_found", status=400)
    ),
    Mutant(
        "hub-errors.method-is-404",
        "An unknown method is 404",
        ("HUB-ERR-56", "HUB-ERR-58"),
        edit=error("method_not_allowed", status=404),
    ),
    Mutant(
        "hub-errors.any-media-type",
        "A submission of any media type is read",
        ("HUB-ERR-59",),
        parts=part(judge=AnyMediaType),
    ),
    Mutant(
        "hub-errors.media-type-everywhere",
        "Cancel and retry judge the media type of a body that they ignore",
        ("HUB-ERR-60", "HUB-ERR-61"),
        parts=part(judge=MediaTypeEverywhere),
    ),
    Mutant(
        "hub-errors.reads-every-body",
        "A cancel or retry with a body that is no JSON is refused",
        ("HUB-ERR-61",),
        parts=part(judge=ReadsEveryBody),
    ),
    Mutant(
        "hub-errors.details-by-field",
        "`details` are an object, a sentence for each field",
        ("HUB-ERR-51", "HUB-SUB-54"),
        parts=part(errors=DetailsByField),
    ),
    Mutant(
        "hub-errors.lenient-json",
        "A body with a comma too many, with NaN or with bytes that are no UTF-8 is read",
        ("HUB-ERR-64",),
        parts=part(judge=LenientJson),
    ),
    Mutant(
        "hub-errors.malformed-500", "A body that is no JSON is 500", ("HUB-ERR-64",), parts=part(judge=Malformed500)
    ),
    Mutant(
        "hub-errors.media-type-before-key",
        "The media type is judged before the form of the Idempotency-Key",
        ("HUB-ERR-65",),
        parts=part(judge=MediaTypeBeforeKey),
    ),
    Mutant(
        "hub-errors.size-before-media-type",
        "A body's size is judged before its media type",
        ("HUB-ERR-65",),
        parts=part(judge=SizeBeforeMediaType),
    ),
    Mutant(
        "hub-errors.small-bodies",
        "A body of over 1 MiB is too large",
        ("HUB-ERR-63",),
        edit=put("x-limits", "bodyBytes", value=2**20),
    ),
    Mutant(
        "hub-errors.too-large-is-400",
        "A body that is too large is 400",
        ("HUB-ERR-62",),
        edit=error("payload_too_large", status=400),
    ),
)
