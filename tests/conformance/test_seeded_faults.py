"""Every seeded fault is found by one of the rules that were named for it before it was run, in a world of its own."""

from __future__ import annotations

import json

import pytest
from test_command import contract

import openapi
from conformance import reference
from mock_server.mutants import registry

KEY = "key-of-the-seeded-faults"


@pytest.fixture(scope="module")
def base_url():
    with reference.serve(KEY, "--clock", "manual") as url:
        yield url


def test_faults_name_one_to_three_rules_that_exist():
    register = openapi.load("runtime-api").register
    for fault in registry().values():
        assert 1 <= len(fault.rules) <= 3, fault.id
        assert all(rule in register for rule in fault.rules), fault.id
    assert len(registry()) >= 15


def judged(world, rules, report):
    only = [part for rule in rules for part in ("--only", rule)]
    states = f"{world}/__control__/provider-states/runtime-api"
    target = ("--base-url", world, "--api-key", KEY, "--provider-states", states)
    target += ("--timing", "sweep=0.5")  # the reference sweeps at once: no need to wait longer for what never comes
    done = contract("check", "runtime-api", *target, "--no-fuzz", *only, "--report", f"json={report}")
    rows = json.loads(report.read_text("utf-8"))["requirements"]
    return done, [rule["id"] for rule in rows if rule["status"] == "failed"]


@pytest.mark.parametrize("id_", registry())
def test_a_fault_is_found_by_a_rule_named_for_it(base_url, tmp_path, id_):
    world = reference.make_world(base_url, mutant=id_)
    rules = registry()[id_].rules
    done, failed = judged(world, rules, tmp_path / "report.json")
    assert failed, f"none of {rules} failed:\n{done.stdout}"
    assert done.returncode == 1


def test_all_the_named_rules_pass_beside_the_faults(base_url, tmp_path):
    rules = sorted({rule for fault in registry().values() for rule in fault.rules})
    done, failed = judged(reference.make_world(base_url), rules, tmp_path / "report.json")
    assert (done.returncode, failed) == (0, [])
