"""The smallest server of one job that is right, simulated: each request takes effect between its two ends."""

from __future__ import annotations

from dataclasses import dataclass

from history_tape import LIMITS

from contract_tests.histories.operations import JobHistory, Operation

FINAL = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class Sent:
    """A request: sent at a time, it takes effect after ``travel``, and its answer is there after ``back``, seconds."""

    process: str
    kind: str
    at: float
    travel: float = 0.001
    back: float = 0.001
    fate: str = "answered"
    """``answered``, ``lost`` (it took effect, nobody was told) or ``never`` (it did not arrive)."""
    hash: str = "x"
    retryable: bool = True


class Server:
    """One job."""

    def __init__(self, retries):
        self.retries = retries
        self.status, self.holder, self.until, self.attempt = "pending", None, None, 0
        self.stop, self.hash = False, None
        self.nearest = 1.0
        """How near to a lapse something took effect, seconds."""

    def handle(self, sent, now):
        """Status, code and what is told."""
        if self.until is not None:
            self.nearest = min(self.nearest, abs(now - self.until))
            if now > self.until:
                self.attempt_ends(retryable=True)
        return getattr(self, sent.kind)(sent, now)

    def attempt_ends(self, *, retryable):
        self.holder = self.until = None
        if self.stop:
            self.status = "cancelled"
        elif retryable and self.attempt < self.retries:
            self.status, self.attempt = "pending", self.attempt + 1
        else:
            self.status = "failed"

    def held(self, sent):
        return self.status == "locked" and self.holder == sent.process

    def lock(self, sent, now):
        if self.status != "pending":
            return 409, "JOB_ALREADY_LOCKED", {}
        self.status, self.holder, self.until = "locked", sent.process, now + LIMITS.lock
        return 200, None, {"attemptNo": self.attempt}

    def heartbeat(self, sent, now):
        if not self.held(sent):
            return 409, "LOCK_NOT_HELD", {}
        self.until = now + LIMITS.lock
        return 204, None, {}

    def fail(self, sent, now):
        del now
        if not self.held(sent):
            return 409, "LOCK_NOT_HELD", {}
        self.attempt_ends(retryable=sent.retryable)
        return 200, None, {"status": self.status, "retryCount": self.attempt}

    def result(self, sent, now):
        del now
        if self.status == "succeeded":
            return (200, None, {}) if sent.hash == self.hash else (409, "RESULT_ALREADY_EXISTS", {})
        if self.status == "cancelled" or (self.stop and self.held(sent)):
            self.status, self.holder, self.until = "cancelled", None, None
            return 409, "JOB_CANCELLED", {}
        if not self.held(sent):
            return 409, "LOCK_NOT_HELD", {}
        self.status, self.holder, self.until, self.hash = "succeeded", None, None, sent.hash
        return 201, None, {}

    def revoke(self, sent, now):
        del sent, now
        if self.status == "pending":
            self.status = "cancelled"
        self.stop = self.stop or self.status == "locked"
        return 200, None, {}

    def cancel(self, sent, now):
        del sent, now
        if self.status != "pending":
            return 409, None, {}
        self.status = "cancelled"
        return 200, None, {"status": "cancelled"}

    def inspect(self, sent, now):
        del sent, now
        counts = {"attemptNo": self.attempt, "retryCount": self.attempt, "resultCount": int(self.hash is not None)}
        return 200, None, {"status": self.status, **counts}


def played(requests, retries, limits=LIMITS):
    """The history of these requests, with what ends the job at last; and the server as it is then."""
    server = Server(retries)
    operations = [Operation(0, "job-1", "", "create", -0.01, -0.005, 200)]

    def play(sent):
        number, effect = len(operations), sent.at + sent.travel
        answer = None if sent.fate == "never" else server.handle(sent, effect)
        shown = {"outputHash": sent.hash} if sent.kind == "result" else {}
        process = "" if sent.kind in ("revoke", "cancel", "inspect") else sent.process
        made = Operation(number, "job-1", process, sent.kind, sent.at, sent=shown)
        if answer is not None and sent.fate == "answered":
            status, code, told = answer
            made = Operation(
                number, "job-1", process, sent.kind, sent.at, effect + sent.back, status, code, told, shown
            )
        operations.append(made)

    for sent in sorted(requests, key=lambda sent: sent.at + sent.travel):
        play(sent)
    last = max((sent.at + sent.travel + sent.back for sent in requests), default=0.0)
    for number in range(2 * retries + 4):
        last += 1.3 * limits.lock
        play(Sent("last", "lock", last))
        play(Sent("last", "result", last + 0.01, hash=f"last-{number}"))
    play(Sent("", "inspect", last + 1.5))
    ordered = tuple(sorted(operations, key=lambda item: item.invoked))
    return JobHistory("job-1", ordered, limits, 3600.0, retries), server
