"""What lint says of events, timers that fire, internal triggers, derived values and lists of rows, of which the hub's
specification is made: the line, the fault, the mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lint_faults import REGISTERS, TEXTS, Fault, verify, write

from openapi.lint import lint

if TYPE_CHECKING:
    from pathlib import Path


def hub(old: str, new: str, message: str, mend: str, *, at: str = "", beside: tuple[str, ...] = ()) -> Fault:
    """A fault of the hub's machine, which has what the Runtime API's has not."""
    return Fault(old, new, message, mend, at, beside, "agent-hub")


ROUND_LIMIT = "      with: {report: {type: timeout, message: the round took too long}}"
TOLD = {
    "event-unknown": hub(
        "      events: [{name: job.completed}]",
        "      events: [{name: job.done}]",
        "`job.done` is no event of the stream",
        "name one of those in its x-events",
    ),
    "event-of-a-step-unknown": hub(
        "          event: job.progress\n",
        "          event: progress\n",
        "`progress` is no event of the stream",
        "name one of those in its x-events",
    ),
    "event-without-a-stream": Fault(
        "      description: A Runtime executes it, as its heartbeats tell\n",
        "      events: [{name: job.running}]\n",
        "tells `job.running`, and no stream of `paths` tells events",
        "document it with x-events",
    ),
    "event-behind-one-that-is-always-told": hub(
        "events: [{when: retryToCome, name: job.state}, {name: job.failed}]",
        "events: [{name: job.failed}, {when: retryToCome, name: job.state}]",
        "`job.state` is never told",
        "drop it, or move it up",
    ),
    "event-of-a-step-that-moves": hub(
        "          to: done\n",
        "          to: done\n          event: job.completed\n",
        "False schema does not allow",
        "machine.schema.json",
        at="          to: done\n",
    ),
    "name-unknown-in-an-event": hub(
        "{when: retryToCome, name: job.state}",
        "{when: now < job.finishedAt, name: job.state}",
        "`now` is not known here",
        "use an input",
    ),
    "null-in-an-event": hub(
        "{when: retryToCome, name: job.state}",
        "{when: job.nextRetryAt > 0, name: job.state}",
        "`job.nextRetryAt` may be null in `job.nextRetryAt > 0`",
        "test `job.nextRetryAt != null`",
    ),
}

TIMERS = {
    "trigger-that-is-fired-unknown": hub(
        f"      fires: report\n{ROUND_LIMIT}",
        f"      fires: reprot\n{ROUND_LIMIT}",
        "`reprot` is no internal trigger",
        "name one of `internal`",
    ),
    "input-of-a-timer-unknown": hub(
        ROUND_LIMIT,
        "      with: {report: {type: timeout, message: too long}, reason: none}",
        "`reason` is no input",
        "name it under `inputs`",
    ),
    "input-that-the-fired-trigger-reads-not-given": hub(
        f"      fires: report\n{ROUND_LIMIT}",
        "      fires: report",
        "`report` reads `report`",
        "give it under `with`",
        at="      fires: report\n      requirements",
    ),
    "source-of-a-timer-that-fires-unknown": hub(
        "      from: [queued, running, cancelled]\n      after",
        "      from: [queued, runing, cancelled]\n      after",
        "`runing` is no state",
        "name one of `states`",
    ),
    "moves-and-fires": hub(
        ROUND_LIMIT,
        f"      to: failed\n{ROUND_LIMIT}",
        "more than one",
        "machine.schema.json",
        at="    round-limit:",
    ),
    "neither-moves-nor-fires": hub(
        f"      fires: report\n{ROUND_LIMIT}\n",
        "",
        "is not valid under any",
        "machine.schema.json",
        at="    round-limit:",
    ),
    "state-that-only-an-internal-trigger-reaches": hub(
        "          to: done\n",
        "",
        "nothing leads to `done`",
        "add a transition or drop the state",
        at="    done:\n",
    ),
    "name-unknown-in-the-instant-of-a-timer": hub(
        "at: job.nextRetryAt, to: queued",
        "at: now + 1, to: queued",
        "`now` is not known here",
        "use an input",
    ),
    "name-unknown-in-what-a-timer-sets": hub(
        "at: job.nextRetryAt, to: queued, set: [again]",
        "at: job.nextRetryAt, to: queued, set: [again, {sessionId: newSession}]",
        "`newSession` is not known here",
        "use an input",
    ),
    "null-in-the-instant-of-a-timer-that-fires": hub(
        'at: "job.silentSince != null ? job.silentSince + silence : null"',
        "at: job.silentSince + silence",
        "`job.silentSince` may be null",
        "test `job.silentSince != null`",
    ),
}

INTERNAL = {
    "trigger-does-not-always-decide": hub(
        "        - {id: take.gone, requirements",
        "        - {id: take.gone, from: [cancelled], requirements",
        "no step may decide in state done, failed, running",
        "end with a step that always decides",
        at="    take:  ",
    ),
    "step-behind-one-that-always-decides": hub(
        "          when: retried\n",
        "",
        "`report.final` can never decide",
        "drop it, or move it up",
        at="        - id: report.final",
    ),
    "input-unknown": hub(
        "          when: differs(job.progress, update)",
        "          when: differs(job.progress, updates)",
        "`updates` is not known here",
        "use an input",
    ),
    "input-of-the-machine-left-out": hub(
        "    newSession: a session id never used before\n",
        "",
        "`newSession` is not known here",
        "use an input",
        at="          set: [{attempt: job.attempt + 1, sessionId: newSession,",
    ),
    "body-read": hub(
        "          when: report.type == 'done'",
        "          when: body.status == 'done'",
        "`body` is not known here",
        "use an input",
        beside=("the body has no property `status`",),
    ),
    "answer": hub(
        "        - {id: take.gone, requirements",
        "        - {id: take.gone, answer: 200, requirements",
        "False schema does not allow 200",
        "machine.schema.json",
    ),
    "null-as-an-index": hub(
        "backoff[job.attempt - 1]",
        "backoff[job.timeoutSeconds]",
        "`job.timeoutSeconds` may be null in `[30000, 120000, 600000][job.timeoutSeconds]`",
        "test `job.timeoutSeconds != null`",
    ),
    "name-unknown-as-an-index": hub(
        "backoff[job.attempt - 1]", "backoff[attempt - 1]", "`attempt` is not known here", "use an input"
    ),
    "name-unknown-in-where": hub(
        "where: job.account == caller",
        "where: job.account == account",
        "`account` is not known here",
        "use an input",
    ),
    "column-unknown-in-where": hub(
        "where: job.account == caller",
        "where: job.owner == caller",
        "`job.owner` is no column of HubJob",
        "correct the name",
    ),
    "null-in-where": hub(
        "where: job.account == caller",
        "where: job.startedAt < 1",
        "`job.startedAt` may be null",
        "test `job.startedAt != null`",
    ),
    "derived-value-that-is-a-column": hub(
        '    waitMs: "job',
        '    attempt: "job',
        "`attempt` is a column of HubJob",
        "derive it or store it",
    ),
    "name-unknown-in-a-derived-value": hub(
        "null : job.startedAt - job.queuedAt",
        "null : now - job.queuedAt",
        "`now` is not known here",
        "use an input",
    ),
    "null-in-a-derived-value": hub(
        "job.startedAt == null || job.finishedAt == null ?",
        "job.startedAt == null ?",
        "`job.finishedAt` may be null",
        "test `job.finishedAt != null`",
    ),
    "duration-of-two-units": hub(
        "aiLimit: {minutes: 25,",
        "aiLimit: {minutes: 25, hours: 1,",
        "more than one",
        "machine.schema.json",
    ),
    "duration-that-is-no-number": hub(
        "aiLimit: {minutes: 25,",
        "aiLimit: {minutes: 25 to 30,",
        "is not valid under any",
        "machine.schema.json",
    ),
}

ROWS = {
    "key-unknown": Fault("x-row: {key: id}", "x-row: {key: name}", "`name` is no column of Job", "correct the name"),
    "column-of-by-unknown": Fault(
        "x-row: {key: jobId, by: jobId}", "x-row: {key: jobId, by: job}", "`job` is no column of Result", "correct"
    ),
    "column-of-a-list-unknown": hub(
        "batch: {by: [account, batchId],",
        "batch: {by: [account, batch],",
        "`batch` is no column of HubJob",
        "correct the name",
    ),
    "column-of-an-order-unknown": hub(
        "order: [-priority, queuedAt, id]}",
        "order: [-rank, queuedAt, id]}",
        "`rank` is no column of HubJob",
        "correct the name",
    ),
    "state-of-a-list-unknown": hub(
        "from: [queued], order", "from: [pending], order", "`pending` is no state", "name one of `states`"
    ),
}

ALL = {f"told-{name}": fault for name, fault in TOLD.items()}
ALL |= {f"timer-{name}": fault for name, fault in TIMERS.items()}
ALL |= {f"internal-{name}": fault for name, fault in INTERNAL.items()}
ALL |= {f"row-{name}": fault for name, fault in ROWS.items()}


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in ALL.items()])
def test_fault_is_named_with_its_line_and_mend(fault: Fault, tmp_path: Path) -> None:
    verify(fault, tmp_path)


def test_the_packaged_files_are_sound_elsewhere_too(tmp_path: Path) -> None:
    assert lint(write(tmp_path, TEXTS["agent-hub"], REGISTERS["agent-hub"], "agent-hub")) == []
