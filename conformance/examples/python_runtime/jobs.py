"""A job as the API told of it, and the hold that we have on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeGuard
from uuid import uuid4

from conformance.examples.python_runtime.config import JOB_TYPES, OUTPUT_VERSIONS

_DEFAULT_OUTPUT = {"quiz_generation": "quiz_output_v1", "flashcard_generation": "flashcard_output_v1"}


def now() -> float:
    """Seconds of a clock that never jumps; what the API's clock says is of no use here (RT-HB-60)."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True)
class Job:
    """What is to be done."""

    id: str
    type: str
    output_version: str
    prompt_version: str | None = None
    attempt_no: int = 0
    api_key_mode: str = "platform_key"
    credential_id: str | None = None
    provider: str = "deepseek"
    model: str = "deepseek-chat"
    timeout_seconds: float = 120
    params: dict[str, Any] | None = None

    @classmethod
    def read(cls, entry: Any) -> Job | None:
        """A job of a poll's answer; None for one that we can't do, or can't even name (RT-POLL-73)."""
        if not isinstance(entry, dict):
            return None
        identity, kind = entry.get("id"), entry.get("jobType")
        if not isinstance(identity, str) or not identity or kind not in JOB_TYPES:
            return None
        version = entry.get("outputSchemaVersion") or _DEFAULT_OUTPUT.get(kind, "analysis_output_v1")
        if version not in OUTPUT_VERSIONS:
            return None
        prompt = entry.get("promptVersion")
        job = cls(identity, kind, version, prompt if isinstance(prompt, str) else None)
        return job.told(entry)

    def told(self, answer: dict[str, Any]) -> Job:
        """The job with what an answer adds; what is missing or of no use stays as it was."""

        def text(name: str, old: str) -> str:
            value = answer.get(name)
            return value if isinstance(value, str) and value else old

        attempt, limit = answer.get("attemptNo"), answer.get("timeoutSeconds")
        credential, params = answer.get("credentialId"), answer.get("params")
        return replace(
            self,
            attempt_no=int(attempt) if _is_number(attempt) and attempt >= 0 else self.attempt_no,
            timeout_seconds=limit if _is_number(limit) and limit > 0 else self.timeout_seconds,
            api_key_mode=text("apiKeyMode", self.api_key_mode),
            provider=text("modelProvider", self.provider),
            model=text("modelName", self.model),
            credential_id=credential if isinstance(credential, str) else self.credential_id,
            params=params if isinstance(params, dict) else self.params,
        )


class Reason(Enum):
    """Why work is to stop."""

    LOST = "the lock is lost"
    CANCELLED = "the job was cancelled"
    REFUSED = "the API refuses heartbeats"
    SHUTDOWN = "the Runtime shuts down"


class LockLost(Exception):  # noqa: N818
    """The job is not ours any more: nothing more is sent for it."""


class Hold:
    """A lock that we have: until when, and whether we are to stop.

    ``until`` is by our own clock: the lock's length after the sending of the last request that was answered.
    """

    def __init__(self, job: Job, sent: float, lock_seconds: float, counted_from: float | None = None) -> None:
        self.job, self.lock_seconds = job, lock_seconds
        self.correlation_id = uuid4().hex
        self.until = sent + lock_seconds
        self.deadline = (sent if counted_from is None else counted_from) + job.timeout_seconds
        self.stopped, self.lost, self.cancelled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reason: Reason | None = None
        self.reporting = False
        self.lock_until: Any = None  # as the API says it; nothing healthy reads it

    def extend(self, sent: float) -> None:
        """The request sent at ``sent`` was answered: the lock holds."""
        self.until = max(self.until, sent + self.lock_seconds)

    def stop(self, reason: Reason) -> None:
        """Ask the work to stop; to have lost the lock outweighs all else, a cancel all but that."""
        if reason is Reason.LOST:
            self.lost.set()
        elif reason is Reason.CANCELLED:
            self.cancelled.set()
        if self.reason is None or reason is Reason.LOST or (reason is Reason.CANCELLED and not self.lost.is_set()):
            self.reason = reason
        self.stopped.set()

    def check(self) -> None:
        """Before anything is sent for the job. Raises :class:`LockLost`, after a sleep, too (RT-HB-63)."""
        if now() >= self.until:
            self.stop(Reason.LOST)
        if self.lost.is_set():
            raise LockLost


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
