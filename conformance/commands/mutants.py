"""``contract mutants``: the seeded faults."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from conformance import mutation, reference
from conformance.cli import config_option
from conformance.commands.options import reports
from conformance.commands.running import interruptible
from mock_server.mutants import HAND_MADE, everything, registry
from openapi.mutation import KINDS, generated
from openapi.mutation.standing import standing
from openapi.problems import nearest

if TYPE_CHECKING:
    from conformance.mutation import Verdict
    from mock_server.mutants import Mutant


@click.group(short_help="The seeded faults that the suites must find.")
def mutants() -> None:
    """The seeded faults of the reference: builds that are wrong in one named way."""


@mutants.command("list")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only mutants of this kind (repeatable).")
@click.option("--only", multiple=True, metavar="GLOB", help="Only mutants with these ids (repeatable).")
def list_mutants(kinds: tuple[str, ...], only: tuple[str, ...]) -> None:
    """Every mutant by kind: its id, the rules of its place or of which one is expected to fail, and what is wrong.

    Hand-made ones first; those generated from the contracts' text show their place, and why one does not count: it is
    `equivalent` (by a truth table of the whole trigger, or declared with an argument) or `stillborn` (no build can be
    made of it).
    """
    known = [HAND_MADE, *KINDS]
    for kind in kinds:
        if kind not in known:
            raise click.UsageError(
                f"--kind {kind}: no such kind; {nearest(kind, known, 'there is ' + ', '.join(known))}"
            )
    found = mutation.chosen(everything().values(), only)
    for kind in kinds or known:
        for mutant in found:
            if mutant.kind == kind:
                _list(mutant)


def _list(mutant: Mutant) -> None:
    edit = generated().get(mutant.id)
    if edit is None:
        click.echo(f"{mutant.id:<34} {', '.join(mutant.rules):<36} {mutant.title}")
        return
    stands = standing(mutant.id)
    rules = ", ".join(mutant.rules[:3])
    click.echo(f"{mutant.id:<48} {rules:<36} {mutant.title}  ({mutant.system}.yaml:{edit.line} {edit.pointer})")
    if stands.stillborn is not None:
        click.echo(f"    stillborn: {stands.stillborn}")
    if stands.equivalent is not None:
        how = "equivalent by truth table" if stands.by == "table" else "equivalent"
        click.echo(f"    {how}: {stands.equivalent}")


@mutants.command("run")
@click.option("--only", multiple=True, metavar="GLOB", help="Only faults with these ids (repeatable).")
@click.option("--whole", is_flag=True, help="Run every check, not only those of the rules that a fault names.")
@click.option("--workers", type=click.IntRange(1, 32), metavar="N", help="Faults at a time [one for each core].")
@click.option("--seed", default=1, show_default=True, metavar="N", help="Seed of names and generated requests.")
@click.option("--time-limit", default=60.0, show_default=True, metavar="S", help="Seconds for one fault.")
@click.option("--report", metavar="json=PATH", help="Write a report.")
@config_option("mutants.run")
def run_mutants(
    only: tuple[str, ...], whole: bool, workers: int | None, seed: int, time_limit: float, report: str | None
) -> None:
    """Judge each seeded fault, a world for each: one of the rules that it names has to fail.

    Exit status 0 when every fault is found by a rule that it names, 1 otherwise.
    """
    reports_ = reports([] if report is None else [report], ["json"])
    faults = mutation.chosen(registry().values(), only)
    if not faults:
        raise click.UsageError(f"--only {' '.join(only)}: no seeded fault has such an id; see `contract mutants list`")
    workers = workers or os.cpu_count() or 1
    verdicts = []
    try:
        with interruptible():
            for verdict in mutation.run(faults, workers=workers, whole=whole, seed=seed, time_limit=time_limit):
                verdicts.append(verdict)
                _tell(verdict, whole=whole)
    except reference.ReferenceFailed as error:
        raise click.ClickException(f"the reference server does not run: {error}") from None
    found = sum(verdict.as_named for verdict in verdicts)
    click.echo(f"\n{found} of {len(verdicts)} seeded faults found by a rule that they name")
    if whole:
        rules = sum(len(verdict.failed) for verdict in verdicts) / len(verdicts)
        click.echo(f"{rules:.2f} rules fail for a fault on average")
    for _, path in reports_:
        path.write_text(json.dumps([_row(verdict) for verdict in verdicts], indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if found == len(verdicts) else 1)


def _tell(verdict: Verdict, *, whole: bool) -> None:
    """A line for a fault that was not found as named; with ``--whole`` for each one."""
    if verdict.as_named and not whole:
        return
    mark = "✔" if verdict.as_named else "✘"
    failed = ", ".join(verdict.failed) or "nothing failed"
    click.echo(f"{mark} {verdict.id:<34} {failed}" + (f" ({verdict.problem})" if verdict.problem else ""))
    if not verdict.as_named:
        click.echo(f"  {verdict.title}: one of {', '.join(verdict.named)} was to fail")


def _row(verdict: Verdict) -> dict[str, Any]:
    return {
        "id": verdict.id,
        "title": verdict.title,
        "named": verdict.named,
        "failed": verdict.failed,
        "detected": verdict.detected,
        "asNamed": verdict.as_named,
        "problem": verdict.problem,
        "seconds": verdict.seconds,
    }
