"""Finding the world that a path of the control plane names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Refusal

if TYPE_CHECKING:
    from mock_server.calls import Call
    from mock_server.worlds import World, Worlds


def named(worlds: Worlds, call: Call) -> World:
    """The world that the path names. Raises :class:`Refusal` NOT_FOUND."""
    world = worlds.get(call.path["worldId"])
    if world is None:
        raise Refusal("NOT_FOUND", worlds.absent(call.path["worldId"]))
    return world


def touched(worlds: Worlds, call: Call) -> World:
    """As :func:`named`; its lifetime begins anew, as by a request to its own control plane."""
    world = named(worlds, call)
    if world.lease is not None:
        world.lease.touch()
    return world
