"""From recordings of Runtimes to the ends of checks: one for each monitor in each scenario."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from conformance.results import NOT_ARISEN, CheckResult
from contract_tests.runtime.monitors import judge, monitors
from contract_tests.runtime.recorded import histories
from contract_tests.runtime.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History
    from contract_tests.runtime.monitors import Finding, Outcome

_AROUND = 12
"""Exchanges that are shown with a failure, at most."""
_MOST_TOLD, _MOST_WORDS = 3, 5
_ELSEWHERE = {"RT-IDEM-04": "judged elsewhere: the API makes the key, RT-RES-11, 12, 80 and 81 are about its parts"}


def judged(
    log: Mapping[str, Any],
    rules: Iterable[str],
    command: Sequence[str] = (),
    options: Sequence[str] = (),
    said: Mapping[str, str] | None = None,
) -> list[CheckResult]:
    """The ends of all checks on a recording; those whose situation did not arise are left out.

    ``command`` is the Runtime's and ``options`` are those of ``contract check runtime``, for the commands that show a
    failure again; ``said`` is the end of its output by scenario, without secrets.

    Raises :class:`contract_tests.runtime.recorded.RecordingError`.
    """
    wanted = set(rules)
    return [
        _result(history, outcome, command, options, (said or {}).get(history.facts.scenario, ""))
        for history in histories(log)
        for outcome in judge(history, wanted)
        if outcome.status != "untested"
    ]


def unseen() -> dict[str, str]:
    """Why a rule of Runtimes is untested, where none of its situations is in a recording."""
    return {**_ELSEWHERE, **dict.fromkeys(monitors(), NOT_ARISEN)}


def _result(
    history: History, outcome: Outcome, command: Sequence[str], options: Sequence[str], said: str
) -> CheckResult:
    monitor, scenario = outcome.monitor, history.facts.scenario
    result = CheckResult(
        f"{scenario}:{monitor.name}", monitor.title, [monitor.rule], status="passed", message=None, family=monitor.name
    )
    if outcome.status == "unknown":
        result.status, result.message, result.set_up_failed = "skipped", f"unknown: {outcome.problem}", True
    elif outcome.status == "failed":
        first = outcome.broken[0]
        result.status = "failed"
        result.message = f"expected {first.expected}; {first.actual} ({scenario}, {first.at:.3f} s)"
        result.expected = [first.expected]
        result.actual = f"{first.actual}, {first.at:.3f} s after the start of {scenario}{_more(outcome.broken[1:])}"
        result.timeline = [*timeline(history, first), *_words(said)]
        result.exchanges = [_exchange(call) for call in _around(history, first)]
        result.commands = _again(monitor.rule, scenario, command, options)
    return result


def _words(said: str) -> list[str]:
    """The last lines that the Runtime printed, as the end of a timeline."""
    lines = [line for line in said.splitlines() if line.strip()][-_MOST_WORDS:]
    return [" the last that it printed:", *(f"   | {line[:200]}" for line in lines)] if lines else []


def _more(others: Sequence[Finding]) -> str:
    if not others:
        return ""
    told = ", ".join(f"{finding.at:.3f} s" for finding in others[:_MOST_TOLD])
    return f" (again at {told}{', ...' if len(others) > _MOST_TOLD else ''})"


def _again(rule: str, scenario: str, command: Sequence[str], options: Sequence[str]) -> list[str]:
    if not command:
        return []
    return [
        shlex.join(["contract", "check", "runtime", "--only", rule, "--scenario", scenario, *options, "--", *command])
    ]


def _around(history: History, finding: Finding) -> list[Call]:
    """The calls about the finding's job, or near it, that came last before it; the finding's own is the last."""
    job = finding.call.job if finding.call else None
    calls = [call for call in history.calls if call.sent <= finding.at and (job is None or call.job == job)]
    if finding.call is not None and finding.call not in calls:
        calls.append(finding.call)
    return calls[-_AROUND:]


def _exchange(call: Call) -> dict[str, Any]:
    """One exchange as a report has it; the recording holds no secrets."""
    query = f"?{call.query}" if call.query else ""
    request = {"method": call.method, "url": f"{call.path}{query}", "headers": dict(call.headers), "body": call.text}
    response = None
    if call.status and call.heard:
        response = {"status": call.status, "headers": dict(call.answer_headers), "body": call.answer_text}
    return {"at": round(max(call.sent, 0) * 1000, 1), "request": request, "response": response}
