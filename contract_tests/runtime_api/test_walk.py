"""A random walk over all operations: each answer, and the job afterwards, as a small model has it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import describe, judge_code
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from contract_tests.client import JobRef, RuntimeApi
    from contract_tests.clock import Clock
    from contract_tests.given import Given

STEPS = 130
RUNTIMES = ("runtime-a", "runtime-b")
PASSING = (0.1, 0.3, 0.7, 1)
"""Parts of the lock's length that pass in one step, a millisecond less or more."""
LOST, TAKEN, GONE, OTHER = (
    "409 LOCK_NOT_HELD",
    "409 JOB_ALREADY_LOCKED",
    "409 JOB_CANCELLED",
    "409 RESULT_ALREADY_EXISTS",
)
RULES = {
    "lock": "RT-LOCK-50",
    "heartbeat": "RT-HB-50",
    "snapshot": "RT-SNAP-50",
    "resolve": "RT-CRED-50",
    "result": "RT-RES-64",
    "fail": "RT-FAIL-50",
    "cancel": "RT-CANCEL-51",
    "revoke": "RT-CANCEL-54",
    "time": "RT-RETRY-51",
}
"""The rule that a step shows by its answer, and by leaving all columns alone where it is refused."""
COLUMNS = {
    "lock": "RT-LOCK-10",
    "heartbeat": "RT-HB-04",
    "result": "RT-RES-14",
    "fail": "RT-RETRY-01",
    "cancel": "RT-CANCEL-01",
}
"""The seed's rule of what a step that is accepted does to the job, which has checks of its own."""


@dataclass
class Model:
    """What the protocol says of one job, in this check's own words."""

    ref: JobRef
    retries: int
    lock_ms: int
    timeout_s: int
    status: str = "pending"
    holder: str | None = None
    until: int = 0
    started: int | None = None
    lost: int = 0
    stop: bool = False
    hash: str | None = None

    def columns(self) -> dict[str, Any]:
        """What `inspect-job` is to show."""
        until = self.until if self.holder else None
        mine = {"status": self.status, "lockedBy": self.holder, "lockUntil": until, "retryCount": self.lost}
        return {**mine, "attemptNo": self.lost, "cancelRequested": self.stop, "resultCount": int(self.hash is not None)}

    def passes(self, now: int) -> bool:
        """Time passes; whether that took the job from its holder."""
        over = self.started is not None and now > self.started + self.timeout_s * 1000
        if self.holder is None or not (over or now > self.until):
            return False
        self.ends("cancelled" if self.stop else "pending" if self.lost < self.retries else "failed")
        return True

    def ends(self, status: str) -> str:
        """The attempt is over."""
        self.status, self.holder, self.started = status, None, None
        self.lost += status == "pending"
        return "200"

    def lock(self, by: str, now: int) -> str:
        if self.status != "pending":
            return TAKEN
        self.status, self.holder, self.until = "locked", by, now + self.lock_ms
        return "200"

    def heartbeat(self, by: str, now: int) -> str:
        if self.holder != by:
            return LOST
        self.started = now if self.status == "locked" else self.started
        self.status, self.until = "running", now + self.lock_ms
        return "204"

    def read(self, by: str, _now: int) -> str:
        return "200" if self.holder == by else LOST

    def result(self, by: str, hash_: str) -> str:
        if self.status == "succeeded":
            return "200" if hash_ == self.hash else OTHER
        if self.status == "cancelled":
            return GONE
        if self.holder != by:
            return LOST
        if self.stop:
            self.ends("cancelled")
            return GONE
        self.hash = hash_
        self.ends("succeeded")
        return "201"

    def fail(self, by: str, *, retryable: bool) -> str:
        if self.holder != by:
            return LOST
        again = retryable and self.lost < self.retries
        return self.ends("cancelled" if self.stop else "pending" if again else "failed")

    def cancel(self) -> str:
        if self.status != "pending":
            return "refused"
        self.status = "cancelled"
        return "done"

    def revoke(self) -> None:
        self.stop = self.stop or self.holder is not None
        self.status = "cancelled" if self.status == "pending" else self.status


class Walk:
    """The build and the model, side by side."""

    def __init__(self, api: RuntimeApi, given: Given, random: Random) -> None:
        self.api, self.given, self.random = api, given, random
        self.jobs: list[Model] = []
        self.now = 0

    async def step(self) -> None:
        """One step, chosen at random, on one of the jobs."""
        if len(self.jobs) < 4 or self.random.random() < 0.1:
            retries = self.random.choice((0, 1, 3))
            lock = self.given.timing.lock
            timeout = max(round(lock * 1.7), 1)
            ref = await self.given.job(maxRetryCount=retries, timeoutSeconds=timeout)
            self.jobs = [*self.jobs[-4:], Model(ref, retries, round(lock * 1000), timeout)]
            return
        model, by = self.random.choice(self.jobs), self.random.choice(RUNTIMES)
        if model.holder is not None and self.random.random() < 0.6:
            by = model.holder
        likely = ("lock", "heartbeat", "heartbeat", "snapshot", "resolve", "result", "fail", "fail", "time", "time")
        kind = self.random.choice((*likely, "cancel", "revoke") if self.random.random() < 0.3 else likely)
        before = model.columns()
        with about(RULES[kind]):
            await self.take(kind, model, by)
        row = await self.given.inspect(model.ref)
        moved = COLUMNS.get(kind) if model.columns() != before else None
        with about(moved, step=f"the columns after {kind}") if moved else about(RULES[kind]):
            expect_fields(row, model.columns())

    async def take(self, kind: str, model: Model, by: str) -> None:
        """Do it to both, and compare the answers."""
        job, api = model.ref, self.api
        match kind:
            case "time":
                seconds = self.given.timing.lock * self.random.choice(PASSING) + self.random.choice((-0.001, 0, 0.001))
                await self.given.clock.advance(round(seconds, 3))
                self.now = await self.given.clock.now()
                for other in self.jobs:
                    if other.passes(self.now):
                        await self.given.settles(other.ref, shows=("RT-TIME-04",))
                        expect_fields(await self.given.inspect(other.ref), other.columns())
                return
            case "revoke":
                model.revoke()
                await self.given.revoke_ai_consent(job.user_id)
                return
            case "cancel":
                try:
                    await self.given.states.set_up("cancel-job", {"jobId": job.id})
                    came = "done"
                except StateRefused:
                    came = "refused"
                wanted = model.cancel()
                expect(came == wanted, f"a cancel {wanted}", came)
                return
        hash_, retryable = self.random.choice(("sha256-x", "sha256-y")), self.random.random() < 0.7
        calls: dict[str, Any] = {
            "lock": lambda: (model.lock(by, self.now), api.lock(job, by=by)),
            "heartbeat": lambda: (model.heartbeat(by, self.now), api.heartbeat(job, by=by)),
            "snapshot": lambda: (model.read(by, self.now), api.snapshot(job, by=by)),
            "resolve": lambda: (model.read(by, self.now), api.resolve(job, by=by)),
            "result": lambda: (model.result(by, hash_), api.result(job, by=by, hash=hash_)),
            "fail": lambda: (model.fail(by, retryable=retryable), api.fail(job, by=by, retryable=retryable)),
        }
        was = f"{model.status}, held by {model.holder}"
        wanted, call = calls[kind]()
        answer = await call.answers()
        judge_code(answer)
        came = str(answer.status) if answer.status < 300 else describe(answer.response)
        if kind != "result" and answer.status < 300:
            came = wanted if wanted.startswith("2") else came  # which success it is, other checks judge
        expect(came == wanted, f"{wanted} to {kind} by {by} of a job that is {was}", came)


@requirement(
    "RT-LOCK-50", "RT-HB-50", "RT-SNAP-50", "RT-CRED-50", "RT-RES-64", "RT-FAIL-50", "RT-CANCEL-51", "RT-CANCEL-54",
    "RT-RETRY-51",
)  # fmt: skip
@pytest.mark.parametrize("way", [1, 2])
async def test_a_random_walk(api: RuntimeApi, given: Given, clock: Clock, seed: int, way: int) -> None:
    """Every operation, time, cancels and revocations in any order: each answer, and the job afterwards, are right."""
    clock.needs_to_stand()
    walk = Walk(api, given, Random(f"{seed}:{way}"))  # noqa: S311 - repeatable, no secret
    walk.now = await clock.now()
    for _ in range(STEPS):
        await walk.step()
