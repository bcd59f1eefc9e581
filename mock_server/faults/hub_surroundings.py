"""Seeded faults of the overview and of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.app import iso
from mock_server.faults.edits import part
from mock_server.hub.accounts import ACCOUNTS
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call


def overview(change: Callable[[dict[str, Any]], dict[str, Any]]) -> type[HubApi]:
    """An overview that is told otherwise."""

    class Overview(HubApi):
        async def get_overview(self, call: Call) -> Answer:
            answer = await super().get_overview(call)
            answer.body["data"] |= change(answer.body["data"])
            return answer

    return Overview


def load(**values: Any) -> type[HubApi]:
    """An overview whose load has other values; None takes one away."""

    def changed(data: dict[str, Any]) -> dict[str, Any]:
        new = {**data["load"], **values}
        return {"load": {name: value for name, value in new.items() if value is not None}}

    return overview(changed)


class LoadOfAll(HubApi):
    """Counts the jobs of all keys."""

    async def get_overview(self, call: Call) -> Answer:
        answer = await super().get_overview(call)
        loads = [await call.world.hub.load(account) for account in ACCOUNTS]
        answer.body["data"]["load"] = {name: sum(one[name] for one in loads) for name in loads[0]}
        return answer


class StalledWhatever(HubApi):
    """Counts every job of an offline node that is not finished as stalled."""

    async def get_overview(self, call: Call) -> Answer:
        answer, hub = await super().get_overview(call), call.world.hub
        rows = await hub.store.listed(JOB, "account", (call.caller,))
        stalled = [row for row in rows if row["status"] in ("queued", "running")]
        count = sum([not await hub.nodes.online(row["nodeId"]) for row in stalled])
        answer.body["data"]["load"]["stalledQueued"] = count
        return answer


class SeenNow(HubApi):
    """Takes the moment of asking for when an offline node was last seen."""

    async def get_overview(self, call: Call) -> Answer:
        answer = await super().get_overview(call)
        for node in answer.body["data"]["nodes"]:
            node["lastSeen"] = iso(call.world.clock.now() + 1)
        return answer


def projects(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> type[HubApi]:
    """Projects that are told otherwise."""

    class Projects(HubApi):
        async def list_projects(self, call: Call) -> Answer:
            answer = await super().list_projects(call)
            answer.body["data"] = {"items": change(answer.body["data"]["items"])}
            return answer

    return Projects


def one_each(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each project."""
    return list({entry["projectId"]: entry for entry in items}.values())


class UsedProjects(HubApi):
    """Lists projects that had a job."""

    async def list_projects(self, call: Call) -> Answer:
        answer = await super().list_projects(call)
        used = {row["projectId"] for row in await call.world.hub.store.rows(JOB)}
        items = answer.body["data"]["items"]
        answer.body["data"] = {"items": [entry for entry in items if entry["projectId"] in used]}
        return answer


def fault(id_: str, title: str, *rules: str, api: type[HubApi]) -> Mutant:
    """A fault of the surroundings' handlers."""
    return Mutant(f"hub-{id_}", title, rules, parts=part(api=api))


FAULTS = (
    fault("overview.no-stalled", "the load has no stalledQueued", "HUB-OVW-01", api=load(stalledQueued=None)),
    fault("overview.stalled-0", "stalledQueued stays 0", "HUB-OVW-02", "HUB-OVW-52", api=load(stalledQueued=0)),
    fault("overview.stalled-running", "running jobs are stalled, too", "HUB-OVW-52", api=StalledWhatever),
    fault("overview.no-running", "the load has no running", "HUB-OVW-51", api=load(running=None)),
    fault(
        "overview.queued-apart",
        "stalled jobs are no queued ones",
        "HUB-OVW-51",
        api=overview(lambda it: {"load": {**it["load"], "queued": it["load"]["queued"] - it["load"]["stalledQueued"]}}),
    ),
    fault("overview.all-keys", "the load is that of all keys", "HUB-OVW-53", api=LoadOfAll),
    fault("overview.seen-now", "lastSeen is the moment of asking", "HUB-OVW-50", api=SeenNow),
    fault(
        "overview.online-alone",
        "nodes that are offline are not listed",
        "HUB-OVW-50",
        api=overview(lambda it: {"nodes": [node for node in it["nodes"] if node["online"]]}),
    ),
    fault("projects.used", "a project is listed after its first job", "HUB-PROJ-01", "HUB-PROJ-51", api=UsedProjects),
    fault("projects.one-each", "a project of two nodes is one entry", "HUB-PROJ-51", api=projects(one_each)),
    fault(
        "projects.online-alone",
        "projects of offline nodes are not listed",
        "HUB-PROJ-51",
        api=projects(lambda items: [entry for entry in items if entry["nodeOnline"]]),
    ),
    fault(
        "projects.always-online",
        "every node is told as online",
        "HUB-PROJ-50",
        api=projects(lambda items: [{**entry, "nodeOnline": True} for entry in items]),
    ),
)
