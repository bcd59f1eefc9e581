"""What each operation answers to each caller in each state of the job, from one table."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, expect, requirement
from contract_tests.client import KEY_HEADER, Call, RuntimeApi, describe, judge_code

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.given import Given

CELLS = """
state      caller    lock   heartbeat  snapshot  resolve  result  fail
pending    stranger  200    lost       lost      lost     lost    lost
locked     holder    taken  204        200       200      201     200
locked     stranger  taken  lost       lost      lost     lost    lost
running    holder    taken  204        200       200      201     200
running    stranger  taken  lost       lost      lost     lost    lost
succeeded  former    taken  lost       lost      lost     200     lost
succeeded  stranger  taken  lost       lost      lost     200     lost
failed     former    taken  lost       lost      lost     lost    lost
failed     stranger  taken  lost       lost      lost     lost    lost
cancelled  stranger  taken  lost       lost      lost     gone    lost
stopping   holder    taken  204        200       200      gone    200
stopping   stranger  taken  lost       lost      lost     lost    lost
stopped    former    taken  lost       lost      lost     gone    lost
stopped    stranger  taken  lost       lost      lost     gone    lost
lapsed     former    200    lost       lost      lost     lost    lost
lapsed     stranger  200    lost       lost      lost     lost    lost
retaken    holder    taken  204        200       200      201     200
retaken    former    taken  lost       lost      lost     lost    lost
retaken    stranger  taken  lost       lost      lost     lost    lost
"""
"""A number is a success, a word a refusal with 409, which leaves every column as it was.

Beyond the states of the protocol: `stopping` is running with `cancelRequested`, `stopped` what became of it, `lapsed`
was locked once and is pending again, `retaken` is that and locked by another. `former` held the lock before.
"""
REFUSALS = {"taken": "JOB_ALREADY_LOCKED", "lost": "LOCK_NOT_HELD", "gone": "JOB_CANCELLED"}
FIRST, SECOND, STRANGER = "runtime-a", "runtime-b", "runtime-c"


def table() -> list[tuple[str, str, str, str]]:
    """The cells: operation, state, caller, what comes."""
    head, *rows = (line.split() for line in CELLS.strip().splitlines())
    return [
        (operation, state, caller, comes)
        for state, caller, *row in rows
        for operation, comes in zip(head[2:], row, strict=True)
    ]


def cells(operation: str, *comes: str, states: tuple[str, ...] = ()) -> Any:
    """A check for each state in which the operation is answered so, with the callers who get that answer."""
    found = [
        cell for cell in table() if cell[0] == operation and cell[3] in comes and (not states or cell[1] in states)
    ]
    return [
        pytest.param(state, [(caller, cell) for _, _, caller, cell in group], id=f"{operation}-{state}")
        for state, group in groupby(found, key=lambda cell: cell[1])
    ]


def each(grouped: list[Any]) -> list[Any]:
    """A check for each cell of :func:`cells`: where time is waited for, they wait side by side."""
    return [
        pytest.param(group.values[0], [cell], id=f"{group.id}-{cell[0]}")
        for group in grouped
        for cell in group.values[1]
    ]


def who(state: str, caller: str) -> str:
    """The instance that is the holder, the former holder or a stranger in a state."""
    if caller == "stranger":
        return STRANGER
    return SECOND if (state, caller) == ("retaken", "holder") else FIRST


async def placed(given: Given, state: str) -> JobRef:
    """A job in a state of the table."""
    match state:
        case "stopping" | "stopped":
            job = await given.running_job(FIRST)
            await given.revoke_ai_consent(job.user_id)
            if state == "stopped":
                with about("RT-CANCEL-50", step="a failure of a job with `cancelRequested`"):
                    answer = await given.api.fail(job, by=FIRST).succeeds()
                    expect(answer.json.get("status") != "pending", "the job is cancelled", answer.response.text[:200])
        case "lapsed" | "retaken":
            job = await given.locked_job(FIRST)
            await given.lapse()
            await given.settles(job)
            if "inspect-job" in given.states.offered:
                with about("RT-SCHED-10", step="taking a lapsed job again"):
                    await given.becomes(job, "pending")
            if state == "retaken":
                await given.comes_back(job, by=SECOND)
        case _:
            job = await given.in_state(state, by=FIRST)
    return job


def call(api: RuntimeApi, operation: str, job: JobRef | str, by: str) -> Call:
    """The operation as who holds the job would call it."""
    calls: dict[str, Any] = {
        "lock": api.lock,
        "heartbeat": api.heartbeat,
        "snapshot": api.snapshot,
        "resolve": api.resolve,
        "result": api.result,
        "fail": api.fail,
    }
    made: Call = calls[operation](job, by=by)
    return made


async def refused(given: Given, operation: str, state: str, callers: Any, *, unchanged: str | None = None) -> None:
    """Each of the callers gets the table's code, and no column has changed (a failure of the rule ``unchanged``)."""
    job = await placed(given, state)
    seen = await given.inspect(job) if "inspect-job" in given.states.offered else None
    for caller, comes in callers:
        code, cell = REFUSALS[comes], f"{operation} by the {caller} of a {state} job"
        answer = await call(given.api, operation, job, who(state, caller)).answers()
        judge_code(answer)
        good = answer.status == 409 and answer.json.get("errorCode") == code
        expect(good, f"409 {code} to {cell}", describe(answer.response), "/errorCode")
        if seen is not None:
            with about(unchanged, step=f"a refused {operation}") if unchanged else about():
                await given.unchanged(job, seen)


async def accepted(given: Given, operation: str, state: str, callers: Any, *, any_success: bool = False) -> None:
    """The caller gets the table's success, or any where only being served is judged."""
    [(caller, comes)] = callers
    job = await placed(given, state)
    answer = await call(given.api, operation, job, who(state, caller)).answers()
    cell = f"{operation} by the {caller} of a {state} job"
    good = answer.status < 300 if any_success else answer.status == int(comes)
    expect(good, f"{comes} to {cell}", describe(answer.response))


@requirement("RT-LOCK-50")
@pytest.mark.parametrize(("state", "callers"), cells("lock", "taken"))
async def test_lock_of_what_is_not_pending(given: Given, state: str, callers: Any) -> None:
    """A job that is not pending can be locked by nobody: 409 JOB_ALREADY_LOCKED."""
    await refused(given, "lock", state, callers)


@requirement("RT-HB-50")
@pytest.mark.parametrize(("state", "callers"), cells("heartbeat", "lost"))
async def test_heartbeat_without_the_lock(given: Given, state: str, callers: Any) -> None:
    """Who does not hold the lock can't heartbeat: 409 LOCK_NOT_HELD."""
    await refused(given, "heartbeat", state, callers, unchanged="RT-HB-53")


@requirement("RT-SNAP-50")
@pytest.mark.parametrize(("state", "callers"), cells("snapshot", "lost"))
async def test_snapshot_without_the_lock(given: Given, state: str, callers: Any) -> None:
    """Who does not hold the lock reads no snapshot: 409 LOCK_NOT_HELD."""
    await refused(given, "snapshot", state, callers)


@requirement("RT-CRED-50")
@pytest.mark.parametrize(("state", "callers"), cells("resolve", "lost"))
async def test_credential_without_the_lock(given: Given, state: str, callers: Any) -> None:
    """Who does not hold the lock gets no key: 409 LOCK_NOT_HELD."""
    await refused(given, "resolve", state, callers)


@requirement("RT-RES-53")
@pytest.mark.parametrize(("state", "callers"), cells("result", "lost"))
async def test_result_without_the_lock(given: Given, state: str, callers: Any) -> None:
    """Who does not hold the lock submits no result: 409 LOCK_NOT_HELD."""
    await refused(given, "result", state, callers)


@requirement("RT-RES-52")
@pytest.mark.parametrize(("state", "callers"), cells("result", "gone", states=("cancelled", "stopped")))
async def test_result_of_a_cancelled_job(given: Given, state: str, callers: Any) -> None:
    """A result of a job that is cancelled is refused to whoever submits it: 409 JOB_CANCELLED."""
    await refused(given, "result", state, callers)


@requirement("RT-FAIL-50")
@pytest.mark.parametrize(("state", "callers"), cells("fail", "lost"))
async def test_failure_without_the_lock(given: Given, state: str, callers: Any) -> None:
    """Who does not hold the lock reports no failure: 409 LOCK_NOT_HELD, nothing changed."""
    await refused(given, "fail", state, callers)


@requirement("RT-LOCK-03")
@pytest.mark.parametrize(("state", "callers"), each(cells("lock", "200")))
async def test_lock_of_a_pending_job(given: Given, state: str, callers: Any) -> None:
    """Anybody can lock a pending job, who lost it before, too: 200."""
    await accepted(given, "lock", state, callers)


@requirement("RT-HB-05")
@pytest.mark.parametrize(("state", "callers"), cells("heartbeat", "204", states=("locked", "running", "retaken")))
async def test_heartbeat_of_the_holder(given: Given, state: str, callers: Any) -> None:
    """The holder heartbeats: 204."""
    await accepted(given, "heartbeat", state, callers)


@requirement("RT-SNAP-03")
@pytest.mark.parametrize(("state", "callers"), cells("snapshot", "200", states=("locked", "running", "retaken")))
async def test_snapshot_for_the_holder(given: Given, state: str, callers: Any) -> None:
    """The holder reads the snapshot: 200."""
    await accepted(given, "snapshot", state, callers)


@requirement("RT-CRED-06")
@pytest.mark.parametrize(("state", "callers"), cells("resolve", "200", states=("locked", "running", "retaken")))
async def test_credential_for_the_holder(given: Given, state: str, callers: Any) -> None:
    """The holder resolves its job's credential: 200."""
    await accepted(given, "resolve", state, callers)


@requirement("RT-RES-13")
@pytest.mark.parametrize(("state", "callers"), cells("result", "201", states=("running",)))
async def test_result_of_the_holder(given: Given, state: str, callers: Any) -> None:
    """The holder's first result: 201."""
    await accepted(given, "result", state, callers)


@requirement("RT-RES-55")
@pytest.mark.parametrize(("state", "callers"), cells("result", "201", states=("locked", "retaken")))
async def test_result_without_a_heartbeat(given: Given, state: str, callers: Any) -> None:
    """The holder of a locked job that sent no heartbeat, the second holder, too, submits its result: 201."""
    await accepted(given, "result", state, callers)


@requirement("RT-FAIL-10")
@pytest.mark.parametrize(("state", "callers"), cells("fail", "200", states=("running",)))
async def test_failure_of_the_holder(given: Given, state: str, callers: Any) -> None:
    """The holder's failure: 200."""
    await accepted(given, "fail", state, callers)


@requirement("RT-FAIL-60")
@pytest.mark.parametrize(("state", "callers"), cells("fail", "200", states=("locked", "retaken")))
async def test_failure_without_a_heartbeat(given: Given, state: str, callers: Any) -> None:
    """The holder of a locked job that sent no heartbeat, the second holder, too, reports a failure: 200."""
    await accepted(given, "fail", state, callers)


@requirement("RT-CANCEL-54")
@pytest.mark.parametrize("operation", ["heartbeat", "snapshot", "resolve"])
async def test_the_holder_keeps_its_lock_when_it_is_to_stop(given: Given, operation: str) -> None:
    """With `cancelRequested` the holder still heartbeats, reads the snapshot and resolves its credential."""
    [cell] = [cell for cell in table() if cell[:3] == (operation, "stopping", "holder")]
    await accepted(given, operation, "stopping", [cell[2:]], any_success=True)


@requirement("RT-RES-61")
@pytest.mark.parametrize(("state", "callers"), cells("result", "200"))
async def test_result_of_a_job_that_succeeded(given: Given, state: str, callers: Any) -> None:
    """The same result again: 200; another: 409 RESULT_ALREADY_EXISTS; whoever asks, and nothing changes."""
    job = await placed(given, state)
    seen = await given.inspect(job) if "inspect-job" in given.states.offered else None
    for caller, _ in callers:
        by, cell = who(state, caller), f"result by the {caller} of a succeeded job"
        same = await given.api.result(job, by=by).answers()
        expect(same.status == 200, f"200 to the same {cell}", describe(same.response))
        other = await given.api.result(job, by=by, hash="sha256-other").answers()
        judge_code(other)
        good = other.status == 409 and other.json.get("errorCode") == "RESULT_ALREADY_EXISTS"
        expect(good, f"409 RESULT_ALREADY_EXISTS to another {cell}", describe(other.response))
    if seen is not None:
        await given.unchanged(job, seen)


@requirement("RT-AUTH-50")
async def test_no_cell_opens_to_a_wrong_key(given: Given) -> None:
    """The holder's own operations with a wrong key: 401 UNAUTHORIZED each, and the job stays as it is."""
    job = await placed(given, "running")
    seen = await given.inspect(job) if "inspect-job" in given.states.offered else None
    for operation in ("lock", "heartbeat", "snapshot", "resolve", "result", "fail"):
        right = call(given.api, operation, job, FIRST)
        await right.with_headers({KEY_HEADER: "not-the-key"}).fails(401, "UNAUTHORIZED")
    if seen is not None:
        await given.unchanged(job, seen)


@requirement("RT-ERR-06")
@pytest.mark.parametrize("operation", ["lock", "heartbeat", "snapshot", "resolve", "result", "fail"])
async def test_no_cell_for_a_job_that_does_not_exist(api: RuntimeApi, given: Given, operation: str) -> None:
    """A job that does not exist: 404 JOB_NOT_FOUND, whatever is asked."""
    await call(api, operation, given.unique("no-such-job"), FIRST).fails(404, "JOB_NOT_FOUND")


@requirement("RT-SM-53", "RT-SM-54")
@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled", "stopped"])
async def test_nothing_moves_a_finished_job(api: RuntimeApi, given: Given, state: str) -> None:
    """Every operation, a revocation and time leave every column of a finished job as it is."""
    job = await placed(given, state)
    before = await given.inspect(job)
    for operation in ("lock", "heartbeat", "snapshot", "resolve", "result", "fail"):
        await call(api, operation, job, FIRST).answers()
        await call(api, operation, job, STRANGER).answers()
    await api.result(job, by=FIRST, hash="sha256-other").answers()
    await api.fail(job, by=FIRST, retryable=False).answers()
    if given.clock.advances:
        await given.clock.advance(0.01)
    await given.revoke_ai_consent(job.user_id)
    if given.clock.advances:
        await given.clock.advance(given.timing.lock * 3)
    else:
        await given.lapse()
    with about("RT-SM-53"):
        status = (await given.inspect(job)).get("status")
        expect(status == before["status"], f"status {before['status']}", str(status), "/status")
    with about("RT-SM-54"):
        await given.unchanged(job, before)
