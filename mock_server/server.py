"""The outermost ASGI layer: finds the world of a request, hands it to that world's API, and keeps the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mock_server import fault_layer, pages
from mock_server.app import EXCHANGE, Sender
from mock_server.builds import build_hub, fault_targets
from mock_server.calls import Answer, Exchange
from mock_server.control import BASE_PATH, Control, Guard
from mock_server.model import BASE_PATH as MODEL_PATH
from mock_server.model import provider
from mock_server.sightings import Raw
from mock_server.worlds import PREFIX

if TYPE_CHECKING:
    from mock_server.recording import Recorder
    from mock_server.worlds import World, Worlds

_RAW_PREFIX = PREFIX.encode()


class Server:
    """All worlds of one process as one ASGI app."""

    def __init__(self, worlds: Worlds, guard: Guard, recorder: Recorder | None = None) -> None:
        """``recorder`` is told every exchange of every world."""
        self.worlds, self.recorder = worlds, recorder
        self.control = Control(worlds, guard)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request; other protocols than HTTP are for the default world's app (its lifespan)."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.worlds.default.build.api.asgi(scope, receive, send)
            return
        world = self.worlds.default
        if self.worlds.routed or scope["raw_path"].startswith(_RAW_PREFIX):
            found, scope = self._find(scope)
            if isinstance(found, str):
                exchange = Exchange(world, scope["method"], scope["path"], {}, 0)
                message = f"{found}; make a world with POST {BASE_PATH}/worlds"
                await Sender().send(Answer(404, {"error": message}), exchange, send)
                return
            world = found
        path: str = scope["path"]
        exchange = Exchange(
            world, scope["method"], path, dict(scope["headers"]), world.clock.now(), query=scope["query_string"]
        )
        scope["extensions"] = {**scope.get("extensions", {}), EXCHANGE: exchange}
        lease = world.lease
        if lease is not None:
            lease.begin()
        try:
            if path.startswith(BASE_PATH + "/"):
                await self.control.api.asgi(scope, receive, send)
                return
            if path.startswith(pages.BASE_PATH + "/"):
                await pages.serve(scope, send)
                return
            raw = None
            if world.sightings is not None:
                receive = raw = Raw(scope, receive)
            try:
                if path.startswith(MODEL_PATH + "/"):
                    await provider.serve(exchange, scope, receive, send)
                    return
                hub = build_hub(world.options.mutant)
                api = hub.api if below(path, hub.base_path) else world.build.api
                if world.faults.active:
                    await fault_layer.serve(api, fault_targets(), exchange, scope, receive, send)
                else:
                    await api.asgi(scope, receive, send)
            finally:
                if raw is not None and world.sightings is not None:
                    exchange.sightings = world.sightings.of(raw)
                entry = world.journal.record(exchange)
                if self.recorder is not None:
                    self.recorder.add(world.path, entry)
        finally:
            if lease is not None:
                lease.end()

    def _find(self, scope: Any) -> tuple[World | str, Any]:
        """The world of a request, by its port, its path's prefix, or its key, in this order, and its scope there.

        Why there is none, instead of the world, where there is none.
        """
        worlds, own = self.worlds, None
        if worlds.by_port or worlds.listener is not None:
            port = scope["server"][1]
            own = worlds.by_port.get(port)
            if own is None and worlds.listener is not None and port != worlds.listener.port:
                return "the world of this port is gone", scope  # and the connection outlived it
        if scope["raw_path"].startswith(_RAW_PREFIX):
            world, scope = self._enter(scope)
            if own is None or world is own:
                return world, scope
            return "this port serves one world alone; reach others by the server's own", scope
        if own is None and worlds.by_key:
            own = worlds.by_key.get(dict(scope["headers"]).get(worlds.key_header, b""))
        # A scope of its own: the server's stays with the connection, and would keep a dropped world.
        return (worlds.default, scope) if own is None else (own, dict(scope))

    def _enter(self, scope: Any) -> tuple[World | str, Any]:
        """The world named by the path's prefix, and the scope without that prefix.

        Both paths of the scope come from the raw one, so that what is asked for the key is what is routed.
        """
        raw: bytes = scope["raw_path"]
        id_, _, rest = raw.removeprefix(_RAW_PREFIX).partition(b"/")
        inside = b"/" + rest
        path = unquote(inside.decode("latin-1"))
        name = id_.decode("latin-1")
        return self.worlds.get(name) or self.worlds.absent(name), {**scope, "path": path, "raw_path": inside}


def below(path: str, base_path: str) -> bool:
    """Whether a path is the base path of an API, or lies under it."""
    return path.startswith(base_path) and path[len(base_path) :][:1] in ("", "/")
