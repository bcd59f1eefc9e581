"""Generated requests to the hub: what they reach, what they find, and that they are the same for the same seed."""

from __future__ import annotations

import json
import os
import re

import jsonschema
import pytest
from rewriting_proxy import RewritingProxy
from test_command import SCHEMA, contract, last_line

from conformance import reference
from conformance.catalogue import checks_by_rule
from conformance.children import Crew
from conformance.judging import Job
from conformance.runner import Suites
from conformance.systems import AGENT_HUB
from mock_server.mutants import registry

SETTINGS = AGENT_HUB.made_up()
GENERATED = [id_ for id_, fault in registry().items() if fault.generated and fault.system == "agent-hub"]


@pytest.fixture(scope="module")
def base_url():
    with reference.serve(reference.variables([(AGENT_HUB, SETTINGS)]), "--clock", "manual") as url:
        yield url


def run(base: str, *, rules=None, seed: int = 1, examples: int = 10, states: str | None = None) -> Suites:
    states = states or AGENT_HUB.states_url(base)
    with Crew() as crew:
        suites = Suites(crew)
        job = Job("agent-hub", base, SETTINGS, states, seed, {"sweep": 0.5}, rules, fuzz_examples=examples)
        suites.run([("fuzz", job)])
    assert not suites.problems
    return suites


def wrong(suites: Suites) -> dict[str, str | None]:
    return {check.id: check.message for check in suites.checks.values() if check.status != "passed"}


@pytest.mark.parametrize("seed", [1, 2])
def test_everything_documented_is_met_and_nothing_is_wrong(base_url, seed):
    suites = run(reference.make_world(base_url), seed=seed)
    assert wrong(suites) == {}
    assert suites.reach is not None
    assert suites.reach["notMet"] == []
    assert set(suites.reach["operations"]) == set(AGENT_HUB.contract.operations)
    assert 700 < suites.reach["requests"] < 1200  # four seconds of one core, no more


@pytest.mark.parametrize("id_", GENERATED)
def test_a_fault_is_found_and_repeated_by_few_commands(base_url, id_):
    suites = run(reference.make_world(base_url, mutant=id_), rules=list(registry()[id_].rules))
    failed = [check for check in suites.checks.values() if check.status == "failed"]
    assert failed, id_
    for check in failed:
        assert set(check.about or check.requirements) & set(registry()[id_].rules)
        assert len(check.commands) <= 14, check.commands  # to make a job that failed takes eight


def test_there_are_faults_for_generated_requests_alone():
    assert len(GENERATED) >= 6


def sent(suites: Suites) -> list[str]:
    """What was sent, ids of the build, its instants and our ports replaced."""
    text = "\n".join(
        f"{check.id} {json.dumps(exchange['request'])}"
        for check in suites.checks.values()
        for exchange in check.exchanges
    )
    made = r"job_[0-9a-f]{16}|__worlds__/[0-9a-f]+|:\d+/hooks/[0-9a-f]{16}|\d{4}-\d\d-\d\dT\d\d%3A\d\d%3A\d\d\.\d{3}Z"
    return re.sub(made, "made", text).splitlines()


def test_same_seed_same_requests_in_every_process(base_url, monkeypatch):
    rules = ["HUB-SUB-50", "HUB-SUB-53", "HUB-LIST-57", "HUB-CANCEL-52"]
    runs = []
    for hash_seed in ("0", "4711"):
        monkeypatch.setitem(os.environ, "PYTHONHASHSEED", hash_seed)
        runs.append(sent(run(reference.make_world(base_url), rules=rules)))
    first, second = runs
    assert len(first) > 300
    assert first == second
    assert sent(run(reference.make_world(base_url), rules=rules, seed=2)) != first


def test_both_systems_are_told_of_in_one_report(tmp_path):
    report = tmp_path / "report.json"
    only = ("--only", "HUB-LIST-57", "--only", "RT-LOCK-04", "--fuzz-examples", "0")
    done = contract("check", *only, "--report", f"json={report}", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    reach = data["reach"]
    assert reach["operations"]["listJobs"]["answers"]["200"] > 20
    assert reach["operations"]["lockJob"]["moves"]["pending -> locked"] > 0
    counted = sum(sum(item["answers"].values()) for item in reach["operations"].values())
    assert reach["requests"] == counted
    assert "listJobs: 400 invalid_request" in reach["notMet"]
    assert "  listJobs: 400 invalid_request" in done.stdout
    assert sum("never met by" in line for line in done.stdout.splitlines()) == 1


def through(base_url, rewrite):
    """A build whose answers are rewritten: by path, status and the body as data; None leaves one as it is."""

    def rewritten(answered):
        if "/v1/" not in answered.path or "/__" in answered.path.partition("/v1/")[2] or not answered.body:
            return None
        data = rewrite(answered.path, answered.status, json.loads(answered.body))
        if data is None:
            return None
        body = json.dumps(data, ensure_ascii=False).encode()
        head = f"HTTP/1.1 {answered.status} Said\r\ncontent-type: application/json; charset=utf-8\r\n"
        head += f"x-request-id: {data['requestId']}\r\ncontent-length: {len(body)}\r\n\r\n"
        return head.encode() + body

    return RewritingProxy(reference.make_world(base_url), rewritten)


def without_streams() -> list[str]:
    """The rules of checks that generate requests and follow no job: the proxy hands on whole answers alone."""
    left_out = {"HUB-SSE-01", "HUB-SSE-02", "HUB-SSE-60", "HUB-SSE-62", "HUB-SSE-63"}
    left_out |= {"HUB-ERR-50", "HUB-ERR-52", "HUB-GET-26", "HUB-GET-70", "HUB-AUTH-50", "HUB-AUTH-51", "HUB-AUTH-01"}
    left_out |= {"HUB-PROJ-50", "HUB-OVW-50"}
    listed = checks_by_rule([AGENT_HUB])
    return [id_ for id_, checks in listed.items() if any(check.fuzz for check in checks) and id_ not in left_out]


def test_right_in_another_way_is_right(base_url):
    """Other key order, more properties, details that tell more and name fields otherwise, no details of lists."""

    def otherwise(path, status, data):
        error = data.get("error", {})
        if status == 400 and "/v1/jobs?" in path:
            error.pop("details", None)
        for entry in error.get("details", ()):
            entry["field"] = f"/items/{entry['index']}/{entry['field']}"
            entry["more"] = [None]
        inner = data.get("data")
        if isinstance(inner, dict):
            data["data"] = {"more": {"a": 1}, **dict(reversed(inner.items()))}
        return {"more": {"a": [None]}, **dict(reversed(data.items()))}

    with through(base_url, otherwise) as build:
        states = f"{build.url}/__control__/provider-states/agent-hub"
        suites = run(build.url, states=states, examples=3, rules=without_streams())
    assert len(suites.checks) > 15
    assert wrong(suites) == {}


SPOILT = {
    "an error without a requestId is told under its rule": (
        ["HUB-ERR-53"],
        lambda path, status, data: {**data, "requestId": "x"} if status == 404 else None,
        {"HUB-ERR-50", "HUB-ERR-52"},
    ),
    "details that name no item": (
        ["HUB-SUB-55"],
        lambda path, status, data: _indexed(data, None) if status == 400 else None,
        {"HUB-SUB-55"},
    ),
    "details of the body that name an item": (
        ["HUB-SUB-58"],
        lambda path, status, data: _indexed(data, 0) if status == 400 else None,
        {"HUB-SUB-58", "HUB-SUB-55"},
    ),
    "an externalId that is cut": (
        ["HUB-FIELD-20"],
        lambda path, status, data: _cut(data, "externalId", 64) if status == 200 else None,
        {"HUB-FIELD-20"},
    ),
    "a list of something else": (
        ["HUB-LIST-02"],
        lambda path, status, data: _other_status(data) if "status=failed" in path else None,
        {"HUB-LIST-02"},
    ),
}


def _indexed(data, index):
    for entry in data["error"].get("details", ()):
        entry["index"] = index
    return data


def _cut(data, name, length):
    if isinstance(data["data"].get(name), str):
        data["data"][name] = data["data"][name][:length]
    return data


def _other_status(data):
    detail = {"id": "job_1", "externalId": None, "kind": "ai", "status": "queued", "nodeId": "n", "nodeLabel": "n"}
    detail |= {"projectId": "p", "batchId": "b", "title": "t", "attempt": 0, "maxAttempts": 4, "priority": 0}
    detail["queuedAt"] = "2026-11-09T10:05:00.000Z"
    return {**data, "data": {"items": [detail], "nextCursor": None}}


@pytest.mark.parametrize("name", SPOILT)
def test_a_finding_is_told_under_the_rule_that_it_breaks(base_url, name):
    rules, rewrite, told = SPOILT[name]
    with through(base_url, rewrite) as build:
        states = f"{build.url}/__control__/provider-states/agent-hub"
        suites = run(build.url, states=states, examples=0, rules=rules)
    failed = [check for check in suites.checks.values() if check.status == "failed"]
    assert failed
    assert {rule for check in failed for rule in check.about} <= told


def test_without_provider_states_what_needs_none_is_judged(base_url):
    world = reference.make_world(base_url)
    with Crew() as crew:
        suites = Suites(crew)
        suites.run([("fuzz", Job("agent-hub", world, SETTINGS, None, 1, {}, None, fuzz_examples=0))])
    passed = {check.id for check in suites.checks.values() if check.status == "passed"}
    assert passed == {"hub.fuzz_valid.projects", "hub.fuzz_valid.overviews", "hub.fuzz_invalid.lists"}
    reasons = {check.message for check in suites.checks.values() if check.status == "skipped"}
    assert reasons == {
        "needs the provider state node; give --provider-states",
        "needs the provider state advance-time",
    }


def test_a_build_that_closes_on_some_requests_is_told_by_the_smallest_of_them(base_url):
    def closing(answered):
        return b"" if answered.status == 409 and "/v1/" in answered.path else None

    with RewritingProxy(reference.make_world(base_url), closing) as build:
        states = f"{build.url}/__control__/provider-states/agent-hub"
        target = ("--base-url", build.url, "--provider-states", states, "--token", SETTINGS["token"])
        done = contract("check", "agent-hub", *target, "--fuzz-examples", "0", "--only", "HUB-RETRY-56")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "the connection was closed" in " ".join(done.stdout.split())
