"""The request judgement, compiled once from Connexion's operations: what is asked for, in the order of ``x-judgement``.

Stock Connexion builds validators, wrappers and decorators anew for each request, finds 404 and 405 before 401, reports
one violation only, answers 500 to a body that is not UTF-8 or nested deeply, and refuses ``1.0`` for an integer. Here
everything that depends on the operation alone is made at start-up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import jsonschema_rs
import orjson

from mock_server.calls import Call, Disconnected, Refusal, Violation
from mock_server.violations import body_violations, missing_parameter, parameter_violations, unreadable
from openapi.documents import escape
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.calls import Exchange

JSON = "application/json"


class Parameter:
    """A header, query or path parameter with its compiled schema."""

    def __init__(self, document: Mapping[str, Any], parameter: Mapping[str, Any]) -> None:
        self.name: str = parameter["name"]
        self.kind: str = parameter["in"]
        self.required = bool(parameter.get("required"))
        self.names_caller = bool(parameter.get("x-caller"))
        schema = to_json_schema(parameter["schema"], document)
        self.default = schema.get("default")
        self._type = schema.get("type")
        self._validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def judge(self, text: str | None, exchange: Exchange, violations: list[Violation]) -> Any:
        """The value; what it breaks is added to ``violations``."""
        if text is None:
            if self.required:
                violations.append(missing_parameter(self.name, self.kind))
            return self.default
        value = self._parsed(text)
        if self._type == "integer":
            value = _whole(value)
        if not self._validator.is_valid(value):
            violations += parameter_violations(self._validator.iter_errors(value), self.name, exchange.world.redactor)
        return value

    def _parsed(self, text: str) -> Any:
        if self._type in ("integer", "number", "boolean"):
            try:
                return orjson.loads(text)
            except orjson.JSONDecodeError:
                return text
        return text


class OperationJudge:
    """Judges the requests of one operation, from the header step on. A seeded fault subclasses it."""

    def __init__(self, operation_id: str, document: Mapping[str, Any], operation: Any, limit: int) -> None:
        """``operation`` is Connexion's: its references are resolved. ``limit``: the largest body, bytes."""
        self.operation_id, self.limit = operation_id, limit
        parameters = [Parameter(document, item) for item in operation.parameters]
        self.headers = [(item, item.name.lower().encode()) for item in parameters if item.kind == "header"]
        self.query = [item for item in parameters if item.kind == "query"]
        self.path = [item for item in parameters if item.kind == "path"]
        self.looks_at_query = bool(self.query)
        self.has_body = bool(operation.request_body)
        self.body_required = bool(operation.request_body.get("required")) if self.has_body else False
        self.caller_in_body = self.job_in_body = False
        if self.has_body:
            schema = operation.request_body["content"][JSON]["schema"]
            json_schema = to_json_schema(_judged_here(schema), document)
            self.schema = json_schema
            self.validator = jsonschema_rs.Draft202012Validator(json_schema, validate_formats=True)
            self.normalise = compile_normaliser(json_schema)
            self.forbidden = frozenset(name.lower() for name in schema.get("x-forbidden-names", ()))
            self.secret = frozenset(_secret_names(document))
            self.caller_in_body = "runtimeInstanceId" in json_schema.get("properties", {})
            self.job_in_body = "jobId" in json_schema.get("properties", {})

    async def judge(self, scope: Any, receive: Any, exchange: Exchange, path: Mapping[str, str]) -> Call:
        """The call that the request makes.

        Raises :class:`Refusal` with every violation that can be known at the first step that refuses, and
        :class:`Disconnected` where the client went away.
        """
        headers = exchange.headers
        violations: list[Violation] = []
        caller = exchange.caller or ""
        for parameter, name in self.headers:
            raw = headers.get(name)
            value = parameter.judge(None if raw is None else raw.decode("latin-1"), exchange, violations)
            if parameter.names_caller:
                caller = value or caller
        exchange.caller = caller or None
        exchange.job_id = path.get("jobId")
        if self.path:
            self._judge_path(path, exchange)
        query = self._judge_query(scope["query_string"], exchange, violations) if self.looks_at_query else {}
        if not self.has_body:
            if violations:
                raise refused(violations)
            return Call(exchange.world, self.operation_id, caller, path, query, headers, None, exchange)
        body = await self._judge_body(headers, receive, exchange, violations)
        if self.job_in_body and isinstance(body, dict):
            exchange.job_id = body.get("jobId")
        if self.caller_in_body and isinstance(body, dict):
            caller = exchange.caller = body.get("runtimeInstanceId", caller)
        return Call(exchange.world, self.operation_id, caller, path, query, headers, body, exchange)

    def _judge_path(self, path: Mapping[str, str], exchange: Exchange) -> None:
        broken: list[Violation] = []
        for parameter in self.path:
            parameter.judge(path.get(parameter.name), exchange, broken)
        if broken:  # an id that can't be one is a path that does not exist (RT-ERR-79)
            raise Refusal("NOT_FOUND", "No such path: an id in it has a form that no id has.")

    def _judge_query(self, query_string: bytes, exchange: Exchange, violations: list[Violation]) -> dict[str, Any]:
        given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
        return {
            item.name: item.judge(given[item.name][-1] if item.name in given else None, exchange, violations)
            for item in self.query
        }

    async def _judge_body(
        self, headers: Mapping[bytes, bytes], receive: Any, exchange: Exchange, violations: list[Violation]
    ) -> Any:
        # A fault of the header is answered 400 before media type and size are judged; the body's own violations are
        # listed with it where the body can be read at all.
        raw, too_large = await read_body(receive, self.limit)
        exchange.request_body = raw
        refusal = judge_media_type(headers.get(b"content-type"), raw)
        if too_large and refusal is None:
            refusal = Refusal("PAYLOAD_TOO_LARGE", f"The body is larger than {self.limit} bytes; send less at once.")
        if refusal is not None:
            raise refused(violations) if violations else refusal
        if not raw and not self.body_required:
            if violations:
                raise refused(violations)
            return None
        body = self._parsed(raw, violations)
        if not self.validator.is_valid(body):
            redactor = exchange.world.redactor
            violations += body_violations(self.validator, body, redactor, self.secret, self.schema)
        if self.forbidden:
            violations += _forbidden(body, self.forbidden)
        if violations:
            raise refused(violations)
        return self.normalise(body)

    def _parsed(self, raw: bytes, violations: list[Violation]) -> Any:
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise refused([*violations, _unreadable(raw, error)]) from None


def _judged_here(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A body's schema without what ``x-judged-by-handler`` leaves to the handler: all of it, or properties."""
    if schema.get("x-judged-by-handler"):
        return {}
    if "properties" not in schema:
        return schema
    left = {name: {} if item.get("x-judged-by-handler") else item for name, item in schema["properties"].items()}
    return {**schema, "properties": left}


def refused(violations: list[Violation]) -> Refusal:
    """The 400 that lists every violation (RT-ERR-66)."""
    message = "The request breaks the contract: " + "; ".join(item.message for item in violations[:5])
    if len(violations) > 5:
        message += f"; and {len(violations) - 5} more"
    return Refusal("INVALID_REQUEST", message if message.endswith("?") else message + ".", violations)


def judge_media_type(content_type: bytes | None, raw: bytes) -> Refusal | None:
    """The 415 of a body that is not JSON by its content type; None where it is, or where there is nothing to type."""
    if content_type is None:
        if not raw:
            return None
        return Refusal("UNSUPPORTED_MEDIA_TYPE", f"The body has no content type; send `content-type: {JSON}`.")
    if content_type == b"application/json":
        return None
    media, *parameters = (part.strip().lower() for part in content_type.decode("latin-1").split(";"))
    charsets = [item.partition("=")[2].strip('" ') for item in parameters if item.startswith("charset")]
    if media == JSON and all(charset in ("utf-8", "utf8") for charset in charsets):
        return None
    return Refusal(
        "UNSUPPORTED_MEDIA_TYPE", f"The body's content type is not accepted; send `content-type: {JSON}` in UTF-8."
    )


async def read_body(receive: Any, limit: int) -> tuple[bytes, bool]:
    """The body, and whether it is over ``limit`` bytes; no more than that is ever kept.

    What is over is read on for a moment and dropped, so that a client that is still sending gets to read the answer.
    Raises :class:`Disconnected` where the client goes away before the body is complete.
    """
    message = await receive()
    chunks: list[bytes] = [message.get("body", b"")]
    size = len(chunks[0])
    while message.get("more_body") and size <= limit:
        message = await receive()
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
    if size > limit:
        return b"".join(chunks)[:limit], True
    if message["type"] == "http.disconnect":
        raise Disconnected
    return b"".join(chunks) if len(chunks) > 1 else chunks[0], False


class Incoming:
    """The body of a request as it comes in; ``more`` tells whether a part of it is still to come."""

    __slots__ = ("_receive", "more")

    def __init__(self, receive: Any) -> None:
        self._receive, self.more = receive, True

    async def __call__(self) -> Any:
        """The next message, as ASGI has it."""
        message = await self._receive()
        self.more = bool(message.get("more_body"))
        return message

    async def drain(self, most: int = 64 * 2**20, seconds: float = 2) -> None:
        """Read on and forget, for a moment: a client that is still sending gets to read the answer, not a reset."""
        drained = 0
        try:
            async with asyncio.timeout(seconds):
                while self.more and drained < most:
                    drained += len((await self()).get("body", b""))
        except TimeoutError:
            return


def _unreadable(raw: bytes, error: orjson.JSONDecodeError) -> Violation:
    if not raw.strip():
        return unreadable("empty", "a JSON body", None, "the body is empty; send a JSON object")
    try:
        raw.decode()
    except UnicodeDecodeError as undecodable:
        at = f"byte {undecodable.start + 1}"
        return unreadable("utf8", "UTF-8", at, f"the body is not UTF-8 at {at}")
    # The parser's own words, without the text around the place: it could be a secret.
    reason, at = str(error.args[0]).split(":", 1)[0], f"line {error.lineno}, column {error.colno}"
    rule = "depth" if "depth" in reason else "json"
    return unreadable(rule, "well-formed JSON", at, f"the body is not well-formed JSON at {at}: {reason}")


def _forbidden(body: Any, names: frozenset[str]) -> list[Violation]:
    """Every property of a forbidden name, at any depth: a body may be deeper than Python's stack."""
    found: list[Violation] = []
    rest: list[tuple[str, Any]] = [("", body)]
    while rest:
        place, value = rest.pop()
        items: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            items = [(escape(key), item) for key, item in value.items()]
            for key in value:
                if key.lower() in names:
                    pointer = f"{place}/{escape(key)}"
                    message = f"{pointer} must not be there: keys never travel here"
                    found.append(Violation(pointer, "x-forbidden-names", "no such property", "[redacted]", message))
        elif isinstance(value, list):
            items = list(enumerate(value))
        rest += [(f"{place}/{token}", item) for token, item in reversed(items) if isinstance(item, dict | list)]
    return found


def _secret_names(document: Mapping[str, Any]) -> set[str]:
    """Properties marked ``x-secret`` anywhere in the specification."""
    return {
        name
        for schema in document["components"]["schemas"].values()
        for name, item in schema.get("properties", {}).items()
        if item.get("x-secret")
    }


def compile_normaliser(schema: Mapping[str, Any]) -> Callable[[Any], Any]:
    """A function that gives a valid value with ``1.0`` made 1 where the schema says integer, and defaults filled in."""
    return _normaliser(schema, schema, ()) or (lambda value: value)


def _normaliser(
    schema: Mapping[str, Any], root: Mapping[str, Any], trail: tuple[str, ...]
) -> Callable[[Any], Any] | None:
    reference = schema.get("$ref")
    if reference is not None:
        if reference in trail:
            return None
        return _normaliser(root["$defs"][reference.rpartition("/")[2]], root, (*trail, reference))
    parts = [part for item in schema.get("allOf", ()) if (part := _normaliser(item, root, trail))]
    types = schema.get("type", ())
    if "integer" in ([types] if isinstance(types, str) else types):
        parts.append(_whole)
    if "items" in schema and (each := _normaliser(schema["items"], root, trail)):
        parts.append(lambda value: [each(item) for item in value] if isinstance(value, list) else value)
    if "properties" in schema:
        parts += _object(schema["properties"], root, trail)
    if len(parts) <= 1:
        return parts[0] if parts else None

    def all_of(value: Any) -> Any:
        for part in parts:
            value = part(value)
        return value

    return all_of


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _object(
    properties: Mapping[str, Any], root: Mapping[str, Any], trail: tuple[str, ...]
) -> list[Callable[[Any], Any]]:
    changes = [(name, part) for name, item in properties.items() if (part := _normaliser(item, root, trail))]
    defaults = [(name, item["default"]) for name, item in properties.items() if "default" in item]

    def normalise(value: Any) -> Any:
        if isinstance(value, dict):
            for name, change in changes:
                if name in value:
                    value[name] = change(value[name])
            for name, default in defaults:
                value.setdefault(name, default)
        return value

    return [normalise] if changes or defaults else []
