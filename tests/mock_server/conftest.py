"""A served mock for the tests: one process, a world of its own for each test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fault_world import served
from mock_world import World, start, stop

from mock_server.calls import Exchange
from mock_server.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """A server that stands still in time."""
    process, url = start("--clock", "manual")
    yield url
    stop(process)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """One HTTP client for all tests: making one is slow."""
    with httpx.Client() as client:
        yield client


@pytest.fixture
def world(base_url: str, client: httpx.Client) -> Iterator[World]:
    """An empty world of its own, with a standing clock."""
    made = client.post(f"{base_url}/__control__/worlds", json={})
    assert made.status_code == 201
    yield World(client, base_url, made.json()["path"])
    client.delete(f"{base_url}/__control__/worlds/{made.json()['id']}")


@pytest.fixture
def exchange() -> Callable[..., Exchange]:
    """Makes an exchange with the fields that a test is about."""

    def make(**fields: Any) -> Exchange:
        world = SimpleNamespace(clock=ManualClock())
        given = {"world": world, "method": "POST", "path": "/p", "headers": {}, "at": 1, "status": 200}
        return Exchange(**{**given, **fields})

    return make


@pytest.fixture
def make(base_url, client):
    """Makes worlds by their options, and drops them."""
    made = []

    def make(**options):
        answer = client.post(f"{base_url}/__control__/worlds", json=options)
        assert answer.status_code == 201, answer.text
        made.append(answer.json())
        return World(client, base_url, answer.json()["path"])

    make.made = made
    yield make
    for world in made:
        client.delete(f"{base_url}/__control__/worlds/{world['id']}")


@pytest.fixture(scope="module", params=["uvloop, httptools", "asyncio, h11"])
def server(request):
    """A base URL for each kind of connection; the first is what `contract serve` serves."""
    loop, protocol = request.param.split(", ")
    if loop == "uvloop":
        process, url = start("--clock", "manual")
        yield url
        assert stop(process) == ""
        return
    with served(protocol, loop) as url:
        yield url
