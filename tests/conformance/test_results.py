"""From checks to the status of rules to the verdict, by the rules of the report."""

from __future__ import annotations

import pytest

import openapi
from conformance.results import CheckResult, Run, judge_rules, unjudged

REGISTER = openapi.load("runtime-api").register
SEED, DECISION, CLIENT, SUPERSEDED, UNSEEN = "RT-LOCK-13", "RT-LOCK-50", "RT-LOCK-02", "RT-HB-07", "RT-AUTH-05"


def check(status, *rules, set_up_failed=False, message=None):
    return CheckResult(f"c{id(object())}", "title", list(rules), status, message, set_up_failed)


def run(*checks, rules=(SEED, DECISION), level="full", problems=()):
    judged = judge_rules([REGISTER[rule] for rule in rules], list(checks))
    return Run({"kind": "reference"}, level, 1, "2026-01-01T00:00:00.000Z", 1.0, judged, list(problems))


def status_of(*checks, rule=SEED):
    return judge_rules([REGISTER[rule]], list(checks))[0].status


@pytest.mark.parametrize(
    ("statuses", "status"),
    [
        ((), "untested"),
        (("passed",), "passed"),
        (("skipped",), "skipped"),
        (("failed",), "failed"),
        (("passed", "skipped"), "passed"),
        (("passed", "failed"), "failed"),
        (("skipped", "failed"), "failed"),
    ],
)
def test_the_status_of_a_rule(statuses, status):
    assert status_of(*(check(item, SEED) for item in statuses)) == status


def test_no_rule_is_passed_by_another_rules_check():
    assert status_of(check("passed", DECISION)) == "untested"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [(CLIENT, "bound to client"), (SUPERSEDED, "superseded: "), (UNSEEN, "not observable: "), (SEED, "no check yet")],
)
def test_why_a_rule_is_untested(rule, reason):
    [result] = judge_rules([REGISTER[rule]], [])
    assert result.status == "untested"
    assert result.reason.startswith(reason)


def test_a_superseded_rule_is_never_judged():
    assert status_of(check("failed", SUPERSEDED), rule=SUPERSEDED) == "untested"


@pytest.mark.parametrize(
    ("result", "verdict", "exit_status"),
    [
        (run(check("passed", SEED), check("passed", DECISION)), "conformant", 0),
        (run(check("passed", SEED), check("failed", DECISION)), "non-conformant", 1),
        (run(check("passed", SEED), check("failed", DECISION), level="seed"), "conformant", 0),
        (run(check("failed", SEED), level="seed"), "non-conformant", 1),
        (run(check("passed", SEED), problems=["set-up failed"]), "inconclusive", 3),
        (run(check("failed", SEED), problems=["set-up failed"]), "non-conformant", 1),
        (run(check("skipped", SEED)), "inconclusive", 3),
        (run(check("passed", DECISION)), "inconclusive", 3),
        (run(check("passed", DECISION), rules=(DECISION,)), "conformant", 0),
        (run(), "inconclusive", 3),
    ],
    ids=[
        "all passed",
        "a decision failed",
        "a decision failed at level seed",
        "a seed rule failed",
        "a problem",
        "a problem and a failure",
        "only skipped",
        "no seed rule shown",
        "only decisions asked for",
        "nothing",
    ],
)
def test_the_verdict(result, verdict, exit_status):
    assert (result.verdict, result.exit_status) == (verdict, exit_status)


def test_a_failure_is_told_once_under_its_narrowest_rule():
    result = run(check("failed", SEED, DECISION), check("passed", SEED))
    assert [(rule.rule.id, failed.status) for rule, failed in result.failures()] == [(DECISION, "failed")]
    result = run(check("failed", SEED, DECISION))
    assert [(rule.rule.id, failed.status) for rule, failed in result.failures()] == [(SEED, "failed")]


def test_a_rule_whose_checks_were_left_out_is_skipped_with_the_reason():
    [result] = judge_rules([REGISTER[SEED]], [], not_run={SEED: "the time limit came first"})
    assert (result.status, result.reason) == ("skipped", "the time limit came first")
    [ended] = judge_rules([REGISTER[SEED]], [check("passed", SEED)], not_run={SEED: "the time limit came first"})
    assert ended.status == "passed"


STEP = "RT-LOCK-03"


def failed(*rules, about, step=None):
    return CheckResult(f"c{id(object())}", "title", list(rules), "failed", "it came otherwise", about=about, step=step)


def statuses_of(*checks, rules=(SEED, DECISION, STEP)):
    return [result.status for result in judge_rules([REGISTER[rule] for rule in rules], list(checks))]


def test_a_failure_about_one_of_the_checks_rules_breaks_that_alone():
    narrow = failed(SEED, DECISION, about=[DECISION])
    assert statuses_of(narrow) == ["skipped", "failed", "untested"]
    assert statuses_of(narrow, check("passed", SEED)) == ["passed", "failed", "untested"]


def test_a_failure_about_nothing_in_particular_breaks_all_of_the_checks_rules():
    assert statuses_of(failed(SEED, DECISION, about=[])) == ["failed", "failed", "untested"]


def test_a_step_that_fails_is_told_once_and_leaves_the_checks_skipped():
    checks = [failed(SEED, about=[STEP], step="locking"), failed(DECISION, about=[STEP], step="locking")]
    seed, decision, step = judge_rules([REGISTER[rule] for rule in (SEED, DECISION, STEP)], checks)
    assert (seed.status, decision.status, step.status) == ("skipped", "skipped", "failed")
    assert seed.reason == f"could not be made: locking fails {STEP}"
    assert [check.title for check in step.checks] == ["locking (where checks begin)"]
    result = run(*checks, rules=(SEED, DECISION, STEP))
    assert (result.verdict, len(result.failures())) == ("non-conformant", 1)


def test_a_step_that_is_the_checks_own_rule_breaks_it():
    assert statuses_of(failed(STEP, about=[STEP], step="locking")) == ["untested", "untested", "failed"]


def test_a_failure_of_a_rule_that_was_left_out_is_the_checks_own():
    assert statuses_of(failed(SEED, about=[STEP], step="locking"), rules=(SEED, DECISION)) == ["failed", "untested"]
    assert statuses_of(failed(SEED, DECISION, about=[DECISION]), rules=(SEED,)) == ["failed"]


def test_a_failure_outside_the_verdict_is_a_problem_never_a_pass():
    rules = [REGISTER[SEED], REGISTER[DECISION]]
    lost = failed(SEED, about=[DECISION], step="locking")
    [problem] = unjudged(rules, [lost, check("passed", SEED)], "seed")
    assert problem == f"{DECISION}, outside the verdict, keeps checks from being made: it came otherwise"
    assert not unjudged(rules, [lost], "full")
    assert not unjudged([REGISTER[SEED]], [lost], "seed")
    assert not unjudged(rules, [failed(DECISION, about=[DECISION])], "seed")


@pytest.mark.parametrize("rule", ["RT-LOCK-03", "RT-HB-05", "RT-RES-13", "RT-FAIL-10"])
def test_what_checks_begin_with_is_a_seeds_rule(rule):
    assert REGISTER[rule].level == "seed"
