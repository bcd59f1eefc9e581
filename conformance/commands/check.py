"""``contract check``: judge a build, or without a target the reference itself."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import math
import random
import signal
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import openapi
from conformance import reference
from conformance.child import Job
from conformance.http_transport import HttpTransport
from conformance.report.console import render
from conformance.report.json_report import to_json
from conformance.runner import Suites, judge
from contract_tests.checks import CheckFailed, TargetVanished
from contract_tests.client import RuntimeApi
from contract_tests.given import Timing
from openapi.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from openapi import Requirement

REPORTS = {"json": to_json}
SUITE = "runtime_api"
_TIMINGS = tuple(field.name for field in fields(Timing))


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every kind of check."""
    for option in reversed(
        [
            click.option("--only", multiple=True, metavar="GLOB", help="Only rules whose id matches (repeatable)."),
            click.option("--skip", multiple=True, metavar="GLOB", help="No rules whose id matches (repeatable)."),
            click.option("--level", type=click.Choice(["seed", "full"]), default="full", show_default=True),
            click.option(
                "--timing", metavar="K=V,...", help=f"The build's own timing, seconds: {', '.join(_TIMINGS)}."
            ),
            click.option(
                "--report", "reports", multiple=True, metavar="FORMAT=PATH", help="Write a report: json (repeatable)."
            ),
            click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same requests."),
            click.option("--workers", type=click.IntRange(1, 8), help="Child processes [default: 2, a real build 1]."),
            click.option(
                "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds for it all."
            ),
            click.option("--fail-fast", is_flag=True, help="Stop at the first failed check."),
            click.option("--no-fuzz", is_flag=True, help="Leave out checks that generate their requests."),
        ]
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True, short_help="Judge a build by the contract; without a target, the reference.")
@common_options
@click.option("--mutant", metavar="ID", help="Judge the reference with this seeded fault (it should be found).")
@click.pass_context
def check(context: click.Context, /, mutant: str | None, **options: Any) -> None:
    """Judge a build by the contract.

    Without a target: serve the reference, judge it in virtual time, print the verdict.
    """
    if context.invoked_subcommand is not None:
        return
    interruptible()
    rules = selected(options)
    if options["timing"]:
        raise click.UsageError("--timing is for builds with limits of their own; the reference has the contract's")
    if mutant is not None:
        nearest(mutant)
    api_key = f"key-{random.SystemRandom().getrandbits(64):016x}"
    with reference_served(api_key, mutant) as (base_url, worlds):
        jobs = [
            Job(
                world,
                api_key,
                states_of(world),
                SUITE,
                part,
                options["seed"],
                {},
                wanted(rules, options),
                options["fail_fast"],
            )
            for part, world in worlds(options["no_fuzz"])
        ]
        target = {"kind": "reference", "baseUrl": base_url} | ({"mutant": mutant} if mutant else {})
        run_checks(jobs, rules, options, target, api_key, side_by_side=options["workers"] != 1)


@contextlib.contextmanager
def reference_served(api_key: str, mutant: str | None) -> Iterator[tuple[str, Callable[[bool], list[tuple[str, str]]]]]:
    """The reference on a free port, with a maker of one world for each part of the checks."""
    extra = ("--mutant", mutant) if mutant else ()
    try:
        with reference.serve(api_key, "--clock", "manual", *extra) as base_url:

            def worlds(no_fuzz: bool) -> list[tuple[str, str]]:
                parts = ["scenarios"] if no_fuzz else ["scenarios", "fuzz"]
                return [(part, reference.make_world(base_url)) for part in parts]

            yield base_url, worlds
    except reference.ReferenceFailed as error:
        raise Inconclusive(f"the reference server does not run: {error}") from None


@check.command("runtime-api", short_help="A real Runtime API build, as a server.")
@click.option(
    "--base-url", required=True, metavar="URL", help="Where the build answers; /internal/runtime is below it."
)
@click.option(
    "--api-key", envvar="CONTRACT_API_KEY", default="test-internal-key", help="Its service token [CONTRACT_API_KEY]."
)
@click.option(
    "--provider-states", metavar="URL", help="Its provider-state endpoint; without it most rules are skipped."
)
@common_options
def runtime_api(base_url: str, api_key: str, provider_states: str | None, **options: Any) -> None:
    """Judge a real build of the Runtime API over HTTP."""
    interruptible()
    rules = selected(options)
    base_url = base_url.rstrip("/")
    if not base_url.startswith(("http://", "https://")):
        raise click.UsageError(f"--base-url: `{base_url}` is no URL; write http://host:port")
    part = "scenarios" if options["no_fuzz"] else "all"
    timing = timings(options["timing"])
    asked = wanted(rules, options)
    job = Job(base_url, api_key, provider_states, SUITE, part, options["seed"], timing, asked, options["fail_fast"])
    target = {"kind": "runtime-api", "baseUrl": base_url}
    problem = asyncio.run(preflight(base_url, api_key))
    run_checks([job], rules, options, target, api_key, side_by_side=False, problem=problem)


class Inconclusive(click.ClickException):
    """No verdict: exit 3."""

    exit_code = 3

    def show(self, file: Any = None) -> None:
        """The reason, then the verdict's word."""
        click.echo(f"{self.format_message()}\ninconclusive", err=True, file=file)


def states_of(world: str) -> str:
    """The provider-state endpoint of a world of the mock."""
    return f"{world}/__control__/provider-states/runtime-api"


def nearest(mutant: str) -> None:
    """Raises ``click.UsageError`` for an unknown seeded fault."""
    from mock_server.mutants import registry

    if mutant not in registry():
        near = difflib.get_close_matches(mutant, registry(), 1)
        mend = f"did you mean `{near[0]}`?" if near else "`contract mutants list` shows them"
        raise click.UsageError(f"no seeded fault is named `{mutant}`; {mend}")


async def preflight(base_url: str, api_key: str) -> str | None:
    """What makes judging the target pointless, in a sentence; None where it can be judged.

    A target that is down, one that never answered, and one that refuses the key are not shown to be wrong.
    """
    call = RuntimeApi(HttpTransport(base_url, api_key), api_key).poll(types=["quiz_generation"], limit=1)
    try:
        answer = await call.answers()
    except TargetVanished as vanished:
        return f"{vanished}. Is the build running, and is --base-url right?"
    except CheckFailed as failure:
        if "none within" in failure.actual:
            return f"{base_url} takes connections and never answers: {failure.actual}"
        return None
    if answer.status in (401, 403):
        return f"{base_url} refuses the key ({answer.status}); give its service token as CONTRACT_API_KEY or --api-key"
    return None


def selected(options: dict[str, Any]) -> list[Requirement]:
    """The rules that are asked for. Raises ``click.UsageError`` when there are none."""
    rules = openapi.load("runtime-api").register.select(options["only"], options["skip"])
    if not rules:
        filters = " ".join(
            [*(f"--only {glob}" for glob in options["only"]), *(f"--skip {glob}" for glob in options["skip"])]
        )
        raise click.UsageError(f"{filters} leaves no rule; `contract requirements` lists the ids")
    for report in options["reports"]:
        format_, _, path = report.partition("=")
        if format_ not in REPORTS or not path:
            raise click.UsageError(f"--report {report}: write FORMAT=PATH with one of {', '.join(REPORTS)}")
        if not Path(path).absolute().parent.is_dir():
            raise click.UsageError(f"--report {report}: the folder {Path(path).parent} does not exist")
    return rules


def wanted(rules: list[Requirement], options: dict[str, Any]) -> list[str] | None:
    """Ids of the rules to be checked; None for all."""
    return [rule.id for rule in rules] if options["only"] or options["skip"] else None


def timings(text: str | None) -> dict[str, float]:
    """``lock=3,timeout=6`` as numbers. Raises ``click.UsageError``."""
    found: dict[str, float] = {}
    for item in filter(None, (text or "").split(",")):
        name, _, value = item.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise click.UsageError(f"--timing {item}: `{value}` is no number of seconds") from None
        if name.strip() not in _TIMINGS or not 0 < found[name.strip()] < math.inf:
            raise click.UsageError(f"--timing {item}: write one of {', '.join(_TIMINGS)} and seconds above 0")
    return found


def interruptible() -> None:
    """Let SIGTERM end a check as Ctrl-C does: child processes are ended, the verdict is told as inconclusive."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def run_checks(
    jobs: list[Job],
    rules: list[Requirement],
    options: dict[str, Any],
    target: dict[str, Any],
    api_key: str,
    *,
    side_by_side: bool,
    problem: str | None = None,
) -> None:
    """Run, print, write reports; ends the process with the verdict's exit status."""
    began = time.time()
    suites = Suites(options["time_limit"], progress if sys.stderr.isatty() else None)
    if problem is not None:
        suites.problems.append(problem)
        jobs = []
    try:
        for group in [jobs] if side_by_side else [[job] for job in jobs]:
            suites.run(group)
            failed = any(item.status == "failed" for item in suites.checks.values())
            if suites.problems or (failed and options["fail_fast"]):
                break
    except KeyboardInterrupt:
        suites.problems.append("it was interrupted before the end")
    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)
    run = judge(suites, rules, target=target, level=options["level"], seed=options["seed"], began=began)
    redactor = Redactor([api_key], openapi.load("runtime-api").document["x-redaction"]["pattern"])
    for report in options["reports"]:
        format_, _, path = report.partition("=")
        try:
            Path(path).write_text(REPORTS[format_](run, redactor), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--report {report}: can't be written: {error.strerror}") from None
    click.echo(render(run, redactor), nl=False)
    sys.exit(run.exit_status)


def progress(finished: int, known: int) -> None:
    """One line on a terminal that is written over."""
    click.echo(f"\r{finished} of {known} checks", nl=False, err=True)
