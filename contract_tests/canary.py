"""Canaries: each key that the build hands out. Found in any other place it has leaked, plain or encoded.

The transport and the provider states tell a :class:`Canary` every answer of the run; checks marked ``@last`` ask it.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.client import BASE
from openapi.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from contract_tests.transport import Request, Response

RESOLVE = f"{BASE}/model-credentials/resolve"
KEY = "apiKey"
MIN_LENGTH = 8
"""Shorter keys can't be told from other text."""
WORDS = frozenset({"platform_key", "user_deepseek_key", "deepseek", "deepseek-chat"})
"""What stands in answers by right, and is no key where a build hands it out as one."""
MAX_CHARACTERS = 32 * 2**20
MAX_LEAKS = 100


@dataclass(frozen=True, slots=True)
class Leak:
    """A key where it does not belong."""

    place: str
    """``answer`` (any of the API's), ``details`` (those of an error), or ``state`` (a provider state's answer)."""
    told: str
    """Which answer it was, in which check, and the text around the key, without the key."""


@dataclass(frozen=True, slots=True)
class _Note:
    place: str
    title: str
    text: str


class Canary:
    """Every key that was handed out, and every answer of the run in which one could stand.

    Answers are kept and searched at the end, so that a key that is learnt late is found in what came before it. Where
    they become too many the oldest are searched for the keys known by then, and forgotten: memory stays bounded.
    """

    def __init__(self, learn: Callable[[str], None] | None = None, most: int = MAX_CHARACTERS) -> None:
        """``learn`` is told each key, so that no report shows it; ``most`` characters of answers are kept."""
        self._learn, self._most = learn, most
        self._keys: set[str] = set()
        self._search = Redactor()
        self._notes: deque[_Note] = deque()
        self._kept = 0
        self._leaks: list[Leak] = []

    @property
    def keys(self) -> int:
        """How many keys can be searched."""
        return len(self._keys)

    def hand_out(self, key: object) -> None:
        """A key came where it belongs."""
        if not isinstance(key, str) or key in WORDS or key in self._keys:
            return
        if self._learn is not None:
            self._learn(key)
        if len(key) >= MIN_LENGTH:
            self._keys.add(key)
            self._search.add(key)

    def heard(self, request: Request, response: Response, check: str = "") -> None:
        """The API answered."""
        title = _in_check(f"{request.method} {request.path[:200]} answered {response.status}", check)
        content, key = without_key(request, response)
        self.hand_out(key)
        self._note("answer", title, _head(response), content)
        if response.status >= 400:
            self._note("details", title, "", details_of(response))

    def heard_state(self, state: str, status: int, content: bytes, check: str = "") -> None:
        """A provider state was set up, or refused."""
        if status == 200 and state == "credential":
            content, key = _taken_out(content)
            self.hand_out(key)
        self._note("state", _in_check(f"provider state {state} answered {status}", check), "", content)

    def leaks(self) -> list[Leak]:
        """What was found in all answers so far."""
        while self._notes:
            self._search_oldest()
        return self._leaks

    def _note(self, place: str, title: str, head: str, content: bytes) -> None:
        text = head + content.decode("utf-8", "replace")
        if not text:
            return
        self._notes.append(_Note(place, title, text))
        self._kept += len(text)
        while self._kept > self._most:
            self._search_oldest()

    def _search_oldest(self) -> None:
        note = self._notes.popleft()
        self._kept -= len(note.text)
        around = place_of(self._search, note.text)
        if around is not None and len(self._leaks) < MAX_LEAKS:
            self._leaks.append(Leak(note.place, f"{note.title}: {around}"))


def place_of(search: Redactor, text: str) -> str | None:
    """The text around the first secret, the secret replaced; None where there is none."""
    for form in (text, _unescaped(text)) if "\\" in text else (text,):
        clean = search.text(form)
        if clean != form:
            start = next((i for i, (a, b) in enumerate(zip(clean, form, strict=False)) if a != b), len(form))
            return f"…{clean[max(start - 80, 0) : start + 60]}…"
    return None


def without_key(request: Request, response: Response) -> tuple[bytes, str | None]:
    """An answer's body as keys are to be searched in it, and the key that it hands out, which is taken out."""
    if request.path == RESOLVE and 200 <= response.status < 300:
        return _taken_out(response.content)
    return response.content, None


def details_of(response: Response) -> bytes:
    """The ``details`` of an error; empty where it has none."""
    try:
        details = json.loads(response.content)["details"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return b""
    return json.dumps(details, ensure_ascii=False).encode(errors="replace")


def key_in(key: str, request: Request, response: Response) -> str | None:
    """The text around a key in an answer that does not hand it out; None where there is none."""
    return key_in_text(key, _head(response) + without_key(request, response)[0].decode("utf-8", "replace"))


def key_in_text(key: str, text: str) -> str | None:
    """The text around a key; None where there is none, or the key can't be told from other text."""
    return None if len(key) < MIN_LENGTH or key in WORDS else place_of(Redactor([key]), text)


def _head(response: Response) -> str:
    return "".join(f"{name}: {value}\n" for name, value in response.headers.items())


def _taken_out(content: bytes) -> tuple[bytes, str | None]:
    """A body without its ``apiKey``, and that key; as it is where there is none."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return content, None
    if not isinstance(body, dict) or not isinstance(body.get(KEY), str):
        return content, None
    return json.dumps({**body, KEY: None}, ensure_ascii=False).encode(errors="replace"), body[KEY]


def _in_check(title: str, check: str) -> str:
    return f"{title} in check {check}" if check else title


def _unescaped(text: str) -> str:
    r"""The text with what JSON escapes written out: a build may write ``+`` as ``\u002b``."""
    head, brace, body = text.partition("{")
    try:
        return head + _strings(json.loads(brace + body))
    except (ValueError, RecursionError):
        return text


def _strings(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_strings, value))
    if isinstance(value, dict):
        items: Mapping[str, Any] = value
        return "\n".join(f"{name}: {_strings(item)}" for name, item in items.items())
    return json.dumps(value)
