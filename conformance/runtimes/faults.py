"""The faults of the Python example judged: each is played through scenarios until a rule that it names is broken."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conformance
from conformance.catalogue import RUNTIME, runtime_faults
from conformance.mutation import Verdict
from conformance.results import CheckResult, judge_rules, narrowest_first
from conformance.runtimes.judged import judged
from conformance.runtimes.playing import Command, Pace, Playground, playground
from conformance.systems import RUNTIME_API
from contract_tests.runtime.monitors import monitors
from contract_tests.runtime.stage import Scenario, Timing, all_scenarios

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

EXAMPLE = [sys.executable, "-P", str(Path(conformance.__file__).parent / "examples/python_runtime/__main__.py")]
"""How the example is started."""
LOCK = 3.0
TIMING = Timing(LOCK, LOCK / 4, LOCK * 2)
"""Short locks, seconds, which the example honours."""
AT_ONCE = 10
"""Faults that are played side by side: they wait most of the time."""
_START = 15.0


def scenarios_for(rules: Sequence[str]) -> list[Scenario]:
    """The scenarios that are made for the first of the rules that has some: quick ones first."""
    found = [scenario for scenario in all_scenarios().values() if rules[0] in scenario.rules]
    return sorted(found, key=lambda scenario: (scenario.slow, len(scenario.rules)))


async def verdicts(ids: Sequence[str]) -> AsyncIterator[Verdict]:
    """What the monitors said of each fault, in the order in which they are done.

    A fault is played through the scenarios that are made for its rules, up to the first that shows one of them.
    Raises :class:`conformance.reference.ReferenceFailed`.
    """
    known, room = runtime_faults(), asyncio.Semaphore(AT_ONCE)
    async with playground() as ground:

        async def one(id_: str) -> Verdict:
            async with room:
                return await _verdict(ground, id_, known[id_])

        for done in asyncio.as_completed([one(id_) for id_ in ids]):
            yield await done


async def _verdict(ground: Playground, id_: str, fault: dict[str, Any]) -> Verdict:
    began = time.monotonic()
    command = Command([*EXAMPLE, "--fault", fault["name"]])
    rules: tuple[str, ...] = tuple(fault["rules"])
    checks: list[CheckResult] = []
    problems: dict[str, None] = {}
    for scenario in scenarios_for(rules):
        [played] = await ground.play([scenario], command, TIMING, Pace(start=_START))
        problems.update(dict.fromkeys(played.problems))
        checks += judged(played.log, monitors())
        if set(rules) & set(_broken(checks)):
            break
    problems.update({f"{check.id}: {check.message}": None for check in checks if check.set_up_failed})
    broken = _broken(checks)
    problem = None if broken else "; ".join(problems) or None
    seconds = round(time.monotonic() - began, 3)
    failed = {f"{RUNTIME}{check.family}": tuple(check.requirements) for check in checks if check.status == "failed"}
    return Verdict(id_, fault["doc"], rules, broken, problem, seconds, tuple(failed.items()))


def _broken(checks: Sequence[CheckResult]) -> tuple[str, ...]:
    """The rules that failed, in the order of a report."""
    results = judge_rules(RUNTIME_API.contract.register.values(), checks, "client")
    return tuple(result.rule.id for result in narrowest_first(results) if result.status == "failed")
