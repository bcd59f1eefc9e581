"""Generated mutants are judged: the shares of a fixed sample, both modes, what is no detection, and what is told."""

from __future__ import annotations

import json

import pytest
from test_command import contract

from conformance import generated as judging
from conformance.mutation import Bench, failed_rules
from mock_server.generated import mutants
from openapi.mutation import KINDS, generated
from openapi.mutation.standing import standing, unborn


def run(path, *options, timeout=600):
    done = contract("mutants", "run", *options, "--report", f"json={path}", timeout=timeout)
    return done, json.loads(path.read_text("utf-8"))["generated"]


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return run(tmp_path_factory.mktemp("generated") / "report.json", "--only", "gen.*", "--sample", "1")


def test_every_mutant_of_a_fixed_sample_is_detected(sample):
    done, report = sample
    assert report["survivors"]["build"] == [], done.stdout
    assert done.returncode == 0
    assert report["share"]["build"]["detected"] == report["share"]["build"]["of"] == len(report["mutants"]) > 40
    assert "generated mutants detected (100.0%)" in done.stdout


def test_the_sample_has_every_kind(sample):
    _, report = sample
    assert set(report["kinds"]) == set(KINDS)
    assert all(report["kinds"][kind]["build"]["share"] == 1 for kind in KINDS)


def test_most_are_found_by_the_checks_of_their_place(sample):
    _, report = sample
    assert report["by"]["place"] > len(report["mutants"]) / 2
    for row in report["mutants"]:
        assert row["check"], row
        assert row["failed"], row
        assert row["place"].startswith(f"{row['api']}.yaml:")


def test_a_time_out_is_no_detection(tmp_path):
    options = ("--only", "gen.rt.refusal.heartbeat.held", "--time-limit", "0.001")
    done, report = run(tmp_path / "report.json", *options)
    assert done.returncode == 1
    [survivor] = report["survivors"]["build"]
    assert survivor["detected"] == {"build": False}
    assert "the time limit" in survivor["problem"]
    assert "survives in build (" in done.stdout


def test_what_does_not_count_is_told_and_not_judged(tmp_path):
    options = ("--only", "gen.rt.condition.held.2", "--only", "gen.rt.refusal.cancel.refused")
    done, report = run(tmp_path / "report.json", *options)
    assert report["mutants"] == []
    assert "decides in state" in report["stillborn"]["gen.rt.refusal.cancel.refused"]
    assert report["equivalent"]["gen.rt.condition.held.2"]["by"] == "table"
    assert "1 stillborn, 1 of 2 equivalent" in done.stdout


def test_in_text_mode_generated_requests_go_by_the_mutated_text():
    id_, part, rules = "gen.rt.limit.InvocationLog.costEstimate.minimum.less", "fuzz", ["RT-LOG-52"]
    mutant = mutants()[id_]
    with Bench(1) as bench:
        build = bench.judge(mutant, part, rules, 60)
        text = bench.judge(mutant, part, rules, 60, text=id_)
    assert failed_rules(mutant, build)
    assert not failed_rules(mutant, text)
    assert build.checks.keys() == text.checks.keys()
    assert text.problems == []


def test_in_text_mode_one_kind_of_target_after_the_other_goes_by_the_mutated_text():
    id_ = "gen.hub.source-removed.node-lost.cancelled"
    with Bench(1) as bench:
        text = bench.judge(mutants()[id_], "fuzz", ["HUB-SUB-06", "HUB-WH-64"], 60, text=id_)
    assert text.problems == []
    assert text.checks


def test_a_sample_is_the_same_whatever_else_there_is():
    everyone = list(mutants().values())
    few = judging.sampled(everyone, 2)
    assert judging.sampled(reversed(everyone), 2)[0] in few
    assert {(one.system, one.kind) for one in few} == {(one.system, one.kind) for one in everyone}
    assert set(judging.sampled(few, 1)) == set(judging.sampled(everyone, 1))


def test_the_list_tells_place_and_standing_by_kind():
    said = contract("mutants", "list", "--kind", "guard").stdout
    assert "gen.rt.guard.fail.cancelled" in said
    assert "runtime-api.yaml:" in said
    assert "/x-state-machine/operations/failJob/steps/1/when" in said
    assert "equivalent by truth table: lockJob does the same" in said
    assert "gen.rt.number" not in said
    assert "lock.race" not in said
    assert "lock.race" in contract("mutants", "list", "--kind", "hand-made").stdout


def test_a_misspelt_kind_is_told():
    for command in (("list",), ("run",)):
        done = contract("mutants", *command, "--kind", "gard")
        assert done.returncode == 2
        assert "did you mean `guard`?" in done.stderr


@pytest.mark.soak
def test_nothing_finds_what_is_said_to_be_equivalent(tmp_path):
    ids = [id_ for id_ in generated() if standing(id_).equivalent is not None]
    only = [option for id_ in ids for option in ("--only", id_)]
    done, report = run(tmp_path / "report.json", *only, "--equivalents", timeout=7200)
    assert len(report["mutants"]) == len(ids)
    found = [(row["id"], row["check"]) for row in report["mutants"] if row["detected"]["build"]]
    assert found == [], done.stdout


@pytest.mark.soak
@pytest.mark.parametrize("id_", unborn())
def test_a_build_of_which_nothing_can_be_asked_is_inconclusive(id_):
    with Bench(1) as bench:
        suites = bench.judge(mutants()[id_], "scenarios", None, 240)
    assert not failed_rules(mutants()[id_], suites)
    assert any(" 500 " in problem for problem in suites.problems)
    assert sum(check.set_up_failed for check in suites.checks.values()) > len(suites.checks) / 2
