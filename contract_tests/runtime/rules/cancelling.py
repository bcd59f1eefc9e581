"""Cancel requests: the Runtime learns of one by a heartbeat's answer, stops, and says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import GRACE, WIRE, late, ran_until, span, watched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

_LONGEST = 30.0
"""Within this a job that is to be stopped is reported, or within the heartbeat's interval where that is shorter."""
_SENT = 0.5
"""A result this soon after the signal was under way."""


def _told(history: History) -> Iterator[tuple[Hold, Call]]:
    """Holds with the answer that asked to stop; not those that were settled, or about to be, by then."""
    for hold in history.holds:
        if hold.stop is not None and not (hold.end is not None and hold.end < hold.stop.ended):
            yield hold, hold.stop


def _said(hold: Hold, told: Call) -> bool:
    """Whether a failure after the signal ended the job."""
    settled = hold.settled
    return settled is not None and settled.operation == "failJob" and settled.sent > told.ended


def _settling(hold: Hold, told: Call) -> Call | None:
    """A report that was under way when the signal came, and settled the job."""
    settled = hold.settled
    return settled if settled is not None and settled.sent <= told.ended + GRACE else None


@monitor("RT-CANCEL-05")
def stops(history: History) -> Iterator[Finding]:
    """A job that a heartbeat's answer asked to stop is stopped: no result of it is sent."""
    for hold, told in _told(history):
        results = [call for call in hold.of("submitResult") if call.sent > told.ended + _SENT]
        earlier = {call.text for call in hold.of("submitResult") if call.sent <= told.ended + _SENT}
        late_ones = [call for call in results if call.text not in earlier]
        if late_ones:
            wanted = f"{hold.job} stopped: a heartbeat's answer had the header x-job-cancel-requested"
            yield broken(late_ones[0], wanted, f"a result {span(late_ones[0].sent - told.ended)} after it")
        elif not earlier and (_said(hold, told) or watched(history, told.ended)):
            yield kept(told)


@monitor("RT-CANCEL-70")
def no_further_model_call(history: History) -> Iterator[Finding]:
    """After an answer with x-job-cancel-requested no further model call is started for that job."""
    for hold, told in _told(history):
        # Who broke off a call knew of the signal.
        broke_off = [c.ended for c in hold.model_calls if c.sent < told.ended <= c.ended + WIRE and _broken_off(c)]
        since = min([told.ended + GRACE + WIRE, *broke_off])
        calls = [call for call in hold.model_calls if call.sent > told.ended and call.sent >= since - WIRE]
        if calls:
            wanted = f"no further model call of {hold.job} after the header x-job-cancel-requested"
            yield broken(calls[0], wanted, f"one {span(calls[0].sent - told.ended)} after it")
        elif _said(hold, told) or watched(history, told.ended):
            yield kept(told)


def _broken_off(call: Call) -> bool:
    """Whether the Runtime broke off a model call, as far as can be told."""
    return call.lost and call.outcome not in ("close", "reset")


@monitor("RT-CANCEL-71")
def says_so(history: History) -> Iterator[Finding]:
    """After an answer with x-job-cancel-requested a failure JOB_CANCELLED, not retryable, is sent in time."""
    limit = min(_LONGEST, history.facts.heartbeat or _LONGEST)
    wanted = f"a failure JOB_CANCELLED with retryable false within {span(limit)} of the header x-job-cancel-requested"
    for hold, told in _told(history):
        deadline = told.ended + late(limit)
        fail = next((call for call in hold.of("failJob") if call.sent > told.ended + GRACE or _says_it(call)), None)
        if fail is not None and fail.sent <= deadline:
            flag = fail.get("retryable")
            if _says_it(fail) and flag is False:
                yield kept(fail)
            else:
                yield broken(fail, wanted, f"{fail.get('errorCode')} with retryable {str(flag).lower()}")
        elif not (_settling(hold, told) or _under_way(hold, told, deadline) or _gone(history, hold, told, deadline)):
            actual = f"none for {span((fail.sent if fail else ran_until(history, told.ended)) - told.ended)}"
            yield broken(told, f"{wanted}, for {hold.job}", actual)


def _gone(history: History, hold: Hold, told: Call, deadline: float) -> bool:
    """Whether the process, the recording or the hold ended before the deadline."""
    dropped = hold.dropped is not None and hold.dropped.ended <= deadline
    return dropped or ran_until(history, told.ended) < deadline


def _says_it(fail: Call) -> bool:
    return bool(fail.get("errorCode") == "JOB_CANCELLED")


def _under_way(hold: Hold, told: Call, deadline: float) -> bool:
    """Whether a report that was sent before the signal was still being repeated."""
    return any(call.sent <= told.ended + GRACE and call.failed and call.ended < deadline for call in hold.reports)


@monitor("RT-CANCEL-72")
def settled_without(history: History) -> Iterator[Finding]:
    """After 409 JOB_CANCELLED on a result the job is settled: no further report follows."""
    for hold in history.holds:
        for call in hold.of("submitResult"):
            if not (call.heard and call.status == 409 and call.code == "JOB_CANCELLED"):
                continue
            # A failure that answers the signal may cross the result.
            crossing = hold.stop is not None and hold.stop.ended < call.ended + GRACE
            further = [
                c
                for c in hold.reports
                # The same result again is no further report, where its sender may not have waited for the answer.
                if c.sent >= call.ended + (GRACE if crossing or c.text == call.text else 0)
            ]
            if further:
                wrong = further[0]
                wanted = f"no further report of {hold.job} after 409 JOB_CANCELLED on its result"
                yield broken(wrong, wanted, f"{wrong.operation} {span(wrong.sent - call.ended)} after it")
            elif watched(history, call.ended):
                yield kept(call)
            break


@monitor("RT-HB-09")
def at_the_next_heartbeat(history: History) -> Iterator[Finding]:
    """The cancel request that a heartbeat's answer carries is learnt from it: the work stops."""
    yield from stops(history)
