"""Why a job could not be done, as the API is told."""

from __future__ import annotations

from dataclasses import dataclass

RETRYABLE = {
    "MODEL_TIMEOUT": True,
    "MODEL_RATE_LIMIT": True,
    "NETWORK_ERROR": True,
    "TEMPORARY_PROVIDER_ERROR": True,
    "JOB_TIMEOUT": True,
    "SNAPSHOT_EXPIRED": True,
    "INTERNAL_ERROR": True,
    "RUNTIME_SHUTDOWN": True,
    "INVALID_SNAPSHOT": False,
    "INVALID_SCHEMA": False,
    "INVALID_CREDENTIAL": False,
    "JOB_CANCELLED": False,
    "MODEL_REQUEST_REFUSED": False,
}


@dataclass(frozen=True)
class Failure:
    """A failure report. Its texts are ours alone: what a provider says may repeat the key, so it is never copied."""

    code: str
    message: str
    raw: str = ""

    @property
    def retryable(self) -> bool:
        """Whether another attempt can help, as the contract's table has it (RT-FAIL-70)."""
        return RETRYABLE[self.code]


class JobFailed(Exception):  # noqa: N818
    """The work ends with this failure."""

    def __init__(self, code: str, message: str, raw: str = "") -> None:
        super().__init__(message)
        self.failure = Failure(code, message, raw or message)
