"""Provider states over HTTP, as Pact's provider-state convention has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import requests

from conformance.recording import CHECK, RECORDER, state_command
from contract_tests.checks import CheckSkipped, SetUpFailed
from contract_tests.transport import StateBroken, StateRefused, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SECONDS = 30.0
CONTROL_VARIABLE = "CONTRACT_CONTROL_TOKEN"
"""Where commands that are shown take the endpoint's token from, and where it is read from."""


class DriverError(RuntimeError):
    """The provider-state endpoint can't be used at all; the text says why and what to do."""


class HttpStates:
    """``POST <url> {"action": "setup", "state": ..., "params": ...}``; what is offered is what ``GET <url>`` lists."""

    def __init__(self, url: str, system: str, *, token: str | None = None, seconds: float = SECONDS) -> None:
        """Ask what is offered to a judge of ``system`` (its name). Raises :class:`DriverError`.

        ``token`` is what the endpoint asks for, sent as a bearer token.
        """
        self.url, self._system, self._seconds = url, system, seconds
        self._listeners: list[Callable[[str, int, bytes, str], None]] = []
        self._session = requests.Session()
        self._session.trust_env = False  # the build itself is not asked through a proxy, either
        self._session.headers["connection"] = "close"  # a build may drop idle connections between two long waits
        self._variables = {} if token is None else {token: CONTROL_VARIABLE}
        self._own = {} if token is None else {"authorization": f"Bearer {token}"}
        listed = self._listing()
        if listed.get("system") != system:
            raise DriverError(f"{url} sets up `{listed.get('system')}`, not `{system}`; name the endpoint of {system}")
        self.offered = frozenset(map(str, listed["states"]))
        self._broken: str | None = None
        """Why no further state is tried: one that hung would hang for every check that follows."""

    def _listing(self) -> dict[str, Any]:
        try:
            response = self._session.get(self.url, headers=self._own, timeout=self._seconds)
            if response.status_code in (401, 403):
                what = "refuses its token" if self._own else "asks for a token"
                mend = f"give it as {CONTROL_VARIABLE} or --control-token"
                raise DriverError(f"{self.url} {what} ({response.status_code}); {mend}")
            listed = response.json()
        except (requests.exceptions.JSONDecodeError, RecursionError):
            raise DriverError(f"{self.url} answers GET with no JSON; is it the provider-state endpoint?") from None
        except requests.RequestException as error:
            raise DriverError(f"{self.url} can't be reached: {_reason(error)}") from None
        if response.status_code != 200 or not isinstance(listed, dict) or not isinstance(listed.get("states"), list):
            what = f"{response.status_code} {response.text[:120]}"
            raise DriverError(f'{self.url} answers GET with {what}, not {{"system": ..., "states": [...]}}')
        return listed

    def listen(self, heard: Callable[[str, int, bytes, str], None]) -> None:
        """Tell each answer from here on; see :class:`contract_tests.transport.ProviderStates`."""
        self._listeners.append(heard)

    async def set_up(self, state: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Set up a state and return its values; see :class:`contract_tests.transport.ProviderStates`."""
        if state not in self.offered:
            raise CheckSkipped(f"needs the provider state {state}")
        if self._broken:
            raise SetUpFailed(self._broken)
        headers, content = state_command(self.url, state, params)
        headers |= self._own
        try:
            response = await asyncio.to_thread(
                self._session.post, self.url, data=content, headers=headers, timeout=self._seconds
            )
        except requests.RequestException as error:
            self._record(headers, content, None)
            self._broken = f"provider state {state}: {_reason(error)}"
            raise SetUpFailed(self._broken) from None
        self._record(headers, content, response)
        _learn(response)
        for heard in self._listeners:
            heard(state, response.status_code, response.content, CHECK.get())
        if response.status_code == 501:
            raise CheckSkipped(f"needs the provider state {state}, which the build lists but does not offer (501)")
        if response.status_code == 409:
            raise StateRefused(f"provider state {state}: refused (409) {response.text[:200]}")
        try:
            values = response.json()
        except (requests.exceptions.JSONDecodeError, RecursionError):
            values = None
        if response.status_code != 200 or values is None:
            kind = StateBroken if response.status_code >= 500 else SetUpFailed
            raise kind(f"provider state {state}: {response.status_code} {response.text[:200]}")
        return values_of(self._system, state, values)

    def _record(self, headers: dict[str, str], content: bytes, response: requests.Response | None) -> None:
        recorder = RECORDER.get(None)
        if recorder is not None:
            answer = None if response is None else (response.status_code, dict(response.headers), response.content)
            recorder.record("POST", self.url, headers, content, answer, variables=self._variables)


def _learn(response: requests.Response) -> None:
    """A credential's key is a secret from the moment that it is known, in whatever was and will be recorded."""
    recorder = RECORDER.get(None)
    try:
        key = response.json().get("apiKey")
    except (ValueError, AttributeError, RecursionError):
        return
    if recorder is not None and isinstance(key, str):
        recorder.redactor.add(key)


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "nobody listens there, or the connection broke"
    return type(error).__name__
