"""What lint says of each way to break the state machine: the line, the fault, the mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lint_faults import Fault, verify

if TYPE_CHECKING:
    from pathlib import Path

STATES = {
    "entity-unknown": Fault(
        "  entity: Job  ", "  entity: Jobb ", "`Jobb` is no schema", "name one of components.schemas"
    ),
    "initial-unknown": Fault("  initial: pending", "  initial: pendin", "`pendin` is no state", "name one of `states`"),
    "target-unknown": Fault(
        "          to: locked",
        "          to: loked",
        "`loked` is no state",
        "name one of `states`",
        beside=("nothing leads to `locked`",),
    ),
    "source-unknown": Fault(
        "          from: [pending]\n          when: job.lockUntil == null",
        "          from: [pending, waiting]\n          when: job.lockUntil == null",
        "`waiting` is no state",
        "name one of `states`",
    ),
    "source-of-a-refusal-unknown": Fault(
        "{id: result.other, from: [succeeded],",
        "{id: result.other, from: [succeeded, done],",
        "`done` is no state",
        "name one of `states`",
    ),
    "source-of-a-timer-unknown": Fault(
        "lock-lapses:   {from: [locked, running],",
        "lock-lapses:   {from: [locked, runing],",
        "`runing` is no state",
        "name one of `states`",
    ),
    "final-state-left": Fault(
        "{id: cancel, from: [pending], to: cancelled,",
        "{id: cancel, from: [pending, failed], to: cancelled,",
        "`failed` is final and is left here",
        "leave it out of `from`",
    ),
    "state-unreachable": Fault(
        "    failed:\n      description: It failed",
        "    paused: {}\n    failed:\n      description: It failed",
        "nothing leads to `paused`",
        "add a transition or drop the state",
        beside=("no step may decide in state paused",),
    ),
    "transient-without-steps": Fault(
        "    locked:\n      description: A Runtime has",
        "    locked:\n      transient: true\n      description: A Runtime has",
        "`locked` is transient or has steps under `entering`, not both",
        "give it both",
        at="    locked:\n      transient",
        beside=("`heartbeat.first` can never decide",),
    ),
    "transient-not-left": Fault(
        "{id: expired.final, to: failed, set: [finish, release]",
        "{id: expired.final, set: [finish, release]",
        "a transient state is not left",
        "give the step a `to`",
    ),
}

STEPS = {
    "id-twice": Fault(
        "        - id: heartbeat\n",
        "        - id: heartbeat.first\n",
        "the id `heartbeat.first` stands twice",
        "ids of steps are unique",
    ),
    "from-any-state": Fault(
        "{id: cancel, from: [pending], to: cancelled,",
        "{id: cancel, to: cancelled,",
        "changes the state from any state",
        "list the states under `from`",
        beside=("`cancel.refused` can never decide",),
    ),
    "column-unknown": Fault(
        "set: [renew, {startedAt: now}]",
        "set: [renew, {beganAt: now}]",
        "sets `beganAt`, which is no column of Job",
        "name a column",
    ),
    "column-unknown-in-an-effect": Fault(
        "    finish:  {finishedAt: now}",
        "    finish:  {endedAt: now}",
        "sets `endedAt`, which is no column of Job",
        "name a column",
    ),
    "status-as-a-column": Fault(
        "set: [renew, {startedAt: now}]", "set: [renew, {status: now}]", "sets the status as a column", "use `to`"
    ),
    "null-not-allowed": Fault(
        "set: [renew, {startedAt: now}]",
        "set: [renew, {jobType: null}]",
        "sets `jobType` to null, which the schema does not allow",
        "make it nullable or set a value",
    ),
    "operation-unknown": Fault(
        "    lockJob:\n      find",
        "    lokJob:\n      find",
        "`lokJob` is no operation",
        "name an operationId of `paths`",
    ),
    "status-of-an-answer-undocumented": Fault(
        "          set: [renew, {lockedBy: caller, lockedAt: now}]\n          answer: 200",
        "          set: [renew, {lockedBy: caller, lockedAt: now}]\n          answer: 202",
        "answers 202, which lockJob does not document",
        "document it",
    ),
    "answer-missing": Fault(
        "{id: lock.refused, answer: JOB_ALREADY_LOCKED,", "{id: lock.refused,", "has no answer", "give it `answer`"
    ),
    "answer-unknown": Fault(
        "{id: lock.refused, answer: JOB_ALREADY_LOCKED,",
        "{id: lock.refused, answer: JOB_LOCKED,",
        "answers `JOB_LOCKED`, which is no code of x-errors",
        "add the code there",
    ),
    "answer-of-a-holder-test-unknown": Fault(
        "{id: heartbeat.held, require: held, else: LOCK_NOT_HELD,",
        "{id: heartbeat.held, require: held, else: LOCK_LOST,",
        "answers `LOCK_LOST`, which is no code of x-errors",
        "add the code there",
    ),
    "answer-of-a-longer-step-unknown": Fault(
        "          answer: JOB_CANCELLED\n",
        "          answer: JOB_DROPPED\n",
        "answers `JOB_DROPPED`, which is no code",
        "add the code there",
    ),
    "answer-where-the-job-is-missing-unknown": Fault(
        "      find: {id: path.jobId, else: JOB_NOT_FOUND}",
        "      find: {id: path.jobId, else: NO_JOB}",
        "answers `NO_JOB`, which is no code of x-errors",
        "add the code there",
    ),
    "answer-undocumented": Fault(
        "{id: lock.refused, answer: JOB_ALREADY_LOCKED,",
        "{id: lock.refused, answer: RESULT_ALREADY_EXISTS,",
        "answers `RESULT_ALREADY_EXISTS`, which lockJob does not document under 409",
        "name it in that response's x-error-codes",
    ),
    "effect-group-unknown": Fault(
        "set: [renew, {lockedBy:", "set: [renw, {lockedBy:", "no effect group is named `renw`", "define it under"
    ),
    "column-set-twice": Fault(
        "set: [renew, {startedAt: now}]",
        "set: [renew, {lockUntil: now}]",
        "`lockUntil` is set twice in one step",
        "set it once",
    ),
    "notation": Fault(
        "  lockTime: {seconds: 60,",
        "  lockTime: {second: 1, seconds: 60,",
        "'second' was unexpected",
        "machine.schema.json",
    ),
    "require-without-else": Fault(
        "{id: snapshot.held, require: held, else: LOCK_NOT_HELD,",
        "{id: snapshot.held, require: held,",
        "else",
        "machine.schema.json",
    ),
}

LOCK = "          when: job.lockUntil == null || job.lockUntil < now"
EXPRESSIONS = {
    "grammar": Fault(
        LOCK, "          when: job.lockUntil == null ||", "at character 25", "write it in the subset of CEL"
    ),
    "grammar-of-a-definition": Fault(
        "job.retryCount < job.maxRetryCount",
        "job.retryCount << job.maxRetryCount",
        "at character 17",
        "write it in the subset of CEL",
    ),
    "name-unknown": Fault(
        LOCK,
        "          when: job.lockUntil == null || job.lockUntil < later",
        "`later` is not known here",
        "use an input",
    ),
    "name-unknown-in-an-effect": Fault(
        "    renew:   {lockUntil: now + lockTime}",
        "    renew:   {lockUntil: now + lokTime}",
        "`lokTime` is not known here",
        "use an input",
    ),
    "name-unknown-in-holds": Fault(
        "      holds: job.lockedBy == null && job.lockUntil == null",
        "      holds: job.lockedBy == nobody && job.lockUntil == null",
        "`nobody` is not known here",
        "use an input",
    ),
    "function-unknown": Fault(
        "string(body.attemptNo)", "text(body.attemptNo)", "`text` is no function", "name it under `functions`"
    ),
    "column-unknown": Fault(
        LOCK,
        "          when: job.lockUntl == null || job.lockUntil < now",
        "`job.lockUntl` is no column of Job",
        "correct the name",
        beside=("`job.lockUntil` may be null",),
    ),
    "column-unknown-in-holds": Fault(
        "      holds: job.lockedBy == null && job.lockUntil == null",
        "      holds: job.lockedBi == null && job.lockUntil == null",
        "`job.lockedBi` is no column of Job",
        "correct the name",
    ),
    "column-of-a-related-row-unknown": Fault(
        "{id: credential.valid, require: credential.status ==",
        "{id: credential.valid, require: credential.state ==",
        "`credential.state` is no column of Credential",
        "correct the name",
    ),
    "related-entity-unknown": Fault(
        "    snapshot:   {of: Snapshot, ",
        "    snapshot:   {of: Snapshots,",
        "`Snapshots` is no schema",
        "name one of components.schemas",
    ),
    "column-that-finds-a-related-row-unknown": Fault(
        "where: {id: job.snapshotId}",
        "where: {id: job.snapshot}",
        "`job.snapshot` is no column of Job",
        "correct the name",
    ),
    "body-property-unknown": Fault(
        "          when: body.outputHash == result.outputHash",
        "          when: body.hash == result.outputHash",
        "the body has no property `hash`",
        "correct the name",
    ),
    "body-property-unknown-in-an-effect": Fault(
        "errorMessage: redact(body.errorMessage)",
        "errorMessage: redact(body.errorMesage)",
        "the body has no property `errorMesage`",
        "correct the name",
    ),
    "body-property-unknown-in-a-new-row": Fault(
        "string(body.attemptNo)", "string(body.attempt)", "the body has no property `attempt`", "correct the name"
    ),
    "null-in-a-guard": Fault(
        LOCK,
        "          when: job.lockUntil < now",
        "`job.lockUntil` may be null in `job.lockUntil < now`",
        "test `job.lockUntil != null`",
    ),
    "null-test-on-the-right": Fault(
        LOCK,
        "          when: job.lockUntil < now || job.lockUntil == null",
        "`job.lockUntil` may be null",
        "to the left of it",
    ),
    "null-in-an-effect": Fault(
        "set: [renew, {startedAt: now}]",
        "set: [renew, {startedAt: job.startedAt + 1}]",
        "`job.startedAt` may be null in `job.startedAt + 1`",
        "test `job.startedAt != null`",
    ),
    "null-in-a-timer": Fault(
        "after: job.startedAt + job.timeoutSeconds * 1000",
        "after: job.finishedAt + job.timeoutSeconds * 1000",
        "`job.finishedAt` may be null",
        "test `job.finishedAt != null`",
    ),
    "null-as-text": Fault(
        "resultIdempotencyKey: job.id + ':'",
        "resultIdempotencyKey: string(job.snapshotId) + ':'",
        "`job.snapshotId` may be null in `string(job.snapshotId)`",
        "test `job.snapshotId != null`",
    ),
    "null-as-a-row": Fault(
        "          require: credential != null && credential.userId == job.userId",
        "          require: credential.userId == job.userId",
        "`credential` may be null in `credential.userId`",
        "test `credential != null`",
        beside=("`credential` may be null in `credential.status`",),
    ),
    "step-behind-one-that-always-decides": Fault(
        "          when: body.retryable && retriesLeft\n",
        "",
        "`fail.final` can never decide",
        "drop it, or move it up",
        at="        - id: fail.final",
    ),
    "trigger-does-not-always-decide": Fault(
        "- {id: lock.refused, answer:",
        "- {id: lock.refused, from: [locked], answer:",
        "no step may decide in state cancelled, failed, pending, running, succeeded",
        "end with a step that always decides",
        at="    lockJob:\n      find",
    ),
    "too-many-conditions": Fault(
        LOCK,
        LOCK + "".join(f" || job.priority == {n}" for n in range(12)),
        "14 different conditions are more than a truth table can hold",
        "split it",
        at="    lockJob:\n      find",
    ),
}

ALL = {f"state-{name}": fault for name, fault in STATES.items()}
ALL |= {f"step-{name}": fault for name, fault in STEPS.items()}
ALL |= {f"expression-{name}": fault for name, fault in EXPRESSIONS.items()}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in ALL.items()])
def test_fault_is_named_with_its_line_and_mend(fault: Fault, tmp_path: Path) -> None:
    verify(fault, tmp_path)
