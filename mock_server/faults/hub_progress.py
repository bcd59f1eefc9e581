"""Seeded faults of a hub job's progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import effect, machine, set_step
from mock_server.faults.hub_detail import fault, shown, without
from mock_server.hub.nodes import Nodes
from mock_server.hub.shapes import Shapes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.store import Row

ZEROS = {"toolCalls": 0, "tokensIn": 0, "tokensOut": 0, "iterations": 0, "lastActivity": ""}


class NoneShown(Shapes):
    """Progress that is there before any was reported, all zero."""

    def progress(self, row: Row) -> dict[str, Any] | None:
        return super().progress({**row, "progress": row["progress"] or {**ZEROS, "updatedAt": row["queuedAt"]}})


class GoesOn(Nodes):
    """Reports on though the job was cancelled."""

    @staticmethod
    def _to_tell(row: Row) -> list[list[Any]]:
        return Nodes._to_tell({**row, "status": "running"})


class EndSaysNothing(Nodes):
    """Reports no progress with the end of a round."""

    async def _tell(self, job_id: str, values: Mapping[str, Any], now: int) -> None:
        row = await self._row(job_id)
        if values or row["round"]["end"] is None or row["roundStartedAt"] + row["round"]["end"] != now:
            await super()._tell(job_id, values, now)


class ReportsReplace(Nodes):
    """Takes what a report leaves out for nothing."""

    async def _tell(self, job_id: str, values: Mapping[str, Any], now: int) -> None:
        await super()._tell(job_id, {**ZEROS, **values} if values else {}, now)


class BeatsReplace(Nodes):
    """Takes a heartbeat without anything new for one that counts from 0."""

    async def _tell(self, job_id: str, values: Mapping[str, Any], now: int) -> None:
        row = await self._row(job_id)
        ends = row["round"]["end"] is not None and row["roundStartedAt"] + row["round"]["end"] == now
        await super()._tell(job_id, values if values or ends else ZEROS, now)


FAULTS = (
    fault(
        "progress-names",
        "progress has names of its own",
        "HUB-GET-21",
        shapes=shown(
            lambda it, *_: {"progress": it["progress"] and {**it["progress"], "tokensIn": None, "inputTokens": 1}}
        ),
    ),
    fault(
        "slow-heartbeat",
        "progress is reported every 60 s",
        "HUB-GET-22",
        edit=machine("constants", "heartbeat", "seconds", value=60),
    ),
    fault(
        "late-progress",
        "a cancelled job's progress goes on",
        "HUB-GET-23",
        "HUB-GET-24",
        edit=set_step("progress", **{"from": ["running", "cancelled"]}),
        nodes=GoesOn,
    ),
    fault("progress-cleared", "progress is gone at the end", "HUB-GET-24", edit=effect("over", progress="null")),
    fault(
        "progress-at-once",
        "progress is all zero before the first report",
        "HUB-GET-63",
        "HUB-GET-64",
        "HUB-RETRY-59",
        shapes=NoneShown,
    ),
    fault(
        "progress-inherited",
        "a new attempt has the last one's progress",
        "HUB-GET-64",
        "HUB-GET-63",
        edit=set_step(
            "take",
            set=[
                {
                    "attempt": "job.attempt + 1",
                    "sessionId": "newSession",
                    "roundStartedAt": "now",
                    "round": "round",
                    "startedAt": "job.startedAt == null ? now : job.startedAt",
                }
            ],
        ),
    ),
    fault("end-says-nothing", "the end of a round reports no progress", "HUB-GET-65", nodes=EndSaysNothing),
    fault("reports-replace", "what a report leaves out is 0", "HUB-GET-66", nodes=ReportsReplace),
    fault("beats-replace", "a heartbeat without news sets all to 0", "HUB-GET-66", nodes=BeatsReplace),
    fault(
        "no-zeros",
        "what was never reported is null",
        "HUB-GET-67",
        "HUB-GET-21",
        shapes=shown(
            lambda it, *_: {
                "progress": it["progress"] and {name: value or None for name, value in it["progress"].items()}
            }
        ),
    ),
    fault(
        "idle-at-first",
        "a last activity that was never reported is `idle`",
        "HUB-GET-67",
        shapes=shown(
            lambda it, *_: {
                "progress": it["progress"]
                and {**it["progress"], "lastActivity": it["progress"]["lastActivity"] or "idle"}
            }
        ),
    ),
    fault(
        "progress-left-out",
        "progress that is null is left out",
        "HUB-GET-70",
        "HUB-GET-68",
        "HUB-GET-63",
        shapes=without("progress"),
    ),
)
