"""Pages for people: each one file without outside resources, served without a key beside the APIs of every world.

A page holds nothing secret and reaches the API of its own world by relative addresses, with what its reader types in.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE_PATH = "/__pages__"

_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_INLINE = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)


def _policy(html: str) -> str:
    """A page's Content-Security-Policy: its own script and style by their digests, its own server, nothing else."""

    def sources(element: str) -> str:
        texts = (text for name, text in _INLINE.findall(html) if name == element)
        return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts) or "'none'"

    directives = {
        "default-src": "'none'",
        "script-src": sources("script"),
        "style-src": sources("style"),
        "connect-src": "'self'",
        "img-src": "data:",  # the empty icon, so that no browser asks the API for one
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in directives.items())


def _read() -> Iterator[tuple[str, tuple[bytes, str]]]:
    """The pages of this folder by path: bytes and policy."""
    for file in files(__name__).iterdir():
        name, dot, suffix = file.name.rpartition(".")
        if dot and suffix == "html":
            html = file.read_text(encoding="utf-8")
            yield f"{BASE_PATH}/{name}", (html.encode(), _policy(html))


_PAGES = dict(_read())


def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body for a request under :data:`BASE_PATH`; ``path`` is decoded, without a world's prefix."""
    page = _PAGES.get(path)
    status, kind, more = HTTPStatus.OK, _TEXT, {}
    if page is None:
        status, body = HTTPStatus.NOT_FOUND, f"There is no such page. There are: {', '.join(sorted(_PAGES))}\n".encode()
    elif method not in ("GET", "HEAD"):
        status, body, more = HTTPStatus.METHOD_NOT_ALLOWED, b"A page is only read.\n", {"allow": "GET, HEAD"}
    else:
        body, policy = page
        kind, more = _HTML, {"content-security-policy": policy}
    headers = {
        "content-type": kind,
        "content-length": str(len(body)),
        "cache-control": "no-cache",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        **more,
    }
    return status, headers, b"" if method == "HEAD" else body


async def serve(scope: Any, send: Any) -> None:
    """Answer an ASGI request whose path is under :data:`BASE_PATH`."""
    status, headers, body = answer(scope["method"], scope["path"])
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
