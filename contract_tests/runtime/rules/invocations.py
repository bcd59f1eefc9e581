"""Model calls beside their logs: how many of each kind a job has, and by when its logs have to be there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.rules.model_outcomes import GOOD, NOTHING_TO_USE, TIMEOUT, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History, Hold

WITHIN = 10.0
"""Seconds after the job or the exit in which a log may come (RT-LOG-72)."""
TRANSPARENT = 0.05
"""Seconds in which an HTTP client repeats by itself what a closed connection lost: its user never learns of it."""
Entry = dict[str, Any]


@dataclass(frozen=True)
class Invocations:
    """All model calls of one job, and all entries of logs about it; an entry that was submitted twice is there once."""

    job: str
    good: list[Call]
    failed: list[Call]
    aborted: list[Call]
    unclear: list[Call]
    """Answered with 2xx or 3xx, but not with an output: success or not is the Runtime's word for it."""
    entries: list[tuple[float, Entry]]
    """With when each was first submitted."""
    due: float | None
    """Until when logs may come; None where that can't be told, or was not seen."""

    @cached_property
    def calls(self) -> list[Call]:
        """All of them, in order."""
        calls = [*self.good, *self.failed, *self.aborted, *self.unclear]
        return sorted(calls, key=lambda call: (call.sent, call.number))

    @cached_property
    def unsuccessful(self) -> int:
        """How many entries have ``success`` false."""
        return sum(entry.get("success") is False for _, entry in self.entries)

    @cached_property
    def traces(self) -> set[str]:
        """Distinct ``traceId``."""
        return {entry["traceId"] for _, entry in self.entries if isinstance(entry.get("traceId"), str)}

    def by(self, at: float) -> int:
        """How many entries had been submitted by an instant."""
        return sum(submitted <= at for submitted, _ in self.entries)


def invocations(history: History) -> Iterator[Invocations]:
    """Each job with a model call; none where logs could not be read."""
    if any(call.cut or not isinstance(call.body, dict) for call in history.of("submitInvocationLogs")):
        return
    jobs: dict[str, list[Hold]] = {}
    for hold in history.holds:
        jobs.setdefault(hold.job, []).append(hold)
    entries = _entries(history)
    for job, holds in jobs.items():
        found: dict[str, list[Call]] = {"good": [], "failed": [], "aborted": [], "unclear": []}
        for hold in holds:
            for kind, call in _sorted(history, hold):
                found[kind].append(call)
        if any(found.values()):
            due = None if _killed(history, holds) else _due(history, holds)
            yield Invocations(job, **found, entries=entries.get(job, []), due=due)


def _sorted(history: History, hold: Hold) -> Iterator[tuple[str, Call]]:
    calls = hold.model_calls
    for i, call in enumerate(calls):
        following = calls[i + 1] if i + 1 < len(calls) else None
        if following is not None and _sent_anew(call, following):
            continue
        kind = outcome(call)
        if call.lost and _ended_by_us(history, hold, call):
            yield "aborted", call
        elif kind in NOTHING_TO_USE or call.lost:
            yield "failed", call
        else:
            yield "good" if kind == GOOD else "unclear", call


def _sent_anew(call: Call, following: Call) -> bool:
    """Whether the client's connection sent the same request again by itself, its user knowing of one call alone."""
    if call.heard or (call.fault or {}).get("got") == "part" or following.text != call.text:
        return False
    return following.sent - call.ended <= TRANSPARENT


def _ended_by_us(history: History, hold: Hold, call: Call) -> bool:
    """Whether a cancel, a lost lock or a shutdown came while a call was under way, which its caller then ended."""
    if outcome(call) != TIMEOUT:
        return False
    causes = [cause.ended for cause in (hold.stop, hold.dropped) if cause is not None]
    term = history.term_before(call.ended)
    return any(call.sent < at <= call.ended for at in [*causes, *([term] if term is not None else [])])


def _entries(history: History) -> dict[str, list[tuple[float, Entry]]]:
    found: dict[str, list[tuple[float, Entry]]] = {}
    seen: set[str] = set()
    for call, entry in history.logs:
        form = json.dumps(entry, sort_keys=True)
        job = entry.get("jobId")
        if form not in seen and isinstance(job, str):
            found.setdefault(job, []).append((call.sent, entry))
        seen.add(form)
    return found


def _killed(history: History, holds: list[Hold]) -> bool:
    """Whether a process ended with a job in hand or its logs still due, other than by a shutdown that was asked for."""
    for hold in holds:
        last = hold.model_calls[-1].ended if hold.model_calls else hold.begin
        until = max(hold.end or last, last) + WITHIN
        if any(hold.begin <= at <= until for at in history.signalled("KILL")):
            return True
        for event in history.happened("exited"):
            if hold.begin <= event.at <= until and history.term_before(event.at) is None:
                return True
    return False


def _due(history: History, holds: list[Hold]) -> float | None:
    """The instant by which each log of a job has to be there: 10 s after it ended, or when the process exited."""
    ends = []
    for hold in holds:
        if not hold.model_calls:
            continue
        end = hold.end if hold.end is not None else hold.final.ended if hold.final else None
        if end is None:
            return None
        ends.append(max(end, *(call.ended for call in hold.model_calls)))
    due = max(ends) + WITHIN * 1.1 + 0.5
    gone = history.process_end(max(ends))
    if gone is not None and gone < due:
        return gone
    if history.end < due or history.interrupted(max(ends), due):
        return None
    return due
