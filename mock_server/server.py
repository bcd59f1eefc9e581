"""The outermost ASGI layer: finds the world of a request, hands it to that world's API, and keeps the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mock_server.app import EXCHANGE, send_answer
from mock_server.calls import Answer, Disconnected, Exchange
from mock_server.control import BASE_PATH, Control, Guard
from mock_server.worlds import PREFIX

if TYPE_CHECKING:
    from mock_server.worlds import World, Worlds


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
        if scope["raw_path"].startswith(PREFIX.encode()):
            world, scope = self._enter(scope)
        if world is None:
            exchange = Exchange(self.worlds.default, scope["method"], scope["path"], 0)
            message = f"no world is there; make one with POST {BASE_PATH}/worlds"
            await send_answer(Answer(404, {"error": message}), exchange, send)
            return
        path: str = scope["path"]
        exchange = Exchange(world, scope["method"], path, world.clock.now())
        scope["extensions"] = {**scope.get("extensions", {}), EXCHANGE: exchange}
        if path.startswith(BASE_PATH):
            await self.control.api.asgi(scope, receive, send)
            return
        try:
            await world.build.api.asgi(scope, receive, send)
        except Disconnected:
            return
        finally:
            world.journal.record(exchange)

    def _enter(self, scope: Any) -> tuple[World | None, Any]:
        """The world named by the path's prefix, and the scope without that prefix.

        Both are cut from the path as it was sent: a slash that is encoded separates nothing, and must not make the key
        be judged on one path and the operation be found on another.
        """
        _, _, name, *rest = scope["raw_path"].split(b"/", 3)
        raw = b"/" + rest[0] if rest else b""
        inside = {**scope, "path": unquote(raw.decode("latin-1"), errors="replace"), "raw_path": raw}
        return self.worlds.get(unquote(name.decode("latin-1"), errors="replace")), inside
