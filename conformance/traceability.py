"""What proves each rule: the seeded faults under which it fails, and those that only its checks catch.

What the suites said of every hand-made fault, all checks asked, stands in ``detections.json``, which ``contract mutants
run --whole --record`` writes: a row a fault, with the checks that failed and the rules that each shows to be broken. A
rule that can be observed and that failed under no fault is *unproven*: it stands in ``unproven.yaml`` with its reason.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from conformance.catalogue import checks_by_rule, monitors_by_rule
from conformance.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from openapi import Requirement

    Failed = Mapping[str, Collection[str]]
    """The checks that failed under one fault, each with the rules that it shows to be broken."""

RECORD = Path(__file__).with_name("detections.json")
UNPROVEN = Path(__file__).with_name("unproven.yaml")


@functools.cache
def detections() -> dict[str, dict[str, list[str]]]:
    """By fault the checks that failed under it, each with the rules that it shows to be broken."""
    rows: dict[str, dict[str, list[str]]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return rows


def record(found: Mapping[str, Failed], faults: Collection[str], path: Path = RECORD) -> None:
    """Write down what was found; rows of faults that there are no longer go, those of the others stay."""
    rows: dict[str, Failed] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows |= found
    kept = {id_: {check: list(rules) for check, rules in rows[id_].items()} for id_ in sorted(rows) if id_ in faults}
    lines = (f"{json.dumps(id_)}: {json.dumps(failed, ensure_ascii=False)}" for id_, failed in kept.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    detections.cache_clear()


def proven_by(rows: Mapping[str, Failed]) -> dict[str, list[str]]:
    """By rule the faults under which it failed."""
    found: dict[str, list[str]] = {}
    for id_, failed in rows.items():
        for rule in dict.fromkeys(rule for rules in failed.values() for rule in rules):
            found.setdefault(rule, []).append(id_)
    return found


def caught_by_it_alone(rows: Mapping[str, Failed]) -> dict[str, list[str]]:
    """By rule the faults that only checks of that rule catch: without them nothing would be seen."""
    found: dict[str, list[str]] = {}
    for id_, failed in rows.items():
        if failed:
            for rule in set.intersection(*(set(rules) for rules in failed.values())):
                found.setdefault(rule, []).append(id_)
    return found


def observable(rule: Requirement) -> bool:
    """Whether a rule can be judged by what a server or a Runtime of ours sends."""
    other = rule.id.startswith("HUB-") and rule.bound == "client"
    return not (rule.superseded or rule.not_observable or other)


def unproven(rows: Mapping[str, Failed]) -> list[str]:
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


def in_order(rules: Iterable[str], failed: Failed) -> list[str]:
    """Rules as a report of this fault has them, the narrowest first."""
    from conformance.results import narrowest

    return sorted(rules, key=narrowest(failed))
