"""The outermost ASGI layer: finds the world of a request, hands it to that world's API, and keeps the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mock_server.app import EXCHANGE, Sender
from mock_server.calls import Answer, Exchange
from mock_server.control import BASE_PATH, Control, Guard
from mock_server.worlds import PREFIX

if TYPE_CHECKING:
    from mock_server.worlds import World, Worlds

_RAW_PREFIX = PREFIX.encode()


class Server:
    """All worlds of one process as one ASGI app."""

    def __init__(self, worlds: Worlds, guard: Guard) -> None:
        self.worlds = worlds
        self.control = Control(worlds, guard)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; other protocols than HTTP are for the default world's app (its lifespan)."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.worlds.default.build.api.asgi(scope, receive, send)
            return
        world: World | None = self.worlds.default
        if scope["raw_path"].startswith(_RAW_PREFIX):
            world, scope = self._enter(scope)
        if world is None:
            exchange = Exchange(self.worlds.default, scope["method"], scope["path"], {}, 0)
            message = f"no world is there; make one with POST {BASE_PATH}/worlds"
            await Sender().send(Answer(404, {"error": message}), exchange, send)
            return
        path: str = scope["path"]
        exchange = Exchange(world, scope["method"], path, dict(scope["headers"]), world.clock.now())
        scope["extensions"] = {**scope.get("extensions", {}), EXCHANGE: exchange}
        if path.startswith(BASE_PATH + "/"):
            await self.control.api.asgi(scope, receive, send)
            return
        try:
            await world.build.api.asgi(scope, receive, send)
        finally:
            world.journal.record(exchange)

    def _enter(self, scope: Any) -> tuple[World | None, Any]:
        """The world named by the path's prefix, and the scope without that prefix.

        Both paths of the scope come from the raw one, so that what is asked for the key is what is routed.
        """
        raw: bytes = scope["raw_path"]
        id_, _, rest = raw.removeprefix(_RAW_PREFIX).partition(b"/")
        inside = b"/" + rest
        path = unquote(inside.decode("latin-1"))
        return self.worlds.get(id_.decode("latin-1")), {**scope, "path": path, "raw_path": inside}
