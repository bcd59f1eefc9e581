"""The webhook of a batch that has finished: when, where to, how often (seed 002 section 5, decisions B7)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.receiver import WITHIN
from contract_tests.agent_hub.webhooks import (
    BATCH,
    CANCELLED,
    COMPLETED,
    DONE,
    ENDLESS,
    FATAL,
    answering,
    begins,
    cancel,
    comes,
    events,
    finished,
    only,
    project,
    repeats,
    retry,
    settle,
)
from contract_tests.checks import CheckFailed, about, alone, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.given import HubGiven, Project
    from contract_tests.agent_hub.receiver import Delivery, Hook

RETRIED = {"afterSeconds": 0, "result": "failed", "failureType": "llm_error", "retriable": True}


async def last_ones(given: HubGiven, how: str) -> list[Project]:
    """Where the last jobs of a batch run, a project for each, so that they can end as ``how`` says."""
    late = {"afterSeconds": 2, "result": "done"}
    match how:
        case "done":
            return [await project(given, late)]
        case "failed":
            return [await project(given, {**FATAL, "afterSeconds": 2})]
        case "cancelled":
            busy = await project(given, ENDLESS)
            await given.job(busy)
            return [busy]
        case "batch cancelled":
            return [await project(given, ENDLESS)] * 2
        case "two at the same time":
            sooner = {**late, "afterSeconds": 1.999}  # of the job that is queued a millisecond later
            return [await project(given, late), await project(given, sooner)]
    return [await project(given), await project(given)]


async def end(given: HubGiven, how: str, batch: str, last: str) -> None:
    """The last job of a batch ends."""
    match how:
        case "cancelled":
            await cancel(given, last)
        case "batch cancelled":
            with about("HUB-BATCH-16", step="cancelling a batch"):
                await given.api.cancel_batch(batch).succeeds()
        case "failed":
            await given.until(last, "failed")
        case _:
            await given.until(last, "done")


@requirement("HUB-WH-02")
@pytest.mark.parametrize(
    "how", ["done", "failed", "cancelled", "batch cancelled", "two at the same time", "at their start"]
)
async def test_a_finished_batch_is_told_once(given: HubGiven, how: str) -> None:
    """`batch.completed` comes when the last job has ended, however it did, not before, and once."""
    hook, batch = given.hook(), given.unique("batch")
    projects = [await project(given), *await last_ones(given, how)]
    jobs = await given.submitted([item(on, callbackUrl=hook.url) for on in projects], batch=batch)
    if how != "at their start":
        await given.until(jobs[0], "done")
        await settle(given)
        came = finished(hook, batch)
        if (await given.detail(jobs[-1])).get("status") in ("queued", "running"):
            expect(not came, "no `batch.completed` before the last job ends", f"{len(came)}; {hook.so_far()}")
    await end(given, how, batch, jobs[-1])
    if not await hook.receiver.wait(lambda: bool(finished(hook, batch)), WITHIN):
        raise CheckFailed(f"a webhook that says `batch.completed` of {batch}", hook.so_far())
    await settle(given)
    came = finished(hook, batch)
    expect(len(came) == 1, "`batch.completed` once", f"{len(came)}; {hook.so_far()}")


@requirement("HUB-WH-55")
async def test_every_address_of_a_batch_is_told_once(given: HubGiven) -> None:
    """Two jobs with one URL, one with another, one without: `batch.completed` comes once to each of the two URLs."""
    first, second, batch, on = given.hook(), given.hook(), given.unique("batch"), await project(given)
    urls = [{"callbackUrl": first.url}, {"callbackUrl": second.url}, {"callbackUrl": first.url}, {}]
    await given.submitted([item(on, **fields) for fields in urls], batch=batch)
    await begins(given)
    if not await first.receiver.wait(lambda: bool(events(first, BATCH) or events(second, BATCH)), WITHIN):
        await comes(first, BATCH, batch)
    for hook, which in ((first, "the URL of two jobs"), (second, "the URL of one job")):
        await only_once(given, hook, batch, which)


async def only_once(given: HubGiven, hook: Hook, batch: str, which: str) -> None:
    """``batch.completed`` of a batch came once to a hook."""
    await hook.receiver.wait(lambda: bool(events(hook, BATCH, batch)), WITHIN)
    await settle(given)
    came = len(events(hook, BATCH, batch))
    expect(came == 1, f"`batch.completed` once to {which}", f"{came}; {hook.so_far()}")


@alone
@requirement("HUB-WH-55")
async def test_the_default_is_an_address_of_the_batch(given: HubGiven) -> None:
    """The key's default counts as the URL of jobs without one, and as the same where a job names it, too."""
    default, own, batch, on = given.hook(), given.hook(), given.unique("batch"), await project(given)
    await given.default_callback("a", default.url)
    urls = [{}, {"callbackUrl": default.url}, {"callbackUrl": own.url}]
    await given.submitted([item(on, **fields) for fields in urls], batch=batch)
    await begins(given)
    await comes(own, BATCH, batch)
    await only_once(given, default, batch, "the key's default")


@requirement("HUB-WH-56")
async def test_the_batch_comes_after_its_last_job(given: HubGiven) -> None:
    """`batch.completed` comes after the last job's own event, to each URL."""
    first, last, batch = given.hook(), given.hook(), given.unique("batch")
    on, late = await project(given), await project(given, {"afterSeconds": 2, "result": "done"})
    jobs = await given.submitted(item(on, callbackUrl=first.url), item(late, callbackUrl=last.url), batch=batch)
    await given.until(jobs[1], "done")
    own = await comes(last, COMPLETED, jobs[1])
    for hook in (first, last):
        came = await comes(hook, BATCH, batch)
        place = f"{(own.at - came.at) * 1000:.0f} ms before it"
        expect(came.at > own.at, "`batch.completed` after the last job's own event", place)


@requirement("HUB-WH-56")
async def test_a_retry_to_come_keeps_the_batch_open(given: HubGiven) -> None:
    """While a job that failed is going to be retried its batch is not told to have finished."""
    hook, batch, on, failing = given.hook(), given.unique("batch"), await project(given), await project(given, RETRIED)
    jobs = await given.submitted([item(at, callbackUrl=hook.url) for at in (on, failing)], batch=batch)
    await given.until(jobs[0], "done")
    detail = await given.until(jobs[1], "failed")
    with about("HUB-FAIL-03", step="a failure that is retried"):
        expect(detail.get("nextRetryAt") is not None, "a retry to come", "nextRetryAt null", "/data/nextRetryAt")
    await only(given, hook, batch)
    await cancel(given, jobs[1])
    await comes(hook, BATCH, batch)


@requirement("HUB-WH-57")
async def test_the_batch_waits_until_the_last_event_is_taken(given: HubGiven) -> None:
    """As long as the last job's own event is not accepted `batch.completed` goes to no URL."""
    first, last, batch = given.hook(), given.hook(answering(CANCELLED, 500, 200)), given.unique("batch")
    on = await given.project()
    running = await given.running_job(on, batch=batch, callbackUrl=last.url)
    other = await given.job(on, batch=batch, callbackUrl=first.url)
    await cancel(given, other)
    await cancel(given, running)
    own = (CANCELLED, running.id)
    await comes(last, *own)
    accepted = await repeats(given, last, own, 2, 5, ("HUB-WH-66",), step="a repeated try")
    for hook in (first, last):
        came = await comes(hook, BATCH, batch)
        place = f"{(accepted.delivery.at - came.at) * 1000:.0f} ms before it"
        expect(came.at > accepted.delivery.at, "`batch.completed` after the try that was accepted", place)


@requirement("HUB-WH-58")
async def test_a_batch_that_a_retry_reopens_is_told_again(given: HubGiven) -> None:
    """A batch whose failed job is retried by hand and ends again sends another `batch.completed`, as it is then."""
    hook, on = given.hook(), await project(given, FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "failed")
    first = await comes(hook, BATCH, job.batch)
    await given.script(on, DONE)
    await retry(given, job)
    await given.until(job, "done")
    await anew(given, hook, job.batch, first, {"done": 1, "failed": 0})


@requirement("HUB-WH-58")
async def test_a_batch_that_more_jobs_reopen_is_told_again(given: HubGiven) -> None:
    """A batch to which a job is added after it has finished sends another `batch.completed`, as it is then."""
    hook, on = given.hook(), await project(given)
    job = await given.job(on, callbackUrl=hook.url)
    await given.until(job, "done")
    first = await comes(hook, BATCH, job.batch)
    (more,) = await given.submitted(item(on, callbackUrl=hook.url), batch=job.batch)
    await given.until(more, "done")
    await anew(given, hook, job.batch, first, {"done": 2, "failed": 0})


async def anew(given: HubGiven, hook: Hook, batch: str, first: Delivery, counts: dict[str, int]) -> None:
    """A second ``batch.completed``, an event of its own, with the counts of now."""
    second = await comes(hook, BATCH, batch, 2)
    ids = [delivery.headers.get("webhook-id") for delivery in (first, second)]
    expect(ids[0] != ids[1], "another event: a webhook-id of its own", f"{ids[0]} again", "webhook-id")
    came = second.data.get("counts")
    good = isinstance(came, dict) and all(came.get(name) == number for name, number in counts.items())
    expect(good, f"counts with {json.dumps(counts)}", json.dumps(came), "/data/counts")
    await only(given, hook, batch, BATCH, BATCH)


@requirement("HUB-WH-61")
async def test_each_address_has_an_id_of_its_own(given: HubGiven) -> None:
    """`batch.completed` has one `webhook-id` for each URL: the same with every try, another one at another URL."""
    hooks = [given.hook(answering(BATCH, 500, 200)) for _ in range(2)]
    on, batch = await given.project(), given.unique("batch")
    running = await given.running_job(on, batch=batch, callbackUrl=hooks[0].url)
    await cancel(given, await given.job(on, batch=batch, callbackUrl=hooks[1].url))
    await cancel(given, running)
    for hook in hooks:
        await comes(hook, BATCH, batch)
    again = await repeats(given, hooks[0], (BATCH, batch), 2, 5, ("HUB-WH-66",), step="a repeated try")
    ids = [events(hook, BATCH, batch)[0].headers.get("webhook-id") for hook in hooks]
    repeated = again.delivery.headers.get("webhook-id")
    expect(repeated == ids[0], f"webhook-id {ids[0]} again", repeated, "webhook-id")
    expect(ids[0] != ids[1], "another webhook-id for the other URL", f"{ids[0]} for both", "webhook-id")
