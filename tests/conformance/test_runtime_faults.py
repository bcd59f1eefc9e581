"""Each fault of the Python example breaks a rule that it names, and nothing is held against Runtimes that are right.

Faults are played through the scenarios that are made for their rules until one shows it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import pytest
from test_check_runtime import EXAMPLE

from conformance.runtimes.judged import judged
from conformance.runtimes.playing import Command, Pace, Playground, playground
from contract_tests.runtime.monitors import monitors
from contract_tests.runtime.stage import Scenario, Timing, all_scenarios

LOCK = 3.0
TIMING = Timing(LOCK, LOCK / 4, LOCK * 2)
AT_ONCE = 10
VARIANTS = ["one-at-a-time", "eager-heartbeats", "batched-logs", "own-retries", "other-header-case", "no-keep-alive"]
MORE_VARIANTS = ["polls-slowly", "heartbeats-to-find-out", "leaves-lost-locks", "streams-the-model"]


def listed() -> list[dict[str, Any]]:
    done = subprocess.run([*EXAMPLE, "--list-faults"], capture_output=True, text=True, timeout=60, check=True)
    faults: list[dict[str, Any]] = json.loads(done.stdout)
    return faults


def scenarios_for(rules: list[str]) -> list[Scenario]:
    """The scenarios that are made for the first of the rules that has some: quick ones first."""
    found = [scenario for scenario in all_scenarios().values() if rules[0] in scenario.rules]
    return sorted(found, key=lambda scenario: (scenario.slow, len(scenario.rules)))


async def broken_by(ground: Playground, fault: dict[str, Any], room: asyncio.Semaphore) -> tuple[str, list[str]]:
    """A fault's name, and the rules that it was seen to break, up to the first that it names."""
    seen: dict[str, None] = {}
    async with room:
        for scenario in scenarios_for(fault["rules"]):
            command = Command([*EXAMPLE, "--fault", fault["name"]])
            [played] = await ground.play([scenario], command, TIMING, Pace(start=15))
            seen.update(dict.fromkeys(played.problems))  # told where the fault is missed
            for check in judged(played.log, monitors()):
                if check.status == "failed":
                    seen.update(dict.fromkeys(check.requirements))
                assert not check.set_up_failed, check.message
            if seen.keys() & set(fault["rules"]):
                break
    return fault["name"], list(seen)


async def all_broken(faults: list[dict[str, Any]]) -> dict[str, list[str]]:
    room = asyncio.Semaphore(AT_ONCE)
    async with playground() as ground:
        return dict(await asyncio.gather(*(broken_by(ground, fault, room) for fault in faults)))


def missed(faults: list[dict[str, Any]], found: dict[str, list[str]]) -> list[str]:
    return [
        f"{fault['name']} names {', '.join(fault['rules'])}, but broke {', '.join(found[fault['name']]) or 'nothing'}"
        for fault in faults
        if not set(found[fault["name"]]) & set(fault["rules"])
    ]


def test_faults_seen_in_the_field_are_told_by_a_rule_that_they_name():
    """One fault for each row of field reports, and every seventh of the others."""
    rows: dict[str, dict[str, Any]] = {}
    faults = listed()
    for fault in faults:
        for row in fault["rows"]:
            rows.setdefault(row, fault)
    chosen = {fault["name"]: fault for fault in [*rows.values(), *faults[::7]]}
    assert len(chosen) >= 40
    assert missed(list(chosen.values()), asyncio.run(all_broken(list(chosen.values())))) == []


@pytest.mark.soak
def test_every_fault_is_told_by_a_rule_that_it_names():
    faults = listed()
    found = asyncio.run(all_broken(faults))
    assert missed(faults, found) == []
    first = sum(fault["rules"][0] in found[fault["name"]] for fault in faults)
    assert first >= 0.8 * len(faults)


def wrongly_told(variant: str, scenarios: list[Scenario]) -> list[str]:
    async def play() -> list[str]:
        async with playground() as ground:
            command = Command([*EXAMPLE, "--variant", variant] if variant else EXAMPLE)
            found = await ground.play(scenarios, command, TIMING, Pace(start=30))
        problems = [f"{played.scenario}: {problem}" for played in found for problem in played.problems]
        checks = [check for played in found for check in judged(played.log, monitors())]
        return problems + [f"{check.id}: {check.message}" for check in checks if check.status != "passed"]

    return asyncio.run(play())


@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_is_held_against_one_that_is_right_in_another_way(variant):
    ids = [id_ for i, id_ in enumerate(all_scenarios()) if i % len(VARIANTS) == VARIANTS.index(variant)]
    telling = {"one-at-a-time": "life.many-jobs", "own-retries": "model.may-pass", "batched-logs": "logs.refused"}
    ids += ["life.each-type", "heartbeats.some-fail", *([telling[variant]] if variant in telling else [])]
    assert wrongly_told(variant, [all_scenarios()[id_] for id_ in dict.fromkeys(ids)]) == []


@pytest.mark.soak
@pytest.mark.parametrize("variant", ["", *VARIANTS, *MORE_VARIANTS])
def test_nothing_is_held_against_any_right_one_in_any_scenario(variant):
    assert wrongly_told(variant, list(all_scenarios().values())) == []
