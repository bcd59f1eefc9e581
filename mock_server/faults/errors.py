"""Seeded faults of errors: bodies, codes, statuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.app import Errors, iso
from mock_server.calls import Answer
from mock_server.faults.edits import error, part
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from mock_server.calls import Exchange, Refusal


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


class Always500(Errors):
    """Writes the exception's default status into the body."""

    def body(self, code: str, refusal: Refusal, exchange: Exchange) -> dict[str, Any]:
        return {**super().body(code, refusal, exchange), "statusCode": 500}


class LowerCase(Errors):
    """Writes codes in lower case."""

    def body(self, code: str, refusal: Refusal, exchange: Exchange) -> dict[str, Any]:
        return {**super().body(code, refusal, exchange), "errorCode": code.lower()}


class NoMessage(Errors):
    """Has no message for anybody."""

    def body(self, code: str, refusal: Refusal, exchange: Exchange) -> dict[str, Any]:
        return {**super().body(code, refusal, exchange), "message": ""}


class FrameworkNotFound(Errors):
    """Leaves unknown paths to the framework, whose body is its own."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        if refusal.code in ("NOT_FOUND", "METHOD_NOT_ALLOWED"):
            status = self.codes[refusal.code].status
            return Answer(
                status, {"statusCode": status, "message": "Cannot serve", "error": "Not Found"}, refusal.headers
            )
        return super().answer(refusal, exchange)


class RedirectsSlash(Errors):
    """Redirects a path with a slash too many."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        if refusal.code == "NOT_FOUND" and exchange.path.endswith("/"):
            return Answer(307, None, {"location": exchange.path.rstrip("/")})
        return super().answer(refusal, exchange)


class NoAllow(Errors):
    """Says no method that would do."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        refusal.headers.pop("allow", None)
        return super().answer(refusal, exchange)


class Preflight(Errors):
    """Answers OPTIONS for browsers."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        if refusal.code == "METHOD_NOT_ALLOWED" and exchange.method == "OPTIONS":
            return Answer(204, None, refusal.headers)
        return super().answer(refusal, exchange)


class NoRule(Errors):
    """Does not say which rule is broken."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        answer = super().answer(refusal, exchange)
        for entry in answer.body.get("details", ()):
            del entry["rule"]
        return answer


class ServesHealth(Errors):
    """Has a health check of its own where the Runtime has its."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        if refusal.code == "NOT_FOUND" and exchange.path.endswith("/health"):
            return Answer(200, {"status": "ok"})
        return super().answer(refusal, exchange)


FAULTS = (
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
    Mutant(
        "errors.echo",
        "an error repeats the request, keys included",
        ("RT-ERR-67", "RT-CRED-08", "RT-CRED-09"),
        parts=part(errors=Echo),
    ),
    Mutant(
        "errors.not-retryable",
        "JOB_ALREADY_LOCKED is called not retryable",
        ("RT-ERR-64", "RT-ERR-07"),
        edit=error("JOB_ALREADY_LOCKED", retryable=False),
    ),
    Mutant(
        "errors.unknown-job-410",
        "an unknown job is 410",
        ("RT-ERR-06",),
        edit=error("JOB_NOT_FOUND", status=410),
    ),
    Mutant("errors.always-500", "statusCode is 500 whatever the status", ("RT-ERR-02",), parts=part(errors=Always500)),
    Mutant("errors.lower-case", "error codes are in lower case", ("RT-ERR-03",), parts=part(errors=LowerCase)),
    Mutant("errors.no-message", "the message is empty", ("RT-ERR-04",), parts=part(errors=NoMessage)),
    Mutant(
        "errors.of-the-framework",
        "unknown paths and methods get the framework's own body",
        ("RT-ERR-01", "RT-ERR-50", "RT-ERR-51"),
        parts=part(errors=FrameworkNotFound),
    ),
    Mutant(
        "errors.redirects-slash",
        "a path with a slash too many is redirected",
        ("RT-ERR-50",),
        parts=part(errors=RedirectsSlash),
    ),
    Mutant(
        "errors.method-404",
        "a wrong method is 404",
        ("RT-ERR-51", "RT-ERR-53"),
        edit=error("METHOD_NOT_ALLOWED", status=404),
    ),
    Mutant("errors.no-allow", "a 405 has no Allow", ("RT-ERR-52",), parts=part(errors=NoAllow)),
    Mutant("errors.preflight", "OPTIONS is answered 204", ("RT-ERR-53", "RT-ERR-51"), parts=part(errors=Preflight)),
    Mutant("errors.no-rule", "details do not name the rule", ("RT-ERR-65",), parts=part(errors=NoRule)),
    Mutant(
        "errors.health",
        "the API serves the Runtime's health check",
        ("RT-HEALTH-02", "RT-HEALTH-50", "RT-ERR-50"),
        parts=part(errors=ServesHealth),
    ),
    Mutant(
        "errors.version-400",
        "an incompatible Runtime is 400",
        ("RT-ERR-14", "RT-POLL-59"),
        edit=error("RUNTIME_VERSION_INCOMPATIBLE", status=400),
    ),
    Mutant(
        "errors.lock-not-held-403",
        "who does not hold the lock is forbidden (403)",
        ("RT-ERR-75", "RT-HB-50", "RT-FAIL-50"),
        edit=error("LOCK_NOT_HELD", status=403),
    ),
    Mutant(
        "errors.lock-not-held-retryable",
        "LOCK_NOT_HELD is called retryable",
        ("RT-ERR-75", "RT-ERR-64"),
        edit=error("LOCK_NOT_HELD", retryable=True),
    ),
    Mutant(
        "errors.invalid-422",
        "an invalid request is 422",
        ("RT-ERR-78", "RT-ERR-60", "RT-ERR-57"),
        edit=error("INVALID_REQUEST", status=422),
    ),
    Mutant(
        "errors.invalid-retryable",
        "INVALID_REQUEST is called retryable",
        ("RT-ERR-78", "RT-ERR-64"),
        edit=error("INVALID_REQUEST", retryable=True),
    ),
    Mutant(
        "errors.unauthorized-retryable",
        "UNAUTHORIZED is called retryable",
        ("RT-ERR-77", "RT-ERR-64"),
        edit=error("UNAUTHORIZED", retryable=True),
    ),
    Mutant("errors.large-400", "a body too large is 400", ("RT-ERR-56",), edit=error("PAYLOAD_TOO_LARGE", status=400)),
)
