"""Worlds see nothing of each other."""

from __future__ import annotations

import time

import pytest
from mock_world import World


def test_rows_clock_and_journal_are_a_worlds_own(make):
    one, other = make(), make()
    job = one.state("job")["jobId"]
    one.state("advance-time", seconds=3600)
    assert one.poll().json()["jobs"][0]["id"] == job

    assert other.poll().json() == {"jobs": []}
    assert other.lock(job).status_code == 404
    assert one.state("advance-time", seconds=0)["now"] - other.state("advance-time", seconds=0)["now"] > 3_500_000
    assert [entry["operationId"] for entry in one.journal()] == ["pollJobs"]
    assert [entry["operationId"] for entry in other.journal()] == ["pollJobs", "lockJob"]


def test_the_default_world_sees_nothing_of_another(make, client, base_url):
    default = World(client, base_url, "")
    before = len(default.journal(limit=1000))
    make().poll()
    assert len(default.journal(limit=1000)) == before


def test_a_dropped_world_is_gone(make, client, base_url):
    world = make(id="to-drop")
    assert client.delete(f"{base_url}/__control__/worlds/to-drop").status_code == 204
    answer = world.poll()
    assert answer.status_code == 404
    assert "POST /__control__/worlds" in answer.json()["error"]
    assert client.delete(f"{base_url}/__control__/worlds/to-drop").status_code == 404


def test_a_reset_brings_back_how_a_world_was_made(make, client, base_url):
    job = {"id": "job-1", "userId": "u", "jobType": "learning_state_analysis", "targetType": "user", "targetId": "u"}
    world = make(id="to-reset", data={"jobs": [job]})
    world.state("job")
    world.lock("job-1")
    assert client.post(f"{base_url}/__control__/worlds/to-reset/reset").status_code == 204

    assert world.journal() == []
    assert [entry["id"] for entry in world.poll().json()["jobs"]] == ["job-1"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"clock": "fast"}, "x60"),
        ({"mutant": "no-such"}, "no-such"),
        ({"id": "a/b"}, "/id"),
        ({"clok": "real"}, "/clok"),
        ({"withoutStates": ["advance"]}, "advance-time"),
        ({"lifetimeSeconds": 0}, "/lifetimeSeconds must be at least 0.1"),
        ({"lifetimeSeconds": 1e9}, "/lifetimeSeconds must be at most 604800"),
        ({"port": 70000}, "/port"),
        ({"port": "auto"}, "/port"),
        ({"apiKey": "key"}, "/apiKey must have at least 4"),
        ({"apiKey": "with a space"}, "/apiKey must match"),
        ({"data": {"now": -1}}, "data/now must be at least 0"),
        ({"data": {"nov": 1}}, "did you mean `now`?"),
        ({"data": {"jobs": [{"id": "j"}]}}, "data/jobs/0/userId is required"),
        (
            {"data": {"credentials": [{"id": "c", "userId": "u", "apiKey": "sk-1"}] * 2}},
            "data/credentials/1: `c` is there already",
        ),
    ],
)
def test_a_world_that_can_not_be_made_is_refused_with_the_mend(client, base_url, options, told):
    before = client.get(f"{base_url}/__control__/worlds").json()
    answer = client.post(f"{base_url}/__control__/worlds", json=options)
    assert answer.status_code == 400
    assert told in answer.json()["error"]
    assert len(client.get(f"{base_url}/__control__/worlds").json()["worlds"]) == len(before["worlds"])


def test_a_world_without_a_state_says_so(make):
    world = make(withoutStates=["inspect-job"])
    assert "inspect-job" not in world.control("GET", "/provider-states/runtime-api").json()["states"]
    assert world.try_state("inspect-job", jobId="x").status_code == 501


@pytest.mark.parametrize(("clock", "rate"), [("real", 1), ("x1000", 1000), ("manual", 0)])
def test_a_worlds_clock_flows_at_its_rate(make, clock, rate):
    world = make(clock=clock)
    begin, real = world.state("advance-time", seconds=0)["now"], time.monotonic()
    while time.monotonic() - real < 0.1:
        pass
    asked = time.monotonic() - real
    passed = (world.state("advance-time", seconds=0)["now"] - begin) / 1000
    answered = time.monotonic() - real
    assert rate * asked * 0.9 - 0.01 <= passed <= rate * (answered + 0.02) + 0.01


def test_a_thousand_worlds_are_no_burden(make):
    start = time.monotonic()
    worlds = [make(clock="manual") for _ in range(1000)]
    seconds = time.monotonic() - start
    assert worlds[999].poll().status_code == 200
    assert seconds < 20  # each through HTTP; about 3 ms here
