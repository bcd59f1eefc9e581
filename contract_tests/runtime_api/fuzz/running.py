"""A check of one operation: its cases, each for a job in the next situation, and the first finding explained."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from contract_tests.checks import expect
from contract_tests.runtime_api.fuzz.composing import VERSIONS, Composer, awkward_values
from contract_tests.runtime_api.fuzz.generation import NOTHING, cases
from contract_tests.runtime_api.fuzz.situations import OF, READY, STORED_HASH, Stock
from contract_tests.runtime_api.fuzz.trials import TOGETHER, Trial, Trials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.given import Given
    from contract_tests.reach import Reach
    from contract_tests.runtime_api.fuzz.situations import Job
    from contract_tests.runtime_api.fuzz.trials import Step

LEAST_INVALID = 4
CERTAIN: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "pollJobs": ({"capabilities": {"supportedOutputSchemaVersions": ["no_such_version"]}}, {}),
    "submitResult": ({"outputHash": STORED_HASH}, {"outputHash": "sha256-other"}, {"schemaVersion": VERSIONS[1]}),
    "failJob": ({"retryable": True}, {"retryable": False}),
}
"""What is certainly said once in every situation: what decides, and would else be left to chance."""


class Run:
    """Sends the cases of one operation."""

    def __init__(self, given: Given, reach: Reach, seed: int, operation_id: str, *, valid: bool, exact: bool) -> None:
        self.given, self.operation_id, self.seed = given, operation_id, seed
        self.random = Random(f"{seed}:{operation_id}:{valid}")  # noqa: S311 - requests, not secrets
        self.trials = Trials(given, reach, exact=exact, together=1 if valid else TOGETHER)
        self.stock = Stock(given, (OF if valid else READY)[operation_id])
        self.compose = Composer(given.api.key, self.random)
        self._turn = self.random.randrange(len(self.stock.situations) or 1)

    async def open(self) -> None:
        """Prepare jobs. Skips the check where the build offers no provider state for them."""
        if not self.stock.situations:
            await self.given.job()  # says which state is not offered
        await self.stock.open()

    async def job(self) -> Job:
        """A job in the next situation."""
        while True:
            situation = self.stock.situations[self._turn % len(self.stock.situations)]
            self._turn += 1
            job = await self.stock.job(situation)
            if job is not None:
                return job

    async def send(self, step: Step) -> int:
        """Send a request and judge its answer; its status. Fails the check with the smallest repetition."""
        job = step.job
        before = (job.state, job.row) if job else None
        response, finding = await self.trials.exchange(step)
        if finding is not None and job is not None:
            steps = [*job.refused] if finding.kind.endswith(" changed") else [step]
            raise await self.trials.explained(Trial([job], steps), finding)
        if job is not None and (before != (job.state, job.row)):
            self.stock.used(job)
        return response.status if response else 0

    async def close(self) -> None:
        """Look once more at the jobs whose requests were refused."""
        for job in self.stock.waiting():
            finding = await self.trials.unchanged(job)
            if finding is not None:
                raise await self.trials.explained(Trial([job], [*job.refused]), finding)


async def valid(given: Given, reach: Reach, seed: int, examples: int, operation_id: str, *, exact: bool) -> None:
    """Boundaries, random cases and awkward ones of an operation, for jobs in every situation."""
    run = Run(given, reach, seed, operation_id, valid=True, exact=exact)
    await run.open()
    made = await cases(operation_id, seed, examples, valid=True)
    run.random.shuffle(made)
    statuses: set[int] = set()
    for fixed in CERTAIN.get(operation_id, ({}, {})):  # every situation first meets the Runtime whose job it is
        for case in made[: len(run.stock.situations)]:
            statuses.add(await run.send(run.compose.valid(case, await run.job(), 1, **fixed)))
    for case in made:
        statuses.add(await run.send(run.compose.valid(case, await run.job())))
    if operation_id not in ("pollJobs", "submitInvocationLogs"):
        await run.send(run.compose.unknown(made[0], await run.job()))
    plain = next((case for case in made if isinstance(case.body, dict)), None)
    if plain is not None:
        run.stock = Stock(given, READY[operation_id])  # where they are not refused for another reason
        for value in awkward_values(operation_id):
            await run.send(run.compose.awkward(run.random.choice(made), await run.job(), value))
        await run.send(run.compose.large(plain, await run.job()))
    await run.close()
    successes = [str(status) for status in run.trials.judge.of(operation_id).operation.statuses if status < 400]
    expect(any(status < 400 for status in statuses), [*successes, "among the answers"], f"only {sorted(statuses)}")


async def invalid(given: Given, reach: Reach, seed: int, examples: int, operation_id: str) -> None:
    """Everything that the specification forbids in a request, one thing at a time, where it would else succeed."""
    run = Run(given, reach, seed, operation_id, valid=False, exact=True)
    await run.open()
    good = await cases(operation_id, seed, 0, valid=True)
    plain: Any = next((case.body for case in good if isinstance(case.body, dict)), NOTHING)
    made = await cases(operation_id, seed, examples, valid=False)
    sent = 0
    for case in made:
        sent += await _send_invalid(run, lambda job, case=case: [run.compose.invalid(case, job, plain)])
    sent += await _send_invalid(run, lambda job: run.compose.broken(operation_id, job, plain, 2 + examples))
    await run.close()
    expect(sent >= LEAST_INVALID, f"at least {LEAST_INVALID} invalid requests were made", str(sent))


async def _send_invalid(run: Run, make: Any) -> int:
    """Send those requests that are invalid after all: a mutation need not survive what the wire can carry."""
    job = await run.job()
    described = run.trials.judge.of(run.operation_id)
    steps = [step for step in make(job) if described.expects(step.request, run.given.api.key).statuses is not None]
    for step in steps:
        await run.send(step)
    return len(steps)
