"""What a check of the hub starts from: nodes and projects of its own, jobs in the state it needs, time that passes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import HubAnswer, HubApi, Identified, item
from contract_tests.agent_hub.shapes import instant
from contract_tests.calls import UNSET
from contract_tests.checks import CheckSkipped, about, expect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from contract_tests.agent_hub.receiver import Hook, Receiver
    from contract_tests.clock import Clock
    from contract_tests.transport import ProviderStates

NO_OTHER = "needs a second API key of the build; give one as CONTRACT_HUB_TOKEN_B or --second-token"
LONG = 1200
"""Seconds of a round that does not end by itself while a check looks; shorter than any limit of kind ai."""
SCRIPT_LONG = 250
"""The same of kind script, whose largest limit is 300."""
STEP = 1.0
"""Seconds by which a standing clock is moved while something is awaited."""
SOON = 10.0
"""Seconds in which what was scripted for a check's start has happened."""

REACHED = {
    "queued": "HUB-SUB-10",
    "running": "HUB-GET-05",
    "done": "HUB-GET-05",
    "failed": "HUB-GET-05",
    "cancelled": "HUB-CANCEL-02",
}
"""The rule under which it is told that a job never comes into the state that a check starts from."""


@dataclass(frozen=True)
class HubTiming:
    """The target's timing, seconds: the seed's numbers unless ``--timing`` says otherwise."""

    backoff: tuple[float, ...] = (30, 120, 600)
    idempotency: float = 86400
    ping: float = 15
    node_lost: float = 30
    sweep: float = 5

    @property
    def patience(self) -> float:
        """How much of what they say waits for events and webhooks last: a build that sweeps sooner tells sooner."""
        return min(max(self.sweep / HubTiming.sweep, 0.2), 1.0)


@dataclass(frozen=True)
class Node:
    """A node that a provider state made."""

    id: str
    label: str
    projects: tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """A project on a node."""

    id: str
    node: Node


@dataclass(frozen=True)
class Job:
    """A job that a check submitted."""

    id: str
    project: Project
    batch: str
    external_id: str | None


@dataclass
class HubGiven:
    """Puts nodes and jobs where a check needs them. Names are unique within a run and the same for the same seed."""

    api: HubApi
    other: HubApi | None
    receiver: Receiver
    states: ProviderStates
    clock: Clock
    timing: HubTiming
    random: Random
    webhook_secret: str | None = None
    took: float = 0.0
    """Real seconds that it took to look at a job, at most: so long before a moment one has to ask at the latest."""
    _made: int = field(default=0)

    def unique(self, what: str) -> str:
        """A name that nobody else uses."""
        self._made += 1
        return f"{what}-{self.random.getrandbits(40):010x}-{self._made}"

    @property
    def stranger(self) -> HubApi:
        """The hub under a second key. Skips the check where there is none."""
        if self.other is None:
            raise CheckSkipped(NO_OTHER)
        return self.other

    async def node(
        self,
        projects: Sequence[str] | None = None,
        *,
        online: bool = True,
        label: str | None = None,
        id_: str | None = None,
    ) -> Node:
        """A node with an id of its own, or that id, and one project of its own unless ``projects`` are named."""
        id_ = id_ or self.unique("node")
        held = tuple(projects) if projects is not None else (self.unique("proj"),)
        node = Node(id_, label or f"label of {id_}", held)
        await self.states.set_up(
            "node", {"nodeId": node.id, "label": node.label, "online": online, "projects": list(held)}
        )
        return node

    async def project(self, *, online: bool = True) -> Project:
        """A project of its own on a node of its own."""
        node = await self.node(online=online)
        return Project(node.projects[0], node)

    async def some_project(self) -> str:
        """The id of a project: its own where the build can be given one, otherwise one that nobody has.

        For submissions that are to be refused, whether or not the project is there.
        """
        return (await self.project()).id if "node" in self.states.offered else self.unique("proj")

    async def without_projects(self, node: Node) -> None:
        """The node has no project any more."""
        await self.states.set_up("node", {"nodeId": node.id, "label": node.label, "online": True, "projects": []})

    async def offline(self, node: Node) -> None:
        """The node goes offline."""
        await self.states.set_up("node-online", {"nodeId": node.id, "online": False})

    async def online(self, node: Node) -> None:
        """The node comes back."""
        await self.states.set_up("node-online", {"nodeId": node.id, "online": True})

    async def script(
        self,
        project: Project | str,
        *attempts: Mapping[str, Any],
        node: Node | None = None,
        external_id: str | None = None,
    ) -> None:
        """What the node does with jobs of the project, attempt by attempt; the last one repeats."""
        params = {
            "projectId": project if isinstance(project, str) else project.id,
            "nodeId": node.id if node else None,
            "externalId": external_id,
            "attempts": list(attempts),
        }
        await self.states.set_up("outcome", {name: value for name, value in params.items() if value is not None})

    async def default_callback(self, account: str, url: str | None) -> None:
        """The default callback of a key, ``a`` or ``b``; None removes it."""
        await self.states.set_up("default-callback", {"account": account, "url": url})

    def hook(self, *args: Any, **parts: Any) -> Hook:
        """A URL for webhooks, as of :meth:`~contract_tests.agent_hub.receiver.Receiver.hook`."""
        return self.receiver.hook(*args, **parts)

    async def accepted(self, *items: Any, api: HubApi | None = None, **parts: Any) -> HubAnswer:
        """The answer to a submission that is right: what checks start from; ``parts`` as of ``api.submit``."""
        with about("HUB-SUB-05", step="submitting jobs"):
            return await (api or self.api).submit(*items, **parts).succeeds(202)

    async def submitted(self, *items: Any, api: HubApi | None = None, **parts: Any) -> list[str]:
        """The ids of the jobs of a submission that is right, in the order that the build gives.

        Where projects are free their jobs have started, as of :meth:`catch_up`.
        """
        ids = job_ids(await self.accepted(*items, api=api, **parts))
        await self.catch_up(ids[-1], api=api)
        return ids

    async def catch_up(self, job: Identified | str, *, api: HubApi | None = None) -> None:
        """Where the clock stands, move it to the job's ``queuedAt``, before which no round of it starts.

        No two jobs of a key have the same ``queuedAt``: of jobs that are submitted in one instant the later ones, and
        those of the check that follows, stand milliseconds ahead of the clock (HUB-LIST-56, HUB-NODE-56).
        """
        if not self.clock.stands:
            return
        ahead = instant(await self.detail(job, api=api), "queuedAt") - await self.clock.now()
        if ahead > 0:
            await self.clock.advance(ahead / 1000)

    async def job(
        self,
        project: Project | None = None,
        *,
        batch: Any = UNSET,
        key: Any = UNSET,
        api: HubApi | None = None,
        **fields: Any,
    ) -> Job:
        """One job, submitted alone, with an externalId of its own; ``fields`` are those of the item.

        Where its project is free it has started.
        """
        on = project or await self.project()
        fields.setdefault("externalId", self.unique("task"))
        answer = await self.accepted(item(on, **fields), batch=batch, key=key, api=api)
        await self.catch_up(job_ids(answer)[0], api=api)
        return Job(job_ids(answer)[0], on, str(answer.data.get("batchId")), _given(fields["externalId"]))

    async def queued_job(self, project: Project | None = None, **fields: Any) -> Job:
        """A queued job that waits for another one of its project, which runs long."""
        on = project or await self.project()
        await self.running_job(on)
        return await self.job(on, **fields)

    async def running_job(self, project: Project | None = None, **fields: Any) -> Job:
        """A job that runs long."""
        on = project or await self.project()
        long = SCRIPT_LONG if fields.get("kind") == "script" else LONG
        if "timeoutSeconds" in fields:
            long = min(long, fields["timeoutSeconds"] / 2)
        return await self._ended(on, {"afterSeconds": long, "result": "done"}, "running", fields)

    async def done_job(self, project: Project | None = None, **fields: Any) -> Job:
        """A job that is done after a second."""
        on = project or await self.project()
        return await self._ended(on, {"afterSeconds": 1, "result": "done"}, "done", fields)

    async def failed_job(
        self,
        project: Project | None = None,
        *,
        type: str = "engine_error",  # noqa: A002 - the protocol's word
        retriable: bool = False,
        message: str = "the engine broke",
        **fields: Any,
    ) -> Job:
        """A job that failed for good after a second, in its first attempt."""
        on = project or await self.project()
        attempt = {"afterSeconds": 1, "result": "failed", "failureType": type, "retriable": retriable}
        job = await self._ended(on, {**attempt, "message": message}, "failed", fields)
        detail = await self.detail(job)
        with about("HUB-FAIL-04" if type == "engine_error" else "HUB-GET-05", step="a failure that is not retried"):
            came = detail.get("nextRetryAt")
            expect(came is None, "a failure with no retry to come", f"nextRetryAt {came}", "/data/nextRetryAt")
        return job

    async def waiting_job(
        self, project: Project | None = None, *, message: str = "429 rate limited", **fields: Any
    ) -> Job:
        """A job whose first attempt failed, retriable, after a second, and that is going to be retried."""
        on = project or await self.project()
        attempt = {"afterSeconds": 1, "result": "failed", "failureType": "llm_error", "retriable": True}
        job = await self._ended(on, {**attempt, "message": message}, "failed", fields)
        detail = await self.detail(job)
        with about("HUB-FAIL-03", step="a failure that is retried"):
            expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
        return job

    async def cancelled_job(self, project: Project | None = None, **fields: Any) -> Job:
        """A job that was cancelled while it was queued."""
        job = await self.queued_job(project, **fields)
        with about("HUB-CANCEL-02", step="cancelling a queued job"):
            await self.api.cancel(job).succeeds()
        await self.until(job, "cancelled")
        return job

    async def in_state(self, state: str, project: Project | None = None, **fields: Any) -> Job:
        """A job in one of the five states; ``waiting`` is a failed one that is going to be retried."""
        make = {
            "queued": self.queued_job,
            "running": self.running_job,
            "done": self.done_job,
            "failed": self.failed_job,
            "waiting": self.waiting_job,
            "cancelled": self.cancelled_job,
        }
        return await make[state](project, **fields)

    async def detail(self, job: Identified | str, *, api: HubApi | None = None) -> dict[str, Any]:
        """A job's detail."""
        with about("HUB-GET-01", step="reading a job's detail"):
            answer = await (api or self.api).job(job).succeeds(200)
        detail, self.took = answer.data, max(self.took, answer.response.received - answer.response.sent)
        with about("HUB-GET-03", step="reading a job's detail"):
            id_ = job if isinstance(job, str) else job.id
            expect(detail.get("id") == id_, f"id {id_}", str(detail.get("id")), "/data/id")
        return detail

    async def until(
        self, job: Identified | str, status: str, *, seconds: float = SOON, rule: str | None = None
    ) -> dict[str, Any]:
        """The job's detail as soon as it has that status, which it gets within so many seconds of the build's time.

        A clock that can be moved is moved on. Where the status never comes that is told under ``rule``, of level seed.
        """
        left, detail = seconds if self.clock.advances else 0.0, await self.detail(job)
        patience = 0.0 if self.clock.stands else self.clock.grace + (0.0 if self.clock.advances else seconds)
        deadline = time.monotonic() + patience
        while detail.get("status") != status:
            if left > 0:
                await self.clock.advance(min(STEP, left))
                left -= STEP
                deadline = time.monotonic() + patience
            else:
                with about(rule or REACHED[status], step=f"a job that becomes {status}"):
                    came = f"{detail.get('status')} after {seconds:g} s"
                    expect(time.monotonic() < deadline, f"status {status}", came, "/data/status")
                await asyncio.sleep(0.1)
            detail = await self.detail(job)
        return detail

    async def _ended(self, on: Project, attempt: Mapping[str, Any], status: str, fields: dict[str, Any]) -> Job:
        """A job that came into a state by a script of its own, or of the project where it has no externalId."""
        fields.setdefault("externalId", self.unique("task"))
        await self.script(on, attempt, external_id=_given(fields["externalId"]))
        job = await self.job(on, **fields)
        await self.until(job, status)
        return job


def _given(external_id: Any) -> str | None:
    return external_id if isinstance(external_id, str) else None


def job_ids(answer: HubAnswer) -> list[str]:
    """The ids of an accepted submission, in the order that the build gives."""
    with about("HUB-SUB-09", step="the jobs of a submission"):
        items = answer.data.get("items")
        entries: list[Any] = items if isinstance(items, list) else [None]
        good = all(isinstance(one, dict) and isinstance(one.get("id"), str) for one in entries)
        expect(good, "`items`, a list of objects with an `id`", answer.response.text[:200], "/data/items")
        expect(bool(entries), "a job", "none", "/data/items")
    return [one["id"] for one in entries]
