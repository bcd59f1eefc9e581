"""Runs the suites in child processes and gathers what they tell."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import tempfile
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.catalogue import checks_by_rule
from conformance.child import Job
from conformance.processes import held_back, python
from conformance.results import NOT_RUN, CheckResult, Run, judge_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openapi import Requirement


class Child:
    """One child process with its part of the checks."""

    def __init__(self, job: Job, events: queue.Queue[tuple[Child, dict[str, Any] | None]]) -> None:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONWARNINGS": "ignore"}
        self._scratch = tempfile.TemporaryDirectory(prefix="contract-")
        environment["HYPOTHESIS_STORAGE_DIRECTORY"] = self._scratch.name  # nothing is left in the caller's folder
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            environment.pop(name, None)
        self.job, self.ended = job, False
        self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            python("conformance.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is the parent's: it tells what was found by then
        )
        self.errors: list[str] = []
        with contextlib.suppress(BrokenPipeError):
            if self.process.stdin is not None:
                self.process.stdin.write(job.to_json())
                self.process.stdin.close()
        self._threads = [
            threading.Thread(target=self._read, args=(events,), daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, events: queue.Queue[tuple[Child, dict[str, Any] | None]]) -> None:
        for line in self.process.stdout or ():
            with contextlib.suppress(ValueError):
                events.put((self, json.loads(line)))
        self.process.wait()
        events.put((self, None))

    def _read_errors(self) -> None:
        self.errors += list(self.process.stderr or ())

    def stop(self) -> None:
        """End the child whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(timeout=5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self._scratch.cleanup()


class Suites:
    """Runs jobs, side by side or one after the other, until they end or the time is up."""

    def __init__(
        self,
        time_limit: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        stop_at: Iterable[str] = (),
    ) -> None:
        """``progress`` is told how many checks of how many ended; ``stop_at``: rules whose failure ends the run."""
        self.checks: dict[str, CheckResult] = {}
        self.problems: list[str] = []
        self.stopped: str | None = None
        """Why checks were left that should have been run."""
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._limit, self._progress, self._finished = time_limit, progress, 0
        self._stop_at = frozenset(stop_at)

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs side by side; what they tell is added to ``checks`` and ``problems``."""
        events: queue.Queue[tuple[Child, dict[str, Any] | None]] = queue.Queue()
        children: list[Child] = []
        try:
            with held_back():
                children += (Child(job, events) for job in jobs)
            self._gather(children, events)
        except KeyboardInterrupt:
            self._stop_short("interrupted before the end", "the run was interrupted")
        finally:
            for child in children:
                child.stop()

    def _gather(self, children: list[Child], events: queue.Queue[tuple[Child, dict[str, Any] | None]]) -> None:
        running = set(children)
        while running:
            wait = None if self._deadline is None else self._deadline - time.monotonic()
            try:
                child, event = events.get(timeout=None if wait is None else max(wait, 0))
            except queue.Empty:
                self._stop_short(
                    f"the time limit of {self._limit:g} s came before the end", "the time limit came first"
                )
                return
            if event is None:
                running.discard(child)
                if not child.ended:
                    tail = "".join(child.errors[-5:]).strip() or f"exit status {child.process.returncode}"
                    self.problems.append(f"the {child.job.part} checks broke off: {tail}")
            else:
                self._take(child, event)
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
        listed = checks_by_rule()
        found = {}
        for rule in rules:
            checks = listed.get(rule.id, [])
            if checks:
                left_out = not fuzz and all(check.fuzz for check in checks)
                found[rule.id] = "its checks generate requests (--no-fuzz)" if left_out else reason
        return found

    def _take(self, child: Child, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "collected":
            for item in event["checks"]:
                self.checks[item["id"]] = CheckResult(item["id"], item["title"], item["requirements"])
        elif kind == "finished":
            check = self.checks[event["id"]]
            check.finish(event)
            self._finished += 1
            if check.status == "failed" and self._stop_at.intersection(check.requirements):
                self.stopped = "the run stopped at the first failure (--fail-fast)"
            if check.set_up_failed and check.message not in self.problems:
                self.problems.append(str(check.message))
        elif kind == "broken":
            child.ended = True
            self.problems.append(event["message"])
        elif kind == "end":
            child.ended = True
        if self._progress is not None:
            self._progress(self._finished, len(self.checks))


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
    results = judge_rules(rules, list(suites.checks.values()), not_run=not_run)
    started = datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Run(target, level, seed, started, round(time.time() - began, 3), results, suites.problems)
