"""A check of one operation: its cases, each for a job in the next situation, and the first finding explained."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from contract_tests.checks import expect
from contract_tests.fuzz import trials
from contract_tests.fuzz.generation import NOTHING, cases
from contract_tests.fuzz.trials import TOGETHER
from contract_tests.runtime_api.fuzz.composing import VERSIONS, Composer, awkward_values
from contract_tests.runtime_api.fuzz.generation import SOURCE
from contract_tests.runtime_api.fuzz.situations import OF, READY, STORED_HASH, Job, Stock
from contract_tests.runtime_api.fuzz.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contract_tests.given import Given
    from contract_tests.reach import Reach

LEAST_INVALID = 4
CERTAIN: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "pollJobs": ({"capabilities": {"supportedOutputSchemaVersions": ["no_such_version"]}}, {}),
    "submitResult": ({"outputHash": STORED_HASH}, {"outputHash": "sha256-other"}, {"schemaVersion": VERSIONS[1]}),
    "failJob": ({"retryable": True}, {"retryable": False}),
}
"""What is certainly said once in every situation: what decides, and would else be left to chance."""


class Run(trials.Run[Job]):
    """Sends the cases of one operation."""

    def __init__(self, given: Given, reach: Reach, seed: int, operation_id: str, *, valid: bool, exact: bool) -> None:
        self.given, self.operation_id, self.seed = given, operation_id, seed
        self.random = Random(f"{seed}:{operation_id}:{valid}")  # noqa: S311 - requests, not secrets
        sends = Trials(given, reach, exact=exact, together=1 if valid else TOGETHER)
        stock = Stock(given, (OF if valid else READY)[operation_id])
        super().__init__(sends, stock, self.random.randrange(len(stock.situations) or 1))
        self.stock: Stock = stock
        self.compose = Composer(given.api.key, self.random)

    async def open(self) -> None:
        """Prepare jobs. Skips the check where the build offers no provider state for them."""
        if not self.stock.situations:
            await self.given.job()  # says which state is not offered
        await self.stock.open()


async def valid(given: Given, reach: Reach, seed: int, examples: int, operation_id: str, *, exact: bool) -> None:
    """Boundaries, random cases and awkward ones of an operation, for jobs in every situation."""
    run = Run(given, reach, seed, operation_id, valid=True, exact=exact)
    await run.open()
    made = await cases(SOURCE, operation_id, seed, examples, valid=True)
    run.random.shuffle(made)
    statuses: set[int] = set()
    for fixed in CERTAIN.get(operation_id, ({}, {})):  # every situation first meets the Runtime whose job it is
        for case in made[: len(run.stock.situations)]:
            statuses.add(await run.send(run.compose.valid(case, await run.subject(), 1, **fixed)))
    for case in made:
        statuses.add(await run.send(run.compose.valid(case, await run.subject())))
    if operation_id not in ("pollJobs", "submitInvocationLogs"):
        await run.send(run.compose.unknown(made[0], await run.subject()))
    plain = next((case for case in made if isinstance(case.body, dict)), None)
    if plain is not None:
        run.stock = Stock(given, READY[operation_id])  # where they are not refused for another reason
        for value in awkward_values(operation_id):
            await run.send(run.compose.awkward(run.random.choice(made), await run.subject(), value))
        await run.send(run.compose.large(plain, await run.subject()))
    await run.close()
    successes = [str(status) for status in run.trials.judge.of(operation_id).operation.statuses if status < 400]
    expect(any(status < 400 for status in statuses), [*successes, "among the answers"], f"only {sorted(statuses)}")


async def invalid(given: Given, reach: Reach, seed: int, examples: int, operation_id: str) -> None:
    """Everything that the specification forbids in a request, one thing at a time, where it would else succeed."""
    run = Run(given, reach, seed, operation_id, valid=False, exact=True)
    await run.open()
    good = await cases(SOURCE, operation_id, seed, 0, valid=True)
    plain: Any = next((case.body for case in good if isinstance(case.body, dict)), NOTHING)
    made = await cases(SOURCE, operation_id, seed, examples, valid=False)
    sent = 0
    for case in made:
        sent += await _send_invalid(run, lambda job, case=case: [run.compose.invalid(case, job, plain)])
    sent += await _send_invalid(run, lambda job: run.compose.broken(operation_id, job, plain, 2 + examples))
    await run.close()
    expect(sent >= LEAST_INVALID, f"at least {LEAST_INVALID} invalid requests were made", str(sent))


async def _send_invalid(run: Run, make: Any) -> int:
    """Send those requests that are invalid after all: a mutation need not survive what the wire can carry."""
    job = await run.subject()
    described = run.trials.judge.of(run.operation_id)
    steps = [step for step in make(job) if described.expects(step.request, run.given.api.key).statuses is not None]
    for step in steps:
        await run.send(step)
    return len(steps)
