"""``contract check``: judge a build, or without a target the reference itself."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from conformance import reference
from conformance.catalogue import checks_by_rule
from conformance.children import Crew
from conformance.cli import config_option
from conformance.commands.check_runtime import runtime
from conformance.commands.options import (
    common_options,
    host,
    key,
    reports,
    selected,
    signing_secret,
    states_options,
    timings,
    url,
    wanted,
)
from conformance.commands.running import Inconclusive, interruptible, run_checks
from conformance.judging import Job
from conformance.preflight import preflight
from conformance.systems import AGENT_HUB, RUNTIME_API, SYSTEMS, USUAL, Kind, System

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi import Requirement


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
    plan = planned(rules, fuzz=not options["no_fuzz"], side_by_side=options["workers"] != 1)
    settings = {system: system.made_up() for system in SYSTEMS}
    with interruptible(), Crew() as crew:
        # they collect while the reference starts
        crew.prepare((item.system.name, item.part) for group in plan for item in group)
        with reference_served(reference.variables(settings.items()), mutant) as base_url:
            groups = [[_served(item, base_url, settings[item.system], options) for item in group] for group in plan]
            target = {"kind": "reference", "baseUrl": base_url} | ({"mutant": mutant} if mutant else {})
            run_checks(crew, groups, rules, options, target)


@dataclass(frozen=True)
class Planned:
    """What a child is to do in the self-check: a share of a part of a system's suite, for a target of a kind."""

    system: System
    part: str
    kind: Kind
    rules: list[str]
    shard: tuple[int, int] = (0, 1)


def planned(rules: list[Requirement], *, fuzz: bool, side_by_side: bool) -> list[list[Planned]]:
    """What the self-check has to run for these rules, in groups, one after the other, each of them side by side.

    No part of a suite is run in which none of the rules has a check.
    """
    first: list[Planned] = []
    more: list[Planned] = []
    for system in SYSTEMS:
        listed = checks_by_rule([system])
        for kind, ids in system.kinds([rule.id for rule in rules]):
            generate = {check.fuzz for id_ in ids for check in listed.get(id_, ())}
            if False in generate and kind is USUAL and side_by_side:
                first += [
                    Planned(
                        system, f"scenarios#{share + 1}" if share else "scenarios", kind, ids, (share, system.shares)
                    )
                    for share in range(system.shares)
                ]
            elif False in generate:
                (first if kind is USUAL else more).append(Planned(system, "scenarios", kind, ids))
            if True in generate and fuzz:
                first.append(Planned(system, "fuzz", kind, ids))
    groups = [first] if side_by_side else [[item] for item in first]
    return [group for group in [*groups, *([item] for item in more)] if group]


def _served(item: Planned, base_url: str, settings: dict[str, Any], options: dict[str, Any]) -> tuple[str, Job]:
    """The job for what was planned, on a world of its own."""
    system, kind = item.system, item.kind
    world = reference.make_world(base_url, **kind.world)
    job = job_for(system, world, {**settings, **kind.settings}, system.states_url(world), item.rules, options)
    return item.part, replace(job, shard=item.shard)


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
@states_options("most rules are skipped")
@common_options(RUNTIME_API)
@config_option("check.runtime-api")
def runtime_api(base_url: str, api_key: str, **options: Any) -> None:
    """Judge a real build of the Runtime API over HTTP."""
    judge_build(RUNTIME_API, base_url, {"api_key": key("--api-key", api_key)}, options)


check.add_command(runtime)


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
@states_options("most rules are skipped")
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
    judge_build(AGENT_HUB, base_url, settings, options)


def judge_build(system: System, base_url: str, settings: dict[str, Any], options: dict[str, Any]) -> None:
    """Judge a build of a system that somebody serves; ends the process with the verdict's exit status."""
    began = time.monotonic()
    rules = selected(options, [system])
    options["reports"] = reports(options["reports"])
    base_url = url("--base-url", base_url)
    states = url("--provider-states", options["provider_states"]) if options["provider_states"] else None
    job = job_for(system, base_url, settings, states, wanted(rules, options), options)
    if states is not None and options["control_token"] is not None:
        job = replace(job, control_token=key("--control-token", options["control_token"]))
    target = {"kind": system.name, "baseUrl": base_url}
    part = "scenarios" if options["no_fuzz"] else "all"
    with interruptible(), Crew() as crew:
        # The job holds `settings`: a look may add a key.
        problem = asyncio.run(looked_at(system, base_url, settings, options["time_limit"]))
        run_checks(crew, [[(part, job)]], rules, options, target, problem=problem, began=began)


async def looked_at(system: System, base_url: str, settings: dict[str, Any], seconds: float | None) -> str | None:
    """What makes judging the target pointless, as :func:`preflight` says it, or that the time limit came first."""
    try:
        async with asyncio.timeout(seconds):
            return await preflight(system, base_url, settings)
    except TimeoutError:
        return f"the time limit of {seconds:g} s came before {base_url} had answered"


def job_for(
    system: System,
    base_url: str,
    settings: dict[str, Any],
    states: str | None,
    rules: list[str] | None,
    options: dict[str, Any],
) -> Job:
    """What a child is to do; ``states`` is the provider-state endpoint, None without; ``rules``: None for all."""
    return Job(
        system.name,
        base_url,
        settings,
        states,
        options["seed"],
        timings(system, options["timing"]),
        rules,
        traffic=bool(options["reports"]),
        fuzz_examples=options["fuzz_examples"],
    )


def _nothing_before(context: click.Context, target: str) -> None:
    """Options of the group that stand before a target would be lost."""
    for parameter in context.command.params:
        if parameter.name and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE:
            option = parameter.opts[0]
            raise click.UsageError(f"{option} stands before `{target}`, where it has no effect; write it after")
