"""Never two holders: Runtimes race for a job while the clock moves, answers get lost and requests come late."""

from __future__ import annotations

import asyncio
import os
import time

import pytest
import uvloop
from contention import LEASE, History, contend
from mock_world import start, stop


@pytest.fixture(scope="module")
def ports():
    """Two servers, one for each half of the worlds."""
    servers = [start("--clock", "manual") for _ in range(2)]
    yield [int(url.rpartition(":")[2]) for _, url in servers]
    for process, _ in servers:
        assert stop(process) == ""


def run(ports, rounds, worlds, **options):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(contend(ports, rounds, worlds, **options))


def judged(ports, rounds, worlds):
    begin = time.monotonic()
    histories = run(ports, rounds, worlds)
    for history in histories:
        history.judge()
    count, grants, lost, late = (
        sum(numbers) for numbers in zip(*((h.rounds, len(h.grants), h.lost, h.late) for h in histories), strict=True)
    )
    print(
        f"0 double locks in {count} contended rounds, {grants} grants, {lost} answers lost, {late} late, "
        f"{sum(len(history.told) for history in histories)} grants told, {time.monotonic() - begin:.0f} s"
    )
    assert count == rounds
    assert grants > rounds * 0.7
    assert lost > rounds * 0.2
    assert late > rounds * 0.5
    assert sum(len(history.beats) for history in histories) > rounds * 0.05


def test_no_double_lock_in_500_contended_rounds(ports):
    judged(ports[:1], 500, 4)


@pytest.mark.soak
def test_no_double_lock_in_100000_contended_rounds(ports):
    judged(ports, int(os.environ.get("CONTRACT_SOAK_ROUNDS", "100000")), 16)


def test_a_build_that_locks_twice_is_found(ports):
    histories = run(ports[:1], 60, 2, mutant="lock.race")
    assert all(history.double_locks() for history in histories)


def test_a_lease_that_overlaps_another_is_a_double_lock():
    one, next_ = ("a", LEASE, 0), ("b", 2 * LEASE + 1, 1)
    assert History(grants=[next_, one]).double_locks() == []
    assert History(grants=[one, ("b", 2 * LEASE, 1)]).double_locks() != []
    assert History(grants=[one, next_], beats=[("a", 0)]).double_locks() == []
    assert History(grants=[one, next_], beats=[("a", 2)]).double_locks() != []
    assert History(grants=[one, next_], beats=[("b", 5)]).double_locks() != []
