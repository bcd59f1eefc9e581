"""Seeded faults of limits: lapsed locks, runs over time, retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.faults.edits import drop_timer, machine, set_step
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    pass


FAULTS = (
    Mutant(
        "lapse.never", "a lock never lapses", ("RT-TIME-01", "RT-SM-06", "RT-SCHED-10"), edit=drop_timer("lock-lapses")
    ),
    Mutant(
        "lapse.at-the-limit",
        "a lock lapses at lockUntil, not after it",
        ("RT-TIME-55",),
        edit=machine(
            "timers",
            "lock-lapses",
            value={"from": ["locked", "running"], "at": "job.lockUntil", "to": "expired", "set": ["lapse"]},
        ),
    ),
    Mutant(
        "lapse.not-counted",
        "a lapse costs no retry",
        ("RT-RETRY-53", "RT-TIME-50"),
        edit=machine("effects", "requeue", value={"startedAt": None}),
    ),
    Mutant(
        "lapse.counted-twice",
        "a lapse costs two retries",
        ("RT-RETRY-53", "RT-RETRY-06", "RT-TIME-50"),
        edit=machine(
            "effects",
            "requeue",
            value={"retryCount": "job.retryCount + 2", "attemptNo": "job.attemptNo + 1", "startedAt": None},
        ),
    ),
    Mutant(
        "lapse.final",
        "a lapse fails the job although retries remain",
        ("RT-RETRY-02", "RT-SM-22", "RT-RETRY-04"),
        edit=set_step("expired.retried", when="retriesLeft && job.retryCount > 100"),
    ),
    Mutant(
        "lapse.for-ever",
        "a job without retries left is handed out again",
        ("RT-RETRY-05", "RT-SCHED-09"),
        edit=set_step("expired.retried", when=None),
    ),
    Mutant(
        "lapse.one-run-more",
        "a job runs once more than it may",
        ("RT-RETRY-53", "RT-RETRY-06", "RT-RETRY-05"),
        edit=machine("define", "retriesLeft", value="job.retryCount <= job.maxRetryCount"),
    ),
    Mutant(
        "lapse.keeps-start",
        "startedAt survives the return to pending",
        ("RT-RETRY-51",),
        edit=machine(
            "effects", "requeue", value={"retryCount": "job.retryCount + 1", "attemptNo": "job.attemptNo + 1"}
        ),
    ),
    Mutant(
        "timeout.never",
        "a run never times out while it heartbeats",
        ("RT-TIME-02", "RT-SM-11"),
        edit=drop_timer("run-times-out"),
    ),
    Mutant(
        "timeout.from-lock",
        "the run's time counts from the lock",
        ("RT-TIME-53",),
        edit=machine(
            "timers",
            "run-times-out",
            value={
                "from": ["locked", "running"],
                "to": "expired",
                "set": ["lapse"],
                "after": "job.lockedAt + job.timeoutSeconds * 1000",
            },
        ),
    ),
    Mutant(
        "timeout.wrong-code",
        "an expired job says MODEL_TIMEOUT",
        ("RT-TIME-50", "RT-TIME-51", "RT-RETRY-15"),
        edit=machine("constants", "timeoutCode", value={"value": "MODEL_TIMEOUT"}),
    ),
)
