"""``contract load`` with real processes: the reference is right under load, and what races break is found."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import requests
import uvloop
from serve_variants import CATALOGUE
from test_command import contract, last_line

import conformance
from conformance import reference
from conformance.load import running
from conformance.load.running import Load, Order
from conformance.systems import RUNTIME_API
from contract_tests.histories.operations import Limits
from contract_tests.histories.verdicts import judge_all

SCHEMA = json.loads((Path(conformance.__file__).parent / "schemas" / "load.schema.json").read_text("utf-8"))
SERVE = Path(__file__).with_name("serve_variants.py")
KEY = "key-of-the-load"
LIMITS = Limits(lock=0.4, sweep=0.4, slack=0.003)
STATES = frozenset({"job", "inspect-job", "revoke-ai-consent", "cancel-job"})
BRIEF = ("--timing", "lock=0.4,sweep=0.4", "--clients", "24")
MUTANTS = {
    "lock.race": {"one-win", "ownership"},
    "heartbeat.stranger": {"holders-only"},
    "result.race": {"result-stays"},
    "fail.race": {"counters"},
    "fail.overturns": {"finished"},
}
"""Seeded faults that show when Runtimes race; one of these rules of histories must be found broken."""
MORE_MUTANTS = {
    "lock.any-state": {"ownership"},
    "lock.again-by-holder": {"one-win", "ownership"},
    "lock.59-seconds": {"holders-stay", "ownership"},
    "heartbeat.no-extension": {"holders-stay", "ownership"},
    "result.stranger": {"holders-only"},
    "result.again-201": {"result-stays"},
    "result.revives-failed": {"finished"},
    "result.overwrites": {"result-stays"},
    "fail.stranger": {"holders-only"},
    "fail.counted-twice": {"counters"},
    "fail.not-counted": {"counters", "one-win"},
    "revoke.not-running": {"stopped"},
    "revoke.not-pending": {"stopped"},
}
OTHERS = [
    *(build for build in CATALOGUE["runtime-api"].builds if build != "expired for a while"),
    # the traits of that build but for its pages, which it has at the paths of worlds, too
    "sweeper late, shows expired",
    "closes at the end",
    "a late result is LOCK_NOT_HELD",
]
"""Builds and traits that are right in another way."""
LATE = {"kind": "delay", "distribution": {"uniform": [0.0002, 0.02]}}
TROUBLE = {
    "late": [{"fault": LATE, "when": {"share": 0.3}}, {"fault": {**LATE, "at": "answer"}, "when": {"share": 0.3}}],
    "lost": [
        {"fault": {"kind": "reset", "at": "after-commit"}, "when": {"share": 0.05}},
        {"fault": {"kind": "close", "at": "mid-body"}, "when": {"share": 0.05, "seed": 1}},
        {"fault": {"kind": "reset", "at": "before"}, "when": {"share": 0.05, "seed": 2}},
    ],
    "refused": [{"fault": {"kind": "status", "status": 503}, "when": {"share": 0.1}}],
}
"""Faults between the build and its clients: late, lost, and refused by who stands between."""


@pytest.fixture(scope="module")
def server():
    with reference.serve(KEY) as base_url:
        yield base_url


def order(server, world=None, **options):
    world = world or reference.make_world(server, timing={"lock": LIMITS.lock}, **options)
    return Order(world, KEY, RUNTIME_API.states_url(world), STATES, clients=32, jobs=60, limits=LIMITS)


def run(wanted):
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Load(wanted).run())


def words(outcome):
    return {invariant.checker.name: invariant.word for invariant in judge_all(outcome.histories)}


def evidence(found):
    """What to read of those that are not valid."""
    shown = [(item, *pair) for item in found for pair in [*item.invalid, *item.broken_down][:1]]
    return "\n".join(
        "\n".join(
            [item.checker.name, verdict.text, *(one.shown(history.operations[0].invoked) for one in verdict.evidence)]
        )
        for item, history, verdict in shown
    )


def test_the_reference_is_right_under_load_and_the_report_is_of_its_schema(tmp_path):
    report = tmp_path / "load.json"
    done = contract("load", "--jobs", "60", *BRIEF, "--report", f"json={report}", cwd=tmp_path)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert {invariant["verdict"] for invariant in data["invariants"]} == {"valid"}
    assert data["jobs"] == 60
    answers = {row["operation"]: row["answers"] for row in data["operations"]}
    assert answers["lock"]["409 JOB_ALREADY_LOCKED"] > 60
    assert answers["lock"]["lost on purpose"] > 1
    assert answers["heartbeat"]["409 LOCK_NOT_HELD"] > 1
    assert "500" not in json.dumps(list(answers.values()))
    assert data["requests"] == sum(row["requests"] for row in data["operations"])
    assert data["p99Ms"] >= data["p50Ms"] > 0


def test_a_double_lock_is_not_conformant_and_the_two_are_shown():
    done = contract("load", "--jobs", "10", *BRIEF, "--mutant", "lock.race")
    assert (done.returncode, last_line(done)) == (1, "non-conformant"), done.stdout + done.stderr
    [_, shown, *_] = done.stdout.split("of locks at once one wins (RT-LOCK-12, RT-LOCK-13): ")
    head, _, first, second, *_ = shown.splitlines()
    assert "was granted twice" in head
    assert first.endswith("lock -> 200 attemptNo=0")
    assert second.endswith("lock -> 200 attemptNo=0")


def test_what_races_break_is_invalid(server):
    async def load_all():
        return await asyncio.gather(*(Load(order(server, mutant=mutant)).run() for mutant in MUTANTS))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcomes = runner.run(load_all())
    for (mutant, broken), outcome in zip(MUTANTS.items(), outcomes, strict=True):
        found = words(outcome)
        assert {name for name in broken if found[name] == "invalid"}, (mutant, found)


def test_jobs_are_found_by_polling_where_there_are_no_provider_states(server, monkeypatch):
    monkeypatch.setattr(running, "IDLE_SECONDS", 1)
    world = order(server).base_url
    with requests.Session() as session:
        for number in range(20):
            setup = {"action": "setup", "state": "job", "params": {"userId": f"user-{number}"}}
            assert session.post(RUNTIME_API.states_url(world), json=setup, timeout=10).status_code == 200
    outcome = run(replace(order(server, world), states=None, offered=frozenset()))
    assert len(outcome.histories) == 20
    assert "invalid" not in words(outcome).values()


def test_no_job_is_no_verdict(server, monkeypatch):
    monkeypatch.setattr(running, "IDLE_SECONDS", 0.1)
    outcome = run(replace(order(server), states=None, offered=frozenset()))
    assert outcome.problem == "polls listed no job; give --provider-states"


def test_who_is_not_there_is_no_verdict():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = contract("load", "--base-url", nobody, "--jobs", "5")
    assert done.returncode == 3
    assert done.stderr.strip().endswith("inconclusive")


def test_a_build_that_goes_away_is_no_verdict():
    async def cut(serving):
        loading = asyncio.create_task(Load(order(serving.enter_context(reference.serve(KEY)))).run())
        await asyncio.sleep(0.5)
        serving.close()
        return await loading

    with asyncio.Runner() as runner, contextlib.ExitStack() as serving:
        outcome = runner.run(cut(serving))
    assert "can't be reached" in outcome.problem
    assert "invalid" not in words(outcome).values()


@pytest.mark.parametrize(
    ("arguments", "mend"),
    [
        (("--provider-states", "http://127.0.0.1:1/x"), "name it with --base-url"),
        (("--base-url", "http://127.0.0.1:1", "--mutant", "lock.race"), "leave --base-url out"),
        (("--mutant", "lock.rave"), "lock.race"),
        (("--base-url", "ftp://x"), "write http://host:port"),
        (("--report", "xml=x"), "write json=PATH"),
        (("--timing", "lock"), "lock"),
        (("--clients", "1"), "2<=x<=1000"),
    ],
)
def test_wrong_usage_is_told(arguments, mend):
    done = contract("load", *arguments)
    assert done.returncode == 2
    assert mend in done.stderr


@pytest.mark.soak
def test_thousands_of_jobs_and_64_runtimes(tmp_path):
    report = tmp_path / "load.json"
    done = contract("load", "--jobs", "5000", "--seconds", "240", "--report", f"json={report}", timeout=400)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    data = json.loads(report.read_text("utf-8"))
    print(f"{data['jobs']} jobs, {data['requests']} requests, {data['durationSeconds']} s")
    assert data["jobs"] >= 2000
    for invariant in data["invariants"]:
        assert invariant["jobs"]["valid"] > 0.8 * data["jobs"], invariant


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_on_the_way_makes_nothing_invalid(server, trouble, seed):
    wanted = order(server, faults=TROUBLE[trouble])
    outcome = run(replace(wanted, clients=64, jobs=1000, seed=seed))
    assert outcome.problem is None
    found = judge_all(outcome.histories)
    assert {item.word for item in found} == {"valid"}, evidence(found)
    assert len(outcome.histories) > 900


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS | MORE_MUTANTS)
def test_what_races_break_is_invalid_whatever_is_lost(server, mutant):
    wanted = order(server, mutant=mutant, faults=TROUBLE["lost"])
    found = words(run(replace(wanted, clients=64, jobs=300)))
    assert {name for name in (MUTANTS | MORE_MUTANTS)[mutant] if found[name] == "invalid"}, found


@pytest.fixture(scope="module")
def variants():
    """The base URLs of builds that are right in other ways, by name."""
    names = [f"runtime-api/{build}" for build in OTHERS]
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SERVE), KEY, "whsec_dGhlIHNlY3JldA==", *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SERVE.parents[2])},
    )
    yield json.loads(server.stdout.readline())
    server.communicate(timeout=10)


@pytest.mark.soak
@pytest.mark.parametrize("build", OTHERS)
def test_a_build_that_is_right_in_another_way_is_right_under_load(variants, build):
    name = f"runtime-api/{build}"
    world = reference.make_world(variants[name], timing={"lock": LIMITS.lock}, clock="real", mutant=name)
    states = RUNTIME_API.states_url(world)
    with requests.Session() as session:
        offered = frozenset(session.get(states, timeout=10).json()["states"])
    wanted = replace(order(variants[name], world), states=states, offered=offered, jobs=300)
    outcome = run(replace(wanted, limits=replace(LIMITS, sweep=1.5)))
    assert outcome.problem is None
    found = judge_all(outcome.histories)
    assert {item.word for item in found} == {"valid"}, evidence(found)
