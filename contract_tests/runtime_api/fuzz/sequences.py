"""Sequences over all operations of the Runtime API.

Each sequence starts with jobs of its own on offer, first in every poll. It never touches a job of anybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schemathesis.core import NotSet

from contract_tests.fuzz import sequences
from contract_tests.fuzz.generation import NOTHING
from contract_tests.runtime_api.fuzz.composing import Composer
from contract_tests.runtime_api.fuzz.generation import INSTANCE, SOURCE
from contract_tests.runtime_api.fuzz.situations import OFFERED, Job, make
from contract_tests.runtime_api.fuzz.trials import Trials

if TYPE_CHECKING:
    from contract_tests.fuzz.trials import Step
    from contract_tests.given import Given
    from contract_tests.reach import Reach

JOBS = 2


class Sequences(sequences.Sequences[Job]):
    """From poll to result and beyond."""

    def __init__(self, given: Given, reach: Reach, seed: int) -> None:
        super().__init__(Trials(given, reach, exact=True), SOURCE, seed)
        self.given = given

    async def subjects(self) -> list[tuple[Job, dict[str, Any]]]:
        """Jobs on offer, first in every poll."""
        self.compose = Composer(self.given.api.key, self.random)
        offered = [item for item in OFFERED if item.needs <= self.given.states.offered] or [OFFERED[0]]
        found = []
        for _ in range(JOBS):
            params = {"priority": self.given.first()}
            found.append((await make(self.given, self.random.choice(offered), **params), params))
        return found

    def step(self, operation_id: str, case: Any) -> Step[Job]:
        """A case for one of the sequence's jobs."""
        job = self._job_of(case)
        if isinstance(case.body, dict):
            self.compose.steer(operation_id, case.body, job, often=0.9)
        if "jobId" in case.path_parameters:
            case.path_parameters["jobId"] = job.ref.id
        instance = str(case.headers.get(INSTANCE) or "")
        if operation_id in ("getSnapshot", "resolveCredential") and self.random.random() < 0.9:
            instance = job.holder or instance
        instance = instance if all(31 < ord(char) < 127 for char in instance) and instance.strip() else "runtime-a"
        case.headers[INSTANCE] = instance
        body = NOTHING if isinstance(case.body, NotSet) else case.body
        return self.compose.step(operation_id, job, instance, body)

    def _job_of(self, case: Any) -> Job:
        """The job that a link named, where it is one of ours; else any of ours."""
        named = {case.path_parameters.get("jobId")}
        if isinstance(case.body, dict):
            named.add(str(case.body.get("jobId")))
        jobs = self.trial.subjects
        return next((job for job in jobs if job.ref.id in named), None) or self.random.choice(jobs)
