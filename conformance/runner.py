"""Runs the suites in child processes and gathers what they tell."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.child import Job
from conformance.results import CheckResult, Run, judge_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from openapi import Requirement


class Child:
    """One child process with its part of the checks."""

    def __init__(self, job: Job, events: queue.Queue[tuple[Child, dict[str, Any] | None]]) -> None:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONWARNINGS": "ignore"}
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            environment.pop(name, None)
        self.job, self.ended = job, False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "conformance.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
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


class Suites:
    """Runs jobs, side by side or one after the other, until they end or the time is up."""

    def __init__(self, time_limit: float | None = None, progress: Callable[[int, int], None] | None = None) -> None:
        self.checks: dict[str, CheckResult] = {}
        self.problems: list[str] = []
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._limit, self._progress, self._finished = time_limit, progress, 0

    def run(self, jobs: Sequence[Job]) -> None:
        """Run jobs side by side; what they tell is added to ``checks`` and ``problems``."""
        events: queue.Queue[tuple[Child, dict[str, Any] | None]] = queue.Queue()
        children = [Child(job, events) for job in jobs]
        try:
            self._gather(children, events)
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
                self.problems.append(f"the time limit of {self._limit:g} s came before the end")
                for check in self.checks.values():
                    if check.message == "not run":
                        check.message = "the time limit came first"
                return
            if event is None:
                running.discard(child)
                if not child.ended:
                    tail = "".join(child.errors[-5:]).strip() or f"exit status {child.process.returncode}"
                    self.problems.append(f"the {child.job.part} checks broke off: {tail}")
            else:
                self._take(child, event)

    def _take(self, child: Child, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "collected":
            for item in event["checks"]:
                self.checks[item["id"]] = CheckResult(item["id"], item["title"], item["requirements"])
        elif kind == "finished":
            check = self.checks[event["id"]]
            check.finish(event)
            self._finished += 1
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
    suites: Suites, rules: Iterable[Requirement], *, target: dict[str, Any], level: str, seed: int, began: float
) -> Run:
    """The run, judged. ``began`` is ``time.time()`` of its start."""
    results = judge_rules(rules, list(suites.checks.values()))
    started = datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Run(target, level, seed, started, round(time.time() - began, 3), results, suites.problems)
