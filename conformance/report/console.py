"""The summary on the console, in h2spec's manner: what was asked, what was expected, what came, how to repeat it."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.results import CheckResult, RuleResult, Run
    from openapi.redaction import Redactor

WIDTH = 100
_MAX_COMMANDS = 12


def render(run: Run, redactor: Redactor) -> str:
    """The summary, without secrets; its last line is the verdict's word."""
    lines = [*_areas(run), *_failures(run), *_not_run(run), *_problems(run), "", *_totals(run), run.verdict]
    return redactor.text("\n".join(lines)) + "\n"


def _areas(run: Run) -> Iterator[str]:
    for area, group in groupby(run.rules, key=lambda rule: rule.rule.area):
        rules = list(group)
        counts = {status: sum(rule.status == status for rule in rules) for status in ("passed", "failed", "skipped")}
        if not any(counts.values()):
            continue
        mark = "×" if counts["failed"] else "✔" if counts["passed"] else "-"
        text = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        yield f"{mark} {area:<12} {text}"
        yield from (
            line
            for rule in rules
            if rule.status == "failed"
            for line in _wrap(f"× {rule.rule.id}: {rule.rule.sentence}", 4)
        )


def _failures(run: Run) -> Iterator[str]:
    failures = run.failures()
    if failures:
        yield ""
        yield "Failures"
    for number, (rule, check) in enumerate(failures, 1):
        yield ""
        yield from _failure(number, rule, check)


def _failure(number: int, rule: RuleResult, check: CheckResult) -> Iterator[str]:
    others = [id_ for id_ in check.requirements if id_ != rule.rule.id]
    also = f" (and {', '.join(others)})" if others else ""
    yield from _wrap(f"{number}. {rule.rule.id}{also}, level {rule.rule.level}: {check.title}", 2)
    yield from _wrap(f"-> {rule.rule.sentence}", 5)
    if rule.rule.level == "seed":
        yield from _wrap(f"   {rule.rule.sentence_zh} ({', '.join(rule.rule.source)})", 5)
    for place in rule.rule.places[:1]:
        yield f"     Stated:    {place.file.name}:{place.line}"
    for i, expected in enumerate(check.expected or [check.title]):
        yield from _labelled("Expected:" if i == 0 else "      or:", expected)
    yield from _labelled("Actual:", check.actual or check.message or "")
    if check.pointer:
        yield from _labelled("Differs at:", check.pointer)
    if check.commands:
        yield "     Reproduce:"
        skipped = len(check.commands) - _MAX_COMMANDS
        if skipped > 0:
            yield f"       # {skipped} earlier commands are in the JSON report"
        yield from (f"       {command}" for command in check.commands[-_MAX_COMMANDS:])


def _labelled(label: str, text: str) -> Iterator[str]:
    first, *rest = textwrap.wrap(text, WIDTH - 16) or [""]
    yield f"     {label:<11}{first}"
    yield from (f"                {line}" for line in rest)


def _not_run(run: Run) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for rule in run.rules:
        if rule.status == "skipped":
            reasons.setdefault(rule.reason or "", []).append(rule.rule.id)
    if reasons:
        yield ""
        yield "Skipped"
    for reason, ids in sorted(reasons.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
        yield from _wrap(f"{reason}: {shown}", 2)


def _problems(run: Run) -> Iterator[str]:
    if run.problems:
        yield ""
        yield "Inconclusive because"
    for problem in run.problems:
        yield from _wrap(problem, 2)


def _totals(run: Run) -> Iterator[str]:
    counts = run.summary
    untested: dict[str, int] = {}
    for rule in run.rules:
        if rule.status == "untested":
            kind = (rule.reason or "").partition(":")[0]
            untested[kind] = untested.get(kind, 0) + 1
    yield f"{len(run.rules)} rules in {run.seconds:.1f} s (seed {run.seed}, level {run.level}): " + ", ".join(
        f"{counts[status]} {status}" for status in ("passed", "failed", "skipped", "untested")
    )
    if untested:
        yield "untested: " + ", ".join(f"{count} {kind}" for kind, count in untested.items())


def _wrap(text: str, indent: int) -> list[str]:
    pad = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=pad, subsequent_indent=pad + "  ", break_long_words=False)
