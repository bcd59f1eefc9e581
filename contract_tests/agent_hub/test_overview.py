"""The overview (seed 002 section 6.2)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.scenes import Planned, arranged
from contract_tests.agent_hub.shapes import iso
from contract_tests.checks import alone, expect, expect_fields, is_integer, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven

TRIES = 5
"""How often the load is read where other checks may change it meanwhile."""


def stalled(answer: HubAnswer) -> int:
    """``load.stalledQueued``, within ``data`` or not: the seed shows no more than its name."""
    load = answer.inner.get("load")
    came = load.get("stalledQueued") if isinstance(load, dict) else None
    expect(is_integer(came), "`load.stalledQueued`, an integer", answer.response.text[:200], "/data/load/stalledQueued")
    return int(came or 0)


@requirement("HUB-OVW-01")
async def test_the_overview_has_stalled_queued(api: HubApi) -> None:
    """The overview is there and has `load.stalledQueued`, a number from 0 on."""
    came = stalled(await api.overview().succeeds(200))
    expect(came >= 0, "a number from 0 on", str(came), "/data/load/stalledQueued")


@requirement("HUB-OVW-02")
async def test_stalled_queued_grows_with_an_offline_node(api: HubApi, given: HubGiven) -> None:
    """Jobs queued for a node that goes offline are added to `load.stalledQueued`."""
    for left in reversed(range(TRIES)):
        scene = await arranged(given, [Planned("running"), *[Planned("queued")] * 3])
        before = stalled(await api.overview().succeeds(200))
        await given.offline(scene.node)
        after = stalled(await api.overview().succeeds(200))
        if after >= before + 3:
            return
        expect(left > 0, f"stalledQueued {before} + 3", str(after), "/data/load/stalledQueued")


@requirement("HUB-OVW-50")
async def test_the_overview_lists_nodes(api: HubApi, given: HubGiven) -> None:
    """`nodes` has an entry for each node: `nodeId`, `label`, `online`, and `lastSeen`, which is `blocked`'s."""
    here = await given.node(label="后端构建机")
    scene = await arranged(given, [Planned("running"), Planned("queued")])
    await given.offline(scene.node)
    nodes = (await api.overview().succeeds(200)).data.get("nodes")
    found = (
        {entry.get("nodeId"): entry for entry in nodes if isinstance(entry, dict)} if isinstance(nodes, list) else {}
    )
    for node, online in ((here, True), (scene.node, False)):
        expect(node.id in found, f"the node {node.id}", json.dumps(nodes)[:200], "/data/nodes")
        entry: dict[str, Any] = found[node.id]
        expect_fields(entry, {"label": node.label, "online": online}, "/data/nodes")
        iso(entry.get("lastSeen"), "/data/nodes/lastSeen")
    blocked = (await given.detail(scene.of("queued"))).get("blocked") or {}
    came, wanted = found[scene.node.id]["lastSeen"], blocked.get("lastSeen")
    expect(came == wanted, f"lastSeen {wanted} as in `blocked`", str(came), "/data/nodes/lastSeen")


@requirement("HUB-OVW-51", "HUB-OVW-52", "HUB-OVW-53")
@alone
async def test_the_load_counts_the_keys_own_jobs(api: HubApi, given: HubGiven) -> None:
    """`load` counts the key's queued and running jobs, and as stalled those queued on a node that is offline."""
    await judge_load(api, {"queued": 0, "running": 0, "stalledQueued": 0})
    here = await arranged(given, [Planned("running"), Planned("queued"), Planned("cancelled")], [Planned("done")])
    await judge_load(api, {"queued": 1, "running": 1, "stalledQueued": 0})
    there = await arranged(given, [Planned("running"), *[Planned("queued")] * 2], [Planned("running")])
    await judge_load(api, {"queued": 3, "running": 3, "stalledQueued": 0})
    await given.offline(there.node)
    await judge_load(api, {"queued": 3, "running": 3, "stalledQueued": 2})
    if given.other is not None:
        project = here.jobs[0][0].project
        await given.submitted([item(project)] * 4, api=given.other)
        await judge_load(api, {"queued": 3, "running": 3, "stalledQueued": 2}, "HUB-OVW-53")
        await judge_load(given.other, {"queued": 4, "running": 0, "stalledQueued": 0}, "HUB-OVW-53")
    await given.online(there.node)
    await judge_load(api, {"queued": 3, "running": 3, "stalledQueued": 0})


async def judge_load(api: HubApi, wanted: dict[str, int], rule: str | None = None) -> None:
    """The load is just that, by ``rule`` or that of each number; one counted in the background gets a moment."""
    own = {"stalledQueued": "HUB-OVW-52"}
    rules = {name: (rule or own.get(name, "HUB-OVW-51"),) for name in wanted}
    load = (await api.overview().succeeds(200)).data.get("load")
    if load != wanted:
        await asyncio.sleep(0.1)
        load = (await api.overview().succeeds(200)).data.get("load")
    expect(isinstance(load, dict), "`load`, an object", json.dumps(load)[:200], "/data/load")
    expect_fields(load or {}, wanted, "/data/load", rules)
