"""The simulated nodes: what they report, and when, as scripts say. A round's plan stands in its job's row."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from mock_server.hub.entities import JOB, NODE, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.agenda import Item
    from mock_server.hub.hub import Hub
    from mock_server.store import Row

_REPORT = -1
"""Before the timers of the same instant: a round that ends at its limit is not over it."""
_NOTHING = {"toolCalls": 0, "tokensIn": 0, "tokensOut": 0, "iterations": 0, "lastActivity": ""}
_DEFAULT = {"ai": "engine_error", "script": "script_failed"}


class Nodes:
    """All nodes of a hub."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._next: dict[str, Item] = {}
        """The next report of each round, by its job's id."""

    async def rebuild(self) -> None:
        """From rows alone."""
        self._next.clear()
        for row in await self.hub.store.rows(JOB):
            if row["roundStartedAt"] is not None:
                await self._plan_next(row, self.hub.clock.now())

    def forget(self, job_id: str) -> None:
        """A job's round is over: nothing more is reported of it."""
        self.hub.agenda.drop(self._next.pop(job_id, None))

    async def online(self, node_id: str) -> bool:
        """Whether the hub takes a node for online."""
        node = await self.hub.store.get(NODE, node_id)
        return node is not None and bool(node["online"])

    # What the world outside does to nodes

    async def put(self, node_id: str, *, label: str, online: bool, projects: list[str], now: int) -> None:
        """Create a node or replace it."""
        old = await self.hub.store.get(NODE, node_id)
        since = old["since"] if old is not None and old["online"] == online else now
        node = {
            "id": node_id,
            "label": label,
            "online": online,
            "projects": list(dict.fromkeys(projects)),
            "since": since,
        }
        await self.hub.engine.replace(NODE, node)
        await self._turned(node_id, now, changed=old is not None and old["online"] != online, online=online)

    async def switch(self, node: Row, *, online: bool, now: int) -> None:
        """A node goes offline or comes back."""
        if node["online"] != online:
            await self.hub.engine.replace(NODE, {**node, "online": online, "since": now})
            await self._turned(node["id"], now, changed=True, online=online)

    async def _turned(self, node_id: str, now: int, *, changed: bool, online: bool) -> None:
        if changed:
            for job_id in [id_ for (node, _), id_ in self.hub.scheduler.busy.items() if node == node_id]:
                await (self._back(job_id, now) if online else self._gone(job_id, now))
        await self.hub.scheduler.node_changed(node_id, now)

    async def _gone(self, job_id: str, now: int) -> None:
        """The node of a round says nothing more: what it has to report waits."""
        self.forget(job_id)
        await self.hub.engine.fire("silence", job_id, now)

    async def _back(self, job_id: str, now: int) -> None:
        """The node is back in time: what it had to report arrives now (HUB-FAIL-51, 52)."""
        row = await self.hub.store.get(JOB, job_id)
        if row is None or row["round"] is None or self._silent(row, now):
            return
        row = await self._fired("hear", row, now)
        limit = row["roundStartedAt"] + self.hub.build.executor.value("roundLimit", {self.hub.shapes.row: row})
        end = row["round"]["end"]
        if now > limit and (end is None or row["roundStartedAt"] + end > limit):
            await self._report_progress(row, now, until=limit)
            timer = self.hub.build.executor.machine.timers["round-limit"]
            await self.hub.engine.fire("report", job_id, now, **timer.given)
        else:
            await self._report_due(job_id, now)

    # Rounds

    async def start(self, row: Row, now: int) -> None:
        """A node takes a job."""
        node = await self.hub.store.get(NODE, row["nodeId"])
        plan = await self.plan(row, node or {"projects": ()})
        await self.hub.engine.fire("take", row["id"], now, newSession=self.new_session(row), round=plan)
        taken = await self.hub.store.get(JOB, row["id"])
        if taken is not None and taken["status"] == "running":
            await self._report_due(row["id"], now)

    @staticmethod
    def new_session(_: Row) -> str:
        """An id never used before (HUB-RETRY-03)."""
        return f"sess_{secrets.token_hex(8)}"

    async def plan(self, row: Row, node: Mapping[str, Any]) -> dict[str, Any]:
        """What is going to happen in a job's next round; offsets in milliseconds from its start."""
        if row["projectId"] not in node["projects"]:
            message = f"the project {row['projectId']} does not exist on {row['nodeId']}"
            report = {"type": "project_not_found", "message": message}
            return {"end": 0, "silentAt": None, "report": report, "progress": []}
        entry = await self._entry(row)
        after = round(entry.get("afterSeconds", 1) * 1000)
        result = entry.get("result", "done")
        progress = sorted(
            ([round(item["atSeconds"] * 1000), _values(item)] for item in entry.get("progress", ())), key=_at
        )
        return {
            "end": after if result in ("done", "failed") else None,
            "silentAt": after if result == "node_lost" else None,
            "report": _report(entry, row) if result != "node_lost" else None,
            "progress": progress,
        }

    async def _entry(self, row: Row) -> dict[str, Any]:
        """The entry of the script for the job's next attempt: the most specific one, then the newest."""
        fitting = [
            script
            for script in await self.hub.store.rows(SCRIPT)
            if script["projectId"] == row["projectId"]
            and script["nodeId"] in (None, row["nodeId"])
            and script["externalId"] in (None, row["externalId"])
        ]
        if not fitting:
            return {}
        best = max(fitting, key=lambda it: (it["externalId"] is not None, it["nodeId"] is not None, it["seq"]))
        entry: dict[str, Any] = best["attempts"][min(row["attempt"], len(best["attempts"]) - 1)]
        return entry

    async def _report_due(self, job_id: str, now: int) -> None:
        """Report what is due by now, and plan what comes next."""
        row = await self.hub.store.get(JOB, job_id)
        if row is None or row["round"] is None:
            return
        await self._report_progress(row, now)
        plan, since = row["round"], now - row["roundStartedAt"]
        if plan["silentAt"] is not None and since >= plan["silentAt"]:
            await self.hub.engine.fire("silence", job_id, row["roundStartedAt"] + plan["silentAt"])
            return
        if plan["end"] is not None and since >= plan["end"]:
            await self._end(row, now)
            return
        await self._plan_next(await self._row(job_id), now)

    async def _end(self, row: Row, now: int) -> None:
        """The end of a round, with a last report of progress (HUB-GET-65)."""
        if row["roundStartedAt"] < now:
            await self._tell(row["id"], {}, now)
        row = await self._row(row["id"])
        report = dict(row["round"]["report"])
        if report["type"] == "done":
            report["result"] = _result(report.pop("summary"), report.pop("producedFiles"), row["progress"] or _NOTHING)
        await self.hub.engine.fire("report", row["id"], now, report=report)

    async def _report_progress(self, row: Row, now: int, until: int | None = None) -> None:
        """Report the script's progress that is due, one after the other; without any the heartbeat, at its time."""
        since = (now if until is None else until) - row["roundStartedAt"]
        due = [values for at, values in self._to_tell(row) if at <= since]
        for values in due:
            await self._tell(row["id"], values, now)
        if not due and since and since % self.heartbeat == 0:
            await self._tell(row["id"], {}, now)

    @property
    def heartbeat(self) -> int:
        """Milliseconds between two heartbeats of a node."""
        return int(self.hub.constants["heartbeat"])

    @staticmethod
    def _to_tell(row: Row) -> list[list[Any]]:
        """The script's reports of progress that are still to come: offset and values."""
        plan, progress = row["round"], row["progress"]
        if row["status"] != "running":  # they would be dropped
            return []
        told = progress["updatedAt"] - row["roundStartedAt"] if progress else -1
        last = min((end for end in (plan["end"], plan["silentAt"]) if end is not None), default=None)
        return [item for item in plan["progress"] if item[0] > told and (last is None or item[0] <= last)]

    async def _tell(self, job_id: str, values: Mapping[str, Any], now: int) -> None:
        """One report: values that were left out stay, those never reported are 0 and "" (HUB-GET-66, 67)."""
        row = await self._row(job_id)
        known = row["progress"] or _NOTHING
        await self.hub.engine.fire("progress", job_id, now, update={**known, **values, "updatedAt": now})

    async def _plan_next(self, row: Row, now: int) -> None:
        """Put the round's next report on the agenda; a silent node has none, one that is offline keeps its own."""
        job_id, plan, start = row["id"], row["round"], row["roundStartedAt"]
        self.forget(job_id)
        if plan is None or self._silent(row, now) or not await self.online(row["nodeId"]):
            return
        offsets = [at for at, _ in self._to_tell(row) if at > now - start][:1]  # never at once: a mutant may forget it
        offsets += [at for at in (plan["end"], plan["silentAt"]) if at is not None]
        if row["status"] == "running":
            offsets.append(((now - start) // self.heartbeat + 1) * self.heartbeat)
        if not offsets:
            return

        async def report(instant: int) -> None:
            self._next.pop(job_id, None)
            await self._report_due(job_id, instant)

        self._next[job_id] = self.hub.agenda.add(start + min(offsets), _REPORT, report)

    @staticmethod
    def _silent(row: Row, now: int) -> bool:
        """Whether the script has the node silent by now."""
        at = row["round"]["silentAt"] if row["round"] else None
        return at is not None and now >= row["roundStartedAt"] + at

    async def _fired(self, name: str, row: Row, now: int) -> Row:
        await self.hub.engine.fire(name, row["id"], now)
        return await self._row(row["id"])

    async def _row(self, job_id: str) -> Row:
        row = await self.hub.store.get(JOB, job_id)
        if row is None:
            raise KeyError(job_id)
        return row


def _at(item: list[Any]) -> int:
    at: int = item[0]
    return at


def _values(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "atSeconds"}


def _report(entry: Mapping[str, Any], row: Row) -> dict[str, Any]:
    if entry.get("result", "done") == "failed":
        type_ = entry.get("failureType") or _DEFAULT[row["kind"]]
        message = entry.get("message") or f"the round failed: {type_}"
        return {"type": type_, "message": message, "retriable": bool(entry.get("retriable"))}
    files = list(entry.get("producedFiles", ()))
    return {"type": "done", "summary": entry.get("summary", "done"), "producedFiles": files}


def _result(summary: str, files: list[str], progress: Mapping[str, Any]) -> dict[str, Any]:
    usage = {"inputTokens": progress["tokensIn"], "outputTokens": progress["tokensOut"]}
    counts = {"iterations": progress["iterations"], "toolCalls": progress["toolCalls"]}
    return {"summary": summary, "producedFiles": files, "usage": usage, **counts}
