"""Builds that are wrong in a way that the tool itself could stumble over: what is told, and with which exit status."""

from __future__ import annotations

import json
import time

import pytest
from rewriting_proxy import Answered, RewritingProxy, wire
from test_command import contract, last_line

from conformance import reference

KEY = "test-internal-key"


@pytest.fixture(scope="module")
def served():
    with reference.serve(KEY, "--clock", "manual") as base_url:
        yield base_url


def check(served, rewrite, *only, arguments=()):
    filters = [part for rule in only for part in ("--only", rule)]
    with RewritingProxy(served, rewrite) as build:
        target = ("--base-url", build.url, "--provider-states", build.states, "--api-key", KEY)
        return contract("check", "runtime-api", *target, "--no-fuzz", *filters, *arguments)


def state(name: str, status: int, data: object):
    return lambda answered: answered.json(status, data) if answered.state == name else None


@pytest.mark.parametrize(
    ("rewrite", "told"),
    [
        (state("advance-time", 500, {"error": "boom"}), "advance-time: 500"),
        (state("advance-time", 200, {}), "`now` is to be an integer; it is left out"),
        (state("advance-time", 200, {"now": "2026-01-01T00:00:00Z"}), "`now` is to be an integer"),
        (state("job", 200, {}), "`jobId` is to be a string; it is left out"),
        (state("job", 200, {"jobId": 7, "userId": "u"}), "`jobId` is to be a string; it is 7"),
        (state("job", 409, {"error": "no"}), "state job: refused (409)"),
        (state("reset", 500, {"error": "boom"}), "reset: 500"),
        (state("job", 501, {"error": "no"}), "no rule passed"),
    ],
    ids=[
        "no clock",
        "no instant",
        "an instant as text",
        "no id",
        "a number as id",
        "refused",
        "no reset",
        "not offered",
    ],
)
def test_a_state_that_is_not_set_up_leaves_it_inconclusive(served, rewrite, told):
    done = check(served, rewrite, "RT-LOCK-13")
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert told in " ".join(done.stdout.split())
    assert "INTERNALERROR" not in done.stdout
    assert "the check itself broke" not in done.stdout


def test_an_api_that_breaks_with_a_state_fails(served):
    def broken(answered):
        if answered.state == "job" or answered.path.endswith("/poll"):
            return answered.json(500, {"error": "boom"})
        return None

    done = check(served, broken, "RT-LOCK-13", "RT-POLL-01")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "RT-POLL-01" in done.stdout
    assert "RT-LOCK-13" not in " ".join(line for line in done.stdout.splitlines() if line.startswith("✘"))


def test_a_pending_job_that_can_not_be_cancelled_is_a_fault_of_the_build(served):
    done = check(served, state("cancel-job", 409, {"error": "no"}), "RT-CANCEL-01")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "Expected:  a pending job is cancelled" in done.stdout


def lock_answers(data):
    return lambda answered: (
        answered.json(200, data) if answered.path.endswith("/lock") and answered.status == 200 else None
    )


@pytest.mark.parametrize(
    ("rewrite", "rule", "told"),
    [
        (
            lock_answers({"jobId": "x", "status": "locked", "lockUntil": "soon"}),
            "RT-LOCK-10",
            "`lockUntil`, an integer",
        ),
        (lock_answers({"jobId": "x", "status": "locked", "lockUntil": None}), "RT-TIME-55", "`lockUntil`, an integer"),
        (
            lambda answered: answered.json(200, {"jobs": [{"id": {}}]}) if answered.path.endswith("/poll") else None,
            "RT-SCHED-02",
            "a list of objects with an `id`, a string",
        ),
        (
            lambda answered: wire(409, b"[" * 100_000 + b"]" * 100_000) if answered.status == 409 else None,
            "RT-LOCK-13",
            "a JSON body",
        ),
        (
            lambda answered: wire(200, answered.body + b"more", length=len(answered.body)) if answered.of_api else None,
            "RT-LOCK-03",
            "ends where its head says",
        ),
        (
            lambda answered: b"HTTP/1.1 204 No Content\r\n\r\n{}" if answered.status == 204 else None,
            "RT-HB-05",
            "ends where its head says",
        ),
    ],
    ids=["text for a number", "null for a number", "no text as id", "deep JSON", "longer than said", "204 with a body"],
)
def test_what_no_answer_may_be_fails_the_rule(served, rewrite, rule, told):
    done = check(served, rewrite, rule)
    assert (done.returncode, last_line(done)) == (1, "non-conformant"), done.stdout
    assert told in " ".join(done.stdout.split())


def test_what_a_build_says_does_not_move_the_cursor(served):
    screen = "\x1b[2J\x1b[31m\x07conformant"
    done = check(served, lambda answered: wire(409, screen.encode()) if answered.status == 409 else None, "RT-LOCK-13")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "\x1b" not in done.stdout
    assert r"\x1b[2J\x1b[31m\x07conformant" in done.stdout


@pytest.mark.parametrize("pad", [0, 60, 75])
def test_no_line_break_tears_the_key_apart(served, tmp_path, pad):
    said = ("x" * pad + " " + KEY + " " + "y" * 20).encode()
    report = tmp_path / "report.json"
    done = check(
        served,
        lambda answered: wire(409, said) if answered.status == 409 else None,
        "RT-LOCK-13",
        arguments=("--report", f"json={report}"),
    )
    assert done.returncode == 1
    text = "".join(done.stdout.split()) + report.read_text("utf-8")
    assert KEY not in text
    assert "[redacted]" in text


def test_a_build_that_dies_on_the_way_is_given_up(served):
    requests = []

    def dying(answered: Answered) -> bytes | None:
        requests.append(answered.path)
        return b"" if answered.of_api and len(requests) > 40 else None

    began = time.monotonic()
    done = check(served, dying)
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "the target was given up, 5 checks in a row got no answer" in " ".join(done.stdout.split())
    assert time.monotonic() - began < 30
    assert len(requests) < 200


def test_a_build_without_reset_is_not_blamed_for_the_jobs_of_others(served):
    with RewritingProxy(served, lambda _: None) as build:
        target = ("--base-url", build.url, "--api-key", KEY, "--no-fuzz", "--only", "RT-SCHED-*")
        contract("check", "runtime-api", *target, "--provider-states", build.states)  # leaves jobs behind
        done = contract("check", "runtime-api", *target)
    assert "0 failed" in done.stdout
    assert "needs the provider state reset" in done.stdout


def test_fail_fast_stops_at_once_where_checks_wait_side_by_side():
    with reference.serve(KEY, "--without-state", "advance-time", "--mutant", "lock.wrong-code") as base_url:
        states = f"{base_url}/__control__/provider-states/runtime-api"
        target = ("--base-url", base_url, "--provider-states", states, "--api-key", KEY)
        began = time.monotonic()
        done = contract("check", "runtime-api", *target, "--fail-fast", "--only", "RT-LOCK-*", "--no-fuzz")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "stopped at the first failure" in done.stdout
    assert time.monotonic() - began < 30


def test_right_in_another_way_is_right(served):
    def otherwise(answered: Answered) -> bytes | None:
        if not answered.of_api or not answered.body:
            return None
        data = dict(reversed(json.loads(answered.body).items()))
        return answered.json(answered.status, {"more": {"a": [1]}, **data})

    done = check(served, otherwise, "RT-LOCK-*", "RT-POLL-*", "RT-SCHED-*")
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
