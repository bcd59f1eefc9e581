"""RT-RETRY: what is reported fits what came of the last model call, within the job's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules.model_outcomes import (
    BROKEN,
    CUT_STREAM,
    DOWN,
    GOOD,
    KEY,
    LIMITED,
    NO_COMPLETION,
    NOTHING_TO_USE,
    REFUSED,
    SLOW,
    TEXT,
    TIMEOUT,
    UNCLEAR,
    UNPAID,
    Told,
    causes,
    told,
)
from contract_tests.runtime.rules.reporting import (
    RETRYABLE,
    code_of,
    fails_as,
    overdue,
    said,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold


def flags(history: History, only: str | None = None) -> Iterator[Finding]:
    """Every failure with a code of the table (``only``: with this one), by whether its flag fits.

    Not after another 4xx of the model (any code, not retryable), and not in a shutdown (any code, retryable).
    """
    refused = {item.report for item in told(history) if item.kind == REFUSED}
    for call in history.of("failJob"):
        code, flag = code_of(call), call.get("retryable")
        if code not in RETRYABLE or (only is not None and code != only) or not isinstance(flag, bool):
            continue
        right = RETRYABLE[code]
        free = (call in refused and not flag) or (flag and history.term_before(call.sent) is not None)
        if flag == right:
            yield kept(call)
        elif not free:
            yield broken(call, f"{code} with retryable {str(right).lower()}", said(call))


def stale(item: Told) -> bool:
    """Whether a failure fits an earlier model call, and not the last one."""
    return not item.result and not _alone(item, item.kind) and any(_alone(item, kind) for kind in item.earlier)


def _alone(item: Told, kind: str) -> bool:
    """Whether a failure fits an outcome; after a good completion what a Runtime may find wrong with it does."""
    if kind == REFUSED:
        return item.report.get("retryable") is False
    return item.fits(kind) and not (kind == GOOD and code_of(item.report) in _OF_THE_MODEL)


_OF_THE_MODEL = {"MODEL_TIMEOUT", "MODEL_RATE_LIMIT", "NETWORK_ERROR", "TEMPORARY_PROVIDER_ERROR", "INVALID_CREDENTIAL"}


def _classed(
    history: History, kinds: set[str], expected: str, fits: Callable[[Told], bool] | None = None
) -> Iterator[Finding]:
    """Reports after model calls with one of these outcomes. One that fits an earlier call is RT-RETRY-66's."""
    for item in told(history):
        if item.kind not in kinds:
            continue
        if item.result and item.kind in NOTHING_TO_USE:
            continue  # RT-RES-02
        if item.fits(item.kind) and (item.result or fits is None or fits(item)):
            yield kept(item.report)
        elif not stale(item):
            yield broken(item.report, f"{expected} after {item.after}", said(item.report))


@monitor("RT-RETRY-08")
def model_timeout(history: History) -> Iterator[Finding]:
    """A model timeout is reported as MODEL_TIMEOUT (or JOB_TIMEOUT), and MODEL_TIMEOUT is retryable."""
    yield from flags(history, "MODEL_TIMEOUT")
    yield from _classed(history, {TIMEOUT}, "fail MODEL_TIMEOUT or JOB_TIMEOUT")


@monitor("RT-RETRY-09")
def rate_limit(history: History) -> Iterator[Finding]:
    """429 of the model is reported as MODEL_RATE_LIMIT, which is retryable."""
    yield from flags(history, "MODEL_RATE_LIMIT")
    yield from _classed(history, {LIMITED}, "fail MODEL_RATE_LIMIT")


@monitor("RT-RETRY-10")
def network(history: History) -> Iterator[Finding]:
    """A broken connection to the model is reported as NETWORK_ERROR, which is retryable."""
    yield from flags(history, "NETWORK_ERROR")
    yield from _classed(history, {BROKEN, CUT_STREAM}, "fail NETWORK_ERROR")


@monitor("RT-RETRY-11")
def provider_down(history: History) -> Iterator[Finding]:
    """5xx of the model is reported as TEMPORARY_PROVIDER_ERROR, which is retryable."""
    yield from flags(history, "TEMPORARY_PROVIDER_ERROR")
    yield from _classed(history, {DOWN}, "fail TEMPORARY_PROVIDER_ERROR")


@monitor("RT-RETRY-12")
def invalid_snapshot(history: History) -> Iterator[Finding]:
    """INVALID_SNAPSHOT is not retryable."""
    yield from flags(history, "INVALID_SNAPSHOT")


@monitor("RT-RETRY-13")
def invalid_schema(history: History) -> Iterator[Finding]:
    """Output that is no JSON object is reported as INVALID_SCHEMA, which is not retryable."""
    yield from flags(history, "INVALID_SCHEMA")
    yield from _classed(history, {TEXT}, "fail INVALID_SCHEMA")


@monitor("RT-RETRY-14")
def invalid_credential(history: History) -> Iterator[Finding]:
    """401 of the model is reported as INVALID_CREDENTIAL, which is not retryable."""
    yield from flags(history, "INVALID_CREDENTIAL")
    yield from _classed(history, {KEY}, "fail INVALID_CREDENTIAL")


@monitor("RT-RETRY-15")
def job_timeout(history: History) -> Iterator[Finding]:
    """JOB_TIMEOUT is retryable."""
    yield from flags(history, "JOB_TIMEOUT")


@monitor("RT-RETRY-60")
def unpaid(history: History) -> Iterator[Finding]:
    """402 and 403 of the model are reported as INVALID_CREDENTIAL, not retryable."""
    yield from _classed(
        history,
        {UNPAID},
        "fail INVALID_CREDENTIAL with retryable false",
        lambda item: _flagged(item, "INVALID_CREDENTIAL"),
    )


@monitor("RT-RETRY-61")
def slow(history: History) -> Iterator[Finding]:
    """408 of the model is reported as MODEL_TIMEOUT, retryable."""
    yield from _classed(
        history, {SLOW}, "fail MODEL_TIMEOUT with retryable true", lambda item: _flagged(item, "MODEL_TIMEOUT")
    )


def _flagged(item: Told, code: str) -> bool:
    """Whether the flag is that of a code; a report with another code is judged elsewhere."""
    return code_of(item.report) != code or fails_as(item.report, {code}, retryable=RETRYABLE[code])


@monitor("RT-RETRY-62")
def refused(history: History) -> Iterator[Finding]:
    """Another 4xx of the model is reported as not retryable."""
    for item in told(history):
        if item.kind != REFUSED or item.result:
            continue
        late = code_of(item.report) == "JOB_TIMEOUT" and item.fits(TIMEOUT)
        if item.report.get("retryable") is False:
            yield kept(item.report)
        elif not late and not stale(item):
            yield broken(item.report, f"a failure with retryable false after {item.after}", said(item.report))


@monitor("RT-RETRY-63")
def no_completion(history: History) -> Iterator[Finding]:
    """A 2xx that is no completion is reported as INVALID_SCHEMA or TEMPORARY_PROVIDER_ERROR, with its flag."""
    yield from _classed(
        history,
        {NO_COMPLETION},
        "fail INVALID_SCHEMA with retryable false, or TEMPORARY_PROVIDER_ERROR with true,",
        lambda item: item.report.get("retryable") is RETRYABLE.get(code_of(item.report) or ""),
    )


@monitor("RT-RETRY-64")
def never_answered(history: History) -> Iterator[Finding]:
    """A model that never answers is reported as MODEL_TIMEOUT or JOB_TIMEOUT."""
    expected = "fail MODEL_TIMEOUT or JOB_TIMEOUT after a model call that got no answer"
    for item in told(history):
        if item.kind != TIMEOUT or "hang" not in causes(item.last) or item.result:
            continue
        if item.fits(TIMEOUT):
            yield kept(item.report)
        elif not stale(item):
            yield broken(item.report, expected, said(item.report))
    for hold in history.holds:
        last = hold.model_calls[-1] if hold.model_calls and not hold.reports else None
        due = overdue(history, hold) if last is not None and last.lost and "hang" in causes(last) else None
        if due is not None:
            yield broken(due, expected, f"no report of {hold.job} in the job's {hold.limit:g} s")


@monitor("RT-RETRY-65")
def unfit_text(history: History) -> Iterator[Finding]:
    """Prose, cut-off JSON, an empty text and JSON that is no object are reported as INVALID_SCHEMA."""
    yield from _classed(history, {TEXT}, "fail INVALID_SCHEMA")


@monitor("RT-RETRY-66")
def own_repeats(history: History) -> Iterator[Finding]:
    """After model calls that were repeated the report fits the last one, not an earlier one."""
    for item in told(history):
        if not item.earlier or UNCLEAR in (item.kind, *item.earlier):
            continue
        if stale(item):
            what = f"what fits the last of {len(item.earlier) + 1} model calls: {item.after}"
            yield broken(item.report, what, said(item.report))
        elif item.fits(item.kind):
            yield kept(item.report)


@monitor("RT-RETRY-67")
def time_limit(history: History) -> Iterator[Finding]:
    """Model calls and the report come within ``timeoutSeconds``, counted from sending the lock."""
    for hold in history.holds:
        if hold.limit is None or not hold.of(MODEL):
            continue
        within = f"the job's {hold.limit:g} s from sending the lock"
        late = hold.begin + 1.05 * hold.limit + BEGUN
        over = [call for call in hold.model_calls if call.sent > late]
        if over and not history.interrupted(hold.begin, over[0].sent):
            yield broken(over[0], f"no model call after {within}", _since(hold, over[0], "a model call"))
        due = overdue(history, hold)
        report = hold.reports[0] if hold.reports else None
        if due is not None:
            actual = _since(hold, report, said(report)) if report else f"no report of {hold.job} by then"
            yield broken(report or due, f"a report within {within}", actual)
        elif report is not None and report.sent >= hold.begin + 0.6 * hold.limit:
            yield kept(report)


def _since(hold: Hold, call: Call, what: str) -> str:
    return f"{what} {call.sent - hold.begin:.1f} s after sending the lock"


BEGUN = 0.1
"""Seconds, with 5 % of the job's time, in which a model call may still be on its way when that is over."""
