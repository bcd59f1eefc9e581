"""What of an answer may be otherwise, as functions that rewrite one: of the API, or of a provider state.

Those of the Runtime API, and what both APIs share; those of the hub are in ``hub_rewrites.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

INSTANTS = ("lockedAt", "lockUntil", "startedAt", "finishedAt", "createdAt", "updatedAt")


ESCAPED = 500
"""Characters of a text, from its start, that are written as escapes."""


@dataclass
class Reply:
    """An answer on its way; ``data`` is its JSON, None where it has none. ``state`` is the provider state asked for."""

    method: str
    path: str
    state: str | None
    status: int
    headers: dict[bytes, bytes]
    data: Any
    body: bytes | None = None
    """Bytes to be sent in place of ``data``."""
    kind: Literal["answer", "stream", "event", "webhook"] = "answer"
    """What it is: an answer; the head of a stream, which has no data; one event of a stream; a webhook."""

    @property
    def of_api(self) -> bool:
        return "/__control__/" not in self.path


def more_properties(reply: Reply) -> None:
    """Properties that this version of the contract does not know, in every object that may have more."""
    if not isinstance(reply.data, dict):
        return
    more = {"x-next": {"a": [1, None, {"b": True}]}, "links": [], "note": "sk is no key", "revision": 7}
    if isinstance(reply.data.get("states"), list):
        reply.data["states"] += ["teleport", "job-of-tomorrow"]
    for name in ("jobs", "details"):
        reply.data[name] = [item | more for item in reply.data[name]] if name in reply.data else None
        if reply.data[name] is None:
            del reply.data[name]
    for name, section in list(reply.data.items()):
        if reply.path.endswith("/snapshot") and isinstance(section, dict) and name != "userProfile":
            reply.data[name] = section | more
    reply.data = more | reply.data


def other_words(reply: Reply) -> None:
    """Messages in another language; each violation at its place, told in words of the build's own."""
    if reply.status >= 400 and reply.of_api and reply.data:
        reply.data["message"] = '请求"被拒绝"\n\t\\ \N{ROCKET} ' + "…" * 40
        for item in reply.data.get("details", ()):
            item |= {"rule": "R-17", "expected": None, "actual": "?", "message": "不对"}
        reply.data.get("details", []).reverse()


def no_details(reply: Reply) -> None:
    """`details` may be: here they never are."""
    if reply.of_api and isinstance(reply.data, dict):
        reply.data.pop("details", None)


def charset(reply: Reply) -> None:
    """The media type with its parameter, in another case."""
    if b"content-type" in reply.headers:
        reply.headers[b"content-type"] = b"Application/JSON; charset=utf-8"


def cache_control(reply: Reply) -> None:
    """`no-store` among other directives."""
    if b"cache-control" in reply.headers:
        reply.headers[b"cache-control"] = b"private, No-Store, max-age=0"


def iso_instants(reply: Reply) -> None:
    """Instants of `inspect-job` as ISO 8601, in this zone or that."""
    if reply.state == "inspect-job" and reply.status == 200:
        for i, name in enumerate(INSTANTS):
            if reply.data[name] is not None:
                instant = datetime.fromtimestamp(reply.data[name] / 1000, UTC)
                if i % 2:
                    instant = instant.astimezone(timezone(timedelta(hours=8)))
                reply.data[name] = instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def absent_snapshot_id(reply: Reply) -> None:
    """A job without a snapshot: the state's values just do not name one."""
    if reply.state == "job" and reply.status == 200 and reply.data["snapshotId"] is None:
        del reply.data["snapshotId"]


def other_snapshot(reply: Reply) -> None:
    """`documentContent` is optional and any JSON; a user may have told less than the Runtime may know."""
    if reply.path.endswith("/snapshot") and reply.status == 200:
        if "documentContent" in reply.data:
            reply.data["documentContent"] = ["a", {"page": 1}] if len(reply.path) % 2 else "text"
        reply.data["userProfile"].pop("currentLevel", None)


def no_document(reply: Reply) -> None:
    """A build that never hands out documents."""
    if reply.path.endswith("/snapshot") and reply.status == 200:
        reply.data.pop("documentContent", None)


def html_elsewhere(reply: Reply) -> None:
    """What lies outside `/internal/runtime` is not this API: another site's pages."""
    inside = reply.path.startswith("/internal/runtime") and reply.path[17:18] in ("", "/")
    if reply.of_api and not inside:
        reply.headers[b"content-type"] = b"text/html"
        reply.body = b"<html><body>Not here</body></html>"


class Spelling:
    """JSON in another spelling: keys in another order, spaces, escapes, whole numbers with a fraction."""

    def __init__(self, *, escapes: bool = False, spaces: bool = False, fractions: bool = False) -> None:
        self.escapes, self.fractions, self.spaces = escapes, fractions, spaces

    def __call__(self, reply: Reply) -> None:
        if reply.data is not None and reply.body is None:
            gap = "" if not self.spaces else " \t" if reply.kind == "event" else " \r\n\t"  # events are one line
            reply.body = f"{gap}{self.written(reply.data, gap)}{gap}".encode()

    def written(self, value: Any, gap: str) -> str:
        """A JSON value, spelled."""
        if isinstance(value, dict):
            items = [f"{self.written(key, gap)}{gap}:{gap}{self.written(value[key], gap)}" for key in reversed(value)]
            return "{" + gap + f"{gap},{gap}".join(items) + gap + "}"
        if isinstance(value, list):
            return "[" + gap + f"{gap},{gap}".join(self.written(item, gap) for item in value) + gap + "]"
        if isinstance(value, str) and self.escapes:
            units = value[:ESCAPED].encode("utf-16-be")
            escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
            return f'"{escaped}{json.dumps(value[ESCAPED:], ensure_ascii=False)[1:]}'
        if isinstance(value, int) and not isinstance(value, bool) and self.fractions:
            return f"{value}.0" if value % 2 else f"{value}.00E+0"
        return json.dumps(value, ensure_ascii=False)
