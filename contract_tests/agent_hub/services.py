"""What checks of the hub are given, by parameter name."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import HubApi
from contract_tests.agent_hub.given import HubGiven, HubTiming
from contract_tests.agent_hub.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from random import Random

    from contract_tests.clock import Clock
    from contract_tests.transport import ProviderStates, Transport


@dataclass(frozen=True)
class Settings:
    """What the suite is told of its target."""

    token: str
    second_token: str | None = None
    webhook_host: str = "127.0.0.1"
    """The name under which the target reaches us."""
    webhook_secret: str | None = None


@asynccontextmanager
async def open_services(
    transport: Transport, states: ProviderStates, clock: Clock, timing: HubTiming, settings: Settings
) -> AsyncIterator[dict[str, Any]]:
    """The services of one run: the API under both keys, and a receiver that serves until the run ends."""
    patience = timing.patience
    other = HubApi(transport, settings.second_token, patience) if settings.second_token else None
    async with Receiver(settings.webhook_host, patience) as receiver:
        yield {
            "api": HubApi(transport, settings.token, patience),
            "other": other,
            "receiver": receiver,
            "transport": transport,
            "states": states,
            "clock": clock,
            "timing": timing,
            "settings": settings,
        }


def given_for(services: Mapping[str, Any], random: Random) -> HubGiven:
    """What one check starts from; ``random`` is its own."""
    names = ("api", "other", "receiver", "states", "clock", "timing")
    secret = services["settings"].webhook_secret
    return HubGiven(**{name: services[name] for name in names}, random=random, webhook_secret=secret)
