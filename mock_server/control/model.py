"""Model scripts over the control plane: put, list, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.calls import Answer, Refusal
from mock_server.model.scripts import ScriptError, scripts_of

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler


class ModelHandlers:
    """Handlers of the tag ``model``."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {"listModelScripts": self.list, "putModelScripts": self.put, "clearModelScripts": self.clear}

    async def list(self, call: Call) -> Answer:
        """Every script with its count."""
        redactor = call.world.redactor
        return Answer(200, {"scripts": [redactor.data(counted.document()) for counted in call.world.model.scripts]})

    async def put(self, call: Call) -> Answer:
        """Have these scripts instead of those that are there."""
        try:
            call.world.model.replace(scripts_of(call.body))
        except ScriptError as error:
            raise Refusal("INVALID_REQUEST", str(error)) from None
        return await self.list(call)

    async def clear(self, call: Call) -> Answer:
        """Remove every script."""
        call.world.model.replace(())
        return Answer(204)
