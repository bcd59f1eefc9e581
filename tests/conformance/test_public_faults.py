"""The public list of faults: every row about servers is seeded or says why not, and every story is replayed."""

from __future__ import annotations

import json

import pytest
from test_command import contract

from conformance import catalogue
from mock_server.faults import public
from mock_server.mutants import find, registry

SERVER_ROWS = {
    f"SF-{number:02}"
    for numbers in (
        (1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35),
        (37, 38, 40, 41, 43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68),
        (70, 71, 73, 74, 76, 77, 79, 80, 82, 83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98, 100),
    )
    for number in numbers
}
SERVER_STORIES = {"ST-01", "ST-02", "ST-04", "ST-05", "ST-07", "ST-08", "ST-10", "ST-11", "ST-12"}
TOLD = [
    pytest.param(story.id, fault, id=f"{story.id} {fault}", marks=[pytest.mark.soak] if place else [])
    for story in public.stories().values()
    for place, fault in enumerate(story.faults)
]
"""Each story with its faults; all but the first one take too long for every run."""


def rules_of(checks):
    """The rules that these checks answer for."""
    return {rule for rule, listed in catalogue.checks_by_rule().items() for check in listed if check.id in checks}


def test_every_row_is_there():
    assert set(public.rows()) == SERVER_ROWS
    assert len(SERVER_ROWS) == 67


@pytest.mark.parametrize("row", public.rows().values(), ids=lambda row: row.id)
def test_a_row_has_faults_or_a_reason(row):
    assert row.title
    assert row.faults or row.reason
    assert set(row.faults) <= set(registry())
    assert len(set(row.faults)) == len(row.faults)


def test_reasons_are_few():
    assert {row.id for row in public.rows().values() if not row.faults} == {"SF-04", "SF-58"}


def test_every_story_is_there():
    assert set(public.stories()) == SERVER_STORIES


@pytest.mark.parametrize("story", public.stories().values(), ids=lambda story: story.id)
def test_a_story_has_checks_and_faults(story):
    known = {check.id for listed in catalogue.checks_by_rule().values() for check in listed}
    assert story.title
    assert story.checks
    assert set(story.checks) <= known
    assert story.faults
    assert set(story.faults) <= set(registry())


@pytest.mark.parametrize(("id_", "fault"), TOLD)
def test_a_story_fails_under_its_faults(tmp_path, id_, fault):
    checks, report = public.stories()[id_].checks, tmp_path / "report.json"
    prefix = "HUB-" if find(fault).system == "agent-hub" else "RT-"
    only = [part for rule in sorted(rules_of(checks)) if rule.startswith(prefix) for part in ("--only", rule)]
    done = contract("check", "--no-fuzz", "--mutant", fault, "--report", f"json={report}", *only, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    ends = [check for rule in json.loads(report.read_text("utf-8"))["requirements"] for check in rule["checks"]]
    failed = {check["id"].partition("[")[0] for check in ends if check["status"] == "failed"}
    assert failed & set(checks), done.stdout


def test_an_entry_of_another_form_is_told(monkeypatch, tmp_path):
    table = tmp_path / "public.yaml"
    table.write_text("rows:\n  SF-01:\n    titel: of another word\n", encoding="utf-8")
    monkeypatch.setattr(public, "TABLE", table)
    public.rows.cache_clear()
    with pytest.raises(ValueError, match=r"SF-01.*titel"):
        public.rows()
    public.rows.cache_clear()
