"""What a scenario is written with: a stage on which one Runtime plays against a world of its own.

A scenario only makes situations. It never judges: monitors do, by what was recorded.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

import contract_tests.runtime.scenarios as scenarios
from contract_tests.runtime.history import Facts, History, Probe

Plan = Mapping[str, Any]
"""A fault plan of the control plane (``FaultPlan`` of control.yaml)."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What ``--timing`` says, seconds. Scenarios wait in locks, so that a short lock makes a short run."""

    lock: float = 60.0
    heartbeat: float = 15.0
    """The interval that the Runtime is given: a quarter of the lock's length unless told otherwise."""
    timeout: float = 120.0
    """The time limit of scenarios' jobs: twice the lock's length unless told otherwise."""
    poll_interval: float = 0.2

    @property
    def seconds(self) -> int:
        """The time limit as a job's ``timeoutSeconds``: whole seconds, at least 1."""
        return max(1, round(self.timeout))


class Stage(Protocol):
    """One Runtime, and the world that it works for. What takes a wait ends it at the latest when the scenario ends."""

    timing: Timing
    facts: Facts
    attached: bool
    """Whether the Runtime was started by hand: it can't be signalled or restarted."""

    async def job(self, **params: Any) -> str:
        """Create a job by the provider state ``job`` (its parameters); its id. Time limit: the timing's, by default."""

    async def state(self, name: str, **params: Any) -> dict[str, Any]:
        """Set up another provider state of the Runtime API; its values."""

    async def faults(self, *plans: Plan) -> None:
        """Add fault plans to the world."""

    async def clear_faults(self) -> None:
        """Remove every fault plan."""

    async def model(self, *scripts: Mapping[str, Any]) -> None:
        """Say what the model does: scripts of the control plane, which replace all there were."""

    async def inspect(self, job: str) -> dict[str, Any]:
        """Every column of a job."""

    async def rival(self, operation: str, job: str | None = None, **body: Any) -> int:
        """A request of another Runtime; its status."""

    async def history(self) -> History:
        """What was recorded so far."""

    async def until(self, condition: Callable[[History], Any], within: float, what: str) -> bool:
        """Wait until something holds of what was recorded, at most ``within`` seconds; whether it came.

        ``what`` is a sentence's part for the timeline: ``waited 12 s for a heartbeat, which did not come``.
        """

    async def done(self, *jobs: str, within: float | None = None) -> bool:
        """Wait until each job is settled for good and every model call of it has its log; whether it came to that.

        ``within``: seconds; by default what a job may take.
        """

    async def wait(self, seconds: float) -> None:
        """Let time pass: for what must *not* happen in it."""

    async def signal(self, name: str) -> None:
        """Send the Runtime a signal: ``TERM``, ``KILL``, ``STOP``, ``CONT``."""

    async def exited(self, within: float) -> int | None:
        """Wait until the Runtime's process ended; its status, None where it did not."""

    async def restart(self) -> None:
        """Start the Runtime anew (its process has ended), with the same environment."""

    async def health(self) -> Probe | None:
        """Ask the Runtime's health once, and record what came; None where it serves no health."""

    def note(self, text: str) -> None:
        """Say in the timeline what was done."""


Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """One scenario. What is left out is as the world and the Runtime have it by default."""

    id: str
    title: str
    play: Play
    world: Callable[[Timing], Mapping[str, Any]] = field(default=lambda _: {})
    """Options with which its world is made (``data``, ``faults``, ``model``, ``platformKey``, ...)."""
    model_timeout: float | None = None
    """MODEL_TIMEOUT_MS in locks; None: a third of the job's time limit."""
    own_key: bool = False
    """Whether the Runtime gets a PLATFORM_MODEL_API_KEY."""
    by_hand: bool = True
    """Whether a Runtime that was started by hand can play it, too: no signals, no restart, no start before the API."""
    slow: bool = False
    """Whether it takes long, so that it is begun before others."""
    late: bool = False
    """Whether the Runtime is started by the play (``restart``), not before it."""
    rules: tuple[str, ...] = ()
    """The rules that it is to make judgeable. Monitors of all rules look at every scenario."""


_SCENARIOS: dict[str, Scenario] = {}


def scenario(**options: Any) -> Callable[[Play], Play]:
    """Make a function a scenario: ``lock_lost_to_another`` of ``locks.py`` is ``locks.lock-lost-to-another``."""

    def register(play: Play) -> Play:
        theme = play.__module__.rpartition(".")[2]
        id_ = f"{theme}.{play.__name__.replace('_', '-')}"
        if id_ in _SCENARIOS:
            raise ValueError(f"there are two scenarios {id_}")
        title = (play.__doc__ or id_).strip().splitlines()[0].rstrip(".")
        _SCENARIOS[id_] = Scenario(id_, title, play, **options)
        return play

    return register


@cache
def all_scenarios() -> dict[str, Scenario]:
    """Every scenario by its id."""
    for module in pkgutil.iter_modules(scenarios.__path__):
        importlib.import_module(f"{scenarios.__name__}.{module.name}")
    return _SCENARIOS
