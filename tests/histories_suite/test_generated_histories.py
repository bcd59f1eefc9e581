"""Histories of a tiny server that is right are valid, whatever overlaps and is lost; and each kind of lie is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from history_tape import LIMITS, words
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tiny_server import Sent, played

KINDS = ("lock", "lock", "lock", "heartbeat", "heartbeat", "fail", "result", "revoke", "cancel", "inspect")
SHARP = replace(LIMITS, sweep=0.0)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MANY = settings(QUICK, max_examples=3000)


@st.composite
def requests(draw, *, apart=False):
    """Requests of a few Runtimes; ``apart``: none is sent before the one before was answered, and none is lost."""
    found, now = [], 0.0
    for _ in range(draw(st.integers(1, 20))):
        travel = back = 0.001
        fate = "answered"
        if apart:
            now += draw(st.sampled_from((0.05, 0.11, 0.37, 1.31)))
        else:
            now += draw(st.sampled_from((0.0, 0.001, 0.01, 0.3, 0.9, 1.0, 1.1)))
            travel, back = (draw(st.sampled_from((0.0005, 0.003, 0.05, 0.4))) for _ in range(2))
            fate = draw(st.sampled_from(("answered",) * 8 + ("lost", "never")))
        kind = draw(st.sampled_from(KINDS[:7] if apart else KINDS))
        who, hash_ = draw(st.sampled_from("abc")), draw(st.sampled_from("xxy"))
        retryable = draw(st.sampled_from((True, True, False)))
        found.append(Sent(who, kind, now, travel, back, fate, hash_, retryable))
    return found


def judge_the_right_server(sent, retries):
    history, server = played(sent, retries)
    assume(server.nearest > 1e-6)
    found = words(history)
    assert "invalid" not in found.values()
    if not history.lost:
        assert found == {}


@QUICK
@given(requests(), st.integers(0, 3))
def test_what_a_server_does_that_is_right_is_never_invalid(sent, retries):
    judge_the_right_server(sent, retries)


@pytest.mark.soak
@MANY
@given(requests(), st.integers(0, 3))
def test_what_a_server_does_that_is_right_is_never_invalid_however_long_one_looks(sent, retries):
    judge_the_right_server(sent, retries)


def refused_lock(item):
    return replace(item, status=200, code=None, told={"attemptNo": 0}) if _is(item, "lock", 409) else None


def refused_heartbeat(item):
    return replace(item, status=204, code=None) if _is(item, "heartbeat", 409) else None


def refused_failure(item):
    told = {"status": "failed", "retryCount": 0}
    return replace(item, status=200, code=None, told=told) if _is(item, "fail", 409) else None


def refused_result(item):
    return replace(item, status=201, code=None) if _is(item, "result", 409) else None


def copy_stored(item):
    return replace(item, status=201) if _is(item, "result", 200) else None


def copy_forgotten(item):
    return replace(item, status=409, code="LOCK_NOT_HELD") if _is(item, "result", 200) else None


def attempt_counted_twice(item):
    return replace(item, told={"attemptNo": item.told["attemptNo"] + 1}) if _is(item, "lock", 200) else None


def attempt_not_counted(item):
    late = _is(item, "lock", 200) and item.told["attemptNo"]
    return replace(item, told={"attemptNo": item.told["attemptNo"] - 1}) if late else None


def failure_counted_twice(item):
    told = {**item.told, "retryCount": item.told.get("retryCount", 0) + 1}
    return replace(item, told=told) if _is(item, "fail", 200) else None


def free_job_refused(item):
    return replace(item, status=409, code="JOB_ALREADY_LOCKED", told={}) if _is(item, "lock", 200) else None


def holder_refused(item):
    return replace(item, status=409, code="LOCK_NOT_HELD") if _is(item, "heartbeat", 204) else None


def never_ends(item):
    return replace(item, told={**item.told, "status": "running"}) if item.kind == "inspect" else None


def result_gone(item):
    good = item.kind == "inspect" and item.told["status"] == "succeeded"
    return replace(item, told={**item.told, "resultCount": 0}) if good else None


def one_retry_too_many(item):
    told = {**item.told, "attemptNo": item.told.get("attemptNo", 0) + 1, "retryCount": item.told.get("retryCount", 0)}
    return replace(item, told=told) if item.kind == "inspect" else None


def _is(item, kind, status):
    return item.kind == kind and item.status == status


LIES = {
    refused_lock: {"ownership", "one-win", "finished"},
    refused_heartbeat: {"holders-only", "finished"},
    refused_failure: {"holders-only", "finished"},
    refused_result: {"holders-only", "finished", "result-stays"},
    copy_stored: {"result-stays"},
    copy_forgotten: {"result-stays"},
    attempt_counted_twice: {"counters", "one-win"},
    attempt_not_counted: {"counters", "one-win"},
    failure_counted_twice: {"counters"},
    free_job_refused: {"some-win"},
    holder_refused: {"holders-stay"},
    never_ends: {"ends", "finished"},
    result_gone: {"result-stays"},
    one_retry_too_many: {"counters"},
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_each_kind_of_lie_is_found(lie):
    find(lie, 15, 10)


@pytest.mark.soak
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_each_kind_of_lie_is_found_wherever_it_stands(lie):
    find(lie, 300, 200)


def find(lie, examples, least):
    told = 0

    @settings(QUICK, max_examples=examples)
    @given(requests(apart=True), st.integers(0, 3), st.data())
    def found(sent, retries, data):
        nonlocal told
        history, server = played(sent, retries, SHARP)
        assume(server.nearest > 0.03)
        false = {number: lie(item) for number, item in enumerate(history.operations)}
        false = {number: item for number, item in false.items() if item is not None}
        assume(false)
        number = data.draw(st.sampled_from(sorted(false)))
        operations = (*history.operations[:number], false[number], *history.operations[number + 1 :])
        verdicts = words(replace(history, operations=operations))
        assert {name for name in LIES[lie] if verdicts.get(name) == "invalid"}, verdicts
        told += 1

    found()
    assert told >= least
