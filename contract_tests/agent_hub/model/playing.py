"""Plays commands on a hub and on the model side by side, and compares what comes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import LONG, job_ids
from contract_tests.agent_hub.given import Job as JobRef
from contract_tests.agent_hub.model.believed import (
    ACCOUNT,
    BROKE,
    OTHER,
    RATE_LIMITED,
    Job,
    later,
    seen,
    shown,
    submitted,
)
from contract_tests.agent_hub.rounds import ends, fails, falls_silent, hangs
from contract_tests.checks import about, expect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.model.stepper import Row, Stepper

LIMITED = fails(5, message=RATE_LIMITED)
ROUNDS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "long": [ends(600)],
    "behind another": [ends(600)],
    "done": [ends(5)],
    "broken": [fails(5, type="engine_error", retriable=False, message=BROKE), ends(5)],
    "limited": [LIMITED, LIMITED, ends(5)],
    "limited, once": [LIMITED],
    "lost": [falls_silent(5), ends(600)],
    "hanging": [hangs()],
}
"""Jobs that ``make`` makes, by what their node does with them."""
WAYS: Mapping[str, tuple[str, ...]] = {"cancel": ("",), "retry": ("",), "time": ("third", "before", "at", "after")}
TRIGGERS = {"cancel": "cancelHubJob", "retry": "retryHubJob"}
ANSWERS = {"make": "HUB-GET-54", "cancel": "HUB-CANCEL-52", "retry": "HUB-RETRY-56", "time": "HUB-RETRY-52"}
"""The decision that a command shows by its answer, and by leaving a job alone that it does not concern."""
FIELDS: Mapping[str, Mapping[str, str]] = {
    "cancel": {
        "status": "HUB-CANCEL-02",
        "finishedAt": "HUB-CANCEL-54",
        "durationMs": "HUB-CANCEL-54",
        "nextRetryAt": "HUB-CANCEL-55",
    },
    "retry": {
        "status": "HUB-RETRY-07",
        "attempt": "HUB-RETRY-57",
        "queuedAt": "HUB-RETRY-58",
        "failure.lastError": "HUB-RETRY-60",
        "": "HUB-RETRY-59",
    },
    "time": {
        "nextRetryAt": "HUB-RETRY-51",
        "status": "HUB-RETRY-53",
        "attempt": "HUB-GET-52",
        "finishedAt": "HUB-GET-55",
        "durationMs": "HUB-GET-55",
        "startedAt": "HUB-GET-54",
        "waitMs": "HUB-GET-54",
        "failure.lastError": "HUB-RETRY-55",
        "": "HUB-RETRY-54",
    },
}
"""The rule of a field that is wrong after a command that had something change; ``""`` of any other."""
TO_BE_NULL = {"nextRetryAt": "HUB-RETRY-52", "finishedAt": "HUB-RETRY-54", "durationMs": "HUB-RETRY-54"}
"""The rule of a field that time has to leave null or make it so."""


@dataclass(frozen=True)
class Command:
    """One thing that happens to job number ``job``; ``what`` says more, by kind."""

    kind: str
    job: int = 0
    who: str = "owner"
    what: str = ""

    def __str__(self) -> str:
        by = f" by the {self.who}" if self.kind in TRIGGERS else ""
        return f"{self.kind}{f' ({self.what})' if self.what else ''}{by}, job {self.job}"


class Play:
    """One sequence at work, on nodes and projects of its own; on a clock that stands."""

    def __init__(self, given: HubGiven, steps: Stepper) -> None:
        self.given, self.clock, self.steps = given, given.clock, steps
        self.jobs: list[Job] = []
        self.now = 0

    def job(self, command: Command) -> Job:
        """The job that a command is about."""
        return self.jobs[command.job % len(self.jobs)]

    async def do(self, command: Command, *, look: bool = True) -> None:
        """Do one thing and compare. Fails the check with what differs."""
        self.now = await self.clock.now()
        if command.kind == "make":
            await self._make(command)
        elif not self.jobs:
            return
        elif command.kind == "time":
            await self._time(command)
        else:
            await self._request(command)
        if look:
            await self.look(self.job(command) if command.kind != "make" else self.jobs[-1], command)

    def changes(self, command: Command) -> bool:
        """Whether the text has something changed by a command, were it given now."""
        if command.kind == "time":
            return True
        return any(self._judged(command, row)[1] != row for row in self.job(command).rows)

    async def _make(self, command: Command) -> None:
        project = await self.given.project()
        free_from = 0
        if command.what == "behind another":
            before = await self.given.running_job(project)
            started = seen(await self.given.detail(before))["startedAt"]
            free_from = int(started or 0) + LONG * 1000
        name = self.given.unique("task")
        await self.given.script(project, *ROUNDS[command.what], external_id=name)
        attempts = 1 if command.what == "limited, once" else 3
        answer = await self.given.accepted(item(project, externalId=name, maxAttempts=attempts))
        ref = JobRef(job_ids(answer)[0], project, str(answer.data.get("batchId")), name)
        job = Job(ref, ROUNDS[command.what], free_from=free_from)
        self.jobs.append(job)
        await self._placed(job, submitted(ref.id, 0, attempts), self.now)

    async def _placed(self, job: Job, row: Row, earliest: int) -> None:
        """A job got its place in the queue, which is the build's to say, and starts when its time has come."""
        queued = int(seen(await self.given.detail(job.ref))["queuedAt"] or 0)
        with about("HUB-RETRY-58", step="the place of a job in the queue"):
            expect(queued >= earliest, f"queuedAt from {earliest} on", str(queued), "/data/queuedAt")
        self.now = await self.clock.now()
        if queued > self.now:
            await self.clock.advance((queued - self.now) / 1000)
            self.now = await self.clock.now()
            for one in self.jobs:
                one.rows = [later(self.steps, one, old, earliest, self.now) for old in one.rows]
        job.rows = [later(self.steps, job, row | {"queuedAt": queued}, earliest, self.now)]

    def _judged(self, command: Command, row: Row) -> tuple[int | str, Row]:
        """Answer and row as the text has them."""
        caller = ACCOUNT if command.who == "owner" else OTHER
        inputs = {self.steps.row: row, "now": self.now, "caller": caller, "path": {"jobId": row["id"]}}
        inputs["nextPlace"] = self.now
        missed = self.steps.missed("operations", TRIGGERS[command.kind], inputs)
        if missed is not None:
            return missed, row
        taken = self.steps.judge("operations", TRIGGERS[command.kind], inputs)
        return taken.answer or 0, taken.row or row

    async def _request(self, command: Command) -> None:
        job = self.job(command)
        api = self.given.api if command.who == "owner" else self.given.stranger
        call = {"cancel": api.cancel, "retry": api.retry}[command.kind](job.ref)
        answer = await call.answers()
        call.dialect.judge_code(answer)
        came: int | str | None = answer.status if answer.status < 400 else call.dialect.code_of(answer.response)
        found = [(row, *self._judged(command, row)) for row in job.rows]
        fitting = [(before, after) for before, wanted, after in found if came == wanted]
        with about(ANSWERS[command.kind]):
            wanted = [str(one) for one in dict.fromkeys(wanted for _, wanted, _ in found)]
            was = job.rows[0]["status"]
            expect(bool(fitting), [f"{one} to {command} that is {was}" for one in wanted], str(came))
        if command.kind == "retry" and any(after is not before for before, after in fitting):
            await self._again(job, [after for _, after in fitting])
            return
        job.rows = []
        for before, after in fitting:
            job.rows.append(after)
            if command.kind == "cancel" and before["status"] == "running" and after["status"] == "cancelled":
                # a build may free the project at once (HUB-CANCEL-57)
                job.rows.append(after | {"roundStartedAt": None, "silentSince": None, "round": None})

    async def _again(self, job: Job, rows: Sequence[Row]) -> None:
        now, found = self.now, []
        for row in rows:
            await self._placed(job, row, now)
            found += job.rows
        job.rows = found

    async def _time(self, command: Command) -> None:
        """Time passes: ten seconds, or to the next thing that happens to the job."""
        job = self.job(command)
        limit = self._limit(job)
        seconds = 10.0
        if command.what != "third" and limit is not None:
            seconds = (limit - self.now + {"before": -2, "at": -1, "after": 0}[command.what]) / 1000
        before = self.now
        await self.clock.advance(max(seconds, 0))
        self.now = await self.clock.now()
        for one in self.jobs:
            one.rows = [later(self.steps, one, row, before, self.now) for row in one.rows]

    def _limit(self, job: Job) -> int | None:
        """The first instant at which the job's row changes, within an hour."""
        row, low, high = job.rows[0], self.now, self.now + 3_600_000
        if later(self.steps, job, row, self.now, high) == row:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if later(self.steps, job, row, self.now, middle) == row:
                low = middle
            else:
                high = middle
        return high

    async def look(self, job: Job, command: Command) -> None:
        """Compare the job's detail with the rows that it may have, and go on with those that it shows."""
        came = seen(await self.given.detail(job.ref))
        found = []
        for row in job.rows:
            wanted = shown(self.steps, row)
            found.append(({name: value for name, value in wanted.items() if came[name] != value}, row))
        fitting = [row for wrong, row in found if not wrong]
        if not fitting:
            wrong, _ = min(found, key=lambda one: len(one[0]))
            rules = dict(FIELDS.get(command.kind, {}))
            if command.kind == "time":
                rules = rules | {name: TO_BE_NULL[name] for name in TO_BE_NULL if name in wrong and wrong[name] is None}
            rule = next((rules[name] for name in rules if name in wrong), rules.get("", ANSWERS[command.kind]))
            got = {name: came[name] for name in wrong}
            with about(rule, step=None if rule == ANSWERS[command.kind] else f"a job after {command.kind}"):
                name = next(iter(wrong)).replace(".", "/")
                expect(False, f"after {command}: {json.dumps(wrong)}", json.dumps(got), f"/data/{name}")
        job.rows = fitting
