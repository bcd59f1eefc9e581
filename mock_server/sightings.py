"""Secrets where they do not belong: what a world's raw requests hold, before anything of them is redacted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from mock_server.model import BASE_PATH as MODEL_PATH
from openapi.redaction import Finder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from openapi.redaction import Redactor

SERVICE, MODEL, CANARY = "service token", "model key", "canary"

MOST = 16 * 2**20
"""Bytes of a body that are searched: more than any API takes."""

_MODEL_PATH = f"{MODEL_PATH}/".encode()
_MODEL_HEADER = b"authorization"


class Sightings:
    """The secrets of one world, and where a request may have them.

    The service token belongs into its header, but for calls of a model, which have nothing to do with it; a model key
    belongs into ``authorization`` of a call of a model. A canary belongs nowhere.
    """

    def __init__(
        self, token_header: bytes, token: str, model_keys: Iterable[str], canaries: Iterable[str], redactor: Redactor
    ) -> None:
        """``token_header`` in lower case; ``redactor`` knows these secrets, too."""
        self._token_header, self._redactor = token_header, redactor
        self._finder = Finder()
        self._finder.add(token, SERVICE)
        for key in model_keys:
            self._finder.add(key, MODEL)
        for canary in canaries:
            self._finder.add(canary, CANARY)

    def add(self, model_key: str) -> None:
        """One more model key: it is searched from here on."""
        self._finder.add(model_key, MODEL)

    def of(self, raw: Raw) -> list[dict[str, str]]:
        """Every sighting of a request, each secret once for each place and form: ``secret``, ``place``, ``form``."""
        found: dict[tuple[str, str, str], None] = {}
        for place, text in raw.places():
            for name, form in sorted(self._forms(place, text)):
                if not self._belongs(name, place, raw):
                    found[(name, self._redactor.text(place), form)] = None
        return [{"secret": name, "place": place, "form": form} for name, place, form in found]

    def _forms(self, place: str, text: bytes) -> set[tuple[str, str]]:
        """Names and forms of the secrets in a text."""
        found = {(name, "plain" if plain else "encoded") for name, plain in self._finder.find(_text(text))}
        if place in ("path", "query", "body") and b"%" in text:
            # However little of it was escaped: no form that is known beforehand need be the one that was sent.
            known = {name for name, _ in found}
            decoded = unquote_to_bytes(text.replace(b"+", b" ") if place == "query" else text)
            found |= {(name, "encoded") for name, _ in self._finder.find(_text(decoded)) if name not in known}
        return found

    def _belongs(self, name: str, place: str, raw: Raw) -> bool:
        if name == SERVICE:
            return not raw.to_model and place == _header(self._token_header)
        return name == MODEL and raw.to_model and place == _header(_MODEL_HEADER)


class Raw:
    """One request as it comes in, before anybody changes it: an ASGI ``receive`` that keeps what passes."""

    def __init__(self, scope: Any, receive: Any) -> None:
        self._path: bytes = scope["raw_path"]
        self._query: bytes = scope["query_string"]
        self._headers: list[tuple[bytes, bytes]] = list(scope["headers"])
        self._receive = receive
        self._body: list[bytes] = []
        self._size = 0

    async def __call__(self) -> Any:
        """The next message, as ASGI has it."""
        message = await self._receive()
        part: bytes = message.get("body", b"")
        if part and self._size < MOST:
            self._body.append(part)
            self._size += len(part)
        return message

    @property
    def to_model(self) -> bool:
        """Whether it is a call of a model."""
        return self._path.startswith(_MODEL_PATH)

    def places(self) -> Iterator[tuple[str, bytes]]:
        """Each place with what stands there; several header fields of one name are one place each time."""
        yield "path", self._path
        yield "query", self._query
        yield from ((_header(name), value) for name, value in self._headers)
        yield "body", b"".join(self._body)


def _header(name: bytes) -> str:
    return f"header {name.decode('latin-1').lower()}"


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
