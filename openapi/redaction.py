"""Takes secrets out of whatever is stored or shown: known values in every usual encoding, and what looks like a key."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from typing import TYPE_CHECKING, Any

from ahocorasick_rs import AhoCorasick

if TYPE_CHECKING:
    from collections.abc import Iterable

REPLACEMENT = "[redacted]"
_PERCENT = re.compile("%[0-9A-F]{2}")


class Redactor:
    """Replaces secrets in texts and JSON values by ``[redacted]`` (RT-CRED-08, RT-FAIL-52).

    ``values`` are secrets known by their text; ``pattern`` (a regular expression) is what a key looks like, as the
    spec's ``x-redaction`` states it. A known value is found plain, URL-encoded, JSON-escaped, in base64 at each of its
    three alignments, and in hex.
    """

    def __init__(self, values: Iterable[str] = (), pattern: str | None = None) -> None:
        self._pattern = re.compile(pattern) if pattern else None
        self._forms: set[str] = set()
        self._search: AhoCorasick | None = None
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Make one more secret known. Values shorter than 4 characters are ignored: they would blot out the text."""
        if len(value) >= 4:
            self._forms |= _encodings(value)
            self._search = None  # built when it is needed next: a thousand secrets are not a thousand builds

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._search is None:
            self._search = AhoCorasick(sorted(self._forms))
        # Overlapping, so that one that begins within another is found as well.
        spans = [span for _, *span in self._search.find_matches_as_indexes(text, overlapping=True)]
        spans += [list(match.span()) for match in self._pattern.finditer(text)] if self._pattern else []
        if not spans:
            return text
        spans.sort()
        pieces, begin, end = [text[: spans[0][0]]], *spans[0]
        for start, stop in spans:
            if start < end or start == begin:  # what overlaps is one secret
                end = max(end, stop)
            else:
                pieces += [REPLACEMENT, text[end:start]]
                begin, end = start, stop
        return "".join([*pieces, REPLACEMENT, text[end:]])

    def data(self, value: Any) -> Any:
        """A copy of a JSON value without secrets, in keys and values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.data(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value


def _encodings(value: str) -> set[str]:
    raw = value.encode()
    quoted = {urllib.parse.quote(value, safe=""), urllib.parse.quote(value), urllib.parse.quote_plus(value)}
    forms = {value, *quoted, *(_PERCENT.sub(lambda code: code[0].lower(), form) for form in quoted)}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], raw.hex(), raw.hex().upper()}
    for shift in range(3):
        # The characters of a base64 text that depend on this value alone, wherever in a longer text it starts.
        start = (0, 2, 3)[shift]
        body = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        end = len(body) - ((len(raw) + shift) % 3 != 0)
        if end - start >= 4:
            forms |= {body[start:end], body[start:end].translate(str.maketrans("+/", "-_"))}
    return forms
