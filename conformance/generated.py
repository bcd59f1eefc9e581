"""Generated mutants judged: first the checks of the rules stated at the place, the whole suite for survivors.

Two modes. *build*: only the server is mutated, and every check may find it. *text*: those checks that go by the text of
the contract (generated requests) go by the mutated one, so that only what somebody wrote down a second time finds it.
The others state their own numbers: what they find holds in both modes. A time-out is no detection, and neither is a
build whose provider states fail where no rule is asked for.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.mutation import failed_rules, side_by_side
from openapi.mutation import KINDS, generated
from openapi.mutation.standing import standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.mutation import Bench
    from conformance.runner import Suites
    from mock_server.mutants import Mutant

MODES = ("build", "text")
_SHOWN = 5
"""Rules of a survivor that are shown."""


@dataclass
class Finding:
    """What the suites said of one generated mutant."""

    id: str
    api: str
    kind: str
    title: str
    place: str
    detected: dict[str, bool] = field(default_factory=dict)
    """By mode, of those that were asked for."""
    by: str | None = None
    """What found it first: ``place`` (the checks of the rules stated there), ``suite``, or ``requests`` (generated)."""
    failed: tuple[str, ...] = ()
    check: str | None = None
    """The first check that failed."""
    problem: str | None = None
    seconds: float = 0

    def data(self) -> dict[str, Any]:
        """For a report."""
        return {
            "id": self.id,
            "api": self.api,
            "kind": self.kind,
            "title": self.title,
            "place": self.place,
            "detected": self.detected,
            "by": self.by,
            "failed": list(self.failed),
            "check": self.check,
            "problem": self.problem,
            "seconds": self.seconds,
        }


def run(
    mutants: Sequence[Mutant], modes: Sequence[str], *, workers: int, seed: int = 1, time_limit: float = 60
) -> Iterator[Finding]:
    """Judge generated mutants in these modes, in the order in which they are done.

    ``time_limit``: seconds for one part of the suite. Raises :class:`conformance.reference.ReferenceFailed`.
    """

    def judge(mutant: Mutant, bench: Bench) -> Finding:
        return _Judgement(mutant, bench, time_limit).run(modes)

    return side_by_side(mutants, judge, workers=workers, seed=seed)


class _Judgement:
    def __init__(self, mutant: Mutant, bench: Bench, time_limit: float) -> None:
        self.mutant, self.bench, self.time_limit = mutant, bench, time_limit
        edit = generated()[mutant.id]
        place = f"{mutant.system}.yaml:{edit.line} {edit.pointer}"
        self.finding = Finding(mutant.id, mutant.system, mutant.kind, mutant.title, place)

    def run(self, modes: Sequence[str]) -> Finding:
        """Part after part of the suite, until one finds it."""
        began = time.monotonic()
        found = self._found("place", "scenarios", self.mutant.rules) or self._found("suite", "scenarios", None)
        for mode in modes:
            text = self.mutant.id if mode == "text" else None
            self.finding.detected[mode] = found or self._found("requests", "fuzz", None, text)
        self.finding.seconds = round(time.monotonic() - began, 3)
        return self.finding

    def _found(self, by: str, part: str, rules: Sequence[str] | None, text: str | None = None) -> bool:
        suites = self.bench.judge(self.mutant, part, rules, self.time_limit, until_failure=True, text=text)
        failed = failed_rules(self.mutant, suites)
        finding = self.finding
        if suites.problems and not failed:
            finding.problem = "\n".join(dict.fromkeys(filter(None, [finding.problem, *suites.problems[:3]])))
        if failed and finding.by is None:
            finding.by, finding.failed, finding.check = by, failed[:_SHOWN], _first_failed(suites)
        return bool(failed)


def survivors(findings: Iterable[Finding], mode: str) -> list[Finding]:
    """Those that a mode does not detect."""
    return [one for one in findings if not one.detected[mode]]


def _first_failed(suites: Suites) -> str | None:
    return next((check.id for check in suites.checks.values() if check.status == "failed"), None)


def sampled(mutants: Iterable[Mutant], number: int) -> list[Mutant]:
    """So many mutants of each kind of each API, always the same ones."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in mutants:
        groups.setdefault((mutant.system, mutant.kind), []).append(mutant)
    return [
        mutant
        for group in groups.values()
        for mutant in sorted(group, key=lambda each: hashlib.sha256(each.id.encode()).digest())[:number]
    ]


def counting(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Those that the suites have to detect: neither stillborn nor equivalent."""
    return [mutant for mutant in mutants if standing(mutant.id).counts]


def report(findings: Sequence[Finding], asked: Sequence[Mutant], modes: Sequence[str]) -> dict[str, Any]:
    """Shares by mode, by kind and mode, the survivors, and what did not count."""
    apart = [(mutant.id, standing(mutant.id)) for mutant in asked]
    return {
        "share": {mode: share(findings, mode) for mode in modes},
        "kinds": {
            kind: {mode: share([one for one in findings if one.kind == kind], mode) for mode in modes}
            for kind in KINDS
            if any(one.kind == kind for one in findings)
        },
        "by": dict(Counter(one.by or "nothing" for one in findings)),
        "survivors": {mode: [one.data() for one in survivors(findings, mode)] for mode in modes},
        "stillborn": {id_: stands.stillborn for id_, stands in apart if stands.stillborn is not None},
        "equivalent": {
            id_: {"by": stands.by, "argument": stands.equivalent}
            for id_, stands in apart
            if stands.stillborn is None and stands.equivalent is not None
        },
        "mutants": [one.data() for one in findings],
    }


def share(findings: Sequence[Finding], mode: str) -> dict[str, Any]:
    """How many of how many a mode detects; the share is null where there are none."""
    found = sum(one.detected[mode] for one in findings)
    return {"detected": found, "of": len(findings), "share": round(found / len(findings), 4) if findings else None}
