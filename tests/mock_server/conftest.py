"""A served mock for the tests: one process, a world of its own for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest
from mock_world import World, start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator


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
