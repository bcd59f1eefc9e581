"""Worlds over the control plane: make, list, reset, drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Answer, Refusal
from mock_server.seed_data import DataError, SeedData

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler
    from mock_server.provider_states import ProviderStates
    from mock_server.worlds import World, Worlds


class WorldHandlers:
    """Handlers of the tag ``worlds``."""

    def __init__(self, worlds: Worlds, states: ProviderStates) -> None:
        self.worlds, self.states = worlds, states

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {
            "listWorlds": self.list_worlds,
            "makeWorld": self.make_world,
            "readWorld": self.read_world,
            "dropWorld": self.drop_world,
            "resetWorld": self.reset_world,
        }

    async def list_worlds(self, _: Call) -> Answer:
        """Every world."""
        return Answer(200, {"worlds": [world.summary() for world in self.worlds]})

    async def make_world(self, call: Call) -> Answer:
        """Make a world."""
        body = call.body
        hidden = body.get("withoutStates")
        try:
            self.states.known(hidden or ())
            seeds = SeedData.parse(body["data"]) if "data" in body else None
            world = self.worlds.make(
                id_=body.get("id"), clock=body.get("clock"), mutant=body.get("mutant"), without_states=hidden
            )
            if seeds is not None:
                await self._fill(world, seeds)
        except ValueError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        return Answer(201, world.summary())

    async def _fill(self, world: World, seeds: SeedData) -> None:
        try:
            await world.fill(seeds)
        except DataError:
            self.worlds.drop(world.id)
            raise

    async def read_world(self, call: Call) -> Answer:
        """One world."""
        return Answer(200, self._world(call).summary())

    async def drop_world(self, call: Call) -> Answer:
        """Drop a world."""
        try:
            self.worlds.drop(self._world(call).id)
        except ValueError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        return Answer(204)

    async def reset_world(self, call: Call) -> Answer:
        """Bring a world back to how it was made."""
        await self._world(call).reset()
        return Answer(204)

    def _world(self, call: Call) -> World:
        world = self.worlds.get(call.path["worldId"])
        if world is None:
            raise Refusal("NOT_FOUND", f"no world has the id `{call.path['worldId']}`")
        return world
