"""The seed's examples of the hub: its requests byte for byte, in a world with its ids, and its answers beside ours.

Answers are compared by the names and types of their fields, and by the values that the request, or the world, fixes.
Where ours is another, ``DEVIATIONS`` says why; one that is none any more fails, too.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hub_world import HubWorld
from mock_world import World, start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parents[1] / "seed_facts" / "examples"
TOKEN = "zqa_live_xxx"
SEED_HEADERS = {"idempotency-key": "order-20261109-001", "content-type": "application/json"}

DEVIATIONS = {
    "/data/result": "the seed shows a result beside a failure; here a result is that of a round that succeeded",
}
"""JSON Pointers of the fields of the detail whose type is another here, and why."""


def example(name: str) -> Any:
    """What the seed prints."""
    return json.loads((EXAMPLES / name).read_bytes())


@pytest.fixture
def hub():
    process, url = start("--clock", "manual", "--hub-token", TOKEN, "--allow-callback-host", "team.cd-zq.com")
    with httpx.Client() as client:
        hub = HubWorld(World(client, url, ""), TOKEN)
        hub.state("node", nodeId="node_be", label="后端构建机", projects=["proj_order", "proj_web"])
        yield hub
    stop(process)


def kind(value: Any) -> str:
    """The JSON type; an integer is a number."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")


def differences(wanted: Any, came: Any, at: str = "") -> Iterator[str]:
    """Where a field of the seed's is missing or of another type; of a list the first item stands for all."""
    if kind(wanted) != kind(came):
        yield at
    elif isinstance(wanted, dict):
        for name, value in wanted.items():
            if name not in came:
                yield f"{at}/{name}"
            else:
                yield from differences(value, came[name], f"{at}/{name}")
    elif isinstance(wanted, list) and wanted:
        yield from differences(wanted[0], came[0], f"{at}/0") if came else [f"{at}/0"]


def submitted(hub: HubWorld) -> httpx.Response:
    """The seed's submission, as it stands there."""
    return hub.send(
        "POST", "/v1/jobs", content=(EXAMPLES / "submitJobs.request.json").read_bytes(), headers=SEED_HEADERS
    )


def played(hub: HubWorld) -> str:
    """The seed's job after its second attempt failed, 12 s of waiting and 411 s of running behind it; its id."""
    failed = {"result": "failed", "failureType": "llm_error", "retriable": True}
    hub.state(
        "outcome",
        projectId="proj_order",
        externalId="TASK-1024",
        attempts=[
            {**failed, "afterSeconds": 100, "message": "429 rate limited"},
            {
                **failed,
                "afterSeconds": 281,
                "message": "本轮未正常完成(error):RateLimitError",
                "progress": [
                    {
                        "atSeconds": 276,
                        "toolCalls": 18,
                        "tokensIn": 21000,
                        "tokensOut": 3400,
                        "iterations": 12,
                        "lastActivity": "调用工具 write_file",
                    }
                ],
            },
        ],
    )
    hub.state("outcome", projectId="proj_order", externalId="before", attempts=[{"afterSeconds": 12}])
    hub.submit({"projectId": "proj_order", "externalId": "before", "priority": 100})
    job = submitted(hub).json()["data"]["items"][0]["id"]
    # our clock stands: its job was queued a millisecond later, since no two have the same place
    hub.state("advance-time", seconds=12 + 411)
    return job


def test_the_submission(hub):
    answer = submitted(hub)
    assert answer.status_code == 202
    wanted = example("submitJobs.response.json")
    assert list(differences(wanted, answer.json())) == []
    given = {name: value for name, value in wanted["data"]["items"][0].items() if name != "id"}
    came = answer.json()["data"]
    assert (came["batchId"], came["accepted"]) == ("sprint-42", 1)
    assert {name: came["items"][0][name] for name in given} == given

    again = submitted(hub)
    assert (again.status_code, again.json()["data"]) == (200, came)


def test_the_detail(hub):
    job = played(hub)
    wanted, came = example("getJob.response.json"), hub.send("GET", f"/v1/jobs/{job}").json()
    assert sorted(differences(wanted, came)) == sorted(DEVIATIONS)
    fixed = ("externalId", "kind", "status", "nodeId", "nodeLabel", "projectId", "batchId", "title", "attempt")
    fixed += ("maxAttempts", "priority", "durationMs", "failure", "blocked", "metadata")
    assert {name: came["data"][name] for name in fixed} == {name: wanted["data"][name] for name in fixed}
    assert came["data"]["waitMs"] == wanted["data"]["waitMs"] - 1  # queued a millisecond after the job before it
    progress = {name: value for name, value in wanted["data"]["progress"].items() if name != "updatedAt"}
    assert {name: came["data"]["progress"][name] for name in progress} == progress


def test_the_seeds_own_sums_do_not_add_up():
    """So these are not compared: a build that keeps the rules can't show them."""
    job = example("getJob.response.json")["data"]
    waits = datetime.fromisoformat(job["nextRetryAt"]) - datetime.fromisoformat(job["finishedAt"])
    assert waits.total_seconds() == 117  # after the second attempt the rule has two minutes
    batch = example("getBatch.response.json")["data"]
    sums = {entry["projectId"]: sum(entry[status] for status in batch["counts"]) for entry in batch["byProject"]}
    totals = {entry["projectId"]: entry["total"] for entry in batch["byProject"]}
    assert (totals, sums) == ({"proj_order": 40, "proj_web": 60}, {"proj_order": 41, "proj_web": 59})
    slowest = max((entry["queued"] + entry["running"]) * entry["avgDurationMs"] for entry in batch["byProject"])
    assert batch["estimatedRemainingMs"] != slowest


def test_the_list(hub):
    job = played(hub)
    listed = hub.send("GET", "/v1/jobs?status=failed&projectId=proj_order&limit=20").json()["data"]
    assert [item["id"] for item in listed["items"]] == [job]
    assert listed["items"] == [hub.job(job)]
    assert listed["nextCursor"] is None


def test_the_batch(hub):
    hub.state("outcome", projectId="proj_web", attempts=[{"afterSeconds": 240}])
    hub.submit(*({"projectId": "proj_web"} for _ in range(2)), batchId="sprint-42")
    played(hub)
    hub.state("advance-time", seconds=1)  # it began behind the others' places in the list
    wanted, came = example("getBatch.response.json"), hub.send("GET", "/v1/batches/sprint-42").json()
    assert came["data"]["estimatedRemainingMs"] is not None
    web = next(entry for entry in came["data"]["byProject"] if entry["projectId"] == "proj_web")
    came["data"]["byProject"] = [web]
    assert list(differences(wanted, came)) == []
    assert web["avgDurationMs"] == 240_000

    cancelled = hub.send("POST", "/v1/batches/sprint-42/cancel")
    assert cancelled.status_code == 200
    assert list(differences(example("cancelBatch.response.json"), cancelled.json()["data"])) == []


def test_the_stream(hub):
    job = played(hub)
    with hub.world.client.stream(
        "GET", f"{hub.world.base_url}/v1/jobs/{job}/events", headers={"authorization": f"Bearer {TOKEN}"}
    ) as stream:
        lines = stream.iter_lines()
        first = [next(lines) for _ in range(5)]
    assert first[:4] == [": ping", "", "id: 1", "event: job.state"]
    data = json.loads(first[4].removeprefix("data: "))
    assert data["id"] == job
    assert {"status", "progress"} <= set(data)


def test_a_project_on_two_nodes(hub):
    hub.state("node", nodeId="node_a", projects=["proj_order"])
    answer = submitted(hub)
    wanted = example("ambiguousProject.response.json")
    assert answer.status_code == 400
    assert list(differences(wanted, answer.json())) == []
    error = answer.json()["error"]
    assert error["code"] == wanted["error"]["code"]
    assert all(word in error["message"] for word in ("proj_order", "node_a", "node_be", "nodeId"))


def test_a_job_whose_node_went_away(hub):
    hub.submit({"projectId": "proj_order"})
    job = submitted(hub).json()["data"]["items"][0]["id"]
    hub.state("node-online", nodeId="node_be", online=False)
    blocked = hub.job(job)["blocked"]
    wanted = example("blocked.json")
    assert list(differences(wanted, blocked)) == []
    assert (blocked["reason"], blocked["nodeId"]) == (wanted["reason"], wanted["nodeId"])
    assert hub.send("GET", "/v1/overview").json()["data"]["load"]["stalledQueued"] == 1
