"""The projects that jobs can name (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.given import Node
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven


@requirement("HUB-PROJ-01")
async def test_projects_are_listed(api: HubApi, given: HubGiven) -> None:
    """A project that a job can name is listed."""
    project = await given.project()
    entries = (await api.projects().succeeds(200)).entries
    good = any(project.id in entry.values() for entry in entries)
    expect(good, f"an entry of {project.id}", f"{len(entries)} others", "/data/items")


@requirement("HUB-PROJ-50", "HUB-PROJ-51")
async def test_a_project_has_an_entry_for_each_node(api: HubApi, given: HubGiven) -> None:
    """Entries are `projectId`, `nodeId`, `nodeLabel`, `nodeOnline`, one for each node that has the project now."""
    shared, own = given.unique("proj"), given.unique("proj")
    here, there = await given.node([shared, own]), await given.node([shared])
    await given.offline(there)
    wanted = [(shared, here, True), (own, here, True), (shared, there, False)]
    await judge(api, [shared, own], wanted)
    await given.without_projects(here)
    await judge(api, [shared, own], wanted[2:])


async def judge(api: HubApi, projects: list[str], wanted: list[tuple[str, Node, bool]]) -> None:
    """Of these projects there are just these entries."""
    with about("HUB-PROJ-50"):
        items = (await api.projects().succeeds(200)).data.get("items")
        entries: list[Any] = items if isinstance(items, list) else [None]
        good = all(isinstance(entry, dict) for entry in entries)
        expect(good, "`items`, a list of objects", str(items)[:200], "/data/items")
    ours = [entry for entry in entries if entry.get("projectId") in projects]
    with about("HUB-PROJ-51"):
        places = sorted((str(entry.get("projectId")), str(entry.get("nodeId"))) for entry in ours)
        had = sorted((project, node.id) for project, node, _ in wanted)
        expect(places == had, f"{had}", f"{places}", "/data/items")
    for project, node, online in wanted:
        entry = next(one for one in ours if (one.get("projectId"), one.get("nodeId")) == (project, node.id))
        with about("HUB-PROJ-50"):
            expect_fields(entry, {"nodeLabel": node.label, "nodeOnline": online}, "/data/items")
