"""A job in a child, played in this process: what a check of the hub is given, what is told of it, what is left."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_builds import FakeBuild, nothing
from small_hub import FakeHub

from conformance.judging import LOST, Job, JobRun
from conformance.recording import RECORDER
from contract_tests.checks import CheckFailed, NoAnswer, fuzz, requirement
from contract_tests.transport import Request

SECRET = base64.b64encode(b"the secret of the webhooks").decode()
SETTINGS = {
    "token": "zqa_live_0123456789",
    "second_token": "zqa_live_0123456789_b",
    "webhook_host": "127.0.0.1",
    "webhook_secret": f"whsec_{SECRET}",
}


def item(check) -> SimpleNamespace:
    """What pytest collects of a check."""
    return SimpleNamespace(obj=check, path=Path("test_play.py"), name=check.__name__)


def run(url, *checks, settings=SETTINGS, system="agent-hub", timing=None, rules=None):
    told = []
    job = Job(system, url, settings, None, 1, timing or {}, rules)
    JobRun(job, lambda event, **fields: told.append({"event": event, **fields})).run([item(check) for check in checks])
    return told


def ended(told):
    return {event["id"]: event for event in told if event["event"] == "finished"}


def test_checks_are_called_by_what_they_take_and_ids_are_the_hubs():
    taken = []

    @requirement("HUB-AUTH-01")
    async def test_all(api, other, receiver, transport, states, clock, timing, given, seed, examples):
        """Everything."""
        taken.append((api.token, other.token, timing.backoff, seed, examples, given.webhook_secret, clock.advances))
        assert receiver.base_url.startswith("http://127.0.0.1:")
        assert given.api is api
        assert not states.offered
        assert transport is api.transport

    told = run("http://127.0.0.1:9", test_all, timing={"backoff": [1, 2, 3]})
    assert [event["event"] for event in told] == ["collected", "started", "finished", "end"]
    assert told[0]["checks"] == [{"id": "hub.play.all", "requirements": ["HUB-AUTH-01"], "title": "Everything."}]
    assert ended(told)["hub.play.all"]["status"] == "passed"
    tokens = (SETTINGS["token"], SETTINGS["second_token"])
    assert taken == [(*tokens, (1, 2, 3), 1, 10, SETTINGS["webhook_secret"], False)]


def test_without_a_second_key_checks_that_take_it_are_skipped_with_the_mend():
    @requirement("HUB-AUTH-54")
    async def test_other(other):
        """Needs another key."""
        raise CheckFailed("not to be called", "called")

    told = run("http://127.0.0.1:9", test_other, settings={**SETTINGS, "second_token": None})
    end = ended(told)["hub.play.other"]
    assert (end["status"], end["setUpFailed"]) == ("skipped", False)
    assert "CONTRACT_HUB_TOKEN_B or --second-token" in end["message"]


@pytest.mark.parametrize("name", ["token", "second_token", "webhook_secret"])
def test_no_secret_is_told_and_commands_name_its_variable(name):
    value = SETTINGS[name]

    @requirement("HUB-AUTH-01")
    async def test_tells(transport):
        """Sends a secret everywhere, gets it back, and says it."""
        headers = {"authorization": f"Bearer {value}", "x-again": value, "x-within": f"a{value}b"}
        answer = await transport.send(Request("POST", f"/v1/{value}", headers, value.encode()))
        async with await transport.open(Request("GET", "/v1/x", headers)) as stream:
            assert value.encode() in await stream.read(5)
        raise CheckFailed(f"no {value}", f"{answer.text} {base64.b64encode(value.encode()).decode()}", f"/{value}")

    with FakeHub(value) as hub:
        told = run(hub.url, test_tells)
    end = ended(told)["hub.play.tells"]
    assert end["status"] == "failed"
    assert len(end["exchanges"]) == 2
    text = json.dumps(told)
    assert value not in text
    assert SECRET not in text
    assert "[redacted]" in end["exchanges"][0]["response"]["body"]
    assert "[redacted]" in end["exchanges"][1]["response"]["body"]
    variable = {
        "token": "CONTRACT_HUB_TOKEN",
        "second_token": "CONTRACT_HUB_TOKEN_B",
        "webhook_secret": "CONTRACT_WEBHOOK_SECRET",
    }[name]
    for command in end["commands"]:
        assert f'-H "authorization: Bearer ${variable}" -H "x-again: ${variable}"' in command


def test_a_key_of_the_runtime_api_looks_otherwise():
    """``sk-`` in a text of the hub is no key: task-1 holds it."""

    @requirement("HUB-LIST-01")
    async def test_lists(transport):
        """Sends an id."""
        await transport.send(Request("GET", "/v1/jobs?externalId=task-1"))

    with FakeHub() as hub:
        told = run(hub.url, test_lists)
    [exchange] = ended(told)["hub.play.lists"]["exchanges"]
    assert exchange["request"]["url"].endswith("externalId=task-1")


def test_what_a_check_leaves_open_is_closed_before_its_end_is_told():
    left = []

    @requirement("HUB-SSE-01")
    async def test_leaves(transport):
        """Opens two and goes."""
        left.extend([await transport.open(Request("GET", "/v1/a")), await transport.open(Request("GET", "/v1/b"))])

    with FakeHub("") as hub:
        told = run(hub.url, test_leaves)
    assert all(stream._incoming._writer.is_closing() for stream in left)
    assert [exchange["response"]["status"] for exchange in ended(told)["hub.play.leaves"]["exchanges"]] == [200, 200]


def test_a_target_that_gives_no_answers_is_given_up_after_a_plain_request():
    calls = []

    @requirement("HUB-AUTH-01")
    async def test_asks(transport):
        """Asks."""
        calls.append(1)
        raise NoAnswer("an answer", "none")

    checks = [test_asks] * (2 * LOST[NoAnswer])
    with FakeBuild(nothing) as build:
        told = run(build.url, *checks)
    assert len(told) == 2 + 2 * len(checks)
    with FakeHub(SETTINGS["token"]) as hub:
        run(hub.url, *checks)
    assert ("GET", "/v1/jobs?limit=1", SETTINGS["token"]) in hub.asked


def test_side_by_side_each_check_has_its_own_record_and_streams():
    both = asyncio.Barrier(2)

    async def asks(transport, path):
        stream = await transport.open(Request("GET", path))
        await both.wait()
        await stream.read(5)
        assert len(RECORDER.get().exchanges) == 1

    @requirement("HUB-SSE-01")
    async def test_one(transport):
        """One."""
        await asks(transport, "/v1/one")

    @requirement("HUB-SSE-01")
    async def test_two(transport):
        """Two."""
        await asks(transport, "/v1/two")

    with FakeHub("") as hub:
        ends = ended(run(hub.url, test_one, test_two))
    assert {id_: end["status"] for id_, end in ends.items()} == {"hub.play.one": "passed", "hub.play.two": "passed"}
    urls = {id_: [exchange["request"]["url"][-4:] for exchange in end["exchanges"]] for id_, end in ends.items()}
    assert urls == {"hub.play.one": ["/one"], "hub.play.two": ["/two"]}


def test_the_runtime_apis_suite_makes_its_own_services():
    taken = []

    @fuzz
    @requirement("RT-POLL-09")
    async def test_takes(api, canary, reach, given):
        """The Runtime API's."""
        taken.append((api.key, canary.keys, given.timing.lock))
        reach.saw("pollJobs", 200, None, None)

    told = run(
        "http://127.0.0.1:9", test_takes, settings={"api_key": "key-1"}, system="runtime-api", timing={"lock": 3}
    )
    assert taken == [("key-1", 0, 3)]
    assert [event["event"] for event in told][-2:] == ["reach", "end"]
    assert list(ended(told)) == ["play.takes"]


def test_a_provider_state_endpoint_that_hangs_up_breaks_the_job(monkeypatch):
    with FakeBuild(nothing) as build:
        told = []
        job = Job("agent-hub", build.url, SETTINGS, f"{build.url}/states", 1)
        JobRun(job, lambda event, **fields: told.append({"event": event, **fields})).run([])
    assert told[-1]["event"] == "broken"
    assert "can't be reached" in told[-1]["message"]
