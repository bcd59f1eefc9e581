"""Verification over HTTP: at once, and as soon as what is expected has happened."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest
from asgi import request
from mock_world import KEY, World, start, stop

from mock_server.control import Guard
from mock_server.server import Server
from mock_server.worlds import Options, Worlds


def verify(world, *expectations, **options):
    answer = world.control("POST", "/verify", json={"expectations": list(expectations), **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


def locked(job, **count):
    return {"calls": {"operationId": "lockJob", "jobId": job, "status": 200}, "count": count or {"exactly": 1}}


def test_a_runtimes_run_is_verified(world):
    job = world.state("job")["jobId"]
    world.poll()
    world.lock(job)
    for _ in range(3):
        world.state("advance-time", seconds=25)
        assert world.heartbeat(job).status_code == 204
    beats = {"calls": {"operationId": "heartbeatJob", "jobId": job}, "after": locked(job)["calls"]}
    header = {"every": {"requestHeaders": {"x-internal-api-key": True, "x-runtime-instance-id": "runtime-1"}}}
    body = {"calls": {"operationId": "lockJob", "requestBody": {"runtimeInstanceId": "runtime-1"}}}
    order = {"order": [{"operationId": name} for name in ("pollJobs", "lockJob", "heartbeatJob")]}
    assert verify(world, locked(job), {**beats, "maxGapSeconds": 30}, header, body, order)["ok"]

    answer = verify(world, {**beats, "name": "heartbeats", "maxGapSeconds": 20}, locked(job))
    assert answer["message"] == (
        "heartbeats: 25 s passed between #2 lockJob (answered 200) and #3 heartbeatJob (answered 204), "
        "at most 20 s may."
    )
    assert [item["ok"] for item in answer["expectations"]] == [False, True]
    assert answer["last"] == 5


def test_what_counts_is_what_came_since_a_mark(world):
    job = world.state("job")["jobId"]
    world.lock(job)
    last = world.control("GET", "/journal", params={"limit": 1}).json()["last"]
    assert verify(world, locked(job, exactly=0), since=last)["ok"]
    now = world.state("advance-time", seconds=10)["now"]
    assert verify(world, locked(job, exactly=0), **{"from": now})["ok"]
    assert not verify(world, locked(job, exactly=0), to=now)["ok"]


def test_the_job_after_the_request_is_told(world):
    job = world.state("job")["jobId"]
    until = world.lock(job).json()["lockUntil"]
    world.lock(job, by="runtime-2")
    world.poll()
    entries = world.journal()
    assert [(entry["jobStatus"], entry["lockedBy"], entry["lockUntil"]) for entry in entries] == [
        ("locked", "runtime-1", until),
        ("locked", "runtime-1", until),
        (None, None, None),
    ]
    assert verify(world, {"calls": {"jobStatus": "locked"}, "count": {"exactly": 2}})["ok"]


@pytest.fixture
def app():
    """A server of this process, whose clock stands."""
    return Server(Worlds(Options(api_key=KEY, clock="manual")), Guard(None, None))


async def waiting(app, *expectations, seconds=60):
    """A verification that waits."""
    body = json.dumps({"expectations": expectations, "waitSeconds": seconds}).encode()
    headers = {"content-type": "application/json"}
    task = asyncio.create_task(request(app, "POST", "/__control__/verify", body, headers))
    await settled()
    return task


async def settled():
    """Let everybody run who can."""
    for _ in range(100):
        await asyncio.sleep(0)


async def call(app, operation, job="job-1"):
    body = json.dumps({"runtimeInstanceId": "runtime-1"}).encode()
    path = f"/internal/runtime/jobs/{job}/{operation}"
    return await request(app, "POST", path, body, {"content-type": "application/json"})


MISSED = {"calls": {"operationId": "lockJob", "status": 404}, "count": {"exactly": 2}}


def test_it_waits_for_what_is_expected_and_holds_nobody_up(app):
    async def run():
        task = await waiting(app, MISSED)
        await call(app, "heartbeat")
        await call(app, "lock")
        await settled()
        assert not task.done()
        await call(app, "lock")
        status, _, body = await asyncio.wait_for(task, 10)
        return status, json.loads(body)

    status, answer = asyncio.run(run())
    assert (status, answer["ok"], answer["last"]) == (200, True, 3)
    assert answer["expectations"][0]["entries"] == [2, 3]
    assert app.worlds.default.journal.watchers == 0


def test_it_does_not_wait_on_when_one_call_too_many_came(app):
    async def run():
        once = {**MISSED, "count": {"exactly": 1}}
        task = await waiting(app, {"calls": {"operationId": "heartbeatJob"}}, {**MISSED, "count": {"atMost": 0}}, once)
        await call(app, "lock")
        return json.loads((await asyncio.wait_for(task, 10))[2])

    answer = asyncio.run(run())
    assert [item["ok"] for item in answer["expectations"]] == [False, False, True]
    assert answer["waitedSeconds"] < 10


def test_it_waits_on_when_the_journal_is_cleared(app):
    async def run():
        task = await waiting(app, MISSED)
        await call(app, "lock")
        app.worlds.default.journal.clear()
        await call(app, "lock")
        await settled()
        assert not task.done()
        await call(app, "lock")
        return json.loads((await asyncio.wait_for(task, 10))[2])

    assert asyncio.run(run())["expectations"][0]["entries"] == [2, 3]


def test_so_many_may_wait_and_no_more(app):
    async def run():
        tasks = [await waiting(app, MISSED) for _ in range(200)]
        status, _, body = await request(
            app, "POST", "/__control__/verify", b'{"expectations":[{}]}', {"content-type": "application/json"}
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return status, body

    status, body = asyncio.run(run())
    assert status == 409
    assert b"200 verifications" in body
    assert app.worlds.default.journal.watchers == 0


def test_at_the_deadline_it_tells_what_is_missing(world):
    begun = time.monotonic()
    answer = verify(world, locked("job-1"), waitSeconds=0.2)
    assert time.monotonic() - begun >= 0.2
    assert not answer["ok"]
    assert answer["waitedSeconds"] >= 0.2


def test_it_does_not_wait_for_what_can_not_come_true(world):
    world.poll()
    begun = time.monotonic()
    assert not verify(world, {"calls": {"operationId": "pollJobs"}, "count": {"exactly": 0}}, waitSeconds=60)["ok"]
    assert time.monotonic() - begun < 30


def test_a_full_journal_makes_it_unknown():
    process, url = start("--journal-entries", "3")
    with httpx.Client() as client:
        world = World(client, url, "")
        for _ in range(5):
            world.poll()
        polls = {"calls": {"operationId": "pollJobs"}, "count": {"exactly": 3}}
        answer = verify(world, polls)
        assert (answer["ok"], answer["verdict"]) == (False, "unknown")
        assert "dropped 2" in answer["message"]
        assert verify(world, polls, since=2)["ok"]
        assert verify(world, {**polls, "count": {"exactly": 2}}, since=1)["verdict"] == "unknown"
        page = world.control("GET", "/journal").json()
        assert (page["evicted"], page["last"], len(page["entries"])) == (2, 5, 3)
        assert world.control("DELETE", "/journal").status_code == 204
        assert verify(world, {**polls, "count": {"exactly": 0}})["ok"]
    stop(process)


def test_secrets_are_in_no_answer(world):
    key = world.state("credential")["apiKey"]
    answer = world.control(
        "POST", "/verify", json={"expectations": [{"name": key, "calls": {"caller": [key, KEY], "requestBody": key}}]}
    )
    assert answer.status_code == 200
    assert key not in answer.text
    assert KEY not in answer.text


@pytest.mark.parametrize(
    ("body", "place", "told"),
    [
        ({"expectations": []}, "/expectations", "at least 1"),
        ({"expectation": [{}]}, "/expectation", "did you mean `expectations`?"),
        ({"expectations": [{"cals": {}}]}, "/expectations/0/cals", "did you mean `calls`?"),
        ({"expectations": [{}, {"calls": {"job": "1"}}]}, "/expectations/1/calls/job", "did you mean `jobId`?"),
        ({"expectations": [{"calls": {"operationId": "lokJob"}}]}, "/expectations/0/calls/operationId", "`lockJob`?"),
        ({"expectations": [{"order": [{}, {"operationId": ["x"]}]}]}, "/expectations/0/order/1/operationId", "lockJob"),
        ({"expectations": [{"after": {"errorCode": ["X"]}}]}, "/expectations/0/after/errorCode", "JOB_NOT_FOUND"),
        ({"expectations": [{"count": {"exactly": 1, "atMost": 2}}]}, "/expectations/0/count", "exactly"),
        ({"expectations": [{"count": {"atLeast": 3, "atMost": 2}}]}, "/expectations/0/count", "atLeast"),
        ({"expectations": [{"count": {}}]}, "/expectations/0/count", "at least 1"),
        ({"expectations": [{}], "waitSeconds": 301}, "/waitSeconds", "at most 300"),
        ({"expectations": [{"calls": {"status": "4x"}}]}, "/expectations/0/calls/status", "status"),
        ({"expectations": [{"per": "status"}]}, "/expectations/0/per", "jobId"),
    ],
)
def test_a_wrong_expectation_is_told_with_its_place_and_mend(world, body, place, told):
    answer = world.control("POST", "/verify", json=body)
    assert answer.status_code == 400
    assert place in answer.json()["error"]
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ({"jobStatus": "runing"}, "did you mean `running`?"),
        ({"method": "post"}, "write `POST`"),
        ({"path": "/internal/runtime/jobs/{jobId}/lock"}, "a path as it was sent"),
        ({"requestHeaders": {"X-Internal-Api-Key": "test-internal-key"}}, "write true for any value"),
    ],
)
def test_what_no_call_can_be_is_refused_not_counted_as_none(world, calls, told):
    body = {"expectations": [{"calls": calls, "count": {"exactly": 0}}]}
    answer = world.control("POST", "/verify", json=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert "/expectations/0/calls/" in answer.json()["error"]
