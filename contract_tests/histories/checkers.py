"""What no history of a job may show: one small pure function for each rule, which gives what contradicts it.

An operation that was lost may have taken effect at any instant since it was sent, or never: what any such reading
explains is no contradiction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from contract_tests.histories.holds import (
    STOPPED,
    can_hold,
    certainly_held,
    earliest_end,
    last_extension,
    latest_end,
    over_before,
)
from contract_tests.histories.operations import FINAL

if TYPE_CHECKING:
    from contract_tests.histories.operations import JobHistory, Operation


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Why a history fits no reading: the fewest operations that show it."""

    text: str
    operations: tuple[Operation, ...]


Check = Callable[["JobHistory"], Contradiction | None]


@dataclass(frozen=True, slots=True)
class Checker:
    """One rule of histories."""

    name: str
    title: str
    rules: tuple[str, ...]
    """Ids of the rules of the contract that it looks at."""
    check: Check


def ownership(history: JobHistory) -> Contradiction | None:
    """Of two locks one can have been over when the other was granted, allowing for its lapse."""
    for first, second in combinations(history.grants, 2):
        if not _follows(history, first, second) and not _follows(history, second, first):
            shown = {first, last_extension(history, first, second), second}
            who = f"{first.process} and {second.process}" if first.process != second.process else first.process
            return Contradiction(f"granted twice at once, to {who}", _ordered(shown))
    return None


def _follows(history: JobHistory, first: Operation, second: Operation) -> bool:
    return first.invoked <= second.latest and earliest_end(history, first, second) <= second.latest


def one_win(history: JobHistory) -> Contradiction | None:
    """An attempt is granted once."""
    seen: dict[int, Operation] = {}
    for grant in history.grants:
        attempt = _attempt(grant)
        if attempt in seen:
            return Contradiction(f"attempt {attempt} was granted twice", (seen[attempt], grant))
        if attempt >= 0:
            seen[attempt] = grant
    return None


def some_win(history: JobHistory) -> Contradiction | None:
    """Who asks for a job that nobody can hold, and that is not over, gets it."""
    if history.retries is None:
        return None
    for lock in history.by_kind["lock"]:
        if lock.status == 409 and not _taken(history, lock):
            return Contradiction("refused, and nobody could hold it", (*_last_holds(history, lock), lock))
    return None


def _taken(history: JobHistory, lock: Operation) -> bool:
    """Whether the job can have been held or over when a lock was refused."""
    used = 0
    for item in history.operations:
        if item is lock or item.invoked > lock.latest:
            continue
        if item.kind == "lock" and not item.refused:
            used += 1
            if latest_end(history, item) + history.limits.sweep >= lock.invoked:
                return True
        over = item.kind in ("revoke", "cancel", "result") and not item.refused
        if over or item.code == STOPPED or end_of(item) is not None or (item.kind == "fail" and item.lost):
            return True
    return used > (history.retries or 0)


def _last_holds(history: JobHistory, lock: Operation) -> tuple[Operation, ...]:
    held = [item for item in history.grants if item.before(lock)]
    return tuple(held[-1:]) or history.by_kind["create"][:1]


def holders_only(history: JobHistory) -> Contradiction | None:
    """Who can't hold the job is refused its heartbeats, failures and results."""
    for item in history.operations:
        first_result = item.kind == "result" and item.status == 201
        if not item.accepted or not (item.kind in ("heartbeat", "fail") or first_result):
            continue
        own = [lock for lock in history.by_kind["lock"] if lock.process == item.process and not lock.refused]
        if any(can_hold(history, lock, item) for lock in own):
            continue
        what = f"a {item.kind} of {item.process} was taken"
        if not own:
            return Contradiction(f"{what}, which was never granted the lock", (item,))
        last = own[-1] if own[-1].invoked <= item.latest else own[0]
        ended = over_before(history, last, item)
        if ended is not None:
            return Contradiction(f"{what}, which had lost the lock", _ordered({last, ended, item}))
        extended = last_extension(history, last, item)
        return Contradiction(f"{what}, whose lock had lapsed or was not granted yet", _ordered({last, extended, item}))
    return None


def holders_stay(history: JobHistory) -> Contradiction | None:
    """Who certainly holds the job is not told otherwise."""
    for item in history.operations:
        if item.code != "LOCK_NOT_HELD":
            continue
        for grant in history.grants:
            if grant.process == item.process and certainly_held(history, grant, item):
                shown = {grant, last_extension(history, grant, item), item}
                return Contradiction(f"{item.process} held the lock and was refused", _ordered(shown))
    return None


def finished(history: JobHistory) -> Contradiction | None:
    """After a final answer nothing succeeds, and no other end is told."""
    ends = [(item, end) for item in history.operations if (end := end_of(item)) is not None]
    for (first, one), (second, other) in combinations(ends, 2):
        if one != other:
            return Contradiction(f"told to be {one}, and {other}", (first, second))
    for last, end in sorted(ends, key=lambda told: told[0].latest)[:1]:
        for item in history.operations:
            if not last.before(item):
                continue
            if item.accepted and item.kind in ("lock", "heartbeat", "fail", "cancel"):
                return Contradiction(f"a {item.kind} succeeded after the job was {end}", (last, item))
            if item.kind == "inspect" and item.accepted and item.told.get("status") not in (end, None):
                return Contradiction(f"{end}, and then {item.told['status']}", (last, item))
    return None


def end_of(item: Operation) -> str | None:
    """The end of the job that an answer tells for good."""
    if item.kind == "result":
        if item.accepted or item.code == "RESULT_ALREADY_EXISTS":
            return "succeeded"
        return "cancelled" if item.code == STOPPED else None
    if item.kind in ("fail", "inspect", "cancel") and item.accepted:
        status = item.told.get("status")
        return status if status in FINAL else None
    return None


def result_stays(history: JobHistory) -> Contradiction | None:
    """One result is stored; from then on its copies are 200 and others RESULT_ALREADY_EXISTS."""
    results = history.by_kind["result"]
    taken = [item for item in results if item.accepted]
    first = [item for item in taken if item.status == 201]
    if len(first) > 1:
        return Contradiction("two results were stored", tuple(first[:2]))
    for one, other in combinations(taken, 2):
        if one.sent.get("outputHash") != other.sent.get("outputHash"):
            return Contradiction("two different results were taken", (one, other))
    for item in taken:
        if item.status != 201 and not any(_stored_by(item, other) for other in results):
            return Contradiction("a copy was acknowledged of a result that nobody can have sent before", (item,))
    for stored in sorted(taken, key=lambda item: item.latest)[:1]:
        for item in results:
            same = item.sent.get("outputHash") == stored.sent.get("outputHash")
            if stored.before(item) and item.refused and (same or item.code != "RESULT_ALREADY_EXISTS"):
                what = "a copy of the stored result" if same else "another result"
                return Contradiction(f"{what} was answered {item.status} {item.code}", (stored, item))
    return _counted(history, taken)


def _stored_by(item: Operation, other: Operation) -> bool:
    same = other.sent.get("outputHash") == item.sent.get("outputHash")
    return other is not item and not other.refused and same and other.invoked <= item.latest


def _counted(history: JobHistory, taken: list[Operation]) -> Contradiction | None:
    for seen in history.by_kind["inspect"]:
        count = seen.told.get("resultCount")
        if not seen.accepted or count is None or seen.told.get("status") not in FINAL:
            continue
        wanted = int(seen.told["status"] == "succeeded")
        if count != wanted:
            return Contradiction(f"{count} results of a job that {seen.told['status']}", (*taken[:1], seen))
    return None


def counters(history: JobHistory) -> Contradiction | None:
    """Each attempt that ends without success counts one, in what locks, failures and the job itself tell."""
    told = sorted((item for item in history.grants if _attempt(item) >= 0), key=lambda item: item.invoked)
    for one, other in combinations(told, 2):
        if one.before(other) and _attempt(one) > _attempt(other):
            return Contradiction("the attempts count down", (one, other))
    for grant in told:
        others = [item for item in history.by_kind["lock"] if item is not grant and not item.refused]
        before = [item for item in others if not item.accepted and item.invoked <= grant.latest]
        before += [item for item in others if item.accepted and _attempt(item) < _attempt(grant)]
        if _attempt(grant) > len(before):
            text = f"attempt {_attempt(grant)} after at most {len(before)} others"
            return Contradiction(text, (*(item for item in before if item.accepted), grant))
        if history.retries is not None and _attempt(grant) > history.retries:
            return Contradiction(f"attempt {_attempt(grant)} of a job with {history.retries} retries", (grant,))
    return _ends_once(history) or _counted_by_failures(history) or _counted_at_last(history, told)


def _attempt(item: Operation) -> int:
    """The attempt that a lock tells; -1 where it tells none."""
    found = item.told.get("attemptNo")
    return found if isinstance(found, int) else -1


def _ends_once(history: JobHistory) -> Contradiction | None:
    """A lock ends by one report."""
    for process in {item.process for item in history.grants}:
        locks = [item for item in history.by_kind["lock"] if item.process == process and not item.refused]
        reports = [
            item
            for item in history.operations
            if item.process == process and item.accepted and (item.kind == "fail" or item.status == 201)
        ]
        if len(reports) > len(locks):
            return Contradiction(f"{len(reports)} reports of {len(locks)} attempts were taken", (*locks, *reports))
    return None


def _counted_by_failures(history: JobHistory) -> Contradiction | None:
    for item in history.by_kind["fail"]:
        count, status = item.told.get("retryCount"), item.told.get("status")
        if not item.accepted or count is None:
            continue
        own = [lock for lock in history.by_kind["lock"] if lock.process == item.process and not lock.refused]
        own = [lock for lock in own if lock.invoked <= item.latest]
        last = max(own, key=lambda lock: lock.invoked, default=item)
        alone = all(lock.before(last) for lock in own if lock is not last)
        if last is item or _attempt(last) < 0 or not alone or not last.before(item):
            continue
        wanted = _attempt(last) + (status == "pending")
        if count != wanted:
            text = f"retryCount {count} after attempt {_attempt(last)} was {status}, not {wanted}"
            return Contradiction(text, (last, item))
    return None


def _counted_at_last(history: JobHistory, told: list[Operation]) -> Contradiction | None:
    for seen in history.by_kind["inspect"]:
        attempt, count = seen.told.get("attemptNo"), seen.told.get("retryCount")
        if not seen.accepted or seen.told.get("status") not in FINAL or attempt is None:
            continue
        if attempt != count:
            return Contradiction(f"attemptNo {attempt} and retryCount {count}", (seen,))
        # Each attempt counts but the last, which counts, too, where the job was cancelled while it waited again.
        least, most = len(history.grants), len([item for item in history.by_kind["lock"] if not item.refused])
        known = max((_attempt(item) for item in told), default=0)
        if not max(known, least - 1) <= attempt <= most - (seen.told["status"] != "cancelled"):
            attempts = f"{least} attempts" if least == most else f"{least} to {most} attempts"
            text = f"attemptNo {attempt} of a job that {seen.told['status']} after {attempts}"
            return Contradiction(text, (*history.grants, seen))
    return None


def stopped(history: JobHistory) -> Contradiction | None:
    """What its user revoked is neither given to a Runtime nor stored any more."""
    for revoked in history.by_kind["revoke"]:
        for item in history.operations:
            new = item.kind == "lock" or item.status == 201
            if revoked.accepted and revoked.before(item) and item.accepted and new and item.kind != "create":
                return Contradiction(f"a {item.kind} succeeded after the job was revoked", (revoked, item))
    return None


def ends(history: JobHistory) -> Contradiction | None:
    """When it was waited for, every job has ended."""
    seen = _seen_at_last(history)
    if seen is None or seen.told.get("status") in FINAL:
        return None
    told = [item for item in history.operations if item.accepted and item.kind in ("lock", "heartbeat", "fail")]
    return Contradiction(f"still {seen.told.get('status')}", (*told[-1:], seen))


def ends_known(history: JobHistory) -> bool:
    """Whether it was seen how the job ended, or that it did not."""
    return any(end_of(item) is not None for item in history.operations) or _seen_at_last(history) is not None


def _seen_at_last(history: JobHistory) -> Operation | None:
    """The job as it was seen when it was waited for, and nothing more was done to it."""
    seen = [item for item in history.by_kind["inspect"] if item.accepted]
    if not history.drained or not seen:
        return None
    done = [item for item in history.operations if item.accepted and item.kind not in ("inspect", "create")]
    return seen[-1] if all(item.before(seen[-1]) for item in done) else None


def _ordered(operations: set[Operation]) -> tuple[Operation, ...]:
    return tuple(sorted(operations, key=lambda item: (item.invoked, item.number)))


CHECKERS = (
    Checker("ownership", "ownership never overlaps", ("RT-LOCK-06", "RT-LOCK-07", "RT-LOCK-10"), ownership),
    Checker("one-win", "of locks at once one wins", ("RT-LOCK-12", "RT-LOCK-13"), one_win),
    Checker("some-win", "a free job is given", ("RT-LOCK-12", "RT-RETRY-02"), some_win),
    Checker("holders-only", "nothing of a loser is taken", ("RT-HB-50", "RT-FAIL-50", "RT-RES-53"), holders_only),
    Checker("holders-stay", "who holds is not refused", ("RT-HB-03", "RT-LOCK-10"), holders_stay),
    Checker("finished", "finished stays finished", ("RT-SM-53", "RT-LOCK-50"), finished),
    Checker("result-stays", "after a 201 the result stays", ("RT-RES-13", "RT-RES-15", "RT-RES-16"), result_stays),
    Checker("counters", "counters step by one", ("RT-RETRY-50", "RT-FAIL-53"), counters),
    Checker("stopped", "what was revoked stops", ("RT-CANCEL-50", "RT-CANCEL-56"), stopped),
    Checker("ends", "every job ends", ("RT-SM-50",), ends),
)
