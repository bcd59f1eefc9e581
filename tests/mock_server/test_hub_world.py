"""The hub as a part of its world: time, isolation, snapshots, the journal, the end."""

from __future__ import annotations

import json
import threading
import time

import httpx
import pytest
from hub_world import TOKEN, HubWorld, Receiver
from mock_world import World, start, stop


@pytest.fixture
def hub(world):
    """The hub of the test's world, with a node that has a project."""
    hub = HubWorld(world)
    hub.state("node", nodeId="node-1", projects=["proj"])
    return hub


def test_a_round_takes_the_time_that_its_script_says(hub):
    hub.state("outcome", projectId="proj", attempts=[{"afterSeconds": 90}])
    (job,) = hub.submit()
    assert hub.statuses(job) == ["running"]
    hub.state("advance-time", seconds=89.999)
    assert hub.statuses(job) == ["running"]
    hub.state("advance-time", seconds=0.001)
    assert hub.statuses(job) == ["done"]
    assert hub.job(job)["durationMs"] == 90_000


def test_one_step_of_a_day_gives_what_waiting_would_have_given(hub):
    failed = {"result": "failed", "failureType": "llm_error", "retriable": True, "afterSeconds": 10, "message": "429"}
    hub.state("outcome", projectId="proj", attempts=[failed])
    (job,) = hub.submit()
    hub.state("advance-time", seconds=86_400)
    detail = hub.job(job)
    assert (detail["status"], detail["attempt"], detail["nextRetryAt"]) == ("failed", 4, None)
    assert detail["durationMs"] == (4 * 10 + 30 + 120 + 600) * 1000


def test_a_hub_moves_on_by_itself_where_its_clock_flows():
    process, url = start("--clock", "x60")
    try:
        with httpx.Client() as client:
            hub = HubWorld(World(client, url, ""))
            receiver = Receiver()
            hub.state("node", nodeId="node-1", projects=["proj"])
            hub.state("outcome", projectId="proj", attempts=[{"afterSeconds": 6}])
            (job,) = hub.submit({"callbackUrl": receiver.url})
            with client.stream(
                "GET", f"{url}/v1/jobs/{job}/events", headers={"authorization": f"Bearer {TOKEN}"}
            ) as stream:
                names = [line.removeprefix("event: ") for line in stream.iter_lines() if line.startswith("event: ")]
            assert names == ["job.state", "job.progress", "job.completed"]
            ((_, body), *_) = receiver.wait(1)
            assert json.loads(body)["data"]["id"] == job
            receiver.close()
    finally:
        assert stop(process) == ""


def test_worlds_do_not_see_each_others_hubs(hub, client, base_url):
    (job,) = hub.submit()
    other = HubWorld(World(client, base_url, ""))
    assert other.send("GET", f"/v1/jobs/{job}").status_code == 404
    assert other.send("GET", "/v1/projects").json()["data"]["items"] == []


def test_the_second_key_sees_nothing_of_the_first(hub):
    (job,) = hub.submit(batchId="b")
    second = HubWorld(hub.world, TOKEN + "_b")
    for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", "/v1/batches/b"):
        assert second.send("GET", path).status_code == 404
    assert second.send("GET", "/v1/jobs").json()["data"]["items"] == []


def test_a_snapshot_brings_the_hub_back(hub, world):
    hub.state("outcome", projectId="proj", attempts=[{"afterSeconds": 60}])
    first, second = hub.submit({}, {})
    hub.state("advance-time", seconds=10)
    id_ = world.path.rpartition("/")[2]
    assert world.control("POST", f"/worlds/{id_}/snapshots", json={"name": "running"}).status_code == 201
    before = hub.job(first)
    for _ in range(2):
        hub.state("advance-time", seconds=50)
        assert hub.statuses(first, second) == ["done", "running"]
        hub.send("POST", f"/v1/jobs/{second}/cancel")
        assert world.control("POST", f"/worlds/{id_}/snapshots/running/restore").status_code == 204
        assert hub.job(first) == before
        assert hub.statuses(second) == ["queued"]


def test_a_snapshot_taken_before_the_hub_was_used_empties_it(world):
    id_ = world.path.rpartition("/")[2]
    world.control("POST", f"/worlds/{id_}/snapshots", json={"name": "empty"})
    hub = HubWorld(world)
    hub.state("node", nodeId="node-1", projects=["proj"])
    (job,) = hub.submit()
    world.control("POST", f"/worlds/{id_}/snapshots/empty/restore")
    assert hub.send("GET", f"/v1/jobs/{job}").status_code == 404


def test_open_deliveries_are_made_again_after_a_restore(hub, world):
    receiver = Receiver(500, 500, 200)
    try:
        (job,) = hub.submit({"callbackUrl": receiver.url})
        hub.state("advance-time", seconds=1)
        receiver.wait(1)
        id_ = world.path.rpartition("/")[2]
        world.control("POST", f"/worlds/{id_}/snapshots", json={"name": "tried"})
        hub.state("advance-time", seconds=5)
        receiver.wait(2)
        world.control("POST", f"/worlds/{id_}/snapshots/tried/restore")
        hub.state("advance-time", seconds=5)
        tries = receiver.wait(3)
        assert len({headers["webhook-id"] for headers, _ in tries}) == 1
        assert {json.loads(body)["data"]["id"] for _, body in tries} == {job}
    finally:
        receiver.close()


def test_reset_of_a_world_ends_streams_and_removes_the_hub(hub, world):
    (job,) = hub.submit()
    seen: list[str] = []

    def follow() -> None:
        url = f"{world.base_url}{world.path}/v1/jobs/{job}/events"
        with httpx.stream("GET", url, headers={"authorization": f"Bearer {TOKEN}"}) as stream:
            for line in stream.iter_lines():
                if line.startswith("event: "):
                    seen.append(line)
                    opened.set()

    opened = threading.Event()
    thread = threading.Thread(target=follow)
    thread.start()
    assert opened.wait(5)
    id_ = world.path.rpartition("/")[2]
    assert world.control("POST", f"/worlds/{id_}/reset").status_code == 204
    thread.join(5)
    assert seen == ["event: job.state", "event: job.deleted"]
    assert hub.send("GET", f"/v1/jobs/{job}").status_code == 404


def test_no_key_of_the_hub_stands_in_the_journal(hub, world):
    (job,) = hub.submit({"prompt": "use the key"})
    hub.send("GET", f"/v1/jobs/{job}?token={TOKEN}")
    hub.send("GET", "/v1/overview", headers={"x-mine": TOKEN})
    text = json.dumps(world.journal())
    assert [entry["operationId"] for entry in world.journal()] == ["submitJobs", "getJob", "getOverview"]
    assert {entry["caller"] for entry in world.journal()} == {"a"}
    assert TOKEN not in text


def test_open_streams_do_not_hold_up_the_end_of_the_server():
    process, url = start("--clock", "manual")
    with httpx.Client() as client:
        hub = HubWorld(World(client, url, ""))
        hub.state("node", nodeId="node-1", projects=["proj"])
        (job,) = hub.submit()
        with client.stream(
            "GET", f"{url}/v1/jobs/{job}/events", headers={"authorization": f"Bearer {TOKEN}"}
        ) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": ping"
            began = time.monotonic()
            errors = stop(process)
            assert time.monotonic() - began < 3
            assert errors == ""
            assert process.returncode == 0


@pytest.mark.parametrize("path", ["", "/v1"])
def test_the_clock_of_both_apis_is_one(hub, world, path):
    job = world.state("job")["jobId"]
    world.lock(job)
    hub.submit()
    now = hub.state("advance-time", seconds=61)["now"]
    assert world.state("advance-time", seconds=0)["now"] == now
    assert world.state("inspect-job", jobId=job)["status"] == "pending"


def test_what_a_world_can_not_deliver_to_is_refused(hub):
    url = "https://team.example/hook"
    item = {"kind": "ai", "projectId": "proj", "prompt": "x", "callbackUrl": url}
    refused = hub.send("POST", "/v1/jobs", json={"items": [item]})
    assert refused.status_code == 400
    assert refused.json()["error"]["details"][0]["field"] == "callbackUrl"
    assert hub.try_state("default-callback", url=url).status_code == 400


def test_fault_plans_meet_the_hub(hub, world):
    plans = [
        {
            "id": "busy",
            "match": {"operationId": "submitJobs"},
            "when": {"nth": [1]},
            "fault": {"kind": "status", "status": 500},
        },
        {
            "id": "lost",
            "match": {"operationId": "submitJobs"},
            "when": {"nth": [2]},
            "fault": {"kind": "reset", "at": "after-commit"},
        },
    ]
    assert world.control("POST", "/faults", json=plans).status_code == 201
    body = {"items": [{"kind": "ai", "projectId": "proj", "prompt": "x"}], "batchId": "b"}
    refused = hub.send("POST", "/v1/jobs", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (500, "internal_error")
    assert refused.json()["requestId"] == refused.headers["x-request-id"]
    with pytest.raises(httpx.ReadError):
        hub.send("POST", "/v1/jobs", json=body)
    assert hub.send("GET", "/v1/batches/b").json()["data"]["total"] == 1


def test_an_event_stream_goes_through_fault_plans_as_it_is(hub, world):
    plan = {"match": {"operationId": "streamJob"}, "fault": {"kind": "truncated-json"}}
    world.control("POST", "/faults", json=plan)
    (job,) = hub.submit()
    hub.state("advance-time", seconds=1)
    names = [line for line in hub.send("GET", f"/v1/jobs/{job}/events").text.splitlines() if line.startswith("event")]
    assert names == ["event: job.state", "event: job.completed"]


def test_the_journal_is_filtered_by_the_hubs_own_words(hub, world):
    (job,) = hub.submit()
    hub.send("POST", f"/v1/jobs/{job}/retry")
    hub.send("GET", "/v1/jobs/nowhere")
    found = {
        query: [entry["operationId"] for entry in world.control("GET", f"/journal?{query}").json()["entries"]]
        for query in ("operationId=retryHubJob", "errorCode=job_not_found", f"jobId={job}", "caller=a&verdict=ok")
    }
    assert found == {
        "operationId=retryHubJob": ["retryHubJob"],
        "errorCode=job_not_found": ["getJob"],
        f"jobId={job}": ["retryHubJob"],
        "caller=a&verdict=ok": ["submitJobs"],
    }


@pytest.mark.parametrize(("secret", "signed"), [("a secret of its own", True), (None, False)])
def test_a_world_signs_webhooks_with_a_secret_of_its_own(client, base_url, secret, signed):
    made = client.post(f"{base_url}/__control__/worlds", json={"webhookSecret": secret})
    assert made.status_code == 201, made.text
    hub, receiver = HubWorld(World(client, base_url, made.json()["path"])), Receiver()
    hub.state("node", nodeId="node-1", projects=["proj"])
    hub.submit({"callbackUrl": receiver.url})
    hub.state("advance-time", seconds=1)
    ((headers, _), *_) = receiver.wait(1)
    receiver.close()
    assert ("webhook-signature" in headers) is signed
    assert "a secret of its own" not in client.get(f"{base_url}/__control__/worlds").text


def test_a_secret_that_can_not_sign_is_refused(client, base_url):
    refused = client.post(f"{base_url}/__control__/worlds", json={"webhookSecret": "whsec_"})
    assert refused.status_code == 400
    assert "webhookSecret" in refused.text


@pytest.mark.parametrize("limit", ["2.0", "2e0", "0.2e1"])
def test_a_whole_number_may_be_written_with_a_fraction(hub, limit):
    hub.submit({}, {}, {})
    assert len(hub.send("GET", f"/v1/jobs?limit={limit}").json()["data"]["items"]) == 2


def test_the_clock_tells_what_is_due_next_in_the_hub(hub, world):
    assert world.control("GET", "/clock").json()["nextDueAt"] is None
    hub.state("outcome", projectId="proj", attempts=[{"afterSeconds": 5}])
    hub.submit()
    told = world.control("GET", "/clock").json()
    assert told["nextDueAt"] == told["now"] + 5000
