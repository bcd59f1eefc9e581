"""What was done about one job, by whom and when, and what was answered."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

Kind = Literal["create", "lock", "heartbeat", "result", "fail", "revoke", "cancel", "inspect"]
FINAL = ("succeeded", "failed", "cancelled")
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One request. Times are seconds of one clock that never steps back."""

    number: int
    job: str
    process: str
    """The Runtime's instance id; empty where the application acts (create, revoke, cancel, inspect)."""
    kind: Kind
    invoked: float
    completed: float | None = None
    """When the answer was there; None where none came."""
    status: int | None = None
    code: str | None = None
    """The error code of a refusal."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What the answer says: ``attemptNo`` of a lock, ``status`` and ``retryCount`` of a failure, columns of a job."""
    sent: Mapping[str, Any] = field(default_factory=dict)
    """What was asked for: ``outputHash`` of a result, ``retryable`` of a failure."""

    @property
    def lost(self) -> bool:
        """Whether nobody knows what became of it: no answer, or one of the class 5xx."""
        return self.status is None or self.status >= 500

    @property
    def accepted(self) -> bool:
        """Whether it was answered with a success."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def refused(self) -> bool:
        """Whether it was answered with a refusal, so that it changed nothing."""
        return self.status is not None and 300 <= self.status < 500

    @property
    def latest(self) -> float:
        """The latest instant at which it can have taken effect."""
        return math.inf if self.lost or self.completed is None else self.completed

    def before(self, other: Operation) -> bool:
        """Whether it took effect before the other, in whatever order their requests were handled."""
        return self.latest < other.invoked

    def shown(self, since: float = 0.0) -> str:
        """One line of evidence, with times in seconds ``since``."""
        came = "      ..." if self.completed is None else f"{self.completed - since:9.4f}"
        asked = "".join(f" {name}={value}" for name, value in self.sent.items())
        answer = "no answer" if self.status is None else " ".join(filter(None, [str(self.status), self.code]))
        told = "".join(f" {name}={value}" for name, value in self.told.items())
        who = self.process or "application"
        return f"{self.invoked - since:9.4f} {came}  {who:<12} {self.kind}{asked} -> {answer}{told}"


@dataclass(frozen=True, slots=True)
class Limits:
    """The build's numbers, seconds."""

    lock: float = 60.0
    sweep: float = 5.0
    """How late a sweeper may free what lapsed."""
    slack: float = 0.02
    """How far the build's clock may be from ours over one lock; also its whole milliseconds."""


@dataclass(frozen=True)
class JobHistory:
    """The operations about one job, by when they were sent."""

    job: str
    operations: tuple[Operation, ...]
    limits: Limits = Limits()
    timeout: float | None = None
    """The job's ``timeoutSeconds``, where it is known."""
    retries: int | None = None
    """The job's ``maxRetryCount``, where it is known."""
    drained: bool = True
    """Whether it was waited for until nothing more could happen to the job."""

    @cached_property
    def by_kind(self) -> Mapping[str, tuple[Operation, ...]]:
        """The operations of each kind."""
        found: defaultdict[str, list[Operation]] = defaultdict(list)
        for operation in self.operations:
            found[operation.kind].append(operation)
        return defaultdict(tuple, {kind: tuple(items) for kind, items in found.items()})

    @cached_property
    def grants(self) -> tuple[Operation, ...]:
        """Locks that were granted."""
        return tuple(item for item in self.by_kind["lock"] if item.accepted)

    @cached_property
    def lost(self) -> tuple[Operation, ...]:
        """What may have taken effect, or not."""
        return tuple(item for item in self.operations if item.lost)

    def without_lost(self) -> JobHistory:
        """The reading in which nothing that was lost took effect."""
        return replace(self, operations=tuple(item for item in self.operations if not item.lost))


def histories(
    operations: Iterable[Operation], limits: Limits, about: Mapping[str, Mapping[str, Any]] = _NOTHING
) -> list[JobHistory]:
    """The history of each job; ``about``: by job ids, what is known of them (fields of :class:`JobHistory`)."""
    found: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        found[operation.job].append(operation)
    return [
        JobHistory(
            job, tuple(sorted(items, key=lambda item: (item.invoked, item.number))), limits, **about.get(job, _NOTHING)
        )
        for job, items in found.items()
    ]
