"""Every request with its interval and its answer: for the history of its job, and for the figures."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from contract_tests.histories.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.load.line import Line, Reply
    from contract_tests.histories.operations import Kind

TOLD = {
    "lock": ("attemptNo",),
    "fail": ("status", "retryCount"),
    "inspect": ("status", "attemptNo", "retryCount", "resultCount"),
    "cancel": ("status",),
}
"""What is kept of an answer, where it is there."""


class Recorder:
    """Sends requests and writes down what happened."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        """How long the answers of each kind of request took."""
        self.answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """How often each kind was answered in which way."""

    async def ask(self, line: Line, what: str, request: bytes) -> tuple[float, float, Reply | None]:
        """One request: when it was sent, when it ended, and the answer."""
        invoked = time.monotonic()
        reply = await line.ask(request)
        completed = time.monotonic()
        self.answers[what][_named(reply)] += 1
        if reply is not None:
            self.seconds[what].append(completed - invoked)
        return invoked, completed, reply

    async def operate(
        self,
        line: Line,
        kind: Kind,
        job: str,
        process: str,
        request: bytes,
        *,
        sent: Mapping[str, Any] | None = None,
        lose_after: float | None = None,
    ) -> Operation:
        """One operation about a job; with ``lose_after`` we hang up after so many seconds and learn nothing."""
        if lose_after is not None:
            invoked = time.monotonic()
            await line.lose(request, lose_after)
            self.answers[kind]["lost on purpose"] += 1
            return self._add(kind, job, process, invoked, None, None, sent)
        invoked, completed, reply = await self.ask(line, kind, request)
        return self._add(kind, job, process, invoked, completed, reply, sent)

    def created(self, job: str, invoked: float, completed: float) -> None:
        """A job is there."""
        self.operations.append(Operation(len(self.operations), job, "", "create", invoked, completed, 200))

    def _add(
        self,
        kind: Kind,
        job: str,
        process: str,
        invoked: float,
        completed: float | None,
        reply: Reply | None,
        sent: Mapping[str, Any] | None,
    ) -> Operation:
        number = len(self.operations)
        if reply is None:
            made = Operation(number, job, process, kind, invoked, sent=sent or {})
        else:
            body = reply.json if reply.content else {}
            code = body.get("errorCode") if reply.status >= 400 else None
            kept = TOLD.get(kind, ()) if reply.status < 300 else ()
            told = {name: _plain(body[name]) for name in kept if name in body}
            code = code if isinstance(code, str) else None
            made = Operation(number, job, process, kind, invoked, completed, reply.status, code, told, sent or {})
        self.operations.append(made)
        return made


def _plain(value: Any) -> Any:
    """A whole number as such, however it was written."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _named(reply: Reply | None) -> str:
    if reply is None:
        return "no answer"
    code = reply.json.get("errorCode") if reply.status >= 400 else None
    return f"{reply.status} {code}" if isinstance(code, str) else str(reply.status)
