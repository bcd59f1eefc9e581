"""Generated requests for jobs: what an exchange did to its job, and that a refusal did nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.checks import CheckFailed
from contract_tests.fuzz import trials
from contract_tests.fuzz.judging import Finding
from contract_tests.reach import Reach
from contract_tests.runtime_api.fuzz.judging import Judge, code_of
from contract_tests.runtime_api.fuzz.situations import Job, look, make

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.fuzz.trials import Step
    from contract_tests.given import Given
    from contract_tests.transport import Request, Response

READS = ("getSnapshot", "resolveCredential")
"""Operations on a job that change nothing even where they succeed."""
AFTER = {"lockJob": "locked", "heartbeatJob": "running", "submitResult": "succeeded"}


class Trials(trials.Trials[Job]):
    """The exchanges of one check."""

    judge: Judge

    def __init__(self, given: Given, reach: Reach, *, exact: bool, together: int = 1) -> None:
        super().__init__(given.api.transport, Judge(given.api.key, exact=exact), reach, together=together)
        self.given = given
        self._free: set[str] = set()
        """Columns that may have changed by what was sent for other jobs: the number of logs, once some were stored."""

    async def follow(self, step: Step[Job], response: Response) -> Finding | None:
        """What the exchange did to the job, for the account of reach; a refusal or a read must have done nothing."""
        job, code = step.subject, code_of(response) if response.status >= 400 else None
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

    async def another(self, job: Job, params: Mapping[str, Any]) -> Job:
        """A new job in the same situation."""
        return await make(self.given, job.situation, **params)

    def once(self) -> Trials:
        """The same for one repetition."""
        once = Trials(self.given, Reach(self.reach.contract), exact=self.judge.exact)
        once.judge.secrets |= self.judge.secrets
        return once


def _caller(request: Request) -> str | None:
    body = json.loads(request.content)
    return str(body["runtimeInstanceId"]) if isinstance(body, dict) else None
