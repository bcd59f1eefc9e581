"""Every fault of this Runtime, and the rows of the collection that are none."""

from conformance.examples.python_runtime import (
    faults_forms,
    faults_health,
    faults_heartbeats,
    faults_inputs,
    faults_locks,
    faults_logs,
    faults_model,
    faults_polls,
    faults_privacy,
    faults_process,
    faults_reports,
    faults_requests,
)
from conformance.examples.python_runtime.faulty import FAULTS, listed

NOT_FAULTS = {
    "CF-10": "No jitter: no rule asks for it, and one process alone shows none.",
    "CF-41": "Work repeated after a crash: no rule asks to keep anything over one; the lock lapses, and the next "
    "lock is another attempt (RT-RETRY-02).",
    "CF-46": "`Retry-After: 0` taken for not set: no rule makes a Runtime read that header, and how it paces its own "
    "repetitions is left to it (RT-RETRY-66).",
    "CF-56": "A shutdown that costs an attempt is known and intended: a failure is retryable at once, and counts.",
}
"""Rows of the collection of faults that can't be one here, with the reason."""

__all__ = [
    "FAULTS",
    "NOT_FAULTS",
    "faults_forms",
    "faults_health",
    "faults_heartbeats",
    "faults_inputs",
    "faults_locks",
    "faults_logs",
    "faults_model",
    "faults_polls",
    "faults_privacy",
    "faults_process",
    "faults_reports",
    "faults_requests",
    "listed",
]
