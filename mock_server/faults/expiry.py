"""Seeded faults of limits: lapsed locks, runs over time, retries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mock_server.faults.edits import drop_timer, machine, schema_property, set_step, several
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
        ("RT-RETRY-53", "RT-TIME-50", "RT-RETRY-51"),
        edit=machine("effects", "requeue", value={"startedAt": None}),
    ),
    Mutant(
        "lapse.counted-twice",
        "a lapse costs two retries",
        ("RT-RETRY-51", "RT-RETRY-02", "RT-RETRY-01"),
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
        ("RT-RETRY-05", "RT-SCHED-09", "RT-SM-15"),
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
        ("RT-RETRY-51", "RT-FAIL-54"),
        edit=machine(
            "effects", "requeue", value={"retryCount": "job.retryCount + 1", "attemptNo": "job.attemptNo + 1"}
        ),
    ),
    Mutant(
        "timeout.never",
        "a run never times out while it heartbeats",
        ("RT-TIME-02", "RT-SM-11", "RT-SM-21"),
        edit=drop_timer("run-times-out"),
    ),
    Mutant(
        "timeout.from-lock",
        "the run's time counts from the lock",
        ("RT-TIME-53", "RT-TIME-56"),
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
    Mutant(
        "lapse.only-running",
        "the sweeper looks at running jobs only: who never heartbeats keeps the lock",
        ("RT-SM-06", "RT-SM-19", "RT-TIME-04"),
        edit=machine("timers", "lock-lapses", "from", value=["running"]),
    ),
    Mutant(
        "lapse.only-locked",
        "the sweeper looks at locked jobs only: one that ran keeps its lapsed lock",
        ("RT-TIME-04", "RT-TIME-50", "RT-SM-19"),
        edit=machine("timers", "lock-lapses", "from", value=["locked"]),
    ),
    Mutant(
        "lapse.unheard-not-counted",
        "a lapse before the first heartbeat costs no retry (SF-23)",
        ("RT-RETRY-53", "RT-RETRY-51"),
        edit=set_step(
            "expired.retried",
            set=[
                {
                    "retryCount": "job.startedAt == null ? job.retryCount : job.retryCount + 1",
                    "attemptNo": "job.attemptNo + 1",
                    "startedAt": None,
                },
                "release",
            ],
        ),
    ),
    Mutant(
        "lapse.old-message",
        "an expired job keeps an older failure's text",
        ("RT-TIME-52",),
        edit=machine("effects", "lapse", value={"errorCode": "timeoutCode", "rawError": None}),
    ),
    Mutant(
        "lapse.keeps-lock",
        "the lock's columns survive the return to pending",
        ("RT-RETRY-51",),
        edit=set_step("expired.retried", set=["requeue"]),
    ),
    Mutant(
        "lapse.final-counted",
        "the last lapse is counted as a retry",
        ("RT-RETRY-52",),
        edit=set_step("expired.final", set=["requeue", "finish", "release"]),
    ),
    Mutant(
        "lapse.finished-before",
        "finishedAt of an expired job is the instant of its lock",
        ("RT-TIME-57",),
        edit=set_step("expired.final", set=[{"finishedAt": "job.lockedAt"}, "release"]),
    ),
    Mutant(
        "lapse.new-place",
        "a job that comes back gets a new createdAt and goes to the end of the queue",
        ("RT-RETRY-56",),
        edit=machine(
            "effects",
            "requeue",
            value={
                "retryCount": "job.retryCount + 1",
                "attemptNo": "job.attemptNo + 1",
                "startedAt": None,
                "createdAt": "now",
            },
        ),
    ),
    Mutant(
        "retry.same-attempt",
        "attemptNo does not rise with a retry",
        ("RT-RETRY-50", "RT-RETRY-51"),
        edit=machine("effects", "requeue", value={"retryCount": "job.retryCount + 1", "startedAt": None}),
    ),
    Mutant(
        "retry.always-three",
        "maxRetryCount is ignored: each job has three retries",
        ("RT-RETRY-07", "RT-RETRY-54", "RT-RETRY-05"),
        edit=machine("define", "retriesLeft", value="job.retryCount < 3"),
    ),
    Mutant(
        "retry.zero-is-default",
        "maxRetryCount 0 is taken for `not set`",
        ("RT-RETRY-54", "RT-SM-15", "RT-RETRY-05"),
        edit=machine(
            "define",
            "retriesLeft",
            value="job.retryCount < job.maxRetryCount || job.maxRetryCount == 0 && job.retryCount < 3",
        ),
    ),
    Mutant(
        "timeout.final",
        "a run over its time fails the job although retries remain",
        ("RT-RETRY-03", "RT-SM-20", "RT-TIME-51"),
        edit=several(
            machine("timers", "run-times-out", "to", value="failed"),
            machine("timers", "run-times-out", "set", value=["lapse", "finish", "release"]),
        ),
    ),
    Mutant(
        "timeout.at-the-limit",
        "a run is over at its last millisecond, not after it",
        ("RT-TIME-56",),
        edit=machine(
            "timers",
            "run-times-out",
            value={
                "from": ["running"],
                "at": "job.startedAt + job.timeoutSeconds * 1000",
                "to": "expired",
                "set": ["lapse"],
            },
        ),
    ),
    Mutant(
        "timeout.60-seconds",
        "timeoutSeconds defaults to 60",
        ("RT-TIME-02", "RT-DB-30"),
        edit=schema_property("Job", "timeoutSeconds", default=60),
    ),
    Mutant(
        "timeout.not-when-stopping",
        "the time limit is not enforced once a cancel was requested",
        ("RT-CANCEL-50", "RT-TIME-54", "RT-SM-11"),
        edit=machine(
            "timers",
            "run-times-out",
            "after",
            value="job.cancelRequested ? null : job.startedAt + job.timeoutSeconds * 1000",
        ),
    ),
)
