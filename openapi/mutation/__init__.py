"""Generated mutants: what a contract would say if one word of it were another, from its text alone.

Every mutant is of a named kind (:data:`KINDS`) and knows the place that it changes. What makes a build of one lives
with the server, what judges builds with the harness. How many there are of each kind stands in ``counts.yaml``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from openapi.contract import load
from openapi.mutation.edit import KINDS, Edit, Told
from openapi.mutation.machine import add_machine
from openapi.mutation.places import Places
from openapi.mutation.shapes import add_shapes

if TYPE_CHECKING:
    from openapi.contract import Contract

__all__ = ["APIS", "KINDS", "Edit", "Told", "edits", "generated"]

APIS = ("runtime-api", "agent-hub")
"""The contracts that are mutated."""


def edits(contract: Contract) -> list[Edit]:
    """Every mutant of a contract, in the order of kinds."""
    places = Places(contract)
    add_machine(places)
    add_shapes(places)
    order = list(KINDS)
    return sorted(places.made.values(), key=lambda edit: order.index(edit.kind))


@functools.cache
def generated() -> dict[str, Edit]:
    """Every mutant of both packaged contracts by id."""
    return {edit.id: edit for name in APIS for edit in edits(load(name))}
