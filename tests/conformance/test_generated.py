"""Generated requests: what they reach, what they find, and that they are the same for the same seed."""

from __future__ import annotations

import importlib
import json
import os
import re
import time

import jsonschema
import pytest
from hypothesis.internal.conjecture.providers import HypothesisProvider
from rewriting_proxy import RewritingProxy
from test_command import SCHEMA, contract, last_line

from conformance import reference
from conformance.children import Crew
from conformance.judging import Job
from conformance.runner import Suites
from mock_server.mutants import registry

KEY = "key-of-the-generated-requests"
GENERATED = [id_ for id_, fault in registry().items() if fault.generated and fault.system == "runtime-api"]
NOT_TO_BE_MET: list[str] = []
"""Documented, and yet not met on the reference: nothing but ``INTERNAL_ERROR``, which is never listed."""


@pytest.fixture(scope="module")
def base_url():
    with reference.serve(KEY, "--clock", "manual") as url:
        yield url


def run(base: str, *, rules=None, seed: int = 1, examples: int = 10, states: str | None = None) -> Suites:
    states = states or f"{base}/__control__/provider-states/runtime-api"
    with Crew() as crew:
        suites = Suites(crew)
        job = Job("runtime-api", base, {"api_key": KEY}, states, seed, {}, rules, fuzz_examples=examples)
        suites.run([("fuzz", job)])
    assert not suites.problems
    return suites


@pytest.mark.parametrize("seed", [1, 2])
def test_everything_documented_is_met_and_nothing_is_wrong(base_url, seed):
    suites = run(reference.make_world(base_url), seed=seed)
    assert {check.id: check.message for check in suites.checks.values() if check.status != "passed"} == {}
    assert suites.reach is not None
    assert suites.reach["notMet"] == NOT_TO_BE_MET
    assert suites.reach["requests"] > 1000


@pytest.mark.parametrize("id_", GENERATED)
def test_a_fault_is_found_and_repeated_by_few_commands(base_url, id_):
    suites = run(reference.make_world(base_url, mutant=id_), rules=list(registry()[id_].rules))
    failed = [check for check in suites.checks.values() if check.status == "failed"]
    assert failed, id_
    for check in failed:
        assert len(check.commands) <= 12, check.commands
        assert len([command for command in check.commands if "/internal/runtime/" in command]) <= 6, check.commands


def test_there_are_faults_for_generated_requests_alone():
    assert len(GENERATED) >= 8


def sent(suites: Suites) -> list[str]:
    """What was sent, ids of the build replaced by their order of appearance."""
    text = "\n".join(
        f"{check.id} {json.dumps(exchange['request'])}"
        for check in suites.checks.values()
        for exchange in check.exchanges
    )
    names: dict[str, str] = {}
    made = re.compile(r"(?:job|credential|snap)-[0-9a-f]{16}|__worlds__/[0-9a-f]+")
    return made.sub(lambda found: names.setdefault(found[0], f"name-{len(names)}"), text).splitlines()


def test_same_seed_same_requests_in_every_process(base_url, monkeypatch):
    rules = ["RT-RES-50", "RT-RES-65", "RT-SNAP-52"]
    runs = []
    for hash_seed in ("0", "4711"):
        monkeypatch.setitem(os.environ, "PYTHONHASHSEED", hash_seed)
        runs.append(sent(run(reference.make_world(base_url), rules=rules)))
    first, second = runs
    assert len(first) > 300
    assert first == second
    assert sent(run(reference.make_world(base_url), rules=rules, seed=2)) != first


def test_no_case_comes_from_our_own_source():
    """What Hypothesis reads in modules that are loaded would change the cases with each line that we write."""
    importlib.import_module("contract_tests.runtime_api.fuzz.generation")
    assert len(HypothesisProvider(None)._local_constants) == 0


def test_the_amount_can_be_chosen(tmp_path):
    counts = []
    for examples in ("0", "40"):
        report = tmp_path / f"{examples}.json"
        only = ("--only", "RT-LOCK-04", "--only", "RT-HB-53")
        done = contract("check", *only, "--fuzz-examples", examples, "--report", f"json={report}", cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        data = json.loads(report.read_text("utf-8"))
        jsonschema.validate(data, SCHEMA)
        counts.append(data["reach"]["requests"])
        assert "never met by" in done.stdout  # two checks do not meet everything
    assert counts[0] + 60 <= counts[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json", "40.json"]


def test_right_in_another_way_is_right(base_url):
    """Other key order, more properties, no details, no word of whether to repeat."""

    def otherwise(answered):
        if not answered.of_api or not answered.body:
            return None
        data = dict(reversed(json.loads(answered.body).items()))
        data.pop("details", None)
        data.pop("retryable", None)
        return answered.json(answered.status, {"more": {"a": [None]}, **data})

    with RewritingProxy(reference.make_world(base_url), otherwise) as build:
        suites = run(build.url, states=build.states, examples=3)
    wrong = {check.id: check.message for check in suites.checks.values() if check.status != "passed"}
    assert wrong == {}


def test_a_build_that_closes_on_some_requests_is_told_by_the_smallest_of_them(base_url):
    world = reference.make_world(base_url)
    with RewritingProxy(world, lambda answered: b"" if answered.of_api and answered.status == 422 else None) as build:
        target = ("--base-url", build.url, "--provider-states", build.states, "--api-key", KEY, "--fuzz-examples", "0")
        began = time.monotonic()
        done = contract("check", "runtime-api", *target, "--only", "RT-RES-66")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "the connection was closed" in " ".join(done.stdout.split())
    assert time.monotonic() - began < 60


def test_a_build_that_hangs_is_left_at_once(base_url):
    world = reference.make_world(base_url)

    def hang(answered):
        if answered.path.endswith("/fail") and answered.status == 409:
            time.sleep(20)

    with RewritingProxy(world, hang) as build:
        target = ("--base-url", build.url, "--provider-states", build.states, "--api-key", KEY, "--fuzz-examples", "0")
        began = time.monotonic()
        done = contract("check", "runtime-api", *target, "--only", "RT-FAIL-61")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "none within 15 s" in " ".join(done.stdout.split())
    assert time.monotonic() - began < 60
