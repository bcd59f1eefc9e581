"""Other numbers in place of the specification's: a build whose locks last three seconds, for tests in real time."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

from openapi import Contract
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Timing = tuple[tuple[str, float], ...]
"""Names and seconds, in the order of names: a key of the cache of builds."""

CONSTANTS = {"lock": "lockTime"}
"""Names of a timing, and the constant of the Runtime API's ``x-state-machine`` that each replaces."""

LEAST, MOST = 0.001, 1_000_000_000.0


def timing_of(given: Mapping[str, object], place: str = "/timing/") -> Timing:
    """A timing as it was given; ``place`` stands before each name. Raises ``ValueError`` with the mend."""
    found: dict[str, float] = {}
    for name, seconds in given.items():
        if name not in CONSTANTS:
            mend = nearest(name, CONSTANTS, f"there is {', '.join(CONSTANTS)}")
            raise ValueError(f"{place}{name} is not known here; {mend}")
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not math.isfinite(seconds)
            or not LEAST <= seconds <= MOST
        ):
            raise ValueError(f"{place}{name} must be seconds from {LEAST} to {MOST:.0f}; give a number, as in `3`")
        found[name] = float(seconds)
    return tuple(sorted(found.items()))


def read_timing(options: Iterable[str]) -> Timing:
    """The timing of the command line's ``--timing lock=3``. Raises ``ValueError`` with the mend."""
    given: dict[str, object] = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise ValueError(f"--timing {option}: write a name and seconds, as in `--timing lock=3`")
        if name in given:
            raise ValueError(f"--timing {option}: `{name}` was given already; give it once")
        try:
            given[name] = float(text)
        except ValueError:
            given[name] = text
    return timing_of(given, "--timing ")


def shown(timing: Timing) -> dict[str, float]:
    """The timing as the control plane shows it: whole seconds as whole numbers."""
    return {name: int(seconds) if seconds.is_integer() else seconds for name, seconds in timing}


def timed(contract: Contract, timing: Timing) -> Contract:
    """The contract with these numbers; the same one where there are none.

    A seeded fault is put over them, so one that has a number of its own keeps it.
    """
    if not timing:
        return contract
    document = copy.deepcopy(contract.document)
    constants = document["x-state-machine"]["constants"]
    for name, seconds in timing:
        constant = constants[CONSTANTS[name]]
        kept = {key: constant[key] for key in ("description", "requirements") if key in constant}
        constants[CONSTANTS[name]] = {**kept, "value": round(seconds * 1000)}
    return Contract(contract.name, document)
