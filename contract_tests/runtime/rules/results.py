"""RT-RES: the form of a result, its hash, and what follows its answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.history import jobs_listed
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.model_outcomes import NOTHING_TO_USE, outcome
from contract_tests.runtime.rules.repeats import WITHIN, again, series
from contract_tests.runtime.rules.reporting import GRACE, code_of, fails_as, missing, said, soon, stopped_before
from contract_tests.runtime.rules.wire_shapes import (
    carries,
    endpoint,
    is_count,
    is_number,
    is_string,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History

REFUSED = (400, 413, 422)
"""Answers that say that the result itself is not acceptable."""


def _results(history: History) -> list[Call]:
    return history.of("submitResult")


@monitor("RT-RES-01")
def result_endpoint(history: History) -> Iterator[Finding]:
    """Results go to POST /internal/runtime/jobs/{jobId}/result."""
    yield from endpoint(history, "submitResult", "result", "POST /internal/runtime/jobs/{jobId}/result")


@monitor("RT-RES-02")
def result_of_success(history: History) -> Iterator[Finding]:
    """A result follows a model call that gave something to make it of."""
    calls = history.of(MODEL)
    for hold in history.holds:
        for report in hold.of("submitResult")[:1]:
            before = [call for call in calls if call.job == hold.job and call.sent < report.sent]
            if not calls:
                continue  # the model is somewhere else
            kinds = {outcome(call, report.sent) for call in before}
            if kinds - NOTHING_TO_USE:
                yield kept(report)
            else:
                what = f"{len(before)} model calls: {', '.join(sorted(kinds))}" if before else "no model call"
                yield broken(report, "a result only after a model call that answered", f"{said(report)} after {what}")


@monitor("RT-RES-03")
def result_instance(history: History) -> Iterator[Finding]:
    """A result carries ``runtimeInstanceId``, a string."""
    yield from carries(_results(history), "runtimeInstanceId", is_string, "a string")


@monitor("RT-RES-04")
def result_schema_version(history: History) -> Iterator[Finding]:
    """A result carries ``schemaVersion``, a string."""
    yield from carries(_results(history), "schemaVersion", is_string, "a string")


@monitor("RT-RES-05")
def result_status(history: History) -> Iterator[Finding]:
    """A result's ``status`` is ``succeeded``."""
    yield from carries(_results(history), "status", lambda value: value == "succeeded", '"succeeded"')


@monitor("RT-RES-07")
def result_output(history: History) -> Iterator[Finding]:
    """A result carries ``validatedOutput``, an object."""
    yield from carries(_results(history), "validatedOutput", lambda value: isinstance(value, dict), "an object")


@monitor("RT-RES-08")
def result_errors(history: History) -> Iterator[Finding]:
    """Where a result has ``validationErrors`` it is a list."""
    results = _results(history)
    yield from carries(results, "validationErrors", lambda value: isinstance(value, list), "a list", required=False)


@monitor("RT-RES-09")
def result_usage(history: History) -> Iterator[Finding]:
    """A result carries ``usage``: whole numbers of tokens, and what else it has there is a number."""
    tokens = dict.fromkeys(("inputTokens", "outputTokens", "totalTokens"), (is_count, "a whole number"))
    others = {"latencyMs": (is_count, "a whole number"), "costEstimate": (is_number, "a number")}
    for call in _results(history):
        if call.cut:
            continue
        usage = call.get("usage")
        if not isinstance(usage, dict):
            yield broken(call, "usage: an object", f"usage: {shown(usage)} in {call.name}")
            continue
        wrong = [
            (name, expected)
            for name, (right, expected) in {**tokens, **others}.items()
            if (name in usage or name in tokens) and not right(usage.get(name))
        ]
        for name, expected in wrong:
            yield broken(call, f"usage.{name}: {expected}", f"usage.{name}: {shown(usage.get(name))} in {call.name}")
        if not wrong:
            yield kept(call)


@monitor("RT-RES-10")
def result_total(history: History) -> Iterator[Finding]:
    """``usage.totalTokens`` is ``inputTokens`` + ``outputTokens``."""
    for call in _results(history):
        usage = call.get("usage")
        told: dict[str, Any] = usage if isinstance(usage, dict) else {}
        incoming, outgoing, total = (told.get(name) for name in ("inputTokens", "outputTokens", "totalTokens"))
        if not is_count(incoming) or not is_count(outgoing) or not is_count(total):
            continue
        if told["inputTokens"] + told["outputTokens"] == total:
            yield kept(call)
        else:
            expected = f"totalTokens = inputTokens {incoming} + outputTokens {outgoing}"
            yield broken(call, expected, f"totalTokens {total} in {call.name}")


@monitor("RT-RES-11")
def result_attempt(history: History) -> Iterator[Finding]:
    """A result carries ``attemptNo``, a whole number."""
    yield from carries(_results(history), "attemptNo", is_count, "a whole number")


@monitor("RT-RES-12")
def result_hash(history: History) -> Iterator[Finding]:
    """A result carries ``outputHash``, a string."""
    yield from carries(_results(history), "outputHash", is_string, "a string")


@monitor("RT-RES-80")
def attempt_of_lock(history: History) -> Iterator[Finding]:
    """A result's ``attemptNo`` is that of the lock's answer."""
    for hold in history.holds:
        granted = hold.granted("attemptNo")
        if not hold.lock.ok or not is_count(granted):
            continue
        for call in hold.of("submitResult"):
            if is_count(call.get("attemptNo")):
                right = call.get("attemptNo") == granted
                expected = f"attemptNo {granted}, as the lock of {hold.job} answered"
                yield kept(call) if right else broken(call, expected, f"attemptNo {call.get('attemptNo')}")


def _hashed(history: History) -> list[tuple[Call, str, str]]:
    """The first result of each hold with its output in one form for equal outputs, and its hash."""
    found = []
    for hold in history.holds:
        for call in hold.of("submitResult")[:1]:
            output, mark = call.get("validatedOutput"), call.get("outputHash")
            if isinstance(output, dict) and is_string(mark):
                found.append((call, json.dumps(_even(output), sort_keys=True), mark))
    return found


def _even(value: Any) -> Any:
    """JSON with 1.0 as 1: they are one number."""
    if isinstance(value, dict):
        return {name: _even(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_even(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@monitor("RT-RES-81")
def hash_of_output(history: History) -> Iterator[Finding]:
    """Results with the same ``validatedOutput``, of whatever job and attempt, have the same hash."""
    seen: dict[str, tuple[Call, str]] = {}
    for call, output, mark in _hashed(history):
        if output not in seen:
            seen[output] = call, mark
            continue
        other, expected = seen[output]
        what = f"outputHash {expected}, as the same validatedOutput had in {other.name}"
        yield kept(call) if mark == expected else broken(call, what, f"outputHash {mark} in {call.name}")


@monitor("RT-RES-82")
def hash_tells_apart(history: History) -> Iterator[Finding]:
    """Results with different ``validatedOutput`` have different hashes."""
    seen: dict[str, tuple[Call, str]] = {}
    outputs: set[str] = set()
    for call, output, mark in _hashed(history):
        if mark in seen and seen[mark][1] != output:
            what = f"another outputHash than that of {seen[mark][0].name}, whose validatedOutput differs"
            yield broken(call, what, f"outputHash {mark} in {call.name}")
        elif outputs - {output}:
            yield kept(call)
        outputs.add(output)
        seen.setdefault(mark, (call, output))


def _after(history: History, call: Call) -> list[Call]:
    """Reports on the call's job after its answer; not the failure of a cancelled job that crosses with it."""
    reports = history.of("submitResult", "failJob")
    later = [report for report in reports if report.job == call.job and report.sent > call.ended]
    return [report for report in later if code_of(report) != "JOB_CANCELLED" or report.sent > call.ended + GRACE]


@monitor("RT-RES-83")
def done_is_done(history: History) -> Iterator[Finding]:
    """After 200 or 201 on a result nothing more is reported of that job in that hold."""
    for hold in history.holds:
        done = next((call for call in hold.of("submitResult") if call.ok), None)
        if done is None or done.garbled or history.end < done.ended + GRACE:
            continue
        later = [call for call in _after(history, done) if call in hold.reports]
        if later:
            yield broken(later[0], f"no report after the answer {done.status} on the result", said(later[0]))
        else:
            yield kept(done)


@monitor("RT-RES-84")
def exists_ends_it(history: History) -> Iterator[Finding]:
    """After 409 RESULT_ALREADY_EXISTS nothing more is reported of that job."""
    for call in _results(history):
        if not call.heard or (call.status, call.code) != (409, "RESULT_ALREADY_EXISTS"):
            continue
        later = _after(history, call)
        if later:
            yield broken(later[0], "no report after 409 RESULT_ALREADY_EXISTS", said(later[0]))
        elif history.end >= call.ended + GRACE:
            yield kept(call)


@monitor("RT-RES-85")
def same_result_again(history: History) -> Iterator[Finding]:
    """After a lost or 5xx answer the same result (same hash, same attempt) is sent again."""
    yield from again(history, "submitResult", ("outputHash", "attemptNo"))


@monitor("RT-RES-86")
def tried_twice_more(history: History) -> Iterator[Finding]:
    """A report with a lost or 5xx answer is tried at least twice more within 10 s."""
    for item in series(history):
        if item.answered or len(item.next) >= 2:
            yield kept(item.first)
        elif item.complete or item.barren:
            expected = f"two further tries within {WITHIN:g} s after {said(item.first)} got no answer or 5xx"
            yield broken(item.first, expected, f"{len(item.next)} further")


@monitor("RT-RES-87")
def refused_result(history: History) -> Iterator[Finding]:
    """After 400, 413 or 422 on a result comes the failure INVALID_SCHEMA, not retryable."""
    for hold in history.holds:
        refused = next((call for call in hold.of("submitResult") if call.heard and call.status in REFUSED), None)
        if refused is None:
            continue
        expected = f"fail INVALID_SCHEMA with retryable false after {refused.status} on the result"
        after = next((call for call in hold.reports if call.sent > refused.sent), None)
        if after is None:
            due = missing(history, hold, refused.ended, soon(hold), after=refused)
            if due is not None:
                yield broken(due, expected, f"no report of {hold.job} by then")
        elif fails_as(after, {"INVALID_SCHEMA"}, retryable=False):
            yield kept(after)
        elif not stopped_before(history, hold, after.sent) and not after.cut:
            yield broken(after, expected, said(after))


@monitor("RT-RES-88")
def schema_of_job(history: History) -> Iterator[Finding]:
    """A result's ``schemaVersion`` is the job's ``outputSchemaVersion``."""
    listed = jobs_listed(history.polls)
    for hold in history.holds:
        wanted = listed[hold.job][1].get("outputSchemaVersion") if hold.job in listed else None
        wanted = wanted if is_string(wanted) else hold.granted("outputSchemaVersion")
        for call in hold.of("submitResult"):
            version = call.get("schemaVersion")
            if not is_string(wanted) or not is_string(version):
                continue
            expected = f"schemaVersion {wanted}, the outputSchemaVersion of {hold.job}"
            yield kept(call) if version == wanted else broken(call, expected, f"schemaVersion {shown(version)}")
