"""``contract mutants run``: every seeded fault is found by one of the rules that it named before it was run."""

from __future__ import annotations

import json

import pytest
from test_command import contract

import openapi
from conformance import traceability
from conformance.catalogue import checks_by_rule
from conformance.systems import SYSTEMS
from mock_server.faults import FAULTS
from mock_server.mutants import registry


def run(path, *options):
    done = contract("mutants", "run", *options, "--report", f"json={path}", timeout=1200)
    return done, {row["id"]: row for row in json.loads(path.read_text("utf-8"))}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    return run(tmp_path_factory.mktemp("mutants") / "report.json")


def test_faults_name_one_to_three_rules_that_exist():
    for fault in registry().values():
        register = openapi.load(fault.system).register
        assert 1 <= len(fault.rules) <= 3, fault.id
        assert all(rule in register for rule in fault.rules), fault.id
    assert len(registry()) == len(FAULTS) >= 60  # an id stands once


@pytest.mark.parametrize("id_", registry())
def test_a_fault_is_found_by_a_rule_named_for_it(everything, id_):
    done, verdicts = everything
    verdict = verdicts[id_]
    assert set(verdict["failed"]) & set(verdict["named"]), done.stdout


def test_every_rule_that_is_judged_fails_under_some_fault(everything):
    """By this very run, not by the record of what all checks say (``test_traceability.py``)."""
    _, verdicts = everything
    shown = {rule for verdict in verdicts.values() for rule in verdict["failed"]}
    register = [rule for system in SYSTEMS for rule in system.contract.register.values()]
    covered, reasons = checks_by_rule(), traceability.reasons()
    judged = [rule.id for rule in register if rule.id in covered and traceability.observable(rule)]
    assert len(judged) > 600
    assert [rule for rule in judged if rule not in shown and rule not in reasons] == []


def test_the_whole_run_says_so(everything):
    done, verdicts = everything
    assert set(verdicts) == set(registry())
    assert done.returncode == 0
    assert done.stdout.strip() == f"{len(verdicts)} of {len(verdicts)} seeded faults found by a rule that they name"


def test_the_whole_suite_shows_every_rule_that_fails(tmp_path):
    done, verdicts = run(tmp_path / "report.json", "--whole", "--only", "lock.59-seconds", "--only", "heartbeat.with-*")
    assert done.returncode == 0
    assert set(verdicts) == {"lock.59-seconds", "heartbeat.with-body"}
    for id_, verdict in verdicts.items():
        assert f"✔ {id_}" in done.stdout
        assert set(verdict["failed"]) & set(verdict["named"])
    assert "rules fail for a fault on average" in done.stdout


def test_a_time_out_is_no_detection(tmp_path):
    done, verdicts = run(tmp_path / "report.json", "--only", "lock.race", "--time-limit", "0.001")
    assert done.returncode == 1
    assert verdicts["lock.race"]["detected"] is False
    assert "the time limit" in verdicts["lock.race"]["problem"]
    assert "✘ lock.race" in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--only", "lok.*"), "no seeded fault has such an id"),
        (("--report", "xml=a.xml"), "write json=PATH"),
        (("--report", "json=no/such/folder/a.json"), "does not exist"),
        (("--workers", "0"), "--workers"),
    ],
)
def test_wrong_options_are_told(options, said):
    done = contract("mutants", "run", *options)
    assert done.returncode == 2
    assert said in done.stderr
