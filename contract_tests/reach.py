"""What generated requests met: answers, error codes and moves of jobs, and which documented ones they never did."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi import Contract

NEED_NOT_BE_MET = frozenset({"INTERNAL_ERROR", "internal_error", "idempotency_in_progress"})
"""Codes that no request brings about on purpose: a fault of the server, and a way that a build need not go."""


class Reach:
    """Counts what is met, by operation; knows what the specification documents."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.answers: dict[str, Counter[str]] = {id_: Counter() for id_ in contract.operations}
        self.moves: dict[str, Counter[str]] = {id_: Counter() for id_ in contract.operations}

    def saw(self, operation_id: str, status: int, code: str | None, move: str | None) -> None:
        """One exchange; ``move`` is the job's state before and after, ``pending -> locked``."""
        self.answers[operation_id][f"{status} {code}" if code else str(status)] += 1
        if move:
            self.moves[operation_id][move] += 1

    @property
    def requests(self) -> int:
        """How many exchanges were counted."""
        return sum(count for answers in self.answers.values() for count in answers.values())

    def not_met(self) -> list[str]:
        """Documented answers and moves that were never seen, a line each."""
        lines = []
        for id_ in self.contract.operations:
            lines += [f"{id_}: {answer}" for answer in self._documented_answers(id_) if not self.answers[id_][answer]]
            lines += [f"{id_}: {move}" for move in self._documented_moves(id_) if not self.moves[id_][move]]
        return lines

    def as_data(self) -> dict[str, Any]:
        """The account as plain data, keys in the specification's order and then sorted."""
        return {
            "requests": self.requests,
            "operations": {
                id_: {
                    "answers": dict(sorted(self.answers[id_].items())),
                    "moves": dict(sorted(self.moves[id_].items())),
                }
                for id_ in self.contract.operations
            },
            "notMet": self.not_met(),
        }

    def _documented_answers(self, operation_id: str) -> Iterator[str]:
        operation = self.contract.operations[operation_id]
        for status in operation.statuses:
            response = self.contract.resolve(operation.document["responses"][str(status)])
            codes = response.get("x-error-codes")
            if codes:
                yield from (f"{status} {code}" for code in codes if code not in NEED_NOT_BE_MET)
            else:
                yield str(status)

    def _documented_moves(self, operation_id: str) -> Iterator[str]:
        machine = self.contract.machine
        trigger = machine.operations.get(operation_id) if machine else None
        steps = trigger.steps if trigger else ()
        found = [f"{state} -> {step.to or state}" for step in steps for state in step.sources or ()]
        yield from dict.fromkeys(found)
