"""Where a job is to run: projects and nodes that are not there, and which of several faults is answered."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.submitting import (
    AMBIGUOUS,
    INVALID,
    NOT_FOUND,
    OFFLINE,
    ambiguous,
    bad_item,
    nothing_queued,
)
from contract_tests.calls import UNSET
from contract_tests.checks import requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

KINDS = (INVALID, NOT_FOUND, AMBIGUOUS, OFFLINE)
"""The kinds of fault, the one that is answered first before the others."""


def status_of(code: str) -> int:
    """The status of a refusal."""
    return 409 if code == OFFLINE else 400


@requirement("HUB-SUB-59")
async def test_an_unknown_project_is_400(api: HubApi, given: HubGiven) -> None:
    """A project that no node has: 400 project_not_found; ids are compared as they are."""
    project = await given.project()
    for unknown in (given.unique("no-such-proj"), project.id.upper(), f"{project.id} ", project.id[:-1]):
        await api.submit(item(unknown)).fails(400, NOT_FOUND)


@requirement("HUB-SUB-60")
async def test_an_ambiguous_project_is_400(api: HubApi, given: HubGiven) -> None:
    """A project that two nodes have, without `nodeId`: 400 ambiguous_project."""
    await api.submit(item(await ambiguous(given))).fails(400, AMBIGUOUS)


@requirement("HUB-SUB-61")
async def test_an_unknown_node_is_400(api: HubApi, given: HubGiven) -> None:
    """A `nodeId` that no node has, with a project that exists: 400 project_not_found."""
    project = await given.project()
    for node in (given.unique("no-such-node"), project.node.label, project.id):
        await api.submit(item(project, nodeId=node)).fails(400, NOT_FOUND)


@requirement("HUB-SUB-62")
async def test_a_node_without_the_project_is_400(api: HubApi, given: HubGiven) -> None:
    """A node that exists but does not have the project, which another node has: 400 project_not_found."""
    project, other = await given.project(), await given.project()
    await api.submit(item(project, nodeId=other.node.id)).fails(400, NOT_FOUND)
    away = await given.project(online=False)
    await api.submit(item(project, nodeId=away.node.id)).fails(400, NOT_FOUND)


@requirement("HUB-SUB-62")
async def test_a_node_without_an_ambiguous_project_is_400(api: HubApi, given: HubGiven) -> None:
    """A project that two nodes have, sent to a third: 400 project_not_found, not ambiguous_project."""
    project, third = await ambiguous(given), await given.node()
    await api.submit(item(project, nodeId=third.id)).fails(400, NOT_FOUND)


@requirement("HUB-SUB-63")
@pytest.mark.parametrize(("wins", "loses"), list(combinations(KINDS, 2)))
async def test_of_two_kinds_of_fault_the_first_is_answered(api: HubApi, given: HubGiven, wins: str, loses: str) -> None:
    """Two bad items of different kinds, in either order: the answer is of the kind that comes first."""
    items, batch = [await bad_item(given, wins), await bad_item(given, loses)], given.unique("batch")
    for order in (items, items[::-1]):
        await api.submit(order, batch=batch).fails(status_of(wins), wins)
    await nothing_queued(given, batch)


@requirement("HUB-SUB-63")
async def test_of_four_kinds_of_fault_the_first_is_answered(api: HubApi, given: HubGiven) -> None:
    """All four kinds in one submission, the last one first; then without the first of them, and so on."""
    items = [await bad_item(given, code) for code in KINDS]
    for i, code in enumerate(KINDS):
        await api.submit(items[i:][::-1]).fails(status_of(code), code)


@requirement("HUB-SUB-63")
async def test_of_two_faults_of_one_item_the_first_is_answered(api: HubApi, given: HubGiven) -> None:
    """One item that is bad in two ways."""
    away, project = await given.project(online=False), await given.project()
    await api.submit(item(given.unique("no-such-proj"), prompt=UNSET)).fails(400, INVALID)
    await api.submit(item(await ambiguous(given), kind="nothing")).fails(400, INVALID)
    await api.submit(item(away, prompt="")).fails(400, INVALID)
    await api.submit(item(project, nodeId=away.node.id)).fails(400, NOT_FOUND)


@requirement("HUB-SUB-63")
async def test_an_ambiguous_project_comes_before_an_offline_node(api: HubApi, given: HubGiven) -> None:
    """A project that two nodes have, one or both of them offline: 400 ambiguous_project."""
    for away in (1, 2):
        project = given.unique("proj")
        for i in range(2):
            await given.node([project], online=i >= away)
        await api.submit(item(project)).fails(400, AMBIGUOUS)
