"""Histories by hand: what was sent, when, and what came."""

from __future__ import annotations

from contract_tests.histories.checkers import CHECKERS
from contract_tests.histories.operations import JobHistory, Limits, Operation
from contract_tests.histories.verdicts import judge

LIMITS = Limits(lock=1.0, sweep=0.5, slack=0.02)
FACTS = {"timeout": 3600.0, "retries": 3}
CODES = {
    "held": (409, "LOCK_NOT_HELD"),
    "locked": (409, "JOB_ALREADY_LOCKED"),
    "exists": (409, "RESULT_ALREADY_EXISTS"),
    "stopped": (409, "JOB_CANCELLED"),
    "lost": (None, None),
}


class Tape:
    """A history in the making. Each operation takes 2 ms, unless ``ends`` says when its answer was there."""

    def __init__(self, **facts):
        self.facts = {**FACTS, **facts}
        self.operations = [Operation(0, "job-1", "", "create", -0.01, -0.005, 200)]

    def add(self, kind, process, at, came, ends=None, told=None, sent=None):
        status, code = CODES.get(came, (came, None))
        completed = None if status is None else at + 0.002 if ends is None else ends
        number = len(self.operations)
        self.operations.append(
            Operation(number, "job-1", process, kind, at, completed, status, code, told or {}, sent or {})
        )
        return self

    def lock(self, process, at, came=200, attempt=0, **more):
        return self.add("lock", process, at, came, told={"attemptNo": attempt} if came == 200 else None, **more)

    def beat(self, process, at, came=204, **more):
        return self.add("heartbeat", process, at, came, **more)

    def result(self, process, at, came=201, hash_="x", **more):
        return self.add("result", process, at, came, sent={"outputHash": hash_}, **more)

    def fail(self, process, at, came=200, status="pending", count=1, **more):
        told = {"status": status, "retryCount": count} if came == 200 else None
        return self.add("fail", process, at, came, told=told, sent={"retryable": True}, **more)

    def revoke(self, at, **more):
        return self.add("revoke", "", at, 200, **more)

    def seen(self, at, status, attempt=0, results=None):
        told = {"status": status, "attemptNo": attempt, "retryCount": attempt}
        told["resultCount"] = int(status == "succeeded") if results is None else results
        return self.add("inspect", "", at, 200, told=told)

    @property
    def history(self):
        operations = tuple(sorted(self.operations, key=lambda item: item.invoked))
        return JobHistory("job-1", operations, LIMITS, **self.facts)

    def words(self):
        """The names of the checkers that do not call it valid, each with its word."""
        return words(self.history)

    def evidence(self, name):
        """Kind and sender of what a checker shows."""
        [checker] = [checker for checker in CHECKERS if checker.name == name]
        verdict = judge(checker.check, self.history)
        return [(item.kind, item.process) for item in verdict.evidence]


def words(history):
    """The names of the checkers that do not call a history valid, each with its word."""
    found = {checker.name: judge(checker.check, history).word for checker in CHECKERS}
    return {name: word for name, word in found.items() if word != "valid"}
