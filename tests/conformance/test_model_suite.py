"""The model of the text visits all of it, agrees with the reference, and shows seeded faults by few commands."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

import openapi
from conformance import reference
from conformance.drivers.http import HttpStates
from conformance.drivers.none import NoStates
from conformance.http_transport import HttpTransport
from conformance.judging import measured
from conformance.recording import RECORDER, Recorder
from conformance.systems import find
from contract_tests.agent_hub import test_fuzz_model as hub_model
from contract_tests.agent_hub import test_fuzz_walk as hub_walk
from contract_tests.agent_hub.given import HubTiming
from contract_tests.agent_hub.model import rules as hub_rules
from contract_tests.agent_hub.model import sequences as hub_sequences
from contract_tests.agent_hub.model.walks import WALKS as HUB_WALKS
from contract_tests.checks import CheckFailed, CheckSkipped
from contract_tests.fuzz.walks import drawn
from contract_tests.given import Timing
from contract_tests.model.stepper import Stepper
from contract_tests.runtime_api import test_fuzz_model as test_model
from contract_tests.runtime_api import test_fuzz_walk
from contract_tests.runtime_api.model import sequences
from contract_tests.runtime_api.model.rules import ANSWERS, BEGINS, COLUMNS, MOVES
from contract_tests.runtime_api.model.walks import WALKS

KEY = "key-of-the-model"
TOKEN = "zqa_live_of_the_model"
SETTINGS = {"runtime-api": {"api_key": KEY}, "agent-hub": {"token": TOKEN, "second_token": f"{TOKEN}_b"}}
HUB_CELLS = (hub_model.test_every_operation, hub_model.test_every_limit, hub_model.test_every_node)
CELLS = (test_model.test_every_caller, test_model.test_every_end, test_model.test_every_action)


@pytest.fixture(scope="module")
def base_url():
    secrets = {"CONTRACT_API_KEY": KEY, "CONTRACT_HUB_TOKEN": TOKEN}
    with reference.serve(secrets, "--clock", "manual") as url:
        yield url


@pytest.fixture(scope="module")
def flowing():
    """A reference whose time flows."""
    with reference.serve({"CONTRACT_API_KEY": KEY, "CONTRACT_HUB_TOKEN": TOKEN}, "--clock", "real") as url:
        yield url


def judged(world: str, check, *, states=True, hide=(), **values):
    """What a check says of a world: the failure or None, and the commands that it would print."""

    system = find("agent-hub" if ".agent_hub." in check.__module__ else "runtime-api")

    async def judge():
        recorder = Recorder()
        RECORDER.set(recorder)
        transport = HttpTransport(world, {}, redactor=system.contract.redactor([]))
        url = system.states_url(world)
        driver = await asyncio.to_thread(HttpStates, url, system.name) if states else NoStates()
        driver.offered = frozenset(driver.offered) - set(hide)
        suite = system.services()
        clock = await measured(driver, 1)
        async with suite.open_services(
            transport, driver, clock, system.timing_class(), suite.Settings(**SETTINGS[system.name])
        ) as services:
            given = suite.given_for(services, Random(f"{check.__name__} {values}"))
            try:
                await check(given, **values)
            except CheckFailed as failure:
                return failure, recorder.commands
        return None, recorder.commands

    return asyncio.run(judge())


def seen_by_the_stepper(monkeypatch):
    """The ids of steps and timers that decide something from here on."""
    visited = set()

    def watched(decide):
        def deciding(self, *args):
            taken = decide(self, *args)
            visited.update(taken.steps)
            return taken

        return deciding

    for name in ("judge", "fire"):
        monkeypatch.setattr(Stepper, name, watched(getattr(Stepper, name)))
    return visited


def test_every_transition_is_visited(base_url, monkeypatch):
    visited = seen_by_the_stepper(monkeypatch)
    world = reference.make_world(base_url)
    for check in CELLS:
        for state in test_model.STATES:
            assert judged(world, check, state=state)[0] is None
    assert visited == set(sequences.stepper(Timing()).transitions())


NOT_MET = {"take.gone"}
"""A job that is gone by the time that its node takes it: what a hub's scheduler knows is its own."""


def test_every_transition_of_the_hub_is_visited(base_url, monkeypatch):
    visited = seen_by_the_stepper(monkeypatch)
    world = reference.make_world(base_url)
    for check in HUB_CELLS:
        for state in hub_model.STATES:
            assert judged(world, check, state=state)[0] is None
    assert visited == set(hub_sequences.stepper(HubTiming()).transitions()) - NOT_MET


@pytest.mark.parametrize("seed", range(2))
def test_the_reference_of_the_hub_walks_as_the_text_says(base_url, seed):
    assert judged(reference.make_world(base_url), hub_walk.test_of_the_machine, seed=seed, examples=20)[0] is None


@pytest.mark.parametrize(
    ("fault", "check", "state"),
    [
        ("hub-cancel.done", hub_model.test_every_operation, "done"),
        ("hub-cancel.no-finish", hub_model.test_every_operation, "running"),
        ("hub-retry.by-hand.counts-on", hub_model.test_every_operation, "failed"),
        ("hub-retry.a-second-more", hub_model.test_every_limit, "running"),
        ("hub-retry.early", hub_model.test_every_limit, "waiting"),
        ("hub-retry.one-more", hub_model.test_every_limit, "failed"),
        ("hub-detail.latest-start", hub_model.test_every_limit, "waiting"),
        ("hub-retry.flat", hub_walk.test_of_the_machine, None),
        ("hub-retry.keeps-finish", hub_walk.test_of_the_machine, None),
        ("hub-cancel.failed", hub_model.test_every_operation, "failed"),
        ("hub-retry.final-waits", hub_walk.test_of_the_machine, None),
    ],
)
def test_a_fault_of_the_hub_is_seen_by_few_commands(base_url, fault, check, state):
    values = {"seed": 1, "examples": 10} if state is None else {"state": state}
    failure, commands = judged(reference.make_world(base_url, mutant=fault), check, **values)
    assert failure is not None
    print(failure, failure.rules, failure.step, len(commands))
    assert len(commands) <= 24, commands


@pytest.mark.parametrize(
    ("mutant", "check", "state", "by"),
    [
        (
            "gen.rt.guard.fail.retried",
            test_model.test_every_caller,
            "failed",
            "make (plain), job 0; lock by the holder, job 0; fail (final) by the holder, job 0",
        ),
        (
            "gen.rt.effect-dropped.release.lockUntil",
            test_model.test_every_caller,
            "pending",
            "make (plain), job 0; lock by the holder, job 0; fail by the holder, job 0",
        ),
        (
            "gen.rt.target.expired.retried.cancelled",
            test_model.test_every_caller,
            "pending",
            "make (plain), job 0; lock by the holder, job 0; time (after), job 0",
        ),
        (
            "gen.rt.steps-swapped.fail.held.fail.cancelled",
            test_model.test_every_end,
            "locked",
            "make (plain), job 0; lock by the holder, job 0; revoke, job 0; fail by the former, job 0",
        ),
        (
            "gen.rt.source-added.cancel.failed",
            test_model.test_every_action,
            "failed",
            "make (short, once), job 0; lock by the holder, job 0; time (after), job 0; cancel, job 0",
        ),
        (
            "gen.hub.guard.silence",
            hub_model.test_every_limit,
            "running",
            "make (lost), job 0; time (third), job 0; offline, job 0; time (after), job 0",
        ),
        (
            "gen.hub.effect-dropped.again.failureType",
            hub_model.test_every_operation,
            "queued",
            "make (limited), job 0; time (after), job 0; time (after), job 0",
        ),
        (
            "gen.hub.target.report.done.failed",
            hub_model.test_every_node,
            "done",
            "make (done), job 0; time (third), job 0",
        ),
        (
            "gen.hub.steps-swapped.cancel.waiting.cancel.refused",
            hub_model.test_every_operation,
            "waiting",
            "make (limited), job 0; time (third), job 0; cancel by the owner, job 0",
        ),
        (
            "gen.hub.source-added.retry.queued",
            hub_model.test_every_operation,
            "queued",
            "make (long), job 0; make (behind), job -1; retry by the owner, job 1",
        ),
    ],
)
def test_a_generated_mutant_is_shown_by_the_shortest_sequence(base_url, mutant, check, state, by):
    failure, commands = judged(reference.make_world(base_url, mutant=mutant), check, state=state)
    print(failure, failure and failure.rules, len(commands))
    assert failure is not None
    assert f"(by: {by})" in failure.actual
    assert all(command.startswith("curl ") for command in commands)
    assert len(commands) <= 14, commands


@pytest.mark.parametrize("seed", range(3))
def test_the_reference_walks_as_the_text_says(base_url, seed):
    failure, _ = judged(reference.make_world(base_url), test_fuzz_walk.test_of_the_machine, seed=seed, examples=20)
    assert failure is None


@pytest.mark.parametrize(
    ("fault", "check", "state"),
    [
        ("lock.again-by-holder", test_model.test_every_caller, "locked"),
        ("heartbeat.wrong-code", test_model.test_every_caller, "pending"),
        ("snapshot.stranger", test_model.test_every_caller, "locked"),
        ("credential.stranger", test_model.test_every_caller, "locked"),
        ("heartbeat.no-extension", test_model.test_every_caller, "running"),
        ("result.stranger", test_model.test_every_end, "locked"),
        ("result.lock-stays", test_model.test_every_end, "running"),
        ("fail.stranger", test_model.test_every_end, "running"),
        ("cancel.running", test_model.test_every_action, "running"),
        ("revoke.takes-the-lock", test_model.test_every_action, "locked"),
        ("rerun.any-state", test_model.test_every_action, "cancelled"),
        ("lapse.at-the-limit", test_model.test_every_action, "locked"),
        ("lapse.keeps-start", test_model.test_every_action, "pending"),
        ("create.touches", test_model.test_every_action, "pending"),
    ],
)
def test_a_fault_is_seen_in_its_cell(base_url, fault, check, state):
    failure, commands = judged(reference.make_world(base_url, mutant=fault), check, state=state)
    assert failure is not None
    print(failure, failure.rules, failure.step, len(commands))
    assert len(commands) <= 14, commands


@pytest.mark.parametrize(
    "fault",
    [
        "lock.again-by-holder",
        "heartbeat.no-extension",
        "fail.stranger",
        "result.stranger",
        "lapse.at-the-limit",
        "lapse.counted-twice",
        "lapse.keeps-lock",
        "retry.zero-is-default",
    ],
)
def test_a_walk_shows_a_fault_by_the_shortest_sequence(base_url, fault):
    world = reference.make_world(base_url, mutant=fault)
    failure, commands = judged(world, test_fuzz_walk.test_of_the_machine, seed=1, examples=10)
    assert failure is not None
    print(failure, failure.rules, failure.step, len(commands))
    assert len(commands) <= 14, commands


FLOWING = [
    pytest.param(test_fuzz_walk.test_of_the_machine, {"seed": 1, "examples": 0}, "lapse.keeps-lock", id="runtime-api"),
    pytest.param(hub_walk.test_of_the_machine, {"seed": 1, "examples": 4}, "hub-cancel.no-finish", id="agent-hub"),
]


@pytest.mark.parametrize(("check", "values", "fault"), FLOWING)
def test_where_time_flows_the_reference_walks_and_a_fault_is_seen(flowing, check, values, fault):
    assert judged(reference.make_world(flowing), check, **values)[0] is None
    assert judged(reference.make_world(flowing, mutant=fault), check, **values)[0] is not None


@pytest.mark.parametrize("walks", [WALKS, HUB_WALKS], ids=["runtime-api", "agent-hub"])
def test_walks_are_different_ones_and_the_same_for_the_same_seed(walks):
    found = asyncio.run(drawn(walks.sequences(), 1, 12))
    assert found == asyncio.run(drawn(walks.sequences(), 1, 12))
    assert len(set(found)) == 12
    assert all(len(sequence) == walks.jobs + walks.length for sequence in found)
    kinds = [command.kind for sequence in found for command in sequence]
    assert {*walks.often, "make"} == set(kinds)


def test_without_what_it_takes_it_is_skipped_by_name(base_url):
    world = reference.make_world(base_url)
    with pytest.raises(CheckSkipped, match="advance-time"):
        judged(world, test_model.test_every_end, state="locked", states=False)
    with pytest.raises(CheckSkipped, match="inspect-job"):
        judged(world, test_fuzz_walk.test_of_the_machine, hide=("inspect-job",), seed=1, examples=1)
    assert judged(world, test_model.test_every_end, state="locked", hide=("inspect-job",))[0] is None


def test_the_model_knows_every_rule_that_it_names():
    register = openapi.load("runtime-api").register
    for check in (*CELLS, test_fuzz_walk.test_of_the_machine):
        assert {register[rule].level for rule in check.requirements} == {"decision"}
    rules = {
        *ANSWERS.values(),
        *MOVES.values(),
        *BEGINS.values(),
        *(rule for one in COLUMNS.values() for rule in one.values()),
    }
    assert rules <= set(register)
    hub = openapi.load("agent-hub").register
    for check in (*HUB_CELLS, hub_walk.test_of_the_machine):
        assert {hub[rule].level for rule in check.requirements} == {"decision"}
    assert {
        *hub_rules.ANSWERS.values(),
        *hub_rules.REPORTS.values(),
        *(rule for one in hub_rules.FIELDS.values() for rule in one.values()),
    } <= set(hub)
    steps = set(sequences.stepper(Timing()).transitions())
    assert set(MOVES) | set(COLUMNS) <= steps
