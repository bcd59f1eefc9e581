"""From what checks say to the status of every rule, and from there to the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from openapi import Requirement

STATUSES = ("passed", "failed", "waived", "skipped", "untested")
NOT_RUN = "not run"
NOT_ARISEN = "its situation did not arise"
VERDICTS = {"conformant": 0, "non-conformant": 1, "inconclusive": 3}


@dataclass
class CheckResult:
    """How one check ended. ``set_up_failed`` marks a skip that leaves the run inconclusive.

    ``about``: the rules that a failure breaks, where those are not simply the check's; ``step``: what was done then,
    where that was no part of what the check judges.
    """

    id: str
    title: str
    requirements: list[str]
    status: str = "skipped"
    message: str | None = NOT_RUN
    set_up_failed: bool = False
    expected: list[str] = field(default_factory=list)
    actual: str | None = None
    pointer: str | None = None
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    seconds: float = 0.0
    about: list[str] = field(default_factory=list)
    step: str | None = None
    timeline: list[str] = field(default_factory=list)
    """What happened, a line each, where a check watched a Runtime."""
    family: str | None = None
    """What one failure is shown for: the same judgement in several scenarios."""

    def broken(self, asked: Collection[str]) -> list[str]:
        """The rules that a failed check shows to be broken: of those it names its own, where one is among them.

        Where none of them is ``asked`` for, the check's own: a failure is never lost.
        """
        if self.status != "failed":
            return []
        named = [id_ for id_ in self.requirements if not self.about or id_ in self.about] or self.about
        return named if any(id_ in asked for id_ in named) else self.requirements

    def finish(self, event: dict[str, Any]) -> None:
        """Take over what the child told of its end."""
        self.status, self.message = event["status"], event["message"]
        self.set_up_failed = bool(event.get("setUpFailed"))
        self.expected, self.actual = event.get("expected") or [], event.get("actual")
        self.pointer, self.seconds = event.get("pointer"), event["seconds"]
        self.about, self.step = list(event.get("about") or ()), event.get("step")
        self.exchanges, self.commands = event["exchanges"], event["commands"]


@dataclass
class RuleResult:
    """The status of one rule, with the checks that answer for it."""

    rule: Requirement
    status: str
    reason: str | None
    checks: list[CheckResult]


@dataclass
class Run:
    """A whole run, judged."""

    target: dict[str, Any]
    level: str
    seed: int
    started_at: str
    seconds: float
    rules: list[RuleResult]
    problems: list[str]
    """What left the run inconclusive, a sentence each."""
    reach: dict[str, Any] | None = None
    """What generated requests met (:class:`contract_tests.reach.Reach`); None where there were none."""
    log: dict[str, Any] | None = None
    """The ``log`` of an HTTP Archive with all that was recorded, where a Runtime was judged."""

    @property
    def summary(self) -> dict[str, int]:
        """How many rules have each status."""
        return {status: sum(rule.status == status for rule in self.rules) for status in STATUSES}

    def judged(self) -> list[RuleResult]:
        """The rules that the verdict is about: at level ``seed`` those of the seeds only."""
        return [rule for rule in self.rules if self.level == "full" or rule.rule.level == "seed"]

    @property
    def verdict(self) -> str:
        """``non-conformant`` with a failed rule; ``inconclusive`` where set-up failed or nothing was shown."""
        judged = self.judged()
        if any(rule.status == "failed" for rule in judged):
            return "non-conformant"
        shown = any(rule.status == "passed" and rule.rule.level == "seed" for rule in judged)
        only_decisions = bool(judged) and all(rule.rule.level == "decision" for rule in judged)
        if only_decisions:
            shown = any(rule.status == "passed" for rule in judged)
        return "inconclusive" if self.problems or not shown else "conformant"

    @property
    def reasons(self) -> list[str]:
        """Why the run is incomplete or inconclusive, a sentence each; empty for one that is neither."""
        if self.problems or self.verdict != "inconclusive":
            return self.problems
        if any(rule.status == "passed" for rule in self.judged()):
            return ["no rule of level seed passed, on which a verdict could rest"]
        return ["no rule passed that the verdict could rest on"]

    @property
    def exit_status(self) -> int:
        """0 conformant, 1 not, 3 inconclusive."""
        return VERDICTS[self.verdict]

    def failures(self) -> list[tuple[RuleResult, CheckResult]]:
        """Every failed check that the verdict is about, under the first rule that it fails, the narrowest rule first.

        Of a family the first one stands for all.
        """
        seen: set[str] = set()
        found = []
        for rule in narrowest_first(self.judged()):
            for check in rule.checks:
                shown = check.family or check.id
                if check.status == "failed" and rule.status == "failed" and shown not in seen:
                    seen.add(shown)
                    found.append((rule, check))
        return found


def narrowest_first(rules: Iterable[RuleResult]) -> list[RuleResult]:
    """Rules in the order in which failures are told: first those of whose checks the largest share failed."""
    return sorted(
        rules, key=lambda rule: -sum(check.status == "failed" for check in rule.checks) / (len(rule.checks) or 1)
    )


def judge_rules(
    rules: Iterable[Requirement],
    checks: Sequence[CheckResult],
    party: str = "server",
    not_run: Mapping[str, str] | None = None,
    unseen: Mapping[str, str] | None = None,
) -> list[RuleResult]:
    """The status of each rule: failed if a check failed, else passed if one passed, else skipped, else untested.

    Rules bound to the other party and superseded ones are never judged. Never passed by default. ``not_run`` says for
    rules whose checks exist but were left out or never reached why that is: they are skipped. ``unseen`` says for rules
    without any check of theirs why they are untested.
    """
    rules = list(rules)
    by_rule: dict[str, list[CheckResult]] = {}
    for check in _by_what_they_show(checks, {rule.id for rule in rules}):
        for id_ in check.requirements:
            by_rule.setdefault(id_, []).append(check)
    told = not_run or {}, unseen or {}
    return [_judge(rule, by_rule.get(rule.id, []), party, *(texts.get(rule.id) for texts in told)) for rule in rules]


def _by_what_they_show(checks: Iterable[CheckResult], asked: Collection[str]) -> Iterator[CheckResult]:
    """Each check under the rules of which it shows something, and as skipped under those that it did not reach.

    A step that fails in many checks is told by the first.
    """
    told: set[tuple[str, ...]] = set()
    for check in checks:
        broken = check.broken(asked)
        missed = [id_ for id_ in check.requirements if id_ not in broken] if broken else []
        if not missed:
            yield check
            continue
        own = len(missed) < len(check.requirements)
        if own:
            yield replace(check, requirements=broken)
        elif tuple(broken) not in told:
            told.add(tuple(broken))
            yield replace(check, requirements=broken, title=f"{check.step or check.title} (where checks begin)")
        names, step = ", ".join(broken), check.step or "what it starts from"
        message = f"stopped by a failure of {names}" if own else f"could not be made: {step} fails {names}"
        yield replace(check, requirements=missed, status="skipped", message=message, about=[])


def unjudged(rules: Iterable[Requirement], checks: Iterable[CheckResult], level: str) -> list[str]:
    """Sentences on checks of rules that the verdict is about, which failed for a rule that it is not about.

    Without them a run at level ``seed`` could call a build conformant on which such a check could not be made.
    """
    asked = {rule.id for rule in rules}
    judged = {rule.id for rule in rules if level in ("full", rule.level)}
    lost: dict[str, str] = {}
    for check in checks:
        broken = check.broken(asked)
        if broken and judged.intersection(check.requirements) and not judged.intersection(broken):
            names = ", ".join(broken)
            lost.setdefault(names, f"{names}, outside the verdict, keeps checks from being made: {check.message}")
    return list(lost.values())


def _judge(
    rule: Requirement, checks: list[CheckResult], party: str, not_run: str | None, unseen: str | None
) -> RuleResult:
    other = "client" if party == "server" else "server"
    if rule.superseded:
        return RuleResult(rule, "untested", f"superseded: {rule.superseded}", [])
    statuses = {check.status for check in checks}
    if "failed" in statuses:
        return RuleResult(rule, "failed", None, checks)
    if "passed" in statuses:
        return RuleResult(rule, "passed", None, checks)
    if "skipped" in statuses:
        reasons = dict.fromkeys(check.message or "" for check in checks)
        return RuleResult(rule, "skipped", "; ".join(reasons), checks)
    if not_run:
        return RuleResult(rule, "skipped", not_run, [])
    if rule.bound == other or (party == "client" and rule.bound == "data"):
        return RuleResult(rule, "untested", f"bound to {other}", [])
    if rule.not_observable:
        return RuleResult(rule, "untested", f"not observable: {rule.not_observable}", [])
    return RuleResult(rule, "untested", unseen or "no check yet", [])
