"""What parts of a hub may do otherwise, as layers over the reference's parts (``mutants.HubParts``)."""

from __future__ import annotations

import asyncio
import base64
import random
import secrets
import uuid
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mock_server.app import iso
from mock_server.hub.entities import JOB

if TYPE_CHECKING:
    from collections.abc import Mapping

# mypy: disable-error-code="misc"


class Ids:
    """Ids of another form."""

    @staticmethod
    def make() -> str:
        raise NotImplementedError


class _Uuid(Ids):
    @staticmethod
    def make() -> str:
        return str(uuid.uuid4()).upper()


class _Long(Ids):
    """128 characters, each of which a `batchId` may have."""

    @staticmethod
    def make() -> str:
        return (secrets.token_hex(8) + "._:-AZaz09" * 16)[:128]


class _Encoded(Ids):
    """Characters that have to be percent-encoded in a path, and what looks encoded and is not."""

    @staticmethod
    def make() -> str:
        return f'job {secrets.token_hex(6)} %41+"é作业<>#?[]{{}}|^`\N{ROCKET}'


class _JobIds(Ids):
    def rows(self: Any, *arguments: Any) -> list[dict[str, Any]]:
        return [{**row, "id": self.make()} for row in super().rows(*arguments)]


class _BatchIds(Ids):
    def judge(self: Any, *arguments: Any) -> tuple[str, Any]:
        batch_id, items = super().judge(*arguments)
        return batch_id or f"batch_{self.make()}"[:128], items


class _Sessions(Ids):
    def new_session(self: Any, _: Any) -> str:
        return str(self.make())


class UuidJobs(_JobIds, _Uuid, _BatchIds):
    """Jobs and batches."""


class UuidSessions(_Sessions, _Uuid):
    """Sessions."""


class LongIds(_JobIds, _Long, _BatchIds):
    """Jobs and batches."""


class LongSessions(_Sessions, _Long):
    """Sessions."""


class EncodedIds(_JobIds, _Encoded):
    """Jobs."""


class RequestIds:
    """Behind `req_` stands whatever tells requests apart."""

    def judge(self: Any, path: str, headers: Any, exchange: Any) -> None:
        exchange.request_id = f"req_{uuid.uuid4()}/{secrets.token_urlsafe(30)}=:.~"
        super().judge(path, headers, exchange)


class KeptResult:
    """A round that failed leaves what it got done."""

    def field(self: Any, name: str, row: Any, node: Any) -> Any:
        if name == "result" and row["status"] == "failed":
            usage = {"inputTokens": 1, "outputTokens": 0}
            return {"summary": "half of it", "producedFiles": ["a.md"], "usage": usage, "iterations": 1, "toolCalls": 0}
        return super().field(name, row, node)


class SeenNow:
    """A node that is connected was seen just now."""

    def last_seen(self: Any, node: Any, now: int) -> str:
        return iso(now) if node["online"] else str(super().last_seen(node, now))


class ReportsAtItsStart:
    """A round reports progress with its end, even where that is its start."""

    async def _end(self: Any, row: Any, now: int) -> None:
        if row["roundStartedAt"] == now:
            await self._tell(row["id"], {}, now)
        await super()._end(row, now)


class Halves:
    """Halves are rounded the other way than the reference does: of averages to even, of shares up."""

    def average(self: Any, jobs: Any) -> int | None:
        durations = [self.shapes.field("durationMs", row, None) for row in jobs if row["status"] == "done"]
        return round(Fraction(sum(durations), len(durations))) if durations else None

    def progress(self: Any, counts: Mapping[str, int], total: int) -> float:
        share = Decimal(counts["done"] + counts["failed"] + counts["cancelled"]) / total
        return float(share.quantize(Decimal("0.0001"), ROUND_HALF_UP))


class NumbersOfJavaScript:
    """`metadata` was read and written with numbers of 64 bits: large ones lose precision, `1.0` is 1."""

    def filled(self: Any, item: Mapping[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = super().filled(item)
        return {**filled, **({"metadata": _read(filled["metadata"])} if "metadata" in filled else {})}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _read(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_read(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) < 1e21 else number
    return value


class PlacesOverAllKeys:
    """`queuedAt` is one of its own over the jobs of all keys."""

    @staticmethod
    async def next_place(hub: Any, _: str, now: int) -> int:
        return max([now, *(row["queuedAt"] + 1 for row in await hub.store.rows(JOB))])


class InProgress:
    """While a submission is worked on, another one under its `Idempotency-Key` is refused."""

    async def submit(self: Any, call: Any) -> Any:
        working = self.__dict__.setdefault("working", set())
        key = (call.caller, call.headers.get(b"idempotency-key"))
        if key in working:
            raise self.refusal("idempotency_in_progress")
        working.add(key) if key[1] is not None else None
        try:
            await asyncio.sleep(0.01)
            return await super().submit(call)
        finally:
            working.discard(key)


class LateSweeper:
    """Where time flows, a sweeper does what is due, a little late; nothing else does. Moving the clock does it all."""

    period = 0.4
    """Seconds of real time by which the sweeper may be late."""
    _sweeping: asyncio.Task[None] | None = None

    async def settle(self: Any, fired: Any = None) -> int:
        if fired is not None:
            return int(await super().settle(fired))
        if self._sweeping is None or self._sweeping.done():
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
        return int(self.clock.now())

    async def _sweep(self: Any) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.2, 1) * self.period)
            await super().settle()


class LateWebhooks:
    """A try begins a moment of real time after it is due, whatever else happens; moving the clock waits for it."""

    late = 0.15
    waits = True
    _begun: set[asyncio.Task[None]]

    async def _start(self: Any, id_: str) -> None:
        begun = self.__dict__.setdefault("_begun", set())
        task = asyncio.get_running_loop().create_task(self._later(id_, super()._start))
        begun.add(task)
        task.add_done_callback(begun.discard)

    async def _later(self: Any, id_: str, start: Any) -> None:
        await asyncio.sleep(self.late)
        if await self.hub.store.get("WebhookDelivery", id_) is not None:  # not after a reset
            await start(id_)
            await self.hub.done()

    async def quiet(self: Any) -> None:
        while self.waits and (begun := self.__dict__.get("_begun")):
            await asyncio.wait(list(begun))
        await super().quiet()


class LaterWebhooks(LateWebhooks):
    """More than a second late; nothing waits for them."""

    late = 1.2
    waits = False


class MoreSignatures:
    """A secret that is being replaced: a signature by the old one stands before that by the new one."""

    def headers(self: Any, row: Any, now: int) -> dict[str, str]:
        headers: dict[str, str] = super().headers(row, now)
        if "webhook-signature" in headers:
            old = f"v1,{base64.b64encode(bytes(32)).decode()} v1a,{base64.b64encode(bytes(64)).decode()}"
            headers["webhook-signature"] = f"{old} {headers['webhook-signature']}"
        return headers
