"""``contract check``: judge a build, or without a target the reference itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import openapi
from conformance import reference
from conformance.children import Crew
from conformance.cli import config_option
from conformance.commands.options import (
    REPORTS,
    SUITE,
    common_options,
    key,
    reports,
    selected,
    stop_at,
    timings,
    url,
    wanted,
)
from conformance.http_transport import HttpTransport
from conformance.judging import Job
from conformance.processes import ENDING
from conformance.report.console import render
from conformance.runner import Suites, judge
from contract_tests.checks import CheckFailed, Silent, TargetVanished
from contract_tests.client import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi import Requirement


@click.group(invoke_without_command=True, short_help="Judge a build by the contract; without a target, the reference.")
@common_options
@config_option("check")
@click.option("--mutant", metavar="ID", help="Judge the reference with this seeded fault (it should be found).")
@click.pass_context
def check(context: click.Context, /, mutant: str | None, **options: Any) -> None:
    """Judge a build by the contract.

    Without a target: serve the reference, judge it in virtual time, print the verdict.
    """
    if context.invoked_subcommand is not None:
        _nothing_before(context, context.invoked_subcommand)
        return
    rules = selected(options)
    options["reports"] = reports(options["reports"])
    if options["timing"]:
        raise click.UsageError("--timing is for builds with limits of their own; the reference has the contract's")
    if mutant is not None:
        from mock_server.mutants import find  # the server's own imports: a fifth of a second

        try:
            find(mutant)
        except ValueError as error:
            raise click.UsageError(f"--mutant: {error}") from None
    api_key = f"key-{random.SystemRandom().getrandbits(64):016x}"
    side_by_side = options["workers"] != 1
    shards = {"scenarios": (0, 2), "scenarios#2": (1, 2)} if side_by_side else {"scenarios": (0, 1)}
    parts = [*shards] if options["no_fuzz"] else [*shards, "fuzz"]
    with interruptible(), Crew(SUITE) as crew:
        crew.prepare(parts)  # they collect while the reference starts
        with reference_served(api_key, mutant) as base_url:
            jobs = {}
            for part in parts:
                world = reference.make_world(base_url)
                states = f"{world}/__control__/provider-states/runtime-api"
                jobs[part] = job_for(world, api_key, states, rules, options)
                jobs[part].shard = shards.get(part, (0, 1))
            target = {"kind": "reference", "baseUrl": base_url} | ({"mutant": mutant} if mutant else {})
            run_checks(crew, jobs, rules, options, target, api_key, side_by_side=side_by_side)


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
@config_option("check.runtime-api")
def runtime_api(base_url: str, api_key: str, provider_states: str | None, **options: Any) -> None:
    """Judge a real build of the Runtime API over HTTP."""
    rules = selected(options)
    options["reports"] = reports(options["reports"])
    base_url, api_key = url("--base-url", base_url), key("--api-key", api_key)
    states = url("--provider-states", provider_states) if provider_states else None
    part = "scenarios" if options["no_fuzz"] else "all"
    job = job_for(base_url, api_key, states, rules, options)
    target = {"kind": "runtime-api", "baseUrl": base_url}
    with interruptible(), Crew(SUITE) as crew:
        problem = asyncio.run(preflight(base_url, api_key))
        run_checks(crew, {part: job}, rules, options, target, api_key, side_by_side=False, problem=problem)


def job_for(base_url: str, api_key: str, states: str | None, rules: list[Requirement], options: dict[str, Any]) -> Job:
    """What a child is to do; ``states`` is the provider-state endpoint, None without."""
    timing = timings(options["timing"])
    seed, examples, traffic = options["seed"], options["fuzz_examples"], bool(options["reports"])
    return Job("runtime-api", base_url, api_key, states, seed, timing, wanted(rules, options), traffic, examples)


def _nothing_before(context: click.Context, target: str) -> None:
    """Options of the group that stand before a target would be lost."""
    for parameter in context.command.params:
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            option = parameter.opts[0]
            raise click.UsageError(f"{option} stands before `{target}`, where it has no effect; write it after")


class Inconclusive(click.ClickException):
    """No verdict: exit 3."""

    exit_code = 3

    def show(self, file: Any = None) -> None:
        """The reason, then the verdict's word."""
        click.echo(f"{self.format_message()}\ninconclusive", err=True, file=file)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C and a polite kill end the children, too, and leave the run without a verdict: exit 3."""
    for number in ENDING:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise Inconclusive("interrupted") from None


@contextlib.contextmanager
def reference_served(api_key: str, mutant: str | None) -> Iterator[str]:
    """The reference on a free port, with a clock that stands."""
    extra = ("--mutant", mutant) if mutant else ()
    try:
        with reference.serve(api_key, "--clock", "manual", *extra) as base_url:
            yield base_url
    except reference.ReferenceFailed as error:
        raise Inconclusive(f"the reference server does not run: {error}") from None


async def preflight(base_url: str, api_key: str) -> str | None:
    """What makes judging the target pointless, in a sentence; None where it can be judged.

    A target that is down, one that never answered, and one that refuses the key are not shown to be wrong.
    """
    call = RuntimeApi(HttpTransport(base_url, api_key), api_key).poll(types=["quiz_generation"], limit=1)
    try:
        answer = await call.answers()
    except TargetVanished as vanished:
        return f"{vanished}. Is the build running, and is --base-url right?"
    except Silent as silence:
        return f"{base_url} takes connections and never answers: {silence.actual}"
    except CheckFailed:
        return None  # it does answer: what is wrong with that is for the checks to tell
    if answer.status in (401, 403):
        return f"{base_url} refuses the key ({answer.status}); give its service token as CONTRACT_API_KEY or --api-key"
    return None


def run_checks(
    crew: Crew,
    jobs: dict[str, Job],
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
    suites = Suites(crew, options["time_limit"], progress if sys.stderr.isatty() else None, stop_at(rules, options))
    if problem is not None:
        suites.problems.append(problem)
        jobs = {}
    for group in [jobs] if side_by_side else [{part: job} for part, job in jobs.items()]:
        suites.run(group)
        if suites.problems or suites.stopped:
            break
    if sys.stderr.isatty():
        click.echo("\r\033[K", nl=False, err=True)
    fuzz, level, seed = not options["no_fuzz"], options["level"], options["seed"]
    run = judge(suites, rules, target=target, level=level, seed=seed, began=began, fuzz=fuzz)
    redactor = openapi.load("runtime-api").redactor([api_key])
    click.echo(render(run, redactor), nl=False)
    for format_, path in options["reports"]:
        try:
            path.write_text(REPORTS[format_](run, redactor), encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--report {format_}={path}: can't be written: {error.strerror}") from None
    sys.exit(run.exit_status)


def progress(finished: int, known: int) -> None:
    """One line on a terminal that is written over."""
    click.echo(f"\r{finished} of {known} checks", nl=False, err=True)
