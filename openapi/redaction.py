"""Takes secrets out of whatever is stored or shown: known values in every usual encoding, and what looks like a key."""

from __future__ import annotations

import base64
import json
import re
import urllib.parse
from collections import Counter
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
        self._forms: Counter[str] = Counter()
        self._search: AhoCorasick | None = None
        self.known = 0
        """How many secrets were made known: what was clean before one more need not be so after it."""
        for value in values:
            self.add(value)

    def add(self, value: str) -> None:
        """Make one more secret known. Values shorter than 4 characters are ignored: they would blot out the text."""
        if len(value) >= 4:
            self.known += 1
            self._forms.update(_encodings(value))
            self._search = None  # built when it is needed next: a thousand secrets are not a thousand builds

    def discard(self, value: str) -> None:
        """Forget a secret that was added; one that was added twice is known until it is forgotten twice."""
        if len(value) >= 4:
            for form in _encodings(value):
                self._forms[form] -= 1
                if self._forms[form] <= 0:
                    del self._forms[form]
            self._search = None

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


class Finder:
    """Finds secrets in texts, in every form that :class:`Redactor` replaces, and tells which and in which form."""

    def __init__(self) -> None:
        self._forms: dict[str, set[tuple[str, bool]]] = {}
        self._found: list[set[tuple[str, bool]]] = []
        self._search: AhoCorasick | None = None

    def add(self, value: str, name: str) -> None:
        """Search for one more secret, told by ``name``. Values shorter than 4 characters are ignored."""
        if len(value) >= 4:
            for form in _encodings(value):
                self._forms.setdefault(form, set()).add((name, form == value))
            self._search = None

    def find(self, text: str) -> set[tuple[str, bool]]:
        """The names of the secrets in a text, each with whether its own text stands there or another form of it."""
        if self._search is None:
            self._search, self._found = AhoCorasick(list(self._forms)), list(self._forms.values())
        matches = self._search.find_matches_as_indexes(text, overlapping=True)
        return {found for index, *_ in matches for found in self._found[index]}


_SPACE = r"(?:\s|\\++[nrt])*"


class NamedValues:
    """Takes the values of properties of some names out of texts that are JSON, or were meant to be.

    A name is found in any case, escaped or not, at any depth, inside a text that is itself a JSON value, and in front
    of ``:`` or ``=`` where the text is malformed. What has no end goes to the end of the text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted({name.lower() for name in names})
        # A name at its end: `apiKeyMode`, which stands in most answers, is no `apiKey`.
        self._near = re.compile(f"(?:{'|'.join(map(re.escape, self._names))})(?![a-z0-9_])")
        spelled = ("".join(_letter(letter) for letter in name) for name in self._names)
        self._pattern = re.compile(
            rf"""(?<![A-Za-z0-9_])(?:{"|".join(spelled)})(\\*+["']?){_SPACE}[:=]{_SPACE}""", re.IGNORECASE
        )

    def text(self, text: str) -> str:
        """The text with every such value replaced by ``[redacted]``, in quotes where its name is."""
        if not self._names or ("\\u" not in text and not self._near.search(text.lower())):
            return text  # nearly always: no need to look closely
        pieces, end = [], 0
        for found in self._pattern.finditer(text):
            if found.start() >= end:
                pieces += [text[end : found.end()], found[1], REPLACEMENT, found[1]]
                end = _end_of_value(text, found.end())
        return "".join([*pieces, text[end:]])


def _letter(letter: str) -> str:
    codes = "|".join(f"{ord(case):04x}" for case in {letter, letter.upper()})
    return rf"(?:{re.escape(letter)}|(?<!\\)\\++u(?:{codes}))"


_QUOTE = re.compile(r"""(?<!\\)(\\*+)(["'])""")  # from the first backslash on, so that a run of them is read once
_BARE = re.compile(r"[^,&;}\]\s]*")


def _end_of_value(text: str, start: int) -> int:
    """Where the value that begins at ``start`` ends."""
    quote = _QUOTE.match(text, start)
    if quote is not None:
        escapes = len(quote[1])  # 1 or 3 where the text stands as a JSON text within JSON
        for closing in _QUOTE.finditer(text, quote.end()):
            if closing[2] == quote[2] and len(closing[1]) < escapes:
                return closing.start()  # the text around it ends
            if closing[2] == quote[2] and (len(closing[1]) - escapes) % (2 * escapes + 2) == 0:
                return closing.end()
        return len(text)
    if text[start : start + 1] not in ("{", "["):
        bare = _BARE.match(text, start)
        return bare.end() if bare else start
    depth, at = 0, start
    while at < len(text):
        letter = text[at]
        if letter in "\\\"'" and _QUOTE.match(text, at):
            at = _end_of_value(text, at)
            continue
        depth += (letter in "{[") - (letter in "}]")
        at += 1
        if depth == 0:
            return at
    return len(text)


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


def forms(value: str) -> set[str]:
    """Every text as which a secret may stand: itself, and what :class:`Redactor` replaces beside it."""
    return _encodings(value)
