"""How the model's answers reach the client: late, in part, or not at all, as a script's outcome says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mock_server.app import Sender, disconnected, written
from mock_server.calls import Met
from mock_server.model.completions import Parts

if TYPE_CHECKING:
    from mock_server.calls import Answer, Exchange
    from mock_server.model.scripts import Outcome
    from mock_server.wire import Wire

_STREAMED = 2
"""Chunks of a stream that are sent before it is cut: the role, and a piece of the text."""


class ModelSender(Sender):
    """Sends as the exchange's outcome says; refusals, which have none, as any API does."""

    async def send(self, answer: Answer, exchange: Exchange, send: Any) -> None:
        """Wait, then send the answer whole, send a part of it, or end the connection."""
        call = exchange.model
        if call is None or call.outcome is None:
            await super().send(answer, exchange, send)
            return
        outcome, wire = call.outcome, call.wire
        kind, wait = outcome["kind"], outcome.get("afterSeconds", 0)
        if await gone(wait, exchange, wire):
            exchange.fault = Met([], got="nothing", seconds=wait)
        elif kind == "hang":
            exchange.fault = Met([], got="nothing", seconds=wait)
            if not await gone(outcome.get("seconds"), exchange, wire):
                _end(kind, wire, send)
        elif kind not in ("close", "reset"):
            await super().send(answer, exchange, send)
            if isinstance(answer.body, Parts):
                exchange.response_body = b"".join(answer.body.parts)
            if wire is not None and wire.lost.is_set():
                exchange.fault = Met([], got="nothing", seconds=wait)
        elif outcome["at"] == "before":
            exchange.fault = Met([], got="nothing", seconds=wait)
            _end(kind, wire, send)
        else:
            await self.cut(answer, outcome, exchange, _wired(wire), send)

    async def stream(self, body: Any, send: Any, receive: Any) -> None:
        """Send all parts at once."""
        await self.parts(body, send)

    async def cut(self, answer: Answer, outcome: Outcome, exchange: Exchange, wire: Wire, send: Any) -> None:
        """Send the first half, of a stream a piece of the text, and end the connection."""
        streamed = isinstance(answer.body, Parts)
        parts = answer.body.parts if streamed else (written(answer.body),)
        whole = exchange.response_body = b"".join(parts)
        sent = b"".join(parts[:_STREAMED]) if streamed else whole[: len(whole) // 2]
        headers = {"content-type": "application/json", **answer.headers}
        if not streamed:
            headers["content-length"] = str(len(whole))
        exchange.status = answer.status
        exchange.response_headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        exchange.fault = Met([], got="part", bytes=len(sent), seconds=outcome.get("afterSeconds", 0))
        start = {"type": "http.response.start", "status": answer.status, "headers": list(exchange.response_headers)}
        await send(start)
        if streamed:
            await send({"type": "http.response.body", "body": sent, "more_body": True})
        else:
            wire.write(sent)
        if outcome["kind"] == "reset":
            await wire.reached()
        _end(outcome["kind"], wire, send)


async def gone(seconds: float | None, exchange: Exchange, wire: Wire | None) -> bool:
    """Wait in real time, no longer than the server runs; whether the client went away meanwhile. None: for ever."""
    if seconds == 0:
        return False
    leaving = asyncio.ensure_future(disconnected(exchange.receive))
    waiting = [leaving, *([asyncio.ensure_future(wire.stopping.wait())] if wire is not None else [])]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return leaving.done()
    finally:
        for task in waiting:
            task.cancel()


def _end(kind: str, wire: Wire | None, send: Any) -> None:
    if kind == "reset":
        _wired(wire).reset(send)
    else:
        _wired(wire).close(send)


def _wired(wire: Wire | None) -> Wire:
    if wire is None:
        raise ConnectionError("a model script ends this connection")  # the app is called in its own process
    return wire
