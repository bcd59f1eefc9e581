"""The engine beside the state table: lost races, the order of an operation's tests, and what is asked of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from machine_world import EXECUTOR, KEY, ROWS, START, World, run

from mock_server.store import QueueQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mock_server.store import Change, Store


class Contested:
    """A store in which a rival is faster, once: what was judged is no longer so when it is to be written."""

    def __init__(self, inner: Store, rival: Callable[[], Any]) -> None:
        self._inner, self._rival = inner, rival
        self.lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(self, changes: Sequence[Change]) -> bool:
        if not self.lost:
            self.lost = True
            self._rival()
            assert not await self._inner.commit(changes), "the store accepted a lost update"
            return False
        return await self._inner.commit(changes)


def contested(world: World, rival: Callable[[World], Any]) -> World:
    """The same rows and clock seen by somebody who loses the first race against ``rival``."""
    return World(Contested(world.store, lambda: rival(world)), world.clock)  # type: ignore[arg-type]


def test_of_two_that_lock_at_once_the_slower_is_refused() -> None:
    world = World()
    job = world.job()
    outcome = contested(world, lambda rival: rival.lock(job, "fast")).lock(job, "slow")
    assert (outcome.answer, outcome.changed) == ("JOB_ALREADY_LOCKED", False)
    assert world.row(job)["lockedBy"] == "fast"


def test_a_step_that_lost_is_judged_on_the_row_as_it_is_then() -> None:
    world = World()
    job = world.locked()
    slow = contested(world, lambda rival: rival.revoke())
    outcome = slow.fail(job, retryable=True)
    assert outcome.answer == 200
    assert (world.row(job)["status"], world.row(job)["retryCount"]) == ("cancelled", 0)


def test_of_two_that_create_the_same_job_at_once_both_get_one_job() -> None:
    world = World()
    outcome = contested(world, lambda rival: rival.job(**KEY)).create(**KEY)
    (only,) = world.rows()
    assert (outcome.answer, outcome.row) == (200, only)


def test_revoking_consent_loses_a_race_and_still_asks_for_the_stop() -> None:
    world = World()
    job = world.job()
    contested(world, lambda rival: rival.lock(job)).revoke()
    row = world.row(job)
    assert (row["status"], row["cancelRequested"]) == ("locked", True)


def test_of_two_results_at_once_one_is_stored() -> None:
    world = World()
    job = world.running()
    outcome = contested(world, lambda rival: rival.result(job, outputHash="fast")).result(job, outputHash="slow")
    assert outcome.answer == "RESULT_ALREADY_EXISTS"
    stored = world.stored_result(job)
    assert stored is not None
    assert stored["outputHash"] == "fast"


def test_rows_are_never_changed_in_place() -> None:
    world = World()
    job = world.job()
    seen = [(row, dict(row)) for row in (world.row(job),)]
    for step in (world.lock, world.heartbeat, world.fail):
        step(job)
        row = world.row(job)
        seen.append((row, dict(row)))
    assert all(row == copy for row, copy in seen)
    assert len({id(row) for row, _ in seen}) == len(seen)


class TestPoll:
    def test_polling_changes_nothing(self) -> None:
        world = World()
        for n in range(3):
            world.job(id=f"job-{n}")
        before = world.rows()
        query = QueueQuery(frozenset({"learning_state_analysis"}), 2)
        assert [row["id"] for row in run(world.engine.poll(query))] == ["job-0", "job-1"]
        assert run(world.engine.poll(query)) == before[:2]
        assert world.rows() == before

    def test_a_retried_job_keeps_its_place(self) -> None:
        world = World()
        first = world.job()
        world.advance(1)
        second = world.job()
        world.lock(first)
        world.fail(first)
        listed = run(world.engine.poll(QueueQuery(frozenset({"learning_state_analysis"}), 5)))
        assert [row["id"] for row in listed] == [first, second]

    def test_a_lapsed_job_is_listed_again(self) -> None:
        world = World()
        job = world.locked()
        query = QueueQuery(frozenset({"learning_state_analysis"}), 5)
        assert run(world.engine.poll(query)) == []
        world.advance(60_001)
        assert [row["id"] for row in run(world.engine.poll(query))] == [job]


class TestInsert:
    def test_fills_in_the_defaults(self) -> None:
        world = World()
        row = run(world.engine.insert("Snapshot", {"content": {"a": 1}}))
        assert row == {"id": row["id"], "snapshotVersion": "ai_snapshot_v1", "expiresAt": None, "content": {"a": 1}}
        assert run(world.store.get("Snapshot", row["id"])) == row

    def test_refuses_a_key_that_exists(self) -> None:
        world = World()
        run(world.engine.insert("Snapshot", {"id": "s", "content": {}}))
        with pytest.raises(KeyError, match="s"):
            run(world.engine.insert("Snapshot", {"id": "s", "content": {"other": 1}}))

    def test_of_a_job_arms_its_timers(self) -> None:
        world = World()
        held = {"status": "locked", "lockedBy": "r1", "lockedAt": START, "lockUntil": START + 5}
        needed = {"userId": "u", "jobType": "quiz_generation", "targetType": "user", "targetId": "t"}
        job = run(world.engine.insert("Job", needed | held))["id"]
        world.advance(6)
        assert world.row(job)["status"] == "pending"


class TestGetSnapshot:
    @staticmethod
    def ask(by: str = "r1", *, expires: int | None = None, there: bool = True, named: bool = True) -> Any:
        world = World()
        if there:
            run(world.engine.insert("Snapshot", {"id": "snap-1", "content": {}, "expiresAt": expires}))
        job = world.running(snapshotId="snap-1" if named else None)
        before = world.row(job)
        answer = world.operate("getSnapshot", job, by).answer
        assert world.row(job) == before, "reading changes nothing"
        return answer

    def test_by_the_holder(self) -> None:
        assert self.ask() == 200

    @pytest.mark.parametrize(("expires", "answer"), [(START, 200), (START + 1, 200), (START - 1, "SNAPSHOT_EXPIRED")])
    def test_up_to_the_last_millisecond(self, expires: int, answer: int | str) -> None:
        assert self.ask(expires=expires) == answer

    @pytest.mark.parametrize(("there", "named"), [(False, True), (True, False)], ids=["unknown", "null"])
    def test_that_does_not_exist(self, there: bool, named: bool) -> None:
        assert self.ask(there=there, named=named) == "SNAPSHOT_NOT_FOUND"

    def test_the_lock_is_judged_first(self) -> None:
        assert self.ask("r2", there=False) == "LOCK_NOT_HELD"


class TestResolveCredential:
    @staticmethod
    def ask(
        by: str = "r1", *, job: dict[str, Any] | None = None, credential: dict[str, Any] | None = None, **body: Any
    ) -> Any:
        world = World()
        own = {"id": "cred-1", "userId": "user-1", "apiKey": "sk-1"}
        run(world.engine.insert("Credential", own | (credential or {})))
        key = world.running(**{"apiKeyMode": "user_deepseek_key", "credentialId": "cred-1"} | (job or {}))
        asked = {"jobId": key, "apiKeyMode": "user_deepseek_key", "credentialId": "cred-1", "provider": "deepseek"}
        return world.operate("resolveCredential", None, by, **asked | body).answer

    platform: ClassVar = {"apiKeyMode": "platform_key", "credentialId": None}

    @pytest.mark.parametrize(
        ("case", "answer"),
        [
            pytest.param({}, 200, id="own"),
            pytest.param({"job": platform, **platform}, 200, id="platform"),
            pytest.param({"jobId": "job-none"}, "JOB_NOT_FOUND", id="no-job"),
            pytest.param({"by": "r2", "credentialId": None}, "LOCK_NOT_HELD", id="stranger"),
            pytest.param({"credentialId": None, "provider": "other"}, "INVALID_REQUEST", id="no-credential-named"),
            pytest.param({"provider": "other"}, "CREDENTIAL_INVALID", id="other-provider"),
            pytest.param(platform, "CREDENTIAL_INVALID", id="other-mode"),
            pytest.param({"credentialId": "cred-2"}, "CREDENTIAL_INVALID", id="other-credential"),
            pytest.param(
                {"job": {"credentialId": "gone"}, "credentialId": "gone"}, "CREDENTIAL_NOT_FOUND", id="unknown"
            ),
            pytest.param({"credential": {"userId": "user-2"}}, "CREDENTIAL_NOT_FOUND", id="of-another-user"),
            pytest.param(
                {"credential": {"userId": "user-2", "status": "invalid"}},
                "CREDENTIAL_NOT_FOUND",
                id="of-another-user-and-invalid",
            ),
            pytest.param({"credential": {"status": "invalid"}}, "CREDENTIAL_INVALID", id="invalid"),
        ],
    )
    def test_tests_in_their_order(self, case: dict[str, Any], answer: int | str) -> None:
        assert self.ask(**case) == answer


def test_a_machine_in_which_nobody_decides_is_told() -> None:
    """Lint excludes it; should one be served all the same, the fault is named."""
    trigger = EXECUTOR.machine.operations["heartbeatJob"]
    lying = {"status": "expired", "lockedBy": "r1", "lockUntil": START}
    inputs = {"job": lying | {"status": "pausing"}, "caller": "r1", "now": START, "path": {}, "body": {}}
    assert EXECUTOR.judge(trigger, inputs).answer == "LOCK_NOT_HELD"
    with pytest.raises(RuntimeError, match="no step of revokeConsent decides in state pausing"):
        EXECUTOR.judge(EXECUTOR.machine.actions["revokeConsent"], inputs)


def test_a_contract_without_a_machine_has_no_rows() -> None:
    import openapi

    with pytest.raises(ValueError, match="has no state machine"):
        type(ROWS)(openapi.Contract("x", {"components": {"schemas": {}}}))
