"""What the model believes of a build's rows, and what the text allows to happen to them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import openapi
from contract_tests.model.stepper import Row, Stepper, Taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contract_tests.client import JobRef
    from contract_tests.given import Timing

NAME = "runtime-api"
FREE = {
    "lock-lapses": ("errorMessage", "rawError"),
    "run-times-out": ("errorMessage", "rawError"),
    "result": ("rawError",),
}
"""Columns that a transition leaves open, whatever the text sets: a limit's words, what becomes of a raw error."""
STAMPS = ("finishedAt", "updatedAt")
"""Instants of a timer's transition: any from the limit to when it is first seen."""


@dataclass(eq=False)
class Job:
    """A job, its row as it was last believed, and who held it."""

    ref: JobRef
    row: Row
    body: Mapping[str, Any] | None = None
    """What it was created with, beside the provider state's own parameters."""
    params: Mapping[str, Any] = field(default_factory=dict)
    formers: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Allowed:
    """An outcome that the text allows: its decision, then what time did to the row."""

    taken: Taken | None
    row: Row
    steps: tuple[str, ...] = ()
    since: int | None = None
    """Where a timer fired: the limit, from which on its stamps may lie."""

    def free(self) -> set[str]:
        """Columns that may have any value."""
        return {column for step in self.steps for column in FREE.get(step, ())}


def stepper(timing: Timing) -> Stepper:
    """The text of the specification, with the lock that the build was said to have."""
    return _stepper(openapi.load(NAME), round(timing.lock * 1000))


@functools.lru_cache(maxsize=4)
def _stepper(contract: openapi.Contract, lock: int) -> Stepper:
    text = contract.document["x-state-machine"]
    return Stepper(text, {"lockTime": lock}, {"redact": lambda said: said})


class Believed:
    """All rows of one play, by entity."""

    def __init__(self, steps: Stepper) -> None:
        self.steps = steps
        self.contract = openapi.load(NAME)
        self.jobs: list[Job] = []
        self.tables: dict[str, list[Row]] = {"Result": [], "Snapshot": [], "Credential": []}

    def allowed(
        self, group: str, name: str, job: Job | None, instants: Iterable[int], **inputs: Any
    ) -> list[tuple[Allowed, Mapping[str, Row]]]:
        """What may come of a trigger at one of these instants, swept or not; with the rows that it creates."""
        found: list[tuple[Allowed, Mapping[str, Row]]] = []
        for now in instants:
            for before in self.passed(job.row, now) if job else [None]:
                row = before.row if before else None
                given = {**inputs, "now": now, self.steps.row: row}
                given |= self.steps.related(group, name, given, self.tables | {"Job": [job.row for job in self.jobs]})
                taken = self.steps.judge(group, name, given)
                after = given[taken.show] if taken.show else taken.row
                steps = (*(before.steps if before else ()), *taken.steps)
                allowed = Allowed(taken, after or {}, steps, before.since if before else None)
                if all(allowed != other for other, _ in found):
                    found.append((allowed, taken.created))
        return found

    def passed(self, row: Row, now: int) -> list[Allowed]:
        """The row after time has done what it does, and before: a sweeper may be late."""
        fired = self.steps.passes(row, now)
        if not fired:
            return [Allowed(None, row)]
        last = fired[-1].row or row
        swept = Allowed(None, last, tuple(step for one in fired for step in one.steps), fired[0].at - 1)
        return [swept, Allowed(None, row)]

    def created(self, values: Mapping[str, Any], id_: str, now: int) -> Row:
        """A new row of a job: what a step creates, then the columns' defaults."""
        row = self.filled(self.contract.document["components"]["schemas"]["Job"], values)
        return row | {"id": id_, "createdAt": now, "updatedAt": now}

    def filled(self, schema: Mapping[str, Any], values: Mapping[str, Any]) -> Row:
        """An object with all its properties: the given value, else the default, else null."""
        found: Row = {}
        for name, item in schema["properties"].items():
            found[name] = values.get(name) if values.get(name) is not None else item.get("default")
        return found

    def body(self, operation: str, sent: Mapping[str, Any]) -> Row:
        """A request's body as expressions see it."""
        content = self.contract.operations[operation].document.get("requestBody")
        if not content:
            return {}
        return self.filled(self.contract.resolve(content["content"]["application/json"]["schema"]), sent)

    def result_count(self, job: Job) -> int:
        """How many results are stored for a job."""
        return sum(result["jobId"] == job.ref.id for result in self.tables["Result"])


def differences(allowed: Allowed, came: Mapping[str, Any], seen: int, slack: int) -> dict[str, tuple[Any, Any]]:
    """The columns that are not as allowed, each with what was wanted and what came; ``seen`` is when it was looked at.

    ``slack`` is by how many milliseconds instants may differ: none where the clock stands.
    """
    wrong: dict[str, tuple[Any, Any]] = {}
    free = allowed.free()
    for column, wanted in allowed.row.items():
        if column in free or column not in came:
            continue
        value = came[column]
        if allowed.since is not None and column in STAMPS and wanted is not None and is_number(value):
            if not allowed.since - slack <= value <= seen + slack:
                wrong[column] = (wanted, value)
        elif column in INSTANTS and is_number(value) and is_number(wanted):
            if abs(value - wanted) > slack:
                wrong[column] = (wanted, value)
        elif value != wanted or isinstance(value, bool) is not isinstance(wanted, bool):
            wrong[column] = (wanted, value)
    return wrong


INSTANTS = ("lockedAt", "lockUntil", "startedAt", "finishedAt", "createdAt", "updatedAt")


def is_number(value: Any) -> bool:
    """Whether a column holds a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
