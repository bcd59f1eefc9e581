"""The layer between the server and a world's API in which fault plans do what they say, outside of the handlers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.app import Sender
from mock_server.calls import Answer, Met
from mock_server.fault_bodies import spoilt
from mock_server.fault_plans import answered
from mock_server.fault_rules import BODILESS, words
from mock_server.fault_targets import Asked
from mock_server.wire import WIRE
from openapi.contract import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.app import Api
    from mock_server.calls import Exchange
    from mock_server.fault_plans import Counted, Taken
    from mock_server.fault_targets import Targets
    from mock_server.wire import Wire

_RETRY = (408, 425, 429)


class Incoming:
    """The body of a request, read ahead of the API and then given to it as it came."""

    def __init__(self, receive: Any, limit: int) -> None:
        """``limit``: no more than about so many bytes are kept."""
        self._receive, self._limit = receive, limit
        self._read: list[Any] = []
        self._size = 0
        self._more = True

    async def __call__(self) -> Any:
        """The next message, as ASGI has it."""
        return self._read.pop(0) if self._read else await self._receive()

    async def read(self) -> bytes:
        """The body as far as it is kept; nothing where it is larger, or the client went away before it was complete."""
        while self._more and self._size <= self._limit:
            message = await self._receive()
            self._read.append(message)
            self._size += len(message.get("body", b""))
            self._more = bool(message.get("more_body"))
        return b"".join(message.get("body", b"") for message in self._read) if self.complete else b""

    @property
    def complete(self) -> bool:
        """Whether all that belongs to the body was read."""
        return not self._more and self._read[-1]["type"] == "http.request"

    async def drain(self, seconds: float = 2) -> None:
        """Read the rest and forget it: to close a connection with bytes unread would reset it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._more:
                    self._more = bool((await self._receive()).get("more_body"))


class Held:
    """Takes an answer in the client's place. What comes in several parts is a stream: it goes through as it is."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self.start: Any = None
        self.body = b""
        self.streams = False

    async def __call__(self, message: Any) -> None:
        """The next message, as ASGI has it."""
        if self.streams:
            await self._send(message)
        elif message["type"] == "http.response.start":
            self.start = message
        elif message.get("more_body"):
            self.streams = True
            await self._send(self.start)
            await self._send(message)
        else:
            self.body = message.get("body", b"")


async def serve(api: Api, targets: Targets, exchange: Exchange, scope: Any, receive: Any, send: Any) -> None:
    """Serve one request to an API of a world that has fault plans."""
    world, app = exchange.world, api.asgi
    target, path = targets.find(scope["method"], scope["raw_path"])
    incoming = Incoming(receive, targets.limit)
    asked = Asked(target)
    if target is not None:
        raw = exchange.headers.get(target.caller_header or b"")
        asked.caller = None if raw is None else raw.decode("latin-1")
        asked.job_id = path.get("jobId")
        if world.faults.reads_bodies and (target.caller_in_body or target.job_in_body):
            body = _parsed(await incoming.read())
            if target.caller_in_body and isinstance(body.get("runtimeInstanceId"), str):
                asked.caller = body["runtimeInstanceId"]
            if target.job_in_body and isinstance(body.get("jobId"), str):
                asked.job_id = body["jobId"]
    chosen, waiting = world.faults.choose(asked), world.faults.waiting(asked)
    if not chosen and not waiting:
        await app(scope, incoming, send)
        return
    met = Met([(taken.plan.id, taken.plan.kind) for taken in chosen])
    exchange.fault = met if chosen else None
    await _Meeting(api, exchange, met, scope, incoming, send, asked).run(chosen, waiting)


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError:
        return {}
    return body if isinstance(body, dict) else {}


class _Meeting:
    """One request and the plans that meet it."""

    def __init__(
        self, api: Api, exchange: Exchange, met: Met, scope: Any, incoming: Incoming, send: Any, asked: Asked
    ) -> None:
        self.errors, self.app = api.errors, api.asgi
        self.exchange, self.scope, self.incoming, self.send = exchange, scope, incoming, send
        self.asked, self.met = asked, met
        self._wire: Wire | None = scope.get("state", {}).get(WIRE)

    @property
    def wire(self) -> Wire:
        """The connection. Raises ``ConnectionError`` where there is none: the app is called in its own process."""
        if self._wire is None:
            raise ConnectionError("a fault plan cuts this connection")
        return self._wire

    async def run(self, chosen: list[Taken], waiting: list[Counted]) -> None:
        """Do what the plans say; ``waiting`` are those that count the answer when it is there."""
        waits = {"request": 0.0, "answer": 0.0}
        main = chosen[-1] if chosen and chosen[-1].plan.kind != "delay" else None
        for taken in chosen:
            if taken is not main:
                waits[taken.plan.fault["at"]] += taken.plan.seconds(taken.n, taken.key)
        self.met.seconds = sum(waits.values())
        if waits["request"]:
            await self.incoming.read()  # as a busy server has it: the client may go away, and is handled all the same
            await self.pause(waits["request"])
        fault = main.plan.fault if main else None
        if fault is not None and (fault.get("at") == "before" or fault["kind"] in _UNHANDLED):
            await self.instead(fault, main.plan.id if main else "", waits["answer"])
            return
        if main is None and not waits["answer"] and not waiting:
            await self.app(self.scope, self.incoming, self.send)
            self.gone()
            return
        held = Held(self.send)
        await self.app(self.scope, self.incoming, held)
        if held.start is None:
            self.met.got = "nothing"  # the client went away, and nobody answered
            return
        later = answered(waiting, self.asked, held.start["status"], met=main is not None)
        if later is not None:
            main, fault = later, later.plan.fault
            self.met.plans.append((later.plan.id, later.plan.kind))
            self.exchange.fault = self.met
        await self.pause(waits["answer"])
        if held.streams or fault is None or not await self.spoil(fault, held):
            if main is not None:  # this answer had nothing to spoil
                main.take(-1)
                self.met.plans.pop()
                if not self.met.plans:
                    self.exchange.fault = None
            if not held.streams:
                await self.answer(held.start, held.body)

    async def pause(self, seconds: float) -> None:
        """Wait in real time; no longer than the server runs, but whether the client is there or not."""
        if seconds and self._wire is None:
            await asyncio.sleep(seconds)
        elif seconds:
            await _within(seconds, self.wire.stopping)

    async def answer(self, start: Any, body: bytes) -> None:
        """Send an answer whole."""
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})
        self.gone()

    def gone(self) -> None:
        """Note that the client did not wait for the answer, where it did not."""
        if self._wire is not None and self._wire.lost.is_set():
            self.met.got = "nothing"

    async def instead(self, fault: Mapping[str, Any], id_: str, wait: float) -> None:
        """A fault in the place of the API, which sees nothing of the request."""
        exchange, asked = self.exchange, self.asked
        self.met.handled = False
        if asked.target is not None:
            exchange.operation_id, exchange.job_id = asked.target.id, asked.job_id
        exchange.caller = asked.caller or None
        exchange.request_body = await self.incoming.read()
        await self.incoming.drain()
        await self.pause(wait)
        if fault["kind"] in ("status", "rate-limit"):
            await self.refuse(fault, id_)
            return
        self.met.got = "nothing"
        if fault["kind"] == "hang":
            await _within(fault.get("seconds"), self.wire.lost, self.wire.stopping)
        if fault["kind"] == "reset":
            self.wire.reset(self.send)
        else:
            self.wire.close(self.send)

    async def refuse(self, fault: Mapping[str, Any], id_: str) -> None:
        """A status with the API's error body."""
        exchange, errors = self.exchange, self.errors
        headers = {**errors.headers(exchange), **fault.get("headers", {})}
        if fault["kind"] == "rate-limit":
            status, name = 429, words(429)
            headers["retry-after"] = str(fault["retryAfter"])
        else:
            status = fault["status"]
            documented = self.asked.target.codes if self.asked.target else {}
            name = fault.get("errorCode") or documented.get(status) or words(status)
        if status in BODILESS:
            await Sender().send(Answer(status, None, headers), exchange, self.send)
        else:
            known = errors.codes.get(name)
            retryable = known.retryable if known else status in _RETRY or status >= 500
            message = fault.get("message") or f"The fault plan `{id_}` made this answer."
            body = errors.told(ErrorCode(name, status, retryable, ""), message, exchange)
            exchange.error_code = name
            await Sender().send(Answer(status, body, headers), exchange, self.send)
        self.gone()

    async def spoil(self, fault: Mapping[str, Any], held: Held) -> bool:
        """Send a held answer as the fault leaves it; False, with nothing done, where there is nothing to spoil."""
        kind, body = fault["kind"], b"" if self.scope["method"] == "HEAD" else held.body
        if kind in ("reset", "close"):
            if fault["at"] == "mid-body" and not body:
                return False
            await self.cut(fault, held.start, body)
        elif kind in ("wrong-length", "drip"):
            if not body:
                return False
            await (self.misframe(fault, held.start, body) if kind == "wrong-length" else self.drip(fault, held))
        else:
            changed = spoilt(fault, body)
            if changed is None:
                return False
            self.met.got = "altered"
            if kind == "truncated-json":
                self.met.bytes = len(changed)
            else:
                self.met.body = changed
            await self.answer(_framed(held.start, len(changed)), changed)
        return True

    async def cut(self, fault: Mapping[str, Any], start: Any, body: bytes) -> None:
        """End the connection: of a handled request nothing is answered, or half."""
        self.met.got = "nothing"
        if fault["at"] == "mid-body":
            self.met.got, self.met.bytes = "part", len(body) // 2
            await self.send(_framed(start, len(body)))
            self.wire.write(body[: len(body) // 2])
            if fault["kind"] == "reset":
                await self.wire.reached()
        if fault["kind"] == "reset":
            self.wire.reset(self.send)
        else:
            self.wire.close(self.send)

    async def misframe(self, fault: Mapping[str, Any], start: Any, body: bytes) -> None:
        """Say another length than the body has."""
        length = max(len(body) + fault["by"], 0)
        self.met.got, self.met.bytes = "altered", min(length, len(body))
        wire = self.wire
        await self.send(_framed(start, length))
        wire.write(body)
        wire.close(self.send)

    async def drip(self, fault: Mapping[str, Any], held: Held) -> None:
        """Send the body in pieces, as long as somebody is there to take them."""
        body, size, sent = held.body, fault["bytes"], 0
        await self.send(_framed(held.start, len(body)))
        while sent < len(body):
            if sent:
                await self.pause(fault["seconds"])
            if self._wire is not None and self._wire.lost.is_set():
                self.met.got, self.met.bytes = "part", sent
                return
            piece = body[sent : sent + size]
            sent += len(piece)
            await self.send({"type": "http.response.body", "body": piece, "more_body": sent < len(body)})


_UNHANDLED = frozenset({"status", "rate-limit", "hang", "empty"})


def _framed(start: Any, length: int) -> Any:
    """The start of an answer with another content length."""
    headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    return {**start, "headers": [*headers, (b"content-length", b"%d" % length)]}


async def _within(seconds: float | None, *events: asyncio.Event) -> None:
    """Wait for the first of the events, at most so long."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
