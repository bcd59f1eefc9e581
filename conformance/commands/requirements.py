"""``contract requirements``: every rule, where it stands, and what covers it."""

from __future__ import annotations

import ast
import csv
import io
import json
from pathlib import Path
from typing import Any

import click

import contract_tests
import openapi
from mock_server.mutants import registry


@click.command(short_help="Every rule: where it stands, which checks and seeded faults cover it.")
@click.option("--only", multiple=True, metavar="GLOB", help="Only rules whose id matches (repeatable).")
@click.option("--format", "format_", type=click.Choice(["md", "csv", "json"]), default="md", show_default=True)
def requirements(only: tuple[str, ...], format_: str) -> None:
    """The requirements register."""
    rows = table(only)
    if not rows:
        raise click.UsageError("no rule matches; ids look like RT-LOCK-13")
    click.echo({"md": as_markdown, "csv": as_csv, "json": as_json}[format_](rows), nl=False)


def table(only: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """One row a rule."""
    covering = checks_by_rule()
    faults = registry().values()
    rows = []
    for rule in openapi.load("runtime-api").register.select(only):
        checks = covering.get(rule.id, [])
        mutants = [fault.id for fault in faults if rule.id in fault.rules]
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
                "note": _note(rule, checks, mutants),
            }
        )
    return rows


def _note(rule: openapi.Requirement, checks: list[str], mutants: list[str]) -> str:
    if rule.superseded:
        return f"superseded: {rule.superseded}"
    if rule.not_observable:
        return f"not observable: {rule.not_observable}"
    if rule.bound == "client":
        return "bound to client"
    if not checks:
        return "no check yet"
    return "" if mutants else "unproven: no seeded fault names it"


def checks_by_rule() -> dict[str, list[str]]:
    """Ids of the checks of each rule, read from the suites' source, without running them."""
    found: dict[str, list[str]] = {}
    for path in sorted((Path(contract_tests.__file__).parent / "runtime_api").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                name = f"{path.stem.removeprefix('test_')}.{node.name.removeprefix('test_')}"
                for id_ in _ids(node):
                    found.setdefault(id_, []).append(name)
    return found


def _ids(node: ast.AsyncFunctionDef) -> list[str]:
    texts = [
        item.value
        for decorator in node.decorator_list
        for item in ast.walk(decorator)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
    return list(dict.fromkeys(text for text in texts if text.startswith(("RT-", "HUB-"))))


def as_markdown(rows: list[dict[str, Any]]) -> str:
    """A table for people."""
    lines = [
        "| rule | level | bound | sentence | stated at | checks | faults | note |",
        "|---|---|---|---|---|---|---|---|",
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
        cells += [", ".join(row["mutants"]), row["note"]]
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
