"""Serves builds of ``variants.py`` and ``hub_variants.py``, each on a port of its own.

Tells a line of JSON: the base URL of each by its name.

``python serve_variants.py KEY SECRET NAME...``; a name is that of an API, a slash, and that of a build or of a single
trait. ``KEY`` is the key of each; ``SECRET`` is what webhooks are signed with. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import sys
from typing import Any

import hub_variants
import variants
from variant_rewrites import Reply
from variant_streams import STREAM, EventStyle, Respelled
from variant_traits import Trait
from variant_wire import Front, Style

from mock_server import mutants
from mock_server.control import Guard
from mock_server.hub.accounts import tokens
from mock_server.hub.entities import DELIVERY
from mock_server.hub.hub import HubOptions
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

App = Any
CATALOGUE = {"runtime-api": variants.VARIANTS, "agent-hub": hub_variants.VARIANTS}
RULES = {"runtime-api": "RT-", "agent-hub": "HUB-"}
_BUILDS: dict[str, mutants.Mutant] = {}


def parts_of(name: str, traits: list[Trait]) -> mutants.Mutant:
    """The build's parts: the reference's, edited and under layers."""
    system = name.partition("/")[0]

    def edit(document: dict[str, Any]) -> None:
        for trait in traits:
            for change in trait.edits:
                change(document)

    def layered(parts: Any) -> None:
        for trait in traits:
            for part, layer in trait.layers.items():
                setattr(parts, part, _over(layer, getattr(parts, part)))
        if system == "agent-hub":
            parts.webhooks = _over(webhooks_of(traits), parts.webhooks)

    return mutants.Mutant(name, name, (RULES[system],), edit, layered)


def _over(layer: type, part: type) -> type:
    return type(layer.__name__, (layer, part), {})


def webhooks_of(traits: list[Trait]) -> type:
    """The layer over webhooks that rewritings, and a way of sending, make."""
    rewrites = [trait.rewrite for trait in traits if trait.rewrite]
    way = next((trait.posting for trait in traits if trait.posting), None)

    def rewritten(headers: dict[bytes, bytes], data: Any) -> Reply:
        reply = Reply("POST", "", None, 0, headers, data, kind="webhook")
        for rewrite in rewrites:
            rewrite(reply)
        return reply

    class Rewritten:
        async def send(self: Any, *arguments: Any, **more: Any) -> str:
            """The body is fixed when the event happens, so it is rewritten then."""
            id_: str = await super().send(*arguments, **more)  # type: ignore[misc]
            if rewrites:
                row = await self.hub.store.get(DELIVERY, id_)
                reply = rewritten({}, json.loads(row["body"]))
                body = json.dumps(reply.data, ensure_ascii=False) if reply.body is None else reply.body.decode()
                await self._set(id_, body=body)
            return id_

        async def post(self: Any, url: str, headers: dict[str, str], content: bytes) -> int:
            sent = rewritten({name.encode(): text.encode() for name, text in headers.items()}, None).headers
            headers = {name.decode(): text.decode() for name, text in sent.items()}
            if way is not None:
                return await way.post(url, headers, content)
            status: int = await super().post(url, headers, content)  # type: ignore[misc]
            return status

    return Rewritten


class Rewriting:
    """An app with its answers rewritten and delayed; streams stay streams."""

    def __init__(self, app: App, traits: list[Trait]) -> None:
        self.app = app
        self.rewrites = [trait.rewrite for trait in traits if trait.rewrite]
        self.delay = max((trait.delay for trait in traits), default=0)
        self.events = next((trait.events for trait in traits if trait.events), EventStyle())
        self.chance = random.Random(5)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        await self.late()
        messages = [message]

        async def replay() -> Any:
            return messages.pop() if messages else await receive()

        asked = message["body"] if "/provider-states/" in scope["path"] else b""
        state = json.loads(asked)["state"] if asked else None
        await self.app(scope, replay, Answer(self, Reply(scope["method"], scope["path"], state, 0, {}, None), send))

    async def late(self) -> None:
        """Be late."""
        if self.delay:
            await asyncio.sleep(self.chance.uniform(0, self.delay / 2))

    def rewritten(self, reply: Reply) -> Reply:
        """An answer as the build gives it."""
        for rewrite in self.rewrites:
            rewrite(reply)
        return reply

    def event(self, reply: Reply, data: Any) -> bytes | None:
        """An event's data as the build tells it; None where nothing is rewritten."""
        if not self.rewrites:
            return None
        told = self.rewritten(Reply(reply.method, reply.path, None, 200, {}, data, kind="event"))
        return json.dumps(told.data, ensure_ascii=False).encode() if told.body is None else told.body


class Answer:
    """Takes what the app sends of one answer, and sends it rewritten."""

    def __init__(self, build: Rewriting, reply: Reply, send: Any) -> None:
        self.build, self.reply, self.send = build, reply, send
        self._kept: list[bytes] = []
        self._stream: Respelled | None = None

    async def __call__(self, message: dict[str, Any]) -> None:
        reply = self.reply
        if message["type"] == "http.response.start":
            reply.status, reply.headers = message["status"], dict(message["headers"])
            if reply.headers.get(b"content-type") == STREAM:
                reply.kind = "stream"
                self._stream = Respelled(self.build.events, lambda data: self.build.event(reply, data))
                await self._begin()
        elif self._stream is not None:
            for piece in self._stream.pieces(message.get("body", b"")):
                await self.build.late()
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
            if not message.get("more_body", False):
                await self.send({"type": "http.response.body"})
        else:
            self._kept.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._whole(b"".join(self._kept))

    async def _begin(self) -> None:
        self.build.rewritten(self.reply)
        headers = list(self.reply.headers.items())
        await self.send({"type": "http.response.start", "status": self.reply.status, "headers": headers})

    async def _whole(self, body: bytes) -> None:
        reply = self.reply
        reply.data = json.loads(body) if body else None
        await self.build.late()
        await self._begin()
        content = reply.body
        if content is None:
            content = b"" if reply.data is None else json.dumps(reply.data).encode()
        await self.send({"type": "http.response.body", "body": content})


async def served(name: str, key: str, secret: str) -> str:
    """Serve one build; its base URL."""
    system, _, build = name.partition("/")
    traits = CATALOGUE[system].of(build)
    _BUILDS[name] = parts_of(name, traits)
    clock = next((trait.clock for trait in traits if trait.clock), "manual")
    hidden = frozenset(state for trait in traits for state in trait.without)
    keys = (key, secrets.token_hex()) if any(trait.one_key for trait in traits) else tokens(key)
    signed = next((trait.secret for trait in traits if trait.secret != ""), secret)
    worlds = Worlds(Options(key, clock=clock, mutant=name, without_states=hidden, hub=HubOptions(keys, signed)))
    guard = Guard(frozenset({"127.0.0.1"}), None)
    style = next((trait.style for trait in traits if trait.style), Style())
    front = Front(Rewriting(Server(worlds, guard), traits), style)
    server = await asyncio.start_server(front, "127.0.0.1", 0, backlog=512)
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def main(key: str, secret: str, *names: str) -> None:
    """Serve until standard input ends."""
    mutants.registry = lambda: _BUILDS
    urls = {name: await served(name, key, secret) for name in names}
    sys.stdout.write(json.dumps(urls) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
