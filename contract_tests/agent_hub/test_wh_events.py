"""Which webhooks a job sends, where to, and what they say (seed 002 section 1, decisions B7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import HubApi, item
from contract_tests.agent_hub.receiver import WITHIN
from contract_tests.agent_hub.shapes import FIELDS, iso
from contract_tests.agent_hub.webhooks import (
    BATCH,
    CANCELLED,
    COMPLETED,
    DONE,
    FAILED,
    FATAL,
    TYPES,
    begins,
    cancel,
    comes,
    ends,
    event_of,
    events,
    names,
    only,
    project,
    retry,
    settle,
)
from contract_tests.checks import CheckFailed, about, alone, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.receiver import Answered, Delivery, Hook

BATCH_FIELDS = ("batchId", "total", "counts", "progress", "estimatedRemainingMs", "byProject", "failures")
RETRIED = {
    "llm_error": {"afterSeconds": 0, "result": "failed", "failureType": "llm_error", "retriable": True},
    "node_lost": {"afterSeconds": 0, "result": "node_lost"},
}
"""Attempts that fail and are retried."""


async def is_named(hook: Hook, id_: str, who: str) -> None:
    """Something comes to a hook that names a job, whatever its form."""
    found = await hook.receiver.wait(lambda: any(names(one, id_) for one in hook.deliveries), WITHIN)
    expect(found, f"a webhook to {who} that names the job {id_}", hook.so_far())


def is_not_named(hook: Hook, id_: str, who: str) -> None:
    """Nothing came to a hook that names a job."""
    found = [one for one in hook.deliveries if names(one, id_)]
    expect(not found, f"no webhook to {who} that names the job {id_}", f"{len(found)}; {hook.so_far()}")


@requirement("HUB-WH-01")
async def test_completion_is_told_at_the_callback(given: HubGiven) -> None:
    """A job that is done is told of at its callback address."""
    hook = given.hook()
    job = await ends(given, hook)
    await is_named(hook, job.id, "its callbackUrl")


@alone
@requirement("HUB-FIELD-24")
async def test_a_callback_url_overrides_the_default(given: HubGiven) -> None:
    """A job with a `callbackUrl` is told of there and not at its key's default."""
    default, own = given.hook(), given.hook()
    await given.default_callback("a", default.url)
    job = await ends(given, own)
    await is_named(own, job.id, "its callbackUrl")
    await settle(given)
    is_not_named(default, job.id, "the key's default")


@alone
@requirement("HUB-AUTH-02")
async def test_each_key_has_a_default_of_its_own(given: HubGiven) -> None:
    """Jobs without a `callbackUrl` are told of at their own key's default, not at another key's."""
    stranger, ours, theirs = given.stranger, given.hook(), given.hook()
    await given.default_callback("a", ours.url)
    await given.default_callback("b", theirs.url)
    on = await project(given)
    (mine,), (other,) = await given.submitted(item(on)), await given.submitted(item(on), api=stranger)
    await begins(given)
    for hook, job, who in ((ours, mine, "the first key's default"), (theirs, other, "the second key's default")):
        await is_named(hook, job, who)
    await settle(given)
    is_not_named(ours, other, "another key's default")
    is_not_named(theirs, mine, "another key's default")


@alone
@requirement("HUB-AUTH-02")
async def test_without_an_address_nothing_is_told(given: HubGiven) -> None:
    """A default that was removed is not used any more, nor is another key's."""
    removed, theirs = given.hook(), given.hook()
    await given.default_callback("b", theirs.url)
    await given.default_callback("a", removed.url)
    await given.default_callback("a", None)
    job = await ends(given, None)
    await settle(given)
    is_not_named(removed, job.id, "a default that was removed")
    is_not_named(theirs, job.id, "another key's default")


@requirement("HUB-WH-50")
async def test_done_is_told_once(api: HubApi, given: HubGiven) -> None:
    """A job that is done sends `job.completed`, once; a cancel that is refused sends nothing."""
    hook = given.hook()
    job = await ends(given, hook)
    await comes(hook, COMPLETED, job.id)
    with about("HUB-CANCEL-05", step="cancelling a finished job"):
        await api.cancel(job).refused()
    await only(given, hook, job.id, COMPLETED)


@requirement("HUB-WH-51")
async def test_a_final_failure_is_told_once(api: HubApi, given: HubGiven) -> None:
    """A job that fails for good sends `job.failed`, once; a cancel that is refused sends nothing."""
    hook = given.hook()
    job = await ends(given, hook, "failed")
    await comes(hook, FAILED, job.id)
    with about("HUB-CANCEL-05", step="cancelling a finished job"):
        await api.cancel(job).refused()
    await only(given, hook, job.id, FAILED)


@requirement("HUB-WH-51")
@pytest.mark.parametrize("failure", RETRIED)
async def test_a_failure_that_is_retried_is_not_told(given: HubGiven, failure: str) -> None:
    """A failure with a retry to come sends nothing; what the retry ends with is told alone."""
    hook, on = given.hook(), await project(given, RETRIED[failure], DONE)
    job = await given.job(on, callbackUrl=hook.url)
    if failure == "node_lost":
        await given.clock.advance(given.timing.node_lost)
    detail = await given.until(job, "failed")
    with about("HUB-FAIL-02" if failure == "node_lost" else "HUB-FAIL-03", step="a failure that is retried"):
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
    await settle(given)
    is_not_named(hook, job.id, "its callbackUrl while a retry is to come")
    await given.clock.advance(given.timing.backoff[0])
    await given.until(job, "done")
    await comes(hook, COMPLETED, job.id)
    await only(given, hook, job.id, COMPLETED)


@requirement("HUB-WH-51")
async def test_only_the_last_failure_is_told(given: HubGiven) -> None:
    """A job whose attempts run out sends `job.failed` with the last one, and nothing before."""
    hook, on = given.hook(), await project(given, RETRIED["llm_error"])
    job = await given.job(on, callbackUrl=hook.url, maxAttempts=2)
    await given.until(job, "failed")
    await given.clock.advance(given.timing.backoff[0])
    delivery = await comes(hook, FAILED, job.id)
    came = delivery.data.get("attempt")
    expect(came == 2, "`job.failed` of attempt 2", f"attempt {json.dumps(came)}", "/data/attempt")
    await only(given, hook, job.id, FAILED)


@requirement("HUB-WH-52")
@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
async def test_cancelling_is_told_once(api: HubApi, given: HubGiven, state: str) -> None:
    """A job that is cancelled sends `job.cancelled`; cancelling it again, alone or with its batch, sends nothing."""
    hook = given.hook()
    job = await given.in_state(state, callbackUrl=hook.url)
    await cancel(given, job)
    await comes(hook, CANCELLED, job.id)
    with about("HUB-CANCEL-05", step="cancelling a finished job"):
        await api.cancel(job).refused()
    with about("HUB-BATCH-16", step="cancelling a batch"):
        await api.cancel_batch(job.batch).succeeds()
    await only(given, hook, job.id, CANCELLED)


@requirement("HUB-WH-50", "HUB-WH-52")
async def test_a_late_end_of_a_cancelled_job_is_not_told(given: HubGiven) -> None:
    """What a node reports of a round that was cancelled meanwhile sends nothing."""
    hook, on = given.hook(), await project(given, {"afterSeconds": 5, "result": "done"})
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "running")
    await cancel(given, job)
    await comes(hook, CANCELLED, job.id)
    await given.clock.advance(6)
    await only(given, hook, job.id, CANCELLED)


@requirement("HUB-WH-50", "HUB-WH-51")
async def test_a_retry_by_hand_is_told_of_anew(given: HubGiven) -> None:
    """A job that failed, was retried by hand and is done sent an event for each of its ends, none for the retry."""
    hook, on = given.hook(), await project(given, FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "failed")
    await comes(hook, FAILED, job.id)
    await given.script(on, DONE)
    await retry(given, job)
    await given.until(job, "done")
    await comes(hook, COMPLETED, job.id)
    await only(given, hook, job.id, FAILED, COMPLETED)


@requirement("HUB-WH-53")
async def test_the_form_of_a_webhook(given: HubGiven) -> None:
    """A `POST` of JSON with `type`, `timestamp` (an instant) and `data` (an object), of a job as of a batch."""
    hook = given.hook()
    job = await ends(given, hook)
    for delivery in (await comes(hook, COMPLETED, job.id), await comes(hook, BATCH, job.batch)):
        expect(delivery.method == "POST", "POST", delivery.method)
        content_type = delivery.headers.get("content-type", "left out")
        media = content_type.partition(";")[0].strip().lower()
        expect(media == "application/json", "content-type application/json", content_type, "content-type")
        expect(isinstance(delivery.data, dict), "`data`, an object", delivery.body[:200], "/data")
        judge_instant(delivery)


def judge_instant(delivery: Delivery) -> None:
    """The ``timestamp`` of an event is an instant."""
    try:
        iso(delivery.json.get("timestamp"))
    except CheckFailed as failure:
        raise CheckFailed(failure.expected, failure.actual, "/timestamp") from None


def read_back(api: HubApi) -> Any:
    """Reads, while a webhook waits for its answer, what it tells of: status and JSON."""

    async def read(delivery: Delivery) -> tuple[int, Any]:
        kind, id_ = event_of(delivery)
        answer = await (api.batch(str(id_)) if kind == BATCH else api.job(str(id_))).answers()
        return answer.status, answer.json

    return read


async def same(api: HubApi, answered: Answered, fields: tuple[str, ...]) -> None:
    """What a webhook told is what was read back meanwhile, field by field."""
    delivery, read = answered.delivery, answered.read
    if isinstance(read, TimeoutError):  # it tells nobody anything while it waits for an answer, which is no rule
        read = await read_back(api)(delivery)
    if isinstance(read, Exception):
        raise read
    status, body = read
    kind, id_ = event_of(delivery)
    expect(status == 200, f"200 to a GET of {id_} while `{kind}` waits for its answer", status)
    shown: Any = body.get("data") if isinstance(body, dict) else None
    expect(isinstance(shown, dict), "`data`, an object", json.dumps(body)[:200], "/data")
    for name in fields:
        came, wanted = _sorted(delivery.data.get(name)), _sorted(shown.get(name))
        expect(came == wanted, f"{name} {json.dumps(wanted)}, as GET shows it", json.dumps(came), f"/data/{name}")


def _sorted(value: Any) -> Any:
    """A value with its list of objects in one order: in which one projects stand is open."""
    if isinstance(value, list):
        return sorted(value, key=lambda entry: json.dumps(entry, sort_keys=True))
    return value


@requirement("HUB-WH-54")
@pytest.mark.parametrize("how", TYPES)
async def test_data_is_the_detail(api: HubApi, given: HubGiven, how: str) -> None:
    """`data` is the job's detail, as a GET shows it while the webhook waits for its answer."""
    hook = given.hook(read_back=read_back(api))
    job = await ends(given, hook, how, metadata={"owner": "team-a"}, priority=7)
    delivery = await comes(hook, TYPES[how], job.id)
    came = delivery.data.get("status")
    expect(came == how, f"status {how}", json.dumps(came), "/data/status")
    await same(api, await hook.answer_given(delivery.number), FIELDS)


@requirement("HUB-WH-54")
async def test_data_of_a_batch_is_its_summary(api: HubApi, given: HubGiven) -> None:
    """`data` of `batch.completed` is the batch's summary, as a GET shows it while the webhook waits for its answer."""
    hook, batch, good, bad = given.hook(), given.unique("batch"), await project(given), await project(given, FATAL)
    other = given.hook(read_back=read_back(api))
    await given.submitted(
        *(item(on, callbackUrl=url.url) for on, url in ((good, hook), (bad, hook), (good, other))), batch=batch
    )
    await begins(given)
    delivery = await comes(other, BATCH, batch)
    came = delivery.data.get("total")
    expect(came == 3, "total 3", json.dumps(came), "/data/total")
    await same(api, await other.answer_given(delivery.number), BATCH_FIELDS)


@requirement("HUB-WH-54")
async def test_no_webhook_outruns_its_job(api: HubApi, given: HubGiven) -> None:
    """Of many jobs that end at once each webhook tells what a GET shows: none is sent before the job has changed."""
    hook, on = given.hook(read_back=read_back(api)), [await project(given) for _ in range(3)]
    jobs = await given.submitted([item(on[i % 3], callbackUrl=hook.url) for i in range(9)])
    await begins(given)
    for id_ in jobs:
        await comes(hook, COMPLETED, id_)
    for id_ in jobs:
        (delivery,) = events(hook, COMPLETED, id_)
        await same(api, await hook.answer_given(delivery.number), FIELDS)
