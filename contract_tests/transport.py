"""What the suites need of HTTP. The runner provides it, and records every exchange."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

from contract_tests.checks import CheckFailed, SetUpFailed, is_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True)
class Request:
    """One request; ``path`` is below the target's base URL. Headers are sent as they are; Host and length are added."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(frozen=True)
class Response:
    """What came; header names are lower case. ``sent`` and ``received`` are monotonic seconds."""

    status: int
    headers: Mapping[str, str]
    content: bytes
    sent: float
    received: float

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON. Fails the check where it is none."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            what = self.text[:200] or "an empty body"
            raise CheckFailed("a JSON body", f"{self.status} with {what}") from None


class Stream(Protocol):
    """An answer whose body is read as it comes; header names are lower case. Leaving ``async with`` closes it."""

    status: int
    headers: Mapping[str, str]

    async def read(self, seconds: float) -> bytes:
        """What came next, empty at the end of the answer.

        Raises :class:`~contract_tests.checks.Silent` when nothing comes within so many real seconds (reading can go
        on), :class:`~contract_tests.checks.NoAnswer` when the connection or the framing breaks.
        """

    async def close(self) -> None:
        """Give the connection up, as a client does that is no longer interested."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


class Transport(Protocol):
    """Sends requests to the target.

    Raises :class:`~contract_tests.checks.NoAnswer` for an answer that never comes, is cut off or is no HTTP, and
    :class:`~contract_tests.checks.TargetVanished` where nobody listens.
    """

    async def send(self, request: Request) -> Response:
        """Send one request."""

    async def open(self, request: Request) -> Stream:
        """Send one request and read no more than the head of its answer; the stream is for its caller to close."""

    async def send_together(self, requests: Sequence[Request]) -> list[Response]:
        """Open a connection for each request, then release all at once; answers in the order of the requests."""

    async def abandon(self, request: Request, *, unsent: int = 0) -> None:
        """Send one request and close the connection at once, as a client does that dies; its answer is not read.

        ``unsent``: so many of the last bytes are never sent.
        """

    def listen(self, heard: Callable[[Request, Response, str], None]) -> None:
        """Tell each answer from here on, with the id of the check that asked."""

    def learn(self, secret: str) -> None:
        """A secret that no report may show, whenever it was recorded."""

    def mark(self, begins: bool) -> None:
        """What is sent from here on repeats the failure on its own; with False, it does not after all."""


class ProviderStates(Protocol):
    """Puts the target into a state."""

    offered: frozenset[str]
    """The states that the target lists; empty without provider states."""

    async def set_up(self, state: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Set up a state and return its values.

        Raises :class:`~contract_tests.checks.CheckSkipped` for one that is not offered,
        :class:`StateRefused` for a 409, :class:`StateBroken` for a 5xx,
        :class:`~contract_tests.checks.SetUpFailed` for anything else.
        """

    def listen(self, heard: Callable[[str, int, bytes, str], None]) -> None:
        """Tell each answer from here on: state, status, body, and the id of the check that asked."""


class StateRefused(SetUpFailed):
    """The build refused a state (409): a job that can't be cancelled or rerun."""


class StateBroken(SetUpFailed):
    """The build broke over a state (5xx): how far it came is not known."""


VALUES: Mapping[str, Mapping[str, Mapping[str, type]]] = {
    "runtime-api": {
        "job": {"jobId": str, "userId": str},
        "credential": {"credentialId": str, "userId": str, "apiKey": str},
        "cancel-job": {"status": str},
        "rerun-job": {"jobId": str},
        "advance-time": {"now": int},
    },
    "agent-hub": {"node": {"nodeId": str}, "advance-time": {"now": int}},
}
"""What a state has to return, by the system and its own name; ``now`` is in epoch milliseconds."""


def values_of(system: str, state: str, values: Any) -> dict[str, Any]:
    """The values of a state. Raises :class:`~contract_tests.checks.SetUpFailed` where one that it owes is not there."""
    if not isinstance(values, dict):
        raise SetUpFailed(f"provider state {state}: it returned {json.dumps(values)[:200]}, which is no object")
    for name, kind in VALUES[system].get(state, {}).items():
        value = values.get(name)
        if not (is_integer(value) if kind is int else isinstance(value, kind)):
            wanted = {str: "a string", int: "an integer"}[kind]
            came = json.dumps(value)[:100] if name in values else "left out"
            raise SetUpFailed(f"provider state {state}: its value `{name}` is to be {wanted}; it is {came}")
    return values
