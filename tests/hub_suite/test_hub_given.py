"""What checks of the hub start from, on a hub whose clock stands."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

import pytest
from fake_hub import START, FakeHub

from contract_tests.agent_hub.client import item
from contract_tests.agent_hub.given import HubTiming
from contract_tests.agent_hub.services import Settings, given_for, open_services
from contract_tests.agent_hub.shapes import FIELDS, instant, judge_detail, judge_milliseconds, judge_presence
from contract_tests.checks import CheckFailed, CheckSkipped
from contract_tests.clock import Clock


@asynccontextmanager
async def opened(hub, **settings):
    """What a check is given on a hub."""
    clock = Clock(hub, rate=0, grace=0)
    async with open_services(hub, hub, clock, HubTiming(), Settings("t", **settings)) as services:
        yield given_for(services, Random("1"))


def on(hub, check, **settings):
    async def run():
        async with opened(hub, **settings) as given:
            await check(given)

    asyncio.run(run())


@pytest.mark.parametrize("state", ["queued", "running", "done", "failed", "waiting", "cancelled"])
@pytest.mark.parametrize("kind", ["ai", "script"])
def test_a_job_in_each_state(state, kind):
    async def check(given):
        job = await given.in_state(state, kind=kind)
        detail = await given.detail(job)
        assert detail["status"] == ("failed" if state == "waiting" else state)
        assert (detail["nextRetryAt"] is not None) == (state == "waiting")
        assert (detail["externalId"], detail["kind"], detail["batchId"]) == (job.external_id, kind, job.batch)
        judge_detail(detail)
        judge_presence(detail)
        judge_milliseconds(detail)

    on(FakeHub(), check)


def test_names_are_unique_and_the_same_for_the_same_seed():
    async def check(given):
        names.append(
            [given.unique("a"), given.unique("a"), (await given.project()).id, (await given.job()).external_id]
        )
        assert len({*names[-1]}) == 4

    names = []
    on(FakeHub(), check)
    on(FakeHub(), check)
    assert names[0] == names[1]


def test_a_job_of_its_own_script_disturbs_no_other_of_its_project():
    async def check(given):
        project = await given.project()
        failed = await given.failed_job(project, type="rejected", message="not approved")
        assert (await given.detail(failed))["failure"]["message"] == "not approved"
        job = await given.job(project)
        await given.until(job, "done")

    on(FakeHub(), check)


def test_time_passes_only_as_far_as_it_is_needed():
    async def check(given):
        await given.done_job()
        assert await given.clock.now() == START + 1000
        await given.script(project := await given.project(), {"afterSeconds": 7.5, "result": "done"})
        detail = await given.until(await given.job(project), "done")
        assert instant(detail, "finishedAt") - instant(detail, "startedAt") == 7500
        assert await given.clock.now() == START + 1000 + 8000

    on(FakeHub(), check)


def test_the_clock_catches_up_with_jobs_that_were_queued_ahead_of_it():
    """Of jobs that are submitted in one instant the later ones stand ahead of a clock that stands, and start then."""

    async def check(given):
        first = await given.job()
        many = await given.submitted(*[item(await given.project()) for _ in range(5)])
        job = await given.job()
        assert {(await given.detail(id_))["status"] for id_ in (first.id, *many, job.id)} == {"running"}
        assert await given.clock.now() == START + 6
        await given.clock.advance(1)
        assert (await given.detail(job))["status"] == "done"

    on(FakeHub(), check)


def test_a_state_that_never_comes_is_told_once_under_a_seed_rule():
    async def check(given):
        job = await given.running_job()
        with pytest.raises(CheckFailed) as told:
            await given.until(job, "done", seconds=3)
        assert (told.value.rules, told.value.step) == (("HUB-GET-05",), "a job that becomes done")
        assert "running after 3 s" in told.value.actual
        with pytest.raises(CheckFailed) as told:
            await given.until(job, "failed", seconds=1, rule="HUB-FAIL-05")
        assert told.value.rules == ("HUB-FAIL-05",)

    on(FakeHub(), check)


def test_a_clock_that_flows_is_waited_for():
    """Where no time can be advanced the detail is asked again, until the limit."""

    async def check(given):
        given.clock.stands = False
        given.clock.grace = 0
        job = await given.running_job()
        with pytest.raises(CheckFailed, match=r"running after 0\.2 s"):
            await given.until(job, "done", seconds=0.2)

    on(FakeHub(), check)


@pytest.mark.parametrize(
    ("path", "change", "rule"),
    [
        ("/v1/jobs", lambda body: 200, "HUB-SUB-05"),
        ("/v1/jobs", lambda body: body.update(data=[]), "HUB-SUB-06"),
        ("/v1/jobs", lambda body: body["data"].update(items=[{}]), "HUB-SUB-09"),
        ("/v1/jobs", lambda body: body["data"].update(items=None), "HUB-SUB-09"),
        ("/v1/jobs", lambda body: body["data"].update(items=[]), "HUB-SUB-09"),
        ("/v1/jobs/job_1", lambda body: 500, "HUB-GET-01"),
        ("/v1/jobs/job_1", lambda body: body.pop("data"), "HUB-GET-02"),
        ("/v1/jobs/job_1", lambda body: body["data"].update(id="job_2"), "HUB-GET-03"),
        ("/v1/jobs/job_1", lambda body: body["data"].update(status="finished"), "HUB-GET-05"),
    ],
)
def test_what_a_check_starts_from_fails_under_a_seed_rule(path, change, rule):
    def spoil(method, came, status, body):
        if came == path and status < 300:
            other = change(body)
            status = other if isinstance(other, int) else status
        return status, body

    async def check(given):
        with pytest.raises(CheckFailed) as told:
            await given.done_job()
        assert told.value.rules == (rule,)
        assert told.value.step

    on(FakeHub(spoil=spoil), check)


def test_what_is_missing_skips():
    async def check(given):
        with pytest.raises(CheckSkipped, match="second API key"):
            _ = given.stranger
        with pytest.raises(CheckSkipped, match="default-callback"):
            await given.default_callback("a", given.hook().url)

    on(FakeHub(without=["default-callback"]), check)


def test_the_second_key_is_another_account():
    async def check(given):
        job = await given.job(api=given.stranger)
        await given.api.job(job).fails(404, "job_not_found")
        assert (await given.detail(job, api=given.stranger))["id"] == job.id
        assert (await given.api.jobs().succeeds(200)).entries == []

    on(FakeHub(), check, second_token="t_b")


def test_scripts_nodes_and_callbacks_are_set_up_as_they_are_named():
    async def check(given):
        node = await given.node(projects=["p", "q"], label="back end", online=False)
        assert hub.nodes[node.id] == {"nodeId": node.id, "label": "back end", "online": False, "projects": ["p", "q"]}
        await given.online(node)
        assert hub.nodes[node.id]["online"] is True
        await given.offline(node)
        assert hub.nodes[node.id]["online"] is False
        await given.without_projects(node)
        assert hub.nodes[node.id]["projects"] == []
        await given.script("p", {"result": "hang"}, node=node, external_id="x")
        wanted = {"projectId": "p", "nodeId": node.id, "externalId": "x", "attempts": [{"result": "hang"}]}
        assert hub.scripts == [wanted]
        await given.default_callback("b", None)
        assert hub.callbacks == {"b": None}

    hub = FakeHub()
    on(hub, check)


def test_a_batch_of_several_jobs():
    async def check(given):
        project = await given.project()
        ids = await given.submitted(item(project), item(project, kind="script"), batch="sprint-42")
        details = [await given.detail(id_) for id_ in ids]
        assert [detail["batchId"] for detail in details] == ["sprint-42"] * 2
        assert [detail["status"] for detail in details] == ["running", "queued"]

    on(FakeHub(), check)


def damaged(**fields):
    """A failed job's detail as the seed prints it, with other fields."""
    detail = {
        "id": "job_9f2c", "externalId": "TASK-1024", "kind": "ai", "status": "failed", "nodeId": "node_be",
        "nodeLabel": "后端构建机", "projectId": "proj_order", "batchId": "sprint-42", "title": "检查", "attempt": 2,
        "maxAttempts": 4, "priority": 10, "queuedAt": "2026-11-09T10:05:00Z", "startedAt": "2026-11-09T10:05:12Z",
        "finishedAt": "2026-11-09T10:12:03Z", "durationMs": 411000, "waitMs": 12000,
        "nextRetryAt": "2026-11-09T10:14:00Z", "sessionId": "sess_x1",
        "result": {"summary": "已生成", "producedFiles": ["reports/todo.md"],
                   "usage": {"inputTokens": 21000, "outputTokens": 3400}, "iterations": 12, "toolCalls": 18},
        "failure": {"type": "llm_error", "message": "RateLimitError", "lastError": "429 rate limited"},
        "blocked": None,
        "progress": {"toolCalls": 18, "tokensIn": 21000, "tokensOut": 3400, "iterations": 12,
                     "lastActivity": "调用工具 write_file", "updatedAt": "2026-11-09T10:11:58Z"},
        "metadata": {"owner": "team-a"},
    }  # fmt: skip
    return {name: value for name, value in {**detail, **fields}.items() if value is not ...}


def test_the_seeds_own_detail_is_right():
    detail = damaged()
    assert {*detail} == {*FIELDS}
    judge_detail(detail)
    judge_presence(detail)
    assert instant(detail, "finishedAt") - instant(detail, "startedAt") == detail["durationMs"]


@pytest.mark.parametrize(
    ("fields", "rule", "place"),
    [
        ({"id": ...}, "HUB-GET-03", "/data/id"),
        ({"nodeId": ""}, "HUB-GET-03", "/data/nodeId"),
        ({"nodeLabel": None}, "HUB-GET-03", "/data/nodeLabel"),
        ({"externalId": 7}, "HUB-GET-03", "/data/externalId"),
        ({"kind": "job"}, "HUB-GET-04", "/data/kind"),
        ({"status": "succeeded"}, "HUB-GET-05", "/data/status"),
        ({"status": []}, "HUB-GET-05", "/data/status"),
        ({"title": None}, "HUB-GET-06", "/data/title"),
        ({"attempt": True}, "HUB-GET-07", "/data/attempt"),
        ({"maxAttempts": 5}, "HUB-GET-07", "/data/maxAttempts"),
        ({"priority": "10"}, "HUB-GET-09", "/data/priority"),
        ({"queuedAt": None}, "HUB-GET-10", "/data/queuedAt"),
        ({"startedAt": 1762682712000}, "HUB-GET-10", "/data/startedAt"),
        ({"finishedAt": "2026-11-09T10:12:03+00:00"}, "HUB-GET-10", "/data/finishedAt"),
        ({"nextRetryAt": "2026-13-09T10:14:00Z"}, "HUB-GET-10", "/data/nextRetryAt"),
        ({"durationMs": 411.5}, "HUB-GET-11", "/data/durationMs"),
        ({"waitMs": -1}, "HUB-GET-12", "/data/waitMs"),
        ({"sessionId": ""}, "HUB-GET-14", "/data/sessionId"),
        ({"result": "done"}, "HUB-GET-15", "/data/result"),
        ({"result": {"summary": ""}}, "HUB-GET-15", "/data/result/producedFiles"),
        ({"failure": {"type": "llm_error", "message": None}}, "HUB-GET-17", "/data/failure/message"),
        ({"failure": {"type": "llm", "message": "", "lastError": None}}, "HUB-FAIL-01", "/data/failure/type"),
        ({"blocked": {"reason": "node_offline", "nodeId": "n"}}, "HUB-NODE-07", "/data/blocked/lastSeen"),
        ({"progress": {"toolCalls": 0}}, "HUB-GET-21", "/data/progress/tokensIn"),
    ],
)
def test_a_field_of_another_shape_fails_under_its_rule(fields, rule, place):
    with pytest.raises(CheckFailed) as told:
        judge_detail(damaged(**fields))
    assert (told.value.rules, told.value.pointer) == ((rule,), place)


def test_what_decisions_add_is_asked_apart():
    judge_detail(damaged(externalId=..., metadata=..., nextRetryAt=..., blocked=..., waitMs=...))
    for name, rule in (("metadata", "HUB-GET-71"), ("blocked", "HUB-GET-70")):
        with pytest.raises(CheckFailed) as told:
            judge_presence(damaged(**{name: ...}))
        assert told.value.rules == (rule,)
    with pytest.raises(CheckFailed) as told:
        judge_milliseconds(damaged())
    assert told.value.rules == ("HUB-GET-50",)
