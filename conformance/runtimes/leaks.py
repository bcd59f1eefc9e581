"""Searches a Runtime's output for secrets as it comes, across the borders of its pieces, and keeps its end alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ahocorasick_rs import AhoCorasick

from openapi.redaction import REPLACEMENT, Redactor, forms

if TYPE_CHECKING:
    from collections.abc import Callable

SERVICE_TOKEN, MODEL_KEY = "service token", "model key"
MOST = 5
"""How often one secret in one form is told: a Runtime that says its key again and again has said it."""
TAIL = 4096
"""Characters of the end that are kept for messages."""
_AROUND = 120
_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret in the output. ``form``: ``plain`` or ``encoded``; ``text``: the line around it, without secrets."""

    secret: str
    form: str
    text: str


class OutputWatch:
    """Takes the pieces of one process's output. ``told`` is called for each leak, a bounded number of times."""

    def __init__(self, told: Callable[[Leak], None]) -> None:
        self._told = told
        self._redactor = Redactor()
        self._forms: dict[str, tuple[str, str]] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        self._search: AhoCorasick | None = None
        self._order: list[str] = []
        self._longest = 0
        self._carry = ""
        self._cut = False
        """Whether something stood before the carry."""
        self._tail = bytearray()
        self.bytes = 0
        """How many bytes came in all."""

    def know(self, secret: str, name: str) -> None:
        """Search for one more secret from here on; ``name`` is how it is told."""
        self._redactor.add(secret)
        for form in forms(secret):
            self._forms.setdefault(form, (name, "plain" if form == secret else "encoded"))
            self._longest = max(self._longest, len(form))
        self._search = None

    def feed(self, piece: bytes) -> None:
        """The next piece."""
        self.bytes += len(piece)
        self._tail += piece[-self._room :]
        del self._tail[: -self._room]
        text = self._carry + piece.decode("latin-1")  # secrets are ASCII: a byte a character will do
        self._look(text, len(self._carry), cut=self._cut)
        keep = self._longest + _CONTEXT
        self._cut = self._cut or len(text) > keep
        self._carry = text[-keep:]

    def look(self, text: str, where: str) -> None:
        """Search a text that is whole and of its own, not of the output; ``where`` begins what is told of it."""
        self._look(f"{where}: {text}", 0, cut=False)

    def end(self) -> str:
        """The end of the output, without secrets: at most :data:`TAIL` characters."""
        text = self._redactor.text(self._tail.decode("utf-8", "replace"))
        if self.bytes > len(self._tail):
            text = text[self._longest :]  # what may be the rest of a secret that was cut
        return text[-TAIL:].strip()

    def clean(self, text: str) -> str:
        """A text without the secrets."""
        return self._redactor.text(text)

    @property
    def redactor(self) -> Redactor:
        """It knows every secret that is searched for."""
        return self._redactor

    @property
    def _room(self) -> int:
        return TAIL + 2 * self._longest

    def _look(self, text: str, known: int, *, cut: bool) -> None:
        """Tell what is in a text beyond the first ``known`` characters, which were searched before."""
        if self._search is None:
            self._order = [form for form, what in self._forms.items() if self._counts[what] < MOST]
            self._search = AhoCorasick(self._order)
        for index, begin, end in self._search.find_matches_as_indexes(text, overlapping=True):
            what = self._forms[self._order[index]]
            if end <= known or self._counts[what] >= MOST:
                continue
            self._counts[what] += 1
            if self._counts[what] == MOST:
                self._search = None  # it is built without this one when it is needed next
            self._told(Leak(*what, self._line(text, begin, end, cut=cut)))

    def _line(self, text: str, begin: int, end: int, *, cut: bool) -> str:
        """The line around a secret, without any secret, nor the rest of one that is cut."""
        start = text.rfind("\n", 0, begin) + 1
        before = self._redactor.text(text[start:begin])
        if start == 0 and cut:
            before = before[self._longest :]
        stop = text.find("\n", end)
        after = "" if stop < 0 else self._redactor.text(text[end:stop])  # what may be the beginning of one
        line = f"{before[-_AROUND:]}{REPLACEMENT}{after[:_AROUND]}"
        return line.encode("latin-1", "replace").decode("utf-8", "replace").strip()
