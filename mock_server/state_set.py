"""What the provider states of both APIs share: names that are offered, parameters judged by schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs

from mock_server.calls import Refusal
from mock_server.judgement import compile_normaliser
from mock_server.violations import body_violations
from openapi.problems import nearest
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

    from mock_server.worlds import World
    from openapi import Contract

Values = dict[str, Any]


class StateSet:
    """The states of one API that the control plane's specification lists, on any world."""

    def __init__(
        self, control: Contract, listed: str, setups: Mapping[str, Callable[[World, Values], Awaitable[Values]]]
    ) -> None:
        """``listed``: the extension that has the parameters of each state."""
        self._setups = dict(setups)
        self._schemas = {}
        self._nullable: dict[str, set[str]] = {}
        for name, schema in control.document[listed].items():
            json_schema = to_json_schema(schema, control.document)
            validator = jsonschema_rs.Draft202012Validator(json_schema)
            self._schemas[name] = (json_schema, validator, compile_normaliser(json_schema))
            properties = control.resolve(schema).get("properties", {})
            self._nullable[name] = {key for key, item in properties.items() if item.get("nullable")}

    def __iter__(self) -> Iterator[str]:
        return iter(self._setups)

    def names(self, world: World) -> list[str]:
        """The states that the world offers."""
        return [name for name in self._setups if name not in world.options.without_states]

    async def set_up(self, world: World, state: str, params: Values) -> Values:
        """Put the world into a state; a parameter that is null counts as absent, unless null is a value of it.

        Raises :class:`Refusal`: 501 for a state that is unknown or hidden, 400 for parameters, 409 for a conflict.
        """
        names = self.names(world)
        if state not in names:
            mend = nearest(state, names, "")
            what = f"this build does not offer the state `{state}`"
            raise Refusal("NOT_OFFERED", f"{what}; {mend}" if mend else what)
        schema, validator, normalise = self._schemas[state]
        given = {key: value for key, value in params.items() if value is not None or key in self._nullable[state]}
        if not validator.is_valid(given):
            details = body_violations(validator, given, world.redactor, schema=schema)
            what = "; ".join(item.message for item in details)
            raise Refusal("INVALID_REQUEST", f"params of the state `{state}`: {what}", details)
        return await self._setups[state](world, normalise(given))

    @staticmethod
    async def advance_time(world: World, params: Values) -> Values:
        """Move the clock forward; everything due by then has happened when this answers."""
        try:
            now, _ = await world.advance(params["seconds"])
        except ValueError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        return {"now": now}


def known(names: Iterable[str], *sets: StateSet) -> None:
    """Raises ``ValueError`` for a name that no state of the APIs has, with the nearest one."""
    offered = [state for states in sets for state in states]
    for name in names:
        if name not in offered:
            raise ValueError(f"no provider state is named `{name}`; {nearest(name, offered)}")
