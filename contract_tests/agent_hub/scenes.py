"""Scenes: several jobs on one node, each brought into a state of its own in few exchanges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import LONG, SCRIPT_LONG, HubGiven, Job, Node, Project, job_ids
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect

if TYPE_CHECKING:
    from collections.abc import Iterator

STATES = ("done", "failed", "waiting", "running", "queued", "cancelled")
"""The states of a job as checks tell them apart: `waiting` is failed with a retry to come."""
SLACK = 10.0
"""Real seconds that a flowing build gets beyond what its rounds last."""
MESSAGES = {"failed": "the engine broke", "waiting": "429 rate limited"}


@dataclass(frozen=True)
class Planned:
    """One job of a scene: the state it comes into, the seconds of its round, more of the round and of the item.

    ``again`` is the round of later attempts, where it differs.
    """

    state: str
    seconds: float = 1
    round: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    again: Mapping[str, Any] | None = None

    def script(self) -> dict[str, Any] | None:
        """What the node does with it; None for one that never starts."""
        match self.state:
            case "queued" | "cancelled":
                return None
            case "running":
                long = SCRIPT_LONG if self.fields.get("kind") == "script" else LONG
                return {"afterSeconds": long, "result": "done", **self.round}
            case "done":
                return {"afterSeconds": self.seconds, "result": "done", **self.round}
        failed = {"afterSeconds": self.seconds, "result": "failed", "message": MESSAGES[self.state]}
        retried = self.state == "waiting"
        return {**failed, "failureType": "llm_error" if retried else "engine_error", "retriable": retried, **self.round}


@dataclass(frozen=True)
class Scene:
    """Jobs of one batch, a project each list, in the order in which they run."""

    batch: str
    node: Node
    jobs: Sequence[Sequence[Job]]
    plans: Sequence[Sequence[Planned]]

    def __iter__(self) -> Iterator[tuple[Job, Planned]]:
        for jobs, plans in zip(self.jobs, self.plans, strict=True):
            yield from zip(jobs, plans, strict=True)

    @property
    def ids(self) -> list[str]:
        """Every job's id."""
        return [job.id for job, _ in self]

    def of(self, state: str) -> Job:
        """The first job in a state."""
        return next(job for job, plan in self if plan.state == state)


async def arranged(given: HubGiven, *plans: Sequence[Planned], batch: Any = UNSET) -> Scene:
    """A node with a project for each list of jobs, which run one after the other in that order.

    What stays queued, or is cancelled, has to stand behind a running one of its project.
    """
    node = await given.node([given.unique("proj") for _ in plans])
    projects = [Project(name, node) for name in node.projects]
    items, places = [], []
    for project, planned in zip(projects, plans, strict=True):
        for place, plan in enumerate(planned):
            name = plan.fields.get("externalId", given.unique("order"))
            script = plan.script()
            if script is not None:  # of a job without a name the whole project's
                rounds = [script] if plan.again is None else [script, plan.again]
                await given.script(project, *rounds, external_id=None if name is UNSET else name)
            items.append(item(project, **{"priority": 100 - place, **plan.fields, "externalId": name}))
            places.append(project)
    answer = await given.accepted(items, batch=batch)
    ids = job_ids(answer)
    with about("HUB-SUB-09", step="the jobs of a submission"):
        expect(len(ids) == len(items), f"{len(items)} jobs", f"{len(ids)}", "/data/items")
    await given.catch_up(ids[-1])
    made = str(answer.data.get("batchId"))
    jobs = [
        Job(id_, project, made, sent.get("externalId")) for id_, project, sent in zip(ids, places, items, strict=True)
    ]
    rows = [[job for job in jobs if job.project is project] for project in projects]
    scene = Scene(made, node, rows, plans)
    await _reached(given, scene)
    return scene


async def _reached(given: HubGiven, scene: Scene) -> None:
    """Let the rounds pass, and see that each job is where it should be."""
    lasting = max(sum(plan.seconds for plan in plans if plan.state in ("done", *MESSAGES)) for plans in scene.plans)
    await given.clock.advance(lasting + given.clock.margin)
    for job, plan in scene:
        if plan.state != "cancelled":
            await given.until(job, "failed" if plan.state == "waiting" else plan.state)
    for job, plan in scene:
        if plan.state == "cancelled":
            with about("HUB-CANCEL-02", step="cancelling a queued job"):
                await given.api.cancel(job).succeeds()


async def every_state(given: HubGiven, **fields: Any) -> Scene:
    """A job in each of the six states; ``fields`` are those of every item."""
    told = {"atSeconds": 0.5, "toolCalls": 3, "tokensIn": 210, "lastActivity": "write_file"}
    said = {"progress": [told], "summary": "all well", "producedFiles": ["reports/todo.md"]}
    plans = [Planned(state, round=said if state == "done" else {}, fields=fields) for state in STATES]
    done, failed, waiting, *others = plans
    return await arranged(given, [done], [failed], [waiting], others)


async def retried(given: HubGiven, job: Job, status: str, seconds: float = 0) -> dict[str, Any]:
    """Let the first backoff and so many seconds pass: the detail as soon as the second attempt has a status.

    A build begins a retry within its sweep.
    """
    await given.clock.advance(given.timing.backoff[0] + seconds + 2 * given.clock.margin)
    deadline = time.monotonic() + given.clock.grace + SLACK
    while True:
        detail = await given.detail(job)
        if detail.get("attempt") == 2 and detail.get("status") == status:
            return detail
        with about("HUB-RETRY-02", step="a retry that comes"):
            over = given.clock.stands or time.monotonic() >= deadline
            came = f"attempt {detail.get('attempt')}, {detail.get('status')}"
            expect(not over, f"attempt 2, {status}", came, "/data/attempt")
        await asyncio.sleep(0.1)
