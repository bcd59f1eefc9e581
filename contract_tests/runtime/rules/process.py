"""What SIGTERM makes of a Runtime: no new job, what it holds brought to an end, and an exit."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL, REPORTS
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import WIRE, lapsed, late, renewals, same_life, span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

_HEARD = 0.5
"""A signal may take this long until it is acted upon."""
_EXIT = 30.0
"""Within this a Runtime that was told to end ends (RT-HEALTH-64)."""
_LATEST = _EXIT + 0.5
"""No network stands between a process and who watches it."""
FINAL = ("INVALID_SNAPSHOT", "INVALID_SCHEMA", "INVALID_CREDENTIAL", "JOB_CANCELLED")
"""Failures that are not retryable whenever they are found."""


def _drain(history: History, term: float, ended: float | None) -> tuple[float, bool]:
    """Until when a process that was told to end is watched, and whether that is the whole of its time."""
    killed = next((at for at in history.signalled("KILL") if at >= term and (ended is None or at <= ended)), None)
    stood = any(term <= at <= (ended or history.end) for at in history.signalled("STOP"))
    end = min(at for at in (ended, killed, history.end, term + _LATEST) if at is not None)
    whole = not stood and (end == term + _LATEST or (end == ended and (killed is None or killed > end)))
    return end, whole


def _held(history: History, term: float) -> list[Hold]:
    """What a process held when it was told to end; not what it had lost, or let lapse, by then."""
    return [
        hold
        for hold in history.holds
        if hold.known is not None and hold.known <= term - WIRE and same_life(history, hold.begin, term)
        if hold.end is None or hold.end > term + WIRE
        if max(call.sent for call in renewals(hold) if call.sent <= term) + history.facts.lock > term
        if hold.next_lock is None or hold.next_lock.status != 200 or hold.next_lock.sent > term
    ]


@monitor("RT-HEALTH-60")
def takes_nothing_new(history: History) -> Iterator[Finding]:
    """After SIGTERM no further job is locked."""
    for term, ended in history.terms:
        end, _ = _drain(history, term, ended)
        lock = next((call for call in history.of("lockJob") if term + _HEARD < call.sent <= end), None)
        if lock is not None:
            yield broken(lock, "no new job after SIGTERM", f"{lock.name} asked for {span(lock.sent - term)} after it")
        elif ended is not None or end - term >= 2 * _HEARD:
            yield kept(term)


@monitor("RT-HEALTH-61")
def gives_back(history: History) -> Iterator[Finding]:
    """A lock that was asked for before SIGTERM and granted after it is given back by a retryable failure."""
    for term, ended in history.terms:
        end, whole = _drain(history, term, ended)
        for hold in history.holds:
            # A lock that is asked for later is RT-HEALTH-60's.
            if not (hold.lock.heard and hold.lock.sent <= term + _HEARD and term + WIRE < hold.lock.ended < end):
                continue
            wanted = f"{hold.job}, whose lock was granted after SIGTERM, given back by a failure with retryable true"
            report = hold.reports[0] if hold.reports else None
            if report is None:
                if whole and hold.dropped is None:
                    actual = "no report until the process ended" if end == ended else f"no report in {span(end - term)}"
                    yield broken(hold.lock, wanted, actual)
            elif report.operation == "failJob" and report.get("retryable") is True:
                yield kept(report)
            else:
                flag = f" with retryable {report.get('retryable')}" if report.operation == "failJob" else ""
                yield broken(report, wanted, f"{report.operation}{flag}")


@monitor("RT-HEALTH-62")
def goes_on_heartbeating(history: History) -> Iterator[Finding]:
    """After SIGTERM the jobs that it holds get heartbeats as before."""
    for term, ended in history.terms:
        end, _ = _drain(history, term, ended)
        for hold in _held(history, term):
            until = _works_until(hold, end)
            sent = [hold.begin, *(call.sent for call in hold.heartbeats if call.sent <= until)]
            before = [at for at in sent if at <= term]
            usual = [b - a for a, b in pairwise(before)]
            cadence = median(usual) if usual else max(history.facts.heartbeat or 0, history.facts.lock / 2)
            limit = min(history.facts.lock, max(1.5 * cadence + 0.5, history.facts.lock / 3))
            after = [at for at in sent if at > term]
            if history.interrupted(before[-1], term):
                continue
            if after:
                gap = max((b - a, a) for a, b in pairwise([before[-1], *after, max(until, after[-1])]))
                if gap[0] < late(history.facts.lock):
                    yield kept(after[0])
                else:
                    wanted = f"heartbeats of {hold.job} less than {span(history.facts.lock)} apart after SIGTERM"
                    yield broken(gap[1], wanted, f"none for {span(gap[0])}")
            elif until - before[-1] >= limit and until > term:
                wanted = f"heartbeats of {hold.job} after SIGTERM as before (every {span(cadence)})"
                yield broken(term, wanted, f"none for {span(until - before[-1])}, while it worked on")


def _works_until(hold: Hold, end: float) -> float:
    """The last instant at which it is seen at work, at most until the process ended."""
    seen = [call.ended if call.operation == MODEL else call.sent for call in hold.calls]
    caps = [at for at in (hold.end, hold.stop.ended if hold.stop else None) if at is not None]
    return min([max(seen, default=hold.begin), end, *caps])


@monitor("RT-HEALTH-63")
def leaves_nothing(history: History) -> Iterator[Finding]:
    """After SIGTERM what it holds is finished, or failed with retryable true."""
    for term, ended in history.terms:
        end, whole = _drain(history, term, ended)
        for hold in _held(history, term):
            reports = [call for call in hold.calls if call.operation in REPORTS and call.sent <= end]
            wanted = f"{hold.job}, which it held at SIGTERM, finished or failed with retryable true"
            wrong = next((call for call in reports if call.sent > term and _given_up(hold, call)), None)
            if wrong is not None:
                yield broken(wrong, wanted, f"{wrong.get('errorCode')} with retryable {wrong.get('retryable')}")
            elif reports:
                if any(call.heard for call in reports):
                    yield kept(reports[-1])
            elif whole and hold.dropped is None and lapsed(history, hold) is None:
                actual = "no report until the process ended" if end == ended else f"no report in {span(end - term)}"
                yield broken(ended if ended is not None and end == ended else term, wanted, actual)


def _given_up(hold: Hold, report: Call) -> bool:
    """Whether a failure says not retryable though nothing that is for good had been found."""
    if report.operation != "failJob" or report.get("retryable") is True or report.get("errorCode") in FINAL:
        return False
    return not any(call.heard and 400 <= call.status < 500 for call in hold.calls if call.sent < report.sent)


@monitor("RT-HEALTH-64")
def ends(history: History) -> Iterator[Finding]:
    """The process ends within 30 s of SIGTERM."""
    for term, ended in history.terms:
        end, whole = _drain(history, term, ended)
        if not whole:
            continue
        if end == ended:
            yield kept(ended)
        else:
            lasted = "it did not" if ended is None else f"it ended after {span(ended - term)}"
            yield broken(term, f"an end of the process within {span(_EXIT)} of SIGTERM", lasted)
