"""What simulated nodes are told to do, and the instants to which a check goes, by the build's clock."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import Job, Project, job_ids
from contract_tests.agent_hub.shapes import instant
from contract_tests.checks import CheckSkipped, about, expect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from contract_tests.agent_hub.client import HubApi, Identified
    from contract_tests.agent_hub.given import HubGiven

FAR = 120.0
"""Real seconds for which a check waits, at most, where a build's clock can't be moved."""

MANY = 20
"""Jobs of one submission, at most, that a check looks at: each may start a millisecond later than the one before."""

Script = dict[str, Any]
"""One attempt of a script, as the provider state `outcome` takes it."""


def fails(
    after: float = 1,
    *,
    type: str = "llm_error",  # noqa: A002 - the word of the protocol
    retriable: bool = True,
    **more: Any,
) -> Script:
    """A round that fails after so many seconds; ``more``: message, progress."""
    return {"afterSeconds": after, "result": "failed", "failureType": type, "retriable": retriable, **more}


def ends(after: float = 1, **more: Any) -> Script:
    """A round that succeeds after so many seconds; ``more``: summary, producedFiles, progress."""
    return {"afterSeconds": after, "result": "done", **more}


def falls_silent(after: float = 1, **more: Any) -> Script:
    """A round whose node says nothing more after so many seconds."""
    return {"afterSeconds": after, "result": "node_lost", **more}


def hangs(**more: Any) -> Script:
    """A round that goes on and on."""
    return {"result": "hang", **more}


async def side_by_side(
    given: HubGiven,
    *scripts: Script | Sequence[Script],
    fields: Sequence[Mapping[str, Any]] = (),
    batch: str | None = None,
    api: HubApi | None = None,
    **same: Any,
) -> list[Job]:
    """A job for each script, each in a project of its own, all on one node and in one submission.

    ``fields`` are each job's own fields, ``same`` those of all of them.
    """
    node = await given.node([given.unique("proj") for _ in scripts])
    projects = [Project(name, node) for name in node.projects]
    for project, script in zip(projects, scripts, strict=True):
        await given.script(project, *([script] if isinstance(script, dict) else script))
    own = list(fields) or [{} for _ in scripts]
    wanted = [
        item(project, **{"externalId": given.unique("task"), **same, **mine})
        for project, mine in zip(projects, own, strict=True)
    ]
    parts = {} if batch is None else {"batch": batch}
    answer = await given.accepted(wanted, api=api, **parts)
    into = str(answer.data.get("batchId"))
    ids = job_ids(answer)
    expect(len(ids) == len(wanted), f"{len(wanted)} jobs", str(len(ids)), "/data/items")
    return [
        Job(id_, project, into, one.get("externalId")) for id_, project, one in zip(ids, projects, wanted, strict=True)
    ]


async def scripted(given: HubGiven, project: Project, *rounds: Script) -> dict[str, Any]:
    """The field by which a job of the project runs by a script of its own."""
    name = given.unique("task")
    await given.script(project, *rounds, external_id=name)
    return {"externalId": name}


class Since:
    """Time since something was done: ``async with Since(given) as start:`` around the doing.

    Where the clock stands instants are exact. Otherwise a margin is kept from them, on the side on which one is, and it
    is counted from when the doing began, or ended.
    """

    def __init__(self, given: HubGiven) -> None:
        self._given, self._clock, self.margin = given, given.clock, given.clock.margin
        self._began = self._ended = 0.0

    async def __aenter__(self) -> Self:
        self._began = await self._now()
        return self

    async def __aexit__(self, *error: object) -> None:
        self._ended = self._began if self._clock.stands or any(error) else await self._now()

    @property
    def began(self) -> int:
        """When it was done, epoch milliseconds by the build's clock. Skips the check where that can't be told."""
        self._clock.needs_advance()
        return round(self._began)

    @property
    def ended(self) -> int:
        """By when it was done, as ``began``."""
        self._clock.needs_advance()
        return round(self._ended)

    async def before(self, seconds: float) -> None:
        """Go to the last moment before so many seconds are over; skips the check where that has passed already.

        Where the clock flows one is there so early that one can still look at something, as long as that has taken.
        """
        limit, looking = self._began + seconds * 1000, 2 * self._given.took * max(self._clock.rate, 1)
        await self._go(limit - (1 if self._clock.stands else max(self.margin, looking) * 1000), limit)

    async def exactly(self, seconds: float) -> None:
        """Go to the moment at which so many seconds are over."""
        await self._go(self._ended + (seconds + (0 if self._clock.stands else self.margin)) * 1000)

    async def reach(self, seconds: float) -> None:
        """The same, when they are over for the further jobs, too."""
        await self.exactly(seconds + MANY / 1000)

    async def over(self, seconds: float) -> None:
        """Go to the first moment at which more than so many seconds have passed."""
        await self.exactly(seconds + 0.001)

    async def _now(self) -> float:
        return await self._clock.now() if self._clock.advances else time.monotonic() * 1000

    async def _go(self, instant: float, limit: float | None = None) -> None:
        now = await self._now()
        if limit is not None and now >= limit:
            raise CheckSkipped("the moment had passed before it could be looked at: requests take too long")
        seconds = (instant - now) / 1000
        if not self._clock.advances and seconds > FAR:
            self._clock.needs_advance()
        if seconds > 0:
            await self._clock.advance(seconds)


class Started(Since):
    """Time since jobs were submitted, within: the first one starts at the very beginning, where it can.

    Each further one has a later ``queuedAt``, by a millisecond at least, and may start then.
    """

    async def __aenter__(self) -> Self:
        if self._clock.stands:  # jobs that were submitted before have used up milliseconds to come (HUB-LIST-56)
            await self._clock.advance(1)
        return await super().__aenter__()


async def becomes(
    given: HubGiven, job: Identified | str, *statuses: str, rules: Sequence[str] = (), **wanted: Any
) -> dict[str, Any]:
    """The detail of a job that is due to have one of these statuses by now, and fields as ``wanted``.

    Where time flows it may come a little later, by the build's sweep. ``rules``: those that it breaks otherwise.
    """
    deadline = time.monotonic() + given.clock.grace + 1
    while True:
        detail = await given.detail(job)
        good = detail.get("status") in statuses and all(detail.get(name) == value for name, value in wanted.items())
        if good or given.clock.stands or time.monotonic() >= deadline:
            break
        await asyncio.sleep(0.05)
    if rules:
        with about(*rules):
            _has(detail, statuses, wanted)
    else:
        _has(detail, statuses, wanted)
    return detail


async def waits(given: HubGiven, job: Identified, attempt: int = 1) -> dict[str, Any]:
    """The detail of a job whose attempt of that number failed and is going to be retried: what a check starts from."""
    with about("HUB-FAIL-03" if attempt == 1 else "HUB-RETRY-01", step="a failure that is retried"):
        detail = await becomes(given, job, "failed")
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
        return detail


async def is_lost(given: HubGiven, job: Identified, attempt: int = 1) -> dict[str, Any]:
    """The detail of a job whose node was lost, and that is going to be retried: what a check starts from."""
    with about("HUB-FAIL-02" if attempt == 1 else "HUB-RETRY-01", step="a job whose node is lost"):
        detail = await becomes(given, job, "failed")
        failed_by(detail, "node_lost")
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
        return detail


async def is_over(given: HubGiven, job: Identified) -> dict[str, Any]:
    """The detail of a job whose round failed by engine_error, and that is not retried: what a check starts from."""
    with about("HUB-FAIL-04", step="a failure that is not retried"):
        detail = await becomes(given, job, "failed")
        expect(detail.get("nextRetryAt") is None, "no retry to come", "a nextRetryAt", "/data/nextRetryAt")
        return detail


async def cancels(given: HubGiven, job: Identified, was: str = "running") -> dict[str, Any]:
    """Cancel a job, which is what a check starts from; its detail afterwards.

    ``was``: running, queued or, in checks of level decision, waiting.
    """
    rule = {"queued": "HUB-CANCEL-02", "waiting": "HUB-CANCEL-51"}.get(was, "HUB-CANCEL-01")
    with about(rule, step=f"cancelling a {was} job"):
        await given.api.cancel(job).succeeds()
        return await becomes(given, job, "cancelled")


async def retries(given: HubGiven, job: Identified) -> None:
    """Retry a failed or cancelled job by hand, which is what a check starts from."""
    with about("HUB-RETRY-06", step="a retry by hand"):
        await given.api.retry(job).succeeds()


async def goes_on(given: HubGiven, job: Identified, *statuses: str, after: float = 0.5) -> dict[str, Any]:
    """Go to the ``nextRetryAt`` of a job that waits for it, and so many seconds further.

    Returns its detail then, which has one of these statuses: what a check starts from.
    """
    detail = await given.detail(job)
    due = instant(detail, "nextRetryAt")
    since = await given.clock.now() if given.clock.advances else instant(detail, "finishedAt")
    seconds = max(due - since, 0) / 1000 + after
    if not given.clock.advances and seconds > FAR:
        given.clock.needs_advance()
    await given.clock.advance(seconds)
    with about("HUB-RETRY-02", step="a retry that comes when it was told to"):
        return await becomes(given, job, *statuses)


def _has(detail: Mapping[str, Any], statuses: Sequence[str], wanted: Mapping[str, Any]) -> None:
    status = detail.get("status")
    told = f"{status}, failure {detail.get('failure')}"
    expect(status in statuses, f"status {' or '.join(statuses)}", told, "/data/status")
    for name, value in wanted.items():
        expect(detail.get(name) == value, f"{name} {value}", str(detail.get(name)), f"/data/{name}")


def is_still(before: Mapping[str, Any], after: Mapping[str, Any], *names: str) -> None:
    """Fail the check where one of these fields (status, attempt and sessionId without any) has changed."""
    for name in names or ("status", "attempt", "sessionId"):
        old, new = before.get(name), after.get(name)
        expect(old == new, f"{name} {old} as before", str(new), f"/data/{name}")


def failure(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """Why a job failed. Fails the check where nothing is told."""
    told = detail.get("failure")
    expect(isinstance(told, dict), "a `failure`", str(told), "/data/failure")
    return dict(told or {})


def failed_by(detail: Mapping[str, Any], type: str) -> None:  # noqa: A002 - the protocol's word
    """Fail the check where the job's failure is not of that type."""
    came = failure(detail).get("type")
    expect(came == type, f"failure.type {type}", str(came), "/data/failure/type")
