"""Inside the child process: pytest collects the checks, this plugin runs them and tells what happens, a line each.

pytest gives collection, parameters and rewritten assertions. Running is done here because checks that wait for a
build's real clock have to wait side by side, in one event loop, while checks on a clock that is advanced must not
overlap at all.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, TextIO

import pytest

import contract_tests
import openapi
from conformance.drivers.http import DriverError, HttpStates
from conformance.drivers.none import NoStates
from conformance.http_transport import HttpTransport
from conformance.recording import RECORDER, Recorder
from contract_tests.checks import CheckFailed, CheckSkipped, NoAnswer, SetUpFailed, TargetVanished
from contract_tests.client import RuntimeApi
from contract_tests.given import Clock, Given, Timing

if TYPE_CHECKING:
    from contract_tests.transport import ProviderStates

FUZZ_FILES = "test_fuzz*.py"
"""Where the checks that generate their requests stand."""
MAX_WAITING = 300
"""Checks that wait side by side, at most."""
LOST = {TargetVanished: 3, NoAnswer: 5}
"""After so many checks in a row that ended so, the others are not tried: each would wait for its own time limit."""


@dataclass
class Job:
    """What the parent asks of the child. ``part`` is ``scenarios``, ``fuzz`` or ``all``."""

    base_url: str
    api_key: str
    provider_states: str | None
    suite: str
    part: str
    seed: int
    timing: dict[str, float] = field(default_factory=dict)
    rules: list[str] | None = None
    traffic: bool = True
    """Whether exchanges and commands of checks that passed are told, too: for reports, which cost time to prepare."""

    def to_json(self) -> str:
        """For the child's standard input: never on a command line, where it would show."""
        return json.dumps(asdict(self))


class Plugin:
    """Runs the collected checks instead of pytest's own loop."""

    def __init__(self, job: Job, events: TextIO) -> None:
        self.job, self.events = job, events
        self.redactor = openapi.load("runtime-api").redactor([job.api_key])
        self._lost: str | None = None
        self._in_a_row: tuple[type[Exception] | None, int] = (None, 0)

    def emit(self, event: str, **fields: Any) -> None:
        """Tell the parent something."""
        self.events.write(json.dumps({"event": event, **fields}, ensure_ascii=True) + "\n")
        self.events.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A suite that can't be collected leaves the run without a verdict."""
        if report.failed:
            self.emit("broken", message=f"{report.nodeid} can't be collected: {str(report.longrepr).splitlines()[-1]}")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the checks of this part that answer for a rule that is asked for."""
        wanted = None if self.job.rules is None else set(self.job.rules)
        items[:] = [
            item
            for item in items
            if self.job.part in ("all", "fuzz" if getattr(_function(item), "fuzz", False) else "scenarios")
            and (wanted is None or wanted & set(_rules(item)))
        ]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every check."""
        if session.testsfailed:
            return True
        checks = [{"id": check_id(item), "requirements": _rules(item), "title": _title(item)} for item in session.items]
        self.emit("collected", checks=checks)
        try:
            asyncio.run(self._run(session.items))
        except (DriverError, SetUpFailed) as error:
            self.emit("broken", message=self.redactor.text(str(error)))
            return True
        self.emit("end")
        return True

    async def _run(self, items: list[pytest.Item]) -> None:
        transport = HttpTransport(self.job.base_url, self.job.api_key)
        states: ProviderStates = NoStates()
        if self.job.provider_states:
            states = await asyncio.to_thread(HttpStates, self.job.provider_states)
        timing = Timing(**self.job.timing)
        clock = await _clock(states, timing)
        api = RuntimeApi(transport, self.job.api_key)
        services = {"api": api, "clock": clock, "timing": timing, "transport": transport, "states": states}
        alone = [item for item in items if getattr(_function(item), "alone", False)]
        others = [item for item in items if item not in alone]
        if "reset" in states.offered:
            await states.set_up("reset", {})
        for item in alone:
            await self._one(item, services, reset=True)
        if clock.advances:
            for item in others:
                await self._one(item, services)
            return
        limit = asyncio.Semaphore(MAX_WAITING)

        async def waiting(item: pytest.Item) -> None:
            async with limit:
                await self._one(item, services)

        await asyncio.gather(*(waiting(item) for item in others))

    async def _one(self, item: pytest.Item, services: dict[str, Any], *, reset: bool = False) -> None:
        """Run one check and tell how it ended."""
        id_ = check_id(item)
        recorder = Recorder(self.redactor)
        RECORDER.set(recorder)
        self.emit("started", id=id_)
        random = Random(f"{self.job.seed}:{id_}")  # noqa: S311 - names, not secrets
        given = Given(services["api"], services["states"], services["clock"], services["timing"], random)
        outcome: dict[str, Any] = {"status": "passed", "message": None}
        began = time.monotonic()
        ended: type[Exception] | None = None
        try:
            self._not_lost()
            if reset:  # where it is not offered, jobs of others would be taken for a fault of the build
                await services["states"].set_up("reset", {})
            await self._call(item, {**services, "given": given, "seed": self.job.seed})
        except CheckFailed as failure:
            ended = type(failure)
            details = {"expected": failure.expected, "actual": failure.actual, "pointer": failure.pointer}
            outcome = {"status": "failed", "message": str(failure), **details}
        except CheckSkipped as skipped:
            broken = isinstance(skipped, SetUpFailed)
            ended = type(skipped)
            outcome = {"status": "skipped", "message": str(skipped), "setUpFailed": broken}
        except AssertionError as failure:
            outcome = {"status": "failed", "message": str(failure), "expected": [_title(item)], "actual": str(failure)}
        except Exception as error:
            where = _place(error)
            outcome = {
                "status": "skipped",
                "message": f"the check itself broke: {type(error).__name__}: {error} ({where})",
            }
            outcome["setUpFailed"] = True
        told = self.job.traffic or outcome["status"] != "passed"
        self.emit(
            "finished",
            id=id_,
            seconds=round(time.monotonic() - began, 3),
            exchanges=recorder.exchanges if told else [],
            commands=recorder.commands if told else [],
            **self.redactor.data(outcome),
        )
        await self._count(ended, services["api"])

    def _not_lost(self) -> None:
        if self._lost:
            raise SetUpFailed(self._lost)

    async def _count(self, ended: type[Exception] | None, api: RuntimeApi) -> None:
        """Give the target up when one check after the other got no answer and a plain poll gets none, either."""
        kind = next((kind for kind in LOST if ended and issubclass(ended, kind)), None)
        last, times = self._in_a_row
        self._in_a_row = (kind, times + 1 if kind is last else 1)
        if kind is None or self._in_a_row[1] < LOST[kind] or self._lost:
            return
        self._in_a_row = (None, 0)
        try:
            await api.poll()
        except (TargetVanished, NoAnswer) as gone:
            self._lost = f"the target was given up, {LOST[kind]} checks in a row got no answer: {gone}"

    @staticmethod
    async def _call(item: pytest.Item, services: dict[str, Any]) -> None:
        function = _function(item)
        parameters = getattr(item, "callspec", None)
        values = {**services, **(parameters.params if parameters else {})}
        names = inspect.signature(function).parameters
        await function(**{name: values[name] for name in names})


def check_id(item: pytest.Item) -> str:
    """``lock.locks_for_60_seconds`` of ``test_lock.py::test_locks_for_60_seconds``, with its parameters."""
    return f"{item.path.stem.removeprefix('test_')}.{item.name.removeprefix('test_')}"


def _function(item: pytest.Item) -> Any:
    return item.obj  # type: ignore[attr-defined]


def _rules(item: pytest.Item) -> list[str]:
    return list(getattr(_function(item), "requirements", ()))


def _title(item: pytest.Item) -> str:
    return (inspect.getdoc(_function(item)) or item.name).splitlines()[0]


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"


async def _clock(states: ProviderStates, timing: Timing) -> Clock:
    """Two reads of the clock 50 ms apart tell whether it stands, or at which rate it runs."""
    clock = Clock(states, rate=1, grace=timing.sweep)
    if not clock.advances:
        return clock
    first, began = await clock.now(), time.monotonic()
    await asyncio.sleep(0.05)
    second, passed = await clock.now(), time.monotonic() - began
    rate = (second - first) / 1000 / passed
    return Clock(states, rate=0 if second == first else rate, grace=timing.sweep)


def main() -> int:
    """Run the job that stands on standard input; events go to standard output."""
    job = Job(**json.load(sys.stdin))
    events = sys.stdout
    sys.stdout = sys.stderr
    suite = Path(contract_tests.__file__).parent / job.suite
    ini = Path(__file__).with_name("suites.ini")
    arguments = ["-c", str(ini), "--rootdir", str(suite), "-p", "no:cacheprovider"]
    arguments += ["-p", "no:terminal", "--import-mode=importlib"]
    if job.part == "scenarios":
        arguments.append(f"--ignore-glob=*/{FUZZ_FILES}")  # importing a generator takes longer than many checks
    arguments += map(str, suite.glob(FUZZ_FILES)) if job.part == "fuzz" else [str(suite)]
    return int(pytest.main(arguments, plugins=[Plugin(job, events)]))


if __name__ == "__main__":
    raise SystemExit(main())
