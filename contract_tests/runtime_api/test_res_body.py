"""What a result's body may hold, field by field (seed 003 section 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.checks import expect, requirement
from contract_tests.client import UNSET, RuntimeApi
from contract_tests.steps import shown_key

if TYPE_CHECKING:
    from contract_tests.given import Given

REQUIRED = ("runtimeInstanceId", "schemaVersion", "status", "validatedOutput", "attemptNo", "outputHash")
INTEGERS = ("inputTokens", "outputTokens", "totalTokens", "latencyMs")
LARGEST = 2**53 - 1
NO_COUNTS = {"negative": -1, "a fraction": 1.5, "true": True, "a string": "1", "a list": [1], "null": None}
ASTRAL = "\U0001f600"
"""One character, although it is two units of UTF-16 and four bytes of UTF-8."""


@requirement("RT-RES-65")
@pytest.mark.parametrize("name", REQUIRED)
async def test_a_required_field_is_missing(api: RuntimeApi, given: Given, name: str) -> None:
    """Without the field: 400 INVALID_REQUEST, and the same result with it is stored."""
    job = await given.running_job()
    await api.result(job, **{name: UNSET}).fails(400, "INVALID_REQUEST")
    await api.result(job).succeeds()


@requirement("RT-RES-65")
async def test_the_other_fields_can_be_left_out(api: RuntimeApi, given: Given) -> None:
    """A result with what is required alone is stored; so is one with an empty `usage`."""
    await api.result(await given.running_job()).succeeds()
    await api.result(await given.running_job(), usage={}).succeeds()


@requirement("RT-ERR-72")
async def test_null_is_a_wrong_type_in_a_result(api: RuntimeApi, given: Given) -> None:
    """null is refused for each field of a result but `rawOutput`, and for each number of `usage`."""
    job = await given.running_job()
    nulls: list[dict[str, Any]] = [{name: None} for name in (*REQUIRED, "validationErrors", "usage")]
    nulls += [{"usage": {name: None}} for name in (*INTEGERS, "costEstimate")]
    for fields in nulls:
        await api.result(job, **fields).fails(400, "INVALID_REQUEST")


@requirement("RT-ERR-60")
async def test_wrong_types_in_a_result_are_400(api: RuntimeApi, given: Given) -> None:
    """Wrong types of each field: 400 INVALID_REQUEST, and the job still takes its result."""
    job = await given.running_job()
    outputs: tuple[Any, ...] = ([], "text", 1, True)
    wrong: list[dict[str, Any]] = [{"validatedOutput": value} for value in outputs]
    wrong += [{"usage": []}, {"usage": "many"}, {"schemaVersion": 1}, {"runtimeInstanceId": ["runtime-a"]}]
    for fields in wrong:
        await api.result(job, **fields).fails(400, "INVALID_REQUEST")
    await api.result(job).succeeds()


@requirement("RT-ERR-62")
async def test_a_refused_result_changes_nothing(api: RuntimeApi, given: Given) -> None:
    """After 400s every column of the job is what it was, and no result is stored."""
    job = await given.running_job()
    before = await given.inspect(job)
    wrong: list[dict[str, Any]] = [{"outputHash": ""}, {"status": "failed"}, {"attemptNo": -1}]
    for fields in [*wrong, {"validatedOutput": None}]:
        await api.result(job, **fields).fails(400, "INVALID_REQUEST")
    await given.unchanged(job, before)


@requirement("RT-ERR-63")
async def test_unknown_properties_of_a_result_are_ignored(api: RuntimeApi, given: Given) -> None:
    """A newer Runtime may send more, in the body and in `usage`: it is stored."""
    job = await given.running_job()
    await api.result(job, traceId="t-1", usage={"inputTokens": 1, "cachedTokens": 7}, more={"a": [None]}).succeeds()


RAW: dict[str, Any] = {
    "null": None,
    "a number": 0.5,
    "a string": "no JSON came",
    "an empty string": "",
    "false": False,
    "a list": [1, [None], "x"],
    "an object": {"": {"deep": [{"a": None}]}},
}


@requirement("RT-RES-66")
@pytest.mark.parametrize("name", RAW)
async def test_raw_output_is_any_json(api: RuntimeApi, given: Given, name: str) -> None:
    """`rawOutput` of any kind is accepted: it is stored."""
    await api.result(await given.running_job(), rawOutput=RAW[name]).succeeds()


@requirement("RT-ERR-73")
async def test_null_is_allowed_inside_a_result(api: RuntimeApi, given: Given) -> None:
    """null as `rawOutput`, and inside `rawOutput`, `validatedOutput` and `validationErrors`: it is stored."""
    output = {"riskLevel": None, "b": [None]}
    call = api.result(await given.running_job(), rawOutput={"a": None}, validatedOutput=output, validationErrors=[None])
    await call.succeeds()
    await api.result(await given.running_job(), rawOutput=None).succeeds()


@requirement("RT-RES-67")
@pytest.mark.parametrize("status", ["failed", "success", "SUCCEEDED", "succeeded ", "", True])
async def test_another_status_is_400(api: RuntimeApi, given: Given, status: Any) -> None:
    """A `status` other than `succeeded`: 400 INVALID_REQUEST."""
    await api.result(await given.running_job(), status=status).fails(400, "INVALID_REQUEST")


HASHES = {
    "1 character": "h",
    "256 characters": "h" * 256,
    "256 characters of two units": ASTRAL * 256,
    "a control character": "a\tb",
    "separators": "a:1:b",
}
NO_HASHES = {
    "empty": "",
    "257 characters": "h" * 257,
    "257 characters of two units": ASTRAL * 257,
    "a number": 1,
    "a list": [],
}


@requirement("RT-RES-68")
@pytest.mark.parametrize("name", HASHES)
async def test_a_hash_has_1_to_256_characters(api: RuntimeApi, given: Given, name: str) -> None:
    """An outputHash within its limits is stored, and the same is known again."""
    job, hash_ = await given.running_job(), HASHES[name]
    await api.result(job, hash=hash_).succeeds()
    await api.result(job, hash=hash_).succeeds()


@requirement("RT-RES-68")
@pytest.mark.parametrize("name", NO_HASHES)
async def test_another_hash_is_400(api: RuntimeApi, given: Given, name: str) -> None:
    """An outputHash outside its limits: 400 INVALID_REQUEST."""
    await api.result(await given.running_job(), hash=NO_HASHES[name]).fails(400, "INVALID_REQUEST")


@requirement("RT-RES-69")
@pytest.mark.parametrize("name", NO_COUNTS)
async def test_counts_are_integers_not_negative(api: RuntimeApi, given: Given, name: str) -> None:
    """Anything else as attemptNo, inputTokens, outputTokens, totalTokens or latencyMs: 400 INVALID_REQUEST."""
    job = await given.running_job()
    await api.result(job, attempt=NO_COUNTS[name]).fails(400, "INVALID_REQUEST")
    for field in INTEGERS:
        await api.result(job, usage={field: NO_COUNTS[name]}).fails(400, "INVALID_REQUEST")


@requirement("RT-RES-69", "RT-ERR-69")
async def test_counts_may_be_zero_or_written_as_1_0(api: RuntimeApi, given: Given) -> None:
    """0 and 1.0 are accepted in each of the five, and 0.0 is the attempt 0."""
    await api.result(await given.running_job(), usage=dict.fromkeys(INTEGERS, 0)).succeeds()
    job = await given.running_job()
    answer = await api.result(job, attempt=0.0, usage=dict.fromkeys(INTEGERS, 1.0)).succeeds()
    key = shown_key(answer)
    expect("0.0" not in key.removeprefix(job.id), "a key with attempt 0", key, "/resultIdempotencyKey")


@requirement("RT-ERR-71")
async def test_the_largest_integer_is_accepted_in_a_result(api: RuntimeApi, given: Given) -> None:
    """2^53-1 as attemptNo and as each number of `usage`: stored, and shown exactly where it is shown."""
    job = await given.running_job()
    answer = await api.result(job, attempt=LARGEST, usage=dict.fromkeys(INTEGERS, LARGEST)).succeeds()
    key = shown_key(answer)
    expect(not key or "9007199254740991" in key, "a key with attempt 9007199254740991", key, "/resultIdempotencyKey")
    await api.result(job, attempt=LARGEST).succeeds()


@requirement("RT-RES-70")
async def test_a_cost_is_a_number_from_0_on(api: RuntimeApi, given: Given) -> None:
    """`usage.costEstimate` may be 0, a whole number or a fraction; negative, a string, a truth value: 400."""
    job = await given.running_job()
    for value in (-0.01, -1, "3", True, [3]):
        await api.result(job, usage={"costEstimate": value}).fails(400, "INVALID_REQUEST")
    for value in (0, 3, 0.000125, 12.5):
        await api.result(await given.running_job(), usage={"costEstimate": value}).succeeds()


@requirement("RT-RES-71")
async def test_validation_errors_are_a_list(api: RuntimeApi, given: Given) -> None:
    """`validationErrors` may be an empty list or one of anything; no list: 400."""
    job = await given.running_job()
    wrong: list[Any] = [{}, "none", 0, False]
    for value in wrong:
        await api.result(job, validationErrors=value).fails(400, "INVALID_REQUEST")
    for errors in ([], ["riskLevel is missing", {"path": "/a", "found": 1}, 2]):
        await api.result(await given.running_job(), validationErrors=errors).succeeds()
