"""Reports whose answer was lost or 5xx: what was tried next, and in what time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from contract_tests.runtime.monitors import Finding, broken, kept
from contract_tests.runtime.rules.reporting import crashed, said, slack, stopped_before, unheard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

WITHIN = 10.0
"""Seconds in which a report is tried at least twice more (RT-RES-86)."""


BARREN = 5.0
"""Seconds without any further try after which there is none to come, where the job's time ends before ``WITHIN``."""


@dataclass(frozen=True, slots=True)
class Series:
    """A report that failed (lost, or 5xx), and the reports after it until one was answered."""

    hold: Hold
    first: Call
    next: tuple[Call, ...]
    """Within the time, up to the first with another answer, which is among them."""
    complete: bool
    """Whether all the time was seen, and nothing but the Runtime kept it from trying."""
    barren: bool
    """Whether nothing was tried, though nothing but the Runtime kept it from that for a good while."""

    @property
    def answered(self) -> bool:
        """Whether an answer other than 5xx came."""
        return any(not _unanswered(call) for call in self.next)


def series(history: History) -> Iterator[Series]:
    """Each hold's first report that failed, where the Runtime still had to report."""
    for hold in history.holds:
        failed = next((call for call in hold.reports if _unanswered(call)), None)
        if failed is None or stopped_before(history, hold, failed.sent):
            continue
        tries: list[Call] = []
        busy = 0.0
        end = failed.ended + slack(WITHIN)
        for call in hold.reports:
            if call.sent <= failed.sent or call.sent > end + busy:
                continue
            tries.append(call)
            busy += max(0.0, call.ended - call.sent)  # while a try waits for its answer none is missing
            if not _unanswered(call):
                break
        limit = float("inf") if hold.limit is None else hold.begin + hold.limit
        complete = end + busy < limit and _free(history, hold, failed.ended, end + busy)
        until = min(end, limit)
        barren = not tries and until - failed.ended >= BARREN and _free(history, hold, failed.ended, until)
        yield Series(hold, failed, tuple(tries), complete, barren)


def _unanswered(call: Call) -> bool:
    """Whether a report was not answered, or with 5xx; the head of a success says enough to some, so that it is none."""
    began = (call.fault or {}).get("got") == "part" and 200 <= call.status < 300
    return call.failed and not began


def _free(history: History, hold: Hold, begin: float, end: float) -> bool:
    """Whether nothing but the Runtime kept it from trying in all that time; where it broke down it was that, too."""
    if crashed(history, begin, end) is not None:
        return True
    if hold.next_lock is not None and begin < hold.next_lock.sent <= end:
        end = hold.next_lock.sent
    if history.end < end or history.interrupted(begin, end):
        return False
    return not stopped_before(history, hold, end) and not unheard(history, hold, end)


def again(history: History, operation: str, names: tuple[str, ...]) -> Iterator[Finding]:
    """A report of this operation that failed is followed by one with the same values of these properties."""
    for item in series(history):
        if item.first.operation != operation or item.first.cut:
            continue
        after = item.next[0] if item.next else None
        values = {name: item.first.get(name) for name in names}
        expected = f"the same report again after {_answer(item.first)}: {_listed(values)}"
        if after is None:
            if item.complete or item.barren:
                yield broken(item.first, expected, f"no further report of {item.hold.job} within {WITHIN:g} s")
        elif stopped_before(history, item.hold, after.sent) or after.cut:
            continue
        elif after.operation != operation:
            if not (item.hold.limit is not None and after.sent - item.hold.begin >= item.hold.limit):
                yield broken(after, expected, said(after))
        elif any(after.get(name) != value for name, value in values.items()):
            yield broken(after, expected, _listed({name: after.get(name) for name in names}))
        else:
            yield kept(after)


def _answer(call: Call) -> str:
    return "a lost answer" if call.lost else f"the answer {call.status}"


def _listed(values: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
