"""Failures: where they lead, whose are taken, and what is stored of them (seed 003 section 4.7, seed 000 section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import CheckSkipped, expect, expect_fields, requirement
from contract_tests.client import UNSET, RuntimeApi, describe
from contract_tests.steps import SHORT, handed_out, reached, second_attempt, within

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.clock import Clock
    from contract_tests.given import Given

TABLE = {
    "MODEL_TIMEOUT": True,
    "MODEL_RATE_LIMIT": True,
    "NETWORK_ERROR": True,
    "TEMPORARY_PROVIDER_ERROR": True,
    "INVALID_SNAPSHOT": False,
    "INVALID_SCHEMA": False,
    "INVALID_CREDENTIAL": False,
    "JOB_TIMEOUT": True,
}
"""Whether a failure of that code is retryable, as the seed's table has it."""
LOCK = ("lockedBy", "lockedAt", "lockUntil")
CONNECTIONS = 8
SEED_EXAMPLE = (
    b'{"runtimeInstanceId":"runtime-001","errorCode":"MODEL_TIMEOUT",'
    b'"errorMessage":"DeepSeek request timed out after 30s","retryable":true,"rawError":"connection timeout"}'
)


@requirement("RT-FAIL-01", "RT-FAIL-10")
async def test_the_seeds_own_example_is_acknowledged(api: RuntimeApi, given: Given) -> None:
    """The request of seed 003 section 4.7, as it stands there, from the holder of a running job: 200."""
    job = await given.running_job("runtime-001")
    await api.raw("POST", f"{job.path}/fail", content=SEED_EXAMPLE, by="runtime-001").succeeds(200)


@requirement("RT-FAIL-07", "RT-SM-03")
async def test_a_retryable_failure_brings_the_job_back(api: RuntimeApi, given: Given) -> None:
    """Retryable with retries left: a poll lists the job again and another Runtime can lock it."""
    job = await given.listed_job()
    await api.lock(job, by="runtime-a").succeeds()
    await api.heartbeat(job, by="runtime-a").succeeds()
    await api.fail(job, by="runtime-a").succeeds()
    shows = ("RT-FAIL-07", "RT-SM-03")
    await given.is_offered_again(job, shows=shows)
    await given.comes_back(job, by="runtime-b", shows=shows)


@requirement("RT-RETRY-01")
async def test_a_retryable_failure_is_counted(api: RuntimeApi, given: Given) -> None:
    """After a retryable failure: status `pending`, `retryCount` one up."""
    job = await given.running_job()
    await api.fail(job).succeeds()
    expect_fields(await given.inspect(job), {"status": "pending", "retryCount": 1})


@requirement("RT-FAIL-08", "RT-SM-14")
async def test_a_final_failure_ends_the_job(api: RuntimeApi, given: Given) -> None:
    """Not retryable: nobody can lock the job any more although all retries are left."""
    job = await given.running_job()
    await api.fail(job, code="INVALID_SCHEMA", retryable=False).succeeds()
    await given.stays_away(job)


@requirement("RT-FAIL-08", "RT-RETRY-05")
async def test_the_last_retry_is_used_up(api: RuntimeApi, given: Given) -> None:
    """`maxRetryCount` 1: the first retryable failure brings the job back, the second ends it."""
    job = await second_attempt(given, by="runtime-b", maxRetryCount=1)
    await api.fail(job, by="runtime-b").succeeds()
    await given.stays_away(job)


@requirement("RT-SM-10", "RT-SM-14")
async def test_a_final_failure_makes_the_job_failed(api: RuntimeApi, given: Given) -> None:
    """A running job after a failure that is not retryable: status `failed`."""
    job = await given.running_job()
    await api.fail(job, code="INVALID_CREDENTIAL", retryable=False).succeeds()
    expect_fields(await given.inspect(job), {"status": "failed"})


@requirement("RT-RETRY-55")
async def test_a_failed_attempt_is_pollable_at_once(api: RuntimeApi, given: Given) -> None:
    """The very next poll lists the job, and the very next lock gets it: there is no waiting time."""
    job = await given.listed_job()
    await api.lock(job).succeeds()
    await api.heartbeat(job).succeeds()
    await api.fail(job).succeeds()
    expect(await given.offered(job), "a poll that lists the job at once", "it is not listed", "/jobs")
    await given.comes_back(job, within=0)


@requirement("RT-FAIL-60")
async def test_a_failure_needs_no_heartbeat(api: RuntimeApi, given: Given) -> None:
    """The holder of a locked job that never heartbeated submits its failure: 200."""
    for retryable in (True, False):
        await api.fail(await given.locked_job(), retryable=retryable).succeeds()


@requirement("RT-FAIL-61")
async def test_the_answer_tells_the_state_reached(api: RuntimeApi, given: Given) -> None:
    """jobId, `status` (pending, failed or cancelled) and `retryCount`, as they are then."""
    unwanted = await given.running_job()
    await given.revoke_ai_consent(unwanted.user_id)
    for job, retryable in ((await given.running_job(), True), (await given.running_job(), False), (unwanted, True)):
        answer = await api.fail(job, retryable=retryable).succeeds()
        row = await given.inspect(job)
        expect_fields(answer.json, {"jobId": job.id, "status": row["status"], "retryCount": row["retryCount"]})


@requirement("RT-FAIL-62")
@pytest.mark.parametrize("code", [*TABLE, "QUOTA_EXCEEDED"])
async def test_the_flag_decides(api: RuntimeApi, given: Given, code: str) -> None:
    """Whatever the code, one of the table's or an unknown one: retryable comes back, not retryable never."""
    for retryable in (not TABLE.get(code, False), TABLE.get(code, False)):
        job = await given.running_job()
        await api.fail(job, code=code, retryable=retryable).succeeds()
        answer = await api.lock(job, by="runtime-b").answers()
        wanted = 200 if retryable else 409
        expect(answer.status == wanted, f"{wanted} to a lock after {code}", describe(answer.response))


async def not_held(api: RuntimeApi, given: Given, clock: Clock, job: JobRef, by: str) -> None:
    """A failure that is LOCK_NOT_HELD, whatever its flag says, and changes no column."""
    before = await given.inspect(job)
    await clock.advance(0.01)
    for retryable in (True, False):
        await api.fail(job, by=by, code="NETWORK_ERROR", message="not mine", retryable=retryable).fails(
            409, "LOCK_NOT_HELD"
        )
    await given.unchanged(job, before)


STRANGERS = [
    ("pending", "runtime-a"),
    ("locked", "runtime-b"),
    ("locked", "runtime-A"),
    ("running", "runtime-b"),
    ("succeeded", "runtime-a"),
    ("failed", "runtime-a"),
    ("cancelled", "runtime-a"),
]


@requirement("RT-FAIL-50")
@pytest.mark.parametrize(("state", "by"), STRANGERS)
async def test_who_holds_no_lock_is_409(api: RuntimeApi, given: Given, clock: Clock, state: str, by: str) -> None:
    """A failure by another than the holder, or of a job that nobody holds: 409 LOCK_NOT_HELD, nothing changed."""
    await not_held(api, given, clock, await given.in_state(state, by="runtime-a"), by)


@requirement("RT-FAIL-50")
async def test_a_former_holder_is_409(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """A's failure after its lock lapsed, before and after B has the job: LOCK_NOT_HELD, nothing changed."""
    job = await given.running_job("runtime-a", timeoutSeconds=600)
    await given.lapse()
    await given.settles(job)
    await not_held(api, given, clock, job, "runtime-a")
    await given.comes_back(job, by="runtime-b")
    await not_held(api, given, clock, job, "runtime-a")


@requirement("RT-TIME-03")
async def test_a_lapsed_locks_failure_is_refused(api: RuntimeApi, given: Given) -> None:
    """A's final failure after its lock lapsed is refused, and the job is still there for B."""
    job = await given.locked_job("runtime-a")
    await given.lapse()
    await api.fail(job, by="runtime-a", retryable=False).refused()
    await given.comes_back(job, by="runtime-b")
    await api.fail(job, by="runtime-a", retryable=False).refused()
    await api.heartbeat(job, by="runtime-b").succeeds()


@requirement("RT-TIME-55", "RT-TIME-56")
async def test_a_failure_counts_at_the_last_millisecond(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """At `lockUntil`, and at the end of its time, a failure is 200; a millisecond later it is LOCK_NOT_HELD."""
    clock.needs_to_stand()
    held, lost = [await given.running_job(timeoutSeconds=SHORT) for _ in range(2)]
    limit = await given.instant(lost, "startedAt") + SHORT * 1000
    await clock.reach(limit, "RT-TIME-05")
    await api.fail(held).succeeds()
    await clock.reach(limit + 1, "RT-TIME-05")
    await api.fail(lost).fails(409, "LOCK_NOT_HELD")
    held, lost = await given.job(), await given.job()
    for job in (held, lost):
        until = (await api.lock(job).succeeds()).integer("lockUntil")
        await api.heartbeat(job).succeeds()  # at the same instant: the lock lasts as long
    await clock.reach(until, "RT-TIME-05")
    await api.fail(held).succeeds()
    await clock.reach(until + 1, "RT-TIME-05")
    await api.fail(lost).fails(409, "LOCK_NOT_HELD")


@requirement("RT-FAIL-53")
async def test_a_failure_sent_twice_counts_once(api: RuntimeApi, given: Given) -> None:
    """Sent again, or on many connections at once: one 200, the others LOCK_NOT_HELD, one attempt counted."""
    again, many = await given.running_job("runtime-a"), await given.running_job("runtime-a")
    await api.fail(again, by="runtime-a").succeeds()
    await api.fail(again, by="runtime-a").fails(409, "LOCK_NOT_HELD")
    answers = await api.together([api.fail(many, by="runtime-a") for _ in range(CONNECTIONS)])
    taken = [answer for answer in answers if answer.status < 300]
    expect(len(taken) == 1, "one success", f"{len(taken)} of {CONNECTIONS}")
    if "inspect-job" in given.states.offered:
        for job in (again, many):
            count = (await given.inspect(job)).get("retryCount")
            expect(count in (0, 1), "retryCount 1", str(count), "/retryCount")


@requirement("RT-FAIL-54")
async def test_a_retryable_failure_gives_the_lock_back(api: RuntimeApi, given: Given) -> None:
    """The lock fields and `startedAt` are null."""
    job = await given.running_job()
    await api.fail(job).succeeds()
    expect_fields(await reached(given, job, "pending"), dict.fromkeys((*LOCK, "startedAt")))


@requirement("RT-FAIL-55")
async def test_a_retryable_failure_is_told(api: RuntimeApi, given: Given) -> None:
    """`errorCode` and `errorMessage` are the failure's."""
    job = await given.running_job()
    await api.fail(job, code="NETWORK_ERROR", message="the connection broke").succeeds()
    told = {"errorCode": "NETWORK_ERROR", "errorMessage": "the connection broke"}
    expect_fields(await reached(given, job, "pending"), told)


@requirement("RT-FAIL-55")
async def test_a_later_failure_replaces_the_older(api: RuntimeApi, given: Given) -> None:
    """Attempt 2 fails with another code: the columns are those of attempt 2."""
    job = await second_attempt(given, by="runtime-b")
    await api.fail(job, by="runtime-b", code="MODEL_RATE_LIMIT", message="429").succeeds()
    expect_fields(await given.inspect(job), {"errorCode": "MODEL_RATE_LIMIT", "errorMessage": "429"})


@requirement("RT-RETRY-50", "RT-FAIL-54")
async def test_the_attempt_after_a_failure_starts_anew(api: RuntimeApi, given: Given, clock: Clock) -> None:
    """Attempt 1 ran most of its time: attempt 2 has attemptNo 1 and the whole time again."""
    job = await given.running_job("runtime-a", timeoutSeconds=SHORT)
    await clock.advance(SHORT - 1)
    await api.fail(job, by="runtime-a").succeeds()
    answer = await given.comes_back(job, by="runtime-b")
    expect(answer.get("attemptNo") == 1, "attemptNo 1", str(answer.get("attemptNo")), "/attemptNo")
    await api.heartbeat(job, by="runtime-b").succeeds()
    await clock.advance(SHORT - 1)
    answer = await api.heartbeat(job, by="runtime-b").answers()
    late = f"204 to a heartbeat {SHORT - 1} s into attempt 2, which has {SHORT} s"
    expect(answer.status == 204, late, describe(answer.response))


@requirement("RT-FAIL-56", "RT-FAIL-58")
@pytest.mark.parametrize("last", [False, True], ids=["not retryable", "no retries left"])
async def test_a_final_failure_closes_the_job(api: RuntimeApi, given: Given, clock: Clock, last: bool) -> None:
    """`finishedAt` is the instant of the failure, the lock fields are null."""
    job = await given.running_job(maxRetryCount=0 if last else 3)
    await clock.advance(2)
    before = await clock.now()
    await api.fail(job, retryable=last).succeeds()
    after, row = await clock.now(), await reached(given, job, "failed")
    expect_fields(row, dict.fromkeys(LOCK))
    within(row, "finishedAt", before, after)


@requirement("RT-FAIL-59")
@pytest.mark.parametrize("last", [False, True], ids=["not retryable", "no retries left"])
async def test_a_final_failure_is_no_retry(api: RuntimeApi, given: Given, last: bool) -> None:
    """`retryCount` and `attemptNo` stay as they were."""
    job = await second_attempt(given, by="runtime-b", maxRetryCount=1)
    before = await given.inspect(job)
    await api.fail(job, by="runtime-b", retryable=last).succeeds()
    row = await reached(given, job, "failed")
    expect_fields(row, {name: before[name] for name in ("retryCount", "attemptNo")})


@requirement("RT-FAIL-57")
async def test_what_a_final_failure_leaves(api: RuntimeApi, given: Given) -> None:
    """`errorCode` and `errorMessage` as sent, letter by letter, in place of an older failure's."""
    job = await second_attempt(given, by="runtime-b")
    message = "output \u201ccut off\u201d\n at byte 4096 \U0001f600 <b>'--"
    await api.fail(job, by="runtime-b", code="BAD_OUTPUT_2", message=message, retryable=False).succeeds()
    expect_fields(await given.inspect(job), {"errorCode": "BAD_OUTPUT_2", "errorMessage": message})


@requirement("RT-FAIL-51", "RT-CANCEL-50")
@pytest.mark.parametrize("retryable", [True, False])
async def test_an_unwanted_job_that_fails_stays_away(api: RuntimeApi, given: Given, retryable: bool) -> None:
    """With `cancelRequested` a failure is 200 and the job never comes back, whatever the flag says."""
    for state in ("locked", "running"):
        job = await given.in_state(state)
        await given.revoke_ai_consent(job.user_id)
        await api.fail(job, retryable=retryable).succeeds()
        await api.lock(job, by="runtime-b").fails(409, "JOB_ALREADY_LOCKED")
        await api.result(job).fails(409, "JOB_CANCELLED")


@requirement("RT-CANCEL-55", "RT-CANCEL-60")
@pytest.mark.parametrize("retryable", [True, False])
async def test_an_unwanted_failure_ends_the_job(api: RuntimeApi, given: Given, retryable: bool) -> None:
    """With `cancelRequested`, which stays, a failure sets `finishedAt` and clears the lock fields."""
    job = await given.running_job(maxRetryCount=0)
    await given.revoke_ai_consent(job.user_id)
    await api.fail(job, retryable=retryable).succeeds()
    row = await reached(given, job, "cancelled")
    expect_fields(row, {"cancelRequested": True, **dict.fromkeys(LOCK)})
    expect(row.get("finishedAt") is not None, "finishedAt set", "null", "/finishedAt")


@requirement("RT-CANCEL-57")
@pytest.mark.parametrize("retryable", [True, False])
async def test_an_unwanted_failure_is_told(api: RuntimeApi, given: Given, retryable: bool) -> None:
    """With `cancelRequested` the job keeps `errorCode` and `errorMessage` as sent, but redacted."""
    job = await given.running_job()
    await given.revoke_ai_consent(job.user_id)
    await api.fail(job, code="NETWORK_ERROR", message="gone with sk-live_12-ab", retryable=retryable).succeeds()
    told = {"errorCode": "NETWORK_ERROR", "errorMessage": "gone with [redacted]"}
    expect_fields(await reached(given, job, "cancelled"), told)


@requirement("RT-FAIL-52")
@pytest.mark.parametrize("retryable", [True, False])
async def test_what_looks_like_a_key_is_not_stored(api: RuntimeApi, given: Given, retryable: bool) -> None:
    """Every `sk-` token in `errorMessage` and `rawError` is stored as `[redacted]`, the rest as sent."""
    job = await given.running_job()
    message, raw = "401 for sk-A1_b-2, then sk-x.", '{"auth":"Bearer sk-proj-Zz09","again":["sk-A1_b-2"]}'
    await api.fail(job, message=message, rawError=raw, retryable=retryable).succeeds()
    wanted = {
        "errorMessage": "401 for [redacted], then [redacted].",
        "rawError": '{"auth":"Bearer [redacted]","again":["[redacted]"]}',
    }
    expect_fields(await given.inspect(job), wanted)


@requirement("RT-FAIL-52")
async def test_a_key_that_was_handed_out_is_not_stored(api: RuntimeApi, given: Given) -> None:
    """The user's key that resolve gave, alone and inside longer text: `[redacted]` stands in its place."""
    user = given.unique("user")
    credential = await given.states.set_up("credential", {"userId": user})
    id_ = credential["credentialId"]
    for text in ("%s", "key=%s&x=1", 'header "Bearer %s" and "%s" refused', "<<%s>>"):
        job = await given.running_job(userId=user, apiKeyMode="user_deepseek_key", credentialId=id_)
        key = (await handed_out(api.resolve(job, mode="user_deepseek_key", credential=id_))).get("apiKey")
        sent = text.replace("%s", key)
        await api.fail(job, code="INVALID_CREDENTIAL", message=sent, rawError=sent, retryable=False).succeeds()
        row, wanted = await given.inspect(job), text.replace("%s", "[redacted]")
        for name in ("errorMessage", "rawError"):
            expect(key not in str(row.get(name)), f"{name} without the key", "the key is stored", f"/{name}")
        expect_fields(row, {"errorMessage": wanted, "rawError": wanted})


@requirement("RT-FAIL-52")
async def test_the_platforms_key_is_not_stored(api: RuntimeApi, given: Given) -> None:
    """The platform's key, where resolve gave it, whatever it looks like: `[redacted]` stands in its place."""
    job = await given.running_job()
    key = (await handed_out(api.resolve(job))).fields.get("apiKey")
    if key is None:
        raise CheckSkipped("the build hands out no platform key")
    await api.fail(job, message=f"401 for {key}", rawError=f"<{key}>", retryable=False).succeeds()
    expect_fields(await given.inspect(job), {"errorMessage": "401 for [redacted]", "rawError": "<[redacted]>"})


@requirement("RT-FAIL-63")
@pytest.mark.parametrize("name", ["errorCode", "errorMessage", "retryable"])
async def test_a_required_field_is_missing(api: RuntimeApi, given: Given, name: str) -> None:
    """Without the field: 400 INVALID_REQUEST, and the same failure with it is taken."""
    job = await given.running_job()
    await api.fail(job, **{name: UNSET}).fails(400, "INVALID_REQUEST")
    await api.fail(job).succeeds()


@requirement("RT-ERR-72", "RT-ERR-60")
async def test_wrong_types_in_a_failure_are_400(api: RuntimeApi, given: Given) -> None:
    """null or a wrong type: 400 INVALID_REQUEST for each field, and nothing changed."""
    job = await given.running_job()
    before = await given.inspect(job)
    flags: tuple[Any, ...] = (None, "true", 1, 0, [])
    wrong: list[dict[str, Any]] = [{"retryable": value} for value in flags]
    wrong += [{name: value} for name in ("errorCode", "errorMessage") for value in (None, 1, ["X"])]
    wrong += [{"rawError": value} for value in (1, {"stack": "x"}, ["x"], False)]
    wrong += [{"runtimeInstanceId": None}]
    for fields in wrong:
        await api.fail(job, **fields).fails(400, "INVALID_REQUEST")
    await given.unchanged(job, before)


@requirement("RT-ERR-73")
async def test_raw_error_may_be_null(api: RuntimeApi, given: Given) -> None:
    """`rawError` null, or left out, is accepted: 200."""
    await api.fail(await given.running_job(), rawError=None).succeeds()
    await api.fail(await given.running_job()).succeeds()


@requirement("RT-ERR-63")
async def test_unknown_properties_of_a_failure_are_ignored(api: RuntimeApi, given: Given) -> None:
    """A newer Runtime may send more: 200."""
    await api.fail(await given.running_job(), attemptNo=0, provider={"status": 503}).succeeds()


@requirement("RT-FAIL-64")
@pytest.mark.parametrize("code", ["", "model_timeout", "1ST", "_A", "A-B", "A B", "A\n", " A", "\u00c4B", "A" * 65])
async def test_a_code_of_another_form_is_400(api: RuntimeApi, given: Given, code: str) -> None:
    """An `errorCode` that is not upper-case letters, digits and `_`, at most 64: 400 INVALID_REQUEST."""
    await api.fail(await given.running_job(), code=code).fails(400, "INVALID_REQUEST")


@requirement("RT-FAIL-65")
@pytest.mark.parametrize("code", ["A", "A1_", "Z" * 64])
async def test_a_code_that_nobody_knows_is_accepted(api: RuntimeApi, given: Given, code: str) -> None:
    """An `errorCode` of the right form that no table has: 200."""
    await api.fail(await given.running_job(), code=code).succeeds()
