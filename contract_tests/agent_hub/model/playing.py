"""Plays commands on a hub and on the model side by side, and compares what comes."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import Job as JobRef
from contract_tests.agent_hub.given import job_ids
from contract_tests.agent_hub.model.believed import ACCOUNT, HEARD, OTHER, Course, Job, Place, different, submitted
from contract_tests.agent_hub.model.commands import BEHIND, ITEMS, OPERATIONS, ROUNDS
from contract_tests.agent_hub.model.rules import ANSWERS, REFUSED, TAKEN, of_fields
from contract_tests.agent_hub.model.seen import arrived, differences, seen
from contract_tests.checks import about, expect
from contract_tests.model.sequences import MAKE, TIME

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from contract_tests.agent_hub.client import Call, HubAnswer
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.model.believed import World
    from contract_tests.agent_hub.model.seen import Wrong
    from contract_tests.model.sequences import Command
    from contract_tests.model.stepper import Row, Stepper

OFFLINE = "node_offline"


class Play:
    """One sequence at work, on nodes and projects of its own."""

    def __init__(self, given: HubGiven, steps: Stepper) -> None:
        self.given, self.clock, self.steps = given, given.clock, steps
        self.jobs: list[Job] = []
        self.places: list[Place] = []
        self.now = 0
        """The instant that was told last."""
        self._took = 0

    @property
    def unsure(self) -> int:
        """Within how many milliseconds an instant is known: exactly where the clock stands."""
        return 0 if self.clock.stands else 2 * self._took + round(4 * self.clock.margin * 1000)

    @property
    def slack(self) -> int:
        """By how many milliseconds instants may be others than they should: a sweeper may be late, twice in a row."""
        return 0 if self.clock.stands else 2 * (self.unsure + round(self.clock.grace * self.clock.rate * 1000))

    def job(self, command: Command) -> Job:
        """The job that a command is about."""
        return self.jobs[command.job % len(self.jobs)]

    async def do(self, command: Command, *, look: bool = True) -> None:
        """Do one thing and compare. Fails the check with what differs."""
        self.now = await self.clock.now()
        if command.kind == MAKE:
            await self._make(command)
        elif not self.jobs:
            return
        elif command.kind == TIME:
            await self._time(command)
        elif command.kind in OPERATIONS:
            await self._request(command)
        else:
            await self._switch(command)
        if not self.jobs:
            return
        if command.kind == TIME and not self.clock.stands:  # a sweeper may be late for all of them
            for job in self.jobs:
                await self.look(job, command)
        elif look:
            await self.look(self.job(command) if command.kind != MAKE else self.jobs[-1], command)

    async def _instant(self, began: int) -> None:
        """Note when something that was begun at an instant ended."""
        self.now = await self.clock.now()
        self._took = max(self._took, self.now - began)

    def changes(self, command: Command) -> bool:
        """Whether the text has something changed by a command, were it given now."""
        job = self.job(command)
        match command.kind:
            case "time":
                return True
            case "make":
                return job.place.online
            case "offline" | "online":
                return job.place.online is (command.kind == "offline")
        return any(self._judged(command, row)[1] != row for row in job.place.rows(job))

    def cell(self, command: Command) -> Hashable:
        """What a command comes to now."""
        return command

    async def _make(self, command: Command) -> None:
        shared = command.what == BEHIND and self.jobs
        place = self.job(command).place if shared else Place(await self.given.project())
        name = self.given.unique("task")
        await self.given.script(place.project, *ROUNDS[command.what], external_id=name)
        fields = {"maxAttempts": 3, **ITEMS.get(command.what, {})}
        call = self.given.api.submit(item(place.project, externalId=name, **fields))
        began, answer = self.now, await call.answers()
        came, wanted = came_of(call, answer), 202 if place.online else OFFLINE
        node = "online" if place.online else "offline"
        with about(TAKEN if place.online else REFUSED, step=f"submitting a job to a node that is {node}"):
            expect(came == wanted, f"{wanted} to a job for a node that is {node}", str(came))
        if came == OFFLINE:
            return
        ref = JobRef(job_ids(answer)[0], place.project, str(answer.data.get("batchId")), name)
        job = Job(ref, ROUNDS[command.what], place, len(place.jobs))
        self.jobs.append(job)
        place.jobs.append(job)
        if place not in self.places:
            self.places.append(place)
        row = submitted(ref.id, fields)
        await self._placed(job, [(*world, row) for world in place.worlds], began)

    async def _placed(self, job: Job, worlds: list[World], since: int) -> None:
        """A job got its place in the queue, which is the build's to say, and starts when its time has come."""
        queued = int(seen(await self.given.detail(job.ref))["queuedAt"] or 0)
        with about("HUB-RETRY-58", step="the place of a job in the queue"):
            expect(queued >= since, f"queuedAt from {since} on", str(queued), "/data/queuedAt")
        await self._instant(since)
        if queued > self.now:
            await self.clock.advance((queued - self.now) / 1000)
            self.now = await self.clock.now()
        job.place.worlds = [_with(world, job, world[job.number] | {"queuedAt": queued}) for world in worlds]
        self._passed(since)

    def _judged(self, command: Command, row: Row) -> tuple[int | str, Row]:
        """Answer and row as the text has them."""
        caller = ACCOUNT if command.who == "owner" else OTHER
        inputs = {self.steps.row: row, "now": self.now, "caller": caller, "path": {"jobId": row["id"]}}
        inputs["nextPlace"] = self.now
        missed = self.steps.missed("operations", OPERATIONS[command.kind], inputs)
        if missed is not None:
            return missed, row
        taken = self.steps.judge("operations", OPERATIONS[command.kind], inputs)
        return taken.answer or 0, taken.row or row

    async def _request(self, command: Command) -> None:
        job = self.job(command)
        api = self.given.api if command.who == "owner" else self.given.stranger
        call = {"cancel": api.cancel, "retry": api.retry}[command.kind](job.ref)
        began, came = self.now, came_of(call, await call.answers())
        await self._instant(began)
        found = [(world, *self._judged(command, world[job.number])) for world in self._possible(job.place, began)]
        fitting = [(world, after) for world, wanted, after in found if came == wanted]
        with about(ANSWERS[command.kind]):
            wanted = [str(one) for one in dict.fromkeys(wanted for _, wanted, _ in found)]
            was = found[0][0][job.number]["status"]
            expect(bool(fitting), [f"{one} to {command} that is {was}" for one in wanted], str(came))
        after = [_with(world, job, row) for world, row in fitting]
        if command.kind == "retry" and any(row is not world[job.number] for world, row in fitting):
            await self._placed(job, [_with(world, job, world[job.number] | {HEARD: None}) for world in after], began)
            return
        freed = []
        for world, row in fitting:
            if command.kind == "cancel" and world[job.number]["status"] == "running" and row["status"] == "cancelled":
                # a build may free the project at once (HUB-CANCEL-57)
                freed.append(_with(world, job, row | {"roundStartedAt": None, "silentSince": None, "round": None}))
        job.place.worlds = [*after, *freed]
        self._passed(began)

    async def _switch(self, command: Command) -> None:
        """A node goes offline or comes back."""
        place, online, began = self.job(command).place, command.kind == "online", self.now
        await (self.given.online if online else self.given.offline)(place.project.node)
        if place.online is online:
            return
        await self._instant(began)
        worlds, course = self._possible(place, began), Course(self.steps, place)
        place.online, place.worlds = online, [course.switched(world, self.now, online=online) for world in worlds]
        self._passed(self.now)

    async def _time(self, command: Command) -> None:
        """Time passes: ten seconds, or to the next thing that happens to the job."""
        job, since, seconds = self.job(command), self.now, 10.0
        limit = Course(self.steps, job.place).next(job.place.worlds[0], job.number, since)
        if not self.clock.stands and command.what in ("before", "at"):
            return  # no instant can be met
        if command.what != "third" and limit is not None:
            seconds = (limit - since + {"before": -2, "at": -1, "after": 2 * self.slack}[command.what]) / 1000
        await self.clock.advance(max(seconds, 0))
        self.now = await self.clock.now()
        self._passed(since)

    def _passed(self, since: int) -> None:
        """What certainly happened until now has happened."""
        for place in self.places:
            course, sure = Course(self.steps, place), self.now - self.slack
            place.worlds = different(course.later(world, since, sure) for world in place.worlds)

    def _possible(self, place: Place, since: int) -> list[World]:
        """What may have happened in a place by now: where time flows it may have come already, or come late."""
        course, high = Course(self.steps, place), self.now + self.unsure
        return different(found for world in place.worlds for found in course.possible(world, since, high))

    async def look(self, job: Job, command: Command) -> None:
        """Compare the job's detail with the rows that it may have, and go on with those that it shows.

        Where time flows a sweeper may be late: it is looked at until it shows one.
        """
        place, deadline = job.place, time.monotonic() + self.clock.grace + 1
        while True:
            began = self.now
            came = seen(await self.given.detail(job.ref))
            await self._instant(began)
            self._passed(began)
            found = [self._compared(job, world, came) for world in self._possible(place, began)]
            fitting = [world for wrong, world in found if not wrong]
            if fitting or self.clock.stands or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
            self.now = await self.clock.now()
        if not fitting:
            self._tell(command, min((wrong for wrong, _ in found), key=len))
        place.worlds = fitting

    def _compared(self, job: Job, world: World, came: Mapping[str, Any]) -> tuple[Wrong, World]:
        """What a job's detail tells otherwise than a world has it, and the world with the instants that it tells."""
        row = arrived(world[job.number], came, self.slack)
        wrong = differences(self.steps, row, came, online=job.place.online, slack=self.slack)
        return wrong, _with(world, job, row)

    @staticmethod
    def _tell(command: Command, wrong: Wrong) -> None:
        rule = of_fields(command.kind, wrong)
        wanted, got = ({name: pair[side] for name, pair in wrong.items()} for side in (0, 1))
        with about(rule, step=None if rule == ANSWERS[command.kind] else f"a job after {command.kind}"):
            name = next(iter(wrong)).replace(".", "/")
            expect(False, f"after {command}: {json.dumps(wanted)}", json.dumps(got), f"/data/{name}")


def _with(world: World, job: Job, row: Row) -> World:
    """The world with another row of a job."""
    return (*world[: job.number], row, *world[job.number + 1 :])


def came_of(call: Call, answer: HubAnswer) -> int | str | None:
    """An answer in a word: its status, or the code of an error. Fails the check where it is no answer of the API."""
    call.dialect.judge_code(answer)
    return answer.status if answer.status < 400 else call.dialect.code_of(answer.response)
