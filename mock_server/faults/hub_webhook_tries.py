"""Faults of the hub's webhooks: tries that are repeated, and signatures (HUB-WH-59, 60, 62, 63, 65 to 70)."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import standardwebhooks

from mock_server.faults.edits import machine, part
from mock_server.hub.entities import DELIVERY, JOB
from mock_server.hub.webhooks import BATCH, Webhooks
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.store import Row

DONE, FAILED, CANCELLED = "job.completed", "job.failed", "job.cancelled"

# Tries


class IdPerTry(Webhooks):
    """Each try has an id of its own."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """A new id."""
        return super().headers({**row, "id": f"{row['id']}_{secrets.token_hex(4)}"}, now)


class BodyPerTry(Webhooks):
    """Each try tells how the job is by then."""

    async def _start(self, id_: str) -> None:
        row = await self.hub.store.get(DELIVERY, id_)
        job = await self.hub.store.get(JOB, row["jobId"]) if row and row["jobId"] else None
        if row is not None and job is not None:
            body = {**orjson.loads(row["body"]), "data": await self.hub.detail(job)}
            await self._set(id_, body=orjson.dumps(body).decode())
        await super()._start(id_)


class TimestampOfTheEvent(Webhooks):
    """Every try says when the event happened."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """Not when it is made."""
        return super().headers(row, row["at"])


class AnyAnswer(Webhooks):
    """Whatever is answered, is an acceptance."""

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """A success."""
        await super().post(url, headers, content)
        return 200


class RedirectTaken(Webhooks):
    """Takes an answer below 400 for an acceptance."""

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """A success."""
        status = await super().post(url, headers, content)
        return 200 if status < 400 else status


class BrokenIsGone(Webhooks):
    """Gives up at once where the connection breaks."""

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """A success, since nobody can tell whether it was taken."""
        try:
            return await super().post(url, headers, content)
        except Exception:
            return 200


class LateIsGone(Webhooks):
    """Takes a try that is not answered in time for taken."""

    async def _ended(self, id_: str, *, accepted: bool) -> None:
        row = await self.hub.store.get(DELIVERY, id_)
        late = row is not None and self.hub.clock.now() - (row["nextTryAt"] or row["at"]) >= self.timeout
        await super()._ended(id_, accepted=accepted or late)


class FromItsStart(Webhooks):
    """Counts the time to the next try from the start of the one before."""

    async def _due(self, id_: str, instant: int) -> None:
        row = await self.hub.store.get(DELIVERY, id_)
        if row is not None and row["tries"]:
            instant = row["nextTryAt"] + self.retries[row["tries"] - 1]
        await super()._due(id_, instant)


class Follows(Webhooks):
    """Follows redirects, as HTTP clients do by default."""

    async def post(self, url: str, headers: Mapping[str, str], content: bytes) -> int:
        """To wherever it leads."""
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as client:
            answer = await client.post(url, headers=dict(headers), content=content)
        return answer.status_code


class NoOrder(Webhooks):
    """Sends each event when it happens, whether or not an earlier one of the job is still to be repeated."""

    async def send(self, row: Row, event: str, url: str, data: dict[str, Any], now: int, *, after: str | None) -> str:
        """A job's own event waits for nothing."""
        return await super().send(row, event, url, data, now, after=after if event == BATCH else None)


# Signatures


class Unsigned(Webhooks):
    """Does not sign."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """Without the signature."""
        return {name: value for name, value in super().headers(row, now).items() if name != "webhook-signature"}


class Signs(Webhooks):
    """Signs in another way."""

    def headers(self, row: Row, now: int) -> dict[str, str]:
        """With another signature."""
        headers = super().headers(row, now)
        if self.hub.options.webhook_secret is not None:
            headers["webhook-signature"] = self.signed(self.hub.options.webhook_secret, row, now)
        return headers

    def signed(self, secret: str, row: Row, now: int) -> str:
        """The signature."""
        raise NotImplementedError


def _sign(key: str | bytes, id_: str, now: int, body: str) -> str:
    return standardwebhooks.Webhook(key).sign(id_, datetime.fromtimestamp(now // 1000, UTC), body)


class SignsOnce(Signs):
    """Signs when the event happens, and sends that signature with every try."""

    def signed(self, secret: str, row: Row, now: int) -> str:
        """Over the event's time."""
        return _sign(secret, row["id"], row["at"], row["body"])


class SecretAsText(Signs):
    """Takes the text of the secret, whatever it begins with."""

    def signed(self, secret: str, row: Row, now: int) -> str:
        """By the letters of ``whsec_`` and base64."""
        return _sign(secret.encode(), row["id"], now, row["body"])


class SignsParsed(Signs):
    """Signs another text of the same JSON than it sends."""

    def signed(self, secret: str, row: Row, now: int) -> str:
        """Keys in order."""
        body = orjson.dumps(orjson.loads(row["body"]), option=orjson.OPT_SORT_KEYS).decode()
        return _sign(secret, row["id"], now, body)


FAULTS = [
    Mutant(
        "hub-webhook-id-per-try",
        "Each try has a webhook-id of its own (SF-92)",
        ("HUB-WH-60",),
        parts=part(webhooks=IdPerTry),
    ),
    Mutant(
        "hub-webhook-body-per-try",
        "The body is made anew for each try (SF-92)",
        ("HUB-WH-68",),
        parts=part(webhooks=BodyPerTry),
    ),
    Mutant(
        "hub-webhook-timestamp-of-the-event",
        "webhook-timestamp is the event's (SF-95)",
        ("HUB-WH-62",),
        parts=part(webhooks=TimestampOfTheEvent),
    ),
    Mutant("hub-webhook-any-answer", "Any answer is an acceptance", ("HUB-WH-65",), parts=part(webhooks=AnyAnswer)),
    Mutant("hub-webhook-redirect-taken", "A 3xx is an acceptance", ("HUB-WH-65",), parts=part(webhooks=RedirectTaken)),
    Mutant(
        "hub-webhook-broken-is-gone",
        "A connection that breaks is not tried again",
        ("HUB-WH-65",),
        parts=part(webhooks=BrokenIsGone),
    ),
    Mutant(
        "hub-webhook-late-is-gone",
        "A try that is not answered in time is not repeated",
        ("HUB-WH-65",),
        parts=part(webhooks=LateIsGone),
    ),
    Mutant(
        "hub-webhook-patient",
        "A try may take 30 s",
        ("HUB-WH-65", "HUB-WH-66"),
        edit=machine("constants", "webhookTimeout", "seconds", value=30),
    ),
    Mutant(
        "hub-webhook-first-repetition-late",
        "The first repetition comes after 10 s",
        ("HUB-WH-66",),
        edit=machine("constants", "webhookRetries", "seconds", value=[10, 30, 120, 600]),
    ),
    Mutant(
        "hub-webhook-last-repetition-early",
        "The last repetition comes after 5 min",
        ("HUB-WH-66",),
        edit=machine("constants", "webhookRetries", "seconds", value=[5, 30, 120, 300]),
    ),
    Mutant(
        "hub-webhook-from-the-start",
        "Repetitions are counted from the start of the try before",
        ("HUB-WH-66",),
        parts=part(webhooks=FromItsStart),
    ),
    Mutant(
        "hub-webhook-three-repetitions",
        "Given up after the third repetition",
        ("HUB-WH-66", "HUB-WH-67"),
        edit=machine("constants", "webhookRetries", "seconds", value=[5, 30, 120]),
    ),
    Mutant(
        "hub-webhook-five-repetitions",
        "Given up after the fifth repetition",
        ("HUB-WH-67",),
        edit=machine("constants", "webhookRetries", "seconds", value=[5, 30, 120, 600, 1800]),
    ),
    Mutant("hub-webhook-follows", "Redirects are followed", ("HUB-WH-69", "HUB-WH-65"), parts=part(webhooks=Follows)),
    Mutant(
        "hub-webhook-no-order",
        "An event does not wait for an earlier one of its job",
        ("HUB-WH-70",),
        parts=part(webhooks=NoOrder),
    ),
    Mutant("hub-webhook-unsigned", "Nothing is signed", ("HUB-WH-59",), parts=part(webhooks=Unsigned)),
    Mutant(
        "hub-webhook-signed-once",
        "Repeated tries have the first one's signature (SF-95)",
        ("HUB-WH-59",),
        parts=part(webhooks=SignsOnce),
    ),
    Mutant(
        "hub-webhook-signs-parsed-json",
        "Another text of the same JSON is signed",
        ("HUB-WH-59",),
        parts=part(webhooks=SignsParsed),
    ),
    Mutant(
        "hub-webhook-secret-as-text",
        "A secret that begins with whsec_ is not read as base64",
        ("HUB-WH-63", "HUB-WH-59"),
        parts=part(webhooks=SecretAsText),
    ),
]
