"""The projects that jobs can name (seed 002 section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import Node
from contract_tests.agent_hub.rounds import ends
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


@requirement("HUB-NODE-03")
async def test_the_same_id_on_two_nodes_is_two_projects(given: HubGiven) -> None:
    """Two nodes have a project of one id: it can go from one of them, and the other one's jobs run all the same."""
    name = given.unique("proj")
    here, there = await given.node([name]), await given.node([name])
    for node in (here, there):
        await given.script(name, ends(600), node=node)
    kept, gone = await given.submitted(*(item(name, nodeId=node.id) for node in (here, there)))
    came = [(await given.detail(job)).get("nodeId") for job in (kept, gone)]
    expect(came == [here.id, there.id], f"jobs on {here.id} and {there.id}", str(came), "/data/nodeId")
    await given.without_projects(there)
    names = [entry.get("nodeId") for entry in await entries_of(given.api, name)]
    left = bool(names) and there.id not in names  # which node has it, an entry need not say
    expect(left, f"the project of {here.id}, and no longer that of {there.id}", str(names), "/data/items")
    with about("HUB-NODE-03"):
        (again,) = await given.submitted(item(name, nodeId=here.id))
    expect((await given.detail(again)).get("nodeId") == here.id, f"a job on {here.id}", "another", "/data/nodeId")


async def entries_of(api: HubApi, project: str) -> list[dict[str, Any]]:
    """The entries of a project, whatever surrounds them."""
    entries = (await api.projects().succeeds(200)).entries
    return [entry for entry in entries if entry.get("projectId") == project]


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
