"""What passes between the request judgement and the handlers. Handlers know nothing of the web framework."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from mock_server.model.memory import ModelCall
    from mock_server.store import Row
    from mock_server.worlds import World

_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


@dataclass(slots=True)
class Call:
    """A request that passed judgement: values are parsed, defaults filled in, integers are ``int``."""

    world: World
    operation_id: str
    caller: str
    """The body's ``runtimeInstanceId`` where the operation has one, otherwise the header's (RT-AUTH-52); "" without.

    Of the Agent Hub the account of the key.
    """
    path: Mapping[str, str]
    query: Mapping[str, Any]
    headers: Mapping[bytes, bytes]
    """Names in lower case; of several fields of one name the last counts."""
    body: Any
    exchange: Exchange

    @property
    def host(self) -> str:
        """The host (with its port) by which the caller reached us."""
        host = self.headers.get(b"host", b"").decode("latin-1")
        return host if _HOST.fullmatch(host) else "127.0.0.1"


@dataclass(slots=True)
class Answer:
    """What a handler answers; ``body`` None is an empty body, an async iterator of bytes a stream."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Violation:
    """One rule that a request breaks, as an entry of ``details`` (RT-ERR-65)."""

    location: str
    rule: str
    expected: Any
    actual: Any
    message: str

    def entry(self) -> dict[str, Any]:
        """The entry of the error body."""
        return {
            "location": self.location,
            "rule": self.rule,
            "expected": self.expected,
            "actual": self.actual,
            "message": self.message,
        }


class Refusal(Exception):  # noqa: N818 - a refusal is an answer, not a fault
    """A request is refused; ``code`` is one of the contract's ``x-errors``."""

    def __init__(
        self,
        code: str,
        message: str,
        details: list[Violation] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code, self.message = code, message
        self.details, self.headers = details or [], dict(headers or {})
        super().__init__(message)


class Disconnected(Exception):  # noqa: N818 - nobody is left to answer
    """The client went away before its request was complete."""


if TYPE_CHECKING:
    Handler = Callable[[Call], Awaitable[Answer]]


@dataclass(slots=True)
class Met:
    """What fault plans did to a request, and what the client got of the answer."""

    plans: list[tuple[str, str]]
    """Id and kind of each plan that met it."""
    handled: bool = True
    """Whether the request reached the API."""
    got: str = "whole"
    """``whole``, ``altered``, ``part`` or ``nothing``."""
    body: bytes | None = None
    """The body that the client got, where it is another than the answer's."""
    bytes: int | None = None
    """So much of the answer's body the client got, where it is not all: a part of a secret can't be redacted."""
    seconds: float = 0
    """By which delays held it up."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer on their way; the journal keeps it. Times are the world's, epoch milliseconds."""

    world: World
    method: str
    path: str
    headers: Mapping[bytes, bytes]
    at: int
    operation_id: str | None = None
    caller: str | None = None
    job_id: str | None = None
    request_body: bytes = b""
    status: int = 0
    error_code: str | None = None
    details: list[Violation] = field(default_factory=list)
    response_body: bytes = b""
    query: bytes = b""
    response_headers: Sequence[tuple[bytes, bytes]] = ()
    job: Row | None = None
    """The job as it is after the request, where the operation looked at one."""
    fault: Met | None = None
    """What fault plans did to the request; the other fields tell what the API answered (or the fault, in its place)."""
    sightings: Sequence[Mapping[str, str]] | None = None
    """Where the raw request held a secret that does not belong there; only of worlds that ask for it."""
    model: ModelCall | None = None
    """Of a model call: whose it is, and what it is answered."""
    begun: int = field(default_factory=time.perf_counter_ns)
    request_id: str | None = None
    """The id of the request in answers of APIs that have one."""
    receive: Any = None
    """Tells, as ASGI has it, that the client goes away; set once the request was judged."""
