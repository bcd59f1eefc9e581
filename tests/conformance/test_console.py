"""The summary on the console, as a user sees it."""

from __future__ import annotations

from rich.cells import cell_len

import openapi
from conformance.report.console import WIDTH, render
from conformance.results import CheckResult, Run, judge_rules
from openapi.redaction import Redactor

REGISTER = openapi.load("runtime-api").register
KEY = "a-key-of-27-characters-here"


def failed(*rules, **fields):
    return CheckResult("lock.x", "The second is refused.", list(rules), "failed", "m", **fields)


def page(*checks, rules=("RT-LOCK-13", "RT-LOCK-50"), level="full", problems=(), secrets=()):
    judged = judge_rules([REGISTER[rule] for rule in rules], list(checks))
    run = Run({"kind": "reference"}, level, 1, "2026-01-01T00:00:00.000Z", 1.25, judged, list(problems))
    return render(run, Redactor(secrets))


def test_a_failure_tells_rule_expected_actual_and_how_to_repeat_it():
    text = page(
        failed(
            "RT-LOCK-13",
            "RT-LOCK-50",
            expected=["409 JOB_ALREADY_LOCKED", "404 JOB_NOT_FOUND"],
            actual="200 {}",
            pointer="/errorCode",
            commands=["curl -X POST http://build.test/1", "curl -X POST http://build.test/2"],
        )
    )
    block = text[text.index("Failures") :]
    assert block == (
        "Failures\n\n"
        "  1. RT-LOCK-13 (and RT-LOCK-50), level seed: The second is refused.\n"
        "     -> If the update touches 0 rows the lock MUST fail with `JOB_ALREADY_LOCKED` (HTTP 409 by 003\n"
        "       §3).\n"
        "        影响行数 = 0 则锁定失败（JOB_ALREADY_LOCKED） (000 §5.2)\n"
        f"     Stated:    runtime-api.yaml:{REGISTER['RT-LOCK-13'].places[0].line}\n"
        "     Expected:  409 JOB_ALREADY_LOCKED\n"
        "           or:  404 JOB_NOT_FOUND\n"
        "     Actual:    200 {}\n"
        "     Differs:   at /errorCode\n"
        "     Reproduce:\n"
        "       curl -X POST http://build.test/1\n"
        "       curl -X POST http://build.test/2\n\n"
        "2 rules in 1.2 s (seed 1, level full): 0 passed, 2 failed, 0 skipped, 0 untested\n"
        "non-conformant\n"
    )


def test_no_line_but_a_command_is_wider_than_a_hundred_columns():
    long = "影响行数等于零则锁定失败" * 20
    rules = [rule.id for rule in REGISTER.values() if not rule.superseded]
    text = page(*(failed(rule, expected=[long], actual=long) for rule in rules), rules=rules, problems=[long])
    wide = [line for line in text.splitlines() if cell_len(line) > WIDTH]
    assert not wide


def test_success_is_quiet():
    passed = [CheckResult("a", "t", [rule], "passed", None) for rule in ("RT-LOCK-13", "RT-LOCK-50")]
    assert page(*passed) == (
        "✔ RT-LOCK      2 passed\n\n"
        "2 rules in 1.2 s (seed 1, level full): 2 passed, 0 failed, 0 skipped, 0 untested\n"
        "conformant\n"
    )


def test_what_is_outside_the_verdict_is_named_and_no_more():
    seed = CheckResult("a", "t", ["RT-LOCK-13"], "passed", None)
    text = page(seed, failed("RT-LOCK-50", actual="200"), level="seed")
    assert "Failures" not in text
    assert "Failed, but outside the verdict (--level seed)\n  RT-LOCK-50\n" in text
    assert text.startswith("✔ RT-LOCK      1 passed, 1 failed\n")
    assert text.endswith("\nconformant\n")


def test_an_inconclusive_run_says_why():
    skipped = CheckResult("a", "t", ["RT-LOCK-13"], "skipped", "needs the provider state job")
    text = page(skipped, rules=["RT-LOCK-13"])
    assert "Inconclusive because\n  no rule passed that the verdict could rest on\n" in text
    many = page(skipped, rules=["RT-LOCK-13"], problems=[f"problem {number}" for number in range(50)])
    assert "problem 9\n" in many
    assert "problem 10\n" not in many
    assert "and 40 more, which are in the JSON report" in many


def test_secrets_are_taken_out_before_lines_are_broken():
    for pad in range(120):
        text = page(failed("RT-LOCK-13", actual=f"{'x' * pad} {KEY}"), secrets=[KEY])
        assert KEY not in "".join(text.split())


def test_nothing_that_a_build_says_controls_the_terminal():
    text = page(failed("RT-LOCK-13", actual="\x1b[2J\rfine\u202e", commands=["curl \x1b"]))
    assert not [char for char in text if char != "\n" and not char.isprintable()]
    assert r"\x1b[2J\x0dfine\u202e" in text
