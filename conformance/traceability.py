"""What proves each rule: the seeded faults under which it fails, and those that only its checks catch.

What the suites said of every hand-made fault, all checks asked, stands in ``detections.json``, which ``contract mutants
run --whole --record`` writes, a row a fault. A rule that can be observed and that failed under no fault is *unproven*:
it stands in ``unproven.yaml`` with its reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from conformance.catalogue import checks_by_rule, monitors_by_rule
from conformance.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from conformance.mutation import Verdict
    from openapi import Requirement

RECORD = Path(__file__).with_name("detections.json")
UNPROVEN = Path(__file__).with_name("unproven.yaml")


@dataclass(frozen=True, slots=True)
class Detection:
    """What a fault fails: the rules in the order of a report, the narrowest first, and what showed them.

    ``checks``: of the checks that show the same rules the first one, with these rules.
    """

    rules: tuple[str, ...]
    checks: dict[str, tuple[str, ...]]

    @classmethod
    def of(cls, verdict: Verdict) -> Detection:
        """What a verdict says."""
        first = {rules: check for check, rules in reversed(verdict.checks)}
        return cls(verdict.failed, {check: rules for check, rules in verdict.checks if first[rules] == check})

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Detection:
        """From the record."""
        return cls(tuple(data["rules"]), {check: tuple(rules) for check, rules in data["checks"].items()})

    def data(self) -> dict[str, Any]:
        """For the record."""
        return {"rules": list(self.rules), "checks": {check: list(rules) for check, rules in self.checks.items()}}


def detections(path: Path = RECORD) -> dict[str, Detection]:
    """What each fault fails, from the record."""
    return {id_: Detection.from_data(row) for id_, row in json.loads(path.read_text(encoding="utf-8")).items()}


def record(found: Mapping[str, Detection], faults: Collection[str], path: Path = RECORD) -> None:
    """Write down what was found; rows of faults that there are no longer go, those of the others stay."""
    rows = {**(detections(path) if path.exists() else {}), **found}
    lines = (f"{json.dumps(id_)}: {json.dumps(rows[id_].data())}" for id_ in sorted(rows) if id_ in faults)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def proven_by(rows: Mapping[str, Detection]) -> dict[str, list[str]]:
    """By rule the faults under which it failed."""
    found: dict[str, list[str]] = {}
    for id_, detection in rows.items():
        for rule in detection.rules:
            found.setdefault(rule, []).append(id_)
    return found


def caught_by_it_alone(rows: Mapping[str, Detection]) -> dict[str, list[str]]:
    """By rule the faults that only checks of that rule catch: without them nothing would be seen."""
    found: dict[str, list[str]] = {}
    for id_, detection in rows.items():
        if detection.checks:
            for rule in set.intersection(*map(set, detection.checks.values())):
                found.setdefault(rule, []).append(id_)
    return found


def observable(rule: Requirement) -> bool:
    """Whether a rule can be judged by what a server or a Runtime of ours sends."""
    other = rule.id.startswith("HUB-") and rule.bound == "client"
    return not (rule.superseded or rule.not_observable or other)


def unproven(rows: Mapping[str, Detection]) -> list[str]:
    """The rules that can be observed and that failed under no fault, in the register's order."""
    shown = proven_by(rows)
    rules = (rule for system in SYSTEMS for rule in system.contract.register.values())
    return [rule.id for rule in rules if observable(rule) and rule.id not in shown]


def reasons() -> dict[str, str]:
    """Why rules are unproven, from ``unproven.yaml``."""
    rows = yaml.safe_load(UNPROVEN.read_text(encoding="utf-8")) or {}
    return {str(id_): str(text) for id_, text in rows.items()}


def known_checks() -> set[str]:
    """Every check and monitor that the suites hold."""
    return {check.id for checks in checks_by_rule().values() for check in checks} | set(monitors_by_rule().values())
