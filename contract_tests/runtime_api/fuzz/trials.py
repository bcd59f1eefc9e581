"""Sends generated requests for jobs in known situations, judges the answers, repeats a failure as small as it gets."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contract_tests.checks import CheckFailed, NoAnswer, Silent
from contract_tests.reach import Reach
from contract_tests.runtime_api.fuzz.judging import Finding, Judge, code_of
from contract_tests.runtime_api.fuzz.shrinking import smaller
from contract_tests.runtime_api.fuzz.situations import Job, look, make

if TYPE_CHECKING:
    from contract_tests.given import Given
    from contract_tests.transport import Request, Response

TOGETHER = 10
"""After so many refused requests a job is looked at."""
MOST_REPEATS, MOST_SECONDS = 60, 5.0
"""How long a failure is made smaller."""
READS = ("getSnapshot", "resolveCredential")
"""Operations on a job that change nothing even where they succeed."""
AFTER = {"lockJob": "locked", "heartbeatJob": "running", "submitResult": "succeeded"}


@dataclass(frozen=True)
class Step:
    """A request; ``job`` is whom it is about. ``tolerant``: a build may be unable to keep what it sends."""

    operation_id: str
    request: Request
    job: Job | None
    tolerant: bool = False


@dataclass
class Trial:
    """What repeats a finding: jobs in their situations, then requests, the last of which shows it."""

    jobs: list[Job]
    steps: list[Step]
    params: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Parameters of a job's provider state beyond its situation's, by the job's id."""


class Trials:
    """The exchanges of one check."""

    def __init__(self, given: Given, reach: Reach, *, exact: bool, together: int = 1) -> None:
        """``together``: after so many refusals a job is looked at; the one at fault is found by repeating each."""
        self.given, self.reach, self.together = given, reach, together
        self.judge = Judge(given.api.key, exact=exact)
        self._free: set[str] = set()
        """Columns that may have changed by what was sent for other jobs: the number of logs, once some were stored."""

    async def exchange(self, step: Step) -> tuple[Response | None, Finding | None]:
        """Send one request and judge its answer; the job is brought up to date with what was seen of it."""
        try:
            response = await self.given.api.transport.send(step.request)
        except Silent:
            raise  # repeating it would wait as long again
        except NoAnswer as failure:
            return None, Finding(f"{step.operation_id} answer", failure)
        finding = self.judge.finding(step.operation_id, step.request, response, tolerant=step.tolerant)
        if finding is not None:
            return response, finding
        return response, await self._follow(step, response)

    async def _follow(self, step: Step, response: Response) -> Finding | None:
        """What the exchange did to the job, for the account of reach; a refusal or a read must have done nothing."""
        job, code = step.job, code_of(response) if response.status >= 400 else None
        move = None
        stopped = code == "JOB_CANCELLED" and job is not None and job.situation.stop_asked  # refused, and yet it moves
        changes = (response.status < 400 and step.operation_id not in READS) or stopped
        finding = None
        if step.operation_id == "submitInvocationLogs" and response.status < 400:
            self._free.add("logCount")
        if job is None or step.operation_id in ("pollJobs", "submitInvocationLogs"):
            pass
        elif changes:
            before = job.state
            job.holder = _caller(step.request) if step.operation_id in ("lockJob", "heartbeatJob") else None
            job.state = AFTER.get(step.operation_id, job.state) if response.status < 400 else job.state
            if stopped:
                job.state = "cancelled"
            elif step.operation_id == "failJob":
                job.state = str(response.json["status"])
            await look(self.given, job)
            move = f"{before} -> {job.state}"
        else:
            move = f"{job.state} -> {job.state}"
            job.refused.append(step)
            if len(job.refused) >= self.together:
                finding = await self.unchanged(job)
        self.reach.saw(step.operation_id, response.status, code, move)
        return finding

    async def unchanged(self, job: Job) -> Finding | None:
        """Look whether the job is as it was; where it is not, the request that changed it is in ``job.refused``."""
        steps, before = list(job.refused), job.row
        job.refused.clear()
        if before is None or not steps:
            return None
        if not self.judge.exact:  # that a refusal changes nothing is a decision
            await look(self.given, job)
            return None
        try:
            held = {name: value for name, value in before.items() if name not in self._free}
            await self.given.unchanged(job.ref, held)
        except CheckFailed as failure:
            await look(self.given, job)
            job.refused.extend(steps)
            return Finding(f"{steps[-1].operation_id} changed", failure)
        return None

    async def explained(self, trial: Trial, finding: Finding) -> CheckFailed:
        """The failure, repeated by as few and as small requests as a moment's trying finds.

        Its commands are those of the repetition alone; where it can't be repeated, those of all that was sent.
        """
        if finding.kind.endswith(" changed") and len(trial.steps) > 1:
            trial = await self._culprit(trial, finding)
        deadline = time.monotonic() + MOST_SECONDS
        best = trial
        for candidate in itertools.islice(smaller(best), MOST_REPEATS):
            if time.monotonic() > deadline:
                break
            found = await self.repeat(candidate.trial)
            same = found is not None and found.kind == finding.kind
            candidate.keep(same)
            if same:
                best = candidate.trial
        self.given.api.transport.mark(True)
        found = await self.repeat(best)
        if found is not None and found.kind == finding.kind:
            return found.failure
        self.given.api.transport.mark(False)
        return finding.failure

    async def _culprit(self, trial: Trial, finding: Finding) -> Trial:
        """The one request of many that were sent before the job was looked at."""
        for step in trial.steps:
            alone = Trial(trial.jobs, [step], trial.params)
            found = await self.repeat(alone)
            if found is not None and found.kind == finding.kind:
                return alone
        return trial

    async def repeat(self, trial: Trial) -> Finding | None:
        """Send the trial's requests again, for new jobs in the same situations; what the last of them shows."""
        names: dict[str, str] = {}
        jobs: dict[str, Job] = {}
        for old in trial.jobs:
            new = await make(self.given, old.situation, **trial.params.get(old.ref.id, {}))
            names |= dict(zip(old.names, new.names, strict=False))
            jobs[old.ref.id] = new
        once = Trials(self.given, Reach(self.reach.contract), exact=self.judge.exact)
        once.judge.secrets |= self.judge.secrets
        finding = None
        for step in trial.steps:
            job = jobs.get(step.job.ref.id) if step.job else None
            _, finding = await once.exchange(replace(step, request=renamed(step.request, names), job=job))
        return finding


def _caller(request: Request) -> str | None:
    body = json.loads(request.content)
    return str(body["runtimeInstanceId"]) if isinstance(body, dict) else None


def renamed(request: Request, names: dict[str, str]) -> Request:
    """The request for other jobs: their ids in the places of the old ones."""
    path, content = request.path, request.content
    for old, new in names.items():
        path = path.replace(quote(old, safe=""), quote(new, safe=""))
        content = content.replace(json.dumps(old)[1:-1].encode(), json.dumps(new)[1:-1].encode())
    return replace(request, path=path, content=content)
