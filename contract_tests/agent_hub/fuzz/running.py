"""Checks of one operation, or of one kind of fault: cases, each for a subject in the next situation."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from contract_tests.agent_hub.fuzz import generation
from contract_tests.agent_hub.fuzz.composing import FILTERS, IDS, KEYS, OF_BATCHES, OF_JOBS, Composer
from contract_tests.agent_hub.fuzz.situations import (
    BATCHES,
    FREE,
    JOBS,
    PLACES,
    Situation,
    Stock,
    Subject,
)
from contract_tests.agent_hub.fuzz.trials import Trials
from contract_tests.checks import expect
from contract_tests.fuzz import trials
from contract_tests.fuzz.awkward import HARD_TEXTS, HARD_VALUES, PLAIN_TEXTS, PLAIN_VALUES
from contract_tests.fuzz.generation import cases
from contract_tests.fuzz.trials import TOGETHER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.fuzz.generation import Case
    from contract_tests.fuzz.trials import Step
    from contract_tests.reach import Reach

LEAST_INVALID = 4
AWKWARD = (*PLAIN_TEXTS, *HARD_TEXTS[:2], *PLAIN_VALUES, *HARD_VALUES)
SITUATIONS = {**dict.fromkeys(OF_JOBS, JOBS), **dict.fromkeys(OF_BATCHES, BATCHES)}


class Run(trials.Run[Subject]):
    """Sends the cases of one check."""

    def __init__(
        self,
        given: HubGiven,
        reach: Reach,
        seed: int,
        name: str,
        situations: Sequence[Situation],
        *,
        exact: bool,
        together: int = 1,
    ) -> None:
        """``together`` of more than 1: requests are to be refused, and their subjects are looked at after so many."""
        self.given, self.random = given, Random(f"{seed}:{name}:{exact}")  # noqa: S311 - requests, not secrets
        stock = Stock(given, situations, accepting=together == 1)
        sends = Trials(given, reach, exact=exact, together=together)
        super().__init__(sends, stock, self.random.randrange(len(stock.situations) or 1))
        self.compose = Composer(given, self.random, exact=exact)

    async def open(self) -> None:
        """Skips the check where the build offers no provider state for its situations."""
        if not self.stock.situations:
            await self.given.running_job()  # says which state is not offered

    def needed(self, step: Step[Subject]) -> list[Step[Subject]]:
        """A repeated submission is nothing without the first one."""
        key = step.request.headers.get("idempotency-key")
        first = step.subject.sent.get(key) if step.subject and key is not None else None
        return [step] if first is None or first is step else [first, step]


async def submissions(given: HubGiven, reach: Reach, seed: int, examples: int, *, exact: bool) -> None:
    """Valid submissions, at places of every kind: boundaries, random ones, awkward ones, and some sent again."""
    run = Run(given, reach, seed, "submitJobs", PLACES, exact=exact)
    await run.open()
    made = await generation.submissions(seed, examples, valid=True)
    run.random.shuffle(made)
    for case in made[: len(PLACES)]:  # each place once
        await run.send(run.compose.submission(case, await run.subject()))
    run.stock = Stock(given, PLACES[:2], accepting=True)  # where they succeed
    statuses = {await _submit(run, case) for case in made}
    single = [case for case in made if len(case.body["items"]) == 1]
    for value in AWKWARD:
        await run.send(run.compose.awkward(run.random.choice(single), await run.subject(), value))
    if exact:
        for key in KEYS:
            step = run.compose.keyed(run.random.choice(made), await run.subject(), key)
            await run.send(step)
            await run.send(run.compose.again(step, changed=False))
        await run.send(run.compose.at_the_limit(made[0], await run.subject()))
        await run.send(run.compose.large(made[0], await run.subject()))
    await run.close()
    expect(202 in statuses or not exact, ["202", "among the answers"], f"only {sorted(statuses)}")


async def _submit(run: Run, case: Case) -> int:
    """One submission; where it has a key, now and then the same again, or another one under its key."""
    step = run.compose.submission(case, await run.subject())
    status = await run.send(step)
    if "idempotency-key" in step.request.headers and status == 202 and run.random.random() < 0.5:
        for changed in (False, True):
            await run.send(run.compose.again(step, changed=changed))
    return status


async def lists(given: HubGiven, reach: Reach, seed: int, examples: int, *, exact: bool) -> None:
    """Valid lists: every filter, limit and cursor, where there is something to list."""
    run = Run(given, reach, seed, "listJobs", BATCHES[:1], exact=exact)
    await run.open()
    subject = await run.subject()
    entries = (await given.api.jobs(batchId=subject.batch).succeeds(200)).entries
    cursor = str(entries[len(entries) // 2].get("queuedAt")) if entries else "2026-11-09T10:05:00.000Z"
    for case in await cases(generation.SOURCE, "listJobs", seed, examples, valid=True):
        await run.send(run.compose.listing(case, subject, cursor))
    for name in ("externalId", "batchId", "projectId", "nodeId"):
        for value in FILTERS:
            await run.send(run.compose.step("listJobs", subject, query={name: value}))
    if exact:
        await run.send(run.compose.step("listJobs", subject, query={"batchId": subject.batch, "unknown": "1"}))


async def by_id(given: HubGiven, reach: Reach, seed: int, examples: int, operation_id: str, *, exact: bool) -> None:
    """Requests for jobs or batches in every situation; where they are ``exact``, for some that do not exist, too."""
    run = Run(given, reach, seed, operation_id, SITUATIONS[operation_id], exact=exact)
    await run.open()
    made = await cases(generation.SOURCE, operation_id, seed, examples, valid=True)
    for number in range(max(len(run.stock.situations), len(made))):
        await run.send(run.compose.by_id(made[number % len(made)], await run.subject()))
    await run.close()


async def plain(given: HubGiven, reach: Reach, seed: int, operation_id: str, *, exact: bool) -> None:
    """A request that names nothing; where a project can be made, there is something to tell."""
    run = Run(given, reach, seed, operation_id, [FREE], exact=exact)
    subject = await run.subject() if run.stock.situations else None
    await run.send(run.compose.step(operation_id, subject))


async def answers_of_all(given: HubGiven, reach: Reach, seed: int) -> None:
    """One request of each operation that succeeds, and one that is refused."""
    for operation_id in (*OF_JOBS, *OF_BATCHES):
        run = Run(given, reach, seed, operation_id, SITUATIONS[operation_id][-1:], exact=True)
        await run.open()
        case = (await cases(generation.SOURCE, operation_id, seed, 0, valid=True))[0]
        subject = await run.subject()
        await run.send(run.compose.by_id(case, subject))
        await run.send(run.compose.by_id(case, subject, unknown=""))
    for operation_id in ("listProjects", "getOverview", "listJobs"):
        await plain(given, reach, seed, operation_id, exact=True)
    run = Run(given, reach, seed, "submitJobs", PLACES, exact=True)
    case = (await generation.submissions(seed, 0, valid=True))[0]
    for _ in PLACES:
        await run.send(run.compose.submission(case, await run.subject()))


async def unknown(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Every operation on a job or a batch, with ids that nobody has."""
    for operation_id in (*OF_JOBS, *OF_BATCHES):
        run = Run(given, reach, seed, operation_id, SITUATIONS[operation_id][:1], exact=True)
        await run.open()
        subject = await run.subject()
        made = await cases(generation.SOURCE, operation_id, seed, examples, valid=True)
        named = [*IDS, *(unquote(next(iter(case.path.values()), ""), errors="replace") for case in made)]
        for number, id_ in enumerate(named):
            await run.send(run.compose.by_id(made[number % len(made)], subject, unknown=id_))
        await run.close()


async def invalid_submissions(given: HubGiven, reach: Reach, seed: int, examples: int, *, exact: bool) -> None:
    """Everything that is forbidden in a submission's body, where it would else succeed."""
    run, good = await _refusing(given, reach, seed, "items", exact=exact)
    made = [case for case in await generation.submissions(seed, examples, valid=False) if case.part == "body"]
    steps = [lambda subject, case=case: [run.compose.invalid(case, subject, None)] for case in made]
    steps += [lambda subject, plain=plain: run.compose.beyond_schema(plain, subject) for plain in good]
    sent = sum([await _refused(run, step) for step in steps])
    await run.close()
    expect(sent >= LEAST_INVALID, f"at least {LEAST_INVALID} invalid requests were made", str(sent))


async def invalid_keys(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Every way in which an ``Idempotency-Key`` may be ill-formed."""
    run, good = await _refusing(given, reach, seed, "keys", exact=True)
    made = [case for case in await generation.submissions(seed, examples, valid=False) if case.part == "header"]
    sent = sum(
        [await _refused(run, lambda subject, c=case: [run.compose.invalid(c, subject, good[0])]) for case in made]
    )
    sent += await _refused(run, lambda subject: run.compose.with_keys(subject, good[0]))
    await run.close()
    expect(sent >= LEAST_INVALID, f"at least {LEAST_INVALID} invalid requests were made", str(sent))


async def broken_submissions(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Submissions that are no JSON, or not said to be."""
    run, good = await _refusing(given, reach, seed, "broken", exact=True)
    for plain_body in good:
        await _refused(run, lambda subject, body=plain_body: run.compose.broken(subject, body, 1 + examples // 2))
    await run.close()


async def invalid_lists(given: HubGiven, reach: Reach, seed: int, examples: int) -> None:
    """Every way in which a parameter of a list may be ill-formed."""
    run, sent = Run(given, reach, seed, "lists", (), exact=True), 0
    for case in await cases(generation.SOURCE, "listJobs", seed, examples, valid=False):
        step = run.compose.step("listJobs", None, query=case.query)
        sent += await _send_invalid(run, [step])
    expect(sent >= LEAST_INVALID, f"at least {LEAST_INVALID} invalid requests were made", str(sent))


async def without_key(given: HubGiven, reach: Reach, seed: int, *, exact: bool) -> None:
    """Every operation without a key, and with one that is wrong, where it would else succeed."""
    for operation_id in (*OF_JOBS, *OF_BATCHES):
        run = Run(given, reach, seed, operation_id, SITUATIONS[operation_id][:1], exact=exact)
        await run.open()
        subject = await run.subject()
        id_ = subject.batch if operation_id in OF_BATCHES else str(subject.job)
        for token in (None, f"{given.api.token}x"):
            await run.send(run.compose.step(operation_id, subject, id_=id_, token=token))
        await run.close()
    run = Run(given, reach, seed, "plain", [FREE], exact=exact, together=TOGETHER)
    case = (await generation.submissions(seed, 0, valid=True))[0]
    for token in (None, f"{given.api.token}x"):
        await run.send(run.compose.step("submitJobs", await run.subject(), body=case.body, token=token))
        for operation_id in ("listJobs", "listProjects", "getOverview"):
            await run.send(run.compose.step(operation_id, None, token=token))
    await run.close()


async def _refusing(
    given: HubGiven, reach: Reach, seed: int, name: str, *, exact: bool
) -> tuple[Run, list[dict[str, Any]]]:
    """A run at a place where valid submissions succeed, and a valid body of each kind with everything in it."""
    run = Run(given, reach, seed, name, [FREE], exact=exact, together=TOGETHER)
    await run.open()
    good = []
    for source in generation.OF_KIND.values():
        made = await cases(source, "submitJobs", seed, 0, valid=True)
        bodies = [case.body for case in made if len(case.body["items"]) == 1]
        good.append(max(bodies, key=lambda body: len(body["items"][0])))
    return run, good


async def _refused(run: Run, make: Any) -> int:
    return await _send_invalid(run, make(await run.subject()))


async def _send_invalid(run: Run, steps: list[Step[Subject]]) -> int:
    """Send those requests that are invalid after all, by the seed alone where the run is not exact."""
    judge, sent = run.trials.judge, 0
    for step in steps:
        expected = judge.form(step.operation_id, step.request)  # type: ignore[attr-defined]
        seeds = expected.rules and all(judge.is_seeds(rule) for rule in expected.rules)  # type: ignore[attr-defined]
        if expected.statuses is not None and (judge.exact or seeds):
            await run.send(step)
            sent += 1
    return sent
