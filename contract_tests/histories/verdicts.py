"""From contradictions to verdicts: valid, invalid, or unknown; of a job, and of each rule over all jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from contract_tests.histories.checkers import CHECKERS, ends, ends_known

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contract_tests.histories.checkers import Check, Checker
    from contract_tests.histories.operations import JobHistory, Operation

Word = Literal["valid", "invalid", "unknown"]
SHOWN = 10
"""Of so many jobs the evidence is kept."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a checker says of one job."""

    word: Word
    text: str = ""
    evidence: tuple[Operation, ...] = ()
    broke_down: bool = False
    """Whether it is unknown since the checker failed."""


VALID = Verdict("valid")


def judge(check: Check, history: JobHistory) -> Verdict:
    """The verdict of one checker on one job.

    Unknown where the history fits only in a reading in which something that was lost took effect, where nobody saw the
    end, and where the checker itself breaks down: that is never valid.
    """
    try:
        found = check(history)
        if found is not None:
            return Verdict("invalid", found.text, found.operations)
        if check is ends and not ends_known(history):
            return Verdict("unknown", "nobody saw how it ended")
        found = check(history.without_lost()) if history.lost else None
        if found is not None:
            return Verdict("unknown", f"{found.text}, unless a lost request took effect", found.operations)
    except Exception as error:  # whatever it is, there is no verdict
        return Verdict("unknown", f"the checker broke down: {type(error).__name__}: {error}", broke_down=True)
    return VALID


@dataclass(slots=True)
class Invariant:
    """A rule over all jobs."""

    checker: Checker
    counts: dict[Word, int] = field(default_factory=lambda: {"valid": 0, "unknown": 0, "invalid": 0})
    invalid: list[tuple[JobHistory, Verdict]] = field(default_factory=list)
    """Those whose evidence is shortest."""
    broken_down: list[tuple[JobHistory, Verdict]] = field(default_factory=list)

    def add(self, history: JobHistory) -> None:
        """Judge one job more."""
        verdict = judge(self.checker.check, history)
        self.counts[verdict.word] += 1
        if verdict.word == "invalid":
            self.invalid.append((history, verdict))
            self.invalid.sort(key=lambda item: len(item[1].evidence))
            del self.invalid[SHOWN:]
        elif verdict.broke_down:
            self.broken_down = [*self.broken_down, (history, verdict)][:SHOWN]

    @property
    def word(self) -> Word:
        """Invalid by one job that is; unknown where a checker broke down or no job could be told; else valid.

        Jobs whose lost answers leave it open are counted beside: nobody can tell more of them.
        """
        if self.counts["invalid"]:
            return "invalid"
        return "unknown" if self.broken_down or not self.counts["valid"] else "valid"


def judge_all(histories: Iterable[JobHistory], checkers: Sequence[Checker] = CHECKERS) -> list[Invariant]:
    """Every rule over all jobs."""
    found = [Invariant(checker) for checker in checkers]
    for history in histories:
        for invariant in found:
            invariant.add(history)
    return found
