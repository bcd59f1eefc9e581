"""Faults of the hub's webhooks: which events are told, where, and what they say (HUB-WH-50 to 54, HUB-FIELD-24)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.app import iso
from mock_server.faults.edits import part
from mock_server.hub.accounts import ACCOUNTS
from mock_server.hub.api import HubApi
from mock_server.hub.entities import CALLBACK, DELIVERY
from mock_server.hub.nodes import Nodes
from mock_server.hub.webhooks import Webhooks
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from mock_server.calls import Answer, Call
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

DONE, FAILED, CANCELLED = "job.completed", "job.failed", "job.cancelled"

# What is told


class Silent(Webhooks):
    """Does not tell of some events."""

    silent: frozenset[str] = frozenset()

    async def send(self, row: Row, event: str, url: str, data: dict[str, Any], now: int, *, after: str | None) -> str:
        """Nothing is written down; what would wait for it waits for what it would have waited for."""
        if event in self.silent:
            return after or ""
        return await super().send(row, event, url, data, now, after=after or None)


class SilentWhenDone(Silent):
    """Does not tell that a job is done."""

    silent = frozenset({DONE})


class SilentWhenCancelled(Silent):
    """Takes the caller of a cancel to know of it."""

    silent = frozenset({CANCELLED})


class EveryFailure(Webhooks):
    """Tells of each failure, though a retry is to come."""

    async def tell(
        self, row: Row, event: str, detail: dict[str, Any], now: int, *, batch_finished: bool = False
    ) -> None:
        """Beside what is right."""
        url = await self.url(row)
        if row["status"] == "failed" and row["nextRetryAt"] is not None and url is not None:
            await self.send(row, FAILED, url, detail, now, after=None)
        await super().tell(row, event, detail, now, batch_finished=batch_finished)


class OnlyFirstAttempts(Webhooks):
    """Forgets to tell of a failure where attempts ran out."""

    async def tell(
        self, row: Row, event: str, detail: dict[str, Any], now: int, *, batch_finished: bool = False
    ) -> None:
        """Nothing of the last attempt of several."""
        if row["status"] != "failed" or row["attempt"] == 1:
            await super().tell(row, event, detail, now, batch_finished=batch_finished)


class CancelAgain(HubApi):
    """A cancel of a cancelled job, refused as it is, is told like the first."""

    async def operate(self, call: Call) -> Answer:
        """Tell before refusing."""
        hub: Hub = call.world.hub
        row = await hub.job(call.caller, call.path["jobId"])
        if call.operation_id == "cancelHubJob" and row is not None and row["status"] == "cancelled":
            url = await hub.webhooks.url(row)
            if url is not None:
                await hub.webhooks.send(row, CANCELLED, url, await hub.detail(row), await hub.settle(), after=None)
        return await super().operate(call)


class LateReport(Nodes):
    """The end of a round is told, whether or not its job was cancelled meanwhile."""

    async def _end(self, row: Row, now: int) -> None:
        url = await self.hub.webhooks.url(row)
        if row["status"] == "cancelled" and url is not None:
            detail = {**await self.hub.detail(row), "status": "done"}
            await self.hub.webhooks.send(row, DONE, url, detail, now, after=None)
        await super()._end(row, now)


class Body(Webhooks):
    """Writes another body."""

    async def send(self, row: Row, event: str, url: str, data: dict[str, Any], now: int, *, after: str | None) -> str:
        """As the reference, then the body is replaced; a try is made later, in a task."""
        id_ = await super().send(row, event, url, data, now, after=after)
        await self._set(id_, body=orjson.dumps(self.written(event, data, now)).decode())
        return id_

    def written(self, event: str, data: dict[str, Any], now: int) -> Any:
        """The body."""
        return {"type": event, "timestamp": iso(now), "data": data}


class SignsAnyway(Webhooks):
    """Signs with an empty secret where there is none."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        headers = super().headers(row, now)
        if "webhook-signature" not in headers:
            signed = f"{row['id']}.{now // 1000}.{row['body']}".encode()
            digest = hmac.new(b"", signed, hashlib.sha256).digest()
            headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
        return headers


class Bare(Body):
    """Sends the detail alone, the type in it."""

    def written(self, event: str, data: dict[str, Any], now: int) -> Any:
        """No envelope."""
        return {"event": event, "timestamp": iso(now), **data}


class EpochTimestamp(Body):
    """Writes the event's time as a number."""

    def written(self, event: str, data: dict[str, Any], now: int) -> Any:
        """Epoch milliseconds."""
        return {"type": event, "timestamp": now, "data": data}


class Thin(Body):
    """Tells no more than which job it is."""

    def written(self, event: str, data: dict[str, Any], now: int) -> Any:
        """Id, status and batch."""
        kept = ("id", "status", "batchId", "total", "counts")
        return {"type": event, "timestamp": iso(now), "data": {name: data[name] for name in kept if name in data}}


class OutrunsItsJob(HubApi):
    """A webhook is sent before its job's change is visible."""

    async def get_job(self, call: Call) -> Answer:
        """While a delivery of the job is on its way a GET shows it running."""
        row = await self.job(call)
        hub: Hub = call.world.hub
        detail = await hub.detail(row)
        open_ = [each for each in await hub.store.rows(DELIVERY) if each["jobId"] == row["id"]]
        if any(each["state"] == "sending" for each in open_):
            detail |= {"status": "running", "finishedAt": None, "durationMs": None, "result": None, "failure": None}
        return self.answered(call, 200, detail)


# Where to


class DefaultFirst(Webhooks):
    """The key's default goes before the job's own URL."""

    async def url(self, row: Row) -> str | None:
        """The default where there is one."""
        default = await self.hub.store.get(CALLBACK, row["account"])
        return default["url"] if default and default["url"] else await super().url(row)


class NoDefault(Webhooks):
    """Keys have no default."""

    async def url(self, row: Row) -> str | None:
        """The job's own URL alone."""
        url: str | None = row["callbackUrl"]
        return url


class OneDefault(Webhooks):
    """One default for all keys: the first one that was set."""

    async def url(self, row: Row) -> str | None:
        """Whoever's default there is."""
        for account in ACCOUNTS:
            default = await self.hub.store.get(CALLBACK, account)
            if row["callbackUrl"] is None and default and default["url"]:
                return str(default["url"])
        return await super().url(row)


FAULTS = [
    Mutant(
        "hub-webhook-not-when-done",
        "A job that is done is not told of",
        ("HUB-WH-50", "HUB-WH-01"),
        parts=part(webhooks=SilentWhenDone),
    ),
    Mutant(
        "hub-webhook-not-when-cancelled",
        "A job that is cancelled is not told of",
        ("HUB-WH-52",),
        parts=part(webhooks=SilentWhenCancelled),
    ),
    Mutant(
        "hub-webhook-of-every-failure",
        "A failure with a retry to come is told as final (SF-90)",
        ("HUB-WH-51",),
        parts=part(webhooks=EveryFailure),
    ),
    Mutant(
        "hub-webhook-not-of-the-last-attempt",
        "A failure is told only where it was the first attempt",
        ("HUB-WH-51",),
        parts=part(webhooks=OnlyFirstAttempts),
    ),
    Mutant(
        "hub-webhook-of-a-refused-cancel",
        "A cancel of a cancelled job is told again (SF-94)",
        ("HUB-WH-52",),
        parts=part(api=CancelAgain),
    ),
    Mutant(
        "hub-webhook-of-a-late-end",
        "What a node reports of a cancelled job is told (SF-97)",
        ("HUB-WH-50", "HUB-WH-52", "HUB-CANCEL-04"),
        parts=part(nodes=LateReport),
    ),
    Mutant(
        "hub-webhook-signs-anyway",
        "Without a secret webhooks are signed with an empty one",
        ("HUB-WH-64",),
        parts=part(webhooks=SignsAnyway),
    ),
    Mutant(
        "hub-webhook-bare",
        "The body is the detail without the envelope",
        ("HUB-WH-53", "HUB-WH-54"),
        parts=part(webhooks=Bare),
    ),
    Mutant(
        "hub-webhook-timestamp-in-the-body-is-a-number",
        "`timestamp` of the body is epoch milliseconds",
        ("HUB-WH-53",),
        parts=part(webhooks=EpochTimestamp),
    ),
    Mutant("hub-webhook-thin", "`data` is no more than id and status", ("HUB-WH-54",), parts=part(webhooks=Thin)),
    Mutant(
        "hub-webhook-outruns-its-job",
        "A GET in the receiver's handler shows the job running (SF-91)",
        ("HUB-WH-54",),
        parts=part(api=OutrunsItsJob),
    ),
    Mutant(
        "hub-webhook-default-first",
        "The key's default goes before the job's callbackUrl",
        ("HUB-FIELD-24",),
        parts=part(webhooks=DefaultFirst),
    ),
    Mutant("hub-webhook-no-default", "Keys have no default callback", ("HUB-AUTH-02",), parts=part(webhooks=NoDefault)),
    Mutant(
        "hub-webhook-one-default",
        "One default callback for all keys",
        ("HUB-AUTH-02",),
        parts=part(webhooks=OneDefault),
    ),
]
