"""Who may call, and who sees what (seed 002 sections 1 and 3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import BASE, UNSET, HubApi, describe, ids_of, item, judge_error_shape
from contract_tests.checks import about, alone, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven

ENDPOINTS = {
    "submit": ("POST", "/jobs"),
    "list": ("GET", "/jobs"),
    "detail": ("GET", "/jobs/no-such-job"),
    "events": ("GET", "/jobs/no-such-job/events"),
    "cancel": ("POST", "/jobs/no-such-job/cancel"),
    "retry": ("POST", "/jobs/no-such-job/retry"),
    "batch": ("GET", "/batches/no-such-batch"),
    "cancel batch": ("POST", "/batches/no-such-batch/cancel"),
    "projects": ("GET", "/projects"),
    "overview": ("GET", "/overview"),
}
INTERNAL_KEY = "test-internal-key"
"""The service token that the Runtime API's builds are tested with."""
MIB = 2**20
WRONG = "not-the-key"


@requirement("HUB-AUTH-01")
@pytest.mark.parametrize("name", ENDPOINTS)
async def test_every_endpoint_is_guarded(api: HubApi, name: str) -> None:
    """The endpoint refuses a call without the key, and with the key does not refuse for the key's sake."""
    method, path = ENDPOINTS[name]
    body: Any = UNSET if method == "GET" else {}
    refusal = await api.raw(method, BASE + path, body=body, token=UNSET).refused()
    answer = await api.raw(method, BASE + path, body=body).answers()
    expect(answer.status not in (401, 403), "with the key neither 401 nor 403", describe(answer.response))
    expect(answer.status != refusal.status, f"another answer than without the key ({refusal.status})", answer.status)


@requirement("HUB-SSE-02")
async def test_a_stream_needs_the_key(api: HubApi, given: HubGiven) -> None:
    """The stream of a job that exists opens with the key, and is refused with another one or none."""
    job = await given.running_job()
    async with api.events(job) as stream:
        await stream.next()
    for token in (UNSET, f"{api.token}x"):
        await api.events(job, token=token).refused()


@alone
@requirement("HUB-AUTH-02")
async def test_a_key_has_a_default_callback(given: HubGiven) -> None:
    """A job without a `callbackUrl` is told at the default callback address of its key."""
    hook = given.hook()
    await given.default_callback("a", hook.url)
    await given.done_job()
    await hook.next()


@requirement("HUB-AUTH-03")
@pytest.mark.parametrize("name", ENDPOINTS)
async def test_all_paths_live_under_v1(api: HubApi, given: HubGiven, name: str) -> None:
    """The operation is there under `/v1`: with the key, for a job of the key, it succeeds."""
    job = await given.in_state("failed" if name == "retry" else "running")
    calls = {
        "submit": lambda: api.submit(item(job.project)),
        "list": api.jobs,
        "detail": lambda: api.job(job),
        "events": lambda: api.events(job),
        "cancel": lambda: api.cancel(job),
        "retry": lambda: api.retry(job),
        "batch": lambda: api.batch(job.batch),
        "cancel batch": lambda: api.cancel_batch(job.batch),
        "projects": api.projects,
        "overview": api.overview,
    }
    await calls[name]().succeeds()


def wrong_keys(token: str) -> dict[str, dict[str, Any]]:
    """Headers that name no key, or another one."""
    return {
        "missing": {"authorization": UNSET},
        "empty": {"authorization": ""},
        "empty token": {"authorization": "Bearer "},
        "wrong": {"authorization": f"Bearer {WRONG}"},
        "cut": {"authorization": f"Bearer {token[:-1]}"},
        "longer": {"authorization": f"Bearer {token}x"},
        "another case": {"authorization": f"Bearer {token.swapcase()}"},
        "another scheme": {"authorization": f"Basic {token}"},
        "another header": {"authorization": UNSET, "x-api-key": token},
    }


@requirement("HUB-AUTH-50")
@pytest.mark.parametrize("name", wrong_keys(""))
async def test_a_wrong_key_is_401(api: HubApi, name: str) -> None:
    """A missing or wrong key is 401 `unauthorized`, in the error shape."""
    await api.jobs(limit=1).with_headers(wrong_keys(api.token)[name]).fails(401, "unauthorized")


@requirement("HUB-AUTH-50")
async def test_a_key_in_the_query_is_no_key(api: HubApi) -> None:
    """The key is taken from its header alone: in the query, where it would show in logs, it opens nothing."""
    for parameter in ("token", "access_token", "api_key"):
        call = api.jobs(limit=1, **{parameter: api.token}).with_headers({"authorization": UNSET})
        await call.fails(401, "unauthorized")


@requirement("HUB-AUTH-51")
async def test_the_key_is_judged_first(api: HubApi) -> None:
    """Without the key it is 401, whatever else is wrong with the request."""
    text = {"content-type": "text/plain"}
    large = b" " * (24 * MIB) + b"{}"
    for call in (
        api.raw("GET", f"{BASE}/no/such/path", token=WRONG),
        api.raw("DELETE", f"{BASE}/jobs", token=WRONG),
        api.raw("OPTIONS", f"{BASE}/jobs", token=WRONG),
        api.raw("POST", f"{BASE}/jobs", body={}, token=WRONG, headers={"idempotency-key": "a b"}),
        api.raw("POST", f"{BASE}/jobs", content=b"{", token=WRONG),
        api.raw("POST", f"{BASE}/jobs", content=b"x", token=WRONG, headers=text),
        api.raw("POST", f"{BASE}/jobs", content=large, token=WRONG),
        api.raw("POST", f"{BASE}/jobs", body={"items": []}, token=WRONG),
        api.raw("GET", f"{BASE}/jobs?limit=0", token=WRONG),
        api.raw("GET", f"{BASE}/jobs/no-such-job", token=WRONG),
        api.raw("GET", f"{BASE}/jobs/no-such-job/events", token=WRONG),
        api.raw("POST", f"{BASE}/batches/no-such-batch/cancel", token=WRONG),
    ):
        await call.fails(401, "unauthorized")


@requirement("HUB-AUTH-51")
async def test_without_the_key_nothing_happens(api: HubApi, given: HubGiven) -> None:
    """A job that is there is 401 without the key, too, and is not cancelled."""
    job = await given.running_job()
    await api.job(job).with_headers({"authorization": UNSET}).fails(401, "unauthorized")
    await api.cancel(job, token=WRONG).fails(401, "unauthorized")
    detail = await given.detail(job)
    expect(detail["status"] == "running", "a job that is not cancelled", detail["status"], "/data/status")


@requirement("HUB-AUTH-52")
async def test_the_internal_service_key_opens_nothing(api: HubApi) -> None:
    """The service key of the internal endpoints, in its own header or as bearer token, is 401."""
    internal = {"x-internal-api-key": INTERNAL_KEY, "x-runtime-instance-id": "runtime-a"}
    await api.jobs(limit=1).with_headers({"authorization": UNSET, **internal}).fails(401, "unauthorized")
    await api.jobs(limit=1).with_headers({"authorization": f"Bearer {INTERNAL_KEY}"}).fails(401, "unauthorized")


@requirement("HUB-AUTH-53")
async def test_outside_v1_no_key_is_asked_for(api: HubApi) -> None:
    """A path outside `/v1` is not answered 401 for want of the key."""
    for path in ("/no-such-path", "/v1x/jobs", "/v2/jobs", "/jobs"):
        answer = await api.raw("GET", path, token=UNSET).answers()
        expect(answer.status != 401, "anything but 401", describe(answer.response))


@requirement("HUB-AUTH-54")
@pytest.mark.parametrize("name", ["detail", "events", "cancel", "retry"])
async def test_a_job_of_another_key_is_not_there(api: HubApi, given: HubGiven, name: str) -> None:
    """A job of another key is 404 `job_not_found` like one that does not exist, and stays as it is."""
    stranger = given.stranger
    job = await given.in_state("failed" if name == "retry" else "running")
    before = await given.detail(job)
    calls = {"detail": stranger.job, "events": stranger.events, "cancel": stranger.cancel, "retry": stranger.retry}
    await calls[name](job).fails(404, "job_not_found")
    after = await given.detail(job)
    for field in ("status", "attempt", "queuedAt", "finishedAt"):
        expect(
            after.get(field) == before.get(field), f"{field} {before.get(field)}", after.get(field), f"/data/{field}"
        )
    expect(
        (await api.job(job).succeeds(200)).data["id"] == job.id, "the job for its own key", "another one", "/data/id"
    )


@requirement("HUB-AUTH-55")
@pytest.mark.parametrize("name", ["summary", "cancel"])
async def test_a_batch_of_another_key_is_not_there(given: HubGiven, name: str) -> None:
    """A batch of another key is 404 `batch_not_found` like one that does not exist, and stays as it is."""
    stranger = given.stranger
    job = await given.running_job(batch=given.unique("batch"))
    call = stranger.batch(job.batch) if name == "summary" else stranger.cancel_batch(job.batch)
    await call.fails(404, "batch_not_found")
    detail = await given.detail(job)
    expect(detail["status"] == "running", "a job that is not cancelled", detail["status"], "/data/status")


@requirement("HUB-AUTH-56")
async def test_a_list_holds_no_job_of_another_key(api: HubApi, given: HubGiven) -> None:
    """However a stranger filters, a job of another key is not in the list; its own key finds it."""
    stranger = given.stranger
    job = await given.running_job(batch=given.unique("batch"))
    filters: list[dict[str, Any]] = [
        {},
        {"externalId": job.external_id},
        {"batchId": job.batch},
        {"projectId": job.project.id},
        {"nodeId": job.project.node.id},
        {"status": "running"},
    ]
    for query in filters:
        seen = ids_of((await stranger.jobs(limit=200, **query).succeeds(200)).entries)
        expect(job.id not in seen, f"a list by {query} without another key's job", f"{job.id} is in it")
    own = ids_of((await api.jobs(externalId=job.external_id).succeeds(200)).entries)
    with about("HUB-LIST-06", step="finding a job by its externalId"):
        expect(own == [job.id], f"[{job.id}] for its own key", own)


@requirement("HUB-AUTH-54", "HUB-AUTH-55")
async def test_what_another_key_has_is_answered_like_what_is_not_there(given: HubGiven) -> None:
    """The two answers differ in nothing but ids: a stranger can't tell that the job or the batch exists."""
    stranger, nobody = given.stranger, given.unique("nobody")
    job = await given.running_job(batch=given.unique("batch"))
    for rule, there, missing, id_ in (
        ("HUB-AUTH-54", stranger.job(job), stranger.job(nobody), job.id),
        ("HUB-AUTH-55", stranger.batch(job.batch), stranger.batch(nobody), job.batch),
    ):
        with about(rule):
            told, wanted = await there.refused(), await missing.refused()
            judge_error_shape(told)
            ours, others = _plain(told.fields, id_), _plain(wanted.fields, nobody)
            expect(told.status == wanted.status, str(wanted.status), told.status)
            expect(ours == others, f"the same but for the id: {others}", str(ours), "/error")


def _plain(body: dict[str, Any], id_: str) -> dict[str, str]:
    """An error without what differs by right."""
    return {name: str(value).replace(id_, "ID") for name, value in body.get("error", {}).items()}
