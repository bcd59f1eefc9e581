"""``contract check``: judge a build, or without a target the reference itself."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from conformance import reference
from conformance.catalogue import checks_by_rule
from conformance.children import Crew
from conformance.cli import config_option
from conformance.commands.options import (
    common_options,
    host,
    key,
    reports,
    selected,
    signing_secret,
    timings,
    url,
    wanted,
)
from conformance.commands.running import Inconclusive, interruptible, run_checks
from conformance.judging import Job
from conformance.preflight import preflight
from conformance.systems import AGENT_HUB, RUNTIME_API, SYSTEMS, System

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi import Requirement

Planned = tuple[System, str, tuple[int, int]]
"""A part of a system's suite, and which share of its checks, of how many."""


@click.group(invoke_without_command=True, short_help="Judge a build by the contract; without a target, the reference.")
@common_options()
@config_option("check")
@click.option("--mutant", metavar="ID", help="Judge the reference with this seeded fault (it should be found).")
@click.pass_context
def check(context: click.Context, /, mutant: str | None, **options: Any) -> None:
    """Judge a build by the contract.

    Without a target: serve the reference of both APIs, judge it in virtual time, print the verdict.
    """
    if context.invoked_subcommand is not None:
        _nothing_before(context, context.invoked_subcommand)
        return
    rules = selected(options, SYSTEMS)
    options["reports"] = reports(options["reports"])
    if options["timing"]:
        raise click.UsageError("--timing is for builds with limits of their own; the reference has the contract's")
    if mutant is not None:
        from mock_server.mutants import find  # the server's own imports: a fifth of a second

        try:
            find(mutant)
        except ValueError as error:
            raise click.UsageError(f"--mutant: {error}") from None
    side_by_side = options["workers"] != 1
    parts = planned(rules, fuzz=not options["no_fuzz"], side_by_side=side_by_side)
    settings = {system: system.made_up() for system in SYSTEMS}
    with interruptible(), Crew() as crew:
        crew.prepare((system.name, part) for system, part, _ in parts)  # they collect while the reference starts
        with reference_served(reference.variables(settings.items()), mutant) as base_url:
            jobs = []
            for system, part, shard in parts:
                world = reference.make_world(base_url)
                job = job_for(system, world, settings[system], system.states_url(world), rules, options)
                jobs.append((part, replace(job, shard=shard)))
            target = {"kind": "reference", "baseUrl": base_url} | ({"mutant": mutant} if mutant else {})
            run_checks(crew, jobs, rules, options, target, side_by_side=side_by_side)


def planned(rules: list[Requirement], *, fuzz: bool, side_by_side: bool) -> list[Planned]:
    """What the self-check has to run for these rules: no part of a suite in which none of them has a check."""
    plan: list[Planned] = []
    for system in SYSTEMS:
        listed = checks_by_rule([system])
        kinds = {check.fuzz for rule in rules for check in listed.get(rule.id, ())}
        shares = system.shares if side_by_side else 1
        if False in kinds:
            plan += [
                (system, f"scenarios#{share + 1}" if share else "scenarios", (share, shares)) for share in range(shares)
            ]
        if True in kinds and fuzz:
            plan.append((system, "fuzz", (0, 1)))
    return plan


@contextlib.contextmanager
def reference_served(variables: Mapping[str, str], mutant: str | None) -> Iterator[str]:
    """The reference on a free port, with a clock that stands."""
    extra = ("--mutant", mutant) if mutant else ()
    try:
        with reference.serve(variables, "--clock", "manual", *extra) as base_url:
            yield base_url
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
@common_options(RUNTIME_API)
@config_option("check.runtime-api")
def runtime_api(base_url: str, api_key: str, provider_states: str | None, **options: Any) -> None:
    """Judge a real build of the Runtime API over HTTP."""
    judge_build(RUNTIME_API, base_url, {"api_key": key("--api-key", api_key)}, provider_states, options)


@check.command("agent-hub", short_help="A real Agent Hub build, as a server.")
@click.option("--base-url", required=True, metavar="URL", help="Where the build answers; /v1 is below it.")
@click.option(
    "--token", envvar="CONTRACT_HUB_TOKEN", default="zqa_live_test", help="An API key of it [CONTRACT_HUB_TOKEN]."
)
@click.option(
    "--second-token",
    envvar="CONTRACT_HUB_TOKEN_B",
    help="Another API key of it [CONTRACT_HUB_TOKEN_B; default: the first and `_b`, where the build takes that].",
)
@click.option(
    "--provider-states", metavar="URL", help="Its provider-state endpoint; without it most rules are skipped."
)
@click.option(
    "--webhook-host",
    default="127.0.0.1",
    show_default=True,
    metavar="HOST",
    help="The host name under which the build reaches this machine, where its webhooks are received.",
)
@click.option(
    "--webhook-secret",
    envvar="CONTRACT_WEBHOOK_SECRET",
    help="What it signs webhooks with [CONTRACT_WEBHOOK_SECRET]; without it signatures are not judged.",
)
@common_options(AGENT_HUB)
@config_option("check.agent-hub")
def agent_hub(
    base_url: str,
    token: str,
    second_token: str | None,
    provider_states: str | None,
    webhook_host: str,
    webhook_secret: str | None,
    **options: Any,
) -> None:
    """Judge a real build of the Agent Hub over HTTP."""
    settings = {
        "token": key("--token", token),
        "second_token": None if second_token is None else key("--second-token", second_token),
        "webhook_host": host("--webhook-host", webhook_host),
        "webhook_secret": signing_secret("--webhook-secret", webhook_secret),
    }
    if settings["second_token"] == settings["token"]:
        raise click.UsageError("--second-token is the same as --token; give a key of its own, or leave it out")
    judge_build(AGENT_HUB, base_url, settings, provider_states, options)


def judge_build(
    system: System, base_url: str, settings: dict[str, Any], provider_states: str | None, options: dict[str, Any]
) -> None:
    """Judge a build of a system that somebody serves; ends the process with the verdict's exit status."""
    rules = selected(options, [system])
    options["reports"] = reports(options["reports"])
    base_url = url("--base-url", base_url)
    states = url("--provider-states", provider_states) if provider_states else None
    job = job_for(system, base_url, settings, states, rules, options)
    target = {"kind": system.name, "baseUrl": base_url}
    part = "scenarios" if options["no_fuzz"] else "all"
    with interruptible(), Crew() as crew:
        problem = asyncio.run(preflight(system, base_url, settings))  # the job holds `settings`: it may add a key
        run_checks(crew, [(part, job)], rules, options, target, side_by_side=False, problem=problem)


def job_for(
    system: System,
    base_url: str,
    settings: dict[str, Any],
    states: str | None,
    rules: list[Requirement],
    options: dict[str, Any],
) -> Job:
    """What a child is to do; ``states`` is the provider-state endpoint, None without."""
    return Job(
        system.name,
        base_url,
        settings,
        states,
        options["seed"],
        timings(system, options["timing"]),
        wanted(system, rules, options),
        traffic=bool(options["reports"]),
        fuzz_examples=options["fuzz_examples"],
    )


def _nothing_before(context: click.Context, target: str) -> None:
    """Options of the group that stand before a target would be lost."""
    for parameter in context.command.params:
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            option = parameter.opts[0]
            raise click.UsageError(f"{option} stands before `{target}`, where it has no effect; write it after")
