"""Locks: nothing is done without one, and what follows when one is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract_tests.runtime.calls import MODEL, REPORTS, WORK
from contract_tests.runtime.history import entries_of
from contract_tests.runtime.monitors import Finding, broken, kept, monitor
from contract_tests.runtime.rules._common import (
    GRACE,
    JOB_TYPES,
    STOPS,
    WIRE,
    follows,
    is_text,
    lapsed,
    passed_over,
    same_life,
    span,
    watched,
)
from contract_tests.runtime.rules.requests import wrong_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold


@monitor("RT-LOCK-01")
def endpoint(history: History) -> Iterator[Finding]:
    """Locks are POST /internal/runtime/jobs/{jobId}/lock."""
    yield from wrong_way(history, "lockJob", "lock", "POST /internal/runtime/jobs/{jobId}/lock")


@monitor("RT-LOCK-02")
def body(history: History) -> Iterator[Finding]:
    """A lock's body says who asks: runtimeInstanceId, a string."""
    yield from says_who(history, "lockJob")


def says_who(history: History, operation: str) -> Iterator[Finding]:
    """Whether each body of an operation has ``runtimeInstanceId``."""
    for call in history.of(operation):
        if call.cut:
            continue
        if is_text(call.get("runtimeInstanceId")):
            yield kept(call)
        else:
            actual = call.text[:200] or "no body"
            yield broken(call, 'the body {"runtimeInstanceId": "<its id>"} in ' + call.name, actual)


@monitor("RT-LOCK-14")
def holds_what_it_works_on(history: History) -> Iterator[Finding]:
    """Snapshots, credentials, model calls and results are asked for and sent only when the job's lock was granted."""
    latest: dict[str, Hold] = {}
    seen: set[int] = set()
    grants = {id(hold.lock): hold for hold in history.holds}
    for call in history.calls:
        if call.job is None:
            continue
        if id(call) in grants:
            latest[call.job] = grants[id(call)]
        if call.operation not in WORK:
            continue
        hold = latest.get(call.job)
        wanted = f"a granted lock of {call.job} before {call.operation}"
        if hold is None:
            yield broken(call, wanted, _why(history, call))
        elif hold.known is None or call.sent < hold.known - WIRE:
            when = "was lost" if hold.known is None else f"came {span(hold.known - call.sent)} later"
            yield broken(call, wanted, f"the answer to the lock {when}")
        elif _worked_on(hold, call):
            actual = f"it was sent {span(call.sent - (hold.end or 0))} after {hold.job} was settled"
            yield broken(call, wanted, actual)
        elif id(hold) not in seen:
            seen.add(id(hold))
            yield kept(call)


def _why(history: History, call: Call) -> str:
    asked = [lock for lock in history.of("lockJob") if lock.job == call.job and lock.sent < call.sent]
    if not asked:
        return "it was never asked for"
    return f"it was refused with {asked[-1].status}" if asked[-1].heard else "the answer to the lock was lost"


def _worked_on(hold: Hold, call: Call) -> bool:
    """Whether a call begins work that was settled; what goes on after a cancel request is RT-CANCEL-70's."""
    settled = hold.settled
    if settled is None or not settled.ok or hold.stop is not None or call.operation == "submitResult":
        return False
    return call.sent > settled.ended + STOPS


@monitor("RT-LOCK-60")
def leaves_it_alone(history: History) -> Iterator[Finding]:
    """A job whose lock was refused with 409 is left alone until a later poll lists it."""
    for lock in history.of("lockJob"):
        if not (lock.heard and lock.status == 409):
            continue
        calls = [call for call in history.calls if call.job == lock.job and call.sent > lock.ended + GRACE]
        listed = _listed(history, lock)
        own = any(hold.job == lock.job and hold.begin < lock.sent for hold in history.holds)
        lost = any(c.job == lock.job and c.lost and c.sent < lock.sent for c in history.of("lockJob"))
        early = [call for call in calls if call.sent < listed - WIRE]
        # Work without a lock is RT-LOCK-14's; a job that it holds itself, or may hold, is not to be left alone.
        again = next((c for c in early if c.operation == "lockJob"), None) or _second(history, lock, listed)
        if again is None and not own and not lost:
            again = next((c for c in early if c.operation in ("heartbeatJob", "failJob")), None)
        if again is not None:
            wanted = f"{lock.job} left alone after 409 on its lock until a poll lists it again"
            yield broken(again, wanted, f"{again.operation} {span(again.sent - lock.ended)} after it")
        elif not own and not any(c.operation in WORK for c in early) and watched(history, lock.ended):
            yield kept(lock)


def _second(history: History, lock: Call, listed: float) -> Call | None:
    """The second lock of a job soon after one was refused: one may have been under way, not two."""
    locks = [c for c in history.of("lockJob") if c.job == lock.job and lock.ended <= c.sent < listed]
    return locks[1] if len(locks) > 1 else None


def _listed(history: History, lock: Call) -> float:
    """When a poll's answer listed the job after its lock was sent; infinity: never."""
    polls = (p for p in history.polls if p.ended > lock.sent and any(e["id"] == lock.job for e in entries_of(p)))
    return min((poll.ended for poll in polls), default=float("inf"))


@monitor("RT-LOCK-61")
def goes_on_to_others(history: History) -> Iterator[Finding]:
    """After a lock that was refused with 409 the Runtime goes on to other jobs."""
    for lock in history.of("lockJob"):
        if not (lock.heard and lock.status == 409):
            continue
        blocked = _blocked(history, lock)
        if blocked is not None:
            wanted = f"other jobs locked after 409 on the lock of {lock.job}"
            yield broken(blocked[0], wanted, f"{lock.job} once more, though {blocked[1]} was listed, too")
            continue
        entries = (e for poll in history.polls if poll.sent > lock.ended for e in entries_of(poll))
        others = dict.fromkeys(e["id"] for e in entries if e.get("jobType") in JOB_TYPES)
        left = ((job, at) for job in others if (at := passed_over(history, job, lock.ended)) is not None)
        job, at = next(left, (None, None))
        if at is not None:
            wanted = f"other jobs locked after 409 on the lock of {lock.job}"
            yield broken(at, wanted, f"{job} was listed for {span(at.sent - lock.ended)} and never asked for")
            continue
        following = next((c for c in history.of("lockJob") if c.job != lock.job and follows(c, lock)), None)
        if following is not None and same_life(history, lock.sent, following.sent):
            yield kept(following)


def _blocked(history: History, lock: Call) -> tuple[Call, str] | None:
    """The very next lock, where it is of the refused job again though a poll in between listed one never asked for."""
    following = next((c for c in history.of("lockJob") if follows(c, lock)), None)
    if following is None or following.job != lock.job:
        return None
    asked = {c.job for c in history.of("lockJob") if c.sent <= following.sent}
    polls = [poll for poll in history.polls if lock.ended < poll.sent and poll.ended <= following.sent + WIRE]
    others = (e["id"] for poll in polls for e in entries_of(poll) if e.get("jobType") in JOB_TYPES)
    other = next((id_ for id_ in others if id_ not in asked), None)
    return None if other is None else (following, other)


@monitor("RT-LOCK-63")
def one_run_at_a_time(history: History) -> Iterator[Finding]:
    """A job is not locked again while the process still runs it, or has a report of it that was not answered."""
    for hold in history.holds:
        locks = [c for c in history.of("lockJob") if c.job == hold.job and c.sent > hold.begin]
        if hold.known is None:
            continue
        for lock in locks[:1]:
            if lock.sent < hold.known or not same_life(history, hold.begin, lock.sent):
                continue
            why = _still(history, hold, lock)
            if why is not None:
                yield broken(lock, f"no further lock of {hold.job} while a run or report of it exists", why)
            else:
                yield kept(lock)
        end = hold.end if hold.end is not None else float("inf")
        offers = (
            p for p in history.polls if hold.known < p.ended < end and any(e["id"] == hold.job for e in entries_of(p))
        )
        offer = next(offers, None)
        if offer is not None and not any(lock.sent < end for lock in locks):
            yield kept(offer)


def _still(history: History, hold: Hold, lock: Call) -> str | None:
    """What shows that a hold's run or report existed when its job was locked again."""
    before = [call for call in hold.calls if call.sent < lock.sent]
    ends = [hold.end, lapsed(history, hold), hold.stop.ended if hold.stop else None]
    ended = any(end is not None and end <= lock.sent for end in ends)
    slack = STOPS if ended else 2 * WIRE
    for call in before:
        if call.operation in REPORTS and call.ended > lock.sent + WIRE:
            return f"its {call.operation} was answered only {span(call.ended - lock.sent)} later"
        if call.operation == MODEL and call.ended > lock.sent + slack:
            return f"a model call of it went on for {span(call.ended - lock.sent)}"
    resolves = [call for call in before if call.operation == "resolveCredential"]
    after = [call for call in history.calls if call.job == hold.job and call.sent > lock.ended + GRACE]
    after = [call for call in after if hold.next_lock is None or same_life(history, lock.sent, call.sent)]
    reports = {call.text for call in before if call.operation in REPORTS and call.failed}
    for call in after:
        if call.operation == MODEL and call.resolve in resolves:
            return f"it called the model for its earlier lock {span(call.sent - lock.sent)} later"
        if call.operation in REPORTS and call.text in reports:
            return f"it repeated its earlier {call.operation} {span(call.sent - lock.sent)} later"
        if lock.status != 200 and lock.heard and history.hold_of(call) is hold and call.operation in (*WORK, "failJob"):
            return f"it sent {call.operation} for its earlier lock {span(call.sent - lock.sent)} later"
    return None


@monitor("RT-POLL-02")
def a_poll_is_no_lock(history: History) -> Iterator[Finding]:
    """A job that a poll listed is worked on only after its lock was asked for: a poll locks nothing."""
    locked: dict[str, float] = {}
    for call in history.calls:
        if call.job is None:
            continue
        if call.operation == "lockJob":
            locked.setdefault(call.job, call.sent)
        elif call.operation in WORK and call.job not in locked:
            wanted = f"a lock of {call.job} before {call.operation}: the poll that lists it does not lock it"
            yield broken(call, wanted, "no lock had been asked for")
        elif call.operation in WORK:
            yield kept(call)
