"""What is expected of one generated request, and whether its answer is that."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import jsonschema_rs

import openapi
from contract_tests.checks import CheckFailed, expect
from contract_tests.client import KEY_HEADER, Answer, describe, judge_error_shape
from contract_tests.runtime_api.fuzz.generation import INSTANCE
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contract_tests.transport import Request, Response
    from openapi.contract import Operation

LONGEST_ID = 128
BODY_BYTES = 1048576
_PATH_ID = re.compile(r"/jobs/([^/]*)/(?:lock|heartbeat|snapshot|result|fail)$")
_JSON_MEDIA = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)
NO_REFUSAL_OF_FORM = frozenset({400, 401, 405, 413, 415})
"""What a valid request is never answered, but for a rule of the operation's own."""


@dataclass
class Finding:
    """What is wrong with an answer; two of the same kind are the same fault."""

    kind: str
    failure: CheckFailed


@dataclass(frozen=True)
class Expected:
    """What a request is to be answered: ``statuses`` where it is invalid, None where the operation itself decides."""

    statuses: frozenset[int] | None = None
    codes: frozenset[str] = frozenset()
    places: tuple[str, ...] = ()
    """JSON Pointers of the body, or header names, that are wrong."""


def _refused(status: int, *codes: str, places: Iterable[str] = ()) -> Expected:
    return Expected(frozenset({status}), frozenset(codes), tuple(places))


class Described:
    """An operation as the specification describes it, with compiled schemas."""

    def __init__(self, operation_id: str) -> None:
        self.contract = openapi.load("runtime-api")
        self.operation: Operation = self.contract.operations[operation_id]
        self.responses = {
            status: self.contract.resolve(self.operation.document["responses"][str(status)])
            for status in self.operation.statuses
        }
        self.codes = {status: tuple(item.get("x-error-codes", ())) for status, item in self.responses.items()}

    @cached_property
    def body(self) -> Any:
        """The validator of request bodies; None where there are none."""
        if "requestBody" not in self.operation.document:
            return None
        return self._validator(self.operation.document["requestBody"])

    @cached_property
    def forbidden(self) -> frozenset[str]:
        """Names that a body holds nowhere, in lower case."""
        if self.body is None:
            return frozenset()
        schema = self.operation.document["requestBody"]["content"]["application/json"]["schema"]
        names = self.contract.resolve(schema).get("x-forbidden-names", ())
        return frozenset(name.lower() for name in names)

    @cached_property
    def answers(self) -> Mapping[int, Any]:
        """The validators of answers by status; None where the body is empty."""
        return {
            status: self._validator(response) if "content" in response else None
            for status, response in self.responses.items()
        }

    def _validator(self, described: Mapping[str, Any]) -> Any:
        schema = to_json_schema(described["content"]["application/json"]["schema"], self.contract.document)
        return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def expects(self, request: Request, key: str) -> Expected:
        """What the request is to be answered by its form, in the order in which a request is judged."""
        if request.headers.get(KEY_HEADER) != key:
            return _refused(401, "UNAUTHORIZED")
        found = _PATH_ID.search(request.path)
        if found is not None and not _can_be_an_id(found.group(1)):
            return _refused(404, "JOB_NOT_FOUND", "NOT_FOUND")
        instance = request.headers.get(INSTANCE, "").strip()
        if not 1 <= len(instance) <= LONGEST_ID:
            return _refused(400, "INVALID_REQUEST", places=[INSTANCE])
        if self.body is None:
            return Expected()
        media = request.headers.get("content-type")
        if (request.content or media is not None) and not (media and _JSON_MEDIA.fullmatch(media.strip())):
            return _refused(415, "UNSUPPORTED_MEDIA_TYPE")
        return self._expects_of_body(request.content)

    def _expects_of_body(self, content: bytes) -> Expected:
        try:
            body = json.loads(content.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return _refused(400, "INVALID_REQUEST")
        try:
            places = [place for error in self.body.iter_errors(body) for place in _places(error)]
        except ValueError:  # nested too deeply to be shown what is wrong with it
            return _refused(400, "INVALID_REQUEST")
        places += _holding(body, self.forbidden) if self.forbidden else []
        return _refused(400, "INVALID_REQUEST", places=places) if places else Expected()


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def _can_be_an_id(text: str) -> bool:
    try:
        return 1 <= len(unquote(text, errors="strict")) <= LONGEST_ID
    except UnicodeDecodeError:
        return False


def _places(error: Any) -> list[str]:
    """Where an error may be said to be: the object that lacks a property, or the property."""
    pointer = "".join(f"/{_escaped(str(token))}" for token in error.instance_path)
    return [f"{pointer}/{_escaped(error.kind.property)}"] if error.kind.name == "required" else [pointer]


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def _holding(value: Any, names: frozenset[str], at: str = "") -> list[str]:
    if isinstance(value, dict):
        own = [f"{at}/{_escaped(name)}" for name in value if name.lower() in names]
        return own + [
            place for name, item in value.items() for place in _holding(item, names, f"{at}/{_escaped(name)}")
        ]
    if isinstance(value, list):
        return [place for i, item in enumerate(value) for place in _holding(item, names, f"{at}/{i}")]
    return []


class Judge:
    """Judges answers. ``exact``: statuses and codes are to be those of the specification, else any 4xx will do."""

    def __init__(self, key: str, *, exact: bool) -> None:
        self.key, self.exact = key, exact
        self.secrets: set[str] = set()
        """Model keys that a resolve has handed out, or that a provider state has made."""
        self._operations: dict[str, Described] = {}

    def of(self, operation_id: str) -> Described:
        """The operation's description."""
        if operation_id not in self._operations:
            self._operations[operation_id] = Described(operation_id)
        return self._operations[operation_id]

    def finding(self, operation_id: str, request: Request, response: Response, *, tolerant: bool) -> Finding | None:
        """What is wrong; ``tolerant``: 400 will do, a build may be unable to keep it (a number beyond doubles)."""
        described = self.of(operation_id)
        expected = described.expects(request, self.key)
        judges: tuple[tuple[str, Callable[[], None]], ...] = (
            ("5xx", lambda: _no_server_error(response)),
            ("status", lambda: self._status(described, expected, response, tolerant=tolerant)),
            ("shape", lambda: _shape(response)),
            ("body", lambda: _body(described, response)),
            ("details", lambda: _details(expected, response) if self.exact else None),
            ("secret", lambda: self._secrets(operation_id, response)),
        )
        for kind, judge in judges:
            try:
                judge()
            except CheckFailed as failure:
                return Finding(f"{operation_id} {kind} {response.status}", failure)
        return None

    def _status(self, described: Described, expected: Expected, response: Response, *, tolerant: bool) -> None:
        status, code = response.status, code_of(response)
        if expected.statuses is not None:
            wanted = [f"{item} {name}" for item in sorted(expected.statuses) for name in sorted(expected.codes)]
            if self.exact:
                good = status in expected.statuses and code in expected.codes
            else:
                good, wanted = 400 <= status < 500, ["a refusal (4xx)"]
            where = (
                f" (wrong: {', '.join(place or 'the body' for place in expected.places)})" if expected.places else ""
            )
            expect(good, wanted, describe(response) + where)
            return
        if status < 400:
            documented = [str(item) for item in described.operation.statuses if item < 400]
            expect(str(status) in documented, documented, describe(response))
        elif self.exact:
            allowed = {
                item: described.codes[item]
                for item in described.operation.statuses
                if 400 <= item < 500
                and (item not in NO_REFUSAL_OF_FORM or self._own(described, item, tolerant=tolerant))
            }
            wanted = [f"{item} {name}" for item, names in allowed.items() for name in names]
            expect(code in allowed.get(status, ()), ["a success", *wanted], describe(response))

    @staticmethod
    def _own(described: Described, status: int, *, tolerant: bool) -> bool:
        """Whether the operation's own rules, or limits of the build, may answer so to a request of the right form."""
        return (tolerant and status in (400, 413)) or (described.operation.id == "resolveCredential" and status == 400)

    def _secrets(self, operation_id: str, response: Response) -> None:
        resolved = operation_id == "resolveCredential" and response.status == 200
        text = response.text
        if resolved:
            body = response.json
            handed = body.pop("apiKey", None) if isinstance(body, dict) else None
            if isinstance(handed, str) and len(handed) > 3:
                self.secrets.add(handed)
            text = json.dumps(body, ensure_ascii=False)
        text += "".join(f"\n{name}: {value}" for name, value in response.headers.items())
        for secret in (self.key, *sorted(self.secrets)):
            expect(secret not in text, "an answer without a key", "a key stands in it")


def code_of(response: Response) -> str | None:
    """The error code of an answer, where it has one."""
    try:
        code = json.loads(response.content).get("errorCode")
    except (ValueError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, str) else None


def _no_server_error(response: Response) -> None:
    expect(response.status < 500, "never a fault of the server (5xx)", describe(response))


def _shape(response: Response) -> None:
    if response.status >= 400:
        _json_media(response)
        judge_error_shape(Answer(response))
        retryable = response.json.get("retryable", False)
        expect(isinstance(retryable, bool), "`retryable`, true or false", json.dumps(retryable), "/retryable")


def _json_media(response: Response) -> None:
    media = response.headers.get("content-type", "none")
    expect(media.partition(";")[0].strip().lower() == "application/json", "content type application/json", media)


def _body(described: Described, response: Response) -> None:
    validator = described.answers.get(response.status)
    if validator is None:
        if response.status < 400:
            expect(not response.content, "an empty body", response.text[:200])
    else:
        if response.status < 400:
            _json_media(response)
        for error in validator.iter_errors(response.json):
            pointer = "".join(f"/{token}" for token in error.instance_path)
            raise CheckFailed("a body of the documented schema", f"{response.status}: {error.message[:300]}", pointer)
    headers = described.responses.get(response.status, {}).get("headers", {})
    for name, header in headers.items():
        values, value = header["schema"].get("enum"), response.headers.get(name.lower())
        expect(value is None or not values or value in values, f"{name}: {values}", str(value), name)


def _details(expected: Expected, response: Response) -> None:
    """Where a 400 lists violations, each place that is wrong is among them."""
    details = response.json.get("details") if response.status == 400 else None
    if not details or not expected.places:
        return
    named = [str(entry.get("location")) for entry in details]
    for place in expected.places:
        near = any(_near(place.lower(), name.lower()) for name in named)
        expect(near, f"`details` names {place or 'the body'}", f"it names {', '.join(named)}", "/details")


def _near(place: str, named: str) -> bool:
    """Whether a violation's place is named, or what holds it, or what is in it."""
    return place == named or named.startswith(f"{place}/") or (bool(named) and place.startswith(f"{named}/"))
