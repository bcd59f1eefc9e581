"""The provider states of an Agent Hub build: nodes, what they are going to do, and time."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from mock_server.calls import Refusal
from mock_server.hub.entities import CALLBACK, NODE, SCRIPT
from mock_server.state_set import StateSet, Values

if TYPE_CHECKING:
    from mock_server.worlds import World
    from openapi import Contract


class HubStates(StateSet):
    """The states that ``x-hub-states`` of the control plane's specification lists."""

    def __init__(self, control: Contract) -> None:
        super().__init__(
            control,
            "x-hub-states",
            {
                "reset": self.reset,
                "node": self.node,
                "node-online": self.node_online,
                "default-callback": self.default_callback,
                "outcome": self.outcome,
                "advance-time": self.advance_time,
            },
        )

    @staticmethod
    async def reset(world: World, _: Values) -> Values:
        """Remove everything; virtual time back to real time; open streams are told that their jobs are gone."""
        await world.hub.reset()
        world.clock.reset()
        world.hub.driver.rearm(None)
        return {}

    @staticmethod
    async def node(world: World, params: Values) -> Values:
        """Create a node, or replace it."""
        now = await world.hub.settle()
        id_ = params["nodeId"]
        label, projects = str(params.get("label", id_)), params["projects"]
        await world.hub.nodes.put(id_, label=label, online=params["online"], projects=projects, now=now)
        await world.hub.done()
        return {"nodeId": id_}

    @staticmethod
    async def node_online(world: World, params: Values) -> Values:
        """Let a node go offline, or come back."""
        now = await world.hub.settle()
        node = await world.hub.store.get(NODE, params["nodeId"])
        if node is None:
            raise Refusal("INVALID_REQUEST", f"/nodeId of params: no node has the id `{params['nodeId']}`")
        await world.hub.nodes.switch(node, online=params["online"], now=now)
        await world.hub.done()
        return {}

    @staticmethod
    async def default_callback(world: World, params: Values) -> Values:
        """Set or remove a key's default callback."""
        url = params["url"]
        if url is not None and not world.hub.webhooks.allowed(url):
            what = "/url of params: this mock delivers to loopback hosts and those named with --allow-callback-host"
            raise Refusal("INVALID_REQUEST", what)
        await world.hub.engine.replace(CALLBACK, {"account": params["account"], "url": url})
        return {}

    @staticmethod
    async def outcome(world: World, params: Values) -> Values:
        """Say what nodes do with the jobs that match, from the next start on."""
        scripts = await world.hub.store.rows(SCRIPT)
        seq = max((script["seq"] for script in scripts), default=0) + 1
        await world.hub.engine.replace(SCRIPT, {**params, "id": f"script-{secrets.token_hex(8)}", "seq": seq})
        return {}
