"""Worlds over the control plane: make, list, reset, drop."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.builds import fault_targets
from mock_server.calls import Answer, Refusal
from mock_server.control.lookup import named, touched
from mock_server.fault_plans import plans_of
from mock_server.hub.webhooks import sound_secret
from mock_server.model.scripts import scripts_of
from mock_server.ports import host_name, is_loopback
from mock_server.seed_data import SeedData
from mock_server.snapshots import Exists
from mock_server.state_set import known
from mock_server.timing import timing_of

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler
    from mock_server.hub.hub import HubOptions
    from mock_server.state_set import StateSet
    from mock_server.worlds import World, Worlds


class WorldHandlers:
    """Handlers of the tag ``worlds``."""

    def __init__(self, worlds: Worlds, *states: StateSet) -> None:
        self.worlds, self.states = worlds, states

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {
            "listWorlds": self.list_worlds,
            "makeWorld": self.make_world,
            "dropWorlds": self.drop_worlds,
            "readWorld": self.read_world,
            "dropWorld": self.drop_world,
            "resetWorld": self.reset_world,
        }

    async def list_worlds(self, call: Call) -> Answer:
        """Every world."""
        return Answer(200, {"worlds": [self.shown(world, call) for world in self.worlds]})

    async def make_world(self, call: Call) -> Answer:
        """Make a world."""
        body = call.body
        hidden = body.get("withoutStates")
        port = None
        try:
            known(hidden or (), *self.states)
            seeds = SeedData.parse(body["data"]) if "data" in body else None
            faults = plans_of(body["faults"], fault_targets(), place="/faults") if "faults" in body else None
            model = scripts_of(body["model"], place="/model") if "model" in body else None
            if body.get("port"):
                port = await self.worlds.open_port(0 if body["port"] is True else int(body["port"]))
            world = self.worlds.make(
                id_=body.get("id"),
                clock=body.get("clock"),
                mutant=body.get("mutant"),
                without_states=hidden,
                lifetime=body.get("lifetimeSeconds"),
                hub=self.hub_options(body),
                api_key=body.get("apiKey"),
                port=port,
                faults=faults,
                timing=timing_of(body["timing"]) if "timing" in body else None,
                platform_key=body.get("platformKey", ""),
                search=tuple(body.get("search", ())),
                sightings=body.get("sightings", False),
                model=model,
            )
        except ValueError as error:
            if port is not None:
                self.worlds.close_port(port)
            raise _refusal(error) from None
        if seeds is not None:
            await self._fill(world, seeds)
        return Answer(201, self.shown(world, call))

    def hub_options(self, body: dict[str, Any]) -> HubOptions:
        """How the world's hub is made: as the server's, but for the secret. Raises ``ValueError`` for one of no use."""
        options = self.worlds.default.options.hub
        if "webhookSecret" not in body:
            return options
        secret = body["webhookSecret"]
        if secret is not None and not sound_secret(secret):
            raise ValueError("the webhookSecret can't be used: no base64 follows `whsec_`")
        return replace(options, webhook_secret=secret)

    async def _fill(self, world: World, seeds: SeedData) -> None:
        try:
            await world.fill(seeds)
        except ValueError as error:
            self.worlds.drop(world.id)
            raise _refusal(error) from None

    async def read_world(self, call: Call) -> Answer:
        """One world, with its jobs counted by state. To look at a world so does not prolong its lifetime."""
        world = named(self.worlds, call)
        return Answer(200, {**self.shown(world, call), "jobs": await world.jobs()})

    async def drop_world(self, call: Call) -> Answer:
        """Drop a world."""
        try:
            self.worlds.drop(named(self.worlds, call).id)
        except ValueError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        return Answer(204)

    async def drop_worlds(self, _: Call) -> Answer:
        """Drop every world but the default one."""
        return Answer(200, {"dropped": self.worlds.drop_all()})

    async def reset_world(self, call: Call) -> Answer:
        """Bring a world back to how it was made."""
        await touched(self.worlds, call).reset()
        return Answer(204)

    def shown(self, world: World, call: Call) -> dict[str, Any]:
        """A world with the URL by which this caller reaches it: its own port where the caller is on this machine."""
        host, listener, port = call.host, self.worlds.listener, world.options.port
        if port is None or listener is None or not is_loopback(host_name(host).strip("[]")):
            return {**world.summary(), "baseUrl": f"http://{self._main(host)}{world.path}"}
        address = f"[{listener.host}]" if ":" in listener.host else listener.host
        return {**world.summary(), "baseUrl": f"http://{address}:{port}"}

    def _main(self, host: str) -> str:
        """The host of a caller, with the server's own port where he called by that of a world."""
        name, _, port = host.rpartition(":")
        listener = self.worlds.listener
        if listener is not None and port.isdecimal() and int(port) in self.worlds.by_port:
            return f"{name}:{listener.port}"
        return host


def _refusal(error: ValueError) -> Refusal:
    return Refusal("CONFLICT" if isinstance(error, Exists) else "INVALID_REQUEST", str(error))
