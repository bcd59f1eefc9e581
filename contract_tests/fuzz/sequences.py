"""Sequences over all operations: Schemathesis' state machine follows the specification's links, our transport sends."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING, Any, Generic

import hypothesis
import requests
from hypothesis.errors import Flaky
from hypothesis.errors import HypothesisException as HypothesisError
from schemathesis.core.transport import Response as Received
from schemathesis.generation.stateful import run_state_machine_as_test

import openapi
from contract_tests.fuzz.generation import described, generated, settings
from contract_tests.fuzz.trials import S, Trial, Trials

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from contract_tests.fuzz.generation import Source
    from contract_tests.fuzz.judging import Finding
    from contract_tests.fuzz.trials import Step
    from contract_tests.transport import Response

STEPS = 10
"""Requests of one sequence, at most."""


class _Over(Exception):  # noqa: N818 - no error: there is nothing more to send
    """Ends the generation: something was found, or the target is gone."""


class Sequences(ABC, Generic[S]):
    """Runs sequences from Hypothesis' thread; subjects and requests go through the check's event loop.

    Each sequence starts with subjects of its own. It never touches one of anybody else.
    """

    def __init__(self, trials: Trials[S], source: Source, seed: int) -> None:
        self.trials, self.source, self.seed = trials, source, seed
        self.loop = asyncio.get_running_loop()
        self.found: tuple[Trial[S], Finding] | None = None
        self.error: BaseException | None = None
        self.trial: Trial[S] = Trial([], [])
        self.count = 0
        self.random = Random(0)  # noqa: S311 - requests, not secrets
        operations = openapi.load(source.name).operations.values()
        self.ids = {(item.method, item.path): item.id for item in operations}

    @abstractmethod
    async def subjects(self) -> list[tuple[S, dict[str, Any]]]:
        """What a new sequence starts with, each with how it was made beyond its situation; ``random`` is new."""

    @abstractmethod
    def step(self, operation_id: str, case: Any) -> Step[S]:
        """The next request: a case of Schemathesis', for a subject of the sequence."""

    async def run(self, examples: int) -> None:
        """So many sequences. Fails the check with the smallest repetition of the first finding."""
        await generated(lambda: self._generate(examples))
        if self.error is not None:
            raise self.error
        if self.found is not None:
            raise await self.trials.explained(*self.found)

    def _generate(self, examples: int) -> None:
        session = self

        class Flow(described(self.source).as_state_machine()):  # type: ignore[misc]  # made at run time
            def setup(self) -> None:
                session._begin()

            def call(self, case: Any, **_: Any) -> Received:
                return session._call(case)

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

    def _begin(self) -> None:
        """New subjects for a new sequence."""
        if self.found or self.error:
            raise _Over
        self.count += 1
        self.random = Random(f"{self.seed}:sequence:{self.count}")  # noqa: S311 - requests, not secrets
        self.trial = Trial([], [])
        for subject, params in self._awaited(self.subjects()):
            self.trial.subjects.append(subject)
            self.trial.params[subject.id] = params

    def _call(self, case: Any) -> Received:
        """Send the next request of the sequence."""
        if self.found or self.error:
            raise _Over
        step = self.step(self.ids[case.method, case.path], case)
        self.trial.steps.append(step)
        response, finding = self._awaited(self.trials.exchange(step))
        if finding is not None:
            self.found = (self.trial, finding)
        if response is None:
            raise _Over
        return _received(step.request.method, response)

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
