"""The seeded faults of the Runtime API, each with the rules that it is expected to break.

Most change the specification that the build executes; those that no specification can say replace a handler, the
engine, the judgement or the error bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server import broken
from mock_server.mutants import Mutant, Parts

if TYPE_CHECKING:
    from collections.abc import Callable

Document = dict[str, Any]


def _step(document: Document, id_: str) -> Document:
    """A step of the machine by id."""
    machine = document["x-state-machine"]
    groups = [item["steps"] for group in ("operations", "actions") for item in machine[group].values()]
    groups += machine["entering"].values()
    return next(step for steps in groups for step in steps if step["id"] == id_)


def _set_step(id_: str, **values: Any) -> Callable[[Document], None]:
    """Change keys of a step; a value of None takes the key away."""

    def edit(document: Document) -> None:
        step = _step(document, id_)
        for key, value in values.items():
            step[key] = value
            if value is None:
                del step[key]

    return edit


def _machine(*path: str, value: Any) -> Callable[[Document], None]:
    """Replace a value of the machine."""

    def edit(document: Document) -> None:
        node = document["x-state-machine"]
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value

    return edit


def _drop_timer(name: str) -> Callable[[Document], None]:
    def edit(document: Document) -> None:
        del document["x-state-machine"]["timers"][name]

    return edit


def _property(schema: str, name: str, **values: Any) -> Callable[[Document], None]:
    """Change the schema of a property."""

    def edit(document: Document) -> None:
        document["components"]["schemas"][schema]["properties"][name].update(values)

    return edit


def _poll_list(**values: Any) -> Callable[[Document], None]:
    """Change which jobs a poll lists, and in which order."""

    def edit(document: Document) -> None:
        document["paths"]["/internal/runtime/jobs/poll"]["post"]["x-list"].update(values)

    return edit


def _error(code: str, **values: Any) -> Callable[[Document], None]:
    """Change a row of the error codes."""

    def edit(document: Document) -> None:
        document["x-errors"][code].update(values)

    return edit


def _part(**parts: Any) -> Callable[[Parts], None]:
    """Replace parts of the build."""

    def change(build: Parts) -> None:
        for name, part in parts.items():
            setattr(build, name, part)

    return change


FAULTS: tuple[Mutant, ...] = (
    # Lock
    Mutant(
        "lock.race",
        "two Runtimes that lock at the same moment both win",
        ("RT-LOCK-12",),
        parts=_part(engine=broken.SlowLock),
    ),
    Mutant(
        "lock.any-state",
        "a job that is not pending can be locked",
        ("RT-LOCK-06", "RT-LOCK-13"),
        edit=_set_step("lock", **{"from": None, "when": None}),
    ),
    Mutant(
        "lock.again-by-holder",
        "the holder may lock its job again",
        ("RT-LOCK-50",),
        edit=_set_step(
            "lock", **{"from": ["pending", "locked"], "when": "job.lockedBy == null || job.lockedBy == caller"}
        ),
    ),
    Mutant(
        "lock.59-seconds",
        "a lock lasts 59 s",
        ("RT-LOCK-10", "RT-TIME-01"),
        edit=_machine("constants", "lockTime", value={"seconds": 59}),
    ),
    Mutant(
        "lock.61-seconds",
        "a lock lasts 61 s",
        ("RT-LOCK-10", "RT-TIME-01"),
        edit=_machine("constants", "lockTime", value={"seconds": 61}),
    ),
    Mutant(
        "lock.in-seconds",
        "lockUntil is answered in seconds",
        ("RT-LOCK-05", "RT-TIME-05"),
        parts=_part(runtime_api=broken.LockInSeconds),
    ),
    Mutant(
        "lock.wrong-code",
        "a second lock gets LOCK_NOT_HELD",
        ("RT-LOCK-13", "RT-ERR-07"),
        edit=_set_step("lock.refused", answer="LOCK_NOT_HELD"),
    ),
    Mutant(
        "lock.no-locked-at",
        "lockedAt is not set",
        ("RT-LOCK-09",),
        edit=_set_step("lock", set=["renew", {"lockedBy": "caller"}]),
    ),
    # Heartbeat
    Mutant(
        "heartbeat.stranger",
        "anybody's heartbeat extends the lock",
        ("RT-HB-03",),
        edit=_set_step("heartbeat.held", require="job.status in ['locked', 'running'] && now <= job.lockUntil"),
    ),
    Mutant(
        "heartbeat.no-extension",
        "a heartbeat does not extend the lock",
        ("RT-HB-04",),
        edit=_set_step("heartbeat", set=[{"errorCode": None}]),
    ),
    Mutant(
        "heartbeat.adds-up",
        "a heartbeat adds 60 s to the old end of the lock",
        ("RT-HB-04",),
        edit=_set_step("heartbeat", set=[{"lockUntil": "job.lockUntil + lockTime"}]),
    ),
    Mutant(
        "heartbeat.no-start",
        "the first heartbeat does not start the run",
        ("RT-HB-51", "RT-SM-11"),
        edit=_set_step("heartbeat.first", to=None, set=["renew"]),
    ),
    Mutant(
        "heartbeat.restarts",
        "every heartbeat sets startedAt anew",
        ("RT-HB-52", "RT-TIME-54"),
        edit=_set_step("heartbeat", set=["renew", {"startedAt": "now"}]),
    ),
    Mutant(
        "heartbeat.with-body",
        "a heartbeat is answered 200 with a body",
        ("RT-HB-05", "RT-HB-06"),
        parts=_part(runtime_api=broken.HeartbeatWithBody),
    ),
    Mutant(
        "heartbeat.not-told",
        "the cancel request is not told",
        ("RT-HB-09", "RT-HB-55"),
        edit=_machine("define", "stopAsked", value="job.status == 'pending' ? 'true' : null"),
    ),
    Mutant(
        "heartbeat.always-told",
        "every heartbeat tells of a cancel request",
        ("RT-HB-56",),
        edit=_machine("define", "stopAsked", value="job.status == 'pending' ? null : 'true'"),
    ),
    # Limits and retries
    Mutant(
        "lapse.never", "a lock never lapses", ("RT-TIME-01", "RT-SM-06", "RT-SCHED-10"), edit=_drop_timer("lock-lapses")
    ),
    Mutant(
        "lapse.at-the-limit",
        "a lock lapses at lockUntil, not after it",
        ("RT-TIME-55",),
        edit=_machine(
            "timers",
            "lock-lapses",
            value={"from": ["locked", "running"], "at": "job.lockUntil", "to": "expired", "set": ["lapse"]},
        ),
    ),
    Mutant(
        "lapse.not-counted",
        "a lapse costs no retry",
        ("RT-RETRY-53", "RT-TIME-50"),
        edit=_machine("effects", "requeue", value={"startedAt": None}),
    ),
    Mutant(
        "lapse.counted-twice",
        "a lapse costs two retries",
        ("RT-RETRY-53", "RT-RETRY-06", "RT-TIME-50"),
        edit=_machine(
            "effects",
            "requeue",
            value={"retryCount": "job.retryCount + 2", "attemptNo": "job.attemptNo + 1", "startedAt": None},
        ),
    ),
    Mutant(
        "lapse.final",
        "a lapse fails the job although retries remain",
        ("RT-RETRY-02", "RT-SM-22", "RT-RETRY-04"),
        edit=_set_step("expired.retried", when="retriesLeft && job.retryCount > 100"),
    ),
    Mutant(
        "lapse.for-ever",
        "a job without retries left is handed out again",
        ("RT-RETRY-05", "RT-SCHED-09"),
        edit=_set_step("expired.retried", when=None),
    ),
    Mutant(
        "lapse.one-run-more",
        "a job runs once more than it may",
        ("RT-RETRY-53", "RT-RETRY-06", "RT-RETRY-05"),
        edit=_machine("define", "retriesLeft", value="job.retryCount <= job.maxRetryCount"),
    ),
    Mutant(
        "lapse.keeps-start",
        "startedAt survives the return to pending",
        ("RT-RETRY-51",),
        edit=_machine(
            "effects", "requeue", value={"retryCount": "job.retryCount + 1", "attemptNo": "job.attemptNo + 1"}
        ),
    ),
    Mutant(
        "timeout.never",
        "a run never times out while it heartbeats",
        ("RT-TIME-02", "RT-SM-11"),
        edit=_drop_timer("run-times-out"),
    ),
    Mutant(
        "timeout.from-lock",
        "the run's time counts from the lock",
        ("RT-TIME-53",),
        edit=_machine(
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
        edit=_machine("constants", "timeoutCode", value={"value": "MODEL_TIMEOUT"}),
    ),
    # Poll
    Mutant(
        "poll.all-types",
        "a poll lists jobs of types that were not asked for",
        ("RT-POLL-12",),
        parts=_part(runtime_api=broken.PollAll),
    ),
    Mutant(
        "poll.no-limit",
        "a poll lists more than its limit",
        ("RT-SCHED-05", "RT-SCHED-04", "RT-POLL-50"),
        parts=_part(runtime_api=broken.PollNoLimit),
    ),
    Mutant(
        "poll.no-versions",
        "capabilities filter nothing",
        ("RT-POLL-13", "RT-POLL-14"),
        parts=_part(runtime_api=broken.PollNoVersions),
    ),
    Mutant(
        "poll.newest-first",
        "within one priority the newest comes first",
        ("RT-SCHED-03",),
        edit=_poll_list(order=["priority", "id"]),
    ),
    Mutant(
        "poll.by-age-alone",
        "the priority is ignored",
        ("RT-SCHED-02",),
        edit=_poll_list(order=["createdAt", "id"]),
    ),
    Mutant(
        "poll.lists-locked",
        "a poll lists locked jobs, too",
        ("RT-SCHED-01",),
        edit=_poll_list(**{"from": ["pending", "locked"]}),
    ),
    Mutant(
        "poll.lists-cancelled",
        "a poll lists cancelled jobs, too",
        ("RT-SCHED-08", "RT-CANCEL-02"),
        edit=_poll_list(**{"from": ["pending", "cancelled"]}),
    ),
    Mutant(
        "poll.tells-user",
        "a poll entry holds the userId",
        ("RT-POLL-63",),
        parts=_part(runtime_api=broken.PollTellsUser),
    ),
    Mutant("poll.locks", "a poll locks what it lists", ("RT-POLL-02",), parts=_part(runtime_api=broken.PollLocks)),
    Mutant(
        "poll.empty-is-null",
        "no job available is null, not an empty list",
        ("RT-SCHED-06",),
        parts=_part(runtime_api=broken.PollEmptyIsNull),
    ),
    Mutant(
        "poll.limit-51",
        "a limit of 51 is accepted",
        ("RT-POLL-51",),
        edit=_property("PollRequest", "limit", maximum=51),
    ),
    Mutant(
        "poll.default-11", "limit defaults to 11", ("RT-POLL-50",), edit=_property("PollRequest", "limit", default=11)
    ),
    # Errors and access
    Mutant("auth.any-key", "any key opens", ("RT-AUTH-03", "RT-AUTH-50"), parts=_part(key=broken.AnyKey)),
    Mutant(
        "auth.key-prefix", "a key that only begins rightly opens", ("RT-AUTH-03",), parts=_part(key=broken.KeyPrefix)
    ),
    Mutant(
        "auth.header-counts",
        "the header says who asks, not the body",
        ("RT-AUTH-52",),
        parts=_part(judge=broken.HeaderCaller),
    ),
    Mutant("errors.no-timestamp", "errors have no timestamp", ("RT-ERR-01",), parts=_part(errors=broken.NoTimestamp)),
    Mutant(
        "errors.other-timestamp",
        "timestamps end in +00:00",
        ("RT-ERR-05", "RT-TIME-06"),
        parts=_part(errors=broken.LocalTime),
    ),
    Mutant(
        "errors.first-only",
        "a 400 names the first violation only",
        ("RT-ERR-66",),
        parts=_part(errors=broken.FirstViolationOnly),
    ),
    Mutant(
        "errors.echo", "an error repeats the request, keys included", ("RT-ERR-67",), parts=_part(errors=broken.Echo)
    ),
    Mutant(
        "errors.any-media",
        "any content type is accepted",
        ("RT-ERR-54", "RT-ERR-55"),
        parts=_part(judge=broken.AnyMedia),
    ),
    Mutant(
        "errors.not-retryable",
        "JOB_ALREADY_LOCKED is called not retryable",
        ("RT-ERR-64",),
        edit=_error("JOB_ALREADY_LOCKED", retryable=False),
    ),
    Mutant(
        "errors.unknown-job-410",
        "an unknown job is 410",
        ("RT-ERR-06",),
        edit=_error("JOB_NOT_FOUND", status=410),
    ),
    # The application's side
    Mutant(
        "create.twice",
        "the same idempotencyKey makes another job",
        ("RT-IDEM-01",),
        edit=lambda document: document["x-state-machine"].update(unique=["id", "idempotencyKey"]),
    ),
    Mutant(
        "cancel.running",
        "a running job can be cancelled outright",
        ("RT-CANCEL-51",),
        edit=_set_step("cancel", **{"from": ["pending", "locked", "running"]}),
    ),
    Mutant(
        "revoke.not-pending",
        "switching AI off leaves pending jobs",
        ("RT-CANCEL-03",),
        edit=_set_step("revoke.pending", to=None, set=[{"errorCode": None}]),
    ),
    Mutant(
        "revoke.not-running",
        "switching AI off does not mark running jobs",
        ("RT-CANCEL-04", "RT-HB-09"),
        edit=_set_step("revoke.active", set=[{"errorCode": None}]),
    ),
    Mutant(
        "revoke.retried",
        "an unwanted job that lapses is handed out again",
        ("RT-CANCEL-50",),
        edit=_set_step("expired.cancelled", when="job.cancelRequested && job.retryCount > 100"),
    ),
    Mutant(
        "rerun.any-state",
        "a cancelled job can be rerun",
        ("RT-ADMIN-50",),
        edit=_set_step("rerun", **{"from": ["failed", "cancelled"]}),
    ),
    Mutant(
        "rerun.no-origin",
        "a rerun does not record its origin",
        ("RT-ADMIN-03",),
        edit=lambda document: _step(document, "rerun")["create"]["Job"].pop("retriedFromJobId"),
    ),
)
