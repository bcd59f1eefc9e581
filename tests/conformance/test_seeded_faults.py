"""Every seeded fault is found by one of the rules that were named for it before it was run."""

from __future__ import annotations

import json

import pytest
from test_command import contract

import openapi
from mock_server.mutants import registry


def test_faults_name_one_to_three_rules_that_exist():
    register = openapi.load("runtime-api").register
    for fault in registry().values():
        assert 1 <= len(fault.rules) <= 3, fault.id
        assert all(rule in register for rule in fault.rules), fault.id
    assert len(registry()) >= 15


@pytest.mark.parametrize("id_", registry())
def test_a_fault_is_found_by_a_rule_named_for_it(tmp_path, id_):
    rules = registry()[id_].rules
    report = tmp_path / "report.json"
    only = [part for rule in rules for part in ("--only", rule)]
    done = contract("check", "--mutant", id_, "--no-fuzz", *only, "--report", f"json={report}")
    failed = [
        rule["id"] for rule in json.loads(report.read_text("utf-8"))["requirements"] if rule["status"] == "failed"
    ]
    assert failed, f"none of {rules} failed:\n{done.stdout}"
    assert done.returncode == 1
