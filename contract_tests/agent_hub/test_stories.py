"""Whole incidents, as public reports tell them, replayed to their last sentence (ST-02, 05, 08, 10, 11, 12).

Each rule has narrower checks elsewhere; here it has to hold at the end of all that went before.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import describe, item
from contract_tests.agent_hub.pages import judge_once, walk
from contract_tests.agent_hub.receiver import WITHIN
from contract_tests.agent_hub.rounds import (
    Since,
    Started,
    becomes,
    ends,
    fails,
    goes_on,
    is_lost,
    retries,
    side_by_side,
    waits,
)
from contract_tests.agent_hub.shapes import STATUSES
from contract_tests.agent_hub.sse_steps import AT_ONCE, following, has, is_nothing, judge_ids, ping, pings, scripted
from contract_tests.agent_hub.sums import summary
from contract_tests.agent_hub.webhooks import (
    COMPLETED,
    DONE,
    ENDLESS,
    FAILED,
    FATAL,
    answering,
    comes,
    events,
    finished,
    only,
    project,
    retry,
    settle,
    told,
    tried,
)
from contract_tests.calls import UNSET
from contract_tests.checks import CheckFailed, about, expect, expect_fields, is_integer, requirement

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven
    from contract_tests.agent_hub.receiver import Delivery, Hook
    from contract_tests.clock import Clock

LIMIT = 60
"""Seconds that a script may take."""
ROUND = 20
PHOTOS = 3
RELEASE = 0.011
"""Real seconds after which requests that are sent together are released."""
LEADS = (0, 2, 4)
"""Milliseconds by which a moment passes before they are: each order is to occur."""
BATCH_SIZE, PAGE, ARRIVING = 100, 7, 20
HOUR = 3600.0
FINISHED = ("done", "failed", "cancelled")


@requirement("HUB-FAIL-53", "HUB-WH-50", "HUB-CANCEL-52")
async def test_success_is_not_buried(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """A script ends in the last 50 ms of its limit: it is done, stays done as time passes, and is told of once."""
    clock.needs_to_stand()
    hook, on = given.hook(), await project(given, ends(LIMIT - 0.05))
    job = await given.job(on, kind="script", command="true", prompt=UNSET, timeoutSeconds=LIMIT, callbackUrl=hook.url)
    await clock.advance(LIMIT)
    with about("HUB-FAIL-53"):
        await becomes(given, job, "done")
    with about("HUB-WH-50"):
        await comes(hook, COMPLETED, job.id)
    for seconds in (1, LIMIT, HOUR):
        await clock.advance(seconds)
        with about("HUB-FAIL-53"):
            expect_fields(await given.detail(job), {"status": "done", "attempt": 1}, "/data")
        with about("HUB-CANCEL-52"):
            await api.cancel(job).fails(409, "job_finished")
        with about("HUB-WH-50"):
            await only(given, hook, job.id, COMPLETED)


@requirement("HUB-CANCEL-04", "HUB-CANCEL-05", "HUB-FAIL-09")
@pytest.mark.parametrize("before", LEADS)
async def test_the_photo_finish(api: HubApi, given: HubGiven, clock: Clock, before: float) -> None:
    """Cancel and end of a round meet while an older retry's timer ticks: one wins, and nothing revives the job."""
    clock.needs_advance()
    async with Started(given) as start:
        jobs = await side_by_side(given, *[fails() for _ in range(PHOTOS)])
    await start.reach(1)
    for job in jobs:
        await waits(given, job)
        await given.script(job.project, ends(ROUND, summary="well"))
    async with Since(given) as again:
        for job in jobs:
            await retries(given, job)
    await again.before(ROUND)
    passing = clock.advance(2 * clock.margin)
    answers, _ = await asyncio.gather(api.together([api.cancel(job) for job in jobs]), _meanwhile(passing, before))
    won = []
    for job, answer in zip(jobs, answers, strict=True):
        taken = answer.status < 300
        with about("HUB-CANCEL-05"):
            good = taken or (answer.status == 409 and answer.json["error"]["code"] == "job_finished")
            expect(good, ["2xx", "409 job_finished"], describe(answer.response))
        won.append("cancelled" if taken else "done")
        with about("HUB-CANCEL-04" if taken else "HUB-CANCEL-05"):
            detail = await becomes(given, job, won[-1])
            there = detail.get("result") is not None
            expect(there is not taken, "a result of a done job alone", str(detail.get("result")), "/data/result")
    for seconds in (given.timing.backoff[0], sum(given.timing.backoff)):
        await again.reach(ROUND + seconds)
        for job, status in zip(jobs, won, strict=True):
            with about("HUB-FAIL-09" if status == "cancelled" else "HUB-CANCEL-05"):
                expect_fields(await given.detail(job), {"status": status}, "/data")
                await api.cancel(job).refused()


async def _meanwhile(what: Awaitable[Any], before: float) -> Any:
    """Do something when the requests of a race are released, or so many milliseconds before."""
    await asyncio.sleep(RELEASE - before / 1000)
    return await what


@requirement("HUB-LIST-55", "HUB-LIST-57")
async def test_all_in_the_same_millisecond(api: HubApi, given: HubGiven) -> None:
    """A batch of 100, in pages of 7 while 20 more jobs come: the walk ends and shows each of the 100 once."""
    on, batch = await project(given, ENDLESS), given.unique("batch")
    one = item(on, priority=-100)
    ids = await given.submitted([one] * BATCH_SIZE, batch=batch)
    arrived: list[str] = []

    async def arrives() -> None:
        if len(arrived) < ARRIVING:
            arrived.extend(await given.submitted([one] * 2))

    pages = await walk(api, PAGE, BATCH_SIZE + ARRIVING, between=arrives, projectId=on.id)
    await given.offline(on.node)  # they stay queued, whatever time passes in other checks
    expect(len(arrived) == ARRIVING, f"{ARRIVING} jobs came meanwhile", f"{len(arrived)}")
    judge_once(pages, ids)


@requirement("HUB-WH-02", "HUB-BATCH-08", "HUB-BATCH-09")
async def test_the_batch_that_ended_twice(given: HubGiven, clock: Clock) -> None:
    """Lost with their node and done again, the last two end together: one `batch.completed`, and sums at every look."""
    clock.needs_advance()
    hook, batch, lost = given.hook(), given.unique("batch"), given.timing.node_lost
    last: list[list[dict[str, Any]]] = [[ends(2 * lost), ends(4)] for _ in range(2)]
    async with Started(given) as start:
        jobs = await side_by_side(given, ends(1), *last, batch=batch, callbackUrl=hook.url)
    await start.reach(2)
    await judge_sums(given, batch, len(jobs))
    node = jobs[0].project.node
    async with Since(given) as away:
        await given.offline(node)
    await away.reach(lost)
    for job in jobs[1:]:
        await is_lost(given, job)
        await judge_sums(given, batch, len(jobs))
    await given.online(node)  # what the lost rounds have to report comes late
    await goes_on(given, jobs[1], "running", "done", after=0.1)
    with about("HUB-RETRY-02", step="attempts that are repeated"):
        await becomes(given, jobs[2], "running", "done")
    shares = []
    for _ in range(12):
        shares.append(await judge_sums(given, batch, len(jobs)))
        await clock.advance(0.5)
    for job in jobs:
        with about("HUB-RETRY-02", step="attempts that are repeated"):
            await becomes(given, job, "done")
    shares.append(await judge_sums(given, batch, len(jobs)))
    with about("HUB-BATCH-09"):
        expect(shares == sorted(shares), "progress that never falls", f"{shares}", "/data/progress")
        expect(shares[-1] == 1, "progress 1 at the end", f"{shares[-1]}", "/data/progress")
    await is_told_once(given, hook, batch)
    await away.reach(2 * lost + HOUR)
    await is_told_once(given, hook, batch)


@requirement("HUB-WH-02", "HUB-BATCH-08", "HUB-BATCH-09")
@pytest.mark.parametrize("how", ["at their start", "the last one cancelled"])
async def test_the_batch_that_never_ended(given: HubGiven, how: str) -> None:
    """All jobs end as they start, or the last one is cancelled: one `batch.completed`, progress 1, and sums."""
    hook, batch, quick = given.hook(), given.unique("batch"), await project(given)
    busy = await project(given, ENDLESS)
    await given.job(busy)
    places = [quick] * 3 if how == "at their start" else [quick, busy]
    jobs = await given.submitted([item(on, callbackUrl=hook.url) for on in places], batch=batch)
    await given.until(jobs[0], "done")
    if how != "at their start":
        await judge_sums(given, batch, len(jobs))
        with about("HUB-CANCEL-02", step="cancelling a queued job"):
            await given.api.cancel(jobs[-1]).succeeds()
    for id_ in jobs:
        with about("HUB-GET-05", step="jobs that end"):
            await becomes(given, id_, "done", "cancelled")
    share = await judge_sums(given, batch, len(jobs))
    with about("HUB-BATCH-09"):
        expect(share == 1, "progress 1 at the end", f"{share}", "/data/progress")
    await is_told_once(given, hook, batch)


async def judge_sums(given: HubGiven, batch: str, total: int) -> float:
    """The counts of a batch add up to its jobs, and `progress` is the finished share; that share."""
    told_ = await summary(given, batch)
    held: Any = told_.get("counts")
    with about("HUB-BATCH-08"):
        counts: dict[str, Any] = {name: held.get(name) for name in STATUSES} if isinstance(held, dict) else {}
        good = bool(counts) and all(map(is_integer, counts.values()))
        good = good and sum(counts.values()) == told_.get("total") == total
        expect(good, f"counts that add up to {total}", f"{json.dumps(held)} of {told_.get('total')}", "/data/counts")
    progress: Any = told_.get("progress")
    with about("HUB-BATCH-09"):
        share = sum(counts[name] for name in FINISHED) / total
        good = isinstance(progress, int | float) and abs(progress - share) < 0.01
        expect(good, f"progress {share:.4f}", str(progress), "/data/progress")
    return float(progress)


async def is_told_once(given: HubGiven, hook: Hook, batch: str) -> None:
    """`batch.completed` has come of a batch, once."""
    with about("HUB-WH-02"):
        if not await hook.receiver.wait(lambda: bool(finished(hook, batch)), WITHIN):
            raise CheckFailed(f"a webhook that says `batch.completed` of {batch}", hook.so_far())
        await settle(given)
        came = finished(hook, batch)
        expect(len(came) == 1, "`batch.completed` once", f"{len(came)}; {hook.so_far()}")


@requirement("HUB-SSE-51", "HUB-SSE-52", "HUB-SSE-61")
async def test_the_quiet_stream(api: HubApi, given: HubGiven, clock: Clock) -> None:
    """A silent job is followed over lost connections: pings, ids that go on, no history, its end once, and an end."""
    every = given.timing.ping
    times = (4, 2) if clock.advances else (1, 1)
    lasts = round((sum(times) + 3) * (every + 4 * clock.margin))
    job = await scripted(given, {"afterSeconds": lasts, "result": "done"})
    await given.until(job, "running")
    last = 0
    for part, number in enumerate(times):
        parts = {"last_event_id": str(last)} if part else {}
        async with following(given, job, **parts) as follower:
            has(follower.first, status="running")
            for _ in range(number):
                before = pings(follower.stream)
                await clock.advance(every + 2 * clock.margin)
                with about("HUB-SSE-51"):
                    await ping(follower.stream, before + 1, within=AT_ONCE)
            came = follower.stream.events
            with about("HUB-SSE-13", step="numbering events"):
                judge_ids(came, last + 1)
            with about("HUB-SSE-61"):
                news = [event.event for event in came[1:] if not is_nothing(event)]
                expect(not news, "the present state alone", ", ".join(news), "event")
            last += len(came)
    await given.until(job, "done", seconds=lasts)
    for _ in range(2):  # however often it is asked again, the end is told, once, and the connection closed
        async with api.events(job, last_event_id=str(last)) as stream:
            with about("HUB-SSE-52"):
                has(await stream.next("job.state"), status="done")
                await stream.next("job.completed")
                await stream.ends()
            with about("HUB-SSE-13", step="numbering events"):
                judge_ids(stream.events, last + 1)


@requirement("HUB-WH-51", "HUB-WH-54", "HUB-WH-60", "HUB-WH-68", "HUB-WH-70")
async def test_yesterdays_news(api: HubApi, given: HubGiven) -> None:
    """A failure is told when it is final, a GET agrees, its repetition is the same, and the success comes after it."""
    shown: dict[str, Any] = {}

    async def read(delivery: Delivery) -> None:
        shown.setdefault(delivery.type, (await api.job(job).succeeds(200)).data)

    hook = given.hook(answering(FAILED, 500, 200), read_back=read)
    on = await project(given, fails(0), FATAL)
    job = await given.job(on, callbackUrl=hook.url)
    await waits(given, job)
    with about("HUB-WH-51"):
        await only(given, hook, job.id)
    await goes_on(given, job, "failed", after=0 if given.clock.stands else 2 * given.clock.margin)
    first = await comes(hook, FAILED, job.id)
    await agrees(hook, first, shown, "failed")
    await given.script(on, DONE)
    await retry(given, job)
    await given.until(job, "done")
    await settle(given)
    with about("HUB-WH-70"):
        came = told(hook, job.id)
        early = COMPLETED in came and came.count(FAILED) < 2
        expect(not early, "`job.completed` after the last `job.failed`", ", ".join(came))
    await given.clock.advance(5 + given.clock.margin)
    with about("HUB-WH-65", step="a repeated try"):
        own = (FAILED, job.id)
        if not await tried(hook, own, 2, given.clock.grace + WITHIN):
            raise CheckFailed("another try 5 s after a 500", f"none; {hook.so_far()}")
    again = events(hook, *own)[1]
    with about("HUB-WH-60"):
        ids = [one.headers.get("webhook-id") for one in (first, again)]
        expect(ids[0] == ids[1], f"webhook-id {ids[0]} again", str(ids[1]), "webhook-id")
    with about("HUB-WH-68"):
        expect(first.body == again.body, "the same bytes", repr(again.body[:200]))
    await agrees(hook, await comes(hook, COMPLETED, job.id), shown, "done")
    with about("HUB-WH-70"):  # who believes what comes last, with repetitions left out, ends at done
        await only(given, hook, job.id, FAILED, FAILED, COMPLETED)
    expect(len(events(hook, FAILED, job.id)) == 2, "one failure, told twice", hook.so_far())


async def agrees(hook: Hook, delivery: Delivery, shown: dict[str, Any], status: str) -> None:
    """While a webhook waited for its answer a GET showed what it tells: that status, and no retry to come."""
    await hook.answer_given(delivery.number)
    with about("HUB-WH-54"):
        wanted = {"status": status, "nextRetryAt": None}
        expect_fields(delivery.data, wanted, "/data")
        expect_fields(shown.get(delivery.type, delivery.data), wanted, "/data")
