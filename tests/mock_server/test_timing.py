"""Builds with other numbers than the specification's: locks that last another time."""

from __future__ import annotations

import json
import subprocess

import httpx
import pytest
from mock_world import SERVE, World, start, stop

import openapi
from mock_server import builds
from mock_server.timing import read_timing, timed, timing_of

STANDARD = 60


def lock_seconds(world):
    """How long a lock lasts by its answer, and by when it ends."""
    job = world.state("job")["jobId"]
    answer = world.lock(job).json()
    seconds = (answer["lockUntil"] - world.journal(operationId="lockJob")[-1]["at"]) / 1000
    assert isinstance(answer["lockUntil"], int)
    world.state("advance-time", seconds=seconds)
    assert world.state("inspect-job", jobId=job)["status"] == "locked"
    world.state("advance-time", seconds=0.001)
    assert world.state("inspect-job", jobId=job)["status"] == "pending"
    return seconds


@pytest.mark.parametrize("seconds", [3, 0.25, 1.1, 7200])
def test_locks_of_a_world_last_as_long_as_it_says(make, seconds):
    assert lock_seconds(make(timing={"lock": seconds})) == seconds
    assert make.made[-1]["timing"] == {"lock": seconds}


def test_other_worlds_keep_the_specifications_number(make, world):
    make(timing={"lock": 3})
    assert lock_seconds(world) == STANDARD
    assert lock_seconds(make(timing={})) == STANDARD
    assert make.made[-1]["timing"] == {}
    assert openapi.load("runtime-api").machine.constants["lockTime"].value == STANDARD * 1000


def test_a_heartbeat_renews_for_the_worlds_own_time(make):
    world = make(timing={"lock": 3})
    job = world.locked()
    world.state("advance-time", seconds=2)
    assert world.heartbeat(job).status_code == 204
    world.state("advance-time", seconds=2.5)
    assert world.state("inspect-job", jobId=job)["status"] == "running"
    world.state("advance-time", seconds=1)
    assert world.state("inspect-job", jobId=job)["status"] != "running"


def test_a_timing_goes_together_with_a_seeded_fault(make):
    """A fault of other parts is there in a build with other numbers; one that has a number of its own keeps it."""
    world = make(timing={"lock": 3}, mutant="lock.61-seconds")
    assert (make.made[-1]["mutant"], make.made[-1]["timing"]) == ("lock.61-seconds", {"lock": 3})
    assert lock_seconds(world) == 61
    world = make(timing={"lock": 3}, mutant="heartbeat.adds-up")
    job = world.locked()
    world.heartbeat(job)
    until = world.inspect(job)["lockUntil"]
    world.heartbeat(job)
    assert world.inspect(job)["lockUntil"] == until + 3000


def test_builds_are_shared_by_worlds_of_the_same_timing():
    assert builds.build(None, timing_of({"lock": 3})) is builds.build(None, timing_of({"lock": 3.0}))
    contract = openapi.load("runtime-api")
    assert timed(contract, ()) is contract


@pytest.mark.parametrize(
    ("timing", "told"),
    [
        ({"lok": 3}, "did you mean `lock`?"),
        ({"lock": 0}, "/timing/lock"),
        ({"lock": -1}, "/timing/lock"),
        ({"lock": "3"}, "/timing/lock"),
        ({"lock": True}, "/timing/lock"),
        ({"lock": None}, "/timing/lock"),
        ({"lock": 1e300}, "/timing/lock"),
        (3, "/timing"),
    ],
)
def test_what_is_no_timing_is_refused_with_place_and_mend(base_url, client, timing, told):
    answer = client.post(f"{base_url}/__control__/worlds", json={"timing": timing})
    assert answer.status_code == 400
    assert told in answer.json()["error"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["lock"], "write a name and seconds, as in `--timing lock=3`"),
        (["lok=3"], "did you mean `lock`?"),
        (["lock=soon"], "give a number, as in `3`"),
        (["lock=nan"], "give a number, as in `3`"),
        (["lock=0"], "must be seconds from 0.001"),
        (["lock=3", "lock=4"], "give it once"),
    ],
)
def test_what_is_no_timing_on_the_command_line_is_refused_with_the_mend(options, told):
    with pytest.raises(ValueError, match="--timing") as refused:
        read_timing(options)
    assert told in str(refused.value)


def test_the_command_line_refuses_it_in_one_sentence():
    done = subprocess.run([*SERVE, "--port", "0", "--timing", "lok=3"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "Error: --timing lok is not known here; did you mean `lock`?"


def test_a_servers_timing_is_that_of_the_default_world_and_of_others_that_have_none():
    process, url = start("--clock", "manual", "--timing", "lock=2.5")
    with httpx.Client() as client:
        assert lock_seconds(World(client, url, "")) == 2.5
        shown = {}
        for options in ({}, {"timing": {}}, {"timing": {"lock": 7}}):
            made = client.post(f"{url}/__control__/worlds", json=options).json()
            shown[json.dumps(options)] = (made["timing"], lock_seconds(World(client, url, made["path"])))
    stop(process)
    assert list(shown.values()) == [({"lock": 2.5}, 2.5), ({}, STANDARD), ({"lock": 7}, 7)]
