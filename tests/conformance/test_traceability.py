"""What proves each rule: the record of what every seeded fault fails, held against the suites and the register."""

from __future__ import annotations

import json

import pytest
from test_command import contract

from conformance import traceability
from conformance.results import CheckResult, narrowest
from conformance.runtimes.faults import faults as runtime_faults
from conformance.systems import SYSTEMS
from mock_server.mutants import registry

MOST_UNPROVEN = 20
"""It may only fall."""
RULES = {rule.id: rule for system in SYSTEMS for rule in system.contract.register.values()}


def named() -> dict[str, list[str]]:
    servers = {id_: list(fault.rules) for id_, fault in registry().items()}
    return servers | {id_: fault["rules"] for id_, fault in runtime_faults().items()}


def test_the_record_has_every_fault_and_no_other():
    assert sorted(traceability.detections()) == sorted(named()), "contract mutants run --whole --record, then commit"


def test_the_record_names_checks_and_rules_that_there_are():
    known = traceability.known_checks()
    for id_, failed in traceability.detections().items():
        assert failed.keys() <= known, id_
        assert {rule for rules in failed.values() for rule in rules} <= RULES.keys(), id_


def test_unproven_rules_are_listed_with_their_reasons_and_grow_no_more():
    reasons = traceability.reasons()
    assert traceability.unproven(traceability.detections()) == sorted(reasons, key=list(RULES).index)
    assert all(len(reason) > 20 for reason in reasons.values())
    assert len(reasons) <= MOST_UNPROVEN
    assert len(reasons) <= 0.03 * sum(traceability.observable(rule) for rule in RULES.values())


def test_nearly_every_fault_is_put_down_to_a_rule_that_it_names():
    rows = traceability.detections()
    as_named = [id_ for id_, rules in named().items() if set(rules) & shown(rows[id_])]
    assert len(as_named) >= 0.95 * len(rows)


def test_mostly_the_first_rule_of_a_report_is_one_that_the_fault_names():
    rows = traceability.detections()
    first = [id_ for id_, rules in named().items() if rows[id_] and first_of(rows[id_]) in rules]
    assert len(first) >= 0.8 * len(rows)


def shown(failed):
    return {rule for rules in failed.values() for rule in rules}


def first_of(failed):
    return traceability.in_order(shown(failed), failed)[0]


def test_what_only_the_checks_of_a_rule_catch():
    rows = {"a": {"one": ["R1", "R2"], "two": ["R1"]}, "b": {"one": ["R1", "R2"]}, "c": {}}
    assert traceability.proven_by(rows) == {"R1": ["a", "b"], "R2": ["a", "b"]}
    assert traceability.caught_by_it_alone(rows) == {"R1": ["a", "b"], "R2": ["b"]}


def test_a_record_keeps_the_rows_of_other_faults_and_forgets_those_that_are_gone(tmp_path):
    path = tmp_path / "record.json"
    traceability.record({"b": {"one": ("R1",)}, "gone": {}}, ["a", "b", "gone"], path)
    traceability.record({"a": {"two": ("R2", "R1")}}, ["a", "b"], path)
    assert json.loads(path.read_text("utf-8")) == {"a": {"two": ["R2", "R1"]}, "b": {"one": ["R1"]}}
    assert len(path.read_text("utf-8").splitlines()) == 4  # a row a fault: readable differences


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
