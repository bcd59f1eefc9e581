"""Generated requests: Schemathesis over the served operations, with jobs put into every state first.

Valid requests are never answered 5xx or against the schema, invalid ones are refused in the error shape. Owner ids come
from two names, so that a Runtime meets the jobs that it holds.
"""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import hypothesis
import jsonschema_rs
import pytest
import schemathesis
from schemathesis.generation import GenerationMode

import openapi
from contract_tests.checks import CheckFailed, expect, fuzz, requirement
from contract_tests.client import BASE, KEY_HEADER, Answer, RuntimeApi, describe, judge_error_shape
from contract_tests.transport import Request, Response
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract_tests.client import JobRef
    from contract_tests.given import Given

OPERATIONS = ("pollJobs", "lockJob", "heartbeatJob")
INSTANCES = ("runtime-a", "runtime-b")
POSITIVE, NEGATIVE = 30, 60
REFUSALS = (400, 401, 404, 405, 409, 413, 415, 422)


async def jobs_in_every_state(given: Given) -> list[JobRef]:
    """One job in each state that provider states and the three operations can reach."""
    make = (given.job, given.locked_job, given.running_job, given.cancelled_job)
    return [await state() for state in make]


def generated(operation_id: str, mode: GenerationMode, seed: int, most: int, judge: Callable[[Any], None]) -> None:
    """Let Schemathesis make cases for an operation and judge each; the same cases for the same seed."""
    document = {
        name: value for name, value in openapi.load("runtime-api").document.items() if not name.startswith("x-")
    }
    schema = schemathesis.openapi.from_dict(document)
    operation = schema.find_operation_by_id(operation_id)
    failures: list[Exception] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=most,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        # A build has state: what failed once need not fail again. The first failure is the one to be told.
        if failures:
            raise failures[0]
        try:
            judge(case)
        except Exception as failure:
            failures.append(failure)
            raise

    try:
        run()
    except Exception:
        if failures:
            raise failures[0] from None
        raise


_GENERATING = asyncio.Lock()


async def one_by_one(
    operation_id: str, mode: GenerationMode, seed: int, most: int, judge: Callable[[Any], None]
) -> None:
    """Generate in a thread, one check after the other: Hypothesis holds state that threads must not share."""
    async with _GENERATING:
        await asyncio.to_thread(generated, operation_id, mode, seed, most, judge)


def request_of(case: Any, key: str, path: str) -> Request:
    """The case as a request of ours, for a job that exists."""
    prepared = case.as_transport_kwargs(base_url="http://target")
    headers = {str(name).lower(): str(value) for name, value in (prepared.get("headers") or {}).items()}
    ours = {name: value for name, value in headers.items() if name in ("content-type", "x-runtime-instance-id")}
    body = prepared.get("json", prepared.get("data"))
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    if content and "content-type" not in ours:
        ours["content-type"] = "application/json"
    safe = {name: value for name, value in ours.items() if all(31 < ord(char) < 256 for char in value)}
    return Request("POST", path, {KEY_HEADER: key, **safe}, content)


def path_of(operation_id: str, jobs: list[JobRef], choose: random.Random) -> str:
    """The operation's path, for one of the jobs."""
    if operation_id == "pollJobs":
        return f"{BASE}/jobs/poll"
    return f"{BASE}/jobs/{choose.choice(jobs).id}/{'lock' if operation_id == 'lockJob' else 'heartbeat'}"


class Sender:
    """Sends requests from the generating thread through the transport of the event loop."""

    def __init__(self, api: RuntimeApi) -> None:
        self.api, self.loop = api, asyncio.get_running_loop()

    def __call__(self, request: Request) -> Response:
        """Send one request and wait for its answer."""
        return asyncio.run_coroutine_threadsafe(self.api.transport.send(request), self.loop).result()


def owned(case: Any, choose: random.Random) -> None:
    """Let a valid case be sent by one of two instances, so that owner ids meet."""
    if isinstance(case.body, dict):
        case.body["runtimeInstanceId"] = choose.choice(INSTANCES)


@fuzz
@requirement("RT-ERR-01", "RT-POLL-09", "RT-LOCK-04")
@pytest.mark.parametrize("operation_id", OPERATIONS)
async def test_valid_requests_are_answered_as_documented(
    api: RuntimeApi, given: Given, seed: int, operation_id: str
) -> None:
    """Generated valid requests: a documented status, and a body that is of its schema."""
    jobs, choose, send = await jobs_in_every_state(given), random.Random(seed), Sender(api)  # noqa: S311
    contract = openapi.load("runtime-api")
    operation = contract.operations[operation_id]
    seen: set[int] = set()

    def judge(case: Any) -> None:
        owned(case, choose)
        response = send(request_of(case, api.key, path_of(operation_id, jobs, choose)))
        documented = response.status in operation.statuses and response.status not in (400, 401, 413, 415, 500, 501)
        expect(documented, f"a status that {operation_id} documents for a valid request", describe(response))
        seen.add(response.status)
        if response.status >= 400:
            judge_error_shape(Answer(response))
            return
        content = contract.resolve(operation.document["responses"][str(response.status)]).get("content")
        if content:
            schema = to_json_schema(content["application/json"]["schema"], contract.document)
            for error in jsonschema_rs.Draft202012Validator(schema).iter_errors(response.json):
                pointer = "".join(f"/{token}" for token in error.instance_path)
                raise CheckFailed("a body of the documented schema", f"{response.status}: {error.message}", pointer)

    await one_by_one(operation_id, GenerationMode.POSITIVE, seed, POSITIVE, judge)
    good = {"pollJobs": {200}, "lockJob": {200, 409}, "heartbeatJob": {204, 409}}[operation_id]
    expect(good <= seen, f"all of {sorted(good)} among the answers", f"only {sorted(seen)}")


@fuzz
@requirement("RT-ERR-57", "RT-ERR-60", "RT-ERR-62", "RT-ERR-66")
@pytest.mark.parametrize("operation_id", OPERATIONS)
async def test_invalid_requests_are_refused(api: RuntimeApi, given: Given, seed: int, operation_id: str) -> None:
    """Generated invalid requests: refused in the error shape, never 5xx, never a success, and no job changes."""
    jobs, choose, send = await jobs_in_every_state(given), random.Random(seed), Sender(api)  # noqa: S311
    before = [await given.inspect(job) for job in jobs] if "inspect-job" in given.states.offered else []
    contract = openapi.load("runtime-api")
    body = contract.operations[operation_id].document["requestBody"]["content"]["application/json"]["schema"]
    valid_body = jsonschema_rs.Draft202012Validator(to_json_schema(body, contract.document))
    refused: list[int] = []

    def judge(case: Any) -> None:
        request = request_of(case, api.key, path_of(operation_id, jobs, choose))
        if is_valid(request, valid_body):
            return
        response = send(request)
        expect(response.status in REFUSALS, "a refusal (4xx)", describe(response))
        judge_error_shape(Answer(response))
        refused.append(response.status)

    await one_by_one(operation_id, GenerationMode.NEGATIVE, seed, NEGATIVE, judge)
    expect(len(refused) > NEGATIVE // 4, "many invalid requests were made", f"{len(refused)}")
    for job, row in zip(jobs, before, strict=False):
        await given.unchanged(job, row)


def is_valid(request: Request, body: jsonschema_rs.Draft202012Validator) -> bool:
    """Whether a case that was meant to be invalid is none after all (the invalid part did not survive our sending)."""
    instance = request.headers.get("x-runtime-instance-id", "")
    if not 1 <= len(instance.strip()) <= 128:
        return False
    try:
        return bool(body.is_valid(json.loads(request.content)))
    except ValueError:
        return False
