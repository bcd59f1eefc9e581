"""Steps that checks of several areas share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract_tests.checks import CheckSkipped, about, expect, expect_fields
from contract_tests.client import Answer, Call, JobRef
from contract_tests.transport import StateRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.given import Given

SHORT = 3
"""A time limit, seconds, that ends before the lock does."""


async def keep_alive(given: Given, job: JobRef, seconds: float, by: str = "runtime-a") -> None:
    """Heartbeat at a third of the lock's length for so many seconds of the build's time."""
    step = given.timing.lock / 3
    while seconds > 0:
        await given.clock.advance(min(step, seconds))
        seconds -= step
        if seconds > 0:
            await given.api.heartbeat(job, by=by).succeeds()


async def expired_once(given: Given, job: JobRef, rule: str) -> None:
    """The columns of a job that lost its first attempt to a limit, as ``rule`` has it."""
    await given.settles(job, shows=("RT-TIME-02",) if rule == "RT-TIME-51" else ())
    row = await given.inspect(job)
    wanted = {
        "status": "pending",
        "errorCode": "JOB_TIMEOUT",
        "retryCount": 1,
        "attemptNo": 1,
        "lockedBy": None,
        "lockedAt": None,
        "lockUntil": None,
        "startedAt": None,
        "finishedAt": None,
    }
    cleared = dict.fromkeys(("lockedBy", "lockedAt", "lockUntil", "startedAt"), ("RT-RETRY-51",))
    counted = dict.fromkeys(("retryCount", "attemptNo"), (rule, "RT-RETRY-50"))
    status, code = {"status": (rule, "RT-SM-50")}, {"errorCode": (rule, "RT-RETRY-15")}
    expect_fields(row, wanted, rules={**cleared, **counted, **status, **code, "finishedAt": (rule,)})


async def runs_out(given: Given, job: JobRef, times: int, shows: Sequence[str]) -> None:
    """Lock and lose the job so many times; after that it stays away, as ``shows`` has it."""
    await given.locks(job, by="runtime-0")
    for attempt in range(1, times):
        await given.lapse()
        # that a job comes back at all is judged elsewhere; that it does so often enough, here
        await given.comes_back(job, by=f"runtime-{attempt}", shows=shows if attempt > 1 else ())
    await given.lapse()
    with about(*shows):
        await given.stays_away(job)


async def rerun(given: Given, job: JobRef) -> JobRef:
    """The job that an Admin's rerun makes of a failed one."""
    values = await given.states.set_up("rerun-job", {"jobId": job.id})
    return JobRef(values["jobId"], job.user_id, None)


def not_retryable(answer: Answer) -> None:
    """An error that can't be mended by repeating the call says so, where it says anything (seed 003 section 3)."""
    came = answer.json.get("retryable", False)
    expect(came is False, "retryable false", str(came), "/retryable")


def within(row: dict[str, Any], name: str, low: int, high: int) -> None:
    """An instant of a job lies between two others, epoch milliseconds."""
    came = row.get(name)
    expect(came is not None and low <= came <= high, f"{name} within {low} to {high}", str(came), f"/{name}")


def shown_key(answer: Answer) -> str:
    """The resultIdempotencyKey of an answer to a result, "" where a build does not show it."""
    if not answer.response.content or not isinstance(answer.json, dict):
        return ""
    return str(answer.json.get("resultIdempotencyKey", ""))


async def second_attempt(given: Given, *, by: str = "runtime-b", **params: Any) -> JobRef:
    """A running job of ``by`` whose first attempt ``runtime-a`` failed, retryable, with NETWORK_ERROR."""
    job = await given.running_job("runtime-a", **params)
    told = {"code": "NETWORK_ERROR", "message": "attempt 1 broke"}
    with about("RT-FAIL-07", step="the holder's retryable failure"):
        await given.api.fail(job, by="runtime-a", **told).succeeds()
        await given.api.lock(job, by=by).succeeds()
    await given.starts(job, by=by)
    return job


REACHED = {
    "succeeded": ("RT-RES-14", "a result"),
    "failed": ("RT-FAIL-08", "a final failure"),
    "pending": ("RT-FAIL-07", "a retryable failure"),
    "cancelled": ("RT-CANCEL-50", "the end of a job that was to be stopped"),
}
"""The rule that says that a report brings a job into a state, and what reported."""


async def reached(given: Given, job: JobRef, state: str) -> dict[str, Any]:
    """The columns of a job that a report brought into ``state``, which is what the check starts from."""
    row = await given.inspect(job)
    rule, step = REACHED[state]
    with about(rule, step=step):
        expect(row.get("status") == state, f"status {state}", str(row.get("status")), "/status")
    return row


FORMER = "runtime-former"


async def second_hand_job(given: Given, state: str, **params: Any) -> JobRef:
    """A job that :data:`FORMER` held and gave back; ``runtime-a`` then brought it into ``state``."""
    api = given.api
    job = await given.locked_job(FORMER, **params)
    with about("RT-FAIL-07", step="the holder's retryable failure"):
        await api.fail(job, by=FORMER, retryable=True).succeeds()
        if state not in ("pending", "cancelled"):
            await api.lock(job).succeeds()
    if state == "cancelled":
        await given.states.set_up("cancel-job", {"jobId": job.id})
    if state in ("running", "succeeded", "failed"):
        await given.starts(job)
    if state == "succeeded":
        await given.completes(job)
    if state == "failed":
        await given.fails(job, retryable=False)
    return job


USER_MODE = "user_deepseek_key"


async def credential(given: Given, **params: Any) -> tuple[str, str, str]:
    """The id of a user's stored key, the user, and the key."""
    values = await given.states.set_up("credential", {"userId": given.unique("user"), **params})
    return values["credentialId"], values["userId"], values["apiKey"]


async def job_with_credential(given: Given, id_: str, user: str, **params: Any) -> JobRef:
    """A locked job of a user that is to use a stored key; skips the check where the build makes none such."""
    try:
        return await given.locked_job(**{"userId": user, "apiKeyMode": USER_MODE, "credentialId": id_, **params})
    except StateRefused as refused:
        raise CheckSkipped(f"the build makes no job with that credential: {refused}") from None


async def keyed_job(given: Given, **params: Any) -> tuple[JobRef, str, str]:
    """A locked job that is to use its user's own key; the id of the credential, and the key."""
    id_, user, key = await credential(given)
    return await job_with_credential(given, id_, user, **params), id_, key


async def handed_out(resolve: Call) -> Answer:
    """The answer to a resolve that the holder of a lock makes rightly: what checks of keys start from."""
    with about("RT-CRED-06", step="resolving a credential"):
        return await resolve.succeeds()
