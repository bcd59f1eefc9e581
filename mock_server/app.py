"""One API of a contract, served: Connexion loads the specification and resolves operations, the judgement is compiled.

The stack, from the outside: :class:`Shell` (key, error bodies), :class:`Routes` (path, method), Connexion's routed
middleware with one :class:`CompiledOperation` for each operation (the rest of the judgement, handler, answer).
"""

from __future__ import annotations

import logging
import re
import warnings
from datetime import UTC, datetime
from hmac import compare_digest
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import jsonschema_rs
import orjson

with warnings.catch_warnings():
    # Connexion imports Starlette's test client, which warns of its own future; that is nothing to a user of this server.
    warnings.simplefilter("ignore")
    from connexion import AsyncApp
    from connexion.middleware.abstract import ROUTING_CONTEXT, RoutedAPI, RoutedMiddleware, SpecMiddleware
    from connexion.middleware.lifespan import LifespanMiddleware
    from connexion.resolver import Resolver

from mock_server.calls import Answer, Disconnected, Exchange, Refusal
from mock_server.judgement import JSON, OperationJudge
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Call, Handler
    from openapi import Contract

log = logging.getLogger("mock_server")

EXCHANGE = "mock_server.exchange"
"""Key of the :class:`Exchange` in ``scope["extensions"]``, and of the world's app underneath."""
_ROUTED_PATH = "mock_server.path"


class Errors:
    """How an API says that a request is refused: the Runtime API's error body by default."""

    def __init__(self, contract: Contract) -> None:
        self.codes = contract.errors

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        """The refusal's answer: status, error code, retryability from ``x-errors``, time by the world's clock."""
        code = self.codes[str(refusal.code)]
        body = {
            "statusCode": code.status,
            "errorCode": code.code,
            "message": exchange.world.redactor.text(refusal.message),
            "timestamp": iso(exchange.world.clock.now()),
            "retryable": code.retryable,
        }
        if refusal.details:
            body["details"] = [violation.entry() for violation in refusal.details]
        exchange.error_code = code.code
        return Answer(code.status, body, refusal.headers)

    def fault(self) -> Refusal:
        """What is answered when the server itself fails."""
        return Refusal("INTERNAL_ERROR", "The server failed on this request.")


def iso(instant: int) -> str:
    """Epoch milliseconds as ISO 8601 UTC with milliseconds and ``Z`` (RT-ERR-05)."""
    seconds, milliseconds = divmod(instant, 1000)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{milliseconds:03d}Z"


class KeyJudge:
    """Asks for the key under the API's base path, before anything else is judged (RT-AUTH-50, 51, 57)."""

    def __init__(self, header: str, base_path: str) -> None:
        self.header = header.lower().encode()
        self.base_path = base_path

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        """Raises :class:`Refusal` unless the request carries the world's key, or lies outside the base path."""
        if path != self.base_path and not path.startswith(self.base_path + "/"):
            return
        given = headers.get(self.header, b"")
        if not compare_digest(given, exchange.world.options.api_key.encode()):
            what = "is missing or empty" if not given else "is wrong"
            raise Refusal("UNAUTHORIZED", f"The header {self.header.decode()} {what}.")


class Api:
    """One contract, compiled into an ASGI app. It holds no state; the world comes with each request's scope."""

    def __init__(
        self,
        contract: Contract,
        handlers: Mapping[str, Handler],
        errors: Errors,
        *,
        key: KeyJudge | None = None,
        validate_responses: bool = True,
        judge: Callable[..., OperationJudge] = OperationJudge,
    ) -> None:
        """``handlers`` by operationId; ``judge`` makes the judge of an operation (a seeded fault may replace it)."""
        document = contract.document
        limit = contract.limits["bodyBytes"]

        class CompiledApi(RoutedAPI[CompiledOperation]):
            def __init__(self, specification: Any, *, next_app: Any, base_path: Any = None, **options: Any) -> None:
                known = {name: options[name] for name in ("resolver", "uri_parser_class") if name in options}
                super().__init__(specification, base_path=base_path, next_app=next_app, **known)
                self.add_paths()

            def make_operation(self, operation: Any) -> CompiledOperation:
                id_ = operation.operation_id
                made = judge(id_, document, operation, limit)
                responses = response_validators(contract, id_) if validate_responses else {}
                return CompiledOperation(made, handlers[id_], responses, errors)

        class CompiledMiddleware(RoutedMiddleware[CompiledApi]):
            api_cls = CompiledApi

        def shell(app: Any) -> Shell:
            return Shell(app, errors, key)

        app = AsyncApp(__name__, middlewares=[shell, Routes, CompiledMiddleware, LifespanMiddleware])
        specification = {name: value for name, value in document.items() if not name.startswith("x-")}
        app.add_api(specification, resolver=Resolver(handlers.__getitem__))
        self.asgi = app


class Shell:
    """The outermost layer of an API: the key, and every refusal or failure as the API's own error body."""

    def __init__(self, app: Any, errors: Errors, key: KeyJudge | None) -> None:
        self.app, self.errors, self.key = app, errors, key

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; the scope carries its :class:`Exchange`."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange: Exchange = scope["extensions"][EXCHANGE]
        try:
            if self.key is not None:
                self.key.judge(scope["path"], dict(scope["headers"]), exchange)
            await self.app(scope, receive, send)
        except Refusal as refusal:
            exchange.details = refusal.details
            await send_answer(self.errors.answer(refusal, exchange), exchange, send)
        except Disconnected:
            raise
        except Exception as error:
            # The exception's own text stays out of the answer, and the log names only its kind: either could hold a body.
            log.error("%s %s failed: %s", exchange.method, exchange.path, type(error).__name__, exc_info=_trace(error))  # noqa: TRY400
            if not exchange.status:
                await send_answer(self.errors.answer(self.errors.fault(), exchange), exchange, send)


def _trace(error: Exception) -> Any:
    """The error's stack without its text."""
    return (RuntimeError, RuntimeError(type(error).__name__), error.__traceback__)


class Routes(SpecMiddleware):
    """Finds the operation of a path and method.

    Connexion's own routing answers a redirect to a path with a slash too many, ``Allow`` with the methods of one route
    only, serves HEAD where GET is, and searches the routes one after the other; so the table is made here, and what it
    finds is handed on where Connexion's routed middlewares look for it.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.base_path = ""
        self.literal: dict[str, dict[str, str]] = {}
        self.templates: dict[int, list[tuple[re.Pattern[str], dict[str, str]]]] = {}

    def add_api(self, specification: Any, **_: Any) -> None:
        """Add every operation of a specification."""
        self.base_path = specification.base_path
        for path, item in specification["paths"].items():
            operations = {method.upper(): item[method]["operationId"] for method in item if method in _METHODS}
            if "{" in path:
                pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
                self.templates.setdefault(path.count("/"), []).append((re.compile(pattern), operations))
            else:
                self.literal[path] = operations

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Route one request. Raises :class:`Refusal` NOT_FOUND (404) or METHOD_NOT_ALLOWED (405, with ``Allow``)."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        operations, parameters = self.find(scope)
        operation_id = operations.get(scope["method"])
        if operation_id is None:
            allow = ", ".join(operations)
            message = f"{scope['method']} is not known here; use {allow}."
            raise Refusal("METHOD_NOT_ALLOWED", message, headers={"allow": allow})
        extensions = scope["extensions"]
        extensions[ROUTING_CONTEXT] = {"api_base_path": self.base_path, "operation_id": operation_id}
        extensions[_ROUTED_PATH] = parameters
        await self.app(scope, receive, send)

    def find(self, scope: Any) -> tuple[dict[str, str], dict[str, str]]:
        """The operations of the request's path by method, and its path parameters, decoded."""
        raw: str = scope["raw_path"].decode("latin-1")
        literal = self.literal.get(raw if "%" not in raw else _decoded(raw))
        if literal is not None:
            return literal, {}
        for pattern, operations in self.templates.get(raw.count("/"), ()):
            match = pattern.fullmatch(raw)
            if match is not None:
                try:
                    parameters = {name: unquote(value, errors="strict") for name, value in match.groupdict().items()}
                except UnicodeDecodeError:
                    break
                return operations, parameters
        raise Refusal("NOT_FOUND", "No such path.")


def _decoded(raw: str) -> str:
    """A path with its segments decoded; one with a slash inside a segment equals no literal path."""
    segments = [unquote(segment, errors="replace") for segment in raw.split("/")]
    return "" if any("/" in segment for segment in segments) else "/".join(segments)


_METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


class CompiledOperation:
    """One operation at work: judge, handle, validate the answer, send it."""

    def __init__(
        self,
        judge: OperationJudge,
        handler: Handler,
        responses: Mapping[int, jsonschema_rs.Draft202012Validator | None],
        errors: Errors,
    ) -> None:
        self.judge, self.handler, self.responses, self.errors = judge, handler, responses, errors

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request that was routed here."""
        extensions = scope["extensions"]
        exchange: Exchange = extensions[EXCHANGE]
        exchange.operation_id = self.judge.operation_id
        call: Call = await self.judge.judge(scope, receive, exchange, extensions[_ROUTED_PATH])
        answer = await self.handler(call)
        if self.responses:
            self.check(answer)
        await send_answer(answer, exchange, send)

    def check(self, answer: Answer) -> None:
        """Raises ``RuntimeError`` for an answer that the contract does not document: a fault of ours, never sent."""
        validator = self.responses.get(answer.status, _UNDOCUMENTED)
        if validator is _UNDOCUMENTED:
            raise RuntimeError(f"{self.judge.operation_id} does not document {answer.status}")
        if (validator is None) != (answer.body is None) or (validator is not None and not validator.is_valid(answer.body)):
            raise RuntimeError(f"{self.judge.operation_id} answers {answer.status} with a body that breaks the contract")


_UNDOCUMENTED: Any = object()


def response_validators(contract: Contract, operation_id: str) -> dict[int, jsonschema_rs.Draft202012Validator | None]:
    """For each documented success status the validator of its body; None where the body is empty."""
    found: dict[int, jsonschema_rs.Draft202012Validator | None] = {}
    for status, response in contract.operations[operation_id].document["responses"].items():
        content = contract.resolve(response).get("content", {}).get(JSON)
        if int(status) < 400:
            found[int(status)] = (
                jsonschema_rs.Draft202012Validator(to_json_schema(content["schema"], contract.document)) if content else None
            )
    return found


async def send_answer(answer: Answer, exchange: Exchange, send: Any) -> None:
    """Send an answer as JSON and note it in the exchange."""
    payload = b"" if answer.body is None else orjson.dumps(answer.body)
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if answer.body is not None:
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
    exchange.status, exchange.response_body = answer.status, payload
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": payload})
