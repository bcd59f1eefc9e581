"""Signatures of webhooks by the letters of Standard Webhooks, written from the rules (HUB-WH-59 to HUB-WH-64)."""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
from typing import TYPE_CHECKING

from contract_tests.checks import about, expect

if TYPE_CHECKING:
    from contract_tests.agent_hub.receiver import Delivery

PREFIX = "whsec_"
HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")

NO_SECRETS = (b"", b"null", b"undefined", b"None", b"nil", b"false", PREFIX.encode())
"""What a secret that is not there turns into where it is used all the same."""


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
    return signature_by(secret_bytes(secret), id_, timestamp, body)


def signature_by(key: bytes, id_: str, timestamp: str, body: bytes) -> str:
    """The same with a secret's key."""
    signed = f"{id_}.{timestamp}.".encode() + body
    digest = hmac.new(key, signed, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


def judge_signature(delivery: Delivery, secret: str) -> None:
    """A delivery has the three headers and one good signature among its signatures.

    How old the timestamp is, is not asked here: it is by the build's clock (HUB-WH-62).
    """
    sent = delivery.headers
    for name in HEADERS[:2]:
        with about("HUB-WH-59"):
            expect(bool(sent.get(name)), f"the header {name}", sent.get(name, "left out"), name)
    with about("HUB-WH-59"):
        good = sent["webhook-timestamp"].isascii() and sent["webhook-timestamp"].isdecimal()
        expect(good, "webhook-timestamp, whole seconds since 1970", sent["webhook-timestamp"], "webhook-timestamp")
    came = sent.get("webhook-signature", "")
    signed = sent["webhook-id"], sent["webhook-timestamp"], delivery.body
    wanted = signature(secret, *signed)
    misread = [signature_by(key, *signed) for key in _misread(secret)]
    with about("HUB-WH-63" if any(one in came.split(" ") for one in misread) else "HUB-WH-59"):
        good = any(hmac.compare_digest(one.encode(), wanted.encode()) for one in came.split(" "))
        expect(good, f"{wanted} among the signatures", came or "none", "webhook-signature")


def judge_unsigned(delivery: Delivery) -> bool:
    """Whether a delivery has no signature; fails the check where it has one that anybody can make (HUB-WH-64).

    One by a secret that we don't know tells nothing.
    """
    sent = delivery.headers
    came = sent.get("webhook-signature")
    if came is None:
        return True
    signed = sent.get("webhook-id", ""), sent.get("webhook-timestamp", ""), delivery.body
    for key in NO_SECRETS:
        made = signature_by(key, *signed)
        with about("HUB-WH-64"):
            what = f"one by the key {key.decode()!r}"
            expect(made not in came.split(" "), "no signature without a secret", what, "webhook-signature")
    with about("HUB-WH-64"):
        expect(bool(came.strip()), "no signature without a secret", "an empty header", "webhook-signature")
    return False


def _misread(secret: str) -> list[bytes]:
    """The keys that a secret does not stand for, as builds get them wrong (HUB-WH-63)."""
    text = secret.removeprefix(PREFIX)
    keys = [secret.encode(), text.encode()]
    with contextlib.suppress(binascii.Error, ValueError):
        keys.append(base64.b64decode(text, validate=True))
    return [key for key in keys if key != secret_bytes(secret)]
