"""Progress: when a node reports it, what stays, and for how long."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from contract_tests.agent_hub.scenes import Planned, arranged, retried
from contract_tests.agent_hub.shapes import instant, iso, judge_detail
from contract_tests.checks import about, expect, expect_fields, requirement

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubApi
    from contract_tests.agent_hub.given import HubGiven, Job

TOLD = {"toolCalls": 3, "tokensIn": 2100, "tokensOut": 340, "iterations": 2, "lastActivity": "调用工具 write_file"}
NOTHING = {"toolCalls": 0, "tokensIn": 0, "tokensOut": 0, "iterations": 0, "lastActivity": ""}
EARLY_MS = 500
"""How far a real node's report may be before its time."""
JITTER_MS = 1_000
"""How far a real node's heartbeat may be from 10 s."""


async def progress(given: HubGiven, job: Job, rule: str) -> dict[str, Any]:
    """A job's progress, which it has to have under a rule."""
    detail = await given.detail(job)
    with about(rule):
        came = detail.get("progress")
        expect(isinstance(came, dict), "progress, an object", json.dumps(came), "/data/progress")
    judge_detail(detail)
    return dict(detail["progress"])


def judge_same(before: dict[str, Any], after: Any, *, rule: str) -> None:
    """Progress stayed as it was, its time included."""
    with about(rule):
        expect(
            after == before,
            json.dumps(before, ensure_ascii=False),
            json.dumps(after, ensure_ascii=False),
            "/data/progress",
        )


@requirement("HUB-GET-21", "HUB-GET-22")
async def test_progress_comes_with_the_heartbeat(given: HubGiven) -> None:
    """A running job has progress after 10 s at the latest, and 10 s later a newer one."""
    scene = await arranged(given, [Planned("running")])
    job = scene.of("running")
    await given.clock.advance(10 + 2 * given.clock.margin)
    first = await progress(given, job, "HUB-GET-22")
    await given.clock.advance(10)
    second = await progress(given, job, "HUB-GET-22")
    apart = iso(second["updatedAt"], "/data/progress/updatedAt") - iso(first["updatedAt"], "/data/progress/updatedAt")
    jitter = 0 if given.clock.stands else JITTER_MS
    with about("HUB-GET-22"):
        good = abs(apart - 10_000) <= jitter
        expect(
            good,
            "updatedAt 10 s later",
            f"{first['updatedAt']}, then {second['updatedAt']}",
            "/data/progress/updatedAt",
        )


@requirement("HUB-GET-21")
async def test_progress_has_what_the_node_reports(given: HubGiven) -> None:
    """What a node reports is shown with each of its fields."""
    scene = await arranged(given, [Planned("running", round={"progress": [{"atSeconds": 0.5, **TOLD}]})])
    await given.clock.advance(10 + 2 * given.clock.margin)
    came = await progress(given, scene.of("running"), "HUB-GET-21")
    expect_fields(came, TOLD, "/data/progress")


@requirement("HUB-GET-23", "HUB-GET-24")
async def test_progress_stays_after_the_end(api: HubApi, given: HubGiven) -> None:
    """A job that ended keeps its last progress, whatever its node still has to say."""
    told = {"progress": [{"atSeconds": 0.5, **TOLD}, {"atSeconds": 12, "toolCalls": 99}]}
    plans = [Planned("done", round=told), Planned("failed", round=told), Planned("running", round=told)]
    scene = await arranged(given, *([plan] for plan in plans))
    done, failed, running = (scene.of(plan.state) for plan in plans)
    await progress(given, running, "HUB-GET-22")
    with about("HUB-CANCEL-03", step="cancelling a running job"):
        await api.cancel(running).succeeds()
    before = {job.id: await progress(given, job, "HUB-GET-24") for job in (done, failed, running)}
    for came in before.values():
        with about("HUB-GET-24"):
            expect_fields(came, TOLD, "/data/progress")
    await given.clock.advance(20 + given.clock.margin)
    for id_, kept in before.items():
        after = (await given.detail(id_)).get("progress")
        judge_same(kept, after, rule="HUB-GET-24" if after is None else "HUB-GET-23")


@requirement("HUB-GET-63", "HUB-GET-66", "HUB-GET-67")
async def test_what_a_report_leaves_out_stays(given: HubGiven) -> None:
    """Progress is null before the first report; then values not reported yet are 0 and "", those left out stay."""
    told: list[dict[str, Any]] = [
        {"atSeconds": 2, "toolCalls": 3, "tokensIn": 100},
        {"atSeconds": 4, "tokensOut": 7, "lastActivity": "reading"},
        {"atSeconds": 6, "toolCalls": 5},
    ]
    scene = await arranged(given, [Planned("running", round={"progress": told})])
    job = scene.of("running")
    with about("HUB-GET-63"):
        detail = await given.detail(job)
        came = detail.get("progress")
        early = came is not None and _reports(detail, told) == 0
        expect(not early, "progress null before the first report", json.dumps(came), "/data/progress")
    for seconds in (3, 2, 2, 5):  # a second after each report, and after the heartbeat, which has nothing new
        await given.clock.advance(seconds)
        came = await progress(given, job, "HUB-GET-67")
        count = _reports(await given.detail(job), told, came)
        reported = {name: value for one in told[:count] for name, value in one.items() if name != "atSeconds"}
        rules = {name: ("HUB-GET-66",) if name in reported else ("HUB-GET-67",) for name in NOTHING}
        expect_fields(came, NOTHING | reported, "/data/progress", rules)


def _reports(detail: dict[str, Any], told: list[dict[str, Any]], came: dict[str, Any] | None = None) -> int:
    """How many of the reports had come by the time of the progress, which may be read late where time flows."""
    came = came or dict(detail["progress"])
    offset = iso(came.get("updatedAt"), "/data/progress/updatedAt") - instant(detail, "startedAt")
    return sum(1000 * one["atSeconds"] - offset <= EARLY_MS for one in told)


@requirement("HUB-GET-65", "HUB-GET-67", "HUB-GET-68")
async def test_the_end_of_a_round_reports_progress(given: HubGiven) -> None:
    """A round of 3 s has progress at its end though no heartbeat came; one that ends at its start may have none."""
    plans = [Planned("done", 3), Planned("failed", 3), Planned("done", 3, {"progress": [{"atSeconds": 3, **TOLD}]})]
    scene = await arranged(given, *([plan] for plan in plans), [Planned("done", 0)])
    for (job, _), wanted in zip(scene, ({}, {}, TOLD), strict=False):
        came = await progress(given, job, "HUB-GET-65")
        with about("HUB-GET-65" if wanted else "HUB-GET-67"):
            expect_fields(came, wanted or NOTHING, "/data/progress")
        detail = await given.detail(job)
        late = abs(instant(detail, "finishedAt") - iso(came["updatedAt"], "/data/progress/updatedAt"))
        with about("HUB-GET-65"):
            good = late <= (0 if given.clock.stands else JITTER_MS)
            expect(good, f"updatedAt {detail['finishedAt']}", str(came["updatedAt"]), "/data/progress/updatedAt")
    detail = await given.detail(scene.jobs[3][0])
    with about("HUB-GET-68"):
        came = detail.get("progress", "left out")
        expect(
            came is None or isinstance(came, dict), "progress, an object or null", json.dumps(came), "/data/progress"
        )
    judge_detail(detail)


@requirement("HUB-GET-63", "HUB-GET-64")
async def test_a_new_attempt_starts_without_progress(given: HubGiven) -> None:
    """After a retry progress is null until the new attempt's first report."""
    given.clock.needs_pace(8)
    again = {"afterSeconds": 100, "result": "done", "progress": [{"atSeconds": 8, "toolCalls": 1}]}
    told = {"progress": [{"atSeconds": 0.5, **TOLD}]}
    scene = await arranged(given, [Planned("waiting", round=told, again=again)])
    job = scene.of("waiting")
    with about("HUB-GET-24", step="the progress of a round that ended"):
        came = (await given.detail(job)).get("progress")
        expect(isinstance(came, dict), "progress, an object", json.dumps(came), "/data/progress")
    detail = await retried(given, job, "running")
    with about("HUB-GET-64"):
        came = detail.get("progress")
        expect(came is None, "progress null in the new attempt", json.dumps(came), "/data/progress")
    await given.clock.advance(9)
    report = await progress(given, job, "HUB-GET-63")
    with about("HUB-GET-64"):
        expect_fields(report, {"toolCalls": 1, "tokensIn": 0, "lastActivity": ""}, "/data/progress")
