"""Polls: what they ask, how often, and that they never end."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.history import entries_of, jobs_listed
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    JOB_TYPES,
    ended_itself,
    flawless,
    follows,
    idle_since,
    is_integer,
    is_text,
    late,
    over,
    passed_over,
    ran_until,
    same_life,
    silence,
    span,
)
from contract_tests.runtime.rules.errors import strange
from contract_tests.runtime.rules.requests import wrong_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History

_AGAIN = 10.0
"""Within this a failed poll is followed by the next (RT-SCHED-62)."""
_SLACK = 0.02
"""Recordings tell milliseconds, and an answer reaches the client a little before it counts as sent."""


@monitor("RT-POLL-01")
def endpoint(history: History) -> Iterator[Finding]:
    """Polls are POST /internal/runtime/jobs/poll."""
    yield from wrong_way(history, "pollJobs", "poll", "POST /internal/runtime/jobs/poll")


def _bodies(history: History) -> Iterator[tuple[Call, dict[str, Any]]]:
    for poll in history.polls:
        if not poll.cut:
            yield poll, poll.body if isinstance(poll.body, dict) else {}


def _said(value: Any) -> str:
    return "none" if value is None else repr(value)[:200]


@monitor("RT-POLL-03")
def asks_by_name(history: History) -> Iterator[Finding]:
    """A poll's body says who asks: runtimeInstanceId, a string."""
    for poll, body in _bodies(history):
        if is_text(body.get("runtimeInstanceId")):
            yield kept(poll)
        else:
            yield broken(poll, "runtimeInstanceId, a string, in a poll", _said(body.get("runtimeInstanceId")))


@monitor("RT-POLL-04")
def asks_for_types(history: History) -> Iterator[Finding]:
    """A poll's body lists job types: supportedJobTypes, a list of strings that is not empty."""
    for poll, body in _bodies(history):
        if body.get("supportedJobTypes") and _texts(body["supportedJobTypes"]):
            yield kept(poll)
        else:
            wanted = "supportedJobTypes, a list of at least one string, in a poll"
            yield broken(poll, wanted, _said(body.get("supportedJobTypes")))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


@monitor("RT-POLL-05")
def asks_for_so_many(history: History) -> Iterator[Finding]:
    """A poll's limit is a whole number, at least 1; it may be left out."""
    for poll, body in _bodies(history):
        if "limit" in body:
            right = is_integer(body["limit"]) and body["limit"] >= 1
            yield kept(poll) if right else broken(poll, "limit, a whole number from 1", _said(body["limit"]))


@monitor("RT-POLL-06")
def snapshot_versions(history: History) -> Iterator[Finding]:
    """A poll's capabilities list snapshot versions as strings; they may be left out."""
    yield from _versions(history, "supportedSnapshotVersions")


@monitor("RT-POLL-07")
def output_versions(history: History) -> Iterator[Finding]:
    """A poll's capabilities list output schema versions as strings; they may be left out."""
    yield from _versions(history, "supportedOutputSchemaVersions")


def _versions(history: History, name: str) -> Iterator[Finding]:
    for poll, body in _bodies(history):
        capabilities = body.get("capabilities")
        if "capabilities" in body and not isinstance(capabilities, dict):
            yield broken(poll, f"capabilities, an object with {name}", _said(capabilities))
        elif isinstance(capabilities, dict) and name in capabilities:
            value = capabilities[name]
            yield kept(poll) if _texts(value) else broken(poll, f"capabilities.{name}, a list of strings", _said(value))


@monitor("RT-POLL-70")
def not_too_many(history: History) -> Iterator[Finding]:
    """A poll's limit is at most 50."""
    for poll, body in _bodies(history):
        limit = body.get("limit")
        if limit is not None and is_integer(limit):
            yield kept(poll) if limit <= 50 else broken(poll, "a limit of at most 50", f"{limit}")


@monitor("RT-POLL-71")
def known_types(history: History) -> Iterator[Finding]:
    """A poll asks for none but the five job types."""
    for poll, body in _bodies(history):
        if body.get("supportedJobTypes") and _texts(body["supportedJobTypes"]):
            odd = [kind for kind in body["supportedJobTypes"] if kind not in JOB_TYPES]
            wanted = f"supportedJobTypes of {', '.join(JOB_TYPES)} alone"
            yield broken(poll, wanted, ", ".join(odd)[:200]) if odd else kept(poll)


@monitor("RT-POLL-72")
def does_what_it_asks_for(history: History) -> Iterator[Finding]:
    """Jobs of the types that it asks for are taken, and completed when nothing goes wrong."""
    listed = {
        job: (poll, entry.get("jobType"))
        for job, (poll, entry) in jobs_listed(history.polls).items()
        if entry.get("jobType") in JOB_TYPES and entry["jobType"] in (poll.get("supportedJobTypes") or ())
    }
    for hold in history.holds:
        kind = listed[hold.job][1] if hold.job in listed else None
        wanted = f"jobs of the type {kind}, for which it asks, completed"
        settled = hold.settled
        if kind is None:
            continue
        if settled is not None and settled.operation == "submitResult" and settled.ok:
            yield kept(settled)
        elif settled is not None and settled.operation == "failJob" and flawless(history, hold, settled):
            actual = f"{hold.job} was failed with {settled.get('errorCode')} though nothing had gone wrong"
            yield broken(settled, wanted, actual)
        elif (
            settled is None
            and not hold.reports
            and flawless(history, hold, last := [hold.lock, *hold.calls][-1])
            and last.ok
        ):
            quiet = ran_until(history, hold.begin) - last.ended
            if quiet > late(history.facts.lock):
                yield broken(last, wanted, f"{hold.job} was locked, and {span(quiet)} passed without a word of it")
    refused = [call.ended for call in history.of("lockJob") if call.heard and call.status == 409]
    for job, (poll, kind) in listed.items():
        # What can't be known is RT-ERR-85's.
        at = passed_over(history, job, 0.0) if strange(poll) is None else None
        if at is not None and not any(end < at.sent for end in refused):
            actual = f"{job} was listed for {span(at.sent - poll.ended)}, and its lock was never asked for"
            yield broken(at, f"jobs of the type {kind}, for which it asks, completed", actual)


@monitor("RT-POLL-73")
def goes_on_after_unknown_types(history: History) -> Iterator[Finding]:
    """A job of an unknown type in a poll's answer does not stop the Runtime."""
    for poll in history.polls:
        odd = next((entry for entry in entries_of(poll) if entry.get("jobType") not in JOB_TYPES), None)
        if odd is not None:
            yield from _polls_on(history, poll, f"a poll had listed {odd['id']} of the type {odd.get('jobType')}")


def _polls_on(history: History, poll: Call, what: str) -> Iterator[Finding]:
    following = _next(history, poll)
    if following is not None:
        yield kept(following)
        return
    end = ended_itself(history, poll.ended)
    if end is not None:
        actual = f"the process ended by itself {span(end.at - poll.ended)} after {what}"
        yield broken(end.at, "a Runtime that polls on", actual)
        return
    begin, stop = idle_since(history, poll.ended), ran_until(history, poll.ended)
    if stop - begin > silence(history):
        yield broken(poll, "a Runtime that polls on", f"no poll for {span(stop - begin)} after {what}")


def _next(history: History, poll: Call) -> Call | None:
    """The same process's next poll."""
    following = next((call for call in history.polls if call.sent > poll.sent and call is not poll), None)
    return following if following is not None and same_life(history, poll.sent, following.sent) else None


def empty(poll: Call) -> bool:
    """Whether its answer lists no job."""
    return poll.ok and poll.told("jobs") == []


def failed(poll: Call) -> bool:
    """Whether it came to no list of jobs."""
    return not poll.ok or not isinstance(poll.told("jobs"), list)


def _refused(poll: Call) -> bool:
    return poll.heard and poll.status in (401, 403)


def _waits(history: History, which: Callable[[Call], bool], what: str) -> Iterator[Finding]:
    """Whether each poll keeps four fifths of the interval to the latest one of these that was answered before it."""
    if history.facts.poll is None:
        return
    least = 0.8 * history.facts.poll
    answered = sorted(history.polls, key=lambda poll: poll.ended)
    for poll in history.polls:
        at = bisect_right(answered, poll.sent + 0.001, key=lambda poll: poll.ended)
        if at and answered[at - 1] is poll:  # it was answered in less than that millisecond
            at -= 1
        before = answered[at - 1] if at else None
        if before is None or not which(before) or not same_life(history, before.ended, poll.sent):
            continue
        gap = poll.sent - before.ended
        if gap < least - _SLACK:
            wanted = f"at least {span(least)} (80 % of {span(history.facts.poll)}) from {what} answer to the next poll"
            yield broken(poll, wanted, span(max(gap, 0)))
        else:
            yield kept(poll)


@monitor("RT-SCHED-07")
def waits_when_empty(history: History) -> Iterator[Finding]:
    """After a poll that listed nothing the next waits for the interval."""
    yield from _waits(history, empty, "an empty poll's")


@monitor("RT-SCHED-60")
def waits_when_failed(history: History) -> Iterator[Finding]:
    """After a poll that listed nothing, or failed, the next waits for four fifths of the interval."""
    yield from _waits(history, lambda poll: empty(poll) or failed(poll), "an empty or failed poll's")


@monitor("RT-SCHED-61")
def polls_for_ever(history: History) -> Iterator[Finding]:
    """After every poll, be it empty or failed, the Runtime polls on."""
    for poll in history.polls:
        # 401 and 403 are RT-AUTH-62's, unknown types RT-POLL-73's, whatever else can't be known RT-ERR-85's.
        if _refused(poll) or any(entry.get("jobType") not in JOB_TYPES for entry in entries_of(poll)):
            continue
        if strange(poll) is not None and _next(history, poll) is None:
            continue
        what = "a poll that listed jobs"
        if empty(poll) or failed(poll):
            what = "an empty poll" if empty(poll) else f"a failed poll ({_outcome(poll)})"
        yield from _polls_on(history, poll, what)


def _outcome(poll: Call) -> str:
    if not poll.heard:
        return "no answer"
    return f"{poll.status} {poll.code or ''}".strip() if poll.status >= 300 else "no list of jobs"


@monitor("RT-SCHED-62")
def soon_after_failures(history: History) -> Iterator[Finding]:
    """After a failed poll the next comes within 10 s."""
    for poll in history.polls:
        if (
            not failed(poll)
            or _refused(poll)
            or any(p.ended > poll.ended > p.sent for p in history.polls if p is not poll)
        ):
            continue
        following = next((call for call in history.polls if follows(call, poll)), None)
        stop = following.sent if following is not None else ran_until(history, poll.ended)
        if ran_until(history, poll.ended) < stop or not same_life(history, poll.sent, stop):
            continue
        if stop - _idle(history, poll.ended, stop) > late(_AGAIN) and strange(poll) is None:
            wanted = f"the next poll within {span(_AGAIN)} of a failed one ({_outcome(poll)})"
            yield broken(following or poll, wanted, f"none for {span(stop - poll.ended)}")
        elif following is not None and stop - poll.ended <= late(_AGAIN):
            yield kept(following)


def _idle(history: History, begin: float, stop: float) -> float:
    """From when on, between two instants, nothing is seen that may keep the Runtime from polling."""
    holds = [over(history, hold) or stop for hold in history.holds if hold.begin < stop]
    calls = [call.ended for call in history.calls if call.operation != "pollJobs" and begin <= call.sent < stop]
    return max([begin, *(at for at in holds if at > begin), *calls])
