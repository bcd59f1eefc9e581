"""Sequences over all operations: Schemathesis' state machine follows the specification's links, our transport sends.

Each sequence starts with jobs of its own on offer, first in every poll. It never touches a job of anybody else.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import hypothesis
import requests
from hypothesis.errors import Flaky
from hypothesis.errors import HypothesisException as HypothesisError
from schemathesis.core import NotSet
from schemathesis.core.transport import Response as Received
from schemathesis.generation.stateful import run_state_machine_as_test

import openapi
from contract_tests.runtime_api.fuzz.composing import Composer
from contract_tests.runtime_api.fuzz.generation import INSTANCE, NOTHING, described, generated, settings
from contract_tests.runtime_api.fuzz.situations import OFFERED, Job, make
from contract_tests.runtime_api.fuzz.trials import Trial, Trials

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from contract_tests.given import Given
    from contract_tests.reach import Reach
    from contract_tests.runtime_api.fuzz.judging import Finding
    from contract_tests.transport import Response

STEPS = 10
JOBS = 2


class _Over(Exception):  # noqa: N818 - no error: there is nothing more to send
    """Ends the generation: something was found, or the target is gone."""


class Sequences:
    """Runs sequences from Hypothesis' thread; jobs and requests go through the check's event loop."""

    def __init__(self, given: Given, reach: Reach, seed: int) -> None:
        self.given, self.seed = given, seed
        self.trials = Trials(given, reach, exact=True)
        self.loop = asyncio.get_running_loop()
        self.found: tuple[Trial, Finding] | None = None
        self.error: BaseException | None = None
        self.trial = Trial([], [])
        self.count = 0
        self.random = Random(0)  # noqa: S311 - requests, not secrets
        operations = openapi.load("runtime-api").operations.values()
        self.ids = {(item.method, item.path): item.id for item in operations}

    async def run(self, examples: int) -> None:
        """So many sequences. Fails the check with the smallest repetition of the first finding."""
        await generated(lambda: self._generate(examples))
        if self.error is not None:
            raise self.error
        if self.found is not None:
            raise await self.trials.explained(*self.found)

    def _generate(self, examples: int) -> None:
        session = self

        class Flow(described().as_state_machine()):  # type: ignore[misc]  # made at run time
            def setup(self) -> None:
                session.begin()

            def call(self, case: Any, **_: Any) -> Received:
                return session.call(case)

            def validate_response(self, *_: Any, **__: Any) -> None:
                """Judged already."""

        try:
            run_state_machine_as_test(
                hypothesis.seed(self.seed)(Flow), settings=settings(examples, stateful_step_count=STEPS)
            )
        except _Over:
            return
        except (Flaky, HypothesisError):
            # The choices hang on what the build answers; one that answers otherwise ends the generation, no more.
            return

    def begin(self) -> None:
        """New jobs for a new sequence."""
        if self.found or self.error:
            raise _Over
        self.count += 1
        self.random = Random(f"{self.seed}:sequence:{self.count}")  # noqa: S311 - requests, not secrets
        self.compose = Composer(self.given.api.key, self.random)
        offered = [item for item in OFFERED if item.needs <= self.given.states.offered] or [OFFERED[0]]
        self.trial = Trial([], [])
        for _ in range(JOBS):
            params = {"priority": self.given.first()}
            job = self._awaited(make(self.given, self.random.choice(offered), **params))
            self.trial.jobs.append(job)
            self.trial.params[job.ref.id] = params

    def call(self, case: Any) -> Received:
        """Send the next request of the sequence."""
        if self.found or self.error:
            raise _Over
        operation_id = self.ids[case.method, case.path]
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
        step = self.compose.step(operation_id, job, instance, body)
        self.trial.steps.append(step)
        response, finding = self._awaited(self.trials.exchange(step))
        if finding is not None:
            self.found = (self.trial, finding)
        if response is None:
            raise _Over
        return _received(step.request.method, response)

    def _job_of(self, case: Any) -> Job:
        """The job that a link named, where it is one of ours; else any of ours."""
        named = {case.path_parameters.get("jobId")}
        if isinstance(case.body, dict):
            named.add(str(case.body.get("jobId")))
        jobs = self.trial.jobs
        return next((job for job in jobs if job.ref.id in named), None) or self.random.choice(jobs)

    def _awaited(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop).result()
        except BaseException as error:
            self.error = error
            raise _Over from error


def _received(method: str, response: Response) -> Received:
    headers = {name: [value] for name, value in response.headers.items()}
    prepared = requests.Request(method, "http://target/").prepare()
    return Received(
        response.status, headers, response.content, prepared, response.received - response.sent, verify=False
    )
