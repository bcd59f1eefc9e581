"""The scenarios before any Runtime plays them: worlds that can be made, times that fit, a place for every rule."""

import asyncio
import inspect
import json

import pytest

import openapi
from contract_tests.runtime.monitors import monitors
from contract_tests.runtime.scenarios_help import canary, content
from contract_tests.runtime.stage import Timing, all_scenarios
from mock_server.control import Guard
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

SCENARIOS = all_scenarios()
TIMINGS = {
    "short": Timing(lock=3, heartbeat=0.75, timeout=6),
    "real": Timing(),
    "fractions": Timing(lock=1.5, heartbeat=0.4, timeout=3),
}
scenarios = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
timings = pytest.mark.parametrize("timing", TIMINGS.values(), ids=TIMINGS)


def limits(row, timing):
    """A job's time limit in seconds."""
    return row.get("timeoutSeconds", timing.seconds)


def test_there_are_scenarios_of_each_theme():
    themes = {id_.partition(".")[0] for id_ in SCENARIOS}
    assert themes >= {"life", "polling", "locks", "heartbeats", "inputs", "model", "reports", "logs", "cancelling"}
    assert themes >= {"clock", "oddities", "process", "health"}


def test_titles_are_unique():
    titles = [scenario.title for scenario in SCENARIOS.values()]
    assert len(set(titles)) == len(titles)


@scenarios
def test_its_docstring_is_one_sentence(scenario):
    text = inspect.getdoc(scenario.play)
    assert text.splitlines() == [scenario.title + "."]
    assert text[0].isupper()
    assert len(text) <= 120


class Mock:
    """A server of this process that makes worlds."""

    def __init__(self):
        self.app = Server(Worlds(Options(api_key="key-of-the-server")), Guard(None, None))

    def make(self, options):
        """Status and answer of making a world with these options."""
        body = json.dumps(options).encode()
        fields = {"content-type": "application/json", "content-length": str(len(body)), "host": "127.0.0.1"}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": "POST",
            "root_path": "",
            "path": "/__control__/worlds",
            "raw_path": b"/__control__/worlds",
            "query_string": b"",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }
        sent, messages = [], [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return messages.pop(0)

        async def send(message):
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:]).decode()


@pytest.fixture(scope="module")
def mock():
    return Mock()


@scenarios
@timings
def test_the_mock_makes_its_world(scenario, timing, mock):
    options = dict(scenario.world(timing))
    assert not {"timing", "sightings", "apiKey", "port", "id", "clock"} & set(options)  # the stage's own
    assert mock.make({**options, "timing": {"lock": timing.lock}})[0] == 201, mock.make(options)


@scenarios
def test_what_plans_and_scripts_name_is_there(scenario):
    options = scenario.world(TIMINGS["short"])
    jobs = {row["id"] for row in options.get("data", {}).get("jobs", ())}
    named = {plan["match"]["jobId"] for plan in options.get("faults", ()) if "jobId" in plan["match"]}
    named |= {script["jobId"] for script in options.get("model", ()) if "jobId" in script}
    assert named <= jobs
    keys = {row["id"] for row in options.get("data", {}).get("credentials", ())}
    used = {row.get("credentialId") for row in options.get("data", {}).get("jobs", ())}
    assert used - {None, "cred-nowhere"} <= keys


@scenarios
@timings
def test_a_model_that_answers_does_so_in_time(scenario, timing):
    """Only the silent ones are to run into a limit."""
    options = scenario.world(timing)
    patience = timing.timeout / 3 if scenario.model_timeout is None else scenario.model_timeout * timing.lock
    rows = {row["id"]: row for row in options.get("data", {}).get("jobs", ())}
    for script in options.get("model", ()):
        limit = limits(rows.get(script.get("jobId"), {}), timing)
        for outcome in script["calls"]:
            if outcome["kind"] == "good":
                assert outcome.get("afterSeconds", 0) < min(0.9 * patience, 0.9 * limit)


@scenarios
@timings
def test_no_single_wait_of_its_world_is_longer_than_it_has_to_be(scenario, timing):
    """What is slow is slow by the lock's length: never above two locks, nor above 20 s where it ends within one."""
    options = scenario.world(timing)
    times = [plan["fault"].get("seconds", 0) for plan in options.get("faults", ()) if plan["fault"]["kind"] != "skew"]
    times += [outcome.get("afterSeconds", 0) for script in options.get("model", ()) for outcome in script["calls"]]
    assert max(times, default=0) <= max(2 * timing.lock, 2)


@scenarios
def test_who_signals_can_not_be_played_by_hand(scenario):
    source = inspect.getsource(scenario.play)
    signals = any(word in source for word in ("stage.signal(", "stage.restart(", "stage.exited("))
    assert (signals or scenario.own_key) == (not scenario.by_hand)


def test_canaries_are_their_own():
    sections = content("some")
    found = [section["note"] for section in sections.values() if isinstance(section, dict)]
    assert len(found) == len(set(found)) == 9
    assert all(text.startswith("cnry-") for text in found)
    assert canary("some/userProfile") in found
    assert "cnry-" not in json.dumps(content())


def bound():
    """Every rule of the register that binds Runtimes and can be seen."""
    rules = openapi.load("runtime-api").register.values()
    return {rule.id for rule in rules if rule.bound in ("client", "both") and rule.not_observable is None}


def test_named_rules_bind_runtimes():
    known = {rule.id for rule in openapi.load("runtime-api").register.values() if rule.bound in ("client", "both")}
    assert {rule for scenario in SCENARIOS.values() for rule in scenario.rules} <= known
    assert all(scenario.rules for scenario in SCENARIOS.values())


def test_every_rule_has_a_scenario_that_is_to_make_it_judgeable():
    named = {rule for scenario in SCENARIOS.values() for rule in scenario.rules}
    assert bound() - named == set()
    assert set(monitors()) - named == set()
