"""What a world saw: every exchange, redacted before it is stored, bounded by count and by bytes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from openapi.redaction import NamedValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mock_server.calls import Exchange, Met
    from openapi.redaction import Redactor

MAX_ENTRIES = 10_000
MAX_BYTES = 16 * 2**20
MAX_BODY = 16 * 2**10
_MARGIN = 2**10

_COST = 700
"""Bytes that an entry takes beside its longer texts, about."""

VERDICTS = ("ok", "refused", "failed", "faulted", "aborted")
"""Answered below 400; 4xx, by the contract's rules; 5xx; met by a fault plan; gone before its request was complete."""

SECRET_HEADERS = frozenset({b"x-internal-api-key", b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"})
"""Request headers whose value is a secret, known to us or not."""


class Entry(NamedTuple):
    """One exchange. ``at`` and ``answered_at`` are world time, ``real_at`` is real time, all epoch milliseconds."""

    number: int
    at: int
    answered_at: int
    real_at: float
    duration_ms: float
    operation_id: str | None
    caller: str | None
    job_id: str | None
    status: int
    """0 where no answer was sent."""
    verdict: str
    fault: bytes | None
    """JSON: which fault plans met the request, and what the client got."""
    model: bytes | None
    """JSON, of a model call: whose it is, and what was answered."""
    sightings: bytes | None
    """JSON: secrets where they do not belong; None where nobody looked for them."""
    error_code: str | None
    job_status: str | None
    """Like the two that follow: of the job after the request, where the operation looked at one."""
    locked_by: str | None
    lock_until: int | None
    request_bytes: int
    """Of the body as it came; ``request_body`` is text, without secrets, cut after ``MAX_BODY`` characters."""
    response_bytes: int
    method: str
    path: str
    query: str
    request_headers: str
    """A line a header; the values of those that carry keys are replaced."""
    request_body: str
    response_headers: str
    response_body: str
    violations: bytes

    def document(self) -> dict[str, Any]:
        """The entry as the control plane shows it."""
        document: dict[str, Any] = dict(zip(FIELDS, self, strict=True))
        document["fault"] = None if self.fault is None else orjson.loads(self.fault)
        document["model"] = None if self.model is None else orjson.loads(self.model)
        document["requestHeaders"] = headers(self.request_headers)
        document["responseHeaders"] = headers(self.response_headers)
        document["sightings"] = None if self.sightings is None else orjson.loads(self.sightings)
        document["violations"] = orjson.loads(self.violations)
        return document


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


FIELDS = tuple(map(_camel, Entry._fields))
"""Names of an entry's fields, in order, as the control plane shows them."""

_TEXTS = FIELDS.index("method")
_OPTIONAL = tuple(map(FIELDS.index, ("caller", "jobId", "fault", "model", "sightings")))


def headers(lines: str) -> dict[str, str]:
    """The headers of an entry by name."""
    pairs = [line.partition(": ") for line in lines.split("\n")] if lines else []
    return {name: value for name, _, value in pairs}


class Journal:
    """The latest exchanges of a world; ``evicted`` counts those that had to make room."""

    def __init__(
        self,
        redactor: Redactor,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        *,
        secret_names: Iterable[str] = (),
    ) -> None:
        """``secret_names``: properties whose values are not kept, whatever they look like and wherever they stand."""
        self._named = NamedValues(secret_names)
        self._redactor, self._max_entries, self._max_bytes = redactor, max_entries, max_bytes
        # Tuples of plain values: the garbage collector need not walk ten thousand entries again and again.
        self._entries: deque[tuple[Any, ...]] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._watches: set[asyncio.Event] = set()
        self.last = 0
        """The number of the latest entry; numbers go on when the journal is cleared."""
        self.evicted = 0
        self.cleared = 0
        """How often the journal was cleared."""
        self._gone: tuple[Any, ...] | None = None
        self._sent: tuple[Mapping[bytes, bytes], int, str] = ({}, 0, "")

    def record(self, exchange: Exchange) -> tuple[Any, ...]:
        """Keep one exchange and return its entry; the oldest go when there are too many or they take too much room."""
        duration = time.perf_counter_ns() - exchange.begun
        self.last += 1
        job = exchange.job or {}
        request, response = exchange.request_body, exchange.response_body
        path, query, caller, job_id, locked_by, answered = self._clean(
            exchange.path,
            exchange.query.decode("latin-1"),
            exchange.caller,
            exchange.job_id,
            job.get("lockedBy"),
            _lines(exchange.response_headers),
        )
        entry = (
            self.last,
            exchange.at,
            exchange.world.clock.now(),
            (time.time_ns() - duration) // 1000 / 1000,
            duration // 1000 / 1000,
            exchange.operation_id,
            caller,
            job_id,
            exchange.status,
            _verdict(exchange),
            None if exchange.fault is None else self._fault(exchange.fault),
            None if exchange.model is None else orjson.dumps(self._redactor.data(exchange.model.document())),
            None if exchange.sightings is None else orjson.dumps(exchange.sightings),
            exchange.error_code,
            job.get("status"),
            locked_by,
            job.get("lockUntil"),
            len(request),
            len(response),
            exchange.method,
            path,
            query,
            self._request_headers(exchange.headers),
            self._body(request),
            answered,
            self._body(response),
            orjson.dumps([violation.entry() for violation in exchange.details]) if exchange.details else b"[]",
        )
        size = _size(entry)
        self._entries.append(entry)
        self._sizes.append(size)
        self._bytes += size
        while len(self._entries) > self._max_entries or (self._bytes > self._max_bytes and len(self._entries) > 1):
            self._gone = self._entries.popleft()
            self._bytes -= self._sizes.popleft()
            self.evicted += 1
        for watch in self._watches:
            watch.set()
        return entry

    def _clean(self, *texts: str | None) -> Any:
        """The texts without secrets; in one go, since most have none."""
        joined = "\0".join([text or "" for text in texts])
        if self._redactor.text(joined) == joined:
            return texts
        return [text and self._redactor.text(text) for text in texts]

    def _fault(self, met: Met) -> bytes:
        text = self._redactor.text
        entry: dict[str, Any] = {
            "plans": [{"id": text(id_), "kind": kind} for id_, kind in met.plans],
            "handled": met.handled,
            "got": met.got,
            "seconds": round(met.seconds, 6),
        }
        if met.bytes is not None:
            entry["bytes"] = met.bytes
        if met.body is not None:
            entry["body"] = self._body(met.body)
        return orjson.dumps(entry)

    def _request_headers(self, fields: Mapping[bytes, bytes]) -> str:
        # One client's requests often differ in nothing here: what was said last is kept, for as long as it is clean.
        known, secrets, text = self._sent
        if fields != known or secrets != self._redactor.known:
            text = self._redactor.text(_lines(fields.items()))
            self._sent = (fields, self._redactor.known, text)
        return text

    def _body(self, raw: bytes) -> str:
        # Cut before it is redacted, and later than it is kept: no secret survives by lying across the cut.
        text = raw[: MAX_BODY + _MARGIN].decode("utf-8", "replace")
        text = self._redactor.text(self._named.text(text)) if raw else ""
        return text if len(raw) <= MAX_BODY else f"{text[:MAX_BODY]}{cut_mark(len(raw))}"

    def entries(self, since: int = 0, begin: int | None = None, end: int | None = None) -> Iterator[Entry]:
        """Entries after number ``since`` that began from ``begin`` to ``end`` (world time, both included), in order."""
        wanted = islice(reversed(self._entries), max(0, self.last - since))
        for entry in reversed(list(wanted)):
            if (begin is None or entry[1] >= begin) and (end is None or entry[1] <= end):
                yield Entry._make(entry)

    def query(
        self,
        *,
        since: int = 0,
        begin: int | None = None,
        end: int | None = None,
        match: str | None = None,
        newest: bool = False,
        limit: int | None = None,
        **wanted: Any,
    ) -> list[Entry]:
        """Entries whose fields equal every ``wanted`` that is not None, oldest first (``newest``: newest first).

        ``match`` is a part of the path.
        """
        places = [(FIELDS.index(name), value) for name, value in wanted.items() if value is not None]
        entries: Any = self.entries(since, begin, end)
        found = (
            entry
            for entry in (reversed(list(entries)) if newest else entries)
            if all(entry[place] == value for place, value in places) and (match is None or match in entry.path)
        )
        return list(islice(found, limit))

    def lost(self, since: int = 0, begin: int | None = None) -> int:
        """How many entries had to make room, where some of them are of this range; otherwise 0."""
        if self._gone is None or self._gone[0] <= since or (begin is not None and self._gone[1] < begin):
            return 0
        return self.evicted

    @contextmanager
    def watch(self) -> Iterator[asyncio.Event]:
        """An event that each entry from now on sets."""
        event = asyncio.Event()
        self._watches.add(event)
        try:
            yield event
        finally:
            self._watches.discard(event)

    @property
    def watchers(self) -> int:
        """How many wait for entries."""
        return len(self._watches)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything; numbers go on."""
        self._entries.clear()
        self._sizes.clear()
        self._bytes = self.evicted = 0
        self._gone = None
        self.cleared += 1
        for watch in self._watches:
            watch.set()


def cut_mark(size: int) -> str:
    """What stands at the end of a body of ``size`` bytes that was cut."""
    return f"… ({size} bytes)"


def _verdict(exchange: Exchange) -> str:
    if exchange.fault is not None:
        return "faulted"
    status = exchange.status
    if status < 400:
        return "ok" if status else "aborted"
    return "refused" if status < 500 else "failed"


def _lines(fields: Any) -> str:
    """Headers (pairs of bytes) as a line each, keys replaced whether we know them or not."""
    return b"\n".join(
        [name + b": " + (value if name not in SECRET_HEADERS or not value else b"[redacted]") for name, value in fields]
    ).decode("latin-1")


def _size(entry: tuple[Any, ...]) -> int:
    return _COST + sum(map(len, entry[_TEXTS:])) + sum([len(entry[place] or "") for place in _OPTIONAL])
