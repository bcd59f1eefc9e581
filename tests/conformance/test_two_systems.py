"""One runner for two systems: selection over both registers, the hub's options, its keys, what is told of both."""

from __future__ import annotations

import asyncio
import json

import click
import jsonschema
import pytest
from fake_builds import FakeBuild, html, never, no_such_key
from small_hub import FakeHub
from test_command import SCHEMA, contract, last_line

import openapi
from conformance import mutation, reference
from conformance.catalogue import checks_by_rule
from conformance.cli import contract as command
from conformance.commands import options
from conformance.commands.check import planned
from conformance.commands.requirements import table
from conformance.preflight import preflight
from conformance.runner import Suites
from conformance.systems import AGENT_HUB, RUNTIME_API, SYSTEMS, redactor
from mock_server.mutants import Mutant

TOKEN = "zqa_live_of_these_tests"
BOTH = {"only": (), "skip": ()}
DOWN = ("check", "agent-hub", "--base-url", "http://127.0.0.1:9")


def settings(**given):
    return {"token": TOKEN, "second_token": None, "webhook_host": "127.0.0.1", "webhook_secret": None, **given}


# --- selection


def test_without_filters_the_rules_of_both_registers_are_asked_for():
    rules = options.selected(BOTH, SYSTEMS)
    assert [rule.id for rule in rules] == [
        *openapi.load("runtime-api").register,
        *openapi.load("agent-hub").register,
    ]
    assert options.wanted(rules, BOTH) is None
    [together, *apart] = planned(rules, fuzz=True, side_by_side=True)
    assert [(item.system, item.part, item.shard) for item in together[:3]] == [
        (RUNTIME_API, "scenarios", (0, 2)),
        (RUNTIME_API, "scenarios#2", (1, 2)),
        (RUNTIME_API, "fuzz", (0, 1)),
    ]
    assert {item.system for item in together[3:]} == {AGENT_HUB}
    assert [[(item.system, item.part, item.rules) for item in group] for group in apart] == [
        [(AGENT_HUB, "scenarios", ["HUB-WH-64"])]
    ]
    assert all("HUB-WH-64" not in item.rules for item in together)


def test_one_after_the_other_where_no_more_children_are_wanted():
    rules = options.selected(BOTH, SYSTEMS)
    groups = planned(rules, fuzz=False, side_by_side=False)
    assert [[(item.system, item.part, item.shard) for item in group] for group in groups] == [
        [(system, "scenarios", (0, 1))] for system in (RUNTIME_API, AGENT_HUB, AGENT_HUB)
    ]


@pytest.mark.parametrize(
    ("only", "skip", "systems"),
    [
        (("HUB-*",), (), [AGENT_HUB]),
        (("RT-LOCK-*",), (), [RUNTIME_API]),
        (("*-AUTH-*",), (), [RUNTIME_API, AGENT_HUB]),
        (("HUB-AUTH-50", "RT-LOCK-13"), (), [RUNTIME_API, AGENT_HUB]),
        ((), ("RT-*",), [AGENT_HUB]),
        (("*-AUTH-*",), ("HUB-*",), [RUNTIME_API]),
    ],
)
def test_only_the_suites_that_are_needed_are_run(only, skip, systems):
    chosen = {"only": only, "skip": skip}
    rules = options.selected(chosen, SYSTEMS)
    plan = [item for group in planned(rules, fuzz=True, side_by_side=True) for item in group]
    assert list(dict.fromkeys(item.system for item in plan)) == systems
    assert {id_ for item in plan for id_ in item.rules} == {rule.id for rule in rules}
    assert all(id_ in item.system.contract.register for item in plan for id_ in item.rules)


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("RT-LOCK-13", ["scenarios", "scenarios#2"]),
        ("RT-LOCK-04", ["scenarios", "scenarios#2", "fuzz"]),
        ("HUB-AUTH-50", ["scenarios", "fuzz"]),
        ("HUB-AUTH-52", ["scenarios"]),
        ("HUB-WH-64", ["scenarios"]),
        ("RT-POLL-04", []),
    ],
)
def test_only_the_parts_of_a_suite_that_are_needed_are_run(rule, parts):
    rules = options.selected({**BOTH, "only": (rule,)}, SYSTEMS)
    assert [item.part for group in planned(rules, fuzz=True, side_by_side=True) for item in group] == parts


@pytest.mark.parametrize(
    ("systems", "glob", "told"),
    [
        (SYSTEMS, "NO-*", "matches no rule of runtime-api or agent-hub"),
        ((RUNTIME_API,), "HUB-*", "matches no rule of runtime-api"),
        ((AGENT_HUB,), "RT-*", "matches no rule of agent-hub"),
    ],
)
def test_a_filter_that_matches_nowhere_is_wrong_usage(systems, glob, told):
    for name in ("only", "skip"):
        with pytest.raises(click.UsageError, match=f"--{name} {glob.replace('*', '.')}"[:-1]) as refused:
            options.selected({**BOTH, name: (glob,)}, systems)
        assert told in refused.value.message


def test_no_check_and_no_rule_is_of_two_systems():
    seen: dict[str, str] = {}
    for system in SYSTEMS:
        checks = {check.id for checks in checks_by_rule([system]).values() for check in checks}
        for name in (*checks, *system.contract.register):
            assert seen.setdefault(name, system.name) == system.name, name
    assert "lock.a_locked_job_is_refused_to_a_second_runtime" in seen


def test_every_rule_that_a_check_names_is_in_its_systems_register():
    for system in SYSTEMS:
        assert checks_by_rule([system]).keys() <= set(system.contract.register), system.name


# --- timing


def test_each_system_has_timing_keys_of_its_own():
    text = "backoff=1/2/3, idempotency=5,ping=0.5,node-lost=2,sweep=1"
    assert options.timings(AGENT_HUB, text) == {
        "backoff": [1, 2, 3],
        "idempotency": 5,
        "ping": 0.5,
        "node_lost": 2,
        "sweep": 1,
    }
    assert options.timings(RUNTIME_API, "lock=3") == {"lock": 3}
    assert AGENT_HUB.timing_class(backoff=(1, 2, 3), node_lost=2).node_lost == 2


@pytest.mark.parametrize(
    ("system", "text", "told"),
    [
        (AGENT_HUB, "lock=3", "one of backoff, idempotency, ping, node-lost, sweep"),
        (AGENT_HUB, "node_lost=3", "node-lost"),
        (AGENT_HUB, "backoff=1/2", "3 numbers with `/`"),
        (AGENT_HUB, "backoff=1/2/x", "`x` is no number"),
        (AGENT_HUB, "backoff=1/2/0", "above 0"),
        (AGENT_HUB, "ping=1/2", "`1/2` is no number"),
        (AGENT_HUB, "ping=1,ping=2", "twice"),
        (RUNTIME_API, "ping=1", "one of lock, timeout, sweep, heartbeat"),
    ],
)
def test_timing_of_another_kind_is_told(system, text, told):
    with pytest.raises(click.UsageError) as refused:
        options.timings(system, text)
    assert told in refused.value.message


# --- options


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--token", ""), "--token is empty"),
        (("--token", "a\tb"), "no header can carry"),
        (("--second-token", ""), "--second-token is empty"),
        (("--token", "same", "--second-token", "same"), "--second-token is the same as --token"),
        (("--webhook-host", "http://host"), "leave scheme and port out"),
        (("--webhook-host", "host:80"), "leave scheme and port out"),
        (("--webhook-host", ""), "is no host name"),
        (("--webhook-secret", ""), "--webhook-secret is empty"),
        (("--webhook-secret", "whsec_!"), "is no base64"),
        (("--api-key", "x"), "No such option"),
        (("--timing", "lock=3"), "node-lost"),
        (("--only", "RT-LOCK-13"), "matches no rule of agent-hub"),
        (("--provider-states", "states"), "is no URL"),
    ],
)
def test_wrong_options_of_the_hub_are_exit_2_with_the_mend(arguments, told):
    with pytest.raises(click.UsageError) as refused:
        command.main([*DOWN, *arguments], standalone_mode=False)
    assert refused.value.exit_code == 2
    assert told in refused.value.format_message()


@pytest.mark.parametrize("host", ["hub-judge.example", "10.0.0.7", "::1", "[::1]", "localhost", "a_b"])
def test_hosts_that_can_stand_in_a_url(host):
    assert options.host("--webhook-host", host) == host.strip("[]")


def test_secrets_come_from_the_environment_and_stand_in_no_help(monkeypatch):
    values = {"CONTRACT_HUB_TOKEN": TOKEN, "CONTRACT_HUB_TOKEN_B": "other-key", "CONTRACT_WEBHOOK_SECRET": "whsec_c2g="}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    with FakeHub(TOKEN) as hub:
        done = contract("check", "agent-hub", "--base-url", hub.url, "--only", "HUB-AUTH-50")
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "refuses the second key (401)" in " ".join(done.stdout.split())
    assert {token for _, _, token in hub.asked} == {TOKEN, "other-key"}
    text = contract("check", "agent-hub", "--help").stdout
    assert all(name in text and value not in text for name, value in values.items())
    assert "backoff, idempotency, ping, node-lost, sweep" in " ".join(text.split())


# --- preflight


def look(url, *, seconds=5, **given):
    known = settings(**given)
    return asyncio.run(preflight(AGENT_HUB, url, known, seconds=seconds)), known["second_token"]


def test_the_mocks_second_key_is_tried_once_and_taken_where_it_opens():
    with FakeHub(TOKEN, f"{TOKEN}_b") as hub:
        assert look(hub.url) == (None, f"{TOKEN}_b")
    assert hub.asked == [("GET", "/v1/jobs?limit=1", TOKEN), ("GET", "/v1/jobs?limit=1", f"{TOKEN}_b")]


def test_without_it_the_target_has_no_second_key():
    with FakeHub(TOKEN) as hub:
        assert look(hub.url) == (None, None)
        assert len(hub.asked) == 2
    with FakeHub(TOKEN, f"{TOKEN}_b", status=500) as hub:
        assert look(hub.url) == (None, None), "a build that is broken takes nothing"


def test_a_second_key_that_is_given_is_used_as_it_is():
    with FakeHub(TOKEN, "other") as hub:
        assert look(hub.url, second_token="other") == (None, "other")
        problem, _ = look(hub.url, second_token="nobody's")
    assert "refuses the second key (401); give another API key of it as CONTRACT_HUB_TOKEN_B" in problem


def test_a_hub_that_can_not_be_judged_is_told_with_the_mend():
    with FakeHub("another") as hub:
        problem, _ = look(hub.url)
    assert "refuses the key (401); give an API key of it as CONTRACT_HUB_TOKEN or --token" in problem
    problem, _ = look("http://127.0.0.1:9")
    assert "can't be reached" in problem
    with FakeBuild(html) as build:
        assert look(build.url) == (None, None), "it does answer"


def test_a_hub_that_never_answers_is_told():
    with FakeBuild(never) as build:
        problem, _ = look(build.url, seconds=0.1)
    assert "takes connections and never answers: none within 0.1 s" in problem


def test_a_hub_that_can_not_be_judged_is_inconclusive():
    with FakeBuild(no_such_key) as build:
        done = contract("check", "agent-hub", "--base-url", build.url, "--token", TOKEN)
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "refuses the key (401)" in " ".join(done.stdout.split())
    assert TOKEN not in done.stdout + done.stderr


# --- what is told


def test_secrets_of_every_target_are_taken_out():
    made = {system: system.made_up() for system in SYSTEMS}
    clean = redactor(made.items())
    values = [value for system in SYSTEMS for value in system.variables(made[system])]
    assert len(values) == 4
    text = clean.text(" ".join(values))
    assert not [value for value in values if value in text]
    assert clean.text("task-1") == "task-1"
    alone = redactor([(RUNTIME_API, made[RUNTIME_API])])
    assert alone.text("a key: sk-abc") == "a key: [redacted]"


def test_a_report_of_a_hub_holds_none_of_its_secrets(tmp_path):
    secrets = {
        "--token": "zqa_live_one",
        "--second-token": "zqa_live_one_other",
        "--webhook-secret": "whsec_d2ViaG9va3M=",
    }
    report = tmp_path / "report.json"
    with FakeHub("zqa_live_one", "zqa_live_one_other", says=" ".join(secrets.values())) as hub:
        target = ("check", "agent-hub", "--base-url", hub.url, *(part for pair in secrets.items() for part in pair))
        done = contract(*target, "--only", "HUB-AUTH-*", "--only", "HUB-ERR-*", "--report", f"json={report}")
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "$CONTRACT_HUB_TOKEN" in done.stdout
    text = report.read_text("utf-8")
    assert "[redacted]" in text
    assert not [value for value in secrets.values() if value in text + done.stdout + done.stderr]
    data = json.loads(text)
    jsonschema.validate(data, SCHEMA)
    assert data["target"] == {"kind": "agent-hub", "baseUrl": hub.url}
    assert {rule["id"].partition("-")[0] for rule in data["requirements"]} == {"HUB"}


def test_the_self_check_tells_of_both_systems_on_one_page(tmp_path):
    report = tmp_path / "report.json"
    done = contract("check", "--only", "RT-LOCK-13", "--only", "HUB-AUTH-5[04]", "--report", f"json={report}")
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    assert "✔ RT-LOCK " in done.stdout
    assert "✔ HUB-AUTH " in done.stdout
    data = json.loads(report.read_text("utf-8"))
    jsonschema.validate(data, SCHEMA)
    assert data["target"]["kind"] == "reference"
    statuses = {rule["id"]: rule["status"] for rule in data["requirements"]}
    assert statuses == dict.fromkeys(("RT-LOCK-13", "HUB-AUTH-50", "HUB-AUTH-54"), "passed")


def test_the_worst_of_two_systems_is_the_verdict():
    done = contract(
        "check", "--mutant", "lock.wrong-code", "--only", "RT-LOCK-13", "--only", "HUB-AUTH-50", "--no-fuzz"
    )
    assert (done.returncode, last_line(done)) == (1, "non-conformant")
    assert "✔ HUB-AUTH " in done.stdout
    assert "× RT-LOCK " in done.stdout


@pytest.mark.parametrize("given", [(), ("--second-token", f"{TOKEN}_b", "--webhook-secret", "any text")])
def test_a_served_hub_is_judged(given):
    secrets = {"CONTRACT_HUB_TOKEN": TOKEN, "CONTRACT_WEBHOOK_SECRET": "any text"}
    with reference.serve(secrets, "--clock", "manual") as base_url:
        states = AGENT_HUB.states_url(base_url)
        target = ("--base-url", base_url, "--token", TOKEN, "--provider-states", states, *given)
        done = contract("check", "agent-hub", *target, "--only", "HUB-AUTH-*")
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    assert " 0 skipped" in done.stdout


def test_states_of_the_other_system_are_refused():
    with reference.serve({"CONTRACT_HUB_TOKEN": TOKEN}) as base_url:
        states = RUNTIME_API.states_url(base_url)
        target = ("--base-url", base_url, "--token", TOKEN, "--provider-states", states)
        done = contract("check", "agent-hub", *target, "--only", "HUB-AUTH-50")
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    assert "sets up `runtime-api`, not `agent-hub`" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("rule", "place", "world"),
    [
        ("HUB-AUTH-50", ("agent-hub", "scenarios"), {}),
        ("HUB-WH-64", ("agent-hub", "scenarios"), {"webhookSecret": None}),
        ("RT-LOCK-13", ("runtime-api", "scenarios"), {}),
    ],
)
def test_a_fault_is_judged_by_the_suite_of_the_system_whose_rules_it_names(monkeypatch, rule, place, world):
    sent, made = [], []

    class Told:
        """A crew that finds nothing."""

        def send(self, part, job):
            sent.append((job.system, part, job.provider_states, job.rules))
            return self

        def next(self, _):
            return self, {"event": "end"}

    monkeypatch.setattr(reference, "make_world", lambda base_url, **options: made.append(options) or f"{base_url}/w")
    monkeypatch.setattr(reference, "drop_world", lambda *_: None)
    fault = Mutant("a.fault", "A fault", (rule,))
    bench = mutation.Bench(1)
    bench._crew, bench._base_url = Told(), "http://m"
    suites = bench.judge(fault, "scenarios", fault.rules, 5)
    assert sent == [(*place, f"http://m/w/__control__/provider-states/{place[0]}", [rule])]
    assert made == [{"mutant": "a.fault", **world}]
    assert (mutation.failed_rules(fault, suites), suites.problems) == ((), [])


def test_what_generated_requests_meet_in_two_suites_is_one_account():
    suites = Suites(None)
    for name in ("lockJob", "submitJobs"):
        reach = {"requests": 2, "operations": {name: {"answers": {"200": 2}, "moves": {}}}, "notMet": [f"{name}: 409"]}
        suites._take({"event": "reach", "reach": reach})
    assert suites.reach == {
        "requests": 4,
        "operations": {name: {"answers": {"200": 2}, "moves": {}} for name in ("lockJob", "submitJobs")},
        "notMet": ["lockJob: 409", "submitJobs: 409"],
    }


def test_requirements_are_of_both_registers():
    rows = table()
    assert [row["id"] for row in rows] == [id_ for system in SYSTEMS for id_ in system.contract.register]
    [row] = [row for row in rows if row["id"] == "HUB-AUTH-50"]
    assert row["places"][0].startswith("agent-hub.yaml:")
    assert row["checks"]
    assert all(check.startswith(("hub.auth.", "hub.fuzz_")) for check in row["checks"])
    assert [row["id"] for row in table(("*-AUTH-01",))] == ["RT-AUTH-01", "HUB-AUTH-01"]
