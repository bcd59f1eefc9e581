"""``contract requirements``: every rule, where it stands, and what covers it."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import click

import openapi
from conformance import traceability
from conformance.catalogue import checks_by_rule, monitors_by_rule, runtime_faults_by_rule
from conformance.systems import SYSTEMS
from mock_server.mutants import registry


@click.command(short_help="Every rule: where it stands, which checks and seeded faults cover it.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only rules whose id matches (repeatable).")
@click.option("--format", "format_", type=click.Choice(["md", "csv", "json"]), default="md", show_default=True)
def requirements(only: tuple[str, ...], format_: str) -> None:
    """The registers of requirements, of both APIs.

    A rule is `unproven` where no seeded fault makes it fail; `only here` are faults that only its checks catch.
    """
    rows = table(only)
    if not rows:
        raise click.UsageError("no rule matches; ids look like RT-LOCK-13 or HUB-SUB-01")
    click.echo({"md": as_markdown, "csv": as_csv, "json": as_json}[format_](rows), nl=False)


def table(only: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """One row a rule."""
    covering, watching = checks_by_rule(), monitors_by_rule()
    faults, clients_faults = registry().values(), runtime_faults_by_rule()
    detected = traceability.detections()
    proven, alone = traceability.proven_by(detected), traceability.caught_by_it_alone(detected)
    rows = []
    for rule in (rule for system in SYSTEMS for rule in system.contract.register.select(only)):
        checks = [check.id for check in covering.get(rule.id, [])]
        checks += [watching[rule.id]] if rule.id in watching else []
        mutants = [fault.id for fault in faults if rule.id in fault.rules] + clients_faults.get(rule.id, [])
        rows.append(
            {
                "id": rule.id,
                "level": rule.level,
                "bound": rule.bound,
                "source": list(rule.source),
                "sentence": rule.sentence,
                "sentenceZh": rule.sentence_zh,
                "places": [f"{place.file.name}:{place.line}" for place in rule.places],
                "checks": checks,
                "mutants": mutants,
                "onlyHere": alone.get(rule.id, []),
                "note": _note(rule, checks, rule.id in proven),
            }
        )
    return rows


def _note(rule: openapi.Requirement, checks: list[str], proven: bool) -> str:
    if rule.superseded:
        return f"superseded: {rule.superseded}"
    if rule.not_observable:
        return f"not observable: {rule.not_observable}"
    if not traceability.observable(rule):
        return "bound to client"
    if not checks:
        return "no check yet"
    return "" if proven else f"unproven: {traceability.reasons().get(rule.id, 'no seeded fault makes it fail')}"


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """A table for people."""
    lines = [
        "| rule | level | bound | sentence | stated at | checks | faults | only here | note |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["id"],
            row["level"],
            row["bound"],
            row["sentence"],
            ", ".join(row["places"]),
            ", ".join(row["checks"]),
        ]
        cells += [", ".join(row["mutants"]), ", ".join(row["onlyHere"]), row["note"]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def as_csv(rows: list[dict[str, Any]]) -> str:
    """For spreadsheets; lists are joined with a space."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(
        {key: " ".join(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
    )
    return out.getvalue()


def as_json(rows: list[dict[str, Any]]) -> str:
    """For programs."""
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
