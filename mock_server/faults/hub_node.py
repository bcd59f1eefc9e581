"""Seeded faults of the hub's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.calls import Refusal
from mock_server.faults.edits import error, part
from mock_server.hub.api import HubApi
from mock_server.hub.entities import JOB, NODE
from mock_server.hub.nodes import Nodes
from mock_server.hub.scheduler import Scheduler
from mock_server.hub.shapes import Shapes
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant
from mock_server.store import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mock_server.calls import Answer, Call
    from mock_server.store import Row


class Moves(Nodes):
    """The queued jobs of a node that goes away go to another node that has their project."""

    async def switch(self, node: Row, *, online: bool, now: int) -> None:
        await super().switch(node, online=online, now=now)
        if online:
            return
        nodes = await self.hub.store.rows(NODE)
        for row in await self.hub.store.rows(JOB):
            others = [one for one in nodes if one["online"] and row["projectId"] in one["projects"]]
            if row["status"] == "queued" and row["nodeId"] == node["id"] and others:
                moved = {**row, "nodeId": others[0]["id"]}
                due = self.hub.build.executor.due(moved, row["id"])
                await self.hub.store.commit([Change(JOB, row, moved, due)])
                await self.hub.scheduler.changed(row, moved, now)


class RetriesElsewhere(Scheduler):
    """A retry whose node is offline goes to another node that has the project."""

    async def changed(self, old: Row | None, new: Row, now: int) -> None:
        await super().changed(old, new, now)
        nodes = self.hub.nodes
        if new["status"] != "queued" or new["attempt"] == 0 or await nodes.online(new["nodeId"]):
            return
        for node in await self.hub.store.rows(NODE):
            if node["online"] and new["projectId"] in node["projects"]:
                moved = {**new, "nodeId": node["id"]}
                due = self.hub.build.executor.due(moved, new["id"])
                await self.hub.store.commit([Change(JOB, new, moved, due)])
                await super().changed(new, moved, now)
                return


class TakesAll(Submissions):
    """Takes jobs for a node that is offline."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        listed = list(items)
        try:
            return await super().place(hub, listed)
        except Refusal as refusal:
            if refusal.code != "node_offline":
                raise
        nodes = await hub.store.rows(NODE)
        fitting = [[node["id"] for node in nodes if item["projectId"] in node["projects"]] for item in listed]
        return [item.get("nodeId") or ids[0] for item, ids in zip(listed, fitting, strict=True)]


class LooksOnlyUp(TakesAll):
    """Refuses jobs for an offline node only where the node was not named."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        listed = list(items)
        if all("nodeId" in item for item in listed):
            return await super().place(hub, listed)
        return await Submissions.place(self, hub, listed)


class PicksOne(Submissions):
    """Picks a node by itself where several have the project."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        nodes = await hub.store.rows(NODE)
        listed = []
        for item in items:
            fitting = [node["id"] for node in nodes if item["projectId"] in node["projects"]]
            listed.append({"nodeId": fitting[0], **item} if fitting else item)
        return await super().place(hub, listed)


class OnePlace(Submissions):
    """Takes the projects of one id for one, which is where the first node has it."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        listed = list(items)
        placed = await super().place(hub, listed)
        nodes = await hub.store.rows(NODE)
        first = {project: node["id"] for node in reversed(nodes) for project in node["projects"]}
        return [first.get(item["projectId"], node) for item, node in zip(listed, placed, strict=True)]


class OnlineOnly(Submissions):
    """Takes a project for clear where one of its nodes alone is online."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        nodes = await hub.store.rows(NODE)
        listed = []
        for item in items:
            fitting = [node["id"] for node in nodes if item["projectId"] in node["projects"] and node["online"]]
            listed.append({"nodeId": fitting[0], **item} if len(fitting) == 1 else item)
        return await super().place(hub, listed)


class NamesNoNode(Submissions):
    """Does not say which nodes have the project."""

    async def place(self, hub: Any, items: Iterable[Any]) -> list[str]:
        try:
            return await super().place(hub, items)
        except Refusal as refusal:
            if refusal.code == "ambiguous_project":
                raise Refusal(refusal.code, "The project exists on several nodes; give the nodeId.") from None
            raise


class NeverBack(Scheduler):
    """Does not notice that a node is back."""

    async def node_changed(self, node_id: str, now: int) -> None:
        return


class KnowsAll(Nodes):
    """Runs jobs of projects that the node does not have any more."""

    async def plan(self, row: Row, node: Any) -> dict[str, Any]:
        return await super().plan(row, {**node, "projects": [*node["projects"], row["projectId"]]})


class NeverBlocked(Shapes):
    """Does not say why a job waits."""

    def blocked(self, row: Row, node: Row | None) -> dict[str, Any] | None:
        return None


class AlwaysBlocked(Shapes):
    """Calls every job of an offline node blocked."""

    def blocked(self, row: Row, node: Row | None) -> dict[str, Any] | None:
        return super().blocked({**row, "status": "queued"}, node)


class GivesUp(Shapes):
    """Shows the queued jobs of an offline node as failed."""

    def detail(self, row: Row, node: Row | None) -> dict[str, Any]:
        detail = super().detail(row, node)
        if detail["blocked"] is not None:
            detail["status"] = "failed"
        return detail


class OwnProjects(HubApi):
    """Shows the projects to the first key alone."""

    async def list_projects(self, call: Call) -> Answer:
        answer = await super().list_projects(call)
        if call.caller != "a":
            answer.body["data"]["items"] = []
        return answer


class CountsNone(HubApi):
    """Counts no stalled job."""

    async def get_overview(self, call: Call) -> Answer:
        answer = await super().get_overview(call)
        answer.body["data"]["load"]["stalledQueued"] = 0
        return answer


FAULTS = (
    Mutant(
        "hub-node.moves",
        "queued jobs move to another node",
        ("HUB-NODE-04", "HUB-NODE-06", "HUB-NODE-07"),
        parts=part(nodes=Moves),
    ),
    Mutant(
        "hub-node.retries-elsewhere",
        "a retry moves to another node",
        ("HUB-NODE-04", "HUB-NODE-06"),
        parts=part(scheduler=RetriesElsewhere),
    ),
    Mutant(
        "hub-node.takes-offline",
        "jobs for an offline node are taken",
        ("HUB-NODE-05",),
        parts=part(submissions=TakesAll),
    ),
    Mutant(
        "hub-node.takes-named-offline",
        "jobs for an offline node that was named are taken",
        ("HUB-NODE-05",),
        parts=part(submissions=LooksOnlyUp),
    ),
    Mutant(
        "hub-node.offline-503",
        "node_offline is 503",
        ("HUB-NODE-05", "HUB-ERR-02"),
        edit=error("node_offline", status=503),
    ),
    Mutant(
        "hub-node.picks-one",
        "an ambiguous project goes to its first node",
        ("HUB-NODE-01",),
        parts=part(submissions=PicksOne),
    ),
    Mutant(
        "hub-node.online-only",
        "a project of two nodes, one of them offline, goes to the other",
        ("HUB-NODE-01",),
        parts=part(submissions=OnlineOnly),
    ),
    Mutant(
        "hub-node.no-names",
        "the refusal of an ambiguous project names no node",
        ("HUB-NODE-02",),
        parts=part(submissions=NamesNoNode),
    ),
    Mutant("hub-node.gives-up", "queued jobs of an offline node fail", ("HUB-NODE-06",), parts=part(shapes=GivesUp)),
    Mutant("hub-node.unsaid", "`blocked` is never set", ("HUB-NODE-07", "HUB-GET-20"), parts=part(shapes=NeverBlocked)),
    Mutant(
        "hub-node.all-blocked",
        "every job of an offline node is blocked",
        ("HUB-GET-20",),
        parts=part(shapes=AlwaysBlocked),
    ),
    Mutant(
        "hub-node.never-back",
        "a node's return starts nothing",
        ("HUB-NODE-08", "HUB-NODE-53"),
        parts=part(scheduler=NeverBack),
    ),
    Mutant(
        "hub-node.knows-all",
        "a job whose project is gone runs all the same",
        ("HUB-NODE-13", "HUB-FAIL-07"),
        parts=part(nodes=KnowsAll),
    ),
    Mutant(
        "hub-node.not-stalled", "no job counts as stalled", ("HUB-OVW-02", "HUB-OVW-52"), parts=part(api=CountsNone)
    ),
    Mutant(
        "hub-node.own-projects", "projects belong to a key", ("HUB-NODE-50", "HUB-PROJ-01"), parts=part(api=OwnProjects)
    ),
    Mutant(
        "hub-node.one-place",
        "projects of one id on two nodes are one",
        ("HUB-NODE-03", "HUB-NODE-04", "HUB-NODE-52"),
        parts=part(submissions=OnePlace),
    ),
)
