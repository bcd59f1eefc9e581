"""One API of a contract, served: Connexion loads the specification and resolves operations, the judgement is compiled.

The stack, from the outside: :class:`Shell` (key, error bodies), :class:`~mock_server.routes.Routes` (path, method),
Connexion's routed middleware with one :class:`CompiledOperation` for each operation (the rest of the judgement,
handler, answer).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import warnings
from datetime import UTC, datetime
from hmac import compare_digest
from typing import TYPE_CHECKING, Any, Protocol

import jsonschema_rs
import orjson

with warnings.catch_warnings():
    # Connexion imports Starlette's test client, which warns of the HTTP client that it would use.
    warnings.simplefilter("ignore")
    from connexion import AsyncApp
    from connexion.middleware.abstract import RoutedAPI, RoutedMiddleware
    from connexion.middleware.lifespan import LifespanMiddleware
    from connexion.middleware.main import API
    from connexion.resolver import Resolver
    from connexion.spec import OpenAPISpecification

from mock_server.calls import Answer, Disconnected, Exchange, Refusal
from mock_server.judgement import JSON, Incoming, OperationJudge
from mock_server.routes import PATH_PARAMETERS, Routes
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Handler
    from openapi import Contract, Operation
    from openapi.contract import ErrorCode

log = logging.getLogger("mock_server")

EXCHANGE = "mock_server.exchange"
"""Key of the :class:`Exchange` in ``scope["extensions"]``."""


class Gate(Protocol):
    """Asks who may enter, before anything else of a request is judged."""

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        """Raises :class:`Refusal` for who may not."""


class KeyJudge:
    """Asks for the key under the API's base path, before anything else is judged (RT-AUTH-50, 51, 54, 57)."""

    def __init__(self, header: str, base_path: str) -> None:
        self.header = header.lower().encode()
        self.base_path = base_path

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        """Raises :class:`Refusal` unless the request carries the world's key, or lies outside the base path."""
        if not path.startswith(self.base_path) or path[len(self.base_path) :][:1] not in ("", "/"):
            return
        given = headers.get(self.header, b"")
        if not compare_digest(given, exchange.world.api_key):
            what = "is missing or empty" if not given else "is wrong"
            raise Refusal("UNAUTHORIZED", f"The header {self.header.decode()} {what}.")


class Errors:
    """How an API says that a request is refused: the Runtime API's error body by default."""

    def __init__(self, contract: Contract) -> None:
        self.codes = contract.errors

    def named(self, code: str) -> ErrorCode:
        """The code of ``x-errors`` that a refusal names."""
        return self.codes[code]

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        """The refusal's answer: status and retryability from ``x-errors``, time by the world's clock, no secrets."""
        code = self.codes[refusal.code]
        exchange.error_code, exchange.details = code.code, refusal.details
        body = self.body(code.code, refusal, exchange)
        if refusal.details:
            body["details"] = [violation.entry() for violation in refusal.details]
        return Answer(code.status, body, refusal.headers)

    def body(self, code: str, refusal: Refusal, exchange: Exchange) -> dict[str, Any]:
        """The error body without its details (RT-ERR-01 to 05, 64)."""
        return self.told(self.codes[code], refusal.message, exchange)

    def headers(self, _: Exchange) -> dict[str, str]:
        """Headers of every failure."""
        return {}

    def told(self, code: ErrorCode, message: str, exchange: Exchange) -> dict[str, Any]:
        """The error body of any code, one that no operation documents included: what stands before an API has such."""
        return {
            "statusCode": code.status,
            "errorCode": code.code,
            "message": exchange.world.redactor.text(message),
            "timestamp": iso(exchange.world.clock.now()),
            "retryable": code.retryable,
        }


def iso(instant: int) -> str:
    """Epoch milliseconds as ISO 8601 UTC with milliseconds and ``Z`` (RT-ERR-05)."""
    seconds, milliseconds = divmod(instant, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{milliseconds:03d}Z"


class Api:
    """One contract, compiled into an ASGI app. It holds no state; the world comes with each request's exchange."""

    def __init__(
        self,
        contract: Contract,
        handlers: Mapping[str, Handler],
        errors: Errors,
        *,
        key: Gate | None = None,
        validate_responses: bool = True,
        judge: Callable[..., OperationJudge] = OperationJudge,
        sender: Sender | None = None,
    ) -> None:
        """``handlers`` by operationId; ``judge`` makes the judge of an operation (a seeded fault may replace it)."""
        limit = contract.limits["bodyBytes"]
        self.errors = errors
        sends = sender or Sender()

        class CompiledApi(RoutedAPI[CompiledOperation]):  # type: ignore[misc]  # Connexion has no types
            def __init__(self, specification: Any, *, next_app: Any, base_path: Any = None, **options: Any) -> None:
                super().__init__(specification, base_path=base_path, resolver=options["resolver"], next_app=next_app)
                self.add_paths()

            def make_operation(self, operation: Any) -> CompiledOperation:
                described = contract.operations[operation.operation_id]
                judged = judge(described.id, contract.document, operation, limit)
                check = ResponseCheck(contract, described, errors) if validate_responses else None
                return CompiledOperation(judged, operation.function, check, sends)

        class CompiledMiddleware(RoutedMiddleware[CompiledApi]):  # type: ignore[misc]
            api_cls = CompiledApi

        def shell(app: Any) -> Shell:
            return Shell(app, errors, key, sends)

        app = AsyncApp(__name__, middlewares=[shell, Routes, CompiledMiddleware, LifespanMiddleware])
        document = {name: value for name, value in contract.document.items() if not name.startswith("x-")}
        options = app.middleware.options.replace(resolver=Resolver(handlers.__getitem__))
        app.middleware.apis.append(API(Linted(document), base_path=None, **options.__dict__))
        self.asgi: Any = app


class Linted(OpenAPISpecification):  # type: ignore[misc]  # Connexion has no types
    """A specification that was validated when it was linted: to do so again takes a tenth of a second of each start."""

    @classmethod
    def _validate_spec(cls, spec: Any) -> None:
        return


class Shell:
    """The outermost layer of an API: the gate, and every refusal or failure as the API's own error body."""

    def __init__(self, app: Any, errors: Errors, key: Gate | None, sender: Sender) -> None:
        self.app, self.errors, self.key, self.sender = app, errors, key, sender

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; the scope carries its :class:`Exchange`."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange: Exchange = scope["extensions"][EXCHANGE]
        incoming = Incoming(receive)
        try:
            if self.key is not None:
                self.key.judge(scope["path"], exchange.headers, exchange)
            await self.app(scope, incoming, send)
        except Refusal as refusal:
            if incoming.more:
                await incoming.drain()
            await self.sender.send(self.errors.answer(refusal, exchange), exchange, send)
        except Disconnected:
            return
        except Exception as error:
            # The exception's own text stays out of answer and log: it could hold a part of a body.
            kind = type(error).__name__ if not isinstance(error, AnswerError) else str(error)
            what = f"{exchange.method} {exchange.operation_id or ''} failed: {kind}"
            log.error(what, exc_info=(RuntimeError, RuntimeError(kind), error.__traceback__))  # noqa: TRY400
            if not exchange.status:
                fault = Refusal("INTERNAL_ERROR", "The server failed on this request; its log tells more.")
                await self.sender.send(self.errors.answer(fault, exchange), exchange, send)


class AnswerError(RuntimeError):
    """An answer that the contract does not document: a fault of ours, so it is never sent. The text holds no data."""


class CompiledOperation:
    """One operation at work: judge, handle, check the answer, send it."""

    def __init__(self, judge: OperationJudge, handler: Handler, check: ResponseCheck | None, sender: Sender) -> None:
        self.judge, self.handler, self.check, self.sender = judge, handler, check, sender

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request that was routed here."""
        extensions = scope["extensions"]
        exchange: Exchange = extensions[EXCHANGE]
        exchange.operation_id = self.judge.operation_id
        try:
            call = await self.judge.judge(scope, receive, exchange, extensions[PATH_PARAMETERS])
            exchange.receive = receive
            answer = await self.handler(call)
        except Refusal as refusal:
            if self.check is not None:
                self.check.refusal(refusal)
            raise
        if self.check is not None:
            self.check.answer(answer)
        await self.sender.send(answer, exchange, send)


class ResponseCheck:
    """Whether an answer is one that the contract documents for an operation. Raises :class:`AnswerError`."""

    def __init__(self, contract: Contract, operation: Operation, errors: Errors) -> None:
        self._id, self._errors = operation.id, errors
        self._bodies: dict[int, jsonschema_rs.Draft202012Validator | None] = {}
        self._codes: set[str] = set()
        for status, item in operation.document["responses"].items():
            response = contract.resolve(item)
            self._codes |= set(response.get("x-error-codes", ()))
            if int(status) < 400:
                content = response.get("content", {}).get(JSON)
                self._bodies[int(status)] = (
                    jsonschema_rs.Draft202012Validator(
                        to_json_schema(content["schema"], contract.document), validate_formats=True
                    )
                    if content
                    else None
                )

    def answer(self, answer: Answer) -> None:
        """Check a success; a stream's own parts are checked by who makes it."""
        if answer.status not in self._bodies:
            raise AnswerError(f"{self._id} does not document {answer.status}")
        validator = self._bodies[answer.status]
        if hasattr(answer.body, "__aiter__"):
            return
        if validator is None:
            if answer.body is not None:
                raise AnswerError(f"{self._id} documents no body for {answer.status}")
        elif not validator.is_valid(answer.body):
            places = sorted({"/".join(map(str, error.schema_path)) for error in validator.iter_errors(answer.body)})
            raise AnswerError(f"{self._id} answers {answer.status} with a body that breaks {', '.join(places[:5])}")

    def refusal(self, refusal: Refusal) -> None:
        """Check that an operation documents the error code."""
        if self._errors.named(refusal.code).code not in self._codes:
            raise AnswerError(f"{self._id} does not document {refusal.code}")


class Sender:
    """Puts answers on the wire and notes them in the exchange. A seeded fault subclasses it."""

    async def send(self, answer: Answer, exchange: Exchange, send: Any) -> None:
        """Send an answer: as JSON, as a stream when its body is an async iterator of bytes, or without a body."""
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
        exchange.response_headers = headers
        body = answer.body
        if hasattr(body, "__aiter__"):
            exchange.status = answer.status
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            await self.stream(body, send, exchange.receive)
            return
        payload = b""
        if body is not None:
            payload = exchange.response_body = written(body)
            headers.append((b"content-length", b"%d" % len(payload)))
            if "content-type" not in answer.headers:
                headers.append((b"content-type", b"application/json"))
        exchange.status = answer.status
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    async def stream(self, body: Any, send: Any, receive: Any) -> None:
        """Send the parts of a stream as they come, until its end or until nobody reads it any more."""
        sending = asyncio.ensure_future(self.parts(body, send))
        gone = asyncio.ensure_future(disconnected(receive)) if receive is not None else None
        try:
            await asyncio.wait([sending] if gone is None else [sending, gone], return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                await sending
        finally:
            for task in (sending, gone):
                if task is not None:
                    task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
            if hasattr(body, "close"):
                body.close()

    async def parts(self, body: Any, send: Any) -> None:
        """Send each part on its own."""
        async for part in body:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})


async def disconnected(receive: Any) -> None:
    """Returns when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


def written(value: Any) -> bytes:
    """A JSON value as bytes. orjson writes 254 levels; a job's `params` or a snapshot may have more."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
