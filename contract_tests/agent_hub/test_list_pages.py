"""Listing jobs: cursors, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import ids_of, item
from contract_tests.agent_hub.pages import judge_once, judge_order, page, page_of, queued_at, walk
from contract_tests.agent_hub.scenes import every_state, retried
from contract_tests.agent_hub.shapes import FIELDS
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

MANY = 250
NOT_UTC = ("2026-11-09T18:05:00.000+08:00", "2026-11-09T10:05:00.000")


@requirement("HUB-LIST-53", "HUB-LIST-54", "HUB-LIST-55", "HUB-LIST-56", "HUB-LIST-57", "HUB-LIST-58")
async def test_cursors_show_each_job_once(api: HubApi, given: HubGiven) -> None:
    """250 jobs of three requests, read in pages of 200, 50, 7 and 1 while others arrive: each once, newest first."""
    project = await given.project()
    batch = given.unique("batch")
    one = item(project, priority=-100)
    ids = [id_ for size in (100, 100, 50) for id_ in await given.submitted([one] * size, batch=batch)]
    arrived: list[str] = []

    async def another() -> None:
        arrived.extend(await given.submitted(one, batch=batch))

    for limit in (200, 50):
        before = [*ids, *arrived]
        pages = await walk(api, limit, MANY + 50, between=another, batchId=batch)
        judge_order([entry for one_page in pages for entry in one_page.items])
        judge_once(pages, before)
    before, pages = [*ids, *arrived], await walk(api, 7, MANY + 50, batchId=batch)
    await given.offline(project.node)  # they stay queued, whatever time passes in other checks
    shown = [entry for one_page in pages for entry in one_page.items]
    judge_order(shown)
    judge_once(pages, before)
    place = next(at for at, one_page in enumerate(pages) if one_page.cursor is not None and at >= len(pages) - 5)
    rest = await walk(api, 1, MANY, cursor=pages[place].cursor, batchId=batch)
    judge_once(rest, [id_ for one_page in pages[place + 1 :] for id_ in one_page.ids])


@requirement("HUB-LIST-56")
async def test_no_two_jobs_have_the_same_place(api: HubApi, given: HubGiven) -> None:
    """Jobs of four submissions that arrive together differ in `queuedAt`."""
    project = await given.project()
    calls = [api.submit([item(project, priority=-100)] * 5) for _ in range(4)]
    for answer in await api.together(calls):
        expect(answer.status == 202, "202", f"{answer.status}")
    entries = (await page(api, projectId=project.id, limit=50)).items
    expect(len(entries) == 20, "20 jobs", f"{len(entries)}", "/data/items")
    judge_order(entries)


@requirement("HUB-LIST-52", "HUB-LIST-54", "HUB-LIST-64")
async def test_the_shape_of_a_page(api: HubApi, given: HubGiven) -> None:
    """A page is `{"items", "nextCursor"}`; the cursor is null where nothing follows, also on an empty page."""
    job = await given.job()
    only = page_of(await api.jobs(batchId=job.batch).succeeds(200))
    with about("HUB-LIST-52"):
        expect(only.ids == [job.id], f"items with {job.id}", f"{only.ids}", "/data/items")
    with about("HUB-LIST-54"):
        expect(only.cursor is None, "nextCursor null", f"{only.cursor}", "/data/nextCursor")
    for name in ("batchId", "externalId", "projectId", "nodeId"):
        with about("HUB-LIST-64"):
            answer = await api.jobs(**{name: given.unique("nobody")}).succeeds(200)
        empty = page_of(answer)
        with about("HUB-LIST-64"):
            expect(empty.items == [], "an empty page", f"{empty.ids[:5]}", "/data/items")
        with about("HUB-LIST-54"):
            expect(empty.cursor is None, "nextCursor null", f"{empty.cursor}", "/data/nextCursor")


@requirement("HUB-LIST-53", "HUB-LIST-57")
async def test_a_cursor_goes_with_filters(api: HubApi, given: HubGiven) -> None:
    """With a filter, `cursor` gives the jobs that match and are strictly older."""
    project, batch = await given.project(), given.unique("batch")
    names = [given.unique("order"), given.unique("order")]
    ids = await given.submitted([item(project, externalId=names[at % 2]) for at in range(6)], batch=batch)
    queries: list[dict[str, Any]] = [{"batchId": batch, "externalId": names[0]}, {"externalId": names[0]}]
    for query in queries:
        pages = await walk(api, 1, 6, **query)
        shown = [id_ for one in pages for id_ in one.ids]
        with about("HUB-LIST-53"):
            expect(shown == ids[4::-2], f"{ids[4::-2]}", f"{shown}", "/data/items")
    cursor = (await page(api, batchId=batch, limit=3)).cursor
    behind = await page(api, batchId=batch, externalId=names[1], cursor=cursor)
    with about("HUB-LIST-57"):
        expect(behind.ids == [ids[1]], f"{[ids[1]]}, the one older than {cursor}", f"{behind.ids}", "/data/items")


@requirement("HUB-LIST-50")
@pytest.mark.parametrize("limit", [201, 1000, 1_000_000_000])
async def test_a_limit_above_200_is_refused(api: HubApi, limit: int) -> None:
    """A `limit` above 200 is 400."""
    await api.jobs(limit=limit).fails(400, "invalid_request")


@requirement("HUB-LIST-51")
@pytest.mark.parametrize("limit", [0, -1, "1.5", "ten"])
async def test_a_limit_that_names_no_page_is_refused(api: HubApi, limit: Any) -> None:
    """A `limit` below 1, or no whole number, is 400; 1 is none of them."""
    await api.jobs(limit=limit).fails(400, "invalid_request")


@requirement("HUB-LIST-50", "HUB-LIST-51")
async def test_the_limits_themselves_are_accepted(api: HubApi) -> None:
    """1 and 200 are accepted."""
    for limit, rule in ((1, "HUB-LIST-51"), (200, "HUB-LIST-50")):
        with about(rule):
            await api.jobs(limit=limit).succeeds(200)


@requirement("HUB-LIST-62")
@pytest.mark.parametrize("cursor", ["yesterday", "2026-13-45T25:00:00.000Z", "job_9f2c", *NOT_UTC])
async def test_an_ill_formed_cursor_is_refused(api: HubApi, cursor: str) -> None:
    """A `cursor` that is no instant, or not in UTC with `Z`, is 400."""
    await api.jobs(cursor=cursor).fails(400, "invalid_request")


@requirement("HUB-LIST-63")
@pytest.mark.parametrize("status", ["finished", "faild"])
async def test_an_unknown_status_is_refused(api: HubApi, status: str) -> None:
    """A `status` that is none of the five is 400."""
    await api.jobs(status=status).fails(400, "invalid_request")


@requirement("HUB-LIST-65")
async def test_unknown_parameters_are_ignored(api: HubApi, given: HubGiven) -> None:
    """Parameters that the API does not know change nothing."""
    project, batch = await given.project(), given.unique("batch")
    ids = await given.submitted([item(project)] * 3, batch=batch)
    came = ids_of((await api.jobs(batchId=batch, page=2, order="asc", colour="red").succeeds(200)).entries)
    expect(came == ids[::-1], f"{ids[::-1]}", f"{came}", "/data/items")


@requirement("HUB-LIST-59")
async def test_entries_are_like_the_detail(api: HubApi, given: HubGiven) -> None:
    """Jobs in each state have the same fields and values in the list as in their detail."""
    scene = await every_state(given)
    details = {job.id: await given.detail(job) for job, _ in scene}
    entries = (await page(api, batchId=scene.batch)).items
    for place, entry in enumerate(entries):
        detail = details.get(str(entry.get("id")), {})
        differing = [name for name in FIELDS if entry.get(name, UNSET) != detail.get(name, UNSET)]
        if differing and await given.detail(str(entry["id"])) != detail:
            continue  # it went on meanwhile
        for name in differing:
            wanted, came = (json.dumps(one[name])[:200] if name in one else "left out" for one in (detail, entry))
            expect(False, f"{name} {wanted}, as in the detail", came, f"/data/items/{place}/{name}")


@requirement("HUB-LIST-60")
@pytest.mark.parametrize("state", ["cancelled", "failed"])
async def test_a_job_retried_by_hand_moves_to_the_front(api: HubApi, given: HubGiven, state: str) -> None:
    """A job that is retried by hand stands before those that were submitted after it."""
    project, batch = await given.project(), given.unique("batch")
    job = await given.in_state(state, project, batch=batch)
    later = await given.submitted([item(project)] * 2, batch=batch)
    before = (await page(api, batchId=batch)).items
    with about("HUB-LIST-58"):
        expect(ids_of(before)[-1:] == [job.id], f"{job.id} last", f"{ids_of(before)}", "/data/items")
    with about("HUB-RETRY-07", step="retrying a job by hand"):
        await api.retry(job).succeeds()
    entries = (await page(api, batchId=batch)).items
    wanted = [job.id, *later[::-1]]
    expect(ids_of(entries)[:3] == wanted, f"{wanted}", f"{ids_of(entries)}", "/data/items")
    judge_order(entries)


@requirement("HUB-LIST-61")
async def test_a_job_retried_by_itself_keeps_its_place(api: HubApi, given: HubGiven) -> None:
    """A job that waits for its retry, and runs again, stands where it was submitted."""
    project, batch = await given.project(), given.unique("batch")
    job = await given.waiting_job(project, batch=batch)
    later = await given.job(project, batch=batch)
    first = (await page(api, batchId=batch)).items
    await retried(given, job, "failed", 1)
    entries = (await page(api, batchId=batch)).items
    for came in (first, entries):
        expect(ids_of(came) == [later.id, job.id], f"{[later.id, job.id]}", f"{ids_of(came)}", "/data/items")
    times = [queued_at(came[1]) for came in (first, entries)]
    expect(times[0] == times[1], "the same queuedAt", f"{entries[1].get('queuedAt')}", "/data/items/1/queuedAt")
