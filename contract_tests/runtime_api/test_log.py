"""Invocation logs: what a batch may hold, and that it is stored whole or not at all (seed 003 section 4.8)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import about, expect, expect_fields, requirement
from contract_tests.client import BASE, UNSET, RuntimeApi, log_entry

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.given import Given

SEED_LOG = {
    "provider": "deepseek",
    "model": "deepseek-chat",
    "apiKeyMode": "user_deepseek_key",
    "credentialId": "cred-001",
    "promptName": "learning_state_analysis",
    "promptVersion": "learning_state_v1",
    "outputSchemaVersion": "analysis_output_v1",
    "inputTokens": 1200,
    "outputTokens": 450,
    "totalTokens": 1650,
    "latencyMs": 3200,
    "costEstimate": 3,
    "success": True,
    "retryCount": 0,
    "runtimeInstanceId": "runtime-001",
    "traceId": "trace-xyz",
    "correlationId": "corr-abc",
}
"""The log of seed 003 section 4.8 but for its job."""
REQUIRED = ("jobId", "provider", "model", "apiKeyMode", "success", "runtimeInstanceId")
COUNTS = ("inputTokens", "outputTokens", "totalTokens", "latencyMs", "retryCount")
NULLABLE = (
    "credentialId", "promptName", "promptVersion", "outputSchemaVersion", "errorCode", "errorMessage", "traceId",
    "correlationId",
)  # fmt: skip
NO_COUNTS = {"negative": -1, "a fraction": 1.5, "true": True, "a string": "1", "null": None}
LARGEST = 2**53 - 1
NOBODYS = "no-such-job"


def with_(job: JobRef, name: str, value: Any) -> dict[str, Any]:
    """A log with one property of another value, or one more."""
    fields: dict[str, Any] = {name: value}
    return log_entry(job, **fields)


async def ready(api: RuntimeApi, given: Given) -> JobRef:
    """A job, where a plain log is taken at all: that is what these checks start from."""
    with about("RT-LOG-11", step="submitting a log"):
        await api.logs(log_entry(await given.job())).succeeds()
    return await given.job()


@requirement("RT-LOG-01", "RT-LOG-11")
async def test_the_seeds_own_example_is_stored(api: RuntimeApi, given: Given) -> None:
    """The request of seed 003 section 4.8 with a running job's and a credential's id: 201."""
    user, log = given.unique("user"), dict(SEED_LOG)
    if "credential" in given.states.offered:
        log["credentialId"] = (await given.states.set_up("credential", {"userId": user}))["credentialId"]
    job = await given.running_job("runtime-001", userId=user)
    await api.logs({"jobId": job.id, **log}, by="runtime-001").succeeds(201)


@requirement("RT-LOG-08")
async def test_a_log_with_a_key_is_refused(api: RuntimeApi, given: Given) -> None:
    """A log that has `apiKey` is refused."""
    job = await given.running_job()
    await api.logs(log_entry(job, apiKey="sk-canary-1a2b3c")).refused()


KEYS: dict[str, Any] = {
    "in the second log": [{}, {"apiKey": "sk-canary-1a2b3c"}],
    "in an object": [{"meta": {"apiKey": "sk-canary-1a2b3c"}}],
    "in a list": [{"meta": [1, {"x": {"apiKey": "sk-canary-1a2b3c"}}]}],
    "where a text belongs": [{"traceId": {"apiKey": "sk-canary-1a2b3c"}}],
    "null": [{"apiKey": None}],
    "empty": [{"apiKey": ""}],
}


@requirement("RT-LOG-50")
@pytest.mark.parametrize("name", KEYS)
async def test_a_key_at_any_depth_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """`apiKey` anywhere in a log, whatever its value: 400 INVALID_REQUEST."""
    job = await given.job()
    await api.logs(*(log_entry(job, **fields) for fields in KEYS[name])).fails(400, "INVALID_REQUEST")


@requirement("RT-LOG-51")
@pytest.mark.parametrize("name", ["apikey", "APIKEY", "ApiKey", "apiKEY"])
async def test_a_key_in_any_case_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """`apiKey` in any case, in the log or deeper: 400 INVALID_REQUEST."""
    job = await given.job()
    for fields in ({name: "sk-canary-1a2b3c"}, {"meta": [{name: "sk-canary-1a2b3c"}]}):
        await api.logs(log_entry(job, **fields)).fails(400, "INVALID_REQUEST")


@requirement("RT-LOG-60")
@pytest.mark.parametrize("name", ["apiKey", "APIKEY"])
async def test_a_key_beside_the_logs_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """`apiKey` beside `logs`: 400 INVALID_REQUEST, although all logs are right."""
    await api.logs(log_entry(await given.job()), **{name: "sk-canary-1a2b3c"}).fails(400, "INVALID_REQUEST")


@requirement("RT-LOG-52")
@pytest.mark.parametrize("name", ["tokens", "input_tokens", "costestimate", "x", ""])
async def test_an_unknown_property_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """A log with a property that the protocol does not have: 400 INVALID_REQUEST."""
    await api.logs(with_(await given.job(), name, 1)).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-63")
async def test_an_unknown_property_beside_the_logs_is_ignored(api: RuntimeApi, given: Given) -> None:
    """Beside `logs` a newer Runtime may send more: 201."""
    await api.logs(log_entry(await ready(api, given)), batchId="b-1", more={"a": [None]}).succeeds()


@requirement("RT-ERR-67")
async def test_a_refused_key_is_not_repeated(api: RuntimeApi, given: Given) -> None:
    """The answer to a log with a key does not hold that key, whatever it looks like."""
    job = await given.job()
    for key in ("sk-canary-9f8e7d6c5b4a", "plain-canary-9f8e7d6c5b4a"):
        for call in (api.logs(log_entry(job, apiKey=key)), api.logs(log_entry(job), apiKey=key)):
            answer = await call.fails(400, "INVALID_REQUEST")
            expect(key not in answer.response.text, "an answer without the key", "the key is repeated in it")


@requirement("RT-LOG-53")
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "in the middle", "last"])
async def test_of_a_refused_batch_nothing_is_stored(api: RuntimeApi, given: Given, place: int) -> None:
    """One bad log among good ones: none of them is counted, and the good ones alone are stored afterwards."""
    job = await ready(api, given)
    for bad in ({"apiKey": "sk-canary-1a2b3c"}, {"unknown": 1}, {"inputTokens": -1}, {"model": UNSET}):
        batch = [log_entry(job, retryCount=i) for i in range(3)]
        batch[place] = log_entry(job, **bad)
        await api.logs(*batch).fails(400, "INVALID_REQUEST")
    await api.logs(log_entry(job), apiKey="sk-canary-1a2b3c").fails(400, "INVALID_REQUEST")
    expect_fields(await given.inspect(job), {"logCount": 0})
    await api.logs(*(log_entry(job) for _ in range(2))).succeeds()
    expect_fields(await given.inspect(job), {"logCount": 2})


@requirement("RT-LOG-54")
@pytest.mark.parametrize("count", [1, 3])
async def test_the_answer_tells_the_number(api: RuntimeApi, given: Given, count: int) -> None:
    """`accepted` is the number of logs sent, equal ones each counted."""
    answer = await api.logs(*[log_entry(await ready(api, given), traceId="t-1")] * count).succeeds()
    expect(answer.integer("accepted") == count, f"accepted {count}", str(answer.get("accepted")), "/accepted")


@requirement("RT-LOG-55")
async def test_a_batch_has_1_to_500_logs(api: RuntimeApi, given: Given) -> None:
    """1 and 500 are stored; 0 and 501 are 400 INVALID_REQUEST, and of 501 none is stored."""
    job = await ready(api, given)
    await api.logs().fails(400, "INVALID_REQUEST")
    await api.logs(*[log_entry(job)] * 501).fails(400, "INVALID_REQUEST")
    await api.logs(log_entry(job)).succeeds()
    await api.logs(*[log_entry(job)] * 500).succeeds()
    if "inspect-job" in given.states.offered:
        expect_fields(await given.inspect(job), {"logCount": 501})


@requirement("RT-LOG-56")
@pytest.mark.parametrize("state", ["pending", "running", "succeeded", "failed", "cancelled"])
async def test_logs_need_no_lock(api: RuntimeApi, given: Given, state: str) -> None:
    """Logs of a job in any state, from another than its holder: 201, and the job stays as it is."""
    job = await given.in_state(state, by="runtime-a")
    await api.logs(log_entry(job, by="runtime-b"), by="runtime-b").succeeds()
    if state == "running":
        await api.heartbeat(job, by="runtime-a").succeeds()


@requirement("RT-LOG-57")
async def test_a_stray_log_does_not_lose_its_batch(api: RuntimeApi, given: Given) -> None:
    """Logs of jobs that do not exist are 201, alone and between others, which are stored."""
    job = await ready(api, given)
    await api.logs(log_entry(NOBODYS)).succeeds()
    await api.logs(log_entry(job), log_entry(NOBODYS), log_entry(job)).succeeds()
    if "inspect-job" in given.states.offered:
        expect_fields(await given.inspect(job), {"logCount": 2})


@requirement("RT-LOG-58")
async def test_a_log_may_tell_why_a_call_failed(api: RuntimeApi, given: Given) -> None:
    """`errorCode` and `errorMessage` are free text, or null: 201."""
    job = await ready(api, given)
    for code, message in (("MODEL_TIMEOUT", "30 s over"), ("http 429: slow down", ""), (None, None)):
        await api.logs(log_entry(job, success=False, errorCode=code, errorMessage=message)).succeeds()


@requirement("RT-LOG-59")
@pytest.mark.parametrize("name", NO_COUNTS)
async def test_counts_are_integers_not_negative(api: RuntimeApi, given: Given, name: str) -> None:
    """Anything else as one of the five counts: 400 INVALID_REQUEST."""
    job = await given.job()
    for field in COUNTS:
        await api.logs(with_(job, field, NO_COUNTS[name])).fails(400, "INVALID_REQUEST")


@requirement("RT-LOG-59")
async def test_a_cost_is_a_number_from_0_on(api: RuntimeApi, given: Given) -> None:
    """`costEstimate` may be 0, whole or a fraction; negative, a string, a truth value: 400."""
    job = await ready(api, given)
    for value in (-0.01, -1, "3", True):
        await api.logs(log_entry(job, costEstimate=value)).fails(400, "INVALID_REQUEST")
    for value in (0, 3, 0.000125, 12.5):
        await api.logs(log_entry(job, costEstimate=value)).succeeds()


@requirement("RT-ERR-69")
@pytest.mark.parametrize("value", [0, 1.0], ids=["0", "1.0"])
async def test_counts_may_be_zero_or_written_as_1_0(api: RuntimeApi, given: Given, value: float) -> None:
    """0 and 1.0 as each of the counts: 201."""
    counts: dict[str, Any] = dict.fromkeys(COUNTS, value)
    await api.logs(log_entry(await ready(api, given), **counts)).succeeds()


@requirement("RT-ERR-71")
async def test_the_largest_integer_is_accepted_in_a_log(api: RuntimeApi, given: Given) -> None:
    """2^53-1 as each of the counts: 201."""
    counts: dict[str, Any] = dict.fromkeys(COUNTS, LARGEST)
    await api.logs(log_entry(await ready(api, given), **counts)).succeeds()


@requirement("RT-LOG-61")
@pytest.mark.parametrize("name", REQUIRED)
async def test_a_required_field_is_missing(api: RuntimeApi, given: Given, name: str) -> None:
    """A log without the field: 400 INVALID_REQUEST."""
    await api.logs(with_(await given.job(), name, UNSET)).fails(400, "INVALID_REQUEST")


@requirement("RT-LOG-61")
async def test_the_other_fields_can_be_left_out(api: RuntimeApi, given: Given) -> None:
    """A log with what is required alone: 201."""
    await api.logs(log_entry(await given.job())).succeeds()


@requirement("RT-LOG-62")
@pytest.mark.parametrize("name", NULLABLE)
async def test_null_is_allowed_in_a_log(api: RuntimeApi, given: Given, name: str) -> None:
    """null where the column is nullable, and for promptName, traceId and correlationId: 201."""
    await api.logs(with_(await ready(api, given), name, None)).succeeds()


@requirement("RT-ERR-72", "RT-ERR-60")
async def test_wrong_types_in_logs_are_400(api: RuntimeApi, given: Given) -> None:
    """null for what is required, wrong types, `logs` that is no list of objects, no `logs`: 400 INVALID_REQUEST."""
    job = await given.job()
    wrong: list[dict[str, Any]] = [{name: None} for name in REQUIRED]
    wrong += [{"success": "true"}, {"success": 1}, {"model": 1}, {"traceId": 1}, {"errorCode": 500}]
    wrong += [{"apiKeyMode": "other_key"}, {"costEstimate": None}]
    for fields in wrong:
        await api.logs(log_entry(job, **fields)).fails(400, "INVALID_REQUEST")
    bodies: list[Any] = [{}, {"logs": None}, {"logs": log_entry(job)}, {"logs": [None]}, {"logs": ["x"]}]
    bodies += [[log_entry(job)], {"logs": [log_entry(job), [log_entry(job)]]}]
    for body in bodies:
        call = api.raw("POST", f"{BASE}/invocation-logs", content=json.dumps(body).encode())
        await call.fails(400, "INVALID_REQUEST")
