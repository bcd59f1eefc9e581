"""The mock of a run: one server, a world with a port of its own for each scenario, and its control plane."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpx
import orjson

from conformance.reference import serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

ENTRIES = 20_000
"""Exchanges of one scenario that are recorded; a Runtime that makes more is out of its mind, and its scenario ends."""
BYTES = 64 * 2**20
"""Of one scenario's recording, the same."""
_SECONDS = 30.0


class MockFailed(RuntimeError):  # noqa: N818
    """The mock refused what a scenario asked of it, or did not answer; the text says what."""

    def __init__(self, text: str, status: int = 0) -> None:
        """``status``: of the refusal; 0 where none came."""
        super().__init__(text)
        self.status = status


class TooMuch(RuntimeError):  # noqa: N818
    """The Runtime made more requests than are recorded."""


class MockWorld:
    """One world, by its own port. What was read of its journal is kept in ``entries``, exchanges as HAR has them."""

    def __init__(self, client: httpx.AsyncClient, told: Mapping[str, Any]) -> None:
        """``told``: the world as the control plane shows it."""
        self.client = client
        """Of all scenarios; it keeps no cookies."""
        self.id: str = told["id"]
        self.path: str = told["path"]
        """By this the recording knows the world."""
        self.base_url: str = told["baseUrl"]
        self.archive: dict[str, Any] = {"version": "1.2", "creator": {"name": "contract", "version": ""}}
        """What stands in the archive's ``log`` beside the exchanges."""
        self.entries: list[dict[str, Any]] = []
        self._bytes = 0
        self._reading = asyncio.Lock()

    async def control(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the world's control plane; the answer's body. Raises :class:`MockFailed`."""
        content = await _ask(self.client, method, f"{self.base_url}/__control__/{path}", body)
        return orjson.loads(content) if content else None

    async def state(self, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Set up a provider state of the Runtime API; its values. Raises :class:`MockFailed`."""
        body = {"action": "setup", "state": name, "params": dict(params)}
        values: dict[str, Any] = await self.control("POST", "provider-states/runtime-api", body)
        return values

    async def met(self) -> bool:
        """Whether a fault plan met a request: a hint of requests that hang, which the journal tells when they end."""
        return any(plan["applied"] for plan in (await self.control("GET", "faults"))["faults"])

    async def read(self) -> int:
        """Read what the journal has more; how many exchanges. Raises :class:`MockFailed`, :class:`TooMuch`."""
        async with self._reading:
            since = self.entries[-1]["_number"] if self.entries else 0
            content = await _ask(self.client, "GET", f"{self.base_url}/__control__/journal/har?since={since}")
            told = orjson.loads(content)
            found: list[dict[str, Any]] = told["log"].pop("entries")
            self.archive = told["log"]
            self.entries += found
            self._bytes += len(content)
            if len(self.entries) > ENTRIES or self._bytes > BYTES:
                bound = f"{ENTRIES} requests" if len(self.entries) > ENTRIES else f"{BYTES} bytes of recording"
                raise TooMuch(f"the Runtime made more than {bound}: what came later was not recorded")
            if found and found[0]["_number"] != since + 1:
                raise TooMuch(f"the Runtime was faster than its recording: exchanges {since + 1} and later are missing")
            return len(found)


class Mock:
    """A mock that serves."""

    def __init__(self, client: httpx.AsyncClient, base_url: str) -> None:
        self._client, self._base_url = client, base_url

    async def world(self, **options: Any) -> MockWorld:
        """Make a world. Raises :class:`MockFailed`."""
        told = await _ask(self._client, "POST", f"{self._base_url}/__control__/worlds", options)
        return MockWorld(self._client, orjson.loads(told))

    async def drop(self, world: MockWorld) -> None:
        """Drop a world with its port. Raises :class:`MockFailed`."""
        await _ask(self._client, "DELETE", f"{self._base_url}/__control__/worlds/{world.id}")


@contextlib.asynccontextmanager
async def mock(options: Iterable[str] = ()) -> AsyncIterator[Mock]:
    """Start a mock in real time for the length of the block. Raises :class:`~conformance.reference.ReferenceFailed`."""
    keys = {"CONTRACT_API_KEY": secrets.token_hex(16), "CONTRACT_HUB_TOKEN": secrets.token_hex(16)}
    bounds = ("--journal-entries", str(ENTRIES), "--journal-bytes", str(BYTES))
    with serve(keys, *bounds, *options) as base_url:
        # Ours alone, and to this machine: no proxy of the user's stands between.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        none = CookieJar(DefaultCookiePolicy(allowed_domains=[]))  # to cookies all ports of a host are one
        async with httpx.AsyncClient(trust_env=False, timeout=_SECONDS, limits=limits, cookies=none) as client:
            yield Mock(client, base_url)


async def _ask(client: httpx.AsyncClient, method: str, url: str, body: Any = None) -> bytes:
    try:
        answer = await client.request(method, url, json=body)
    except httpx.HTTPError as error:
        raise MockFailed(f"the mock did not answer {method} {_path(url)}: {type(error).__name__} {error}") from None
    if answer.is_error:
        status = answer.status_code
        raise MockFailed(f"the mock refused {method} {_path(url)}: {status} {_reason(answer)}", status)
    return answer.content


def _path(url: str) -> str:
    return httpx.URL(url).path


def _reason(answer: httpx.Response) -> str:
    try:
        told = answer.json()
        return str(told.get("message") or told.get("error") or told)[:1000]
    except (ValueError, AttributeError):
        return answer.text[:300]
