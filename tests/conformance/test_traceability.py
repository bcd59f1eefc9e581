"""What proves each rule: the record of what every seeded fault fails, held against the suites and the register."""

from __future__ import annotations

import json
import re

import pytest
from test_command import contract

from conformance import traceability
from conformance.catalogue import runtime_faults
from conformance.mutation import Verdict
from conformance.results import CheckResult, RuleResult, narrowest_first
from conformance.systems import SYSTEMS
from mock_server.mutants import registry

MOST_UNPROVEN = 0
"""It may only fall."""
RULES = {rule.id: rule for system in SYSTEMS for rule in system.contract.register.values()}


def named() -> dict[str, list[str]]:
    servers = {id_: list(fault.rules) for id_, fault in registry().items()}
    return servers | {id_: fault["rules"] for id_, fault in runtime_faults().items()}


def test_the_record_has_every_fault_and_no_other():
    assert sorted(traceability.detections()) == sorted(named()), "contract mutants run --whole --record, then commit"


def test_the_record_names_checks_and_rules_that_there_are():
    known = traceability.known_checks()
    for id_, detection in traceability.detections().items():
        assert {re.sub(r"\[.*\]|#.*", "", check) for check in detection.checks} <= known, id_
        assert set(detection.rules) <= RULES.keys(), id_


def test_unproven_rules_are_listed_with_their_reasons_and_grow_no_more():
    reasons = traceability.reasons()
    assert traceability.unproven(traceability.detections()) == sorted(reasons, key=list(RULES).index)
    assert all(len(reason) > 20 for reason in reasons.values())
    assert len(reasons) <= MOST_UNPROVEN
    assert len(reasons) <= 0.03 * sum(traceability.observable(rule) for rule in RULES.values())


def test_nearly_every_fault_is_put_down_to_a_rule_that_it_names():
    rows = traceability.detections()
    missed = [id_ for id_, rules in named().items() if not set(rules) & set(rows[id_].rules)]
    assert len(missed) <= 0.05 * len(rows), missed


def test_mostly_the_first_rule_of_a_report_is_one_that_the_fault_names():
    rows = traceability.detections()
    missed = [id_ for id_, rules in named().items() if rows[id_].rules[:1] not in [(rule,) for rule in rules]]
    assert len(missed) <= 0.2 * len(rows), missed


def detection(**checks):
    return traceability.Detection(tuple(dict.fromkeys(rule for rules in checks.values() for rule in rules)), checks)


def test_what_only_the_checks_of_a_rule_catch():
    rows = {"a": detection(one=("R1", "R2"), two=("R1",)), "b": detection(one=("R1", "R2")), "c": detection()}
    assert traceability.proven_by(rows) == {"R1": ["a", "b"], "R2": ["a", "b"]}
    assert traceability.caught_by_it_alone(rows) == {"R1": ["a", "b"], "R2": ["b"]}


def test_a_record_keeps_the_rows_of_other_faults_and_forgets_those_that_are_gone(tmp_path):
    path = tmp_path / "record.json"
    one, other = detection(one=("R1",)), detection(two=("R2", "R1"))
    traceability.record({"b": one, "gone": detection()}, ["a", "b", "gone"], path)
    traceability.record({"a": other}, ["a", "b"], path)
    assert traceability.detections(path) == {"a": other, "b": one}
    assert len(path.read_text("utf-8").splitlines()) == 4  # a row a fault: readable differences


def test_of_checks_that_show_the_same_rules_the_first_is_recorded():
    checks = (("one", ("R1",)), ("two", ("R1", "R2")), ("three", ("R1",)))
    verdict = Verdict("a", "", ("R1",), ("R2", "R1"), None, 1, checks)
    assert traceability.Detection.of(verdict).data() == {
        "rules": ["R2", "R1"],
        "checks": {"one": ["R1"], "two": ["R1", "R2"]},
    }


def test_the_narrowest_rule_is_told_first():
    most, some, none = rules_judged(most=[True, True, False], some=[True, False, False], none=[False])
    assert narrowest_first([none, some, most]) == [most, some, none]


def rules_judged(**rules):
    return [
        RuleResult(
            None, "failed", None, [CheckResult("", "", [], "failed" if broken else "passed") for broken in checks]
        )
        for checks in rules.values()
    ]


def test_a_record_is_of_the_whole_suite():
    done = contract("mutants", "run", "--only", "lock.race", "--record")
    assert done.returncode == 2
    assert "--record needs --whole" in done.stderr


@pytest.mark.parametrize("format_", ["md", "csv", "json"])
def test_the_register_tells_which_faults_only_the_checks_of_a_rule_catch(format_):
    alone = traceability.caught_by_it_alone(traceability.detections())
    rule = max(alone, key=lambda id_: len(alone[id_]))
    said = contract("requirements", "--only", rule, "--format", format_).stdout
    assert all(id_ in said for id_ in alone[rule])


def test_the_register_marks_what_is_unproven():
    said = contract("requirements", "--format", "json").stdout
    marked = {row["id"]: row["note"] for row in json.loads(said) if row["note"].startswith("unproven: ")}
    assert marked == {id_: f"unproven: {reason}" for id_, reason in traceability.reasons().items()}
