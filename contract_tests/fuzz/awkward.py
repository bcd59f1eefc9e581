"""Values and bodies that one layer or another of a build may trip over."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

RAW = "as-it-is:"
"""What stands behind it in a text is sent as it is, without the quotes."""
PLAIN_TEXTS = ("🦀 ок", "\u202e\u0301", "'; drop table jobs; --", "__proto__")
"""Texts like any other, that one layer or another of a build may trip over."""
HARD_TEXTS = ("\u0000", "\ud800", "x" * 70_000)
"""Texts that not every build can keep: refusing them is no fault, falling over them is."""
PLAIN_VALUES: tuple[Any, ...] = (-0.0, {"": {"": ""}}, {"__proto__": {"constructor": None}}, [[[]]])
HARD_VALUES: tuple[Any, ...] = (2**64, 1e308, RAW + "1e400", RAW + "9" * 400, RAW + "[" * 300 + "]" * 300)
"""Numbers beyond doubles and deep nesting; what stands behind the mark is sent as it is."""
MEDIA = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/octet-stream",
    "multipart/form-data; boundary=b",
)
"""Content types that are not JSON."""


def written(body: Any, *, escaped: bool) -> bytes:
    """A body as JSON, what is marked as it is; ``escaped``: in ASCII, otherwise what UTF-8 can't say is escaped."""
    content = json.dumps(body, ensure_ascii=escaped).encode("utf-8", "backslashreplace")
    return re.sub(b'"' + RAW.encode() + b'([^"]*)"', rb"\1", content)


def spoilt(text: bytes) -> list[bytes]:
    """Bodies that are no JSON, made of one that is."""
    return [b"", b" ", b"{}x", text + b"}", text[:-1], text.replace(b":", b"=", 1), b"\xff" + text]


def spoilt_somewhere(text: bytes, random: Random) -> bytes:
    """The body cut off, with a byte too many, or with one in another's place; it may be JSON after all."""
    at = random.randrange(len(text))
    return random.choice(
        (
            text[:at],
            text[:at] + bytes([random.randrange(128, 256)]) + text[at:],
            text[:at] + random.choice((b"{", b"}", b"]", b",", b":", b'"', b"\\", b"\x00", b"//")) + text[at + 1 :],
        )
    )
