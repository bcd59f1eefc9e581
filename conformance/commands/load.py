"""``contract load``: many simulated Runtimes against a build, and what their history says of it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from conformance import reference
from conformance.cli import config_option
from conformance.commands.options import key, reports, states_options, timings, url
from conformance.commands.running import Inconclusive, interruptible
from conformance.drivers.http import DriverError, HttpStates
from conformance.load.running import Load, Order, Outcome
from conformance.load.telling import as_data, page, verdict
from conformance.preflight import preflight
from conformance.systems import RUNTIME_API
from contract_tests.histories.operations import Limits
from contract_tests.histories.verdicts import judge_all

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_SLACK = 0.002
"""Seconds: limits are whole milliseconds."""
DRIFT = 0.0005
"""How much faster than ours a build's clock may run, as clocks do that are being set right."""
REFERENCE = {"lock": 1.0, "sweep": 1.0}
"""What the reference is served with, seconds: locks that lapse many times in a run."""


@click.command("load", short_help="Many Runtimes at once against a build, and what their history says of it.")
@config_option("load")
@click.option("--base-url", metavar="URL", help="Where the build answers; without it the reference is served.")
@click.option(
    "--api-key", envvar="CONTRACT_API_KEY", default="test-internal-key", help="Its service token [CONTRACT_API_KEY]."
)
@states_options("jobs are found by polling")
@click.option("--clients", type=click.IntRange(2, 1000), default=64, show_default=True, help="Simulated Runtimes.")
@click.option(
    "--jobs", type=click.IntRange(1, 1_000_000), default=2000, show_default=True, help="Jobs that they share."
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="When no more jobs are begun.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same intentions.")
@click.option(
    "--lose",
    type=click.FloatRange(0, 1),
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="Of so many operations the answer is not waited for.",
)
@click.option("--timing", metavar="K=V,...|FILE", help="The build's own timing, seconds: lock, sweep.")
@click.option("--mutant", metavar="ID", help="Load the reference with this seeded fault.")
@click.option("--report", "given", multiple=True, metavar="FORMAT=PATH", help="Write a report: json (repeatable).")
def load(
    base_url: str | None,
    api_key: str,
    provider_states: str | None,
    control_token: str | None,
    timing: str | None,
    mutant: str | None,
    given: tuple[str, ...],
    **amounts: Any,
) -> None:
    """Let many Runtimes race for jobs, and judge the history of each job.

    They lock, heartbeat, report and fail at the same moment, let locks lapse and come back, lose answers on purpose,
    while users revoke and cancel. Without --base-url the reference is served, with locks of one second.
    """
    paths = reports(given)
    numbers = timings(RUNTIME_API, timing)
    api_key = key("--api-key", api_key)
    if base_url is None and provider_states is not None:
        raise click.UsageError("--provider-states is of a build; name it with --base-url")
    if base_url is not None and mutant is not None:
        raise click.UsageError("--mutant is of the reference; leave --base-url out")
    if mutant is not None:
        _known(mutant)
    if base_url is None:
        numbers = {**REFERENCE, **numbers}
    limits = Limits(**{name: float(str(numbers[name])) for name in ("lock", "sweep") if name in numbers})
    limits = replace(limits, slack=LEAST_SLACK + limits.lock * DRIFT)
    with interruptible(), ExitStack() as serving:
        if base_url is None:
            target: dict[str, Any] = {"kind": "reference"} | ({"mutant": mutant} if mutant else {})
            options = ["--timing", f"lock={limits.lock:g}", *(["--mutant", mutant] if mutant else [])]
            try:
                base_url = serving.enter_context(reference.serve(api_key, *options))
            except reference.ReferenceFailed as error:
                raise Inconclusive(f"the reference server does not run: {error}") from None
            provider_states, control_token = RUNTIME_API.states_url(base_url), None
        else:
            base_url = url("--base-url", base_url)
            provider_states = url("--provider-states", provider_states) if provider_states else None
            target = {"kind": RUNTIME_API.name, "baseUrl": base_url}
        control_token = None if control_token is None else key("--control-token", control_token)
        offered = _offered(base_url, api_key, provider_states, control_token)
        order = Order(base_url, api_key, provider_states, offered, limits=limits, states_token=control_token, **amounts)
        began = time.time()
        outcome = _run(order, _progress(order.jobs) if sys.stderr.isatty() else None)
    invariants = judge_all(outcome.histories)
    word, status = verdict(invariants, outcome.problem)
    head = {
        "target": target,
        "startedAt": datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "durationSeconds": round(outcome.seconds, 3),
        "seed": order.seed,
        "clients": order.clients,
        "jobs": len(outcome.histories),
        "lose": order.lose,
        "lockSeconds": limits.lock,
        "verdict": word,
        "problems": [outcome.problem] if outcome.problem else [],
    }
    data = as_data(head, outcome.recorder, invariants)
    click.echo(page(data, invariants), nl=False)
    for _, path in paths:
        try:
            path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise click.UsageError(f"--report json={path}: can't be written: {error.strerror}") from None
    sys.exit(status)


def _known(mutant: str) -> None:
    from mock_server.mutants import find  # the server's own imports: a fifth of a second

    try:
        find(mutant)
    except ValueError as error:
        raise click.UsageError(f"--mutant: {error}") from None


def _offered(base_url: str, api_key: str, states: str | None, token: str | None) -> frozenset[str]:
    """The provider states of a build that answers. Raises :class:`Inconclusive`."""
    problem = asyncio.run(preflight(RUNTIME_API, base_url, {"api_key": api_key}))
    if problem is not None:
        raise Inconclusive(problem)
    if states is None:
        return frozenset()
    try:
        return HttpStates(states, RUNTIME_API.name, token=token).offered
    except DriverError as error:
        raise Inconclusive(str(error)) from None


def _run(order: Order, told: Callable[[int], None] | None) -> Outcome:
    with asyncio.Runner(loop_factory=_fast_loop()) as runner:
        outcome = runner.run(Load(order, told).run())
    if told is not None:
        click.echo("\r\033[K", nl=False, err=True)
    return outcome


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on Windows
        return None
    return uvloop.new_event_loop


def _progress(jobs: int) -> Callable[[int], None]:
    def told(ended: int) -> None:
        if ended % 10 == 0:
            click.echo(f"\r{ended} of {jobs} jobs", nl=False, err=True)

    return told
