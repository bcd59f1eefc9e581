"""The frame of the monitors: what breaks is unknown, what did not arise is untested, and judging changes nothing."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pytest

import openapi
from conformance.results import Run, judge_rules
from conformance.runtimes.judged import judged, unseen
from contract_tests.runtime import monitors as frame
from contract_tests.runtime.monitors import Monitor, broken, judge, kept, monitors, run
from tests.runtime_suite.tape import Tape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.history import History
    from contract_tests.runtime.monitors import Finding

REGISTER = openapi.load("runtime-api").register
RULE = "RT-AUTH-04"


def crashes(history: History) -> Iterator[Finding]:
    yield kept(1.0)
    raise LookupError(f"no entry in {len(history.calls)}")


def test_a_monitor_that_breaks_says_nothing_of_the_build(monkeypatch):
    monkeypatch.setitem(monitors(), RULE, Monitor(RULE, "requests.crashes", "Crashes", crashes))
    outcome = run(monitors()[RULE], Tape().poll().history)
    assert (outcome.status, outcome.findings) == ("unknown", [])
    assert outcome.problem == "the monitor requests.crashes broke: LookupError: no entry in 1"

    rules = [REGISTER[RULE], REGISTER["RT-AUTH-02"]]
    checks = judged(Tape().poll().log_document, [rule.id for rule in rules])
    results = judge_rules(rules, checks, "client", unseen=unseen())
    assert {result.rule.id: result.status for result in results} == {RULE: "skipped", "RT-AUTH-02": "passed"}
    problems = [check.message or "" for check in checks if check.set_up_failed]
    assert Run({"kind": "runtime"}, "full", 1, "", 0.1, results, problems).verdict == "inconclusive"


def test_what_did_not_arise_is_untested_and_says_so():
    rules = [REGISTER["RT-HB-62"], REGISTER["RT-LOCK-13"], REGISTER["RT-SCHED-63"]]
    checks = judged(Tape().poll().log_document, [rule.id for rule in rules])
    results = judge_rules(rules, checks, "client", unseen=unseen())
    assert {result.status for result in results} == {"untested"}
    reasons = [result.reason for result in results]
    assert reasons[:2] == ["its situation did not arise", "bound to server"]
    assert str(reasons[2]).startswith("not observable")


def test_judging_changes_nothing_and_comes_to_the_same_again():
    tape = Tape().poll("job-1", "job-2").whole("job-1").lock("job-2").snapshot("job-2", 410, "SNAPSHOT_EXPIRED")
    history = tape.history
    before = copy.deepcopy([vars(call) | {"resolve": None} for call in history.calls])
    first = [(o.monitor.rule, o.status, o.findings) for o in judge(history)]
    assert first == [(o.monitor.rule, o.status, o.findings) for o in judge(history)]
    assert [vars(call) | {"resolve": None} for call in history.calls] == before


def test_two_monitors_of_one_rule_are_refused():
    monitors()
    with pytest.raises(ValueError, match="RT-AUTH-04 has two monitors"):
        frame.monitor(RULE)(crashes)


def test_every_rule_that_binds_runtimes_has_a_monitor_or_a_reason():
    reasoned = {id_ for id_, rule in REGISTER.items() if rule.not_observable or rule.superseded}
    bound = {id_ for id_, rule in REGISTER.items() if rule.bound in ("client", "both")}
    assert bound - reasoned - monitors().keys() == {"RT-IDEM-04"}
    assert monitors().keys() <= bound
    assert unseen()["RT-IDEM-04"].startswith("judged elsewhere")


def test_findings_say_where_they_are():
    call = Tape().poll().history.calls[0]
    assert (broken(call, "a", "b").at, broken(call, "a", "b").call) == (call.sent, call)
    assert (kept(2.5).at, kept(2.5).call, kept(2.5).broken) == (2.5, None, False)
