"""In which order a request is judged, and what becomes of bodies that are no good (seed 002 section 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import BASE, HubApi, describe, item
from contract_tests.checks import CheckSkipped, expect, requirement

if TYPE_CHECKING:
    from collections.abc import Callable

    from contract_tests.agent_hub.given import HubGiven

MIB = 2**20
TEXT = {"content-type": "text/plain"}


async def body_for(given: HubGiven, **fields: Any) -> bytes:
    """A right submission's body."""
    return json.dumps({"items": [item((await given.project()).id, **fields)]}).encode()


@requirement("HUB-ERR-59")
@pytest.mark.parametrize("media", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
async def test_another_media_type_is_415(api: HubApi, given: HubGiven, media: str) -> None:
    """A submission that is not JSON by its content type: 415, even where its text is JSON; nothing is queued."""
    task = given.unique("task")
    content = await body_for(given, externalId=task)
    call = api.raw("POST", f"{BASE}/jobs", content=content, headers={"content-type": media})
    await call.fails(415, "unsupported_media_type")
    entries = (await api.jobs(externalId=task).succeeds(200)).entries
    expect(entries == [], "no job of a refused submission", str(len(entries)), "/data/items")
    await call.with_headers({"content-type": "application/json; charset=utf-8"}).succeeds(202)


@requirement("HUB-ERR-60")
async def test_no_other_operation_judges_the_media_type(api: HubApi, given: HubGiven) -> None:
    """Whatever content type a cancel, a retry or a reading call names, it is not refused for it."""
    job = await given.running_job(batch=given.unique("batch"))
    for call in (
        api.jobs(limit=1),
        api.job(job),
        api.batch(job.batch),
        api.projects(),
        api.overview(),
        api.cancel(job, content=b"x"),
        api.retry(job, content=b"x"),
        api.cancel_batch(job.batch, content=b"x"),
    ):
        await call.with_headers(TEXT).succeeds(200)


BODIES = {
    "an empty object": b"{}",
    "a list": b"[1]",
    "unknown fields": b'{"reason": "by hand", "force": true}',
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe",
    "a mebibyte": b" " * MIB,
}


@requirement("HUB-ERR-61")
@pytest.mark.parametrize("name", BODIES)
async def test_cancel_and_retry_ignore_a_body(api: HubApi, given: HubGiven, name: str) -> None:
    """Whatever body comes with a cancel or a retry, it does what it does without."""
    job = await given.running_job(batch=given.unique("batch"))
    await api.cancel(job, content=BODIES[name]).succeeds(200)
    await given.until(job, "cancelled", seconds=0)
    await api.retry(job, content=BODIES[name]).succeeds(200)
    await api.cancel_batch(job.batch, content=BODIES[name]).succeeds(200)
    await given.until(job, "cancelled", seconds=0)


def padded(content: bytes, size: int) -> bytes:
    """The same JSON with spaces, exactly ``size`` bytes."""
    return content + b" " * (size - len(content))


async def too_large(api: HubApi, project: str) -> bytes:
    """A body that the build refuses for its size, well-formed, of an item that it would refuse for its project."""
    content = json.dumps({"items": [item(project)]}).encode()
    for mebibytes in (24, 48, 96):
        large = padded(content, mebibytes * MIB)
        answer = await api.raw("POST", f"{BASE}/jobs", content=large).answers()
        if answer.status != 400:
            expect(answer.status == 413, "413 (or 400, the size being accepted)", describe(answer.response))
            return large
    raise CheckSkipped("the build accepts bodies of 96 MiB")


@requirement("HUB-ERR-62")
async def test_a_body_too_large_is_413(api: HubApi, given: HubGiven) -> None:
    """A body that the build does not accept for its size: 413 `payload_too_large`."""
    large = await too_large(api, given.unique("no-such-project"))
    await api.raw("POST", f"{BASE}/jobs", content=large).fails(413, "payload_too_large")


@requirement("HUB-ERR-63")
async def test_a_body_of_20_mebibytes_is_accepted(api: HubApi, given: HubGiven) -> None:
    """A body of exactly 20 MiB is accepted."""
    content = padded(await body_for(given), 20 * MIB)
    await api.raw("POST", f"{BASE}/jobs", content=content).succeeds(202)


MALFORMED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut off": lambda good: good[:-2],
    "a comma too many": lambda good: good[:-1] + b",}",
    "a comma too many in a list": lambda good: good[:-2] + b",]}",
    "quotes": lambda good: good.replace(b'"', b"'"),
    "a name without quotes": lambda good: good.replace(b'"items"', b"items"),
    "a comment": lambda good: good + b" // a comment",
    "no JSON": lambda _: b"nonsense",
    "NaN": lambda good: good.replace(b'"prompt"', b'"metadata": NaN, "prompt"'),
    "Infinity": lambda good: good.replace(b'"prompt"', b'"metadata": [-Infinity], "prompt"'),
    "a leading zero": lambda good: good.replace(b'"prompt"', b'"priority": 007, "prompt"'),
    "two values": lambda good: good + b" {}",
    "10000 deep": lambda _: b"[" * 10_000 + b"]" * 10_000,
    "not UTF-8": lambda good: good.replace(b"TODO", b"\xff\xfe"),
    "a control character": lambda good: good.replace(b"TODO", b"\x01"),
}
"""What makes a submission one that is no JSON, though somebody who is kind enough could read most of them."""


@requirement("HUB-ERR-64")
@pytest.mark.parametrize("name", MALFORMED)
async def test_malformed_json_is_400(api: HubApi, given: HubGiven, name: str) -> None:
    """A submission that is right but for being well-formed JSON: 400 `invalid_request`, never a 5xx."""
    good = await body_for(given, prompt="look for TODO in src")
    await api.raw("POST", f"{BASE}/jobs", content=MALFORMED[name](good)).fails(400, "invalid_request")


@requirement("HUB-ERR-65")
async def test_path_method_and_key_form_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """Path before method, method before the form of `Idempotency-Key`, that before the media type."""
    ill_formed = {"idempotency-key": "two words"}
    await api.raw("DELETE", f"{BASE}/no-such-path", headers=ill_formed).fails(404, "not_found")
    await api.raw("DELETE", f"{BASE}/jobs", headers=ill_formed).fails(405, "method_not_allowed")
    await api.raw("DELETE", f"{BASE}/jobs/no-such-job").fails(405, "method_not_allowed")
    content = json.dumps({"items": [item(await given.some_project())]}).encode()
    call = api.raw("POST", f"{BASE}/jobs", content=content, headers={**ill_formed, **TEXT})
    await call.fails(400, "invalid_request")


@requirement("HUB-ERR-65")
async def test_media_type_size_and_syntax_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """Media type before size, size before JSON syntax."""
    large = await too_large(api, given.unique("no-such-project"))
    await api.raw("POST", f"{BASE}/jobs", content=large, headers=TEXT).fails(415, "unsupported_media_type")
    await api.raw("POST", f"{BASE}/jobs", content=b"{" + large[1:-1] + b"{").fails(413, "payload_too_large")


@requirement("HUB-ERR-65")
async def test_syntax_look_up_and_form_come_in_this_order(api: HubApi, given: HubGiven) -> None:
    """JSON syntax before the look-up of a used `Idempotency-Key`, that before the other rules of the body."""
    key, project = given.unique("order"), await given.project()
    await given.accepted(item(project), key=key)
    used = {"idempotency-key": key}
    await api.raw("POST", f"{BASE}/jobs", content=b'{"items": [', headers=used).fails(400, "invalid_request")
    await api.submit(item(project, kind="neither"), key=key).fails(422, "idempotency_key_reused")
    await api.submit(item(given.unique("no-such-project")), key=key).fails(422, "idempotency_key_reused")


AI_FIELDS = ("kind", "projectId", "nodeId", "prompt", "mode", "priority", "maxAttempts", "externalId", "callbackUrl")
SCRIPT_FIELDS = ("command", "timeoutSeconds")


@requirement("HUB-ERR-66")
@pytest.mark.parametrize("name", [*AI_FIELDS, *SCRIPT_FIELDS])
async def test_null_is_refused_in_an_item(api: HubApi, given: HubGiven, name: str) -> None:
    """A field of an item that is null: 400 `invalid_request`, though it may be left out."""
    kind = "script" if name in SCRIPT_FIELDS else "ai"
    await api.submit({**item(await given.some_project(), kind=kind), name: None}).fails(400, "invalid_request")


@requirement("HUB-ERR-66")
async def test_null_is_refused_in_the_body(api: HubApi, given: HubGiven) -> None:
    """A `batchId` or `items` that is null, an item that is, or a body that is: 400 `invalid_request`."""
    good = item(await given.some_project())
    bodies: list[Any] = [{"items": [good], "batchId": None}, {"items": None}, {"items": [None]}, None]
    for body in bodies:
        await api.raw("POST", f"{BASE}/jobs", body=body).fails(400, "invalid_request")


@requirement("HUB-ERR-66")
async def test_null_is_metadata_like_any_other(api: HubApi, given: HubGiven) -> None:
    """A `metadata` of null is not refused."""
    await api.submit(item(await given.project(), metadata=None)).succeeds(202)
