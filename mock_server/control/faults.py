"""Fault plans over the control plane: add, list, remove."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.builds import fault_targets
from mock_server.calls import Answer, Refusal
from mock_server.fault_plans import plans_of
from mock_server.fault_rules import PlanError

if TYPE_CHECKING:
    from mock_server.calls import Call, Handler
    from mock_server.fault_plans import Counted


class FaultHandlers:
    """Handlers of the tag ``faults``."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by operationId."""
        return {
            "listFaults": self.list_faults,
            "addFaults": self.add_faults,
            "clearFaults": self.clear_faults,
            "readFault": self.read_fault,
            "removeFault": self.remove_fault,
        }

    async def list_faults(self, call: Call) -> Answer:
        """Every plan with its counts."""
        return Answer(200, {"faults": _shown(call, list(call.world.faults))})

    async def add_faults(self, call: Call) -> Answer:
        """Add one plan or a list of them."""
        world = call.world
        try:
            added = world.faults.add(plans_of(call.body, fault_targets()))
        except PlanError as error:
            raise Refusal("INVALID_REQUEST", "; ".join(error.problems)) from None
        return Answer(201, {"faults": _shown(call, added)})

    async def clear_faults(self, call: Call) -> Answer:
        """Remove every plan."""
        call.world.faults.clear()
        return Answer(204)

    async def read_fault(self, call: Call) -> Answer:
        """One plan with its counts."""
        counted = call.world.faults.get(call.path["faultId"])
        if counted is None:
            raise _no_plan(call)
        return Answer(200, _shown(call, [counted])[0])

    async def remove_fault(self, call: Call) -> Answer:
        """Remove a plan."""
        if not call.world.faults.remove(call.path["faultId"]):
            raise _no_plan(call)
        return Answer(204)


def _shown(call: Call, plans: list[Counted]) -> list[dict[str, object]]:
    return [call.world.redactor.data(counted.view()) for counted in plans]


def _no_plan(call: Call) -> Refusal:
    known = [counted.plan.id for counted in call.world.faults][:10]
    mend = f"there are {', '.join(known)}" if known else "there are none"
    return Refusal("NOT_FOUND", f"no fault plan has the id `{call.path['faultId']}`; {mend}")
