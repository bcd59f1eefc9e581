"""A job's detail: what was decided of its fields, over a job's life."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.pages import page, queued_at
from contract_tests.agent_hub.scenes import STATES, Planned, arranged, every_state
from contract_tests.agent_hub.shapes import instant, judge_detail, judge_milliseconds, judge_presence
from contract_tests.calls import UNSET
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven

STARTED = ("running", "done", "failed", "waiting")
ENDED = ("done", "failed", "waiting", "cancelled")
FAILED = ("failed", "waiting", "cancelled")


def judge_null(detail: dict[str, Any], name: str, *, null: bool, rule: str) -> None:
    """A field is null, or is not."""
    with about(rule):
        came = detail.get(name)
        what = f"{name} null of a {detail.get('status')} job" if null else f"{name} of a {detail.get('status')} job"
        expect((came is None) == null, what, json.dumps(came)[:200], f"/data/{name}")


@requirement("HUB-GET-50", "HUB-GET-70", "HUB-GET-71")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_every_field_is_always_there(given: HubGiven, kind: str) -> None:
    """In each state every field is there, null where it means nothing yet, and instants have milliseconds."""
    scene = await every_state(given, kind=kind, externalId=UNSET)
    for job, _ in scene:
        detail = await given.detail(job)
        judge_presence(detail)
        judge_milliseconds(detail)
        with about("HUB-GET-71"):
            expect_fields(detail, {"externalId": None, "metadata": None}, "/data")


@requirement("HUB-GET-50", "HUB-GET-70")
async def test_a_blocked_job_has_every_field(given: HubGiven) -> None:
    """A job that is blocked has every field, too; `lastSeen` has milliseconds."""
    scene = await arranged(given, [Planned("running"), Planned("queued")])
    await given.offline(scene.node)
    detail = await given.detail(scene.of("queued"))
    judge_detail(detail)
    judge_presence(detail)
    judge_milliseconds(detail)


@requirement(
    "HUB-GET-51", "HUB-GET-52", "HUB-GET-56", "HUB-GET-57", "HUB-GET-58", "HUB-GET-59", "HUB-GET-60", "HUB-GET-61",
    "HUB-GET-62", "HUB-GET-63", "HUB-GET-70",
)  # fmt: skip
async def test_what_each_state_has(given: HubGiven) -> None:
    """Each state has the fields that belong to it, and null in the others."""
    scene = await every_state(given)
    for job, plan in scene:
        state, detail = plan.state, await given.detail(job)
        if state in FAILED:
            with about("HUB-GET-59"):
                came = detail.get("result")
                good = came is None or isinstance(came, dict)
                expect(good, "result, an object or null", json.dumps(came), "/data/result")
        judge_detail(detail)
        judge_presence(detail)
        attempts = int(state in STARTED)
        expect_fields(
            detail, {"attempt": attempts}, "/data", {"attempt": ("HUB-GET-52" if attempts else "HUB-GET-51",)}
        )
        for name, states in (("startedAt", STARTED), ("sessionId", STARTED), ("finishedAt", ENDED)):
            judge_null(detail, name, null=state not in states, rule="HUB-GET-70")
        judge_null(detail, "durationMs", null=state not in ("done", "failed", "waiting"), rule="HUB-GET-56")
        judge_null(detail, "waitMs", null=state not in STARTED, rule="HUB-GET-56")
        if state in ("queued", "running", "cancelled"):
            judge_null(detail, "result", null=True, rule="HUB-GET-57")
        elif state == "done":
            judge_null(detail, "result", null=False, rule="HUB-GET-58")
        judge_null(detail, "failure", null=state not in FAILED, rule="HUB-GET-61" if state in FAILED else "HUB-GET-60")
        if state in FAILED:
            with about("HUB-GET-62"):
                error = detail["failure"].get("lastError", "left out")
                expect(error is None, "lastError null after the first attempt", str(error), "/data/failure/lastError")
        if state in ("queued", "cancelled"):
            judge_null(detail, "progress", null=True, rule="HUB-GET-63")
    assert {plan.state for _, plan in scene} == set(STATES)


@requirement(
    "HUB-GET-52", "HUB-GET-54", "HUB-GET-55", "HUB-GET-56", "HUB-GET-57", "HUB-GET-60", "HUB-GET-61", "HUB-GET-62"
)
async def test_a_retried_job_over_its_life(given: HubGiven) -> None:
    """A retried job keeps its first attempt's times, and has the last one's end and failure."""
    project, backoff, margin = await given.project(), given.timing.backoff[0], given.clock.margin
    said = ("429 rate limited", "it broke")
    first = {"afterSeconds": 1, "result": "failed", "failureType": "llm_error", "retriable": True, "message": said[0]}
    last = {"afterSeconds": 20, "result": "failed", "failureType": "engine_error", "message": said[1]}
    name = given.unique("order")
    await given.script(project, first, last, external_id=name)
    job = await given.job(project, externalId=name)
    before = await given.until(job, "failed")
    judge_detail(before)
    await given.script(project, {"afterSeconds": backoff + 10, "result": "done"})
    await given.job(project)  # keeps the project busy when the retry is due
    await given.clock.advance(backoff + 2 * margin)

    queued = await given.until(job, "queued", rule="HUB-RETRY-02")
    kept = {name: before.get(name) for name in ("queuedAt", "startedAt")}
    expect_fields(queued, {"attempt": 1}, "/data", {"attempt": ("HUB-GET-52",)})
    expect_fields(queued, kept, "/data", dict.fromkeys(kept, ("HUB-GET-54",)))
    judge_null(queued, "failure", null=True, rule="HUB-GET-60")
    judge_null(queued, "result", null=True, rule="HUB-GET-57")
    judge_null(queued, "finishedAt", null=True, rule="HUB-GET-55")
    judge_null(queued, "durationMs", null=True, rule="HUB-GET-56")

    await given.clock.advance(10)
    running = await given.until(job, "running", seconds=10, rule="HUB-GET-05")
    expect_fields(running, {"attempt": 2}, "/data", {"attempt": ("HUB-GET-52",)})
    expect_fields(running, kept, "/data", dict.fromkeys(kept, ("HUB-GET-54",)))
    judge_null(running, "failure", null=True, rule="HUB-GET-60")
    judge_null(running, "finishedAt", null=True, rule="HUB-GET-55")
    judge_null(running, "durationMs", null=True, rule="HUB-GET-56")

    await given.clock.advance(20)
    ended = await given.until(job, "failed")
    judge_detail(ended)
    expect_fields(ended, {"attempt": 2}, "/data", {"attempt": ("HUB-GET-52",)})
    expect_fields(ended, kept, "/data", dict.fromkeys(kept, ("HUB-GET-54",)))
    with about("HUB-GET-55"):
        later = instant(ended, "finishedAt") >= instant(before, "nextRetryAt") + 20_000
        expect(
            later, f"finishedAt 20 s after {before['nextRetryAt']} at least", ended["finishedAt"], "/data/finishedAt"
        )
    judge_null(ended, "failure", null=False, rule="HUB-GET-61")
    with about("HUB-GET-62"):
        expect_fields(ended["failure"], {"message": said[1], "lastError": said[0]}, "/data/failure")


@requirement("HUB-GET-53")
async def test_queued_at_rises_in_the_order_sent(api: HubApi, given: HubGiven) -> None:
    """Jobs of one request, whatever their priorities, have rising `queuedAt` in the order in which they were sent."""
    project, batch = await given.project(), given.unique("batch")
    items = [item(project, priority=(at * 37) % 50, externalId=given.unique("order")) for at in range(30)]
    ids = await given.submitted(items, batch=batch)
    times = {entry.get("id"): queued_at(entry) for entry in (await page(api, batchId=batch)).items}
    for place, (one, next_one) in enumerate(pairwise(ids)):
        rising = one in times and next_one in times and times[one] < times[next_one]
        came = f"{times.get(one)}, then {times.get(next_one)}"
        expect(rising, f"queuedAt rising from item {place} to the next", came, f"/data/items/{place}/queuedAt")


@requirement("HUB-GET-69")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_the_title_is_the_first_80_characters(given: HubGiven, kind: str) -> None:
    """The title is the text's first 80 characters, which are Unicode code points; shorter ones are whole."""
    project, name = await given.project(), "prompt" if kind == "ai" else "command"
    texts = ["x" * 79 + "y", "x" * 80 + "y", "🙂检" * 4000, "a" * 75 + "e\u0301🙂" * 20, "short"]
    ids = await given.submitted([item(project, kind=kind, **{name: text}) for text in texts])
    for id_, text in zip(ids, texts, strict=True):
        detail = await given.detail(id_)
        expect_fields(detail, {"title": text[:80]}, "/data")
