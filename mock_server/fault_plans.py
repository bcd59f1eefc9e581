"""Fault plans: which requests a fault meets, at which of them, and what it is. Read, judged and counted here."""

from __future__ import annotations

import copy
import hashlib
import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from mock_server.fault_rules import PlanError, judge_plans, statuses_of
from openapi.documents import Document, escape
from openapi.problems import Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mock_server.fault_targets import Asked, Targets

MAX_PLANS = 1000
MAX_APART = 10_000
"""Jobs or callers that a plan counts apart; the one not seen for longest is forgotten first."""

_MOST_SECONDS = 3600.0
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Plan:
    """One plan, found sound. Worlds share it, and count it apart. ``id`` may be empty until a world has it."""

    id: str
    match: Mapping[str, Any]
    when: Mapping[str, Any]
    fault: Mapping[str, Any]
    operations: frozenset[str] | None
    """Of these operations only; None: every request."""
    statuses: frozenset[int] | None = None
    """Of answers with these statuses only, which are what it counts; None: it counts requests."""

    @property
    def kind(self) -> str:
        """The kind of fault."""
        kind: str = self.fault["kind"]
        return kind

    def fits(self, asked: Asked) -> bool:
        """Whether ``match`` fits a request."""
        if self.operations is not None and (asked.target is None or asked.target.id not in self.operations):
            return False
        match = self.match
        return ("jobId" not in match or match["jobId"] == asked.job_id) and (
            "caller" not in match or match["caller"] == asked.caller
        )

    def due(self, n: int, key: str) -> bool:
        """Whether the fault is due at the n-th matching request (from 1; of the job or caller ``key``)."""
        when = self.when
        if "nth" in when:
            if n not in when["nth"]:
                return False
        elif "every" in when:
            first = when.get("from", when["every"])
            if n < first or (n - first) % when["every"]:
                return False
        elif n < when.get("from", 1):
            return False
        return "share" not in when or self.draw("share", n, key) < when["share"]

    def draw(self, what: str, n: int, key: str) -> float:
        """A number from 0 to below 1 that follows from the plan's seed and the count alone."""
        text = f"{self.when.get('seed', 0)}\0{what}\0{n}\0{key}"
        return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()) / 2**64

    def seconds(self, n: int, key: str) -> float:
        """How long a plan of the kind ``delay`` holds up the n-th request."""
        if "seconds" in self.fault:
            return float(self.fault["seconds"])
        ((kind, shape),) = self.fault["distribution"].items()
        drawn = self.draw("delay", n, key)
        if kind == "uniform":
            return float(shape[0] + (shape[1] - shape[0]) * drawn)
        deviation = _NORMAL.inv_cdf(min(max(drawn, 1e-12), 1 - 1e-12))
        return float(min(shape["median"] * math.exp(shape["sigma"] * deviation), _MOST_SECONDS))


def plans_of(data: Any, targets: Targets, document: Document | None = None, place: str = "") -> tuple[Plan, ...]:
    """The plans of JSON data: one plan or a list of them; ``place`` is where it stands (a JSON Pointer).

    Raises :class:`PlanError`, whose text names place and mend of every problem, with file and line for a ``document``.
    """
    entries, problems = judge_plans(data, targets, place)
    if problems:
        if document is None:
            raise PlanError([f"{pointer or '/'}: {what} ({mend})" for pointer, what, mend in problems])
        raise PlanError([str(Problem(document.path, document.line(at), at, what, mend)) for at, what, mend in problems])
    return tuple(
        Plan(
            entry.get("id", ""), entry["match"], entry["when"], entry["fault"], operations, statuses_of(entry["match"])
        )
        for entry, operations in entries
    )


def read_plans(paths: Iterable[Path], targets: Targets) -> tuple[Plan, ...]:
    """The plans of YAML or JSON files. Raises :class:`PlanError`, for an id that two files use, too."""
    plans: list[Plan] = []
    for path in paths:
        try:
            document = Document.read(path, lists=True)
        except SpecError as error:
            raise PlanError([str(error)]) from None
        problems = [*document.duplicate_keys(), *_no_json(document)]
        if problems:
            raise PlanError(list(map(str, problems)))
        more = plans_of(document.data, targets, document)
        for i, plan in enumerate(more):
            if plan.id and plan.id in {other.id for other in plans}:
                pointer = f"/{i}/id" if isinstance(document.data, list) else "/id"
                what = f"`{plan.id}` is in another file already"
                raise PlanError([str(document.problem(pointer, what, "give the plan an id of its own"))])
        plans += more
    if len(plans) > MAX_PLANS:
        raise PlanError([f"{len(plans)} plans are too many (a world has at most {MAX_PLANS})"])
    return tuple(plans)


def _no_json(document: Document) -> Iterator[Problem]:
    """Values of a YAML file that JSON has not: dates, binary, numbers without an end, keys that are no text."""
    stack: list[tuple[str, Any]] = [("", document.data)]
    while stack:
        pointer, value = stack.pop()
        if isinstance(value, dict):
            odd = [key for key in value if not isinstance(key, str)]
            if odd:
                yield document.problem(f"{pointer}/{odd[0]}", "the key is no text", "put it in quotes")
            stack += [(f"{pointer}/{escape(str(key))}", item) for key, item in value.items()]
        elif isinstance(value, list):
            stack += [(f"{pointer}/{i}", item) for i, item in enumerate(value)]
        elif not isinstance(value, str | int | float | None) or (isinstance(value, float) and not math.isfinite(value)):
            yield document.problem(pointer, "is nothing that JSON can say", "put a date in quotes; use finite numbers")
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            yield document.problem(pointer, "is no number of 64 bits", "use a smaller one, or one with a fraction")


class _Counts:
    """How many matching requests came, and how many of them were met."""

    __slots__ = ("applied", "seen")

    def __init__(self) -> None:
        self.seen = self.applied = 0


class Counted:
    """A plan at work in a world."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.total = _Counts()
        self._apart: OrderedDict[str, _Counts] = OrderedDict()
        self._by_job, self._by_caller = plan.when.get("perJob", False), plan.when.get("perCaller", False)

    def count(self, asked: Asked) -> Taken | None:
        """Count a request that matches; what can be taken when the fault is due at it."""
        plan, counts, key = self.plan, self.total, ""
        if self._by_job or self._by_caller:
            key = f"{(asked.job_id or '') if self._by_job else ''}\0{(asked.caller or '') if self._by_caller else ''}"
            counts = self._counts(key)
            self.total.seen += 1
        counts.seen += 1
        if counts.applied >= plan.when.get("times", math.inf) or not plan.due(counts.seen, key):
            return None
        return Taken(self, counts, counts.seen, key)

    def _counts(self, key: str) -> _Counts:
        counts = self._apart.get(key)
        if counts is None:
            counts = self._apart[key] = _Counts()
            if len(self._apart) > MAX_APART:
                self._apart.popitem(last=False)
        else:
            self._apart.move_to_end(key)
        return counts

    def view(self) -> dict[str, Any]:
        """The plan as the control plane shows it."""
        plan = self.plan
        counts = {"matched": self.total.seen, "applied": self.total.applied}
        return {"id": plan.id, "match": plan.match, "when": plan.when, "fault": plan.fault, **counts}


@dataclass(slots=True)
class Taken:
    """A plan that is due at one request."""

    counted: Counted
    counts: _Counts
    n: int
    key: str

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.counted.plan

    def take(self, by: int = 1) -> None:
        """Count it as applied; -1 takes that back, for an answer that has nothing to spoil."""
        self.counts.applied += by
        if self.counts is not self.counted.total:
            self.counted.total.applied += by


class FaultPlans:
    """The plans of one world. ``active`` is what the request path looks at: empty costs one truth test."""

    def __init__(self, plans: Sequence[Plan] = ()) -> None:
        """Raises :class:`PlanError` as :meth:`add` does."""
        self.active: tuple[Counted, ...] = ()
        self.by_status: tuple[Counted, ...] = ()
        """Those of them that count answers."""
        self.reads_bodies = False
        self._made = 0
        self.add(plans)

    def __iter__(self) -> Iterator[Counted]:
        return iter(self.active)

    def add(self, plans: Sequence[Plan]) -> list[Counted]:
        """Add plans, all or none. Raises :class:`PlanError` for an id in use and for too many."""
        known = {counted.plan.id for counted in self.active}
        used = [plan.id for plan in plans if plan.id in known]
        if used:
            raise PlanError([f"a plan has the id `{used[0]}` already; remove it, or choose another id"])
        if len(self.active) + len(plans) > MAX_PLANS:
            raise PlanError([f"a world has at most {MAX_PLANS} plans; remove some"])
        known |= {plan.id for plan in plans}
        added = []
        for plan in plans:
            id_ = plan.id
            while not id_ or (not plan.id and id_ in known):
                self._made += 1
                id_ = f"fault-{self._made}"
            known.add(id_)
            added.append(Counted(replace(plan, id=id_)))
        self._set((*self.active, *added))
        return added

    def get(self, id_: str) -> Counted | None:
        """The plan of that id."""
        return next((counted for counted in self.active if counted.plan.id == id_), None)

    def remove(self, id_: str) -> bool:
        """Remove a plan; False where there is none."""
        before = len(self.active)
        self._set(tuple(counted for counted in self.active if counted.plan.id != id_))
        return len(self.active) < before

    def clear(self) -> None:
        """Remove every plan."""
        self._set(())

    def restart(self) -> None:
        """Set every count to zero: the world is as it was made."""
        self._set(tuple(Counted(counted.plan) for counted in self.active))

    def save(self) -> tuple[int, tuple[Counted, ...]]:
        """The plans with their counts as they are, for a snapshot of the world."""
        return self._made, copy.deepcopy(self.active)

    def restore(self, saved: tuple[int, tuple[Counted, ...]]) -> None:
        """Be as it was saved; it can be restored again."""
        self._made, active = saved
        self._set(copy.deepcopy(active))

    def _set(self, active: tuple[Counted, ...]) -> None:
        # A new tuple each time: a request that is choosing goes on with the one that it began with.
        self.active = active
        self.by_status = tuple(counted for counted in active if counted.plan.statuses is not None)
        self.reads_bodies = any(
            {"jobId", "caller"} & counted.plan.match.keys()
            or counted.plan.when.get("perJob")
            or counted.plan.when.get("perCaller")
            for counted in active
        )

    def choose(self, asked: Asked) -> list[Taken]:
        """What meets a request: every delay that is due, and the first other fault that is, as the last one.

        Nothing is awaited between counting and choosing, so counts are exact however many requests come at once.
        """
        delays: list[Taken] = []
        other: Taken | None = None
        for counted in self.active:
            if counted.plan.statuses is not None or not counted.plan.fits(asked):
                continue
            taken = counted.count(asked)
            if taken is None:
                continue
            if counted.plan.kind == "delay":
                delays.append(taken)
            elif other is None:
                other = taken
            else:
                continue
            taken.take()
        return delays if other is None else [*delays, other]

    def waiting(self, asked: Asked) -> list[Counted]:
        """The plans that fit a request, but count its answer, when its status is known: for :func:`answered`."""
        return [counted for counted in self.by_status if counted.plan.fits(asked)]


def answered(waiting: Iterable[Counted], asked: Asked, status: int, *, met: bool) -> Taken | None:
    """Count an answer of that status: the first plan that is due, taken unless another one ``met`` the request."""
    chosen: Taken | None = None
    for counted in waiting:
        if status in (counted.plan.statuses or ()):
            taken = counted.count(asked)
            if taken is not None and chosen is None and not met:
                chosen = taken
                taken.take()
    return chosen
