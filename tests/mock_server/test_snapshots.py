"""Snapshots: rows, time and counters go back, the journal goes on."""

from __future__ import annotations

import asyncio

import pytest
from asgi import ask
from mock_world import KEY

from mock_server.control import Guard
from mock_server.server import Server
from mock_server.snapshots import MOST
from mock_server.worlds import Options, Worlds


@pytest.fixture
def snapshots(world):
    """The snapshots of the test's world, as (method, rest of the path, body) to answer."""
    id_ = world.path.rpartition("/")[2]

    def snapshots(method, rest="", body=None):
        options = {} if body is None else {"json": body}
        return world.control(method, f"/worlds/{id_}/snapshots{rest}", **options)

    return snapshots


def test_rows_and_time_go_back_and_the_journal_goes_on(world, snapshots):
    job = world.state("job")["jobId"]
    world.lock(job)
    before = world.state("inspect-job", jobId=job)
    taken = snapshots("POST", body={"name": "locked"})
    assert taken.status_code == 201
    now = world.state("advance-time", seconds=0)["now"]
    assert taken.json() == {"name": "locked", "now": now, "jobs": 1}

    for _ in range(2):  # as often as is wanted
        world.heartbeat(job)
        other = world.state("job")["jobId"]
        world.state("advance-time", seconds=3600)
        assert world.state("inspect-job", jobId=job)["retryCount"] == 1
        assert snapshots("POST", "/locked/restore").status_code == 204
        assert world.state("inspect-job", jobId=job) == before
        assert world.try_state("inspect-job", jobId=other).status_code == 400
        assert world.state("advance-time", seconds=0)["now"] == now
        assert world.poll().json() == {"jobs": []}
    assert [entry["operationId"] for entry in world.journal()] == ["lockJob", *["heartbeatJob", "pollJobs"] * 2]


def test_timers_fire_after_a_restore_as_they_would_have(world, snapshots):
    job = world.state("job")["jobId"]
    world.lock(job)
    world.state("advance-time", seconds=20)
    snapshots("POST", body={"name": "s"})
    world.state("advance-time", seconds=100)
    snapshots("POST", "/s/restore")
    world.state("advance-time", seconds=40)
    assert world.state("inspect-job", jobId=job)["status"] == "locked"
    world.state("advance-time", seconds=0.001)
    assert world.state("inspect-job", jobId=job)["status"] == "pending"


def test_a_reset_leaves_the_snapshots(world, snapshots):
    job = world.state("job")["jobId"]
    assert snapshots("POST").json()["name"] == "snapshot-1"
    world.control("POST", f"/worlds/{world.path.rpartition('/')[2]}/reset")
    assert world.poll().json() == {"jobs": []}
    snapshots("POST", "/snapshot-1/restore")
    assert [entry["id"] for entry in world.poll().json()["jobs"]] == [job]


def test_they_are_listed_and_forgotten(world, snapshots):
    world.state("job")
    for body in (None, {}, {"name": "mine"}, {"name": "snapshot-3"}, None):
        assert snapshots("POST", body=body).status_code == 201
    names = [item["name"] for item in snapshots("GET").json()["snapshots"]]
    assert names == ["snapshot-1", "snapshot-2", "mine", "snapshot-3", "snapshot-4"]
    assert snapshots("DELETE", "/mine").status_code == 204
    assert snapshots("DELETE", "/mine").status_code == 404
    assert len(snapshots("GET").json()["snapshots"]) == 4


def test_what_is_wrong_is_told_with_the_mend(world, snapshots):
    none = snapshots("POST", "/any/restore")
    assert (none.status_code, none.json()["error"]) == (404, "no snapshot is named `any`; the world has none")
    snapshots("POST", body={"name": "before-lock"})
    assert "did you mean `before-lock`?" in snapshots("POST", "/before-lok/restore").json()["error"]
    again = snapshots("POST", body={"name": "before-lock"})
    assert again.status_code == 409
    assert "choose another name" in again.json()["error"]
    assert snapshots("POST", body={"name": "a b"}).status_code == 400
    assert snapshots("POST", body={"nam": "a"}).status_code == 400
    assert world.control("GET", "/worlds/no-such/snapshots").status_code == 404


def test_a_world_holds_so_many(world, snapshots):
    for _ in range(MOST):
        assert snapshots("POST").status_code == 201
    full = snapshots("POST")
    assert full.status_code == 409
    assert f"{MOST} snapshots at most" in full.json()["error"]
    snapshots("DELETE", "/snapshot-5")
    assert snapshots("POST").status_code == 201


@pytest.mark.parametrize("clock", ["real", "x60"])
def test_a_flowing_clock_flows_on_from_the_snapshot(clock):
    worlds = Worlds(Options(api_key=KEY, clock=clock))
    app = Server(worlds, Guard(None, None))
    taken = ask(app, "POST", "/__control__/worlds/default/snapshots")[2]
    ask(app, "POST", "/__control__/clock/advance", {"seconds": 86_400})
    ask(app, "POST", "/__control__/worlds/default/snapshots/snapshot-1/restore")
    flowed = worlds.default.clock.now() - taken["now"]
    assert 0 <= flowed < 600_000
    while worlds.default.clock.now() - taken["now"] == flowed:
        pass


class Counter:
    """Something with a number that belongs to a world, as a fault plan's count."""

    def __init__(self) -> None:
        self.count = 0

    def save(self) -> int:
        return self.count

    def restore(self, saved: int) -> None:
        self.count = saved


def test_counters_of_a_worlds_parts_go_back():
    world = Worlds(Options(api_key=KEY)).default
    counter = Counter()
    world.parts.append(counter)
    counter.count = 3
    asyncio.run(world.snapshots.take(world, "s"))
    counter.count = 7
    asyncio.run(world.snapshots.restore(world, "s"))
    assert counter.count == 3
