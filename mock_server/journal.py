"""What a world saw: every exchange, redacted before it is stored, bounded by count and by bytes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from mock_server.calls import Exchange
    from openapi.redaction import Redactor

MAX_ENTRIES = 10_000
MAX_BYTES = 16 * 2**20
MAX_BODY = 16 * 2**10
_MARGIN = 2**10

_COST = 400
"""Bytes that an entry takes beside its bodies, about."""

FIELDS = (
    "number",
    "at",
    "method",
    "path",
    "operationId",
    "caller",
    "jobId",
    "status",
    "errorCode",
    "requestBody",
    "responseBody",
    "violations",
)
"""Of an entry, in order. ``at`` is world time (epoch ms); bodies are text, cut at ``MAX_BODY`` bytes."""


class Journal:
    """The latest exchanges of a world; ``evicted`` counts those that had to make room."""

    def __init__(self, redactor: Redactor, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._redactor, self._max_entries, self._max_bytes = redactor, max_entries, max_bytes
        # Tuples of plain values: the garbage collector need not walk ten thousand entries again and again.
        self._entries: deque[tuple[Any, ...]] = deque()
        self._bytes = 0
        self._sequence = 0
        self.evicted = 0

    def record(self, exchange: Exchange) -> None:
        """Keep one exchange; the oldest go when there are too many or they take too much room."""
        text = self._redactor.text
        self._sequence += 1
        entry = (
            self._sequence,
            exchange.at,
            exchange.method,
            text(exchange.path),
            exchange.operation_id,
            None if exchange.caller is None else text(exchange.caller),
            None if exchange.job_id is None else text(exchange.job_id),
            exchange.status,
            exchange.error_code,
            self._body(exchange.request_body),
            self._body(exchange.response_body),
            orjson.dumps([violation.entry() for violation in exchange.details]) if exchange.details else b"[]",
        )
        self._entries.append(entry)
        self._bytes += _size(entry)
        while len(self._entries) > self._max_entries or (self._bytes > self._max_bytes and len(self._entries) > 1):
            self._bytes -= _size(self._entries.popleft())
            self.evicted += 1

    def _body(self, raw: bytes) -> str:
        # Cut before it is redacted, and later than it is kept: no secret survives by lying across the cut.
        text = self._redactor.text(raw[: MAX_BODY + _MARGIN].decode("utf-8", "replace")) if raw else ""
        return text if len(raw) <= MAX_BODY else f"{text[:MAX_BODY]}… ({len(raw)} bytes)"

    def query(self, *, since: int = 0, limit: int, **wanted: Any) -> list[dict[str, Any]]:
        """Entries after number ``since`` whose fields equal every ``wanted`` that is not None, oldest first."""
        places = [(FIELDS.index(name), value) for name, value in wanted.items() if value is not None]
        found = []
        for entry in self._entries:
            if entry[0] > since and all(entry[place] == value for place, value in places):
                document = dict(zip(FIELDS, entry, strict=True))
                document["violations"] = orjson.loads(document["violations"])
                found.append(document)
                if len(found) == limit:
                    break
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything; numbers go on."""
        self._entries.clear()
        self._bytes = self.evicted = 0


def _size(entry: tuple[Any, ...]) -> int:
    return _COST + sum(map(len, entry[-3:]))
