"""A run: jobs are made, or found by polling, and each is played by a few Runtimes of many."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import time
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from conformance.load.actors import Actor, Application, Work
from conformance.load.line import Gone, Place
from conformance.load.plays import Play
from conformance.load.recorder import Recorder
from contract_tests.histories.operations import JobHistory, Limits, histories

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

CAST = (2, 6)
"""How many Runtimes race for one job."""
LONG = 3600
"""The usual time limit of a run, seconds."""
IDLE_SECONDS = 3.0
"""Where jobs are found by polling: how long none may come before it is taken that there are no more."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run."""

    base_url: str
    key: str
    states: str | None = None
    """The provider-state endpoint."""
    offered: frozenset[str] = frozenset()
    """The states that it offers."""
    states_token: str | None = None
    """What the endpoint asks for, sent as a bearer token."""
    clients: int = 64
    jobs: int = 2000
    seconds: float = 120.0
    """When no more jobs are begun."""
    seed: int = 1
    lose: float = 0.05
    """The share of operations whose answers are lost on purpose."""
    limits: Limits = field(default_factory=Limits)


@dataclass(slots=True)
class Outcome:
    """What a run showed."""

    recorder: Recorder
    histories: list[JobHistory] = field(default_factory=list)
    seconds: float = 0.0
    problem: str | None = None
    """Why there may be no verdict."""


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    """What went wrong first, however deep it stands."""
    found: BaseException = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


class Load:
    """One run of an order."""

    def __init__(self, order: Order, told: Callable[[int], None] | None = None) -> None:
        """``told`` hears how many jobs have ended."""
        self._order, self._told = order, told
        self._recorder = Recorder()
        self._random = Random(order.seed)  # noqa: S311 - to be repeated, not secret
        self._place = Place(order.base_url)
        self._states = Place(order.states) if order.states and "job" in order.offered else None
        names = [f"runtime-{order.seed}-{number}" for number in range(order.clients)]
        self._actors = [Actor(name, self._place, order.key, self._recorder, order.lose) for name in names]
        self._about: dict[str, dict[str, Any]] = {}
        self._drained: dict[str, bool] = {}
        self._ended = 0
        self._until = math.inf

    async def run(self) -> Outcome:
        """Begin jobs until there are enough or the time is over, and wait for those that were begun."""
        began = time.monotonic()
        self._until = began + self._order.seconds
        problem = None
        gc.collect()
        gc.freeze()
        try:
            await self._play_all()
        except* Gone as gone:
            problem = str(_first(gone))
        finally:
            for actor in self._actors:
                actor.close()
        jobs = {operation.job for operation in self._recorder.operations}
        about = {job: {**self._about.get(job, {}), "drained": self._drained.get(job, False)} for job in jobs}
        found = histories(self._recorder.operations, self._order.limits, about)
        if not found and problem is None:
            problem = "no job could be made" if self._states else "polls listed no job; give --provider-states"
        return Outcome(self._recorder, found, time.monotonic() - began, problem)

    def _hurry(self) -> bool:
        return time.monotonic() > self._until

    async def _play_all(self) -> None:
        free: asyncio.Queue[Actor] = asyncio.Queue()
        for actor in self._actors:
            free.put_nowait(actor)
        number = 0
        async with asyncio.TaskGroup() as group:
            works = self._made(self._states) if self._states else self._found()
            async for work, application in works:
                number += 1
                random = Random(f"{self._order.seed} {number}")  # noqa: S311 - the same
                size = min(random.randint(*CAST), len(self._actors))
                cast = [await free.get() for _ in range(size)]
                play = Play(work, cast, application, self._order.limits, random, self._hurry)
                group.create_task(self._play(play, cast, application, free))

    async def _play(
        self, play: Play, cast: list[Actor], application: Application | None, free: asyncio.Queue[Actor]
    ) -> None:
        limits = self._order.limits
        left = max(0.0, self._until - time.monotonic()) + 4 * (limits.lock + limits.sweep) + 10
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await play.run()
                self._drained[play.work.id] = not play.left
        if application is not None:
            application.close()
        for actor in cast:
            free.put_nowait(actor)
        self._ended += 1
        if self._told is not None:
            self._told(self._ended)

    async def _made(self, states: Place) -> AsyncIterator[tuple[Work, Application | None]]:
        """Jobs that we make."""
        refused = 0
        for number in range(self._order.jobs):
            if self._hurry():
                return
            application = Application(states, self._order.offered, self._recorder, self._order.states_token)
            retries = self._random.choice((0, 1, 2, 3, 3))
            short = self._random.random() < 0.1 and self._order.limits.lock <= 2
            timeout = math.ceil(self._order.limits.lock) if short else LONG
            user = f"user-load-{self._order.seed}-{number}-{self._random.getrandbits(32):08x}"
            work = await application.create(userId=user, maxRetryCount=retries, timeoutSeconds=timeout)
            if work is None:
                application.close()
                refused += 1
                if refused > 10:
                    raise Gone("the provider state `job` does not make jobs")
                continue
            self._about[work.id] = {"timeout": float(timeout), "retries": retries}
            yield work, application

    async def _found(self) -> AsyncIterator[tuple[Work, Application | None]]:
        """Jobs that polls list."""
        poller = Actor(f"runtime-{self._order.seed}-polls", self._place, self._order.key, self._recorder, 0)
        seen: set[str] = set()
        idle_since = time.monotonic()
        while len(seen) < self._order.jobs and not self._hurry() and time.monotonic() - idle_since < IDLE_SECONDS:
            for entry in await poller.poll():
                id_, timeout = entry.get("id"), entry.get("timeoutSeconds", 120)
                if not isinstance(id_, str) or id_ in seen or len(seen) >= self._order.jobs:
                    continue
                seen.add(id_)
                if isinstance(timeout, int | float):
                    self._about[id_] = {"timeout": float(timeout)}
                idle_since = time.monotonic()
                yield Work(id_, str(entry.get("outputSchemaVersion", "analysis_output_v1"))), None
            await asyncio.sleep(0.05)
        poller.close()
