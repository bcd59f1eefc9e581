"""Event streams as the WHATWG's rules allow them: line ends, comments, further fields, pieces cut anywhere."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STREAM = b"text/event-stream"
_PIECES = 40


@dataclass(frozen=True)
class EventStyle:
    """How the events of a stream are written."""

    end: str = "\n"
    """The end of a line."""
    order: tuple[str, ...] = ("id", "event", "data")
    """In which order the fields of an event stand."""
    gap: str = " "
    """What stands between a field's colon and its value: a space, which does not belong to it, or nothing."""
    begins: str = ""
    """What stands before everything else."""
    before: tuple[str, ...] = ()
    """Further lines before the fields of each event."""
    after: tuple[str, ...] = ()
    """Further lines behind them."""
    between: tuple[str, ...] = ()
    """Further lines behind each event and each comment, outside of any event."""
    cut: int = 0
    """The largest piece, bytes, in which it is sent; 0: as it comes. What is long ends in a larger one."""


class Respelled:
    """The reference's event stream written otherwise; each part of it is an event, or a comment."""

    def __init__(self, style: EventStyle, rewrite: Callable[[Any], bytes | None]) -> None:
        """``rewrite`` gives an event's data as it is to be sent, one line of JSON; None: as it is."""
        self.style, self.rewrite = style, rewrite
        self._first = True
        self._rng = random.Random(11)

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """What is sent of a part."""
        style, end = self.style, self.style.end
        lines = part.decode().removesuffix("\n\n").split("\n") if part else []
        text = style.begins if self._first else ""
        self._first = False
        if lines and not lines[0].startswith(":"):
            lines = [*style.before, *self._fields(lines), *style.after]
        if lines:
            text += "".join(line + end for line in (*lines, "", *style.between))
        yield from self._cut(text.encode())

    def _fields(self, lines: list[str]) -> Iterator[str]:
        fields = dict(line.split(": ", 1) for line in lines)
        data = self.rewrite(json.loads(fields["data"]))
        if data is not None:
            fields["data"] = data.decode()
        for name in self.style.order:
            yield f"{name}:{self.style.gap}{fields[name]}"

    def _cut(self, content: bytes) -> Iterator[bytes]:
        if not self.style.cut:
            if content:
                yield content
            return
        for _ in range(_PIECES):
            size = self._rng.randint(1, self.style.cut)
            if content[:size]:
                yield content[:size]
            content = content[size:]
        if content:
            yield content
