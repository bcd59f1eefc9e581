"""What a check starts from: jobs in the state it needs, and time that passes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from contract_tests.checks import CheckFailed, about, expect
from contract_tests.client import ANALYSES, Answer, JobRef, RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from random import Random

    from contract_tests.clock import Clock
    from contract_tests.transport import ProviderStates

STATES = ("pending", "locked", "running", "succeeded", "failed", "cancelled")
"""The states in which a job can stay."""
FINAL = ("succeeded", "failed", "cancelled")
INSTANTS = ("lockedAt", "lockUntil", "startedAt", "finishedAt", "createdAt", "updatedAt")
POLL_LIMIT = 50
OTHER_SCHEMA = "quiz_output_v1"
"""A version that the API supports and no analysis has: a list that names it is not refused and lists nothing more."""


@dataclass(frozen=True)
class Timing:
    """The target's timing, seconds: the seeds' numbers unless ``--timing`` says otherwise."""

    lock: float = 60
    timeout: float = 120
    sweep: float = 5
    heartbeat: float = 15


@dataclass
class Given:
    """Puts jobs where a check needs them. Names are unique within a run and the same for the same ``--seed``."""

    api: RuntimeApi
    states: ProviderStates
    clock: Clock
    timing: Timing
    random: Random
    firsts: ClassVar[int] = -1_000_000
    _made: int = field(default=0)

    def unique(self, what: str) -> str:
        """A name that nobody else uses."""
        self._made += 1
        return f"{what}-{self.random.getrandbits(40):010x}-{self._made}"

    async def job(self, **params: Any) -> JobRef:
        """A pending job of a user of its own, made through the application's own path."""
        values = await self.states.set_up("job", {"userId": self.unique("user"), **params})
        return JobRef(values["jobId"], values["userId"], values.get("snapshotId"))

    def first(self) -> int:
        """A priority that is listed before the jobs that were made before, of this check or another."""
        Given.firsts -= 1
        return Given.firsts

    async def listed_job(self, **params: Any) -> JobRef:
        """A pending job that polls can find however many others wait: by an output schema of its own."""
        schema = self.unique("schema")
        return replace(await self.job(outputSchemaVersion=schema, **params), schema=schema)

    async def locks(self, job: JobRef, *, by: str = "runtime-a") -> None:
        """``by`` locks a pending job."""
        with about("RT-LOCK-03", step="locking a pending job"):
            await self.api.lock(job, by=by).succeeds()

    async def starts(self, job: JobRef, *, by: str = "runtime-a") -> None:
        """``by``, which holds the lock, heartbeats for the first time."""
        with about("RT-HB-05", step="the holder's first heartbeat"):
            await self.api.heartbeat(job, by=by).succeeds()

    async def completes(self, job: JobRef, *, by: str = "runtime-a", **told: Any) -> None:
        """``by``, which holds the lock, submits a result; ``told`` as in ``api.result``."""
        with about("RT-RES-13", step="the holder's result"):
            await self.api.result(job, by=by, **told).succeeds(201)

    async def fails(self, job: JobRef, *, by: str = "runtime-a", **told: Any) -> Answer:
        """``by``, which holds the lock, submits a failure; ``told`` as in ``api.fail``."""
        what = "failure" if told.get("retryable", True) else "final failure"
        with about("RT-FAIL-10", step=f"the holder's {what}"):
            return await self.api.fail(job, by=by, **told).succeeds()

    async def locked_job(self, by: str = "runtime-a", **params: Any) -> JobRef:
        """A job that ``by`` has locked."""
        job = await self.job(**params)
        await self.locks(job, by=by)
        return job

    async def running_job(self, by: str = "runtime-a", **params: Any) -> JobRef:
        """A job that ``by`` has locked and heartbeated once."""
        job = await self.locked_job(by, **params)
        await self.starts(job, by=by)
        return job

    async def cancelled_job(self, **params: Any) -> JobRef:
        """A job that was cancelled while it was pending."""
        job = await self.job(**params)
        await self.states.set_up("cancel-job", {"jobId": job.id})
        return job

    async def succeeded_job(self, by: str = "runtime-a", **params: Any) -> JobRef:
        """A job whose result ``by`` has submitted, with the hash and the attempt that ``api.result`` sends."""
        job = await self.running_job(by, **params)
        schema = params.get("outputSchemaVersion", "analysis_output_v1")
        await self.completes(job, by=by, schema=schema)
        return job

    async def failed_job(self, by: str = "runtime-a", **params: Any) -> JobRef:
        """A job that ``by`` has failed for good."""
        job = await self.running_job(by, **params)
        answer = await self.fails(job, by=by, retryable=False)
        status = answer.json.get("status", "failed") if answer.response.content else "failed"
        with about("RT-FAIL-08", step="a failure that is not retryable"):
            expect(status != "pending", "a job that failed for good", "it is pending again", "/status")
        return job

    async def lost_job(self, **params: Any) -> JobRef:
        """A job whose only attempt lapsed: failed, as soon as it is swept."""
        job = await self.locked_job(maxRetryCount=0, **params)
        await self.lapse()
        return job

    async def in_state(self, state: str, by: str = "runtime-a", **params: Any) -> JobRef:
        """A job in one of the states in which a job can stay; ``by`` brought it there."""
        match state:
            case "pending":
                return await self.job(**params)
            case "cancelled":
                return await self.cancelled_job(**params)
        make = {
            "locked": self.locked_job,
            "running": self.running_job,
            "succeeded": self.succeeded_job,
            "failed": self.failed_job,
        }
        return await make[state](by, **params)

    async def revoke_ai_consent(self, user_id: str) -> None:
        """The user switches AI off."""
        await self.states.set_up("revoke-ai-consent", {"userId": user_id})

    async def inspect(self, job: JobRef) -> dict[str, Any]:
        """Every column of a job, instants as epoch milliseconds."""
        row = await self.states.set_up("inspect-job", {"jobId": job.id})
        return {name: epoch(value) if name in INSTANTS else value for name, value in row.items()}

    async def instant(self, job: JobRef, column: str) -> int:
        """An instant of a job, epoch milliseconds. Fails the check where it is null or not there."""
        value: Any = (await self.inspect(job)).get(column)
        expect(isinstance(value, int), f"{column}, an instant", str(value), f"/{column}")
        return int(value)

    async def unchanged(self, job: JobRef, before: dict[str, Any]) -> None:
        """Fail the check where a column of the job is another than ``before``."""
        after = await self.inspect(job)
        changed = [name for name in before if after.get(name) != before[name]]
        shown = {name: (before[name], after.get(name)) for name in changed}
        expect(
            not changed, "nothing changed", f"changed (before, after): {shown}", f"/{changed[0]}" if changed else None
        )

    async def lapse(self) -> None:
        """Let a lock that was just taken or extended lapse, and be swept.

        Where that costs nothing, more than by a little: how long a lock lasts has checks of its own.
        """
        await self.clock.advance(self.timing.lock + (self.early() if self.clock.advances else 2 * self.clock.margin))

    def early(self) -> float:
        """Seconds before a limit at which it has certainly not passed: a twentieth of the lock, or the margin."""
        return max(self.timing.lock / 20, 2 * self.clock.margin)

    async def settles(self, job: JobRef, *, shows: Sequence[str] = ()) -> None:
        """Wait until a build's sweeper is done with a job that lost an attempt, where its state can be seen.

        ``shows``: the rules of the check that it breaks where that never comes.
        """
        if "inspect-job" not in self.states.offered:
            await asyncio.sleep(0 if self.clock.stands else self.clock.grace)
            return

        statuses: list[Any] = []

        async def settled() -> bool:
            statuses.append((await self.inspect(job)).get("status"))
            return statuses[-1] not in ("locked", "running", "expired")

        def instead() -> str:
            return f"it is {statuses[-1]}, {self.clock.grace:g} s after the limit"

        try:
            await self._within(self.clock.grace, settled, "the job leaves `expired` by itself", instead)
        except CheckFailed:
            stuck = ("RT-SM-50",) if statuses and statuses[-1] == "expired" else ()
            with about(*shows, *stuck) if shows else about("RT-TIME-04", *stuck, step="giving up a lapsed lock"):
                raise

    async def becomes(self, job: JobRef, status: str) -> dict[str, Any]:
        """Fail the check unless the job has that status within the sweep; its columns."""
        rows: list[dict[str, Any]] = []

        async def there() -> bool:
            rows.append(await self.inspect(job))
            return rows[-1].get("status") == status

        await self._within(self.clock.grace, there, f"status {status}", lambda: str(rows[-1].get("status")))
        return rows[-1]

    async def offered(self, job: JobRef, *, by: str = "runtime-probe") -> bool:
        """Whether a poll lists a job of :meth:`listed_job`."""
        types = ANALYSES[:1]
        versions = [job.schema, OTHER_SCHEMA]
        entries = await self.polled(by=by, types=types, capabilities={"supportedOutputSchemaVersions": versions})
        others = {entry.get("outputSchemaVersion") for entry in entries} - set(versions)
        with about("RT-POLL-14", step="filtering a poll by output schemas"):
            expect(not others, f"only jobs of the output schemas {versions}", f"jobs of {others}", "/jobs")
        return job.id in ids_of(entries)

    async def polled(self, *, by: str = "runtime-probe", types: Sequence[str], **fields: Any) -> list[dict[str, Any]]:
        """The entries of a poll with the largest limit."""
        answer = await self.api.poll(by=by, types=types, limit=POLL_LIMIT, **fields).succeeds()
        return jobs_of(answer)

    async def is_offered_again(self, job: JobRef, *, shows: Sequence[str] = ()) -> None:
        """Fail the check unless a poll lists the job within the sweep; ``shows`` as in :meth:`comes_back`."""
        what = f"it is not, {self.clock.grace:g} s after the limit"
        wanted = "the job is pending again: a poll lists it"
        with about(*shows) if shows else about("RT-SCHED-10", step="listing a lapsed job again"):
            await self._within(self.clock.grace, lambda: self.offered(job), wanted, lambda: what)

    async def comes_back(
        self, job: JobRef, *, by: str = "runtime-next", within: float | None = None, shows: Sequence[str] = ()
    ) -> Answer:
        """Fail the check unless the job can be locked again within the sweep; ``by`` has locked it then.

        ``shows``: the rules of the check that it breaks where it can't; without them it is what the check starts from.
        """
        grace = self.clock.grace if within is None else within
        answers: list[Answer] = []

        async def locked() -> bool:
            answers.append(await self.api.lock(job, by=by).answers())
            return answers[-1].status < 300

        wanted = "the job is pending again and can be locked"
        with about(*shows) if shows else about("RT-SCHED-10", step="taking a lapsed job again"):
            await self._within(grace, locked, wanted, lambda: f"{answers[-1].status}, {grace:g} s after the limit")
        return answers[-1]

    @staticmethod
    async def _within(
        seconds: float, done: Callable[[], Awaitable[bool]], wanted: str, instead: Callable[[], str]
    ) -> None:
        """Ask until it is done, at least once; fail the check where it is not within so many real seconds."""
        deadline = time.monotonic() + seconds
        while not await done():
            expect(time.monotonic() < deadline, wanted, instead())
            await asyncio.sleep(min(0.1, seconds))

    async def stays_away(self, job: JobRef) -> None:
        """Fail the check where the job can be locked, at once or after the sweep."""
        for wait in (0.0, self.clock.grace):
            if wait:
                with contextlib.suppress(CheckFailed):  # a build may sweep by real time; that it does is another rule
                    await self.settles(job)
            await self.clock.advance(wait) if self.clock.stands else await asyncio.sleep(wait)
            seen = await self.inspect(job) if "inspect-job" in self.states.offered else {}
            answer = await self.api.lock(job, by="runtime-next").answers()
            if seen.get("status") in FINAL:
                with about("RT-LOCK-06", step="refusing the lock of a finished job"):
                    expect(answer.status >= 300, f"no lock of a {seen['status']} job", str(answer.status))
            expect(answer.status >= 300, "the job can't be locked any more", f"{answer.status}: it was locked again")


def jobs_of(answer: Answer) -> list[dict[str, Any]]:
    """The entries of a poll's answer. Fails the check where they are no list of objects."""
    with about("RT-POLL-09", step="the list of a poll"):
        jobs = answer.get("jobs")
        good = isinstance(jobs, list) and all(isinstance(job, dict) and isinstance(job.get("id"), str) for job in jobs)
        expect(good, "`jobs`, a list of objects with an `id`, a string", answer.response.text[:200], "/jobs")
    return list(jobs)


def ids_of(entries: Iterable[dict[str, Any]]) -> list[Any]:
    """The ids of poll entries, in order."""
    return [entry.get("id") for entry in entries]


def epoch(value: Any) -> int | None:
    """An instant of ``inspect-job`` (epoch milliseconds or ISO 8601) as epoch milliseconds."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float) and value == value // 1:
        return int(value)
    try:
        return round(datetime.fromisoformat(str(value)).timestamp() * 1000)
    except ValueError:
        raise CheckFailed("an instant (epoch milliseconds or ISO 8601)", str(value)) from None
