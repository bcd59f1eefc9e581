"""``contract mutants``: the seeded faults."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from conformance import generated as generated_
from conformance import mutation, reference, traceability
from conformance.catalogue import runtime_faults
from conformance.cli import config_option
from conformance.commands.options import reports
from conformance.commands.running import interruptible, progress
from conformance.runtimes import faults as runtimes
from mock_server.mutants import HAND_MADE, everything, registry
from openapi.mutation import KINDS, generated
from openapi.mutation.standing import standing
from openapi.problems import nearest

if TYPE_CHECKING:
    from conformance.generated import Finding
    from conformance.mutation import Verdict
    from mock_server.mutants import Mutant

RUNTIME = "runtime"
"""The kind of the example Runtime's faults."""


@click.group(short_help="The seeded faults that the suites must find.")
def mutants() -> None:
    """The seeded faults of the reference: builds that are wrong in one named way."""


@mutants.command("list")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only mutants of this kind (repeatable).")
@click.option("--only", multiple=True, metavar="GLOB", help="Only mutants with these ids (repeatable).")
def list_mutants(kinds: tuple[str, ...], only: tuple[str, ...]) -> None:
    """Every mutant by kind: its id, the rules of its place or of which one is expected to fail, and what is wrong.

    Hand-made ones first, those of the example Runtime (`runtime:`) last. Those that are generated from the contracts'
    text show their place, and why one does not count: it is `equivalent` (by a truth table of the whole trigger, or
    declared with an argument) or `stillborn` (no build can be made of it, or asked for anything).
    """
    known = _kinds(kinds)
    found = mutation.chosen(everything().values(), only)
    for kind in known:
        for mutant in found:
            if mutant.kind == kind:
                _list(mutant)
    if RUNTIME in known:
        for id_, fault in _runtime_faults(only).items():
            click.echo(f"{id_:<34} {', '.join(fault['rules']):<36} {fault['doc']}")


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
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only mutants of this kind (repeatable).")
@click.option(
    "--mode",
    type=click.Choice(["build", "text", "both"]),
    default="build",
    show_default=True,
    help="Of generated ones: mutate the server alone, or what the checks go by as well.",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="So many generated ones of each kind and API.")
@click.option("--equivalents", is_flag=True, help="Judge those generated ones, too, that are said to be equivalent.")
@click.option("--whole", is_flag=True, help="Run every check, not only those of the rules that a fault names.")
@click.option("--record", is_flag=True, help="Write what every check said into the package: what proves each rule.")
@click.option("--workers", type=click.IntRange(1, 32), metavar="N", help="Faults at a time [one for each core].")
@click.option("--seed", default=1, show_default=True, metavar="N", help="Seed of names and generated requests.")
@click.option("--time-limit", default=60.0, show_default=True, metavar="S", help="Seconds for one fault.")
@click.option("--report", metavar="json=PATH", help="Write a report.")
@config_option("mutants.run")
def run_mutants(
    only: tuple[str, ...],
    kinds: tuple[str, ...],
    mode: str,
    sample: int | None,
    equivalents: bool,
    record: bool,
    report: str | None,
    **options: Any,
) -> None:
    """Judge each seeded fault, a world for each: one of the rules that it names has to fail.

    Those that are generated from the contracts' text (`--only 'gen.*'`, or a `--kind` of theirs) are judged by the
    checks of the rules stated at their place first, and by the whole suite where these find nothing: any check may
    find them. Faults of the example Runtime (`--only 'runtime:*'`) are played through the scenarios of their rules.
    Exit status 0 when every fault is found, 1 otherwise.
    """
    reports_ = reports([] if report is None else [report], ["json"])
    faults, asked, clients = _asked(only, kinds)
    if record and faults and not options["whole"]:
        raise click.UsageError("--record needs --whole: what other checks say belongs to the record")
    if sample is not None:
        asked = generated_.sampled(asked, sample)
    modes = generated_.MODES if mode == "both" else (mode,)
    options["workers"] = options["workers"] or os.cpu_count() or 1
    try:
        with interruptible():
            verdicts = _run_faults(faults, **options) + _run_runtimes(clients)
            options.pop("whole")
            findings = _run_generated(asked if equivalents else generated_.counting(asked), modes, **options)
    except reference.ReferenceFailed as error:
        raise click.ClickException(f"the reference server does not run: {error}") from None
    if record:
        found = {verdict.id: traceability.Detection.of(verdict) for verdict in verdicts}
        traceability.record(found, {*registry(), *runtime_faults()})
    rows = [_row(verdict) for verdict in verdicts]
    told: Any = rows
    if asked:
        told = {"handMade": rows, "generated": generated_.report(findings, asked, modes)}
        _tell_shares(findings, asked, modes)
    for _, path in reports_:
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    alive = any(generated_.survivors(findings, mode) for mode in modes)
    sys.exit(0 if all(verdict.as_named for verdict in verdicts) and not alive else 1)


def _asked(only: tuple[str, ...], kinds: tuple[str, ...]) -> tuple[list[Mutant], list[Mutant], list[str]]:
    """The hand-made faults that are asked for; generated ones and the Runtime's, which have to be asked for by name."""
    known = _kinds(kinds)
    everyone = mutation.chosen((everything() if only or kinds else registry()).values(), only)
    found = [mutant for mutant in everyone if mutant.kind in known]
    clients = list(_runtime_faults(only)) if (only or kinds) and RUNTIME in known else []
    if not found and not clients:
        raise click.UsageError(f"--only {' '.join(only)}: no seeded fault has such an id; see `contract mutants list`")
    made = [mutant for mutant in found if mutant.kind == HAND_MADE]
    return made, [mutant for mutant in found if mutant.kind != HAND_MADE], clients


def _runtime_faults(only: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The example Runtime's faults that are asked for."""
    return {id_: fault for id_, fault in runtime_faults().items() if mutation.matches(id_, only)}


def _kinds(kinds: tuple[str, ...]) -> list[str]:
    """The kinds that are asked for, all without any; tells an unknown one."""
    known = [HAND_MADE, *KINDS, RUNTIME]
    for kind in kinds:
        if kind not in known:
            mend = nearest(kind, known, "there is " + ", ".join(known))
            raise click.UsageError(f"--kind {kind}: no such kind; {mend}")
    return list(kinds) or known


def _run_runtimes(ids: list[str]) -> list[Verdict]:
    """Judge faults of the example Runtime and tell how they ended."""

    async def judge() -> list[Verdict]:
        found = []
        async for verdict in runtimes.verdicts(ids):
            found.append(verdict)
            _progress(len(found), len(ids))
            _tell(verdict, whole=False)
        return found

    return _told_all(asyncio.run(judge()) if ids else [], whole=False)


def _run_faults(faults: list[Mutant], *, whole: bool, **options: Any) -> list[Verdict]:
    """Judge the hand-made faults and tell how they ended."""
    verdicts = []
    for verdict in mutation.run(faults, whole=whole, **options):
        verdicts.append(verdict)
        _progress(len(verdicts), len(faults))
        _tell(verdict, whole=whole)
    return _told_all(verdicts, whole=whole)


def _told_all(verdicts: list[Verdict], *, whole: bool) -> list[Verdict]:
    if verdicts:
        found = sum(verdict.as_named for verdict in verdicts)
        click.echo(f"\n{found} of {len(verdicts)} seeded faults found by a rule that they name")
        if whole:
            rules = sum(len(verdict.failed) for verdict in verdicts) / len(verdicts)
            click.echo(f"{rules:.2f} rules fail for a fault on average")
    return verdicts


def _run_generated(asked: list[Mutant], modes: tuple[str, ...], **options: Any) -> list[Finding]:
    """Judge generated mutants and tell each survivor."""
    findings = []
    for finding in generated_.run(asked, modes, **options):
        findings.append(finding)
        _progress(len(findings), len(asked))
        alive = [mode for mode in modes if generated_.survivors([finding], mode)]
        if alive:
            click.echo(f"✘ {finding.id} survives in {' and '.join(alive)}" + _because(finding.problem))
            click.echo(f"  {finding.title} ({finding.place})")
    return findings


def _progress(done: int, asked: int) -> None:
    if sys.stderr.isatty():
        progress(done, asked, "faults" + "\n" * (done == asked))


def _because(problem: str | None) -> str:
    return f" ({problem.splitlines()[0]})" if problem else ""


def _tell_shares(findings: list[Finding], asked: list[Mutant], modes: tuple[str, ...]) -> None:
    """What became of generated mutants, in all and where a kind was not found as a whole."""
    stillborn = sum(standing(mutant.id).stillborn is not None for mutant in asked)
    equivalent = sum(standing(mutant.id).equivalent is not None for mutant in asked)
    click.echo()
    for mode in modes:
        share = generated_.share(findings, mode)
        rate = f" ({share['share']:.1%})" if findings else ""
        click.echo(f"{mode}: {share['detected']} of {share['of']} generated mutants detected{rate}")
        for kind in KINDS:
            own = generated_.share([one for one in findings if one.kind == kind], mode)
            if own["of"] != own["detected"]:
                click.echo(f"  {kind}: {own['detected']} of {own['of']}")
    rate = f"{equivalent} of {len(asked)} equivalent ({equivalent / len(asked):.1%})"
    click.echo(f"not counted: {stillborn} stillborn, {rate}")


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
        "checks": dict(verdict.checks),
    }
