"""The memory store: compare-and-set, unique sets, the queue's order and the timers' order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_world import run

from mock_server.store import Change, Due, MemoryStore, Queue, QueueQuery, Row

KEYS = {"Job": "id", "Snapshot": "id", "Result": "jobId"}
UNIQUE = {"Job": ("userId", "idempotencyKey")}
QUEUE = Queue("Job", frozenset({"pending"}), "jobType", (("priority", 1), ("createdAt", 1), ("id", 1)))


def store() -> MemoryStore:
    return MemoryStore(KEYS, UNIQUE, QUEUE)


def job(key: str, **columns: Any) -> Row:
    row = {"id": key, "userId": "u", "idempotencyKey": None, "jobType": "quiz", "status": "pending", "priority": 0,
           "createdAt": 1, "snapshotId": None, "outputSchemaVersion": "v1"}  # fmt: skip
    return row | columns


def put(in_: MemoryStore, *rows: Row) -> None:
    assert run(in_.commit([Change("Job", None, row) for row in rows]))


def replace(in_: MemoryStore, old: Row, due: Due | None = None, **columns: Any) -> Row:
    new = old | columns
    assert run(in_.commit([Change("Job", old, new, due)]))
    return new


def ids(rows: list[Row]) -> list[str]:
    return [row["id"] for row in rows]


def queued(in_: MemoryStore, *groups: str, limit: int = 50, **filters: frozenset[str]) -> list[str]:
    return ids(run(in_.queue(QueueQuery(frozenset(groups or {"quiz"}), limit, **filters))))


class TestCompareAndSet:
    def test_a_row_is_stored_and_read(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        assert run(jobs.get("Job", "a")) == row
        assert run(jobs.get("Job", "b")) is None
        assert run(jobs.get("Snapshot", "a")) is None

    def test_a_lost_update_is_refused(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        winner, loser = row | {"status": "locked", "lockedBy": "r1"}, row | {"status": "locked", "lockedBy": "r2"}
        assert run(jobs.commit([Change("Job", row, winner)]))
        assert not run(jobs.commit([Change("Job", row, loser)]))
        assert run(jobs.get("Job", "a")) == winner

    def test_equal_is_not_the_same_row(self) -> None:
        """A row that was changed and changed back is another one."""
        jobs, row = store(), job("a")
        put(jobs, row)
        back = replace(jobs, replace(jobs, row, priority=1), priority=0)
        assert back == row
        assert not run(jobs.commit([Change("Job", row, row | {"priority": 2})]))

    def test_a_key_is_created_once(self) -> None:
        jobs = store()
        put(jobs, job("a"))
        assert not run(jobs.commit([Change("Job", None, job("a", priority=5))]))
        assert run(jobs.rows("Job")) == [job("a")]

    def test_a_row_that_is_not_there_is_not_replaced(self) -> None:
        jobs = store()
        assert not run(jobs.commit([Change("Job", job("a"), job("a", priority=1))]))
        assert run(jobs.rows("Job")) == []

    @pytest.mark.parametrize("first", [True, False], ids=["good-one-first", "bad-one-first"])
    def test_all_changes_or_none(self, first: bool) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        good = Change("Job", row, row | {"status": "succeeded"}, Due(5, 0, "a"))
        bad = Change("Job", None, job("a"))
        assert not run(jobs.commit([good, bad] if first else [bad, good]))
        assert run(jobs.get("Job", "a")) == row
        assert queued(jobs) == ["a"]
        assert run(jobs.next_due()) is None

    def test_several_entities_in_one_commit(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        done, result = row | {"status": "succeeded"}, {"jobId": "a", "outputHash": "h"}
        assert run(jobs.commit([Change("Job", row, done), Change("Result", None, result)]))
        assert run(jobs.get("Result", "a")) == result
        assert run(jobs.find("Result", {"jobId": "a"})) == result
        assert run(jobs.get("Job", "a")) == done

    def test_rows_oldest_first(self) -> None:
        jobs = store()
        for key in "cab":
            put(jobs, job(key))
        row = run(jobs.get("Job", "c"))
        assert row is not None
        replace(jobs, row, priority=9)
        assert ids(list(run(jobs.rows("Job")))) == ["c", "a", "b"]

    def test_clear_removes_rows_queue_timers_and_unique_sets(self) -> None:
        jobs, row = store(), job("a", idempotencyKey="k")
        put(jobs, row)
        replace(jobs, row, Due(5, 0, "a"))
        run(jobs.clear())
        assert run(jobs.rows("Job")) == queued(jobs) == []
        assert run(jobs.next_due()) is None
        assert run(jobs.find("Job", {"userId": "u", "idempotencyKey": "k"})) is None
        put(jobs, row)


class TestUniqueSet:
    def test_is_found_in_any_order_of_columns(self) -> None:
        jobs, row = store(), job("a", idempotencyKey="k")
        put(jobs, row)
        assert run(jobs.find("Job", {"userId": "u", "idempotencyKey": "k"})) == row
        assert run(jobs.find("Job", {"idempotencyKey": "k", "userId": "u"})) == row
        assert run(jobs.find("Job", {"userId": "v", "idempotencyKey": "k"})) is None

    def test_refuses_a_second_row(self) -> None:
        jobs = store()
        put(jobs, job("a", idempotencyKey="k"))
        assert not run(jobs.commit([Change("Job", None, job("b", idempotencyKey="k"))]))
        put(jobs, job("c", idempotencyKey="k", userId="v"), job("d", idempotencyKey="l"))

    def test_null_differs_from_null(self) -> None:
        jobs = store()
        put(jobs, job("a"), job("b"))
        assert len(run(jobs.rows("Job"))) == 2

    def test_finds_the_row_as_it_is_now(self) -> None:
        jobs, row = store(), job("a", idempotencyKey="k")
        put(jobs, row)
        new = replace(jobs, row, status="failed")
        assert run(jobs.find("Job", {"userId": "u", "idempotencyKey": "k"})) is new

    def test_is_free_again_when_its_row_has_other_values(self) -> None:
        jobs, row = store(), job("a", idempotencyKey="k")
        put(jobs, row)
        new = replace(jobs, row, idempotencyKey="l")
        assert run(jobs.find("Job", {"userId": "u", "idempotencyKey": "k"})) is None
        assert run(jobs.find("Job", {"userId": "u", "idempotencyKey": "l"})) is new
        put(jobs, job("b", idempotencyKey="k"))

    def test_other_columns_are_no_way_to_find_a_row(self) -> None:
        with pytest.raises(LookupError, match="Job has no unique set of the columns priority"):
            run(store().find("Job", {"priority": 1}))

    def test_two_new_rows_of_one_commit_do_not_share_it(self) -> None:
        jobs = store()
        twins = [Change("Job", None, job(key, idempotencyKey="k")) for key in "ab"]
        assert not run(jobs.commit(twins))
        assert run(jobs.rows("Job")) == []


class TestQueue:
    def test_order_with_ties(self) -> None:
        jobs = store()
        put(
            jobs,
            job("late", createdAt=3),
            job("b", createdAt=2),
            job("urgent", priority=-1, createdAt=9),
            job("a", createdAt=2),
            job("B", createdAt=2),
            job("patient", priority=1, createdAt=0),
        )
        assert queued(jobs) == ["urgent", "B", "a", "b", "late", "patient"]

    def test_order_over_several_groups(self) -> None:
        jobs = store()
        put(
            jobs,
            job("q2", createdAt=2),
            job("f1", jobType="flash", createdAt=1),
            job("f3", jobType="flash", createdAt=3),
        )
        assert queued(jobs, "quiz", "flash") == ["f1", "q2", "f3"]
        assert queued(jobs, "flash", "unknown") == ["f1", "f3"]
        assert queued(jobs, "unknown") == []

    def test_limit(self) -> None:
        jobs = store()
        put(jobs, *(job(f"{n:02}") for n in range(20)))
        assert queued(jobs, limit=3) == ["00", "01", "02"]

    def test_only_rows_of_its_states(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row, job("b", status="locked"))
        locked = replace(jobs, row, status="locked")
        assert queued(jobs) == []
        replace(jobs, locked, status="pending")
        assert queued(jobs) == ["a"]

    def test_a_row_moves_between_groups_and_places(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row, job("b"))
        moved = replace(jobs, row, jobType="flash")
        assert queued(jobs) == ["b"]
        assert queued(jobs, "flash") == ["a"]
        replace(jobs, moved, jobType="quiz", priority=1)
        assert queued(jobs) == ["b", "a"]
        assert queued(jobs, "flash") == []

    def test_gives_the_row_as_it_is_now(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        new = replace(jobs, row, retryCount=1)
        assert run(jobs.queue(QueueQuery(frozenset({"quiz"}), 1))) == [new]

    def test_filters_apply_before_the_limit(self) -> None:
        jobs = store()
        assert run(jobs.commit([Change("Snapshot", None, {"id": f"s{n}", "snapshotVersion": f"v{n}"}) for n in (1, 2)]))
        put(
            jobs,
            job("1", snapshotId="s2"),
            job("2", outputSchemaVersion="v2"),
            job("3", snapshotId="s1"),
            job("4", snapshotId="gone"),
            job("5"),
        )
        assert queued(jobs, limit=3, snapshot_versions=frozenset({"v1"})) == ["2", "3", "4"]
        assert queued(jobs, output_schema_versions=frozenset({"v2"})) == ["2"]
        assert queued(jobs, snapshot_versions=frozenset({"v2"}), output_schema_versions=frozenset({"v1"})) == [
            "1",
            "4",
            "5",
        ]
        assert queued(jobs, output_schema_versions=frozenset()) == []

    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from("abcdef"),
                st.integers(0, 2),
                st.integers(0, 2),
                st.sampled_from(["quiz", "flash"]),
                st.booleans(),
            ),
            max_size=30,
        )
    )
    def test_is_always_the_sorted_pending_rows(self, writes: list[tuple[str, int, int, str, bool]]) -> None:
        jobs = store()
        for key, priority, created, kind, pending in writes:
            old = run(jobs.get("Job", key))
            status = "pending" if pending else "locked"
            new = job(key, priority=priority, createdAt=created, jobType=kind, status=status)
            assert run(jobs.commit([Change("Job", old, new)]))
        for groups in (["quiz"], ["flash"], ["quiz", "flash"]):
            rows = [row for row in run(jobs.rows("Job")) if row["status"] == "pending" and row["jobType"] in groups]
            expected = sorted(rows, key=lambda row: (row["priority"], row["createdAt"], row["id"]))
            assert queued(jobs, *groups) == ids(expected)


class TestTimers:
    def test_earliest_first_then_the_machines_order_then_the_key(self) -> None:
        jobs = store()
        dues = [Due(7, 0, "a"), Due(5, 1, "b"), Due(5, 0, "d"), Due(5, 0, "c")]
        assert run(jobs.commit([Change("Job", None, job(due.key), due) for due in dues]))
        seen = []
        while (due := run(jobs.next_due())) is not None:
            seen.append(due)
            row = run(jobs.get("Job", due.key))
            assert row is not None
            replace(jobs, row)
        assert seen == [Due(5, 0, "c"), Due(5, 0, "d"), Due(5, 1, "b"), Due(7, 0, "a")]

    def test_a_row_has_one_timer(self) -> None:
        jobs, row = store(), job("a")
        put(jobs, row)
        row = replace(jobs, row, Due(5, 0, "a"))
        row = replace(jobs, row, Due(9, 1, "a"))
        assert run(jobs.next_due()) == Due(9, 1, "a")
        replace(jobs, row)
        assert run(jobs.next_due()) is None


class TestSaved:
    def test_what_is_restored_is_what_was_saved_in_every_respect(self) -> None:
        """Rows, unique set, queue and timers; whatever happened in between, and as often as is wanted."""
        jobs, kept = store(), job("a", idempotencyKey="k")
        put(jobs, kept)
        kept = replace(jobs, kept, Due(5, 0, "a"))
        saved = run(jobs.save())
        for _ in range(2):
            changed = replace(jobs, kept, None, status="locked", idempotencyKey="other")
            put(jobs, job("b", idempotencyKey="k"))
            assert queued(jobs) == ["b"]
            assert changed is not kept
            run(jobs.restore(saved))
            assert run(jobs.rows("Job")) == [kept]
            assert queued(jobs) == ["a"]
            assert run(jobs.next_due()) == Due(5, 0, "a")
            where = {"userId": "u", "idempotencyKey": "k"}
            assert run(jobs.find("Job", where)) is kept
            assert run(jobs.find("Job", where | {"idempotencyKey": "other"})) is None

    def test_rows_listed_by_a_column_are_restored(self) -> None:
        logs = MemoryStore({"Log": "id"}, {}, None, {"Log": "jobId"})
        assert run(logs.commit([Change("Log", None, {"id": "1", "jobId": "j"})]))
        saved = run(logs.save())
        assert run(logs.commit([Change("Log", None, {"id": "2", "jobId": "j"})]))
        run(logs.restore(saved))
        assert ids(run(logs.rows("Log", "j"))) == ["1"]
