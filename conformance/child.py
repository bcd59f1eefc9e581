"""Inside the child process: pytest collects a suite's checks once, then job after job is run on them.

pytest gives collection, parameters and rewritten assertions. Running is done by :mod:`conformance.judging`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from conformance.judging import Job, JobRun, marked
from conformance.systems import FUZZ_FILES, find

if TYPE_CHECKING:
    from collections.abc import Iterable


class Plugin:
    """Runs the collected checks instead of pytest's own loop."""

    def __init__(self, part: str, jobs: Iterable[str], events: TextIO) -> None:
        """``part`` is ``scenarios``, ``fuzz`` or ``all``; ``jobs`` are lines of JSON."""
        self.part, self.jobs, self.events = part, jobs, events
        self._problem: str | None = None

    def tell(self, event: str, **fields: Any) -> None:
        """Tell the parent something."""
        self.events.write(json.dumps({"event": event, **fields}, ensure_ascii=True) + "\n")
        self.events.flush()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A suite that can't be collected leaves every job without a verdict."""
        if report.failed:
            self._problem = f"{report.nodeid} can't be collected: {str(report.longrepr).splitlines()[-1]}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the checks of this part."""
        items[:] = [item for item in items if self.part in ("all", "fuzz" if marked(item, "fuzz") else "scenarios")]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run every job that comes, until no more come."""
        for line in self.jobs:
            job = Job(**json.loads(line))
            if self._problem:
                self.tell("broken", message=self._problem)
            else:
                JobRun(job, self.tell).run(session.items)
        return True


def main() -> int:
    """Run the jobs that stand on standard input, a line each: ``python -m conformance.child SYSTEM PART``.

    Events go to standard output.
    """
    name, part = sys.argv[1:]
    events = sys.stdout
    sys.stdout = sys.stderr
    suite = find(name).folder
    ini = Path(__file__).with_name("suites.ini")
    arguments = ["-c", str(ini), "--rootdir", str(suite), "-p", "no:cacheprovider"]
    arguments += ["-p", "no:terminal", "--import-mode=importlib"]
    if part == "scenarios":
        arguments.append(f"--ignore-glob=*/{FUZZ_FILES}")  # importing a generator takes longer than many checks
    files = list(suite.glob(FUZZ_FILES)) if part == "fuzz" else []
    arguments += map(str, files or [suite])
    return int(pytest.main(arguments, plugins=[Plugin(part, sys.stdin, events)]))


if __name__ == "__main__":
    raise SystemExit(main())
