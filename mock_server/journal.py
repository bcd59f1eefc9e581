"""What a world saw: every exchange, redacted before it is stored, bounded by count and by bytes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mock_server.calls import Exchange
    from openapi.redaction import Redactor

MAX_ENTRIES = 10_000
MAX_BYTES = 16 * 2**20
MAX_BODY = 16 * 2**10

_COST = 400
"""Bytes that an entry takes beside its bodies, about."""


class Journal:
    """The latest exchanges of a world; ``evicted`` counts those that had to make room."""

    def __init__(self, redactor: Redactor, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._redactor, self._max_entries, self._max_bytes = redactor, max_entries, max_bytes
        self._entries: deque[tuple[int, dict[str, Any], int]] = deque()
        self._bytes = 0
        self._sequence = 0
        self.evicted = 0

    def record(self, exchange: Exchange) -> None:
        """Keep one exchange; the oldest go when there are too many or they take too much room."""
        text = self._redactor.text
        request, response = exchange.request_body[:MAX_BODY], exchange.response_body[:MAX_BODY]
        entry = {
            "at": exchange.at,
            "method": exchange.method,
            "path": text(exchange.path),
            "operationId": exchange.operation_id,
            "caller": None if exchange.caller is None else text(exchange.caller),
            "jobId": exchange.job_id,
            "status": exchange.status,
            "errorCode": exchange.error_code,
            "violations": [violation.entry() for violation in exchange.details],
            "requestBody": text(request.decode("utf-8", "replace")),
            "responseBody": text(response.decode("utf-8", "replace")),
        }
        size = _COST + len(request) + len(response)
        self._sequence += 1
        self._entries.append((self._sequence, entry, size))
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._bytes -= self._entries.popleft()[2]
            self.evicted += 1

    def query(self, *, since: int = 0, limit: int, **wanted: Any) -> list[dict[str, Any]]:
        """Entries after number ``since`` whose fields equal every ``wanted`` that is not None, oldest first, numbered."""
        fields = {name: value for name, value in wanted.items() if value is not None}
        found = []
        for number, entry, _ in self._entries:
            if number > since and all(entry[name] == value for name, value in fields.items()):
                found.append({"number": number, **entry})
                if len(found) == limit:
                    break
        return found

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything; numbers go on."""
        self._entries.clear()
        self._bytes = self.evicted = 0
