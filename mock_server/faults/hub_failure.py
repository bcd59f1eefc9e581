"""Seeded faults of the hub: why jobs fail, and what becomes of nodes that fall silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.faults.edits import machine, part, put, schema, set_step, several
from mock_server.hub.entities import JOB
from mock_server.hub.nodes import Nodes
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.store import Row

LEFT = "job.attempt < job.maxAttempts"
MODEL = "report.type in alwaysRetried || report.type in retriedIfRetriable && report.retriable == true"
TYPES = (
    "node_lost",
    "llm_error",
    "engine_error",
    "timeout",
    "max_iterations",
    "project_not_found",
    "cancelled",
    "script_failed",
)
CONSTANT = ("x-state-machine", "constants")


def retried(when: str) -> Callable[[dict[str, Any]], None]:
    """Retry by another rule, as long as attempts are left."""
    return machine("define", "retried", value=f"({when}) && {LEFT}")


def constant(name: str, key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Another number."""
    return put(*CONSTANT, name, key, value=value)


class SilenceAdds(Nodes):
    """Adds up a round's silences: 30 s of them altogether lose the job."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub)
        self._since: dict[str, int] = {}
        self._earlier: dict[str, int] = {}

    async def _gone(self, job_id: str, now: int) -> None:
        self._since[job_id] = now
        self.forget(job_id)
        await self.hub.engine.fire("silence", job_id, now - self._earlier.get(job_id, 0))

    async def _back(self, job_id: str, now: int) -> None:
        self._earlier[job_id] = self._earlier.get(job_id, 0) + now - self._since.get(job_id, now)
        await super()._back(job_id, now)


class ForgetsReports(Nodes):
    """A node that is back goes on with what comes next: what it had to report meanwhile is lost."""

    async def _back(self, job_id: str, now: int) -> None:
        row = await self.hub.store.get(JOB, job_id)
        if row is None or row["round"] is None:
            return
        plan, since = row["round"], now - row["roundStartedAt"]
        later = [item for item in plan["progress"] if item[0] > since]
        end = None if plan["end"] is not None and plan["end"] <= since else plan["end"]
        await self.hub.engine.fire("hear", job_id, now)
        row = await self._row(job_id)
        row["round"].update(end=end, progress=later)
        await self._plan_next(row, now)


class KeepsProgress(Nodes):
    """A node that is back tells no progress of the time in which it was silent."""

    async def _back(self, job_id: str, now: int) -> None:
        row = await self.hub.store.get(JOB, job_id)
        if row is not None and row["round"] is not None:
            since = now - row["roundStartedAt"]
            row["round"]["progress"] = [item for item in row["round"]["progress"] if item[0] > since]
        await super()._back(job_id, now)


class LosesAll(Nodes):
    """A round that falls silent takes the other rounds of its node with it."""

    async def _report_due(self, job_id: str, now: int) -> None:
        await super()._report_due(job_id, now)
        row: Row | None = await self.hub.store.get(JOB, job_id)
        if row is not None and row["round"] is not None and row["silentSince"] is not None:
            for (node, _), other in list(self.hub.scheduler.busy.items()):
                if node == row["nodeId"]:
                    await self.hub.engine.fire("silence", other, now)


FAULTS = (
    Mutant(
        "hub-fail.model-always",
        "every model error is retried",
        ("HUB-FAIL-03", "HUB-RETRY-52"),
        edit=retried("report.type in alwaysRetried || report.type in retriedIfRetriable"),
    ),
    Mutant(
        "hub-fail.model-never",
        "no model error is retried",
        ("HUB-FAIL-03", "HUB-RETRY-50"),
        edit=retried("report.type in alwaysRetried"),
    ),
    Mutant(
        "hub-fail.lost-final",
        "a lost node ends the job",
        ("HUB-FAIL-02", "HUB-RETRY-50"),
        edit=retried("report.type in retriedIfRetriable && report.retriable == true"),
    ),
    Mutant(
        "hub-fail.engine-retried",
        "engine errors are retried",
        ("HUB-FAIL-04", "HUB-RETRY-52"),
        edit=retried(f"{MODEL} || report.type == 'engine_error'"),
    ),
    Mutant(
        "hub-fail.timeout-retried",
        "a round that took too long is retried",
        ("HUB-FAIL-05", "HUB-FAIL-11", "HUB-RETRY-52"),
        edit=retried(f"{MODEL} || report.type == 'timeout'"),
    ),
    Mutant(
        "hub-fail.iterations-retried",
        "max_iterations is retried where the node calls it retriable",
        ("HUB-FAIL-06", "HUB-FAIL-11", "HUB-RETRY-52"),
        edit=retried(f"{MODEL} || report.type == 'max_iterations' && report.retriable == true"),
    ),
    Mutant(
        "hub-fail.project-retried",
        "project_not_found is retried, as if the project might come back",
        ("HUB-FAIL-07", "HUB-RETRY-52"),
        edit=retried(f"{MODEL} || report.type == 'project_not_found'"),
    ),
    Mutant(
        "hub-fail.flag-decides",
        "whatever the node calls retriable is retried",
        ("HUB-FAIL-08", "HUB-FAIL-10", "HUB-RETRY-52"),
        edit=retried("report.type in alwaysRetried || report.retriable == true"),
    ),
    Mutant(
        "hub-fail.own-word",
        "a type that nobody knows is told for a rejection",
        ("HUB-FAIL-01", "HUB-FAIL-08", "HUB-GET-18"),
        edit=several(
            schema("FailureType", enum=[*TYPES, "refused_by_node"]),
            machine(
                "effects", "fail", "failureType", value="report.type == 'rejected' ? 'refused_by_node' : report.type"
            ),
        ),
    ),
    Mutant(
        "hub-fail.silence-late",
        "a node may be silent for 31 s",
        ("HUB-FAIL-50",),
        edit=constant("silence", "seconds", 31),
    ),
    Mutant(
        "hub-fail.silence-strict",
        "at 30 s of silence exactly the job runs still",
        ("HUB-FAIL-50",),
        edit=machine(
            "timers", "node-lost", "at", value="job.silentSince == null ? null : job.silentSince + silence + 1"
        ),
    ),
    Mutant(
        "hub-fail.silence-early",
        "29 s of silence lose the job",
        ("HUB-FAIL-50", "HUB-FAIL-51", "HUB-FAIL-52"),
        edit=constant("silence", "seconds", 29),
    ),
    Mutant(
        "hub-fail.silence-of-all",
        "a round that falls silent takes the others of its node with it",
        ("HUB-FAIL-50",),
        parts=part(nodes=LosesAll),
    ),
    Mutant(
        "hub-fail.no-return",
        "a node that is back has lost its jobs all the same",
        ("HUB-FAIL-51",),
        edit=set_step("hear", set=[{"silentSince": "job.silentSince"}]),
    ),
    Mutant(
        "hub-fail.silences-add",
        "silences of one round are added up",
        ("HUB-FAIL-51",),
        parts=part(nodes=SilenceAdds),
    ),
    Mutant(
        "hub-fail.reports-lost",
        "the end of a round in the time of silence is lost",
        ("HUB-FAIL-52",),
        parts=part(nodes=ForgetsReports),
    ),
    Mutant(
        "hub-fail.progress-lost",
        "progress in the time of silence is lost",
        ("HUB-FAIL-52",),
        parts=part(nodes=KeepsProgress),
    ),
    Mutant(
        "hub-fail.silent-timeout",
        "the limit of a round ends it while its node is silent",
        ("HUB-FAIL-50", "HUB-FAIL-52"),
        edit=machine(
            "timers",
            "round-limit",
            "after",
            value="job.roundStartedAt != null ? job.roundStartedAt + roundLimit : null",
        ),
    ),
    Mutant(
        "hub-fail.limit-24",
        "kind ai: 24 minutes are the limit",
        ("HUB-FAIL-05",),
        edit=constant("aiLimit", "minutes", 24),
    ),
    Mutant(
        "hub-fail.limit-30",
        "kind ai: half an hour is the limit",
        ("HUB-FAIL-05",),
        edit=constant("aiLimit", "minutes", 30),
    ),
    Mutant(
        "hub-fail.limit-of-job",
        "the limit counts from the first attempt's start",
        ("HUB-FAIL-05",),
        edit=machine(
            "timers",
            "round-limit",
            "after",
            value="job.roundStartedAt != null && job.silentSince == null ? job.startedAt + roundLimit : null",
        ),
    ),
    Mutant(
        "hub-fail.script-unlimited",
        "a script's `timeoutSeconds` is ignored",
        ("HUB-FAIL-53", "HUB-FIELD-12"),
        edit=machine("define", "roundLimit", value="aiLimit"),
    ),
    Mutant(
        "hub-fail.script-failed",
        "a script that takes too long is script_failed",
        ("HUB-FAIL-53", "HUB-FAIL-05"),
        edit=machine(
            "effects",
            "fail",
            "failureType",
            value="job.kind == 'script' && report.type == 'timeout' ? 'script_failed' : report.type",
        ),
    ),
    Mutant(
        "hub-fail.script-capped",
        "a script has 60 s at most, whatever its `timeoutSeconds`",
        ("HUB-FAIL-53",),
        edit=machine(
            "define",
            "roundLimit",
            value="job.timeoutSeconds == null ? aiLimit : job.timeoutSeconds > 60 ? 60000 : job.timeoutSeconds * 1000",
        ),
    ),
)
