"""Provider states over HTTP, as Pact's provider-state convention has them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import requests

from conformance.recording import RECORDER, state_command
from contract_tests.checks import CheckSkipped, SetUpFailed
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 30.0


class DriverError(RuntimeError):
    """The provider-state endpoint can't be used at all; the text says why and what to do."""


class HttpStates:
    """``POST <url> {"action": "setup", "state": ..., "params": ...}``; what is offered is what ``GET <url>`` lists."""

    def __init__(self, url: str, *, system: str = "runtime-api", seconds: float = SECONDS) -> None:
        """Ask what is offered. Raises :class:`DriverError`."""
        self.url, self._seconds = url, seconds
        self._session = requests.Session()
        listed = self._listing()
        if listed.get("system") != system:
            raise DriverError(f"{url} sets up `{listed.get('system')}`, not `{system}`; name the endpoint of {system}")
        self.offered = frozenset(map(str, listed["states"]))

    def _listing(self) -> dict[str, Any]:
        try:
            response = self._session.get(self.url, timeout=self._seconds)
            listed = response.json()
        except requests.exceptions.JSONDecodeError:
            raise DriverError(f"{self.url} answers GET with no JSON; is it the provider-state endpoint?") from None
        except requests.RequestException as error:
            raise DriverError(f"{self.url} can't be reached: {_reason(error)}") from None
        if response.status_code != 200 or not isinstance(listed, dict) or not isinstance(listed.get("states"), list):
            what = f"{response.status_code} {response.text[:120]}"
            raise DriverError(f'{self.url} answers GET with {what}, not {{"system": ..., "states": [...]}}')
        return listed

    async def set_up(self, state: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Set up a state and return its values; see :class:`contract_tests.transport.ProviderStates`."""
        if state not in self.offered:
            raise CheckSkipped(f"needs the provider state {state}")
        headers, content = state_command(self.url, state, params)
        try:
            response = await asyncio.to_thread(
                self._session.post, self.url, data=content, headers=headers, timeout=self._seconds
            )
        except requests.RequestException as error:
            self._record(headers, content, None)
            raise SetUpFailed(f"provider state {state}: {_reason(error)}") from None
        self._record(headers, content, response)
        if response.status_code == 501:
            raise CheckSkipped(f"needs the provider state {state}, which the build lists but does not offer (501)")
        if response.status_code == 409:
            raise StateRefused(response.text[:200])
        try:
            values = response.json()
        except requests.exceptions.JSONDecodeError:
            values = None
        if response.status_code != 200 or not isinstance(values, dict):
            raise SetUpFailed(f"provider state {state}: {response.status_code} {response.text[:200]}")
        return values

    def _record(self, headers: dict[str, str], content: bytes, response: requests.Response | None) -> None:
        recorder = RECORDER.get(None)
        if recorder is not None:
            answer = None if response is None else (response.status_code, dict(response.headers), response.content)
            recorder.record("POST", self.url, headers, content, answer)


def _reason(error: requests.RequestException) -> str:
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):
        return "nobody listens there, or the connection broke"
    return type(error).__name__
