"""The summary on the console, in h2spec's manner: what was asked, what was expected, what came, how to repeat it."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells

from conformance.results import NOT_ARISEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.results import CheckResult, RuleResult, Run
    from openapi.redaction import Redactor

WIDTH = 100
_MAX_COMMANDS = 12
_MAX_REASONS = 10
_LABEL = 16
_LONGEST_LINE = 260


def render(run: Run, redactor: Redactor) -> str:
    """The summary, without secrets; its last line is the verdict's word."""
    return "\n".join(_Page(run, redactor).lines()) + "\n"


class _Page:
    def __init__(self, run: Run, redactor: Redactor) -> None:
        self.run, self.redactor = run, redactor

    def clean(self, text: str) -> str:
        """Without secrets, which wrapping could tear apart, and without what moves a terminal's cursor."""
        text = self.redactor.text(text)
        return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)

    def lines(self) -> Iterator[str]:
        yield from self.areas()
        yield from self.failures()
        yield from self.outside()
        yield from self.skipped()
        yield from self.reasons()
        yield from self.reach()
        yield ""
        yield from self.totals()
        yield self.run.verdict

    def areas(self) -> Iterator[str]:
        judged = {rule.rule.id for rule in self.run.judged()}
        for area, group in groupby(self.run.rules, key=lambda rule: rule.rule.area):
            rules = list(group)
            counts = {status: sum(rule.status == status for rule in rules) for status in _SHOWN}
            if not any(counts.values()):
                continue
            failed = [rule for rule in rules if rule.status == "failed" and rule.rule.id in judged]
            mark = "×" if failed else "✔" if counts["passed"] else "-"
            text = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
            yield f"{mark} {area:<12} {text}"
            for rule in failed:
                yield from self.wrapped(f"× {rule.rule.id}: {rule.rule.sentence}", 4)

    def failures(self) -> Iterator[str]:
        found = self.run.failures()
        if found:
            yield ""
            yield "Failures"
        for number, (rule, check) in enumerate(found, 1):
            yield ""
            yield from self.failure(number, rule, check)

    def failure(self, number: int, rule: RuleResult, check: CheckResult) -> Iterator[str]:
        others = [id_ for id_ in check.requirements if id_ != rule.rule.id]
        also = f" (and {', '.join(others)})" if others else ""
        yield from self.wrapped(f"{number}. {rule.rule.id}{also}, level {rule.rule.level}: {check.title}", 2)
        yield from self.wrapped(f"-> {rule.rule.sentence}", 5)
        if rule.rule.level == "seed":
            yield from self.wrapped(f"   {rule.rule.sentence_zh} ({', '.join(rule.rule.source)})", 5)
        for place in rule.rule.places[:1]:
            yield f"     Stated:    {place.file.name}:{place.line}"
        for i, expected in enumerate(check.expected or [check.title]):
            yield from self.labelled("Expected:" if i == 0 else "      or:", expected)
        yield from self.labelled("Actual:", check.actual or check.message or "")
        if check.pointer:
            yield from self.labelled("Differs:", f"at {check.pointer}")
        if check.family:
            yield from self.alike(rule, check)
        if check.timeline:
            yield "     Timeline:"
            yield from (f"       {self.clean(line)[:_LONGEST_LINE]}" for line in check.timeline)
        if check.commands:
            yield "     Reproduce:"
            earlier = len(check.commands) - _MAX_COMMANDS
            if earlier > 0:
                yield f"       # {earlier} earlier commands are in the JSON report"
            yield from (f"       {self.clean(command)}" for command in check.commands[-_MAX_COMMANDS:])

    def alike(self, rule: RuleResult, check: CheckResult) -> Iterator[str]:
        """In which other scenarios the same was seen."""
        others = [
            other.id.partition(":")[0]
            for other in rule.checks
            if other.status == "failed" and other.family == check.family and other is not check
        ]
        if others:
            more = f" and {len(others) - _MAX_REASONS} more" if len(others) > _MAX_REASONS else ""
            yield from self.labelled("Also in:", ", ".join(others[:_MAX_REASONS]) + more)

    def outside(self) -> Iterator[str]:
        judged = {rule.rule.id for rule in self.run.judged()}
        ids = [rule.rule.id for rule in self.run.rules if rule.status == "failed" and rule.rule.id not in judged]
        if ids:
            yield ""
            yield "Failed, but outside the verdict (--level seed)"
            yield from self.wrapped(", ".join(ids), 2)

    def skipped(self) -> Iterator[str]:
        reasons: dict[str, list[str]] = {}
        for rule in self.run.rules:
            if rule.status == "skipped":
                reasons.setdefault(rule.reason or "", []).append(rule.rule.id)
        if reasons:
            yield ""
            yield "Skipped"
        for reason, ids in sorted(reasons.items(), key=lambda item: -len(item[1])):
            shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
            yield from self.wrapped(f"{reason}: {shown}", 2)

    def reasons(self) -> Iterator[str]:
        reasons = self.run.reasons
        if reasons:
            yield ""
            yield "Inconclusive because" if self.run.verdict == "inconclusive" else "Incomplete because"
        for reason in reasons[:_MAX_REASONS]:
            yield from self.wrapped(reason, 2)
        if len(reasons) > _MAX_REASONS:
            yield f"  and {len(reasons) - _MAX_REASONS} more, which are in the JSON report"

    def reach(self) -> Iterator[str]:
        """What the specification documents and generated requests never met: nothing was judged there."""
        reach = self.run.reach
        if reach and reach["notMet"]:
            yield ""
            yield f"Documented, and never met by {reach['requests']} generated requests"
            for operation, lines in groupby(reach["notMet"], key=lambda line: line.partition(": ")[0]):
                yield from self.wrapped(f"{operation}: {', '.join(line.partition(': ')[2] for line in lines)}", 2)

    def totals(self) -> Iterator[str]:
        run, counts = self.run, self.run.summary
        untested: dict[str, int] = {}
        for rule in run.rules:
            if rule.status == "untested":
                kind = (rule.reason or "").partition(":")[0]
                untested[kind] = untested.get(kind, 0) + 1
        always = ("passed", "failed", "skipped", "untested")
        text = ", ".join(f"{count} {status}" for status, count in counts.items() if count or status in always)
        rules = f"{len(run.rules)} rule{'' if len(run.rules) == 1 else 's'}"
        yield f"{rules} in {run.seconds:.1f} s (seed {run.seed}, level {run.level}): {text}"
        yield from self.never_arose()
        if untested:
            yield "untested: " + ", ".join(f"{count} {kind}" for kind, count in untested.items())

    def never_arose(self) -> Iterator[str]:
        """Which rules of a Runtime could not be judged, since nothing of the kind happened, where they are few."""
        ids = [rule.rule.id for rule in self.run.rules if rule.status == "untested" and rule.reason == NOT_ARISEN]
        if 0 < len(ids) <= _MAX_REASONS:
            yield from self.wrapped(f"Never arose: {', '.join(ids)}", 0)

    def labelled(self, label: str, text: str) -> Iterator[str]:
        first, *rest = _wrap(self.clean(text), WIDTH - _LABEL) or [""]
        yield f"     {label:<11}{first}"
        yield from (" " * _LABEL + line for line in rest)

    def wrapped(self, text: str, indent: int) -> Iterator[str]:
        first, *rest = _wrap(self.clean(text), WIDTH - indent - 2) or [""]
        yield " " * indent + first
        yield from (" " * (indent + 2) + line for line in rest)


_SHOWN = ("passed", "failed", "skipped")


def _escaped(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


def _wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` columns; Chinese takes two columns a character and has no spaces."""
    lines = []
    for paragraph in text.splitlines() or [""]:
        if cell_len(paragraph) == len(paragraph):
            lines += textwrap.wrap(paragraph, width, break_on_hyphens=False)
        else:
            lines += chop_cells(paragraph, width)
    return lines
