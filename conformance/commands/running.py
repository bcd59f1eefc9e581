"""Runs what a command asks for, prints the page, writes the reports, and ends with the verdict's exit status."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

import click

from conformance.commands.options import REPORTS, stop_at
from conformance.processes import ENDING
from conformance.report.console import render
from conformance.runner import Suites, judge
from conformance.systems import find, redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.children import Crew
    from conformance.judging import Job
    from conformance.results import Run
    from openapi import Requirement
    from openapi.redaction import Redactor

    Format = Callable[[Run, Redactor], str]


class Inconclusive(click.ClickException):
    """No verdict: exit 3."""

    exit_code = 3

    def show(self, file: Any = None) -> None:
        """The reason, then the verdict's word."""
        click.echo(f"{self.format_message()}\ninconclusive", err=True, file=file)


def _as_ctrl_c(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and a polite kill end the children, too, and leave the run without a verdict: exit 3.

    All are dealt with as Ctrl-C is: by ``KeyboardInterrupt``, but in an event loop, where that could come at any point
    of any task, asyncio cancels the main task instead, so that all can clean up.
    """
    for number in ENDING:
        signal.signal(number, _as_ctrl_c)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # we do end
        raise Inconclusive("interrupted") from None


def run_checks(
    crew: Crew,
    groups: Sequence[Sequence[tuple[str, Job]]],
    rules: list[Requirement],
    options: dict[str, Any],
    target: dict[str, Any],
    *,
    problem: str | None = None,
    began: float | None = None,
) -> None:
    """Run, print, write reports; ends the process with the verdict's exit status.

    Jobs come with the part of the suite that takes them, in groups: those of a group side by side, each by a child of
    its own. ``problem`` is why they are not even begun. ``began``: ``time.monotonic()`` of the start, from which the
    time limit counts.
    """
    since = time.monotonic() if began is None else began
    started = time.time() - (time.monotonic() - since)
    shows = progress if sys.stderr.isatty() else None
    suites = Suites(crew, options["time_limit"], shows, stop_at(rules, options), since)
    if problem is not None:
        suites.problems.append(problem)
    for group in groups if problem is None else []:
        suites.run(group)
        if suites.problems or suites.stopped:
            break
    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)
    fuzz, level, seed = not options["no_fuzz"], options["level"], options["seed"]
    run = judge(suites, rules, target=target, level=level, seed=seed, began=started, fuzz=fuzz)
    clean = redactor((find(job.system), job.settings) for group in groups for _, job in group)
    for token in {job.control_token for group in groups for _, job in group if job.control_token is not None}:
        clean.add(token)
    tell(run, clean, options["reports"], REPORTS)


def tell(run: Run, clean: Redactor, reports: Iterable[tuple[str, Path]], formats: Mapping[str, Format]) -> NoReturn:
    """Print the page, write the reports; ends the process with the verdict's exit status."""
    click.echo(render(run, clean), nl=False)
    for format_, path in reports:
        try:
            path.write_text(formats[format_](run, clean), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--report {format_}={path}: can't be written: {error.strerror}") from None
    sys.exit(run.exit_status)


def progress(finished: int, known: int, what: str = "checks") -> None:
    """One line on a terminal that is written over."""
    click.echo(f"\r{finished} of {known} {what}", nl=False, err=True)
