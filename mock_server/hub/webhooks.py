"""Webhooks: written down when their event happens, delivered by tasks of their own, repeated by the world's clock."""

from __future__ import annotations

import asyncio
import base64
import functools
import secrets
import ssl
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import standardwebhooks

from mock_server.app import iso
from mock_server.hub.entities import CALLBACK, DELIVERY, JOB
from mock_server.ports import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.agenda import Item
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

BATCH = "batch.completed"
_PREFIX = "whsec_"
"""What begins a secret that is base64 (HUB-WH-63)."""
_GRACE = 1.0
"""Real seconds that a delivery in flight gets before the clock is moved on."""
_TRY = 1_500
_OPEN = ("waiting", "due", "sending")


@dataclass
class _Flight:
    """A try on its way."""

    task: asyncio.Task[None]
    limit: Item | None
    began: float = field(default_factory=time.monotonic)


class Webhooks:
    """All deliveries of a hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.timeout: int = hub.constants["webhookTimeout"]
        self.retries: list[int] = hub.constants["webhookRetries"]
        self._flights: dict[str, _Flight] = {}
        self._last: dict[str, str] = {}
        """The latest open delivery of each job: the next one waits for it (HUB-WH-70)."""
        self._waiting: dict[str, list[str]] = {}
        self._client: httpx.AsyncClient | None = None

    def allowed(self, url: str) -> bool:
        """Whether webhooks may go to a URL: http(s), to a loopback host or one that was named (HUB-WH-71)."""
        return self.allowed_host(url) and httpx.URL(url).scheme in ("http", "https")

    def allowed_host(self, url: str) -> bool:
        """Whether a URL's host and port are allowed; of a submission the specification asks for the scheme."""
        try:
            parts = httpx.URL(url)  # as the client that delivers reads it: no other reading counts
        except httpx.InvalidURL:
            return False
        host = parts.host.lower()
        reachable = parts.port is None or parts.port < 2**16
        return reachable and (is_loopback(host) or host in self.hub.options.allowed_hosts)

    # Events

    async def tell(
        self, row: Row, event: str, detail: dict[str, Any], now: int, *, batch_finished: bool = False
    ) -> None:
        """Write down what has to be told of a change of a job (HUB-WH-50 to 56)."""
        own = None
        if self.hub.shapes.is_final(row):
            url = await self.url(row)
            if url is not None:
                own = await self.send(row, event, url, detail, now, after=self._last.get(row["id"]))
                self._last[row["id"]] = own
        if batch_finished:
            jobs = await self.hub.batch(row["account"], row["batchId"])
            urls = dict.fromkeys([await self.url(job) for job in jobs])
            summary = self.hub.build.summaries.summary(row["batchId"], jobs)
            for url in urls:
                if url is not None:
                    await self.send(row, BATCH, url, summary, now, after=own)

    async def url(self, row: Row) -> str | None:
        """Where a job's events go: to its own URL, else to the key's default (HUB-FIELD-24, HUB-AUTH-02)."""
        if row["callbackUrl"] is not None:
            return str(row["callbackUrl"])
        default = await self.hub.store.get(CALLBACK, row["account"])
        return default["url"] if default else None

    async def send(self, row: Row, event: str, url: str, data: dict[str, Any], now: int, *, after: str | None) -> str:
        """Write down one event for one URL, its body as it is now (HUB-WH-68); tried at once or ``after`` another."""
        id_ = f"msg_{secrets.token_hex(12)}"
        body = orjson.dumps({"type": event, "timestamp": iso(now), "data": data}).decode()
        job = row["id"] if event != BATCH else None
        delivery = {"id": id_, "account": row["account"], "jobId": job, "batchId": row["batchId"], "url": url}
        delivery |= {"type": event, "body": body, "at": now, "tries": 0, "nextTryAt": None, "after": after}
        await self.hub.engine.replace(DELIVERY, {**delivery, "state": "waiting"})
        if after is None:
            await self._due(id_, now)
        else:
            self._waiting.setdefault(after, []).append(id_)
        return id_

    # Tries

    async def _due(self, id_: str, instant: int) -> None:
        await self._set(id_, state="due", nextTryAt=instant)

        async def start(_: int) -> None:
            await self._start(id_)

        self.hub.agenda.add(instant, _TRY, start)

    async def _start(self, id_: str) -> None:
        row = await self._set(id_, state="sending")
        now = self.hub.clock.now()

        async def give_up(_: int) -> None:
            await self._too_late(id_)

        limit = self.hub.agenda.add(now + self.timeout, _TRY, give_up)
        task = asyncio.get_running_loop().create_task(self._try(row, now))
        self._flights[id_] = _Flight(task, limit)

    async def _too_late(self, id_: str) -> None:
        """A try was not answered in time; it has had the second of real time that it gets at least."""
        flight = self._flights.get(id_)
        if flight is None:
            return
        missing = _GRACE - (time.monotonic() - flight.began)
        rate = self.hub.clock.rate
        if missing > 0 and rate > 0:

            async def again(_: int) -> None:
                await self._too_late(id_)

            flight.limit = self.hub.agenda.add(self.hub.clock.now() + int(missing * 1000 * rate) + 1, _TRY, again)
            return
        del self._flights[id_]
        flight.task.cancel()
        await self._ended(id_, accepted=False)

    async def _try(self, row: Row, now: int) -> None:
        try:
            status = await self.post(row["url"], self.headers(row, now), row["body"].encode())
            accepted = 200 <= status < 300
        except Exception:  # whatever it was, nobody took the event
            accepted = False
        flight = self._flights.pop(row["id"], None)
        if flight is not None:
            self.hub.agenda.drop(flight.limit)
            await self._ended(row["id"], accepted=accepted)
            await self.hub.done()

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """The headers of one try, signed as Standard Webhooks say (HUB-WH-59 to 64)."""
        moment = datetime.fromtimestamp(now // 1000, UTC)
        headers = {
            "content-type": "application/json",
            "webhook-id": row["id"],
            "webhook-timestamp": str(now // 1000),
        }
        secret = self.hub.options.webhook_secret
        if secret is not None:
            headers["webhook-signature"] = _signer(secret).sign(row["id"], moment, row["body"])
        return headers

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """Send; the answer's status. Its body is not read, a redirect not followed (HUB-WH-69)."""
        if self._client is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
            self._client = httpx.AsyncClient(verify=_tls(), trust_env=False, timeout=None, limits=limits)  # noqa: S113 - by the world's clock
        async with self._client.stream("POST", url, headers=headers, content=content) as response:
            return response.status_code

    async def _ended(self, id_: str, *, accepted: bool) -> None:
        """A try is over: taken, to be repeated, or given up (HUB-WH-65 to 67)."""
        row = await self.hub.store.get(DELIVERY, id_)
        if row is None:
            return
        now, tries = self.hub.clock.now(), row["tries"] + 1
        row = await self._set(id_, tries=tries)
        if not accepted and tries <= len(self.retries):
            await self._due(id_, now + self.retries[tries - 1])
            return
        await self._set(id_, state="accepted" if accepted else "given-up", nextTryAt=None)
        if row["jobId"] is not None and self._last.get(row["jobId"]) == id_:
            del self._last[row["jobId"]]
        for next_ in self._waiting.pop(id_, ()):
            await self._due(next_, now)

    async def _set(self, id_: str, **columns: Any) -> Row:
        row = await self.hub.store.get(DELIVERY, id_)
        if row is None:
            raise KeyError(id_)
        row = {**row, **columns}
        await self.hub.engine.replace(DELIVERY, row)
        return row

    # The world

    async def quiet(self) -> None:
        """Wait for the tries that are on their way, at most a second of real time each."""
        while self._flights:
            now = time.monotonic()
            left = {flight.task: _GRACE - (now - flight.began) for flight in self._flights.values()}
            young = {task: seconds for task, seconds in left.items() if seconds > 0}
            if not young:
                return
            await asyncio.wait(young, timeout=min(young.values()), return_when=asyncio.FIRST_COMPLETED)

    def stop(self) -> None:
        """Break off every try."""
        for flight in self._flights.values():
            flight.task.cancel()
        self._flights.clear()
        self._waiting.clear()
        self._last.clear()
        if self._client is not None:
            client, self._client = self._client, None
            _CLOSING.add(task := asyncio.get_running_loop().create_task(client.aclose()))
            task.add_done_callback(_CLOSING.discard)

    async def rebuild(self) -> None:
        """From rows alone: a try that was on its way is made again."""
        for row in await self.hub.store.rows(DELIVERY):
            if row["state"] not in _OPEN:
                continue
            if row["jobId"] is not None and await self.hub.store.get(JOB, row["jobId"]) is not None:
                self._last[row["jobId"]] = row["id"]
            before = row["after"] and await self.hub.store.get(DELIVERY, row["after"])
            if before and before["state"] in _OPEN:
                self._waiting.setdefault(before["id"], []).append(row["id"])
            else:
                await self._due(row["id"], row["nextTryAt"] or self.hub.clock.now())


def sound_secret(secret: str) -> bool:
    """Whether webhooks can be signed with a secret (HUB-WH-63)."""
    try:
        if secret.startswith(_PREFIX):
            base64.b64decode(secret.removeprefix(_PREFIX), validate=True)  # the library passes over what is none
        _signer(secret)
    except Exception:  # the library's own for an empty one, that of base64 for any other
        return False
    return True


def _signer(secret: str) -> standardwebhooks.Webhook:
    return standardwebhooks.Webhook(secret if secret.startswith(_PREFIX) else secret.encode())


_CLOSING: set[asyncio.Task[None]] = set()


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
