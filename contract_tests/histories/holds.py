"""When a lock that was granted was certainly still held, and until when it can have been."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.histories.operations import JobHistory, Operation

STOPPED = "JOB_CANCELLED"


def gives_up(operation: Operation) -> bool:
    """Whether it can have ended its sender's hold: a report that was not refused, or whose refusal ended the job."""
    return operation.kind in ("result", "fail") and (not operation.refused or operation.code == STOPPED)


def _own(history: JobHistory, grant: Operation, kind: str) -> Iterator[Operation]:
    """What the holder sent that can have come after its lock was granted."""
    for item in history.by_kind[kind]:
        if item.process == grant.process and item.latest >= grant.invoked:
            yield item


def last_extension(history: JobHistory, grant: Operation, before: Operation) -> Operation:
    """The last that certainly extended the lock before something else: a heartbeat, or the lock itself."""
    beats = [item for item in _own(history, grant, "heartbeat") if item.accepted and item.before(before)]
    return max([grant, *beats], key=lambda item: item.invoked)


def earliest_end(history: JobHistory, grant: Operation, before: Operation) -> float:
    """The first instant at which the hold can have been over, as far as is known of what came before ``before``.

    It lapses when the lock's time has passed since its last extension (seed 000 section 4), or ends by a report of the
    holder, or by the run's time limit.
    """
    ends = [last_extension(history, grant, before).invoked + history.limits.lock]
    ends += [
        max(item.invoked, grant.invoked)
        for kind in ("result", "fail")
        for item in _own(history, grant, kind)
        if gives_up(item)
    ]
    if history.timeout is not None:
        starts = [item.invoked for item in _own(history, grant, "heartbeat") if not item.refused]
        ends += [max(start, grant.invoked) + history.timeout for start in starts]
    return min(ends) - history.limits.slack


def certainly_held(history: JobHistory, grant: Operation, during: Operation) -> bool:
    """Whether the hold covers the whole interval of something else."""
    return grant.before(during) and earliest_end(history, grant, during) > during.latest


def latest_end(history: JobHistory, grant: Operation) -> float:
    """The last instant at which the hold can have been; infinite where the lock or a heartbeat was lost."""
    beats = [item for item in _own(history, grant, "heartbeat") if not item.refused]
    end = max([grant.latest, *(item.latest for item in beats)]) + history.limits.lock
    for kind in ("result", "fail"):
        for item in _own(history, grant, kind):
            if grant.before(item) and item.accepted:
                end = min(end, item.latest)
    return end + history.limits.slack


def can_hold(history: JobHistory, lock: Operation, during: Operation) -> bool:
    """Whether the sender of a lock, granted or lost, can have held the job when something else of it took effect."""
    if lock.invoked > during.latest:
        return False
    beats = [
        item
        for item in _own(history, lock, "heartbeat")
        if not item.refused and item is not during and item.invoked <= during.latest
    ]
    alive = max([lock.latest, *(item.latest for item in beats)]) + history.limits.lock + history.limits.slack
    if alive < during.invoked:
        return False
    return over_before(history, lock, during) is None


def over_before(history: JobHistory, lock: Operation, during: Operation) -> Operation | None:
    """What certainly ended the hold before something else: the holder's own report, or another's lock; None without."""
    for item in history.operations:
        if item is during or item is lock or not item.before(during):
            continue
        reported = item.process == lock.process and item.kind in ("result", "fail") and item.accepted
        if reported and lock.before(item):
            return item
        if item.kind == "lock" and item.accepted and item.process != lock.process:
            if lock.before(item):
                return item
            if lock.lost and certainly_held(history, item, during):
                return item
    return None
