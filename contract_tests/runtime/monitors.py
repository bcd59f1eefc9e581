"""The frame of the monitors: each is one pure function for one rule, from a history to findings.

A monitor yields :func:`kept` for every situation in which the rule could have been broken and was not, and
:func:`broken` for every one in which it was. One that yields nothing says that the situation never arose: the rule is
untested, not passed. One that raises is *unknown*, never a pass.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import contract_tests.runtime.rules as rules
from contract_tests.runtime.calls import Call
from contract_tests.runtime.history import History


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one situation. ``at``: seconds; ``call`` is where it shows, None where it is no call."""

    at: float
    call: Call | None
    broken: bool
    expected: str = ""
    actual: str = ""


def kept(where: Call | float) -> Finding:
    """The rule could have been broken here, and was not."""
    return _finding(where, broken=False)


def broken(where: Call | float, expected: str, actual: str) -> Finding:
    """The rule was broken here. Texts are parts of sentences: ``expected: a heartbeat within 60 s``."""
    return _finding(where, broken=True, expected=expected, actual=actual)


def _finding(where: Call | float, *, broken: bool, expected: str = "", actual: str = "") -> Finding:
    if isinstance(where, Call):
        return Finding(where.sent, where, broken, expected, actual)
    return Finding(where, None, broken, expected, actual)


Judge = Callable[[History], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Monitor:
    """One monitor: its rule, its name (``heartbeats.gap``), what it looks at, and the function."""

    rule: str
    name: str
    title: str
    judge: Judge


@dataclass(frozen=True)
class Outcome:
    """What a monitor said of a history: ``passed``, ``failed``, ``untested`` or ``unknown``."""

    monitor: Monitor
    status: str
    findings: list[Finding] = field(default_factory=list)
    problem: str | None = None
    """Why it is unknown."""

    @property
    def broken(self) -> list[Finding]:
        """Where the rule was broken, in order."""
        return sorted((finding for finding in self.findings if finding.broken), key=lambda finding: finding.at)


_MONITORS: dict[str, Monitor] = {}


def monitor(rule: str) -> Callable[[Judge], Judge]:
    """Make a function the monitor of one rule. Raises ``ValueError`` where the rule has one already."""

    def register(judge: Judge) -> Judge:
        if rule in _MONITORS:
            raise ValueError(f"{rule} has two monitors: {_MONITORS[rule].name} and {judge.__name__}")
        area = judge.__module__.rpartition(".")[2]
        title = (judge.__doc__ or judge.__name__).strip().splitlines()[0].rstrip(".")
        _MONITORS[rule] = Monitor(rule, f"{area}.{judge.__name__}", title, judge)
        return judge

    return register


@cache
def monitors() -> dict[str, Monitor]:
    """Every monitor by its rule."""
    for module in pkgutil.iter_modules(rules.__path__):
        importlib.import_module(f"{rules.__name__}.{module.name}")
    return _MONITORS


def judge(history: History, only: set[str] | None = None) -> list[Outcome]:
    """What every monitor (``only``: of these rules) says of a history, in order of rules."""
    return [run(monitor, history) for rule, monitor in sorted(monitors().items()) if only is None or rule in only]


def run(monitor: Monitor, history: History) -> Outcome:
    """What one monitor says. Whatever it raises makes its rule unknown."""
    try:
        findings = list(monitor.judge(history))
    except Exception as error:  # a fault of ours is no verdict on the build
        return Outcome(monitor, "unknown", problem=f"the monitor {monitor.name} broke: {type(error).__name__}: {error}")
    status = "failed" if any(finding.broken for finding in findings) else "passed" if findings else "untested"
    return Outcome(monitor, status, findings)
