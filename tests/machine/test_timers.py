"""Time: one long step gives what many short ones give, and everything is judged at one instant."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from machine_world import ROWS, START, World, run

from mock_server.store import QueueQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mock_server.store import Change, Row, Store

DAY = 86_400_000


def busy(seed: int) -> World:
    """A world with many jobs of every kind, held at different times and for different limits."""
    rng, world = random.Random(seed), World()
    for n in range(150):
        job = world.job(
            id=f"job-{n:03}",
            userId=f"user-{n % 5}",
            timeoutSeconds=rng.choice([1, 5, 59, 60, 61, 600]),
            maxRetryCount=rng.choice([0, 1, 3]),
        )
        for what in rng.choices(["lock", "heartbeat", "fail", "result", "cancel"], [9, 6, 1, 1, 1], k=rng.randrange(5)):
            getattr(world, what)(job)
        world.advance(rng.choice([0, 0, 1, 400]))
    world.revoke("user-3")
    return world


@pytest.mark.parametrize("seed", range(3))
def test_a_day_in_one_step_is_a_day_in_small_steps(seed: int) -> None:
    once, often = busy(seed), busy(seed)
    assert once.rows() == often.rows()
    held = sum(row["status"] in ("locked", "running") for row in once.rows())
    assert held > 20, "there is to be something to happen"
    once.advance(DAY)
    rng = random.Random(seed)
    left = DAY
    while left:
        step = min(left, rng.choice([1, 7, 250, 999, 1_000]) if often.now() < START + 200_000 else left)
        often.advance(step)
        left -= step
    assert once.now() == often.now()
    assert once.rows() == often.rows()
    assert not any(row["status"] in ("locked", "running") for row in once.rows())


@pytest.mark.parametrize("look", ["job", "poll", "lock"])
def test_a_job_looked_at_late_is_as_if_it_had_been_watched(look: str) -> None:
    """Timers fire at their own instant also where nobody but the clock was moved."""
    world = World()
    job, other = world.locked(), world.job()
    world.clock.advance(DAY)
    if look == "poll":
        run(world.engine.poll(QueueQuery(frozenset({"learning_state_analysis"}), 50)))
    elif look == "lock":
        world.lock(other)
    else:
        world.row(job)
    row = run(world.store.get("Job", job))
    assert row is not None
    assert (row["status"], row["updatedAt"]) == ("pending", START + 60_001)


class Recording:
    """A store that remembers which rows changed, in order."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.written: list[Row] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, changes: Sequence[Change]) -> bool:
        done = await self._inner.commit(changes)
        self.written += [change.new for change in changes if done]
        return done


def test_timers_fire_in_due_order_then_by_id() -> None:
    store = Recording(ROWS.store())
    world = World(store)  # type: ignore[arg-type]
    world.running(id="run", timeoutSeconds=59)
    world.advance(9_000)
    for key in ("b", "a"):
        world.locked(id=key)
    world.advance(1_000)
    world.locked(id="last")
    world.running(id="first", timeoutSeconds=40)
    store.written.clear()
    world.advance(DAY)
    fired = [(row["id"], row["updatedAt"] - START) for row in store.written]
    assert fired == [("first", 50_001), ("run", 59_001), ("a", 69_001), ("b", 69_001), ("last", 70_001)]


def test_at_one_instant_a_lock_lapses_before_a_run_times_out() -> None:
    """Equally due: in the machine's order, which comes before the id's."""
    store = Recording(ROWS.store())
    world = World(store)  # type: ignore[arg-type]
    world.running(id="a-run", timeoutSeconds=60)
    world.locked(id="z-lock")
    world.advance(30_000)
    world.heartbeat("a-run")
    store.written.clear()
    world.advance(DAY)
    assert [(row["id"], row["updatedAt"] - START) for row in store.written] == [("z-lock", 60_001), ("a-run", 60_001)]


class Ticking:
    """A clock on which a millisecond passes between any two looks at it."""

    kind = "real"

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        self._now += 1
        return self._now - 1

    def advance(self, milliseconds: int) -> int:
        self._now += milliseconds
        return self._now

    def reset(self) -> None:
        raise AssertionError("not needed")


def test_timers_and_steps_are_judged_at_one_instant() -> None:
    """A millisecond that passes between the timers and the step does not let a run outlive its limit."""
    world = World()
    job = world.running(timeoutSeconds=50)
    for instant in range(START + 49_990, START + 50_010):
        world.engine.clock = Ticking(instant)
        outcome = world.heartbeat(job)
        row = run(world.store.get("Job", job))
        assert row is not None
        if outcome.answer == 204:
            assert row["updatedAt"] <= START + 50_000, "a heartbeat was accepted after the time limit"
        else:
            assert row["updatedAt"] == START + 50_001


def test_a_new_row_bears_the_instant_of_its_step() -> None:
    world = World(clock=Ticking(START))
    job = world.create().created["Job"]
    assert job["createdAt"] == job["updatedAt"] == START


def test_reset_removes_everything_and_time_is_real_again() -> None:
    world = World()
    world.running(id="a")
    run(world.engine.reset())
    assert world.rows() == []
    assert world.now() < START
    assert world.locked(id="a") == "a"
