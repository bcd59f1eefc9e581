"""Seeded faults judged by the suites: a world for each on a reference server, children that take fault after fault."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from conformance import reference
from conformance.children import Crew
from conformance.judging import Job
from conformance.results import judge_rules
from conformance.runner import Suites
from conformance.systems import SYSTEMS, find

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mock_server.mutants import Mutant

SWEEP = 0.5
"""Seconds that checks wait for what never comes: the reference sweeps at once."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the suites said of one seeded fault. It is detected where a rule failed, never where the time ran out."""

    id: str
    title: str
    named: tuple[str, ...]
    """The rules of which one was expected to fail."""
    failed: tuple[str, ...]
    """The rules that failed, in the register's order; of the named ones only, unless the whole suite was run."""
    problem: str | None
    seconds: float

    @property
    def detected(self) -> bool:
        """Whether a rule failed."""
        return bool(self.failed)

    @property
    def as_named(self) -> bool:
        """Whether one of the rules that were named beforehand failed."""
        return bool(set(self.named) & set(self.failed))


def run(
    mutants: Sequence[Mutant], *, workers: int, whole: bool = False, seed: int = 1, time_limit: float = 60
) -> Iterator[Verdict]:
    """Judge each fault by the suite of the system whose rules it names, in the order in which they are done.

    ``whole`` runs every check of it, otherwise those that answer for the rules that the fault names. ``time_limit``:
    seconds for one fault. Raises :class:`conformance.reference.ReferenceFailed`.
    """
    todo: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        todo.put(mutant)
    done: queue.SimpleQueue[Verdict | BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()
    count = min(workers, len(mutants))
    threads = [
        threading.Thread(target=_work, args=(todo, done, stop, whole, seed, time_limit), daemon=True)
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        while count:
            verdict = done.get()
            if isinstance(verdict, BaseException):
                raise verdict
            if verdict is None:
                count -= 1
            else:
                yield verdict
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _work(
    todo: queue.SimpleQueue[Mutant],
    done: queue.SimpleQueue[Verdict | BaseException | None],
    stop: threading.Event,
    whole: bool,
    seed: int,
    time_limit: float,
) -> None:
    settings = {system.name: system.made_up() for system in SYSTEMS}
    variables = reference.variables((system, settings[system.name]) for system in SYSTEMS)
    try:
        with Crew() as crew, reference.serve(variables, "--clock", "manual") as base_url:
            while not stop.is_set():
                mutant = todo.get_nowait()
                done.put(_judge(mutant, crew, base_url, settings, whole=whole, seed=seed, time_limit=time_limit))
    except queue.Empty:
        pass
    except Exception as error:
        done.put(error)
        return
    done.put(None)


def _judge(
    mutant: Mutant,
    crew: Crew,
    base_url: str,
    settings: Mapping[str, dict[str, Any]],
    *,
    whole: bool,
    seed: int,
    time_limit: float,
) -> Verdict:
    """``settings``: those of the reference, by the name of the system."""
    began = time.monotonic()
    system = find(mutant.system)
    part = "fuzz" if mutant.generated else "scenarios"
    suites = Suites(crew, time_limit)
    for kind, rules in system.kinds(None if whole else mutant.rules):
        world = reference.make_world(base_url, mutant=mutant.id, **kind.world)
        states, own = system.states_url(world), {**settings[system.name], **kind.settings}
        suites.run([(part, Job(system.name, world, own, states, seed, {"sweep": SWEEP}, rules, traffic=False))])
        reference.drop_world(base_url, world)
        if suites.stopped:
            crew.stop()
            break
    results = judge_rules(system.contract.register.values(), list(suites.checks.values()))
    failed = tuple(result.rule.id for result in results if result.status == "failed")
    problem = "; ".join(suites.problems) or None
    return Verdict(mutant.id, mutant.title, mutant.rules, failed, problem, round(time.monotonic() - began, 3))


def chosen(mutants: Iterable[Mutant], globs: Sequence[str]) -> list[Mutant]:
    """The faults whose id matches one of the globs; all of them without globs."""
    return [mutant for mutant in mutants if not globs or any(fnmatchcase(mutant.id, glob) for glob in globs)]
