"""Each fault of the Python example breaks a rule that it names, and nothing is held against Runtimes that are right.

Faults are played through the scenarios that are made for their rules until one shows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from conformance.catalogue import runtime_faults
from conformance.mutation import Verdict
from conformance.runtimes.faults import EXAMPLE, TIMING, verdicts
from conformance.runtimes.judged import judged
from conformance.runtimes.playing import Command, Pace, playground
from contract_tests.runtime.monitors import monitors
from contract_tests.runtime.stage import Scenario, all_scenarios

VARIANTS = ["one-at-a-time", "eager-heartbeats", "batched-logs", "own-retries", "other-header-case", "no-keep-alive"]
MORE_VARIANTS = ["polls-slowly", "heartbeats-to-find-out", "leaves-lost-locks", "streams-the-model"]


def judged_faults(ids: Iterable[str]) -> dict[str, Verdict]:
    async def all_of_them() -> dict[str, Verdict]:
        return {verdict.id: verdict async for verdict in verdicts(list(ids))}

    return asyncio.run(all_of_them())


def missed(found: dict[str, Verdict]) -> list[str]:
    return [
        f"{id_} names {', '.join(verdict.named)}, but broke {', '.join(verdict.failed) or 'nothing'}: {verdict.problem}"
        for id_, verdict in found.items()
        if not verdict.as_named
    ]


def test_faults_seen_in_the_field_are_told_by_a_rule_that_they_name():
    """One fault for each row of field reports, and every seventh of the others."""
    rows: dict[str, str] = {}
    known = runtime_faults()
    for id_, fault in known.items():
        for row in fault["rows"]:
            rows.setdefault(row, id_)
    chosen = dict.fromkeys([*rows.values(), *list(known)[::7]])
    assert len(chosen) >= 40
    assert missed(judged_faults(chosen)) == []


@pytest.mark.soak
def test_every_fault_is_told_by_a_rule_that_it_names():
    known = runtime_faults()
    found = judged_faults(known)
    assert found.keys() == known.keys()
    assert missed(found) == []
    assert sum(verdict.named[0] in verdict.failed for verdict in found.values()) >= 0.8 * len(found)


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
