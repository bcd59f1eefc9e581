"""Seeded faults of the job's states: what is final stays, what is stamped is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.engine import Engine
from mock_server.executor import Outcome
from mock_server.faults.edits import machine, part, put, set_step, several, step
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mock_server.store import Row


def shown(change: Callable[[Row], dict[str, Any]]) -> type[Engine]:
    """An engine that shows a job's columns otherwise than they are."""

    class Shown(Engine):
        async def job(self, key: str) -> Row | None:
            row = await super().job(key)
            return None if row is None else {**row, **change(row)}

    return Shown


def listed(change: Callable[[Row], dict[str, Any]]) -> type[RuntimeApi]:
    """Handlers that list a job's fields otherwise than they are."""

    class Listed(RuntimeApi):
        def entry(self, row: Row) -> dict[str, Any]:
            entry = super().entry(row)
            return {**entry, **change(entry)}

    return Listed


class RefusedOnce(Engine):
    """Remembers for one request too long that a lapsed job is locked."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._asked: set[tuple[str, int]] = set()

    async def operate(self, operation_id: str, *, caller: str, path: Mapping[str, Any], body: Any) -> Outcome:
        row = await self.job(path.get("jobId", ""))
        if operation_id == "lockJob" and row and row["errorCode"] == "JOB_TIMEOUT" and row["status"] == "pending":
            attempt = (row["id"], row["attemptNo"])
            if attempt not in self._asked:
                self._asked.add(attempt)
                return Outcome("lock.refused", "JOB_ALREADY_LOCKED", row)
        return await super().operate(operation_id, caller=caller, path=path, body=body)


def untouched(row: Row) -> bool:
    """Whether a pending job is as it was created."""
    return bool(row["status"] == "pending" and row["retryCount"] == 0 and row["updatedAt"] == row["createdAt"])


def _status(word: str, of: str) -> Callable[[Row], dict[str, Any]]:
    return lambda row: {"status": word} if row["status"] == of else {}


ENDS_IN_A_LETTER = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "[^0-9]$"}

FAULTS = (
    Mutant(
        "state.shown-new",
        "a job that nobody took yet is stored as `new`",
        ("RT-SM-01", "RT-SM-02", "RT-DB-12"),
        parts=part(engine=shown(lambda row: {"status": "new"} if untouched(row) else {})),
    ),
    Mutant(
        "state.shown-taken",
        "the row of a new job says locked",
        ("RT-SM-02", "RT-DB-12"),
        parts=part(engine=shown(lambda row: {"status": "locked"} if untouched(row) else {})),
    ),
    Mutant(
        "state.other-provider",
        "the row of a new job names another provider than the default",
        ("RT-DB-17",),
        parts=part(engine=shown(lambda row: {"modelProvider": "openai"} if untouched(row) else {})),
    ),
    Mutant(
        "state.other-mode",
        "the row of a new job has another key mode than the default",
        ("RT-DB-15",),
        parts=part(engine=shown(lambda row: {"apiKeyMode": "user_deepseek_key"} if untouched(row) else {})),
    ),
    Mutant(
        "state.first-attempt-1",
        "attemptNo of a new job is 1",
        ("RT-DB-21",),
        parts=part(engine=shown(lambda row: {"attemptNo": 1} if untouched(row) else {})),
    ),
    Mutant(
        "state.shown-late",
        "the row of a locked job says pending until its first heartbeat",
        ("RT-LOCK-11", "RT-SM-07", "RT-SM-05"),
        parts=part(engine=shown(_status("pending", "locked"))),
    ),
    Mutant(
        "state.shown-running",
        "a lock makes the job running in its row, without a heartbeat",
        ("RT-SM-05", "RT-LOCK-11"),
        parts=part(engine=shown(_status("running", "locked"))),
    ),
    Mutant(
        "state.shown-expired",
        "a job whose lock lapsed stays `expired`, though polls list it",
        ("RT-SM-50", "RT-SM-51", "RT-SM-22"),
        parts=part(
            engine=shown(
                lambda row: (
                    {"status": "expired"} if row["status"] == "pending" and row["errorCode"] == "JOB_TIMEOUT" else {}
                )
            )
        ),
    ),
    Mutant(
        "state.id-as-number",
        "the id column is a number of its own",
        ("RT-DB-07",),
        parts=part(engine=shown(lambda row: {"id": len(row["id"])})),
    ),
    Mutant(
        "state.user-by-prefix",
        "the userId is stored with a prefix",
        ("RT-DB-08",),
        parts=part(engine=shown(lambda row: {"userId": f"u:{row['userId']}"})),
    ),
    Mutant(
        "state.empty-key",
        "without an idempotencyKey the column is empty, not null",
        ("RT-DB-14",),
        parts=part(engine=shown(lambda row: {"idempotencyKey": row["idempotencyKey"] or ""})),
    ),
    Mutant(
        "state.no-count",
        "retryCount is null until the first retry",
        ("RT-DB-28",),
        parts=part(engine=shown(lambda row: {"retryCount": row["retryCount"] or None})),
    ),
    Mutant(
        "state.number-as-target",
        "a targetId is listed as an object",
        ("RT-DB-10", "RT-POLL-11"),
        parts=part(
            runtime_api=listed(lambda entry: {"targetId": {"type": entry["targetType"], "id": entry["targetId"]}})
        ),
    ),
    Mutant(
        "state.version-as-number",
        "the output schema's version is listed as a number",
        ("RT-DB-20", "RT-POLL-11"),
        parts=part(runtime_api=listed(lambda _: {"outputSchemaVersion": 1})),
    ),
    Mutant(
        "state.refused-once",
        "the first lock of a job that lapsed is refused, though polls list it",
        ("RT-SM-51", "RT-LOCK-12"),
        parts=part(engine=RefusedOnce),
    ),
    Mutant(
        "rerun.same-key",
        "a rerun takes the idempotencyKey along",
        ("RT-ADMIN-53",),
        edit=lambda document: step(document, "rerun")["create"]["Job"].update(
            idempotencyKey="job.idempotencyKey == null ? null : job.idempotencyKey + '-rerun'"
        ),
    ),
    Mutant(
        "lock.example-refused",
        "an instance id that ends in a digit, as in the protocol's own example, can't lock",
        ("RT-LOCK-01", "RT-AUTH-58"),
        edit=put("components", "schemas", "LockRequest", "properties", "runtimeInstanceId", value=ENDS_IN_A_LETTER),
    ),
    Mutant(
        "heartbeat.example-refused",
        "an instance id that ends in a digit, as in the protocol's own example, can't heartbeat",
        ("RT-HB-01", "RT-AUTH-58"),
        edit=put(
            "components", "schemas", "HeartbeatRequest", "properties", "runtimeInstanceId", value=ENDS_IN_A_LETTER
        ),
    ),
    Mutant(
        "poll.example-refused",
        "an instance id that ends in a digit, as in the protocol's own example, can't poll",
        ("RT-POLL-01", "RT-AUTH-58"),
        edit=put("components", "schemas", "PollRequest", "properties", "runtimeInstanceId", value=ENDS_IN_A_LETTER),
    ),
    Mutant(
        "state.stamp",
        "createdAt is stamped with every change, updatedAt never",
        ("RT-DB-33", "RT-DB-34", "RT-RETRY-56"),
        edit=machine("stamp", value="createdAt"),
    ),
    Mutant(
        "state.revoked-when-finished",
        "a revocation marks finished jobs, too",
        ("RT-SM-54",),
        edit=set_step("revoke.finished", set=[{"cancelRequested": "true"}]),
    ),
    Mutant(
        "state.cancelled-again",
        "a revocation cancels jobs that failed",
        ("RT-SM-53", "RT-SM-54", "RT-SM-16"),
        edit=several(
            set_step("revoke.pending", **{"from": ["pending", "failed"]}),
            set_step("revoke.finished", **{"from": ["succeeded", "cancelled"]}),
        ),
    ),
)
