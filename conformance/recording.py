"""Every exchange of a check, with the commands that repeat it, without secrets."""

from __future__ import annotations

import base64
import json
import math
import re
import shlex
import time
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from openapi.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BODY = 64 * 2**10
FIRST, LAST = 200, 200
MAX_COMMAND_BODY = 2000
_SCHEME = re.compile("[A-Za-z]+ +")
_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(slots=True)
class Exchange:
    """One exchange. ``response`` is None where none came (yet); ``variables`` are the secrets that commands name.

    ``streamed``: for how many seconds the answer was listened to while other requests were sent; None for a plain one.
    """

    at: float
    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes
    response: tuple[int, Mapping[str, str], bytes] | None
    variables: Mapping[str, str]
    streamed: float | None = None


@dataclass
class Recorder:
    """What one check sent and got: the first 200 exchanges and the last 200, between which it may have lost many.

    ``redactor`` is shared by all checks of a run. Secrets are taken out when the record is read, so that one that is
    learnt late is known, and before bodies are cut at 64 KiB, so that no part of one is left at the cut.
    """

    redactor: Redactor = field(default_factory=Redactor)
    started: float = field(default_factory=time.monotonic)
    left_out: int = 0
    _first: list[Exchange] = field(default_factory=list)
    _last: deque[Exchange] = field(default_factory=deque)
    _again: list[Exchange] | None = None
    """What repeats the failure on its own, where the check found that."""

    def record(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes,
        response: tuple[int, Mapping[str, str], bytes] | None,
        *,
        variables: Mapping[str, str] = _NO_VARIABLES,
    ) -> Exchange:
        """Keep one exchange; ``response`` None is one that never came, or comes later and is put in then.

        ``variables`` tells for a secret in a header from which environment variable a command takes it.
        """
        at = round((time.monotonic() - self.started) * 1000, 1)
        exchange = Exchange(at, method, url, dict(headers), content, response, variables)
        if self._again is not None:
            self._again.append(exchange)
        if len(self._first) < FIRST:
            self._first.append(exchange)
            return exchange
        self._last.append(exchange)
        if len(self._last) > LAST:
            self._last.popleft()
            self.left_out += 1
        return exchange

    def mark(self, begins: bool) -> None:
        """The commands begin here, since what comes repeats the failure; with False they are all again."""
        self._again = [] if begins else None

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """The exchanges as a report has them."""
        return [self._shown(exchange) for exchange in (*self._first, *self._last)]

    @property
    def commands(self) -> list[str]:
        """A command for each exchange, in order; where a repetition was marked, of that alone."""
        if self._again is not None:
            return [self._command(exchange) for exchange in self._again]
        return list(self._commands())

    def _commands(self) -> Iterator[str]:
        yield from (self._command(exchange) for exchange in self._first)
        if self.left_out:
            yield f"# {self.left_out} requests are left out here"
        yield from (self._command(exchange) for exchange in self._last)

    def _command(self, exchange: Exchange) -> str:
        return self.redactor.text(curl(exchange))

    def _shown(self, exchange: Exchange) -> dict[str, Any]:
        answer = None
        if exchange.response is not None:
            status, headers, content = exchange.response
            answer = {"status": status, "headers": self.redactor.data(headers), **self._body(content)}
        request = {"method": exchange.method, "url": self.redactor.text(exchange.url)}
        request |= {"headers": self.redactor.data(exchange.headers), **self._body(exchange.content)}
        return {"at": exchange.at, "request": request, "response": answer}

    def _body(self, content: bytes) -> dict[str, Any]:
        """A body as text, or as base64 where it is no UTF-8, cut where it is long."""
        cut: dict[str, Any] = {"truncated": True} if len(content) > MAX_BODY else {}
        try:
            text = self.redactor.text(content.decode())
        except UnicodeDecodeError:
            clean = self.redactor.text(content.decode("latin-1")).encode("latin-1")
            return {"bodyBase64": base64.b64encode(clean[:MAX_BODY]).decode(), **cut}
        return {"body": text.encode()[:MAX_BODY].decode(errors="ignore"), **cut}


RECORDER: ContextVar[Recorder] = ContextVar("recorder")
CHECK: ContextVar[str] = ContextVar("check", default="")
"""The id of the check that is running."""


def curl(exchange: Exchange) -> str:
    """A command that repeats the request; secrets of ours in its headers are taken from the environment.

    One that opens a stream listens in the background, for as long as the check did.
    """
    parts = ["curl", "-sS", "-i"]
    if exchange.streamed is not None:
        parts += ["-N", "-m", str(math.ceil(exchange.streamed) or 1)]
    parts += ["-X", exchange.method, shlex.quote(exchange.url)]
    for name, value in exchange.headers.items():
        scheme, variable = _taken(value, exchange.variables)
        if variable:
            parts += ["-H", f'"{name}: {scheme}${variable}"']
        elif value == "":
            parts += ["-H", shlex.quote(f"{name};")]
        else:
            parts += ["-H", shlex.quote(f"{name}: {value}")]
    command = _with_content(" ".join(parts), exchange.content)
    return command if exchange.streamed is None else f"{command} &"


def _taken(value: str, variables: Mapping[str, str]) -> tuple[str, str | None]:
    """The scheme of a header's value (``Bearer ``; may be empty), and the variable that holds the secret behind it."""
    if value in variables:
        return "", variables[value]
    scheme = _SCHEME.match(value)
    return (scheme[0], variables.get(value[scheme.end() :])) if scheme else ("", None)


def _with_content(command: str, content: bytes) -> str:
    if not content:
        return command
    text = _plain(content)
    if text is not None:
        return f"{command} --data-binary {shlex.quote(text)}"
    encoded = base64.b64encode(content[:MAX_BODY]).decode()
    return f"echo {encoded} | base64 -d | {command} --data-binary @-"


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
