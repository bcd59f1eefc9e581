"""The hub's rows in a data file: a world made of it has the same jobs, and they go on as they would have."""

from __future__ import annotations

import json

import httpx
import pytest
import yaml
from hub_world import HubWorld, served
from mock_world import World, start, stop

NOWHERE = "http://127.0.0.1:9/hook"
"""A URL at which nobody listens: deliveries there are repeated."""
FAILS = {"afterSeconds": 5, "result": "failed", "failureType": "llm_error", "retriable": True, "message": "429"}
TELLS = {"atSeconds": 1, "toolCalls": 3, "lastActivity": "read_file"}


@pytest.fixture(scope="module")
def hub():
    with served() as hub:
        yield hub


@pytest.fixture(scope="module")
def busy(hub):
    """The ids of jobs in all states, among them one whose node is silent and one with a delivery that is repeated."""
    hub.state("node", nodeId="node-2", label="二号", projects=["slow", "lost", "wait"])
    hub.state("node", nodeId="node-3", online=False, projects=["off"])
    hub.state("default-callback", url=NOWHERE)
    hub.state("outcome", projectId="slow", attempts=[{"afterSeconds": 90, "progress": [TELLS], "summary": "done: 好"}])
    hub.state("outcome", projectId="lost", attempts=[{"afterSeconds": 3, "result": "node_lost"}, {"afterSeconds": 2}])
    hub.state("outcome", projectId="wait", attempts=[FAILS, {"afterSeconds": 4}])
    names = {"metadata": {"a": [1.5, None, "汉字"]}, "externalId": "TASK-1"}
    ids = [
        *hub.submit({}, {"projectId": "slow", **names}, {"projectId": "slow", "priority": 7}, batchId="b-1"),
        *hub.submit({"projectId": "lost"}, {"projectId": "wait", "callbackUrl": NOWHERE}, batchId="b-2"),
    ]
    (cancelled,) = hub.submit({"projectId": "slow"})
    hub.state("advance-time", seconds=6)
    assert hub.send("POST", f"/v1/jobs/{cancelled}/cancel").status_code == 200
    body = {"items": [{"kind": "ai", "projectId": "proj", "prompt": "once"}]}
    assert hub.send("POST", "/v1/jobs", json=body, headers={"idempotency-key": "order-1"}).status_code == 202
    return [*ids, cancelled]


def data(hub: HubWorld, form: str = "json") -> httpx.Response:
    world = hub.world.path.rpartition("/")[2] or "default"
    url = f"{hub.world.base_url}/__control__/worlds/{world}/data?format={form}"
    return hub.world.client.get(url)


def copy(hub: HubWorld, made_of: dict, name: str) -> HubWorld:
    answer = hub.world.client.post(f"{hub.world.base_url}/__control__/worlds", json={"id": name, "data": made_of})
    assert answer.status_code == 201, answer.text
    return HubWorld(World(hub.world.client, hub.world.base_url, f"/__worlds__/{name}"))


def shown(hub: HubWorld, ids: list[str]) -> list[dict]:
    """The details of jobs without what is made up anew for each round."""
    return [{name: value for name, value in hub.job(id_).items() if name != "sessionId"} for id_ in ids]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_world_made_of_the_data_has_the_same_rows(hub, busy, form):
    came = data(hub, form)
    rows = yaml.safe_load(came.text) if form == "yaml" else came.json()
    assert {row["status"] for row in rows["hub"]["jobs"]} == {"queued", "running", "done", "failed", "cancelled"}
    assert set(rows["hub"]) == {"nodes", "scripts", "callbacks", "submissions", "deliveries", "jobs"}
    other = copy(hub, rows, f"same-{form}")
    again = data(other).json()
    for one in (again, rows):  # a try that was on its way is made again
        for row in one["hub"]["deliveries"]:
            row.pop("state"), row.pop("nextTryAt", None), row.pop("tries")
    assert again == rows
    assert [hub.job(id_) for id_ in busy] == [other.job(id_) for id_ in busy]


def test_its_jobs_go_on_as_they_would_have(hub, busy):
    other = copy(hub, data(hub).json(), "goes-on")
    seen = set()
    for seconds in (1, 27, 30, 60, 700):
        for one in (hub, other):
            one.state("advance-time", seconds=seconds)
        assert shown(hub, busy) == shown(other, busy)
        seen.add(tuple(hub.statuses(*busy)))
    assert len(seen) > 3
    once = {"items": [{"kind": "ai", "projectId": "proj", "prompt": "once"}]}
    answers = [one.send("POST", "/v1/jobs", json=once, headers={"idempotency-key": "order-1"}) for one in (hub, other)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["data"] == answers[1].json()["data"]
    states = [[row["state"] for row in data(one).json()["hub"]["deliveries"]] for one in (hub, other)]
    assert sorted(states[0]) == sorted(states[1])


def test_a_reset_brings_them_back(hub, busy):
    rows = data(hub).json()
    other = copy(hub, rows, "reset")
    before = data(other).json()["hub"]["jobs"]
    other.state("advance-time", seconds=3600)
    other.submit({})
    assert hub.world.client.post(f"{hub.world.base_url}/__control__/worlds/reset/reset").status_code == 204
    assert data(other).json()["hub"]["jobs"] == before


def test_the_file_serves_a_mock(hub, busy, tmp_path):
    path = tmp_path / "world.yaml"
    path.write_text(data(hub, "yaml").text, encoding="utf-8")
    process, url = start("--clock", "manual", "--data", str(path))
    with httpx.Client(trust_env=False) as client:
        served_again = HubWorld(World(client, url, ""))
        assert [served_again.job(id_) for id_ in busy] == [hub.job(id_) for id_ in busy]
    assert stop(process) == ""


NODE = {"id": "n", "label": "n", "online": True, "projects": ["p"], "since": 1}
JOB = {
    "id": "j",
    "account": "a",
    "kind": "ai",
    "projectId": "p",
    "nodeId": "n",
    "batchId": "b",
    "priority": 0,
    "maxAttempts": 1,
    "title": "t",
    "queuedAt": 1,
}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"node": []}, ["/hub/node", "did you mean `nodes`?"]),
        ({"nodes": [{**NODE, "onlin": True}]}, ["/hub/nodes/0/onlin", "did you mean `online`?"]),
        ({"nodes": [{**NODE, "online": "yes"}]}, ["/hub/nodes/0/online", "boolean"]),
        ({"jobs": [JOB]}, ["/hub/jobs/0", "there is no node `n`", "in the list nodes"]),
        ({"nodes": [NODE, NODE]}, ["/hub/nodes/1", "`n` is there already"]),
        ({"nodes": [NODE], "jobs": [{**JOB, "status": "done"}]}, ["/hub/jobs/0", "none of a `done` job"]),
        (
            {"callbacks": [{"account": "a", "url": "http://example.com/"}]},
            ["/hub/callbacks/0", "--allow-callback-host"],
        ),
    ],
)
def test_rows_that_can_not_be_are_refused_with_place_and_mend(hub, rows, told):
    answer = hub.world.client.post(
        f"{hub.world.base_url}/__control__/worlds", json={"id": "bad", "data": {"hub": rows}}
    )
    assert answer.status_code == 400
    said = json.dumps(answer.json(), ensure_ascii=False)
    assert [text for text in told if text not in said] == [], said


def test_rows_by_hand_are_enough_for_a_job_to_run(hub):
    other = copy(hub, {"hub": {"nodes": [NODE], "jobs": [JOB]}}, "by-hand")
    assert other.statuses("j") == ["running"]
    other.state("advance-time", seconds=2)
    assert other.statuses("j") == ["done"]
