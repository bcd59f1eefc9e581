"""The situations in which generated requests meet the hub: places for jobs, jobs in every state, and batches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import Node, Project, job_ids
from contract_tests.checks import CheckSkipped, about
from contract_tests.fuzz import trials

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contract_tests.agent_hub.given import HubGiven

PLACE, JOB, BATCH = "place", "job", "batch"
OPEN_JOBS = 3
"""Jobs of a batch that is not finished: one of them runs."""


@dataclass(frozen=True, eq=False)
class Situation:
    """Where a request finds what it is about; ``kind`` is PLACE, JOB or BATCH."""

    name: str
    kind: str
    state: str = ""
    """Of a job: as of ``HubGiven.in_state``. Of a batch: ``open`` or ``finished``."""
    nodes: tuple[tuple[bool, bool], ...] = ((True, True),)
    """Of a place: whether each node is online, and whether it has the project."""
    names: str = "as it comes"
    """Of a place: what is named; ``a node``, ``no node``, ``no such project``, ``no such node``, ``the other``."""

    @property
    def accepts(self) -> bool:
        """Of a place: whether valid submissions succeed there."""
        return self.names in ("as it comes", "a node") and all(online for online, _ in self.nodes)

    @property
    def needs(self) -> frozenset[str]:
        """The provider states without which it can't be reached."""
        return frozenset({"node", "outcome"} if self.kind == JOB else {"node"})


FREE = Situation("a project on a node", PLACE)
PLACES = (
    FREE,
    Situation("a project on two nodes, one of them named", PLACE, nodes=((True, True), (True, True)), names="a node"),
    Situation("a project on two nodes, none of them named", PLACE, nodes=((True, True), (True, True)), names="no node"),
    Situation("a node that is offline", PLACE, nodes=((False, True),)),
    Situation("a project that nobody has", PLACE, names="no such project"),
    Situation("a node that does not exist", PLACE, names="no such node"),
    Situation("a node without the project", PLACE, nodes=((True, True), (True, False)), names="the other"),
)
JOBS = tuple(
    Situation(f"a job that is {state}", JOB, state)
    for state in ("queued", "running", "done", "failed", "waiting", "cancelled")
)
BATCHES = tuple(Situation(f"a batch that is {state}", BATCH, state) for state in ("open", "finished"))


@dataclass
class Subject:
    """What requests are about: a place for jobs, with the job or the batch where it is about one."""

    situation: Situation
    project: Project
    nodes: Mapping[str, tuple[bool, bool]]
    """Each node by id: whether it is online, and whether it has the project."""
    batch: str
    tag: str
    """Its own name, with which the keys of its submissions begin."""
    job: str | None = None
    state: str = ""
    row: dict[str, Any] | None = None
    refused: list[trials.Step[Subject]] = field(default_factory=list)
    made: float = field(default_factory=time.monotonic)
    total: int = 0
    """Of a batch: its jobs."""
    left: int = 0
    """Of a batch: the jobs that are not finished."""
    sent: dict[str, trials.Step[Subject]] = field(default_factory=dict)
    """The accepted submission of each ``Idempotency-Key``."""
    first: dict[str, Any] = field(default_factory=dict)
    """The data of its answer."""

    @property
    def id(self) -> str:
        """Its own name."""
        return self.tag

    @property
    def names(self) -> list[str]:
        """What another one in its place has other values of: its ids."""
        return [self.tag, self.batch, self.project.id, *self.nodes, *([self.job] if self.job else [])]


async def make(given: HubGiven, situation: Situation, **_: Any) -> Subject:
    """A new subject in a situation. Skips the check where the build does not offer a provider state for it."""
    subject = await _place(given, situation)
    if situation.kind == JOB:
        made = await given.in_state(situation.state, subject.project, batch=subject.batch)
        subject.job = made.id
        await look(given, subject)
    elif situation.kind == BATCH:
        items = [item(subject.project, externalId=f"{subject.tag}-{number}") for number in range(OPEN_JOBS)]
        answer = await given.accepted(*items, batch=subject.batch)
        subject.total = subject.left = len(job_ids(answer))
        await given.catch_up(job_ids(answer)[0])
        if situation.state == "finished":
            for id_ in job_ids(answer):
                with about("HUB-CANCEL-01", step="cancelling a job"):
                    await given.api.cancel(id_).succeeds()
            subject.left = 0
        subject.state = situation.state
    else:
        subject.row = {"jobs": []}
    return subject


async def _place(given: HubGiven, situation: Situation) -> Subject:
    project = given.unique("proj")
    nodes: dict[str, tuple[bool, bool]] = {}
    first: Node | None = None
    for online, has in situation.nodes:
        node = await given.node([project] if has else [], online=online)
        nodes[node.id] = (online, has)
        first = first or node
    if first is None:
        raise CheckSkipped("needs a node")
    batch, tag = given.unique("batch"), given.unique("order")
    return Subject(situation, Project(project, first), nodes, batch, tag)


async def look(given: HubGiven, subject: Subject) -> None:
    """See the subject as it is."""
    if subject.job is not None:
        subject.row = await given.detail(subject.job)
        subject.state = str(subject.row.get("status"))
    elif subject.situation.kind == PLACE:
        subject.row = {"jobs": await queued(given, subject)}
    subject.refused.clear()


async def queued(given: HubGiven, subject: Subject) -> list[Any]:
    """Ids of the newest jobs of a place, by its project and by its batch; none where the build refuses to tell."""
    ids = []
    for name, own in (("projectId", subject.project.id), ("batchId", subject.batch)):
        answer = await given.api.jobs(**{name: own}, limit=1)
        entries = answer.entries if answer.status < 400 else []
        ids += [entry.get("id") for entry in entries if entry.get(name) == own]
    return ids


class Stock(trials.Stock[Subject]):
    """Subjects that wait; ``accepting`` places are not looked at, since submissions to them succeed."""

    def __init__(self, given: HubGiven, situations: Iterable[Situation], *, accepting: bool = False) -> None:
        super().__init__(item for item in situations if item.needs <= given.states.offered)
        self.given, self.accepting = given, accepting
        clock = given.clock
        self._life = float("inf") if clock.stands else given.timing.backoff[0] / max(clock.rate, 1) * 0.4

    async def make(self, situation: Situation) -> Subject | None:
        """A new subject in the situation. Where time is moved for it, jobs that wait for their retry are made anew."""
        if situation.kind == JOB and situation.state != "waiting":
            self.kept = {name: kept for name, kept in self.kept.items() if kept.situation.state != "waiting"}
        subject = await make(self.given, situation)
        if situation.kind == PLACE and self.accepting and situation.accepts:
            subject.row = None
        return subject

    def stale(self, subject: Subject) -> bool:
        """Whether the job's retry may begin before long."""
        return subject.situation.state == "waiting" and time.monotonic() - subject.made > self._life
