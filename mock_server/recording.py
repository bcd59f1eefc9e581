"""``contract serve --record``: a HAR file that is complete and valid after every exchange."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import orjson

from mock_server import har
from mock_server.journal import Entry

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("mock_server")

MAX_BYTES = 256 * 2**20
LEAST_BYTES = 64 * 2**10
_ROOM = 300
"""For the end of the file with its longest comment."""


class Recorder:
    """Appends exchanges over the end of the file, one write each, so that a mock that is killed leaves a whole file."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        """A file that is there is replaced. Raises ``OSError`` where it can't be written."""
        self._path, self._max_bytes = path, max_bytes
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._end = 0
        """Where the end of the file begins: the next exchange goes there."""
        self._tail = b""
        self.missing = 0
        """Exchanges for which there was no room."""
        self._warned = False
        try:
            self._put(har.HEAD, har.tail())
        except OSError:
            self.close()
            raise

    def add(self, world_path: str, entry: tuple[Any, ...]) -> None:
        """Write one exchange; where there is no room for it, the file says how many are missing."""
        comma = b"," if self._end > len(har.HEAD) else b""
        content = comma + orjson.dumps(har.exchange(world_path, Entry._make(entry)))
        if self._end + len(content) + _ROOM > self._max_bytes:
            self._miss(f"the limit of {self._max_bytes} bytes is reached (--record-bytes)")
            return
        try:
            self._put(content, self._comment())
        except OSError as error:
            self._miss(error.strerror or str(error))

    def close(self) -> None:
        """No more exchanges."""
        os.close(self._file)

    def _comment(self) -> bytes:
        return har.tail(f"{self.missing} exchanges are missing, for want of room" if self.missing else "")

    def _miss(self, reason: str) -> None:
        self.missing += 1
        if not self._warned:
            self._warned = True
            log.warning("%s: an exchange could not be recorded: %s; the mock goes on", self._path, reason)
        try:
            self._put(b"", self._comment())
        except OSError:
            return  # no room for the comment either: the file is as it was

    def _put(self, content: bytes, tail: bytes) -> None:
        """Write ``content`` and a new end over the old end, all or nothing. Raises ``OSError`` for want of room."""
        data = content + tail
        try:
            written = os.pwrite(self._file, data, self._end)
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._end + written)
        except OSError:
            os.ftruncate(self._file, self._end + len(self._tail))
            os.pwrite(self._file, self._tail, self._end)
            raise
        self._end += len(content)
        self._tail = tail
