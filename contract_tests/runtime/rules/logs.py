"""RT-LOG: the form of invocation logs, and that every model call has one in time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.invocations import WITHIN, Invocations, invocations
from contract_tests.runtime.rules.model_outcomes import GOOD, outcome
from contract_tests.runtime.rules.reporting import code_of, crashed, missing, said, soon, stopped_before
from contract_tests.runtime.rules.wire_shapes import ABSENT, endpoint, is_count, is_number, is_string, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

LOGS = "submitInvocationLogs"
TOKENS = ("inputTokens", "outputTokens", "totalTokens")
MODES = ("platform_key", "user_deepseek_key")


@monitor("RT-LOG-01")
def log_endpoint(history: History) -> Iterator[Finding]:
    """Logs go to POST /internal/runtime/invocation-logs."""
    yield from endpoint(history, LOGS, "(invocation-)?log", "POST /internal/runtime/invocation-logs")


@monitor("RT-LOG-02")
def log_batch(history: History) -> Iterator[Finding]:
    """A submission is a batch: an object whose ``logs`` is a list."""
    for call in history.of(LOGS):
        if call.cut:
            continue
        logs = call.get("logs")
        if isinstance(logs, list) and logs and all(isinstance(entry, dict) for entry in logs):
            yield kept(call)
        else:
            yield broken(
                call, "logs: a list of logs", f"logs: {shown(logs) if isinstance(call.body, dict) else 'nothing'}"
            )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _text_or_null(value: Any) -> bool:
    return isinstance(value, str | None)


def _forms(history: History, forms: dict[str, tuple[Callable[[Any], bool], str, bool]]) -> Iterator[Finding]:
    """Each entry by some of its properties: whether a value is right, in words, and whether it must be there.

    One that leaves something out is not wrong for it, but shows nothing either.
    """
    for call, entry in history.logs:
        wrong = [
            name
            for name, (right, _, required) in forms.items()
            if (name in entry or required) and not right(entry.get(name))
        ]
        for name in wrong:
            actual = f"{name}: {shown(entry.get(name, ABSENT))} in a log of {entry.get('jobId')}"
            yield broken(call, f"{name}: {forms[name][1]}", actual)
        if not wrong and all(name in entry for name in forms):
            yield kept(call)


@monitor("RT-LOG-03")
def log_ids(history: History) -> Iterator[Finding]:
    """An entry has ``jobId`` and ``runtimeInstanceId``; ``traceId`` and ``correlationId`` are strings."""
    free = (_text_or_null, "a string", False)
    ids = dict.fromkeys(("jobId", "runtimeInstanceId"), (is_string, "a string", True))
    yield from _forms(history, {**ids, "traceId": free, "correlationId": free})


@monitor("RT-LOG-04")
def log_model(history: History) -> Iterator[Finding]:
    """An entry has ``provider``, ``model`` and ``apiKeyMode``; ``credentialId`` is a string or null."""
    names = dict.fromkeys(("provider", "model"), (_text, "a string", True))
    mode = (lambda value: value in MODES, " or ".join(MODES), True)
    yield from _forms(
        history, {**names, "apiKeyMode": mode, "credentialId": (_text_or_null, "a string or null", False)}
    )


@monitor("RT-LOG-05")
def log_prompt(history: History) -> Iterator[Finding]:
    """``promptName``, ``promptVersion`` and ``outputSchemaVersion`` of an entry are strings."""
    names = ("promptName", "promptVersion", "outputSchemaVersion")
    yield from _forms(history, dict.fromkeys(names, (_text_or_null, "a string", False)))


@monitor("RT-LOG-06")
def log_numbers(history: History) -> Iterator[Finding]:
    """Tokens and ``latencyMs`` of an entry are whole numbers, ``costEstimate`` is a number."""
    tokens = {name: (lambda value: value is None or is_count(value), "a whole number", False) for name in TOKENS}
    latency = (is_count, "a whole number", False)
    yield from _forms(history, {**tokens, "latencyMs": latency, "costEstimate": (is_number, "a number", False)})


@monitor("RT-LOG-07")
def log_success(history: History) -> Iterator[Finding]:
    """An entry has ``success``, a boolean; ``retryCount`` is a whole number."""
    success = (lambda value: isinstance(value, bool), "true or false", True)
    yield from _forms(history, {"success": success, "retryCount": (is_count, "a whole number", False)})


@monitor("RT-LOG-08")
def log_without_key(history: History) -> Iterator[Finding]:
    """A submission of logs has no field ``apiKey``, at whatever depth and in whatever case."""
    for call in history.of(LOGS):
        if has_key_field(call.body):
            yield broken(call, "no field apiKey", f"a field apiKey in {call.name}")
        elif not call.cut:
            yield kept(call)


def has_key_field(value: Any) -> bool:
    """Whether some JSON has a property ``apiKey``, in whatever case."""
    if isinstance(value, list):
        return any(has_key_field(item) for item in value)
    if not isinstance(value, dict):
        return False
    return any(name.lower() == "apikey" or has_key_field(item) for name, item in value.items())


@monitor("RT-LOG-09")
def failed_calls(history: History) -> Iterator[Finding]:
    """A model call that failed has a log with ``success`` false."""
    for item in invocations(history):
        if item.failed:
            yield from _unsuccessful(item, len(item.failed), item.failed, "that failed")


@monitor("RT-LOG-70")
def aborted_calls(history: History) -> Iterator[Finding]:
    """A model call that a cancel, a lost lock or a shutdown aborted has a log with ``success`` false."""
    for item in invocations(history):
        if item.aborted and item.unsuccessful >= len(item.failed):
            yield from _unsuccessful(item, len(item.failed) + len(item.aborted), item.aborted, "that was aborted")


def _unsuccessful(item: Invocations, wanted: int, calls: list[Call], what: str) -> Iterator[Finding]:
    if item.unsuccessful >= wanted:
        yield kept(calls[-1])
    elif item.due is not None:
        expected = f"a log with success false for every model call for {item.job} {what}: {wanted}"
        yield broken(calls[-1], expected, f"{item.unsuccessful} with success false, {len(item.entries)} logs in all")


@monitor("RT-LOG-71")
def every_call(history: History) -> Iterator[Finding]:
    """Every model call has one log with a ``traceId`` of its own."""
    for item in invocations(history):
        calls, entries = len(item.calls), len(item.entries)
        nameless = [entry for _, entry in item.entries if not is_string(entry.get("traceId"))]
        expected = f"{calls} logs with a traceId each for the {calls} model calls for {item.job}"
        if nameless:
            yield broken(item.calls[-1], expected, f"{len(nameless)} without a traceId")
        elif len(item.traces) > calls and not _hidden(history, item):
            yield broken(item.calls[-1], expected, f"{len(item.traces)} different traceIds")
        elif len(item.traces) < min(entries, calls):
            yield broken(item.calls[-1], expected, f"{entries} logs with {len(item.traces)} different traceIds")
        elif entries >= calls:
            yield kept(item.calls[-1])
        elif item.due is not None and item.unsuccessful >= len(item.failed) + len(item.aborted):
            yield broken(item.calls[-1], expected, f"{entries} logs")


def _hidden(history: History, item: Invocations) -> bool:
    """Whether there may be calls that the count leaves out: sent anew by the client's connection, or never heard."""
    of_job = [call for hold in history.holds if hold.job == item.job for call in hold.model_calls]
    return len(of_job) > len(item.calls) and len(item.traces) <= len(of_job)


@monitor("RT-LOG-72")
def log_in_time(history: History) -> Iterator[Finding]:
    """Logs come at the latest 10 s after the job or the exit."""
    for item in invocations(history):
        calls = len(item.calls)
        if item.due is None or len(item.entries) < calls:
            continue  # a log that never came is not late
        if item.by(item.due) >= calls:
            yield kept(item.calls[-1])
        else:
            late = sorted(at for at, _ in item.entries)[calls - 1]
            expected = f"{calls} logs at the latest {WITHIN:g} s after {item.job} was done"
            yield broken(
                late, expected, f"{item.by(item.due)} by then, the last one {late - item.due:.1f} s later still"
            )


@monitor("RT-LOG-73")
def unknown_tokens(history: History) -> Iterator[Finding]:
    """Token counts of model calls whose answer had none are 0."""
    for item in invocations(history):
        without = [call for call in item.calls if not _has_usage(call)]
        if not without or not item.entries:
            continue
        counted = [entry for _, entry in item.entries if any(entry.get(name, 0) != 0 for name in TOKENS)]
        known = len(item.calls) - len(without)
        if len(counted) > known:
            values = ", ".join(f"{name} {shown(counted[-1].get(name, ABSENT))}" for name in TOKENS)
            expected = f"tokens 0 in the logs of {len(without)} model calls for {item.job} that told no usage"
            yield broken(without[-1], expected, f"{len(counted)} logs with tokens, such as {values}")
        elif len(item.entries) >= len(item.calls):
            yield kept(without[-1])


def _has_usage(call: Call) -> bool:
    """Whether a model call's answer tells how many tokens it took, or may have told it."""
    if call.lost:
        return (call.fault or {}).get("got") == "part"
    return call.answer_cut or _USAGE.search(call.answer_text) is not None


_USAGE = re.compile(r'"usage"\s*:\s*\{')


@monitor("RT-LOG-10")
def failing_submission(history: History) -> Iterator[Finding]:
    """A log submission that fails changes nothing for the job, and does not end the process."""
    for call in history.of(LOGS):
        if call.ok:
            continue
        broke = crashed(history, call.sent, call.ended + 5)
        if broke is not None:
            yield broken(
                broke, f"a Runtime that goes on after {_answer(call)} on its logs", "the process ended with an error"
            )
            continue
        jobs = {entry.get("jobId") for item, entry in history.logs if item is call}
        for hold in history.holds:
            if (
                hold.job in jobs
                and hold.begin < call.sent
                and (hold.next_lock is None or call.sent < hold.next_lock.sent)
            ):
                yield from _unharmed(history, hold, call)


def _unharmed(history: History, hold: Hold, logs: Call) -> Iterator[Finding]:
    """A job whose model call had gone well, by what is reported after its log failed."""
    before = [call for call in hold.model_calls if call.sent < logs.sent]
    if not before or outcome(before[-1]) != GOOD:
        return
    expected = f"the result of {hold.job}, whatever became of its logs ({_answer(logs)})"
    report = hold.reports[0] if hold.reports else None
    if report is None:
        due = missing(history, hold, logs.ended, soon(hold))
        if due is not None:
            yield broken(due, expected, f"no report of {hold.job} by then")
    elif report.sent < logs.sent:
        if any(call.sent > logs.ended for call in history.calls):
            yield kept(logs)
    elif report.operation == "submitResult":
        yield kept(report)
    elif code_of(report) != "INVALID_SCHEMA" and not stopped_before(history, hold, report.sent):
        yield broken(report, expected, said(report))


def _answer(call: Call) -> str:
    return "no answer" if call.lost else f"the answer {call.status}"
