"""No provider states: every check that needs one is skipped with that reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.checks import CheckSkipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class NoStates:
    """The driver of a target without ``--provider-states``."""

    offered: frozenset[str] = frozenset()

    def listen(self, heard: Callable[[str, int, bytes, str], None]) -> None:
        """There is nothing to hear."""

    async def set_up(self, state: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Always skips the check."""
        raise CheckSkipped(f"needs the provider state {state}; give --provider-states")
