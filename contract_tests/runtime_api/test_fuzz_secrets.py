"""Generated requests that carry a key that was handed out, at any place: none is answered with it."""

from __future__ import annotations

import base64
import copy
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from contract_tests.canary import RESOLVE, Canary, key_in
from contract_tests.checks import CheckSkipped, expect, fuzz, last, requirement
from contract_tests.client import BASE, Call, RuntimeApi, log_entry
from contract_tests.steps import USER_MODE, keyed_job

if TYPE_CHECKING:
    from contract_tests.client import JobRef
    from contract_tests.given import Given

ME = {"runtimeInstanceId": "runtime-a"}
IDS = ("runtimeInstanceId", "jobId", "credentialId", "traceId", "schemaVersion", "outputHash")
"""What an answer may repeat by right."""
REQUESTS = 120


def valid_bodies(job: JobRef, credential: str) -> dict[str, Any]:
    """A body that is right for each operation that has one, by its path."""
    path = job.path
    log = log_entry(job, errorMessage="timeout", credentialId=credential, traceId="t", promptName="p")
    result = {"schemaVersion": "no_such_version", "status": "succeeded", "attemptNo": 0, "outputHash": "h"}
    return {
        f"{BASE}/jobs/poll": {**ME, "supportedJobTypes": ["quiz_generation"], "capabilities": {}, "limit": 1},
        f"{path}/lock": {**ME},
        f"{path}/heartbeat": {**ME},
        f"{path}/fail": {**ME, "errorCode": "E", "errorMessage": "m", "retryable": True, "rawError": "r"},
        f"{path}/result": {**ME, **result, "validatedOutput": {"a": [1]}, "rawOutput": {"b": {}}, "usage": {}},
        RESOLVE: {"jobId": job.id, "apiKeyMode": USER_MODE, "credentialId": credential, "provider": "deepseek"},
        f"{BASE}/invocation-logs": {"logs": [log]},
    }


def with_secret(body: Any, secret: str, choose: random.Random) -> Any:
    """The body with the secret as one value more, or in the place of one that is no id; alone, in a text, or deep."""
    body = copy.deepcopy(body)
    forms: list[Any] = [secret, f"401 for {secret}: no such key", [secret], {"headers": {"authorization": [secret]}}]
    value, node = choose.choice(forms), choose.choice(nodes(body))
    if isinstance(node, list):
        node[choose.randrange(len(node))] = value
    else:
        node[choose.choice([*(name for name in node if name not in IDS), "apiKey", "APIKEY", "more"])] = value
    return body


def nodes(value: Any) -> list[Any]:
    """Every object and list within a value that is not empty, itself included."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if items else []) + [node for item in items for node in nodes(item)]


def generated(api: RuntimeApi, bodies: dict[str, Any], key: str, choose: random.Random) -> Call:
    """A request with the key, or with an encoded form of it, in its body; some are no JSON."""
    secret = choose.choice([key, key, key, quote(f"Bearer {key}"), base64.b64encode(f"k:{key}".encode()).decode()])
    path, body = choose.choice(list(bodies.items()))
    changed = with_secret(body, secret, choose)
    if choose.randrange(8) == 0:
        return api.raw("POST", path, content=repr(changed).encode())
    return api.raw("POST", path, body=changed)


@fuzz
@requirement("RT-CRED-08", "RT-CRED-09")
async def test_a_key_at_any_place_is_not_repeated(api: RuntimeApi, given: Given, seed: int) -> None:
    """Generated requests with a resolved key at one place each: no answer repeats it, in whatever encoding."""
    job, id_, key = await keyed_job(given, maxRetryCount=10 * REQUESTS)
    await api.resolve(job, mode=USER_MODE, credential=id_).succeeds()
    bodies, choose = valid_bodies(job, id_), random.Random(seed)  # noqa: S311
    for number in range(REQUESTS):
        if number % 10 == 0:
            await api.lock(job).answers()  # a failure gives it back
        call = generated(api, bodies, key, choose)
        place = key_in(key, call.request, (await call.answers()).response)
        expect(place is None, "an answer without the key", f"it is repeated: {place}")


@last
@fuzz
@requirement("RT-CRED-08", "RT-CRED-09")
async def test_no_generated_request_brings_a_key_to_light(canary: Canary) -> None:
    """Each key that was handed out is searched in every answer to a generated request."""
    leaks = [leak.told for leak in canary.leaks() if leak.place == "answer"]
    if not canary.keys:
        raise CheckSkipped("no key was handed out that can be told from other text")
    expect(not leaks, "no answer but resolve's own with a key", "; ".join(leaks[:3]))
