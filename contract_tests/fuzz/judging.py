"""What is expected of one generated request, and whether its answer is that: what judges of every API share."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import jsonschema_rs

import openapi
from contract_tests.checks import CheckFailed, expect
from contract_tests.fuzz.trials import S, Step
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from contract_tests.checks import NoAnswer
    from contract_tests.transport import Request, Response
    from openapi.contract import Operation

JSON_MEDIA = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-?8"?\s*)?', re.IGNORECASE)


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
    """JSON Pointers of the body, or names of parameters, that are wrong."""
    rules: tuple[str, ...] = ()
    """The rules that would be broken by not refusing it, where the API has some for each fault."""

    @property
    def succeeds(self) -> bool:
        """Whether a success is among what may be answered."""
        return self.statuses is None or min(self.statuses) < 400

    @property
    def wanted(self) -> list[str]:
        """The answers, a status and a code each."""
        return [f"{status} {code}" for status in sorted(self.statuses or ()) for code in sorted(self.codes)]

    @property
    def where(self) -> str:
        """What is wrong with the request, to stand behind what came; empty where that is not known."""
        return f" (wrong: {', '.join(place or 'the body' for place in self.places)})" if self.places else ""


def refused(status: int, *codes: str, places: Iterable[str] = (), rules: Iterable[str] = ()) -> Expected:
    """A refusal with this status and one of these codes."""
    return Expected(frozenset({status}), frozenset(codes), tuple(places), tuple(rules))


class Described(ABC):
    """An operation as the specification describes it, with compiled schemas."""

    def __init__(self, system: str, operation_id: str) -> None:
        self.contract = openapi.load(system)
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
    def answers(self) -> Mapping[int, Any]:
        """The validators of answers by status; None where the body is empty, or no JSON."""
        return {
            status: self._validator(response) if "application/json" in response.get("content", ()) else None
            for status, response in self.responses.items()
        }

    def _validator(self, described: Mapping[str, Any]) -> Any:
        return self.validator(described["content"]["application/json"]["schema"])

    def validator(self, schema: Mapping[str, Any]) -> Any:
        """A compiled schema of the specification."""
        compiled = to_json_schema(schema, self.contract.document)
        return jsonschema_rs.Draft202012Validator(compiled, validate_formats=True)

    @abstractmethod
    def expects(self, request: Request, key: str) -> Expected:
        """What the request is to be answered by its form, in the order in which a request is judged."""


class Judge(ABC, Generic[S]):
    """Judges answers. ``exact``: statuses and codes are to be those of the specification, else any 4xx will do."""

    def __init__(self, key: str, *, exact: bool) -> None:
        self.key, self.exact = key, exact
        self._operations: dict[str, Described] = {}

    @abstractmethod
    def described(self, operation_id: str) -> Described:
        """The operation's description, made anew."""

    @abstractmethod
    def judges(self, step: Step[S], response: Response) -> Iterator[tuple[str, Callable[[], None]]]:
        """What is judged of an answer, one after the other, each with a name."""

    def of(self, operation_id: str) -> Any:
        """The operation's description."""
        if operation_id not in self._operations:
            self._operations[operation_id] = self.described(operation_id)
        return self._operations[operation_id]

    def finding(self, step: Step[S], response: Response) -> Finding | None:
        """The first thing that is wrong with an answer."""
        for kind, judge in self.judges(step, response):
            try:
                judge()
            except CheckFailed as failure:
                return Finding(f"{step.operation_id} {kind} {response.status}", failure)
        return None

    def unanswered(self, step: Step[S], failure: NoAnswer) -> Finding:
        """What is wrong where no whole answer comes."""
        return Finding(f"{step.operation_id} answer", failure)


def parsed(content: bytes) -> Any:
    """A body as JSON. Raises ``ValueError`` or ``RecursionError`` for what is none."""
    return json.loads(content.decode(), parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    raise ValueError(text)


def places(error: Any) -> list[str]:
    """Where an error may be said to be: the object that lacks a property, or the property."""
    pointer = "".join(f"/{escaped(str(token))}" for token in error.instance_path)
    return [f"{pointer}/{escaped(error.kind.property)}"] if error.kind.name == "required" else [pointer]


def escaped(token: str) -> str:
    """A key as JSON Pointers have it."""
    return token.replace("~", "~0").replace("/", "~1")


def no_server_error(response: Response, told: str) -> None:
    """``told`` is the answer in a line."""
    expect(response.status < 500, "never a fault of the server (5xx)", told)


def json_media(response: Response) -> None:
    """The answer is JSON by its content type."""
    media = response.headers.get("content-type", "none")
    expect(media.partition(";")[0].strip().lower() == "application/json", "content type application/json", media)


def of_schema(validator: Any, response: Response) -> None:
    """The answer's body is of its schema."""
    for error in validator.iter_errors(response.json):
        pointer = "".join(f"/{token}" for token in error.instance_path)
        raise CheckFailed("a body of the documented schema", f"{response.status}: {error.message[:300]}", pointer)


DIRECTIVES = "cache-control"
"""A header that is a list."""


def documented_headers(described: Described, response: Response) -> None:
    """Headers that can have few values have one of these; beside a directive for caches others may stand."""
    headers = described.responses.get(response.status, {}).get("headers", {})
    for name, header in headers.items():
        schema = header.get("schema", {})
        values, value = schema.get("enum"), response.headers.get(name.lower())
        told = [part.strip().lower() for part in (value or "").split(",")] if name.lower() == DIRECTIVES else [value]
        expect(value is None or not values or any(one in values for one in told), f"{name}: {values}", str(value), name)
