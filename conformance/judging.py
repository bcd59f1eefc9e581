"""One job in the child process: every check of a suite against one target, in one event loop, told a line each.

Checks that wait for a build's real clock have to wait side by side, while checks on a clock that is advanced must not
overlap at all.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from conformance.drivers.http import DriverError, HttpStates
from conformance.drivers.none import NoStates
from conformance.http_transport import HttpTransport, closing_streams
from conformance.recording import CHECK, RECORDER, Recorder
from conformance.systems import find
from contract_tests.checks import CheckFailed, CheckSkipped, NoAnswer, SetUpFailed, TargetVanished
from contract_tests.clock import Clock
from contract_tests.transport import StateBroken
from openapi.contract import load_instead
from openapi.mutation import generated
from openapi.mutation.standing import mutated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from conformance.systems import System
    from contract_tests.transport import ProviderStates, Transport

FUZZ_EXAMPLES = 10
"""Random requests of each operation, valid and invalid ones, beyond the boundaries of its schemas."""
MAX_WAITING = 300
"""Checks that wait side by side, at most."""
LOST = {TargetVanished: 3, NoAnswer: 5}
"""After so many checks in a row that ended so, the others are not tried: each would wait for its own time limit."""


@dataclass
class Job:
    """What the parent asks of a child: to judge one target, a build of ``system`` (its name)."""

    system: str
    base_url: str
    settings: dict[str, Any]
    """What else the suite has to know of the target, its secrets above all: fields of its ``Settings``."""
    provider_states: str | None
    seed: int
    timing: dict[str, float | list[float]] = field(default_factory=dict)
    rules: list[str] | None = None
    traffic: bool = True
    """Whether exchanges and commands of checks that passed are told, too: for reports, which cost time to prepare."""
    fuzz_examples: int = FUZZ_EXAMPLES
    shard: tuple[int, int] = (0, 1)
    """Which share of the checks, from 0, of how many: shares are judged side by side, each on a world of its own."""
    until_failure: bool = False
    """Whether the first check that fails ends it: where all that is asked is whether one does."""
    text: str | None = None
    """The generated mutant whose contract the checks go by; None is the packaged one. A child goes by one only."""
    control_token: str | None = None
    """What the provider-state endpoint asks for."""

    def to_json(self) -> str:
        """For the child's standard input: never on a command line, where secrets would show."""
        return json.dumps(asdict(self))


class JobRun:
    """A job at work; what it learns (secrets, a target that is gone) is its own.

    ``emit`` tells the parent the name of an event and its fields.
    """

    def __init__(self, job: Job, emit: Callable[..., None]) -> None:
        self.job, self.emit = job, emit
        self.system = find(job.system)
        self.redactor = self.system.redactor(job.settings)
        if job.control_token is not None:
            self.redactor.add(job.control_token)
        self._suite = self.system.services()
        self._lost: str | None = None
        self._failed = False
        self._in_a_row: tuple[type[Exception] | None, int] = (None, 0)

    def run(self, items: Sequence[pytest.Item]) -> None:
        """Run the checks that answer for a rule that is asked for."""
        if self.job.text is not None:
            _go_by(self.job.text, self.system)
        wanted = None if self.job.rules is None else set(self.job.rules)
        chosen = [item for item in items if wanted is None or wanted & set(rules_of(item))]
        mine, shares = self.job.shard
        last = [item for item in chosen if marked(item, "last")]
        chosen = [*[item for item in chosen if item not in last][mine::shares], *last]  # those judge each share
        checks = [{"id": self._id(item), "requirements": rules_of(item), "title": title_of(item)} for item in chosen]
        self.emit("collected", checks=checks)
        try:
            asyncio.run(self._run(chosen))
        except (DriverError, SetUpFailed) as error:
            self.emit("broken", message=self.redactor.text(str(error)))
            return
        self.emit("end")

    async def _run(self, items: list[pytest.Item]) -> None:
        job, system = self.job, self.system
        transport = HttpTransport(job.base_url, system.variables(job.settings), redactor=self.redactor)
        states: ProviderStates = NoStates()
        if job.provider_states:
            token = job.control_token
            states = await asyncio.to_thread(HttpStates, job.provider_states, system.name, token=token)
        timing = system.timing_class(**{name: _number(value) for name, value in job.timing.items()})
        clock = await measured(states, timing.sweep)
        settings = self._suite.Settings(**job.settings)
        async with self._suite.open_services(transport, states, clock, timing, settings) as services:
            await self._checks(items, services)
            reach = services.get("reach")
            if reach is not None and reach.requests:
                self.emit("reach", reach=reach.as_data())

    async def _checks(self, items: list[pytest.Item], services: dict[str, Any]) -> None:
        states, clock = services["states"], services["clock"]
        alone = [item for item in items if marked(item, "alone")]
        last = [item for item in items if marked(item, "last")]
        others = [item for item in items if item not in alone and item not in last]
        if "reset" in states.offered:
            await states.set_up("reset", {})
        for item in alone:
            await self._one(item, services, reset=True)
        if clock.advances:
            for item in others:
                await self._one(item, services)
        else:
            await self._side_by_side(others, services)
        for item in last:
            await self._one(item, services)

    async def _side_by_side(self, items: list[pytest.Item], services: dict[str, Any]) -> None:
        limit = asyncio.Semaphore(MAX_WAITING)

        async def waiting(item: pytest.Item) -> None:
            async with limit:
                await self._one(item, services)

        await asyncio.gather(*(waiting(item) for item in items))

    def _id(self, item: pytest.Item) -> str:
        mine, _ = self.job.shard
        again = mine and marked(item, "last")
        id_ = self.system.check_id(item.path, item.name)
        return f"{id_}#{mine + 1}" if again else id_

    async def _one(self, item: pytest.Item, services: dict[str, Any], *, reset: bool = False) -> None:
        """Run one check and tell how it ended."""
        if self.job.until_failure and self._failed:
            return
        id_ = self._id(item)
        recorder = Recorder(self.redactor)
        RECORDER.set(recorder)
        CHECK.set(id_)
        self.emit("started", id=id_)
        random = Random(f"{self.job.seed}:{id_}")  # noqa: S311 - names, not secrets
        given = self._suite.given_for(services, random)
        outcome: dict[str, Any] = {"status": "passed", "message": None}
        began = time.monotonic()
        ended: type[Exception] | None = None
        try:
            self._not_lost()
            if reset:  # where it is not offered, jobs of others would be taken for a fault of the build
                await services["states"].set_up("reset", {})
            own = {"given": given, "seed": self.job.seed, "examples": self.job.fuzz_examples}
            async with closing_streams():
                await self._call(item, {**services, **own})
        except CheckFailed as failure:
            ended = type(failure)
            details: dict[str, Any] = {
                "expected": failure.expected,
                "actual": failure.actual,
                "pointer": failure.pointer,
            }
            details |= {"about": list(failure.rules), "step": failure.step}
            outcome = {"status": "failed", "message": str(failure), **details}
        except CheckSkipped as skipped:
            ended = type(skipped)
            outcome = await self._left_out(skipped, services["transport"])
        except AssertionError as failure:
            outcome = {
                "status": "failed",
                "message": str(failure),
                "expected": [title_of(item)],
                "actual": str(failure),
            }
        except Exception as error:
            where = _place(error)
            outcome = {
                "status": "skipped",
                "message": f"the check itself broke: {type(error).__name__}: {error} ({where})",
            }
            outcome["setUpFailed"] = True
        self._failed = self._failed or outcome["status"] == "failed"
        told = self.job.traffic or outcome["status"] != "passed"
        self.emit(
            "finished",
            id=id_,
            seconds=round(time.monotonic() - began, 3),
            exchanges=recorder.exchanges if told else [],
            commands=recorder.commands if told else [],
            **self.redactor.data(outcome),
        )
        await self._count(ended, services["transport"])

    async def _left_out(self, skipped: CheckSkipped, transport: Transport) -> dict[str, Any]:
        """How a check ended that could not be made.

        Where a state broke, a plain request shows whether that is all that is broken: an API that is, too, fails.
        """
        told = {"status": "skipped", "message": str(skipped), "setUpFailed": isinstance(skipped, SetUpFailed)}
        if not isinstance(skipped, StateBroken):
            return told
        request = self.system.probe(self.job.settings)
        try:
            answer = await transport.send(request)
        except (TargetVanished, NoAnswer):
            return told
        if answer.status < 500:
            return told
        came = f"{request.method} {request.path}: {answer.status} {answer.text[:200]}"
        return {
            "status": "failed",
            "message": f"{skipped}; {came}",
            "expected": ["an answer that is no 5xx"],
            "actual": came,
            "about": [self.system.probed],
            "step": "a plain request after a provider state broke",
        }

    def _not_lost(self) -> None:
        if self._lost:
            raise SetUpFailed(self._lost)

    async def _count(self, ended: type[Exception] | None, transport: Transport) -> None:
        """Give the target up when one check after the other got no answer and a plain request gets none, either."""
        kind = next((kind for kind in LOST if ended and issubclass(ended, kind)), None)
        last, times = self._in_a_row
        self._in_a_row = (kind, times + 1 if kind is last else 1)
        if kind is None or self._in_a_row[1] < LOST[kind] or self._lost:
            return
        self._in_a_row = (None, 0)
        try:
            await transport.send(self.system.probe(self.job.settings))
        except (TargetVanished, NoAnswer) as gone:
            self._lost = f"the target was given up, {LOST[kind]} checks in a row got no answer: {gone}"

    async def _call(self, item: pytest.Item, services: dict[str, Any]) -> None:
        function = function_of(item)
        parameters = getattr(item, "callspec", None)
        names = inspect.signature(function).parameters
        for name in names:
            if name in services and services[name] is None:
                raise CheckSkipped(self.system.lacking.get(name, f"needs {name}, which this target has not"))
        values = {**services, **(parameters.params if parameters else {})}
        await function(**{name: values[name] for name in names})


@functools.cache
def _go_by(text: str, system: System) -> None:
    """Let this child's checks go by a mutated text; a child that is given more than one job mutates it once."""
    load_instead(mutated(generated()[text], system.contract))


def function_of(item: pytest.Item) -> Any:
    """The check itself, with its marks."""
    return item.obj  # type: ignore[attr-defined]


def marked(item: pytest.Item, mark: str) -> bool:
    """Whether the check has a mark of :mod:`contract_tests.checks`: ``alone``, ``last`` or ``fuzz``."""
    return getattr(function_of(item), mark, False)


def rules_of(item: pytest.Item) -> list[str]:
    """The rules that the check answers for."""
    return list(getattr(function_of(item), "requirements", ()))


def title_of(item: pytest.Item) -> str:
    """The first line of the check's docstring."""
    return (inspect.getdoc(function_of(item)) or item.name).splitlines()[0]


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"


def _number(value: float | list[float]) -> float | tuple[float, ...]:
    return tuple(value) if isinstance(value, list) else value


async def measured(states: ProviderStates, sweep: float) -> Clock:
    """The target's clock: two reads 50 ms apart tell whether it stands, or at which rate it runs.

    ``sweep``: within how many real seconds a build does by itself what is due.
    """
    clock = Clock(states, rate=1, grace=sweep)
    if not clock.advances:
        return clock
    first, began = await clock.now(), time.monotonic()
    await asyncio.sleep(0.05)
    second, passed = await clock.now(), time.monotonic() - began
    rate = (second - first) / 1000 / passed
    return Clock(states, rate=0 if second == first else rate, grace=sweep)
