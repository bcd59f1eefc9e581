"""What is known of a hold's reports: which tells what came of the work, when one is missing, what excuses another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

WIRE = 0.05
"""Seconds that an answer may take to be known, or a request to be seen."""
GRACE = 0.25
"""Seconds in which a request may already be on its way when an answer comes."""
SOON = 10.0
"""Seconds in which a failure that nothing holds up has to be reported; half the job's time where that is less."""
_OURS = (0, -2, -9, -15)
"""Ends of a process that may be our own doing."""

RETRYABLE = {
    "MODEL_TIMEOUT": True,
    "MODEL_RATE_LIMIT": True,
    "NETWORK_ERROR": True,
    "TEMPORARY_PROVIDER_ERROR": True,
    "INVALID_SNAPSHOT": False,
    "INVALID_SCHEMA": False,
    "INVALID_CREDENTIAL": False,
    "JOB_TIMEOUT": True,
    "SNAPSHOT_EXPIRED": True,
    "INTERNAL_ERROR": True,
    "JOB_CANCELLED": False,
}
"""The table: the flag of each code that is known."""


def slack(seconds: float) -> float:
    """A deadline as it is judged: many Runtimes run side by side on few cores."""
    return seconds * 1.1 + 0.5


def code_of(report: Call) -> str | None:
    """The ``errorCode`` of a failure; None of a result, or where it has none."""
    code = report.get("errorCode") if report.operation == "failJob" else None
    return code if isinstance(code, str) else None


def said(report: Call) -> str:
    """A report for a sentence: ``fail NETWORK_ERROR with retryable true``."""
    if report.operation == "submitResult":
        return f"a result of {report.job}"
    flag = {True: "true", False: "false"}.get(report.get("retryable"), "missing")
    return f"fail {report.get('errorCode')} with retryable {flag} of {report.job}"


def fails_as(report: Call, codes: Iterable[str], *, retryable: bool) -> bool:
    """Whether a report is a failure with one of these codes and this flag."""
    return code_of(report) in set(codes) and report.get("retryable") is retryable


def stopped_before(history: History, hold: Hold, at: float) -> bool:
    """Whether a cancel, a lost lock or a shutdown had reached the Runtime: they decide what it reports, and whether."""
    cancelled = (call for call in hold.calls if call.heard and call.code == "JOB_CANCELLED")
    causes = [hold.stop, hold.dropped, next(cancelled, None)]
    return any(cause is not None and cause.ended <= at for cause in causes) or history.term_before(at) is not None


def time_is_up(hold: Hold, at: float) -> bool:
    """Whether so much of the job's time had passed that ``JOB_TIMEOUT`` tells the truth."""
    return hold.limit is not None and at - hold.begin >= 0.8 * hold.limit


def unheard(history: History, hold: Hold, at: float) -> bool:
    """Whether the Runtime asked for its lock and got no answer for the lock's length (RT-HB-63): it may say nothing."""
    sent = [call.sent for call in (hold.lock, *hold.heartbeats) if call.ok and call.sent <= at]
    last = max(sent, default=hold.begin)
    return at - last >= history.facts.lock and any(last < call.sent <= at for call in hold.heartbeats)


def crashed(history: History, begin: float, end: float) -> float | None:
    """When the process ended by itself, with an error, between two instants; None: it did not."""
    for event in history.happened("exited"):
        ours = history.term_before(event.at) is not None or event.data.get("status", 0) in _OURS
        if begin <= event.at <= end and not ours:
            return event.at
    return None


def soon(hold: Hold) -> float:
    """Seconds in which a failure has to be reported that nothing holds up."""
    return SOON if hold.limit is None else min(SOON, hold.limit / 2)


def missing(history: History, hold: Hold, since: float, within: float, *, after: Call | None = None) -> float | None:
    """When it is certain that a hold has no report, due ``within`` seconds after an instant; None: it is not.

    ``after``: only reports after this one count. Certain is it when that time is over, when the job is locked anew, or
    when the process broke down.
    """
    if any(after is None or report.sent > after.sent for report in hold.reports):
        return None
    due = since + slack(within)
    if hold.next_lock is not None:
        due = min(due, hold.next_lock.sent)
    broke = crashed(history, since, due)
    if broke is not None:
        due = broke
    if history.end < due or (broke is None and history.interrupted(since, due)):
        return None
    if stopped_before(history, hold, due) or unheard(history, hold, due):
        return None
    return due


def overdue(history: History, hold: Hold) -> float | None:
    """When it is certain that a hold's report did not come in the job's time; None: it did, or need not, or is unknown.

    Certain is it a second and 5 % after the limit, or as soon as the API says after the limit that the lock is gone:
    who counts from sending the lock reports before the API finds the time over, and before it hears of that.
    """
    if hold.limit is None or hold.known is None:
        return None
    over, report = hold.begin + hold.limit, hold.reports[0] if hold.reports else None
    due, gone = over + 0.05 * hold.limit + 1, hold.dropped
    told = gone is not None and over + BEYOND <= gone.ended < due and gone.operation != "submitInvocationLogs"
    at = gone.ended if gone is not None and told else due
    if (report is not None and report.sent <= (gone.sent if gone is not None and told else due)) or history.end < at:
        return None
    if history.interrupted(hold.begin, at) or (hold.next_lock is not None and hold.next_lock.sent < over):
        return None
    until = min(over + BEYOND, at) - 1e-6
    return None if stopped_before(history, hold, until) or unheard(history, hold, until) else at


BEYOND = 0.15
"""Seconds after a job's time in which its report may cross with the API's word that the lock is gone."""


def first(history: History, hold: Hold) -> Call | None:
    """The first report of a hold, where it tells what came of the work: nothing else had decided before."""
    if not hold.reports:
        return None
    report = hold.reports[0]
    return None if report.cut or stopped_before(history, hold, report.sent) else report
