"""A seeded fault changes the parts of a build, and no other build."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from asgi import ask, request

from mock_server import builds, faults, mutants
from mock_server.app import KeyJudge, Sender
from mock_server.control import Guard
from mock_server.mutants import Mutant
from mock_server.runtime_api import RuntimeApi
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

POLL = "/internal/runtime/jobs/poll"
BODY = {"runtimeInstanceId": "r", "supportedJobTypes": ["learning_state_analysis"]}


def heartbeat_by_a_stranger(document):
    step = next(
        step
        for step in document["x-state-machine"]["operations"]["heartbeatJob"]["steps"]
        if step["id"] == "heartbeat.held"
    )
    step["require"] = "job.status in ['locked', 'running'] && now <= job.lockUntil"


class OverTheLimit(RuntimeApi):
    async def listed(self, call, query):
        return await super().listed(call, replace(query, limit=query.limit + 1))


class NoKey(KeyJudge):
    def judge(self, path, headers, exchange):
        pass


class AsText(Sender):
    async def send(self, answer, exchange, send):
        await super().send(replace(answer, headers={"content-type": "text/plain"}), exchange, send)


SAMPLES = (
    Mutant("machine", "A heartbeat by a stranger", ("RT-HB-03",), edit=heartbeat_by_a_stranger),
    Mutant(
        "handler",
        "One job over the limit",
        ("RT-SCHED-05",),
        parts=lambda parts: setattr(parts, "runtime_api", OverTheLimit),
    ),
    Mutant("key", "No key is asked for", ("RT-AUTH-50",), parts=lambda parts: setattr(parts, "key", NoKey)),
    Mutant("answer", "Answers are text", ("RT-ERR-01",), parts=lambda parts: setattr(parts, "sender", AsText)),
)


@pytest.fixture
def app(monkeypatch):
    monkeypatch.setattr(faults, "FAULTS", SAMPLES)
    builds.build.cache_clear()
    server = Server(Worlds(Options(api_key="test-internal-key", clock="manual")), Guard(None, None))
    for mutant in SAMPLES:
        assert ask(server, "POST", "/__control__/worlds", {"id": mutant.id, "mutant": mutant.id})[0] == 201
    yield server
    builds.build.cache_clear()


def state(app, prefix, name, **params):
    body = {"action": "setup", "state": name, "params": params}
    return ask(app, "POST", f"{prefix}/__control__/provider-states/runtime-api", body)[2]


def symptoms(app, prefix):
    """What each of the faults changes, seen from outside."""
    jobs = [state(app, prefix, "job")["jobId"] for _ in range(3)]
    listed = ask(app, "POST", f"{prefix}{POLL}", BODY | {"limit": 1})
    ask(app, "POST", f"{prefix}/internal/runtime/jobs/{jobs[0]}/lock", {"runtimeInstanceId": "a"})
    heartbeat = ask(app, "POST", f"{prefix}/internal/runtime/jobs/{jobs[0]}/heartbeat", {"runtimeInstanceId": "b"})
    without = ask(app, "POST", f"{prefix}{POLL}", BODY, x_internal_api_key="wrong")
    found = set()
    if heartbeat[0] == 204:
        found.add("machine")
    if len(listed[2]["jobs"]) == 2:
        found.add("handler")
    if without[0] == 200:
        found.add("key")
    if listed[1]["content-type"].startswith("text/plain"):
        found.add("answer")
    return found


def test_the_reference_has_none_of_the_faults(app):
    assert symptoms(app, "") == set()


@pytest.mark.parametrize("mutant", [sample.id for sample in SAMPLES])
def test_a_mutant_has_its_own_fault_alone(app, mutant):
    assert symptoms(app, f"/__worlds__/{mutant}") == {mutant}
    assert symptoms(app, "") == set()


def test_an_unknown_mutant_is_refused_with_the_nearest(app):
    with pytest.raises(ValueError, match="did you mean `handler`"):
        mutants.parts_of("handlers", builds.build(None).contract)


def test_worlds_share_a_compiled_build(app):
    assert builds.build("key") is builds.build("key")
    status, _, _ = asyncio.run(request(app, "GET", "/__control__/health"))
    assert status == 200
