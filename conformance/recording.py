"""Every exchange of a check, with the commands that repeat it."""

from __future__ import annotations

import base64
import json
import shlex
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BODY = 64 * 2**10
MAX_EXCHANGES = 400
MAX_COMMAND_BODY = 2000


@dataclass
class Recorder:
    """What one check sent and got; bodies are cut at 64 KiB."""

    started: float = field(default_factory=time.monotonic)
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def record(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes,
        response: tuple[int, Mapping[str, str], bytes] | None,
        *,
        secret: str | None = None,
    ) -> None:
        """Keep one exchange; ``response`` None is one that never came."""
        if len(self.exchanges) >= MAX_EXCHANGES:
            return
        request = {"method": method, "url": url, "headers": dict(headers), **body_of(content)}
        answer = None
        if response is not None:
            status, response_headers, response_content = response
            answer = {"status": status, "headers": dict(response_headers), **body_of(response_content)}
        at = round((time.monotonic() - self.started) * 1000, 1)
        self.exchanges.append({"at": at, "request": request, "response": answer})
        self.commands.append(curl(method, url, headers, content, secret))


RECORDER: ContextVar[Recorder] = ContextVar("recorder")


def body_of(content: bytes) -> dict[str, Any]:
    """A body as text, or as base64 where it is no UTF-8, cut where it is long."""
    cut: dict[str, Any] = {"truncated": True} if len(content) > MAX_BODY else {}
    try:
        return {"body": content[:MAX_BODY].decode(), **cut}
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(content[:MAX_BODY]).decode(), **cut}


def curl(method: str, url: str, headers: Mapping[str, str], content: bytes, secret: str | None) -> str:
    """A command that repeats the request; the key is taken from ``$CONTRACT_API_KEY``."""
    parts = ["curl", "-sS", "-i", "-X", method, shlex.quote(url)]
    for name, value in headers.items():
        if secret and value == secret:
            parts += ["-H", f'"{name}: $CONTRACT_API_KEY"']
        elif value == "":
            parts += ["-H", shlex.quote(f"{name};")]
        else:
            parts += ["-H", shlex.quote(f"{name}: {value}")]
    if not content:
        return " ".join(parts)
    text = _plain(content)
    if text is not None:
        return " ".join([*parts, "--data-binary", shlex.quote(text)])
    encoded = base64.b64encode(content[:MAX_BODY]).decode()
    return f"echo {encoded} | base64 -d | {' '.join(parts)} --data-binary @-"


def _plain(content: bytes) -> str | None:
    """A body as text for a command line; None where it is long or no text."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if len(text) > MAX_COMMAND_BODY or "\0" in text else text


def state_command(url: str, state: str, params: Mapping[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of the request that sets up a provider state."""
    body = {"action": "setup", "state": state, "params": dict(params)}
    return {"content-type": "application/json"}, json.dumps(body, ensure_ascii=False).encode()
