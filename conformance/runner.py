"""Runs the suites in child processes and gathers what they tell."""

from __future__ import annotations

import queue
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.catalogue import checks_by_rule
from conformance.results import NOT_RUN, CheckResult, Run, judge_rules, unjudged
from conformance.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.children import Child, Crew, Event
    from conformance.judging import Job
    from openapi import Requirement


class Suites:
    """Runs jobs, side by side or one after the other, until they end or the time is up."""

    def __init__(
        self,
        crew: Crew,
        time_limit: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        stop_at: Iterable[str] = (),
        began: float | None = None,
    ) -> None:
        """``progress`` is told how many checks of how many ended; ``stop_at``: rules whose failure ends the run.

        ``began`` is ``time.monotonic()`` of what the time limit is for, now where it is left out.
        """
        self.crew = crew
        self.checks: dict[str, CheckResult] = {}
        self.problems: list[str] = []
        self.reach: dict[str, Any] | None = None
        """What generated requests met (:class:`contract_tests.reach.Reach`); None where there were none."""
        self.stopped: str | None = None
        """Why checks were left that should have been run."""
        began = time.monotonic() if began is None else began
        self._deadline = None if time_limit is None else began + time_limit
        self._limit, self._progress, self._finished = time_limit, progress, 0
        self._stop_at = frozenset(stop_at)

    def run(self, jobs: Iterable[tuple[str, Job]]) -> None:
        """Run jobs side by side, each in a part of its suite; what they tell is added to ``checks`` and ``problems``.

        Where it stops short, children are still at work: end the crew.
        """
        try:
            self._gather({self.crew.send(part, job) for part, job in jobs})
        except KeyboardInterrupt:
            self._stop_short("interrupted before the end", "the run was interrupted")

    def _gather(self, running: set[Child]) -> None:
        while running:
            wait = None if self._deadline is None else self._deadline - time.monotonic()
            try:
                child, event = self.crew.next(None if wait is None else max(wait, 0))
            except queue.Empty:
                self._stop_short(
                    f"the time limit of {self._limit:g} s came before the end", "the time limit came first"
                )
                return
            if event is None:
                if child in running:
                    running.remove(child)
                    self.problems.append(f"the {child.name} broke off: {child.said_last()}")
                continue
            self._take(event)
            if event["event"] in ("end", "broken"):
                running.discard(child)
            if self.stopped:
                return

    def _stop_short(self, problem: str, reason: str) -> None:
        self.stopped = reason
        self.problems.append(problem)

    def not_run(self, rules: Iterable[Requirement], *, fuzz: bool) -> dict[str, str]:
        """For rules whose checks exist and of which none ended: why. Says so in the checks that were left, too."""
        reason = self.stopped or "its checks were not run"
        for check in self.checks.values():
            if check.message == NOT_RUN:
                check.message = reason
        ids = {rule.id for rule in rules}
        listed = checks_by_rule(system for system in SYSTEMS if ids & system.contract.register.keys())
        found = {}
        for id_ in ids:
            checks = listed.get(id_, [])
            if checks:
                left_out = not fuzz and all(check.fuzz for check in checks)
                found[id_] = "its checks generate requests (--no-fuzz)" if left_out else reason
        return found

    def _take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "collected":
            for item in event["checks"]:
                self.checks[item["id"]] = CheckResult(item["id"], item["title"], item["requirements"])
        elif kind == "finished":
            check = self.checks[event["id"]]
            check.finish(event)
            self._finished += 1
            if self._stop_at.intersection(check.broken(self._stop_at)):
                self.stopped = "the run stopped at the first failure (--fail-fast)"
            if check.set_up_failed and check.message not in self.problems:
                self.problems.append(str(check.message))
        elif kind == "reach":
            self.reach = _joined(self.reach, event["reach"])
        elif kind == "broken":
            self.problems.append(event["message"])
        if self._progress is not None:
            self._progress(self._finished, len(self.checks))


def _joined(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """What generated requests met in two suites: their operations are different ones."""
    if one is None:
        return other
    return {
        "requests": one["requests"] + other["requests"],
        "operations": one["operations"] | other["operations"],
        "notMet": one["notMet"] + other["notMet"],
    }


def judge(
    suites: Suites,
    rules: Sequence[Requirement],
    *,
    target: dict[str, Any],
    level: str,
    seed: int,
    began: float,
    fuzz: bool = True,
) -> Run:
    """The run, judged. ``began`` is ``time.time()`` of its start; without ``fuzz`` generated requests were left out."""
    not_run = suites.not_run(rules, fuzz=fuzz)
    checks = list(suites.checks.values())
    results = judge_rules(rules, checks, not_run=not_run)
    problems = suites.problems + unjudged(rules, checks, level)
    return Run(target, level, seed, stamp(began), round(time.time() - began, 3), results, problems, suites.reach)


def stamp(instant: float) -> str:
    """An instant (``time.time()``) as a report has it."""
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
