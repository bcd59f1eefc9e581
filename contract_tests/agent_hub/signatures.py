"""Signatures of webhooks by the letters of Standard Webhooks, written from the rules (HUB-WH-59 to HUB-WH-64)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import TYPE_CHECKING

from contract_tests.checks import about, expect

if TYPE_CHECKING:
    from contract_tests.agent_hub.receiver import Delivery

PREFIX = "whsec_"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


def secret_bytes(secret: str) -> bytes:
    """The key of a secret: base64 behind ``whsec_``, otherwise the UTF-8 bytes of its text (HUB-WH-63).

    Raises ``ValueError`` where what stands behind ``whsec_`` is no base64.
    """
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"what stands behind {PREFIX} is no base64: {error}") from None


def signature(secret: str, id_: str, timestamp: str, body: bytes) -> str:
    """``v1,`` and the base64 of HMAC-SHA256 over ``id.timestamp.body``."""
    signed = f"{id_}.{timestamp}.".encode() + body
    digest = hmac.new(secret_bytes(secret), signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def judge_signature(delivery: Delivery, secret: str | None) -> None:
    """A delivery has the three headers and one good signature among its signatures; without a secret it has none.

    How old the timestamp is, is not asked here: it is by the build's clock (HUB-WH-62).
    """
    sent = delivery.headers
    for name in HEADERS[:2]:
        with about("HUB-WH-59"):
            expect(bool(sent.get(name)), f"the header {name}", sent.get(name, "left out"), name)
    with about("HUB-WH-59"):
        good = sent["webhook-timestamp"].isascii() and sent["webhook-timestamp"].isdecimal()
        expect(good, "webhook-timestamp, whole seconds since 1970", sent["webhook-timestamp"], "webhook-timestamp")
    if secret is None:
        with about("HUB-WH-64"):
            came = sent.get("webhook-signature")
            expect(came is None, "no signature without a secret", str(came), "webhook-signature")
        return
    came = sent.get("webhook-signature", "")
    wanted = signature(secret, sent["webhook-id"], sent["webhook-timestamp"], delivery.body)
    with about("HUB-WH-59", "HUB-WH-63"):
        good = any(hmac.compare_digest(one.encode(), wanted.encode()) for one in came.split(" "))
        expect(good, f"{wanted} among the signatures", came or "none", "webhook-signature")
