"""Random sequences of everything that can happen to jobs: what each state promises is true after every step."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from machine_world import World, run

from mock_server.store import QueueQuery

KINDS = ("quiz_generation", "learning_state_analysis")
FINAL = ("succeeded", "failed", "cancelled")
JOBS = 4

job = st.integers(0, JOBS - 1)
runtime = st.sampled_from(["r1", "r2"])
user = st.sampled_from(["u1", "u2"])
step = st.one_of(
    st.tuples(
        st.just("create"),
        user,
        st.sampled_from(KINDS),
        st.integers(0, 2),
        st.integers(-1, 1),
        st.sampled_from([None, "k"]),
    ),
    st.tuples(st.just("lock"), job, runtime),
    st.tuples(st.just("lock"), job, runtime),  # twice: most of the rest needs a lock
    st.tuples(st.just("heartbeat"), job, runtime),
    st.tuples(st.just("heartbeat"), job, runtime),
    st.tuples(st.just("result"), job, runtime, st.sampled_from(["h1", "h2"])),
    st.tuples(st.just("fail"), job, runtime, st.booleans()),
    st.tuples(st.just("cancel"), job),
    st.tuples(st.just("rerun"), job),
    st.tuples(st.just("revoke"), user),
    st.tuples(st.just("advance"), st.sampled_from([0, 1, 999, 5_000, 5_001, 59_999, 60_000, 60_001, 86_400_000])),
)
BEGINNING: list[tuple[Any, ...]] = [("create", "u1", KINDS[0], 1, 0, None), ("create", "u2", KINDS[1], 0, 0, None)]


def perform(world: World, what: str, *how: Any) -> None:
    jobs = [row["id"] for row in world.rows()]
    match what, how:
        case "create", (user, kind, retries, priority, key):
            world.create(
                userId=user,
                jobType=kind,
                maxRetryCount=retries,
                priority=priority,
                idempotencyKey=key,
                timeoutSeconds=65,
            )
        case "lock", (n, by):
            world.lock(jobs[n % len(jobs)], by)
        case "heartbeat", (n, by):
            world.heartbeat(jobs[n % len(jobs)], by)
        case "result", (n, by, hash_):
            world.result(jobs[n % len(jobs)], by, outputHash=hash_)
        case "fail", (n, by, retryable):
            world.fail(jobs[n % len(jobs)], by, retryable=retryable)
        case "cancel", (n,):
            world.cancel(jobs[n % len(jobs)])
        case "rerun", (n,):
            world.rerun(jobs[n % len(jobs)])
        case "revoke", (user,):
            world.revoke(user)
        case "advance", (milliseconds,):
            world.advance(milliseconds)


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(st.lists(step, min_size=1, max_size=40))
def test_invariants_are_true_after_every_step(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    ended: dict[str, Any] = {}
    for what, *how in BEGINNING + steps:
        perform(world, what, *how)
        rows = world.rows()
        for row in rows:
            assert world.holds(row), f"what `{row['status']}` promises is not true of {row}"
            assert row["retryCount"] == row["attemptNo"] <= row["maxRetryCount"]
            assert (row["status"] == "succeeded") == (world.stored_result(row["id"]) is not None)
            assert row["createdAt"] <= row["updatedAt"] <= world.now()
            if row["status"] in ("locked", "running"):
                assert row["lockUntil"] >= world.now(), "a lapsed lock is still there"
            if row["status"] in FINAL:
                assert ended.setdefault(row["id"], row) == row, "a finished job changed"
        assert ended.keys() <= {row["id"] for row in rows if row["status"] in FINAL}, "a finished job left its state"
        listed = run(world.engine.poll(QueueQuery(frozenset(KINDS), 50)))
        waiting = [row for row in rows if row["status"] == "pending"]
        assert listed == sorted(waiting, key=lambda row: (row["priority"], row["createdAt"], row["id"]))


def test_the_walk_reaches_every_state() -> None:
    """Otherwise the test above could pass for want of anything to judge."""
    reached = set()

    @settings(max_examples=150, deadline=None, database=None, derandomize=True)
    @given(st.lists(step, min_size=1, max_size=40))
    def walk(steps: list[tuple[Any, ...]]) -> None:
        world = World()
        for what, *how in BEGINNING + steps:
            perform(world, what, *how)
            reached.update(row["status"] for row in world.rows())

    walk()
    assert reached == {"pending", "locked", "running", *FINAL}


def test_invariants_are_no_tautologies() -> None:
    """Each state's promise is false of a row that lies about its state."""
    world = World()
    rows = [world.row(world.in_state(state)) for state in ("pending", "locked", "running", *FINAL)]
    assert all(world.holds(row) for row in rows)
    lies = {
        (row["status"], state)
        for row in rows
        for state in ("pending", "locked", "running", *FINAL)
        if not world.holds(row | {"status": state})
    }
    for state in ("pending", "locked", "running", *FINAL):
        assert any(claimed == state for _, claimed in lies), state
    assert ("running", "pending") in lies
    assert ("failed", "succeeded") in lies
