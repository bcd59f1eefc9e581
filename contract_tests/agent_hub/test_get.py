"""A job's detail: what the seed shows of it (seed 002 section 2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from contract_tests.agent_hub.client import item, whole
from contract_tests.agent_hub.scenes import Planned, arranged, every_state, retried
from contract_tests.agent_hub.shapes import instant, judge_detail
from contract_tests.checks import about, expect, expect_fields, requirement, same_json

if TYPE_CHECKING:
    from contract_tests.agent_hub.client import HubAnswer, HubApi
    from contract_tests.agent_hub.given import HubGiven

SEED_PROMPT = "检查 src 下所有 TODO 并生成 reports/todo.md"
METADATA: list[Any] = [
    {"owner": "team-a"},
    {"nested": {"list": [1, 2.5, -3, True, None, "文字 🙂", {}], "empty": []}, "": "no name", "nothing": None},
    ["a", 1, None],
    "a text",
    0,
    False,
]


@requirement("HUB-GET-01", "HUB-GET-02", "HUB-GET-03", "HUB-GET-04", "HUB-GET-07", "HUB-GET-09")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_a_detail_tells_what_was_submitted(given: HubGiven, kind: str) -> None:
    """The detail is `{"data": {...}}` with the job's ids, its node and its label, and what was submitted."""
    job = await given.running_job(kind=kind, priority=-7, maxAttempts=3)
    detail = await given.detail(job)
    wanted = {
        "externalId": job.external_id,
        "nodeId": job.project.node.id,
        "nodeLabel": job.project.node.label,
        "projectId": job.project.id,
        "batchId": job.batch,
        "kind": kind,
        "attempt": 1,
        "maxAttempts": 3,
        "priority": -7,
    }
    rules = {"kind": "HUB-GET-04", "attempt": "HUB-GET-07", "maxAttempts": "HUB-GET-07", "priority": "HUB-GET-09"}
    expect_fields(detail, wanted, "/data", {name: (rules.get(name, "HUB-GET-03"),) for name in wanted})


@requirement(
    "HUB-GET-03", "HUB-GET-04", "HUB-GET-05", "HUB-GET-06", "HUB-GET-07", "HUB-GET-09", "HUB-GET-10", "HUB-GET-11",
    "HUB-GET-12", "HUB-GET-13", "HUB-GET-14", "HUB-GET-15", "HUB-GET-17", "HUB-GET-18", "HUB-GET-21",
)  # fmt: skip
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_jobs_in_every_state(given: HubGiven, kind: str) -> None:
    """Jobs in each state have the seed's fields, with its types, and times that go with the state."""
    scene = await every_state(given, kind=kind)
    for job, plan in scene:
        detail = await given.detail(job)
        judge_detail(detail)
        with about("HUB-GET-05"):
            status = "failed" if plan.state == "waiting" else plan.state
            expect(detail["status"] == status, f"status {status}", str(detail["status"]), "/data/status")
        _judge_times(detail, plan.state)
        if plan.state in ("done", "failed", "waiting", "running"):
            with about("HUB-GET-14"):
                expect(bool(detail.get("sessionId")), "a sessionId", "none", "/data/sessionId")
        with about("HUB-GET-18"):
            type_ = (detail.get("failure") or {}).get("type")
            wanted = {"failed": "engine_error", "waiting": "llm_error"}.get(plan.state)
            expect(wanted in (None, type_), f"type {wanted}", str(type_), "/data/failure/type")


def _judge_times(detail: dict[str, Any], state: str) -> None:
    """Durations are differences of the instants; a retry to come is later than the failure."""
    ended = state in ("done", "failed", "waiting")
    if ended or state == "running":
        queued, started = instant(detail, "queuedAt"), instant(detail, "startedAt")
        with about("HUB-GET-12"):
            came = detail.get("waitMs")
            expect(came == started - queued, f"waitMs {started - queued}", str(came), "/data/waitMs")
    if ended:
        finished = instant(detail, "finishedAt")
        with about("HUB-GET-11"):
            came = detail.get("durationMs")
            expect(came == finished - started, f"durationMs {finished - started}", str(came), "/data/durationMs")
    with about("HUB-GET-13"):
        came = detail.get("nextRetryAt")
        if state == "waiting":
            expect(came is not None, "nextRetryAt of a job that is to be retried", "null", "/data/nextRetryAt")
            later = instant(detail, "nextRetryAt") > finished
            expect(later, f"nextRetryAt after {detail['finishedAt']}", str(came), "/data/nextRetryAt")
        else:
            expect(came is None, f"nextRetryAt null of a {state} job", str(came), "/data/nextRetryAt")


@requirement("HUB-GET-11", "HUB-GET-12")
async def test_waiting_and_lasting(given: HubGiven) -> None:
    """A job that waits 3 s for another and lasts 2 s says so."""
    scene = await arranged(given, [Planned("done", 3), Planned("done", 2)])
    detail = await given.detail(scene.jobs[0][1])
    slack = 0 if given.clock.stands else 2000  # a real node is slower than its script
    for name, rule, least in (("waitMs", "HUB-GET-12", 2900), ("durationMs", "HUB-GET-11", 1900)):
        with about(rule):
            came: Any = detail.get(name)
            good = whole(came) and least <= came <= least + 200 + slack
            expect(good, f"{name} of about {least + 100}", str(came), f"/data/{name}")
    _judge_times(detail, "done")


@requirement("HUB-GET-06")
@pytest.mark.parametrize("kind", ["ai", "script"])
async def test_the_title_of_a_short_job(given: HubGiven, kind: str) -> None:
    """The title of a job is its prompt's text, or its command's."""
    name, text = ("prompt", SEED_PROMPT) if kind == "ai" else ("command", "make test && echo 完成")
    fields: dict[str, Any] = {"kind": kind, name: text}
    detail = await given.detail(await given.job(**fields))
    expect_fields(detail, {"title": text}, "/data")


@requirement("HUB-GET-13")
async def test_a_retry_comes_when_it_was_said_to_come(given: HubGiven) -> None:
    """A job that failed, retriable, starts again at its `nextRetryAt`, which is null from then on."""
    scene = await arranged(given, [Planned("waiting", again={"afterSeconds": 100})])
    job = scene.of("waiting")
    detail = await given.detail(job)
    due, margin = instant(detail, "nextRetryAt"), given.clock.margin
    if given.clock.stands:
        await given.clock.reach(due - 1, "HUB-GET-13")
    else:
        given.clock.needs_advance()
        await given.clock.advance((due - await given.clock.now()) / 1000 - 2 * margin)
    early = await given.detail(job)
    looked_in_time = given.clock.stands or await given.clock.now() < due  # where time flows a request may take long
    good = early.get("attempt") == 1 or not looked_in_time
    expect(good, f"no second attempt before {detail['nextRetryAt']}", "one", "/data/attempt")
    await given.clock.advance(0.001 if given.clock.stands else 3 * margin)
    detail = await given.until(
        job, "running", seconds=1 if given.clock.stands else given.timing.sweep, rule="HUB-GET-13"
    )
    expect_fields({"nextRetryAt": None, **detail}, {"attempt": 2, "nextRetryAt": None}, "/data")  # null may be left out


@requirement("HUB-GET-14", "HUB-GET-16", "HUB-GET-15")
async def test_sessions_and_results(given: HubGiven) -> None:
    """Each job has a session of its own; a done one has the summary and the files of its round."""
    files = ["reports/todo.md", "src/a b/ü.py"]
    said = {"summary": "已生成 reports/todo.md,共 23 项", "producedFiles": files}
    scene = await arranged(given, [Planned("done", round=said), Planned("done"), Planned("running")])
    details = [await given.detail(job) for job, _ in scene]
    with about("HUB-GET-14"):
        sessions = [detail.get("sessionId") for detail in details]
        good = None not in sessions and len(set(map(str, sessions))) == len(sessions)
        expect(good, "three different sessions", f"{sessions}", "/data/sessionId")
    result = details[0].get("result")
    with about("HUB-GET-15"):
        expect(isinstance(result, dict), "a result", json.dumps(result), "/data/result")
    rules = {"summary": ("HUB-GET-15",), "producedFiles": ("HUB-GET-16",)}
    expect_fields(result or {}, said, "/data/result", rules)


@requirement("HUB-GET-17", "HUB-GET-18")
async def test_failures_are_told_by_type(given: HubGiven) -> None:
    """A failed job tells which failure it was, and what the node said."""
    types = ("max_iterations", "rejected", "engine_error", "llm_error")
    plans = [Planned("failed", 0.5, {"failureType": type_, "message": f"what {type_} says"}) for type_ in types]
    last = Planned("failed", 0.5, {"failureType": "script_failed", "message": "exit code 3"}, {"kind": "script"})
    async for detail, plan in _details(given, [*plans, last]):
        judge_detail(detail)
        failure = detail.get("failure")
        with about("HUB-GET-17"):
            expect(isinstance(failure, dict), "a failure", json.dumps(failure), "/data/failure")
        wanted = {"type": plan.round["failureType"], "message": plan.round["message"]}
        rules = {"type": ("HUB-GET-18",), "message": ("HUB-GET-17",)}
        expect_fields(failure or {}, wanted, "/data/failure", rules)


async def _details(given: HubGiven, plans: list[Planned]) -> Any:
    scene = await arranged(given, plans)
    for job, plan in scene:
        yield await given.detail(job), plan


@requirement("HUB-GET-19")
async def test_the_last_error_is_of_the_round_before(given: HubGiven) -> None:
    """After a retry `message` is why this round failed, `lastError` why the one before did."""
    broke = {"afterSeconds": 1, "result": "failed", "failureType": "engine_error", "message": "it broke"}
    scene = await arranged(given, [Planned("waiting", again=broke)])
    detail = await retried(given, scene.of("waiting"), "failed", 1)
    judge_detail(detail)
    failure = detail.get("failure") or {}
    expect_fields(failure, {"message": "it broke", "lastError": "429 rate limited"}, "/data/failure")


@requirement("HUB-GET-20")
async def test_blocked_by_a_node_that_is_offline(given: HubGiven) -> None:
    """`blocked` appears while a job is queued on a node that is offline, and not otherwise."""
    scene = await arranged(given, [Planned("running"), Planned("queued"), Planned("cancelled")])
    waits, others = scene.of("queued"), [scene.of("running"), scene.of("cancelled")]

    async def judge(blocked: bool) -> None:
        for job in [waits, *others]:
            came, wanted = (await given.detail(job)).get("blocked"), blocked and job is waits
            what = "blocked, an object" if wanted else "blocked null"
            expect((came is not None) == wanted, what, json.dumps(came), "/data/blocked")

    await judge(blocked=False)
    await given.offline(scene.node)
    await judge(blocked=True)
    await given.online(scene.node)
    await judge(blocked=False)


@requirement("HUB-GET-25")
async def test_metadata_comes_back_unchanged(given: HubGiven) -> None:
    """Metadata of any shape is returned as the same JSON value."""
    project = await given.project()
    ids = await given.submitted([item(project, metadata=value) for value in METADATA])
    for id_, value in zip(ids, METADATA, strict=True):
        came = (await given.detail(id_)).get("metadata")
        sent, shown = (json.dumps(one, ensure_ascii=False) for one in (value, came))
        expect(same_json(came, value), sent, shown, "/data/metadata")


@requirement("HUB-GET-26")
async def test_every_success_has_a_request_id(api: HubApi, given: HubGiven) -> None:
    """Each success carries a `requestId` that begins with `req_`, and each request has its own."""
    project, key = await given.project(), given.unique("key")
    first = await given.accepted(item(project), item(project), key=key)
    ids = [entry["id"] for entry in first.data["items"]]
    batch = str(first.data.get("batchId"))
    calls = {
        "the same submission again": api.submit(item(project), item(project), key=key),
        "the list": api.jobs(batchId=batch),
        "the detail": api.job(ids[0]),
        "the cancel": api.cancel(ids[1]),
        "the retry": api.retry(ids[1]),
        "the batch": api.batch(batch),
        "the cancel of the batch": api.cancel_batch(batch),
        "the projects": api.projects(),
        "the overview": api.overview(),
    }
    seen = [_request_id(first, "the submission")]
    for what, call in calls.items():
        answer = await call.answers()
        if answer.status < 300:  # whether it succeeds, other checks say
            seen.append(_request_id(answer, what))
    expect(len(set(seen)) == len(seen), "a requestId for each request", f"{seen}", "/requestId")


def _request_id(answer: HubAnswer, what: str) -> str:
    came = answer.fields.get("requestId")
    good = isinstance(came, str) and came.startswith("req_") and len(came) > 4
    expect(good, f"requestId `req_...` of {what}", json.dumps(came), "/requestId")
    return str(came)
