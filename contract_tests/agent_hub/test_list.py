"""Listing jobs: what the seed says of filters, limits and order (seed 002 section 2)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import ids_of, item
from contract_tests.agent_hub.given import Project
from contract_tests.agent_hub.scenes import every_state
from contract_tests.agent_hub.shapes import STATUSES, iso
from contract_tests.checks import about, expect, requirement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

TRIES = 3
"""How often a job is made that others may crowd out of the first page."""


async def listed(api: HubApi, **query: Any) -> list[dict[str, Any]]:
    """The entries of a page, wherever a build has them."""
    return (await api.jobs(**query).succeeds(200)).entries


def judge_ids(entries: Sequence[dict[str, Any]], wanted: Sequence[str], what: str) -> None:
    """The page holds just these jobs, in any order."""
    came = ids_of(entries)
    expect(sorted(map(str, came)) == sorted(wanted), f"{what}: {sorted(wanted)}", f"{came}", "/data/items")


@requirement("HUB-LIST-01")
async def test_jobs_are_listed(api: HubApi, given: HubGiven) -> None:
    """A job that was just submitted is listed by `GET /v1/jobs`, with no filter and by its batch."""
    project = await given.project()
    for left in reversed(range(TRIES)):
        job = await given.job(project)
        entries = await listed(api, limit=200)
        crowded = len(entries) >= 200 and left > 0  # others may have submitted that many meanwhile
        expect(job.id in ids_of(entries) or crowded, f"job {job.id}", f"others: {ids_of(entries)[:5]}", "/data/items")
        if job.id in ids_of(entries):
            break
    judge_ids(await listed(api, batchId=job.batch), [job.id], "the jobs of the batch")


@requirement("HUB-LIST-02")
async def test_filter_by_status(api: HubApi, given: HubGiven) -> None:
    """Each of the five statuses lists the jobs that have it, and no others."""
    scene = await every_state(given)
    for status in STATUSES:
        wanted = [
            job.id for job, plan in scene if plan.state in ((status, "waiting") if status == "failed" else (status,))
        ]
        judge_ids(await listed(api, status=status, batchId=scene.batch), wanted, f"the {status} ones")
        alone = await listed(api, status=status, limit=50)
        wrong = [entry.get("status") for entry in alone if entry.get("status") != status]
        expect(bool(alone), f"{status} jobs", "none", "/data/items")
        expect(not wrong, f"only {status} jobs", f"{wrong[:5]}", "/data/items")


@requirement("HUB-LIST-03", "HUB-LIST-04", "HUB-LIST-05", "HUB-LIST-06", "HUB-LIST-07")
@pytest.mark.parametrize("name", ["nodeId", "projectId", "batchId", "externalId", "together"])
async def test_filters(api: HubApi, given: HubGiven, name: str) -> None:
    """Each filter lists the jobs with just that value; several list those that have all of them."""
    shared = given.unique("proj")
    one, two = await given.node([shared]), await given.node([shared, given.unique("proj")])
    own = two.projects[1]
    places = [Project(shared, one), Project(shared, two), Project(own, two), Project(shared, one), Project(own, two)]
    task, batches = given.unique("order"), (given.unique("batch"), given.unique("batch"))
    tasks = [task, given.unique("order"), task, f"{task}x", task[:-1]]
    items = [
        item(place, nodeId=place.node.id, externalId=external) for place, external in zip(places, tasks, strict=True)
    ]
    ids = await given.submitted(items[:3], batch=batches[0]) + await given.submitted(items[3:], batch=batches[1])
    with about("HUB-CANCEL-02", step="cancelling a queued job"):
        await api.cancel(ids[4]).succeeds()
    queries: dict[str, list[tuple[str, dict[str, Any], list[int]]]] = {
        "nodeId": [("HUB-LIST-03", {"nodeId": one.id}, [0, 3])],
        "projectId": [("HUB-LIST-04", {"projectId": shared}, [0, 1, 3])],
        "batchId": [("HUB-LIST-05", {"batchId": batches[0]}, [0, 1, 2])],
        "externalId": [("HUB-LIST-06", {"externalId": task}, [0, 2])],
        "together": [
            ("HUB-LIST-07", {"nodeId": two.id, "projectId": shared}, [1]),
            ("HUB-LIST-07", {"externalId": task, "projectId": own}, [2]),
            ("HUB-LIST-07", {"externalId": task, "batchId": batches[1]}, []),
            ("HUB-LIST-07", {"status": "cancelled", "projectId": own, "limit": 20}, [4]),
            ("HUB-LIST-07", {"status": "cancelled", "batchId": batches[0]}, []),
            ("HUB-LIST-07", {"batchId": batches[0], "nodeId": two.id, "projectId": own, "externalId": task}, [2]),
        ],
    }
    for rule, query, wanted in queries[name]:
        with about(rule):
            judge_ids(await listed(api, **query), [ids[place] for place in wanted], f"the jobs of {query}")


@requirement("HUB-LIST-08", "HUB-LIST-09", "HUB-LIST-10", "HUB-LIST-11")
async def test_a_page_has_fifty_jobs_and_at_most_two_hundred(api: HubApi, given: HubGiven) -> None:
    """Of 203 jobs a page shows the newest 50, or up to 200 by `limit`; the last one's time is the cursor."""
    project = await given.project()
    batch = given.unique("batch")
    items = [item(project, priority=-100) for _ in range(203)]
    ids = await given.submitted(items[:101], batch=batch)
    ids += await given.submitted(items[101:], batch=batch)
    await given.offline(project.node)  # they stay queued, whatever time passes in other checks
    for query, most in (({}, 50), ({"limit": 3}, 3), ({"limit": 200}, 200)):
        answer = await api.jobs(batchId=batch, **query).succeeds(200)
        entries = answer.entries
        with about("HUB-LIST-09" if most == 200 else "HUB-LIST-08"):
            expect(len(entries) == most, f"{most} jobs", f"{len(entries)}", "/data/items")
        with about("HUB-LIST-10"):
            times = [iso(entry.get("queuedAt"), "/data/items/queuedAt") for entry in entries]
            falling = all(newer >= older for newer, older in pairwise(times))
            expect(falling, "queuedAt falling", f"{[entry.get('queuedAt') for entry in entries][:5]}", "/data/items")
            newest = set(ids_of(entries)[:3])
            expect(newest <= set(ids[101:]), "the jobs of the last submission first", f"{newest}", "/data/items")
        with about("HUB-LIST-11"):
            cursor = answer.inner.get("nextCursor", answer.fields.get("nextCursor"))
            last = entries[-1].get("queuedAt")
            expect(cursor is not None, f"nextCursor {last}", str(cursor), "/data/nextCursor")
            same = iso(cursor, "/data/nextCursor") == times[-1]
            expect(same, f"nextCursor {last}", str(cursor), "/data/nextCursor")
    with about("HUB-LIST-09"):
        over = await api.jobs(batchId=batch, limit=1000)
        shown = len(over.entries) if over.status < 300 else 0
        expect(shown <= 200, "at most 200 jobs, or a refusal", f"{shown}", "/data/items")
