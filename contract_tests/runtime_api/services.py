"""What the checks of the Runtime API take by parameter name, made anew for each target."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import openapi
from contract_tests.canary import Canary
from contract_tests.client import RuntimeApi
from contract_tests.given import Given
from contract_tests.reach import Reach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from random import Random

    from contract_tests.clock import Clock
    from contract_tests.given import Timing
    from contract_tests.transport import ProviderStates, Transport


@dataclass(frozen=True)
class Settings:
    """What has to be known of a target beside its address."""

    api_key: str


@asynccontextmanager
async def open_services(
    transport: Transport, states: ProviderStates, clock: Clock, timing: Timing, settings: Settings
) -> AsyncIterator[dict[str, Any]]:
    """The services by the names of the parameters that take them, for as long as the target is judged."""
    canary = Canary(learn=transport.learn)
    transport.listen(canary.heard)
    states.listen(canary.heard_state)
    yield {
        "api": RuntimeApi(transport, settings.api_key),
        "canary": canary,
        "clock": clock,
        "reach": Reach(openapi.load("runtime-api")),
        "states": states,
        "timing": timing,
        "transport": transport,
    }


def given_for(services: Mapping[str, Any], random: Random) -> Given:
    """What one check starts from; ``random`` is its own."""
    return Given(services["api"], services["states"], services["clock"], services["timing"], random)
