"""The clock over the control plane: what time it is, moving it, and what fired."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from mock_world import KEY

from mock_server.seed_data import SeedData, export
from mock_server.worlds import Options, Worlds

DAY = 86_400


def advance(world, seconds, **body):
    answer = world.control("POST", "/clock/advance", json={"seconds": seconds, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_time_it_is_and_when_something_happens_next(world):
    seen = world.control("GET", "/clock").json()
    assert seen == {"clock": "manual", "now": world.state("advance-time", seconds=0)["now"], "nextDueAt": None}
    job = world.state("job")["jobId"]
    until = world.lock(job).json()["lockUntil"]
    assert world.control("GET", "/clock").json()["nextDueAt"] == until + 1


def test_what_fired_is_told_in_order(world):
    begin = world.control("GET", "/clock").json()["now"]
    ids = [world.state("job", timeoutSeconds=30, maxRetryCount=retries)["jobId"] for retries in (3, 0)]
    for job in ids:
        world.lock(job)
    world.heartbeat(ids[1])
    answer = advance(world, 3600)
    assert answer == {
        "now": begin + 3_600_000,
        "firedCount": 2,
        "leftOut": 0,
        "fired": [
            {"at": begin + 30_001, "timer": "run-times-out", "jobId": ids[1], "from": "running", "to": "failed"},
            {"at": begin + 60_001, "timer": "lock-lapses", "jobId": ids[0], "from": "locked", "to": "pending"},
        ],
    }
    assert advance(world, 3600)["firedCount"] == 0


def test_the_list_is_bounded_and_says_what_it_left_out(world):
    for _ in range(5):
        world.lock(world.state("job")["jobId"])
    answer = advance(world, 61, limit=2)
    assert (answer["firedCount"], len(answer["fired"]), answer["leftOut"]) == (5, 2, 3)


def test_the_provider_state_moves_the_same_clock(world):
    now = world.state("advance-time", seconds=1.5)["now"]
    assert world.control("GET", "/clock").json()["now"] == now
    assert advance(world, 0.001)["now"] == now + 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "/seconds is required"),
        ({"seconds": -1}, "/seconds must be at least 0"),
        ({"seconds": "60"}, "/seconds must be of type number"),
        ({"seconds": 1e10}, "/seconds must be at most"),
        ({"seconds": 1, "limit": -1}, "/limit must be at least 0"),
        ({"minutes": 1}, "/minutes is not known here"),
    ],
)
def test_a_wrong_step_is_told_with_the_mend(world, body, told):
    answer = world.control("POST", "/clock/advance", json=body)
    assert answer.status_code == 400
    assert told in answer.json()["error"]


def test_no_clock_goes_past_what_can_be_written(client, base_url):
    data = {"now": 253_370_764_799_000}
    path = client.post(f"{base_url}/__control__/worlds", json={"data": data}).json()["path"]
    control = f"{base_url}{path}/__control__"
    body = {"action": "setup", "state": "advance-time", "params": {"seconds": 2}}
    for answer in (
        client.post(f"{control}/clock/advance", json={"seconds": 2}),
        client.post(f"{control}/provider-states/runtime-api", json=body),
    ):
        assert answer.status_code == 400
        assert "year 9999" in answer.json()["error"]
    assert client.post(f"{control}/clock/advance", json={"seconds": 1}).status_code == 200


def test_a_day_in_one_call_is_86_400_single_seconds():
    """10,000 timers of both kinds, equally due ones among them: the same rows, and the same fired in the same order."""
    rng, now = random.Random(7), 1_700_000_000_000
    jobs = []
    for n in range(10_000):
        due = now + rng.randrange(DAY * 1000 - 1)
        if n % 10 == 0:
            due -= due % 60_000  # many at the same instant
        job = {"id": f"job-{n:05}", "userId": "u", "jobType": "quiz_generation", "targetType": "user", "targetId": "t"}
        job |= {"lockedBy": f"r{n % 7}", "lockedAt": now - 1, "maxRetryCount": n % 2, "cancelRequested": n % 11 == 0}
        if n % 2:
            job |= {"status": "locked", "lockUntil": max(now, due)}
        else:
            seconds = max(1, (due - now) // 1000)
            job |= {
                "status": "running",
                "startedAt": now - 500,
                "timeoutSeconds": seconds,
                "lockUntil": now + DAY * 2000,
            }
        jobs.append(job)
    rng.shuffle(jobs)
    seeds = SeedData.parse({"now": now, "jobs": jobs})
    worlds = Worlds(Options(api_key=KEY, clock="manual"))

    async def day(step: int):
        world = worlds.make()
        await world.fill(seeds)
        fired, count = [], 0
        for _ in range(DAY // step):
            _, some = await world.advance(step, most=100_000)
            fired += some.entries
            count += some.count
        return await export(world), fired, count

    begin = time.perf_counter()
    at_once, fired_at_once, count = asyncio.run(day(DAY))
    in_steps, fired_in_steps, steps_count = asyncio.run(day(1))
    assert time.perf_counter() - begin < 15  # two or three here
    assert count == steps_count == len(fired_at_once) == 10_000
    assert fired_at_once == fired_in_steps
    assert at_once == in_steps
    assert {entry["timer"] for entry in fired_at_once} == {"lock-lapses", "run-times-out"}
    assert {entry["to"] for entry in fired_at_once} == {"pending", "failed", "cancelled"}
    assert len({entry["at"] for entry in fired_at_once}) < 9_600
