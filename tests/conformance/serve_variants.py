"""Serves builds of ``variants.py``, each on a port of its own, and tells a line of JSON: base URL by name.

``python serve_variants.py KEY NAME...``; a name is that of a build, or of a single trait. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from variant_rewrites import Reply
from variant_wire import Front, Style
from variants import BUILDS, TRAITS, Trait

from mock_server import mutants
from mock_server.control import Guard
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

App = Any


def parts_of(name: str, traits: list[Trait]) -> mutants.Mutant:
    """The build's parts: the reference's, edited and under layers."""

    def edit(document: dict[str, Any]) -> None:
        for trait in traits:
            for change in trait.edits:
                change(document)

    def layered(parts: mutants.Parts) -> None:
        for trait in traits:
            for part, layer in trait.layers.items():
                setattr(parts, part, type(layer.__name__, (layer, getattr(parts, part)), {}))

    return mutants.Mutant(name, name, (), edit, layered)


def rewriting(app: App, traits: list[Trait]) -> App:
    """The app with its answers rewritten and delayed."""
    rewrites = [trait.rewrite for trait in traits if trait.rewrite]
    delay = max((trait.delay for trait in traits), default=0)
    chance = random.Random(5)

    async def rewritten(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        if delay:
            await asyncio.sleep(chance.uniform(0, delay / 2))
        sent: list[dict[str, Any]] = []
        messages = [message]

        async def replay() -> Any:
            return messages.pop() if messages else await receive()

        async def keep(message: dict[str, Any]) -> None:
            sent.append(message)

        await app(scope, replay, keep)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        asked = message["body"] if "/provider-states/" in scope["path"] else b""
        state = json.loads(asked)["state"] if asked else None
        headers = dict(sent[0]["headers"])
        reply = Reply(
            scope["method"], scope["path"], state, sent[0]["status"], headers, json.loads(body) if body else None
        )
        for rewrite in rewrites:
            rewrite(reply)
        if reply.body is None:
            reply.body = b"" if reply.data is None else json.dumps(reply.data).encode()
        if delay:
            await asyncio.sleep(chance.uniform(0, delay / 2))
        await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers.items())})
        await send({"type": "http.response.body", "body": reply.body})

    return rewritten


async def served(name: str, key: str) -> str:
    """Serve one build; its base URL."""
    traits = [TRAITS[trait] for trait in BUILDS.get(name, (name,))]
    mutant = parts_of(name, traits)
    mutants.registry = lambda: {name: mutant}
    clock = next((trait.clock for trait in traits if trait.clock), "manual")
    hidden = frozenset(state for trait in traits for state in trait.without)
    worlds = Worlds(Options(key, clock=clock, mutant=name, without_states=hidden))
    guard = Guard(frozenset({"127.0.0.1"}), None)
    style = next((trait.style for trait in traits if trait.style), Style())
    front = Front(rewriting(Server(worlds, guard), traits), style)
    server = await asyncio.start_server(front, "127.0.0.1", 0, backlog=512)
    return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def main(key: str, *names: str) -> None:
    """Serve until standard input ends."""
    urls = {name: await served(name, key) for name in names}
    sys.stdout.write(json.dumps(urls) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
