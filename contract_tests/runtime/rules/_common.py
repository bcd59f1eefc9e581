"""What several areas' monitors share: tolerances, what was seen of work, when a process ran and was idle.

Instants and spans are seconds, as everywhere in a history.
"""

from __future__ import annotations

from http import HTTPStatus
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

from contract_tests.runtime.calls import MODEL
from contract_tests.runtime.history import entries_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import Event, History, Hold

BASE = "/internal/runtime/"
WIRE = 0.05
"""What the wire and scheduling may take where order matters."""
GRACE = 0.25
"""A request this soon after an answer was under way before it could be read."""
STOPS = 1.0
"""So long may stopping take that is more than not sending a request."""
SILENCE = 10.0
"""A Runtime that is idle and polls on polls again within this (RT-SCHED-62)."""
JOB_TYPES = (
    "learning_state_analysis",
    "weak_point_analysis",
    "next_action_planning",
    "quiz_generation",
    "flashcard_generation",
)
CODES = {
    *("JOB_NOT_FOUND", "JOB_ALREADY_LOCKED", "SNAPSHOT_EXPIRED", "SNAPSHOT_NOT_FOUND", "CREDENTIAL_NOT_FOUND"),
    *("CREDENTIAL_INVALID", "RESULT_ALREADY_EXISTS", "RESULT_SCHEMA_UNSUPPORTED", "RUNTIME_VERSION_INCOMPATIBLE"),
    *("INTERNAL_ERROR", "UNAUTHORIZED", "INVALID_REQUEST", "NOT_FOUND", "METHOD_NOT_ALLOWED", "PAYLOAD_TOO_LARGE"),
    *("UNSUPPORTED_MEDIA_TYPE", "LOCK_NOT_HELD", "JOB_CANCELLED"),
}
"""Error codes that a Runtime knows."""


def late(seconds: float) -> float:
    """A deadline with what many Runtimes side by side on few processors may need."""
    return seconds * 1.1 + 0.5


def span(seconds: float) -> str:
    """For a sentence: ``2.5 s``."""
    return f"{seconds:.2f}".rstrip("0").rstrip(".") + " s"


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether it is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_integer(value: Any) -> TypeGuard[int | float]:
    """Whether it is a whole number; ``1.0`` is one."""
    return is_number(value) and float(value).is_integer()


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is a string that is not empty."""
    return isinstance(value, str) and bool(value)


def to_api(history: History) -> list[Call]:
    """Its requests to the Runtime API, to paths that this does not know included."""
    return [call for call in history.calls if call.operation != MODEL and call.path.startswith(BASE)]


def unknown_code(call: Call) -> bool:
    """Whether it was refused with an error code that is neither the contract's nor the words of an HTTP status."""
    known = call.code is None or call.code in CODES or call.code in HTTPStatus.__members__
    return call.heard and call.status >= 400 and not known


def follows(call: Call, before: Call) -> bool:
    """Whether a call was sent when another one's answer was known."""
    return call is not before and call.sent >= before.sent and call.sent > before.ended - WIRE


# The process


def begun(history: History, at: float) -> float:
    """When the process that lived at an instant was started; minus infinity where that is not known."""
    return max((event.at for event in history.happened("started") if event.at <= at), default=float("-inf"))


def same_life(history: History, first: float, then: float) -> bool:
    """Whether one process lived at both instants."""
    end = history.process_end(first)
    return begun(history, first) == begun(history, then) and (end is None or end >= then)


def ended_itself(history: History, at: float) -> Event | None:
    """The end of the process that lived at an instant, where nobody had told it to end."""
    end = next((event for event in history.happened("exited") if event.at >= at), None)
    if end is None or end.data.get("status") in (-9, -15) or history.term_before(end.at) is not None:
        return None
    if any(at <= killed <= end.at for killed in history.signalled("KILL")):
        return None
    return end


def ran_until(history: History, at: float) -> float:
    """Until when, from an instant on, the process ran undisturbed: no signal, no end; at most the recording's end."""
    if history.interrupted(at, at) or history.term_before(at) is not None:
        return at
    breaks = [event.at for event in history.events if event.kind in ("exited", "signal", "started") and event.at > at]
    return min(breaks, default=history.end)


def watched(history: History, at: float) -> bool:
    """Whether the process was seen for a while after an instant, so that what did not come would have come."""
    stops = [event.at for event in history.events if event.kind == "exited" and event.at > at]
    stops += [end for name in ("KILL", "STOP") for end in history.signalled(name) if end > at]
    return not history.interrupted(at, at) and min(stops, default=history.end) - at >= STOPS


def over(history: History, hold: Hold) -> float | None:
    """When a hold was over for the Runtime; None where it may hold it still."""
    ends = [end for end in (hold.end, history.process_end(hold.begin)) if end is not None]
    if ends:
        return min(ends)
    if hold.known is None:
        return hold.lock.ended
    lapse = max(call.sent for call in renewals(hold)) + history.facts.lock
    last = max(call.ended for call in (hold.lock, *hold.calls))
    return max(lapse, last) if late(lapse - hold.begin) + hold.begin < history.end else None


def idle_since(history: History, at: float) -> float:
    """From when on, not before an instant, nothing but polls is seen; infinity where a job may be held to the end."""
    stop = ran_until(history, at)
    seen = [at]
    seen += [
        over(history, hold) or float("inf")
        for hold in history.holds
        if hold.begin <= stop and same_life(history, hold.begin, at)
    ]
    seen += [call.ended for call in history.calls if call.operation != "pollJobs" and call.sent <= stop]
    return max(seen)


def silence(history: History) -> float:
    """How long an idle Runtime that does not poll must be watched before it is said that it stopped."""
    return late(max(SILENCE, 5 * (history.facts.poll or 0)))


def passed_over(history: History, job: str, since: float) -> Call | None:
    """The poll at which a job had been listed to an idle Runtime for long, which never asked for its lock; or None."""
    polls = [poll for poll in history.polls if poll.sent >= since and any(e["id"] == job for e in entries_of(poll))]
    if any(call.job == job for call in history.of("lockJob")):
        return None
    first = None
    for this, following in pairwise(polls):
        first = first or this
        busy = any(call.operation != "pollJobs" and this.sent < call.sent < following.sent for call in history.calls)
        held = any(
            hold.begin < following.sent and (over(history, hold) or float("inf")) > this.sent for hold in history.holds
        )
        ran = same_life(history, this.sent, following.sent) and not history.interrupted(this.sent, following.sent)
        if busy or held or not ran or history.term_before(following.sent) is not None:
            first = None
        elif following.sent - first.ended > late(max(3, 5 * (history.facts.poll or 0))):
            return following
    return None


# A hold


def renewals(hold: Hold) -> list[Call]:
    """Calls by which the Runtime knew that it had the lock: the lock itself, and heartbeats that were answered."""
    answered = [call for call in hold.heartbeats if call.ok]
    return [hold.lock, *answered] if hold.lock.ok or not answered else answered


def readable(hold: Hold) -> bool:
    """Whether the lock's answer could be read: a grant that was spoilt may be taken for an error."""
    if not hold.lock.garbled:
        return True
    return hold.lock.told("jobId") == hold.job and is_number(hold.lock.told("lockUntil"))


def lapses(history: History, hold: Hold) -> Iterator[tuple[Call, float, float]]:
    """Where no heartbeat had been answered for the length of the lock: the last that was, from when, until when."""
    if hold.known is None:
        return
    known = renewals(hold)
    for i, call in enumerate(known):
        begin = call.sent + history.facts.lock
        end = known[i + 1].ended if i + 1 < len(known) else float("inf")
        if begin < end:
            yield call, begin, end


def tried(hold: Hold, after: float, before: float) -> list[Call]:
    """Heartbeats between two instants."""
    return [call for call in hold.heartbeats if after < call.sent < before]


def lapsed(history: History, hold: Hold) -> float | None:
    """When the Runtime knew that its lock had lapsed, all its heartbeats since the last answered one in vain."""
    return next((begin for last, begin, _ in lapses(history, hold) if tried(hold, last.sent, begin)), None)


def worked_until(history: History, hold: Hold) -> float:
    """The last instant at which it is seen at work: by a request, or a model call that was under way."""
    term = next((at for at, _ in history.terms if at >= hold.begin), None)
    caps = (hold.end, history.process_end(hold.begin), lapsed(history, hold), term)
    cap = min((at for at in caps if at is not None), default=float("inf"))
    for call in (hold.stop, hold.next_lock):
        if call is not None:
            cap = min(cap, call.ended if call is hold.stop else call.sent)
    seen = [call.ended if call.operation == MODEL else call.sent for call in hold.calls]
    return min(max(seen, default=hold.begin), cap)


def marks(hold: Hold, until: float) -> list[float]:
    """When the lock and the heartbeats were sent, as far as it knew that it holds the lock."""
    first = renewals(hold)[0]
    return [first.sent, *(call.sent for call in hold.heartbeats if first.sent < call.sent <= until)]


def flawless(history: History, hold: Hold, report: Call, forgiven: Collection[Call] = ()) -> bool:
    """Whether all had gone well for the Runtime before a report, so that nothing but a success was to be reported."""
    if history.term_before(report.sent) is not None or history.interrupted(hold.begin, report.sent):
        return False
    resolves = [call for call in history.of("resolveCredential") if call.job is None and not call.ok]
    if any(hold.begin < call.sent < report.sent for call in resolves):
        return False  # which job that was about can't be told
    before = [call for call in (hold.lock, *hold.calls) if call.sent < report.sent]
    for call in before:
        if not call.ok or call.asks_to_stop or (call.fault is not None and call not in forgiven):
            return False
        if call.operation == MODEL and call.outcome != "good":
            return False
        keyless = history.facts.own_key is not True and not call.told("apiKey")
        if call.operation == "resolveCredential" and keyless:
            return False
        settings = call.told("aiSettings")
        if call.operation == "getSnapshot" and (
            call.told("snapshotVersion") != "ai_snapshot_v1"
            or not isinstance(settings, dict)
            or settings.get("allowAiAnalysis") is False
        ):
            return False
    return hold.limit is None or report.sent - hold.begin < 0.8 * hold.limit
