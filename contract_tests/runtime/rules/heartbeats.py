"""Heartbeats: no lock lapses while there is work, and no work outlives its lock."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    GRACE,
    STOPS,
    WIRE,
    flawless,
    is_number,
    lapses,
    late,
    marks,
    ran_until,
    readable,
    renewals,
    span,
    tried,
    watched,
    worked_until,
)
from contract_tests.runtime.rules.locking import says_who
from contract_tests.runtime.rules.requests import wrong_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

NO_MORE = ("submitResult", "failJob", "heartbeatJob", MODEL)
"""What must not be sent for a lock that was lost."""
ENDS_SOON = ("getSnapshot", "resolveCredential")
"""What belongs to the work that is to be stopped."""


@monitor("RT-HB-01")
def endpoint(history: History) -> Iterator[Finding]:
    """Heartbeats are POST /internal/runtime/jobs/{jobId}/heartbeat."""
    yield from wrong_way(history, "heartbeatJob", "heart", "POST /internal/runtime/jobs/{jobId}/heartbeat")


@monitor("RT-HB-02")
def body(history: History) -> Iterator[Finding]:
    """A heartbeat's body says who asks: runtimeInstanceId, a string."""
    yield from says_who(history, "heartbeatJob")


def skew(history: History, hold: Hold) -> float | None:
    """By how much the ``lockUntil`` that the Runtime was told is off, where it is off by much; otherwise None."""
    told = hold.lock.told("lockUntil")
    if not hold.lock.ok or not is_number(told):
        return None
    off = float(told) / 1000 - history.zero - hold.begin - history.facts.lock
    spent = hold.lock.ended - hold.begin
    return off if off < -max(2, history.facts.lock / 4) or off > max(2, history.facts.lock / 4) + spent else None


def _gaps(history: History, hold: Hold) -> list[tuple[float, float]]:
    """Spans between sending the lock, heartbeats, and the last instant at which it is seen at work."""
    until = worked_until(history, hold)
    return [(a, b) for a, b in pairwise([*marks(hold, until), until]) if a < b and not history.interrupted(a, b)]


def _holds(history: History) -> list[Hold]:
    return [hold for hold in history.holds if hold.known is not None and readable(hold)]


def _too_long(history: History, hold: Hold, gaps: list[tuple[float, float]]) -> tuple[float, float] | None:
    """The first gap that reaches the lock's length.

    One that is hardly longer counts only where the Runtime never heartbeats sooner (otherwise it was held up), or where
    the API said of itself that the lock had lapsed.
    """
    lock = history.facts.lock
    beats = [marks(hold, worked_until(history, hold))[1:] for hold in _holds(history)]
    sooner = any(b - a < 0.8 * lock for sent in beats for a, b in pairwise(sent))
    lost = [call.sent for call in hold.calls if call.drops_work and call.fault is None]
    reached = [(a, b) for a, b in gaps if b - a >= lock - WIRE]
    return next(
        (
            (a, b)
            for a, b in reached
            if b - a >= late(lock) or not sooner or any(b - WIRE <= at <= b + GRACE for at in lost)
        ),
        None,
    )


def _long(history: History, hold: Hold) -> bool:
    """Whether it worked for longer than a lock lasts."""
    return worked_until(history, hold) - hold.begin >= history.facts.lock


@monitor("RT-HB-10")
def keeps_the_lock(history: History) -> Iterator[Finding]:
    """A Runtime that works for longer than the lock lasts sends its first heartbeat before that."""
    for hold in _holds(history):
        gaps = _gaps(history, hold)
        if not gaps or not _long(history, hold) or skew(history, hold) is not None:
            continue
        gap = _too_long(history, hold, gaps[:1])
        if gap is None:
            yield kept(hold.lock)
        else:
            wanted = f"a heartbeat of {hold.job} before its lock lapses after {span(history.facts.lock)}"
            yield broken(gap[0] + history.facts.lock, wanted, f"none for {span(gap[1] - gap[0])}")


@monitor("RT-HB-64")
def never_too_far_apart(history: History) -> Iterator[Finding]:
    """While it works the gap between heartbeats does not reach the length of the lock."""
    for hold in _holds(history):
        gaps = _gaps(history, hold)
        if not gaps or not _long(history, hold) or skew(history, hold) is not None:
            continue
        gap = _too_long(history, hold, gaps)
        if gap is None:
            yield kept(hold.lock)
        else:
            wanted = f"heartbeats of {hold.job} less than {span(history.facts.lock)} apart while it works"
            yield broken(gap[0] + history.facts.lock, wanted, f"none for {span(gap[1] - gap[0])}")


@monitor("RT-HB-60")
def by_durations(history: History) -> Iterator[Finding]:
    """When lockUntil is off the Runtime heartbeats and works as ever."""
    usual = [gap for hold in _holds(history) if skew(history, hold) is None for gap in _intervals(history, hold)]
    cadence = median(usual) if usual else history.facts.heartbeat
    for hold in _holds(history):
        off = skew(history, hold)
        if off is None:
            continue
        wanted = f"spans measured as durations, though the lockUntil of {hold.job} was off by {span(off)}"
        gap, paces = _too_long(history, hold, _gaps(history, hold)), _intervals(history, hold)
        until = worked_until(history, hold)
        first = hold.reports[0] if hold.reports else None
        ended = [hold.end, hold.stop.ended if hold.stop else None]
        if gap is not None:
            yield broken(gap[0] + history.facts.lock, wanted, f"no heartbeat for {span(gap[1] - gap[0])}")
        elif cadence is not None and len(paces) >= 4 and median(paces) < cadence / 5:
            actual = f"heartbeats every {span(median(paces))} instead of every {span(cadence)}"
            yield broken(hold.heartbeats[0], wanted, actual)
        elif first is not None and first.operation == "failJob" and flawless(history, hold, first, [hold.lock]):
            yield broken(first, wanted, f"{first.get('errorCode')} though nothing had gone wrong")
        elif first is not None or until - hold.begin >= history.facts.lock:
            # An error in the other direction shows only where it works for long.
            if off < 0 or until - hold.begin >= history.facts.lock:
                yield kept(hold.lock)
        elif not any(ended) and ran_until(history, hold.begin) > hold.begin + late(history.facts.lock):
            yield broken(hold.lock, wanted, f"nothing about the job any more from {span(until - hold.begin)} on")


def _intervals(history: History, hold: Hold) -> list[float]:
    """Spans between heartbeats that were answered at once."""
    until = worked_until(history, hold)
    sent = [call.sent for call in hold.heartbeats if call.ok and call.sent <= until]
    return [b - a for a, b in pairwise(sent) if not history.interrupted(a, b)]


@monitor("RT-HB-61")
def tries_again(history: History) -> Iterator[Finding]:
    """A heartbeat that failed (5xx, network) is tried again before the lock lapses."""
    for hold in _holds(history):
        for i, last in enumerate(known := renewals(hold)):
            lapse = last.sent + history.facts.lock
            following = known[i + 1].sent if i + 1 < len(known) else float("inf")
            tries = [call for call in hold.heartbeats if last.sent < call.sent < min(lapse, following)]
            call = next((call for call in tries if call.failed), None)
            if call is None or call.sent > lapse - max(0.5, 0.1 * history.facts.lock):
                continue
            until = lapse + late(history.facts.lock) - history.facts.lock
            again = next((c for c in hold.heartbeats if c.sent > call.sent), None)
            if again is not None and again.sent <= until:
                yield kept(again)
                continue
            done = [c.sent for c in hold.reports if c.sent > call.sent]
            done += [c.ended for c in (hold.dropped, hold.stop, hold.next_lock, hold.settled) if c is not None]
            first = min(done, default=until)
            if first > lapse and ran_until(history, call.sent) >= min(first, until):
                failed = "no answer" if call.lost else f"{call.status}"
                wanted = f"another heartbeat of {hold.job} after one that failed ({failed}), before the lock lapses"
                actual = "none" if again is None else f"the next {span(again.sent - lapse)} after it had lapsed"
                yield broken(call, wanted, actual)


@monitor("RT-HB-62")
def stops_when_told(history: History) -> Iterator[Finding]:
    """After 409 LOCK_NOT_HELD or 404 JOB_NOT_FOUND nothing is sent for that lock any more."""
    for hold in history.holds:
        told = hold.dropped
        if told is None:
            continue
        waiting = {call.text for call in hold.reports if call.failed and call.sent < told.ended}
        calls = [c for c in _after(hold, told.ended) if c.operation != "submitResult" or c.text not in waiting]
        what = f"{told.status} {told.code} on {told.operation}"
        if calls:
            wanted = f"nothing about {hold.job} any more after {what}"
            yield broken(calls[0], wanted, f"{calls[0].operation} {span(calls[0].sent - told.ended)} after it")
        elif hold.settled in (None, told) and watched(history, told.ended):
            yield kept(told)


def _after(hold: Hold, at: float) -> list[Call]:
    """What is sent for a hold though it must not be, from an instant on; one of each was under way, not a second."""
    found, under_way = [], set()
    for call in hold.calls:
        if call.sent <= at or call.operation not in (*NO_MORE, *ENDS_SOON):
            continue
        soon = call.sent <= at + (GRACE if call.operation in NO_MORE else STOPS)
        if not soon or call.operation in under_way:
            found.append(call)
        under_way.add(call.operation)
    return found


@monitor("RT-HB-63")
def stops_by_itself(history: History) -> Iterator[Finding]:
    """When no heartbeat was answered for the length of the lock nothing is sent for that lock any more."""
    for hold in _holds(history):
        for last, begin, end in lapses(history, hold):
            gone = history.process_end(last.sent)
            if (hold.end is not None and hold.end <= begin) or (gone is not None and gone <= begin):
                continue
            woken = next((at for at in history.signalled("CONT") if at > begin), None)
            stalled = woken is not None and history.interrupted(last.sent, begin)
            # Who did not even try has kept the lock badly: RT-HB-64.
            if not stalled and (woken is not None or not tried(hold, last.sent, begin)):
                continue
            slack = late(history.facts.lock) - history.facts.lock
            wanted = f"nothing about {hold.job} any more: no heartbeat was answered for {span(history.facts.lock)}"
            calls = [c for c in hold.calls if c.operation in (*NO_MORE, *ENDS_SOON) and begin < c.sent < end]
            if stalled and woken is not None:
                calls = [call for call in calls if call.sent >= woken]
                # One heartbeat, to find out, is what wakes first in many.
                calls = calls[1:] if calls and calls[0].operation == "heartbeatJob" else calls
                calls = [call for call in calls if call.operation in NO_MORE or call.sent > woken + STOPS]
                told = hold.dropped.ended if hold.dropped is not None else float("inf")
                calls = [call for call in calls if call.sent < told + GRACE]
                begin, slack = woken, 0.0
            else:
                calls = [call for call in calls if call.sent > begin + slack]
            if calls:
                since = span(calls[0].sent - last.sent)
                yield broken(calls[0], wanted, f"{calls[0].operation} {since} after the last that was")
            elif ran_until(history, begin + 0.001) >= begin + slack + STOPS:
                yield kept(begin)
