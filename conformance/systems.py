"""The systems whose builds are judged, each by a suite of its own: what the one runner has to know of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import contract_tests
import openapi

if TYPE_CHECKING:
    from openapi import Contract, Requirement


@dataclass(frozen=True)
class System:
    """One API. ``name`` is its contract's, what a report calls it, and what its provider states are listed under.

    ``suite`` is the folder of its checks; ``timing`` names the class of what ``--timing`` can say, ``module:class``.
    """

    name: str
    suite: str
    timing: str

    @property
    def contract(self) -> Contract:
        """Its specification, with the register of its rules."""
        return openapi.load(self.name)

    @property
    def folder(self) -> Path:
        """Where its checks stand."""
        return Path(contract_tests.__file__).parent / self.suite

    @property
    def has_checks(self) -> bool:
        """Whether there is anything to judge a build by."""
        return any(self.folder.glob("test_*.py"))

    @cached_property
    def timing_class(self) -> Any:
        """The dataclass of its timing, seconds; imported when it is asked for."""
        module, _, name = self.timing.partition(":")
        return getattr(importlib.import_module(module), name)

    def states_url(self, base_url: str) -> str:
        """Where a world of the mock takes its provider states."""
        return f"{base_url}/__control__/provider-states/{self.name}"


RUNTIME_API = System("runtime-api", "runtime_api", "contract_tests.given:Timing")
AGENT_HUB = System("agent-hub", "agent_hub", "contract_tests.agent_hub.given:HubTiming")
SYSTEMS = (RUNTIME_API, AGENT_HUB)


def find(name: str) -> System:
    """A system by name. Raises ``KeyError`` for one that there is not."""
    return {system.name: system for system in SYSTEMS}[name]


def system_of(rule: Requirement | str) -> System:
    """The system whose register holds a rule (an id). Raises ``KeyError`` for one that none holds."""
    id_ = rule if isinstance(rule, str) else rule.id
    for system in SYSTEMS:
        if id_ in system.contract.register:
            return system
    raise KeyError(id_)
