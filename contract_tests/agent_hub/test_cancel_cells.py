"""What each state of a job shows, and what each operation does to it, from one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.rounds import Started, ends, fails, goes_on, is_still, scripted, waits
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Job

CELLS = """
state      status     cancel    retry    batch  stream
queued     queued     200       refused  1      open
blocked    queued     200       refused  1      open
running    running    200       refused  1      open
waiting    failed     200       200      1      open
again      queued     200       refused  1      open
second     running    200       refused  1      open
done       done       finished  refused  0      job.completed
failed     failed     finished  200      0      job.failed
cancelled  cancelled  finished  200      0      job.cancelled
"""
"""`blocked` is queued on a node that is offline, `waiting` failed with a retry to come, `again` queued for its second
attempt, `second` running in it. A number is a success (of `batch`: how many were cancelled), a word a 409, or what the
event stream tells beyond `job.state`: nothing, or the final event and its end.
"""
Row = dict[str, str]


def table() -> list[Row]:
    """The rows, a dict each."""
    head, *rows = (line.split() for line in CELLS.strip().splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def rows(**wanted: str) -> Any:
    """A check for each row that has these cells."""
    found = [row for row in table() if all(row[name] == value for name, value in wanted.items())]
    return [pytest.param(row, id=row["state"]) for row in found]


async def placed(given: HubGiven, state: str) -> Job:
    """A job in a state of the table, alone in its batch."""
    match state:
        case "blocked":
            job = await given.queued_job()
            await given.offline(job.project.node)
        case "again" | "second":
            project = await given.project()
            async with Started(given) as start:
                job = await given.job(project, **await scripted(given, project, fails(), ends(600)))
                if state == "again":
                    await given.job(project, **await scripted(given, project, ends(600)))
            await start.reach(1)
            await waits(given, job)
            await goes_on(given, job, "queued" if state == "again" else "running")
        case _:
            job = await given.in_state(state)
    return job


@requirement("HUB-GET-57", "HUB-GET-58", "HUB-GET-60", "HUB-GET-61")
@pytest.mark.parametrize("row", rows())
async def test_what_a_state_shows(given: HubGiven, row: Row) -> None:
    """A result where the job is done, a failure where it failed or was cancelled, and nowhere else."""
    detail = await given.detail(await placed(given, row["state"]))
    status = row["status"]
    with about("HUB-GET-05", step=f"a job that is {status}"):
        expect_fields(detail, {"status": status}, "/data")
    failed = status in ("failed", "cancelled")
    with about("HUB-GET-61" if failed else "HUB-GET-60"):
        there = detail.get("failure") is not None
        expect(
            there is failed, "a `failure`" if failed else "no `failure`", str(detail.get("failure")), "/data/failure"
        )
    if status != "failed":
        with about("HUB-GET-58" if status == "done" else "HUB-GET-57"):
            there = detail.get("result") is not None
            what = "a `result`" if status == "done" else "no `result`"
            expect(there is (status == "done"), what, str(detail.get("result")), "/data/result")


@requirement("HUB-SSE-05", "HUB-SSE-09")
@pytest.mark.parametrize("row", rows(stream="open"))
async def test_a_stream_of_an_unfinished_job(api: HubApi, given: HubGiven, row: Row) -> None:
    """`job.state` with its status, at once; of a job that waits for a retry no `job.failed` follows."""
    job = await placed(given, row["state"])
    async with api.events(job) as stream:
        with about("HUB-SSE-05"):
            event = await stream.next("job.state")
            expect(isinstance(event.data, dict), "an object", str(event.data)[:100])
            expect_fields(event.data, {"id": job.id, "status": row["status"]})
        if row["state"] == "waiting":
            with about("HUB-SSE-09"):
                await stream.quiet(0.05)


@requirement("HUB-SSE-52")
@pytest.mark.parametrize("row", [param for param in rows() if param.values[0]["stream"] != "open"])
async def test_a_stream_of_a_finished_job(api: HubApi, given: HubGiven, row: Row) -> None:
    """`job.state`, the final event of its status, and the end."""
    job = await placed(given, row["state"])
    async with api.events(job) as stream:
        for kind in ("job.state", row["stream"]):
            event = await stream.next(kind)
            expect(isinstance(event.data, dict), "an object", str(event.data)[:100])
            expect_fields(event.data, {"id": job.id, "status": row["status"]})
        await stream.ends()


@requirement("HUB-CANCEL-50", "HUB-CANCEL-51")
@pytest.mark.parametrize("row", rows(cancel="200"))
async def test_cancel_of_an_unfinished_job(api: HubApi, given: HubGiven, row: Row) -> None:
    """200 and cancelled, in whatever attempt it is."""
    job = await placed(given, row["state"])
    with about("HUB-CANCEL-51" if row["state"] == "waiting" else "HUB-CANCEL-50"):
        answer = await api.cancel(job).succeeds(200)
    expect_fields(answer.inner, {"id": job.id, "status": "cancelled"}, "/data")
    expect_fields(await given.detail(job), {"status": "cancelled"}, "/data")


@requirement("HUB-RETRY-08")
@pytest.mark.parametrize("row", rows(retry="refused"))
async def test_retry_of_a_job_that_is_not_over(api: HubApi, given: HubGiven, row: Row) -> None:
    """409 job_not_retryable, in whatever attempt it is, and nothing changes."""
    job = await placed(given, row["state"])
    before = await given.detail(job)
    await api.retry(job).fails(409, "job_not_retryable")
    is_still(before, await given.detail(job), "status", "attempt", "sessionId", "queuedAt")


@requirement("HUB-BATCH-68", "HUB-BATCH-69", "HUB-BATCH-70")
@pytest.mark.parametrize("row", rows())
async def test_cancel_of_the_batch(api: HubApi, given: HubGiven, row: Row) -> None:
    """An unfinished job of it is cancelled and counted, a finished one stays as it is; again: 0."""
    job = await placed(given, row["state"])
    before = await given.detail(job)
    changed = int(row["batch"])
    rule = "HUB-BATCH-68" if row["state"] == "waiting" else "HUB-BATCH-69" if changed else "HUB-BATCH-70"
    with about("HUB-BATCH-16", step="cancelling a batch"):
        answer = await api.cancel_batch(job.batch).succeeds()
    with about(rule):
        expect_fields(answer.inner, {"cancelled": changed}, "/data")
        after = await given.detail(job)
        if changed:
            expect_fields(after, {"status": "cancelled"}, "/data")
        else:
            is_still(before, after, "status", "failure", "finishedAt", "result")
    with about("HUB-BATCH-70"):
        answer = await api.cancel_batch(job.batch).succeeds(200)
        expect_fields(answer.inner, {"cancelled": 0}, "/data")
