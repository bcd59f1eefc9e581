"""Streams of server-sent events, read after the rules of the WHATWG HTML standard, section 9.2.6, and strictly.

What a browser would forgive, and show as something else than was meant, is told with its place: bytes that are no
UTF-8, an id with a NUL, an event that no client would see, data that is no JSON, an event cut off at the end.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contract_tests.checks import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM = b"\xef\xbb\xbf"
MAX_LINE = 2**20
DEFAULT_NAME = "message"
"""The name of an event that has none."""


class StreamBroken(CheckFailed):
    """A stream that is not what it is to be; ``offset`` counts bytes from 0, ``line`` lines from 1."""

    def __init__(self, expected: str, actual: str, offset: int, line: int) -> None:
        self.offset, self.line = offset, line
        super().__init__(expected, f"{actual} (byte {offset}, line {line} of the stream)")


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``id`` is None where its own lines give none, whatever came before."""

    id: str | None
    event: str
    data: Any
    """The data, parsed as JSON."""
    at: float
    """When the line that ends it came, monotonic seconds."""
    text: str = ""
    """The data as it came, its lines joined by a line feed."""
    data_lines: int = 1
    others: tuple[str, ...] = ()
    """Its fields that no client reads, and ``retry``."""
    offset: int = 0
    """Where it begins, bytes from the stream's start."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A line that begins with a colon; ``text`` is what stands behind the colon, as it is."""

    text: str
    at: float


@dataclass
class _Block:
    """The fields since the last empty line."""

    offset: int = 0
    line: int = 1
    id: str | None = None
    name: str | None = None
    data: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    empty: bool = True


class Parser:
    """Takes bytes as they come, cut anywhere, and gives what they complete.

    A line ends with CR LF, LF or CR; a CR ends it at once, so that nothing waits for an LF that may never come.
    """

    def __init__(self) -> None:
        self._pending = bytearray()
        self._after_cr = False
        self._offset = 0
        """Bytes before the line that is pending."""
        self._line = 1
        self._block = _Block()

    def feed(self, chunk: bytes, at: float) -> Iterator[Event | Comment]:
        """What a chunk completes, in order; ``at`` is when it came. Raises :class:`StreamBroken` at what is broken."""
        start = 0
        while start < len(chunk):
            if self._after_cr:
                self._after_cr = False
                if chunk[start] == 0x0A:
                    start += 1
                    self._offset += 1
                    continue
            end = next_end(chunk, start)
            self._pending += chunk[start : end if end >= 0 else len(chunk)]
            if len(self._pending) > MAX_LINE:
                raise self._broken(f"lines of at most {MAX_LINE} bytes", "a longer one")
            if end < 0:
                return
            line = bytes(self._pending)
            told = self._take(line, at)
            self._pending.clear()
            self._after_cr = chunk[end] == 0x0D
            self._offset += len(line) + 1
            self._line += 1
            if told is not None:
                yield told
            start = end + 1

    def finish(self) -> None:
        """The stream ended. Raises :class:`StreamBroken` where an event was begun and not ended."""
        if self._pending:
            raise self._broken("a stream that ends after a whole line", f"an unfinished {shown(bytes(self._pending))}")
        if not self._block.empty:
            what = "the end before the empty line that ends the event"
            raise StreamBroken("an empty line after each event", what, self._block.offset, self._block.line)

    def _take(self, raw: bytes, at: float) -> Event | Comment | None:
        """One line without its end."""
        if self._offset == 0 and raw.startswith(BOM):
            raw = raw[len(BOM) :]
        if not raw:
            return self._dispatch(at)
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise self._broken("UTF-8", f"the byte {raw[error.start]:#04x} in {shown(raw)}", error.start) from None
        if line.startswith(":"):
            return Comment(line[1:], at)
        name, colon, value = line.partition(":")
        if colon and value.startswith(" "):
            value = value[1:]
        self._field(name, value)
        return None

    def _field(self, name: str, value: str) -> None:
        block = self._block
        if block.empty:
            block.empty, block.offset, block.line = False, self._offset, self._line
        match name:
            case "data":
                block.data.append(value)
            case "event":
                block.name = value
            case "id" if "\0" in value:
                raise self._broken("an id without NUL", f"{value!r}, which clients ignore")
            case "id":
                block.id = value
            case _:
                block.others.append(f"{name}: {value}")

    def _dispatch(self, at: float) -> Event | None:
        block, self._block = self._block, _Block()
        if not block.data:
            if block.name is not None:
                what = f"an event `{block.name}` without data, which no client is shown"
                raise StreamBroken("data in each event", what, block.offset, block.line)
            return None
        text = "\n".join(block.data)
        try:
            data = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            what = f"{text[:200]!r}: {error}"
            raise StreamBroken("data that is JSON", what, block.offset, block.line) from None
        name = block.name or DEFAULT_NAME
        return Event(block.id, name, data, at, text, len(block.data), tuple(block.others), block.offset)

    def _broken(self, expected: str, actual: str, within: int = 0) -> StreamBroken:
        return StreamBroken(expected, actual, self._offset + within, self._line)


def next_end(chunk: bytes, start: int) -> int:
    """Where the next line ends; -1 where none does."""
    ends = [place for place in (chunk.find(b"\r", start), chunk.find(b"\n", start)) if place >= 0]
    return min(ends, default=-1)


def shown(line: bytes) -> str:
    """The start of a line for a message."""
    return repr(line[:120].decode("utf-8", "backslashreplace"))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
