"""Plays scenarios side by side, each with a Runtime and a world of its own, and gives what was recorded."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.processes import first_signal_alone
from conformance.runtimes.environment import Given, Template
from conformance.runtimes.leaks import MODEL_KEY, SERVICE_TOKEN, OutputWatch
from conformance.runtimes.mock import Mock, MockFailed, MockWorld, TooMuch, mock
from conformance.runtimes.ports import free_port
from conformance.runtimes.process import CannotStart
from conformance.runtimes.recording import Recording
from conformance.runtimes.rivals import Rival
from conformance.runtimes.stage import LOOK, LiveStage
from conformance.runtimes.strays import adopting
from contract_tests.runtime.history import Facts

if TYPE_CHECKING:
    from contract_tests.runtime.history import History
    from contract_tests.runtime.stage import Scenario, Timing

MOST_SILENT = 2
"""Scenarios in which the Runtime never polled, after which no more are begun unless it polled in another."""
_QUIET, _QUIET_AT_MOST = 3.0, 60.0
_SLOT = 10.0
_CANCELLING = 5.0
_TRIES, _MOMENT = 20, 0.1
_MOST_CALLED = 3
"""Paths that are told of a Runtime that never polled."""
_LONGEST_PATH = 120


class PortTaken(ValueError):  # noqa: N818
    """The port on which a Runtime started by hand is to find its API is in use; the text says so, and the mend."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a Runtime is started: program and arguments, and ``--env NAME=TEMPLATE``."""

    words: Sequence[str]
    templates: Sequence[Template] = ()


@dataclass(frozen=True, slots=True)
class Attached:
    """A Runtime that somebody starts by hand, once for all scenarios, with these numbers and names.

    The API stands on ``port`` for one scenario after the other; in between nobody listens there for a moment.
    """

    port: int
    token: str
    instance_id: str
    health_port: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How many at once, and how long at most; seconds. None: by the timing."""

    at_once: int | None = None
    """Scenarios at work. By default 16, with locks of 20 s and more, in which there is mostly waiting, 32."""
    starting: int = 2
    """Runtimes that start at the same time: the next one starts when one of them polled, or 10 s passed."""
    start: float = 60.0
    """For the first poll of a Runtime that was started, or attached."""
    grace: float = 34.0
    """For the exit after SIGTERM (RT-HEALTH-64), before it is killed."""
    bound: float | None = None
    """For a play. By default a minute, eight locks and six time limits."""

    def at_work(self, timing: Timing) -> int:
        """How many scenarios are played side by side."""
        return self.at_once or (16 if timing.lock < 20 else 32)

    def most(self, timing: Timing) -> float:
        """How long a play takes at most."""
        return 60 + 8 * timing.lock + 6 * timing.timeout if self.bound is None else self.bound


@dataclass
class Played:
    """What came of one scenario."""

    scenario: str
    title: str
    log: dict[str, Any] = field(default_factory=lambda: {"version": "1.2", "entries": [], "_scenarios": {}})
    """The archive's ``log`` of its world, with ``_scenarios``; without exchanges where it was not even begun."""
    problems: list[str] = field(default_factory=list)
    """Why less can be said than there should be: it broke, took too long, was cut off. Sentences."""
    said: str = ""
    """The end of the Runtime's output, without secrets."""
    begun: bool = False
    """Whether it was played: False where the Runtime never polled, or could not be started."""
    polled: bool = False
    """Whether the Runtime polled."""
    exit_status: int | None = None
    """Of its last process; negative: ended by that signal; None: it did not end, or was not ours."""

    @property
    def never_polled(self) -> bool:
        """Whether a Runtime was there, or was to be, and no poll of it came: nothing can be said of it."""
        return not self.polled


Told = Callable[[Played], None]


async def play(
    scenarios: Sequence[Scenario],
    runtime: Command | Attached,
    timing: Timing,
    pace: Pace | None = None,
    told: Told | None = None,
) -> list[Played]:
    """Play scenarios with a Runtime; what came of each, in their order. No process is left behind, whatever happens.

    ``told`` is called as each one is over. Scenarios that a Runtime started by hand can't play (``by_hand``,
    ``own_key``, ``late``) are for the caller to leave out. Raises
    :class:`~conformance.runtimes.process.CannotStart` where the command can't be started at all,
    :class:`PortTaken` where the port of one started by hand can't be had, and
    :class:`~conformance.reference.ReferenceFailed` where the mock can't be started.
    """
    async with playground() as ground:
        return await ground.play(scenarios, runtime, timing, pace, told)


class Playground:
    """One mock on which several Runtimes can be played with, side by side."""

    def __init__(self, server: Mock) -> None:
        self._mock = server

    async def play(
        self,
        scenarios: Sequence[Scenario],
        runtime: Command | Attached,
        timing: Timing,
        pace: Pace | None = None,
        told: Told | None = None,
    ) -> list[Played]:
        """As :func:`play` does it; what is left behind is ended with the ground."""
        return await _Players(self._mock, runtime, timing, pace or Pace(), told or (lambda _: None)).play(scenarios)


@contextlib.asynccontextmanager
async def playground() -> AsyncIterator[Playground]:
    """A mock for the length of the block, after which no process of a Runtime is left."""
    with first_signal_alone(), adopting():
        async with mock() as server:
            yield Playground(server)


class _Players:
    def __init__(self, server: Mock, runtime: Command | Attached, timing: Timing, pace: Pace, told: Told) -> None:
        self._mock, self._runtime, self._timing, self._pace, self._told = server, runtime, timing, pace, told
        attached = isinstance(runtime, Attached)
        self._work = asyncio.Semaphore(1 if attached else pace.at_work(timing))
        self._starting = asyncio.Semaphore(pace.starting)
        self._silent: list[str] = []
        self._polled = self._begun = False

    async def play(self, scenarios: Sequence[Scenario]) -> list[Played]:
        # Those that take long first: what they wait for passes while the others have their turns.
        order = sorted(scenarios, key=lambda scenario: not scenario.slow)
        tasks = {scenario.id: asyncio.ensure_future(self._turn(scenario)) for scenario in order}
        try:
            await asyncio.gather(*tasks.values())
            return [tasks[scenario.id].result() for scenario in scenarios]
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)  # each ends its Runtime

    async def _turn(self, scenario: Scenario) -> Played:
        played = Played(scenario.id, scenario.title)
        async with self._work:
            if not self._hopeless(played):
                try:
                    await self._one(scenario, played)
                except MockFailed as error:
                    _add(played, str(error))
        self._told(played)
        return played

    def _hopeless(self, played: Played) -> bool:
        """Whether it is not to be begun, since the Runtime never polled in those before; that is its problem then."""
        if len(self._silent) < MOST_SILENT or self._polled:
            return False
        where = " and ".join(self._silent[:MOST_SILENT])
        played.problems.append(f"it was not begun: in {where} the Runtime never polled")
        return True

    async def _one(self, scenario: Scenario, played: Played) -> None:
        if isinstance(self._runtime, Attached):
            await self._quieten(self._runtime)
        stage, spoilt = await self._stage(scenario)
        try:
            stage.keep_reading()
            if await self._begin(scenario, stage, played, spoilt=spoilt):
                played.begun = True
                await self._play(scenario, stage, played)
        except (MockFailed, TooMuch) as error:
            _add(played, str(error))
        except BaseException:  # the command can't be started, or we are being ended
            stage.abandon()
            raise
        try:
            await stage.finish(self._pace.grace)
        except (MockFailed, TooMuch) as error:
            _add(played, str(error))
        played.log, played.said = stage.recording.log, stage.watch.end()
        played.polled = stage.recording.polled
        played.exit_status = None if stage.process is None else stage.process.status
        await self._mock.drop(stage.world)

    async def _begin(self, scenario: Scenario, stage: LiveStage, played: Played, *, spoilt: bool) -> bool:
        """Start the Runtime, a few at a time, and wait for its first poll; whether it can be played with.

        ``spoilt``: the world has fault plans from its beginning, so that polls may hang.
        """
        if scenario.late:
            stage.follow()
            return True
        async with self._starting:
            if self._hopeless(played):
                return False
            if not stage.attached:
                await stage.restart()
            hint, within = stage.world.met if spoilt else None, self._pace.start
            polled = await stage.polled(min(within, _SLOT), hint)
            if not polled and stage.gone:
                self._silent.append(scenario.id)  # before the next one starts
        if not polled and not stage.gone:
            polled = await stage.polled(within - min(within, _SLOT), hint)
        if polled:
            self._polled = True
            return True
        if scenario.id not in self._silent:
            self._silent.append(scenario.id)
        if stage.process is not None and stage.gone:
            status = stage.process.status
            problem = f"the Runtime ended before its first poll, with exit status {status}"
        else:
            problem = f"the Runtime did not poll within {self._pace.start:g} s"
        played.problems.append(problem + stage.watch.clean(_called(stage.recording.history)))
        return False

    async def _play(self, scenario: Scenario, stage: LiveStage, played: Played) -> None:
        bound = self._pace.most(self._timing)
        task = asyncio.ensure_future(scenario.play(stage))
        try:
            await asyncio.wait([task], timeout=bound)
            if not task.done():
                _add(played, f"the scenario did not come to its end within {bound:g} s; what was recorded is judged")
                return
            try:
                task.result()
            except (MockFailed, TooMuch, CannotStart):
                raise
            except Exception as error:  # a fault of ours is no verdict on the build
                _add(played, stage.watch.clean(f"the scenario broke: {type(error).__name__}: {error}"))
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_CANCELLING)

    async def _stage(self, scenario: Scenario) -> tuple[LiveStage, bool]:
        """The stage of a scenario, and whether its world has fault plans from its beginning."""
        timing, runtime = self._timing, self._runtime
        token = f"service-{secrets.token_hex(16)}"
        instance, health, port = f"runtime-{secrets.token_hex(4)}", 0, 0
        if isinstance(runtime, Attached):
            token, instance, health, port = runtime.token, runtime.instance_id, runtime.health_port, runtime.port
        key = f"platform-{secrets.token_hex(16)}"
        options = {
            "clock": "real",
            "port": port or True,
            "apiKey": token,
            "timing": {"lock": timing.lock},
            "platformKey": key,
            "sightings": True,
            **scenario.world(timing),
        }
        world = await self._world(options)
        model_timeout = timing.timeout / 3 if scenario.model_timeout is None else scenario.model_timeout * timing.lock
        key = options["platformKey"] or key
        given = Given(
            base_url=world.base_url,
            token=token,
            instance_id=instance,
            health_port=health or free_port(),
            poll_interval_ms=round(timing.poll_interval * 1000),
            heartbeat_interval_ms=round(timing.heartbeat * 1000),
            model_timeout_ms=round(model_timeout * 1000),
            platform_key=key if scenario.own_key else None,
        )
        own_key = None if isinstance(runtime, Attached) else scenario.own_key
        facts = Facts(
            scenario.id, instance, timing.lock, timing.heartbeat, timing.poll_interval, model_timeout, own_key
        )
        rival = Rival(world.client, world.base_url, token, f"rival-{secrets.token_hex(4)}")
        recording = Recording(world, facts, [rival.instance_id])
        watch = OutputWatch(recording.leaked)
        watch.know(token, SERVICE_TOKEN)
        for secret in {key, *_keys(options.get("data"))}:
            watch.know(secret, MODEL_KEY)
        recording.tell("note", text=f"the world is made for: {scenario.title}")
        command = None if isinstance(runtime, Attached) else runtime
        words, templates = (command.words, command.templates) if command else (None, ())
        return LiveStage(timing, recording, watch, given, rival, words, templates), bool(options.get("faults"))

    async def _world(self, options: dict[str, Any]) -> MockWorld:
        """Make a world; a port that a world had a moment ago may need another moment."""
        for _ in range(_TRIES):
            try:
                return await self._mock.world(**options)
            except MockFailed as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise
            await asyncio.sleep(_MOMENT)
        try:
            return await self._mock.world(**options)
        except MockFailed as error:
            # Later on, it was ours: what was recorded by then is not to be lost.
            if error.status == HTTPStatus.CONFLICT and isinstance(self._runtime, Attached) and not self._polled:
                raise PortTaken(f"port {self._runtime.port} is in use; choose another --port") from None
            raise

    async def _quieten(self, runtime: Attached) -> None:
        """Let the Runtime find out that its last world is gone: what it still does there is no part of the next one."""
        if not self._begun:
            self._begun = True
            return
        world = await self._world({"port": runtime.port, "apiKey": runtime.token})
        clock = asyncio.get_running_loop().time
        began = busy = clock()
        while clock() - busy < _QUIET and clock() - began < _QUIET_AT_MOST:
            await asyncio.sleep(LOOK)
            seen = len(world.entries)
            await world.read()
            if any(entry["_operationId"] != "pollJobs" for entry in world.entries[seen:]):
                busy = clock()
        await self._mock.drop(world)


def _add(played: Played, problem: str) -> None:
    if problem not in played.problems:
        played.problems.append(problem)


def _called(history: History) -> str:
    """What one that never polled called instead; nothing where it called nothing."""
    answers: dict[str, str] = {}
    for call in history.calls:
        answers.setdefault(f"{call.method} {call.path[:_LONGEST_PATH]}", str(call.status or "no answer"))
    if not answers:
        return ""
    told = ", ".join(f"{called} ({answer})" for called, answer in list(answers.items())[:_MOST_CALLED])
    return f"; it called {told}{', ...' if len(answers) > _MOST_CALLED else ''}"


def _keys(data: Any) -> Iterator[str]:
    """The keys of credentials in a world's data."""
    if isinstance(data, dict):
        if isinstance(data.get("apiKey"), str):
            yield data["apiKey"]
        for value in data.values():
            yield from _keys(value)
    elif isinstance(data, list):
        for value in data:
            yield from _keys(value)
