"""Whether calls were made as expected: pure functions over journal entries.

An expectation selects calls (``calls``, within ``after`` and ``before``) and says something of them. Calls are taken in
the order in which they began; a gap is world time between the beginnings of two of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mock_server.journal import FIELDS
from mock_server.patterns import ABSENT, Difference, Pattern, nearest_calls, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mock_server.journal import Entry

_SHOWN = 100
"""Numbers of entries that an answer lists at most."""


@dataclass(frozen=True)
class Problem:
    """Why an expectation does not hold."""

    message: str
    difference: Difference
    number: int | None = None
    """The entry in which the difference is."""
    missed: Pattern | None = None
    """What was not found, to look for what comes near."""
    among: Sequence[Entry] = ()
    final: bool = False
    """Whether no further call can mend it."""


@dataclass
class Outcome:
    """What came of one expectation."""

    name: str
    matched: list[Entry] = field(default_factory=list)
    problem: Problem | None = None
    unknown: str | None = None
    """Why it can't be told."""

    @property
    def verdict(self) -> str:
        """``ok``, ``failed`` or ``unknown``."""
        return "unknown" if self.unknown else "failed" if self.problem else "ok"

    def document(self) -> dict[str, Any]:
        """As the control plane shows it, with what comes near."""
        near = nearest_calls(self.problem.missed, self.problem.among) if self.problem and self.problem.missed else []
        document: dict[str, Any] = {
            "name": self.name,
            "ok": self.verdict == "ok",
            "verdict": self.verdict,
            "matched": len(self.matched),
            "message": self._message(near),
            "entries": [entry.number for entry in self.matched[:_SHOWN]],
            "nearMisses": [
                {"number": entry.number, "differs": [difference.document() for difference in differences]}
                for entry, differences in near
            ],
        }
        if self.problem:
            number = {} if self.problem.number is None else {"number": self.problem.number}
            document["firstDifference"] = {**number, **self.problem.difference.document()}
        return document

    def _message(self, near: Sequence[tuple[Entry, Sequence[Difference]]]) -> str:
        said = f"{self.problem.message}." if self.problem else f"It holds: {_numbers(self.matched)}."
        if near:
            entry, differences = near[0]
            said += f" The nearest is {words(entry)}: {'; '.join(map(str, differences))}."
        return f"It can't be told: {self.unknown}. As far as can be seen: {said}" if self.unknown else said


class Expectation:
    """One expectation, ready to be held against entries."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """``document`` is an ``Expectation`` of the control plane's specification, already judged by it."""

        def pattern(name: str) -> Pattern | None:
            return Pattern(document[name]) if name in document else None

        self.calls = Pattern(document.get("calls", {}))
        self.after, self.before = pattern("after"), pattern("before")
        self.every, self.first, self.last = pattern("every"), pattern("first"), pattern("last")
        self.order = [Pattern(step) for step in document.get("order", ())]
        self.most_gap: float | None = document.get("maxGapSeconds")
        self.least_gap: float | None = document.get("minGapSeconds")
        self.per: str | None = document.get("per")
        self.optional: bool = document.get("optional", False)
        count = document.get("count", {"atLeast": 1})
        self.least: int = count.get("exactly", count.get("atLeast", 0))
        self.most: int | None = count.get("exactly", count.get("atMost"))
        self.name: str = document.get("name") or str(self.calls)

    @property
    def patterns(self) -> list[Pattern]:
        """Every pattern that it has."""
        given = (self.calls, self.after, self.before, self.every, self.first, self.last, *self.order)
        return [pattern for pattern in given if pattern is not None]

    def concerns(self, entry: Entry) -> bool:
        """Whether an entry can change what comes of it."""
        return any(pattern.matches(entry) for pattern in (self.calls, self.after, self.before) if pattern)

    def judge(self, entries: Sequence[Entry], lost: int = 0) -> Outcome:
        """Hold it against entries in the order in which they began; ``lost`` counts those that the journal dropped."""
        outcome = Outcome(self.name)
        for value, group in self._groups(entries):
            found = self._judge(group, outcome.matched)
            if found is not None:
                about = "" if value is None else f"{self.per} {value}: "
                outcome.problem = replace(found, message=about + found.message)
                break
        if lost:
            outcome.unknown = f"the journal was full and dropped {lost} of the calls concerned"
        elif undecided := self._undecided(entries):
            outcome.unknown = f"the body of {_numbers(undecided)} is cut in the journal"
        return outcome

    def _undecided(self, entries: Sequence[Entry]) -> list[Entry]:
        patterns = [pattern for pattern in self.patterns if pattern.looks_into_bodies]
        return [entry for entry in entries if any(pattern.undecided(entry) for pattern in patterns)] if patterns else []

    def _groups(self, entries: Sequence[Entry]) -> Iterator[tuple[str | None, Sequence[Entry]]]:
        """All entries, or those of each job or caller that the expectation is about."""
        if self.per is None:
            yield None, entries
            return
        place = FIELDS.index(self.per)
        about = self.after or self.calls
        values: Any = dict.fromkeys(
            entry[place] for entry in entries if entry[place] is not None and about.matches(entry)
        )
        for value in values:
            yield value, [entry for entry in entries if entry[place] == value]
        if not values:
            yield None, [entry for entry in entries if entry[place] is not None]

    def _judge(self, entries: Sequence[Entry], matched: list[Entry]) -> Problem | None:
        """The first problem among entries; those that match are added to ``matched``."""
        begin = end = None
        within = entries
        if self.after is not None:
            begin = _first(self.after, entries)
            if begin is None:
                return None if self.optional else self._no_edge("after", self.after, entries)
            answered = begin.real_at + begin.duration_ms
            within = [e for e in within if e.real_at >= answered and e.number != begin.number]
        if self.before is not None:
            end = _first(self.before, within)
            if end is None:
                return None if self.optional else self._no_edge("before", self.before, within)
            within = within[: within.index(end)]
        found = [entry for entry in within if self.calls.matches(entry)]
        matched += found
        edges = [edge for edge in (begin, end) if edge is not None]
        return (
            self._too_many(found)
            or self._not_as(found)
            or self._gaps([*edges[:1], *found, *edges[1:]] if begin else [*found, *edges])
            or self._out_of_order(found)
            or self._too_few(found, within)
        )

    def _no_edge(self, name: str, pattern: Pattern, among: Sequence[Entry]) -> Problem:
        return Problem(
            f"nothing is `{name}` ({pattern}), so there is nothing to look at",
            Difference(f"/{name}", str(pattern), ABSENT),
            missed=pattern,
            among=among,
        )

    def _too_many(self, found: Sequence[Entry]) -> Problem | None:
        if self.most is None or len(found) <= self.most:
            return None
        over = found[self.most]
        message = f"{self._wanted()}, but {len(found)} came: {_numbers(found)}"
        return Problem(message, Difference("/count", self._count(), len(found)), over.number, final=True)

    def _too_few(self, found: Sequence[Entry], within: Sequence[Entry]) -> Problem | None:
        if len(found) >= self.least:
            return None
        came = f"but {len(found)} came: {_numbers(found)}" if found else "but none came"
        numbers = {entry.number for entry in found}
        others = [entry for entry in within if entry.number not in numbers]
        difference = Difference("/count", self._count(), len(found))
        return Problem(f"{self._wanted()}, {came}", difference, missed=self.calls, among=others)

    def _wanted(self) -> str:
        return f"expected {self._count()} x {self.calls}"

    def _count(self) -> str:
        if self.least == self.most:
            return f"exactly {self.most}"
        bounds = [f"at least {self.least}"] if self.least else []
        return " and ".join([*bounds, *([f"at most {self.most}"] if self.most is not None else [])])

    def _not_as(self, found: Sequence[Entry]) -> Problem | None:
        """What is wrong by ``every``, ``first`` and ``last``."""
        checks: list[tuple[str, Pattern | None, Sequence[Entry]]] = [
            ("every", self.every, found),
            ("first", self.first, found[:1]),
            ("last", self.last, found[-1:]),
        ]
        for name, pattern, entries in checks:
            for entry in entries if pattern is not None else ():
                differences = pattern.differences(entry) if pattern is not None else []
                if differences:
                    what = "; ".join(map(str, differences))
                    which = "" if name == "every" else f"the {name} call, "
                    return Problem(
                        f"{which}{words(entry)}: {what}", differences[0], entry.number, final=name == "every"
                    )
        return None

    def _gaps(self, points: Sequence[Entry]) -> Problem | None:
        for one, other in pairwise(points):
            gap = (other.at - one.at) / 1000
            between = f"between {words(one)} and {words(other)}"
            if self.most_gap is not None and gap > self.most_gap:
                message = f"{_seconds(gap)} passed {between}, at most {_seconds(self.most_gap)} may"
                return Problem(
                    message, Difference("/at", f"at most {_seconds(self.most_gap)} later", gap), other.number
                )
            if self.least_gap is not None and gap < self.least_gap:
                message = f"only {_seconds(gap)} passed {between}, at least {_seconds(self.least_gap)} must"
                wanted = f"at least {_seconds(self.least_gap)} later"
                return Problem(message, Difference("/at", wanted, gap), other.number, final=True)
        return None

    def _out_of_order(self, found: Sequence[Entry]) -> Problem | None:
        """What is wrong by ``order``: each step comes, and none before the one in front of it has come."""
        reached: list[Entry] = []
        for entry in found:
            if len(reached) < len(self.order) and self.order[len(reached)].matches(entry):
                reached.append(entry)
                continue
            steps = [i for i, step in enumerate(self.order) if step.matches(entry)]
            if steps and steps[0] > len(reached):
                missing = self.order[len(reached)]
                message = f"{words(entry)} came before {missing}"
                return Problem(message, Difference("/order", str(missing), str(self.order[steps[0]])), entry.number)
        if len(reached) == len(self.order):
            return None
        missing = self.order[len(reached)]
        later = [entry for entry in found if not reached or entry.number > reached[-1].number]
        where = f"after {words(reached[-1])}" if reached else "at all"
        return Problem(
            f"{missing} did not come {where}",
            Difference(f"/order/{len(reached)}", str(missing), ABSENT),
            missed=missing,
            among=later,
        )


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in the order in which they began; the journal has them in the order in which they were answered."""
    return sorted(entries, key=lambda entry: (entry.real_at, entry.number))


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The answer for all expectations."""
    documents = [outcome.document() for outcome in outcomes]
    verdicts = {outcome.verdict for outcome in outcomes}
    verdict = "failed" if "failed" in verdicts else "unknown" if "unknown" in verdicts else "ok"
    told = [f"{item['name']}: {item['message']}" for item in documents if not item["ok"]]
    message = "\n".join(told) or f"All {len(documents)} hold."
    return {"ok": verdict == "ok", "verdict": verdict, "message": message, "expectations": documents}


def _first(pattern: Pattern, entries: Sequence[Entry]) -> Entry | None:
    return next((entry for entry in entries if pattern.matches(entry)), None)


def _numbers(entries: Sequence[Entry], most: int = 10) -> str:
    numbers = [f"#{entry.number}" for entry in entries[:most]]
    more = [f"and {len(entries) - most} more"] if len(entries) > most else []
    return ", ".join([*numbers, *more]) or "no call"


def _seconds(value: float) -> str:
    return f"{value:g} s"
