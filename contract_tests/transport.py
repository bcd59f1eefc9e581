"""What the suites need of HTTP. The runner provides it, and records every exchange."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from contract_tests.checks import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
        except ValueError:
            what = self.text[:200] or "an empty body"
            raise CheckFailed("a JSON body", f"{self.status} with {what}") from None


class Transport(Protocol):
    """Sends requests to the target.

    Raises :class:`CheckFailed` for an answer that never comes, is cut off or is no HTTP, and
    :class:`~contract_tests.checks.TargetVanished` where nobody listens.
    """

    async def send(self, request: Request) -> Response:
        """Send one request."""

    async def send_together(self, requests: Sequence[Request]) -> list[Response]:
        """Open a connection for each request, then release all at once; answers in the order of the requests."""


class ProviderStates(Protocol):
    """Puts the target into a state."""

    offered: frozenset[str]
    """The states that the target lists; empty without provider states."""

    async def set_up(self, state: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Set up a state and return its values.

        Raises :class:`~contract_tests.checks.CheckSkipped` for one that is not offered,
        :class:`StateRefused` for a 409, :class:`~contract_tests.checks.SetUpFailed` for anything else.
        """


class StateRefused(Exception):  # noqa: N818 - an answer
    """The build refused a state (409): a job that can't be cancelled or rerun."""
