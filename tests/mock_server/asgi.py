"""Requests to an ASGI app in this process."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote

KEY = "test-internal-key"
HEADERS = {"x-internal-api-key": KEY, "x-runtime-instance-id": "runtime-1", "host": "127.0.0.1"}


async def request(
    app: Any, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer; ``headers`` are added to key and instance id."""
    fields = {**HEADERS, "content-length": str(len(body)), **(headers or {})}
    raw, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "root_path": "",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in fields.items()],
    }
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {name.decode().lower(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])


def ask(app: Any, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
    """One request with a JSON body, and the answer's JSON."""
    content = b"" if body is None else json.dumps(body).encode()
    fields = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    status, found, raw = asyncio.run(request(app, method, path, content, fields))
    return status, found, json.loads(raw) if raw.startswith(b"{") else raw
