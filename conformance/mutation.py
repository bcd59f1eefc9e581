"""Seeded faults judged by the suites: a world for each on a reference server, children that take fault after fault."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from conformance import reference
from conformance.children import Crew
from conformance.judging import Job
from conformance.results import judge_rules, narrowest_first
from conformance.runner import Suites
from conformance.systems import SYSTEMS, find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from mock_server.mutants import Mutant

SWEEP = 0.5
"""Seconds that checks wait for what never comes: the reference sweeps at once."""
Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the suites said of one seeded fault. It is detected where a rule failed, never where the time ran out."""

    id: str
    title: str
    named: tuple[str, ...]
    """The rules of which one was expected to fail."""
    failed: tuple[str, ...]
    """The rules that failed, the narrowest first; only checks of the named ones ran, or the whole suite."""
    problem: str | None
    seconds: float
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The checks that failed, in the order in which they were made, each with the rules that it shows to be broken."""

    @property
    def detected(self) -> bool:
        """Whether a rule failed."""
        return bool(self.failed)

    @property
    def as_named(self) -> bool:
        """Whether one of the rules that were named beforehand failed."""
        return bool(set(self.named) & set(self.failed))


class Bench:
    """A reference server and children of one worker, which judge one build after the other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._settings = {system.name: system.made_up() for system in SYSTEMS}
        self._open = contextlib.ExitStack()
        self._crew: Crew | None = None
        self._base_url = ""

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def renew(self) -> None:
        """End server and children, whatever they do: a build that hangs is not to hold up the next one."""
        self._open.close()
        self._crew = None

    def _ready(self) -> Crew:
        if self._crew is None:
            crew = self._open.enter_context(Crew())
            variables = reference.variables((system, self._settings[system.name]) for system in SYSTEMS)
            self._base_url = self._open.enter_context(reference.serve(variables, "--clock", "manual"))
            self._crew = crew
        return self._crew

    def judge(
        self,
        mutant: Mutant,
        part: str,
        rules: Sequence[str] | None,
        time_limit: float,
        *,
        until_failure: bool = False,
        text: str | None = None,
    ) -> Suites:
        """Run the checks for these rules (None: all) in a part of the suite of the API that the fault is of.

        ``text``: the mutant by whose text the checks go, in a child of its own. Raises
        :class:`conformance.reference.ReferenceFailed`.
        """
        crew = self._ready()
        system = find(mutant.system)
        suites = Suites(crew, time_limit)
        for kind, asked in system.kinds(rules):
            world = reference.make_world(self._base_url, mutant=mutant.id, **kind.world)
            states, own = system.states_url(world), {**self._settings[system.name], **kind.settings}
            job = Job(system.name, world, own, states, self.seed, {"sweep": SWEEP}, asked, traffic=False)
            job.until_failure, job.text = until_failure, text
            suites.run([(part if text is None else f"{part}#{text}", job)])
            if suites.stopped:
                self.renew()
                break
            reference.drop_world(self._base_url, world)
            if until_failure and failed_rules(mutant, suites):
                break
        if text is not None:
            crew.dismiss(f"{part}#{text}")
        return suites


def failed_rules(mutant: Mutant, suites: Suites) -> tuple[str, ...]:
    """The rules that failed, in the order of a report: the narrowest first."""
    results = judge_rules(find(mutant.system).contract.register.values(), list(suites.checks.values()))
    return tuple(result.rule.id for result in narrowest_first(results) if result.status == "failed")


def failed_checks(mutant: Mutant, suites: Suites) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The checks that failed, in the order in which they were made, each with the rules that it shows to be broken."""
    asked = find(mutant.system).contract.register.keys()
    found = ((check.id, tuple(check.broken(asked))) for check in suites.checks.values())
    return tuple((id_, rules) for id_, rules in found if rules)


def run(
    mutants: Sequence[Mutant], *, workers: int, whole: bool = False, seed: int = 1, time_limit: float = 60
) -> Iterator[Verdict]:
    """Judge each fault by the suite of the system whose rules it names, in the order in which they are done.

    ``whole`` runs every check of it, otherwise those that answer for the rules that the fault names. ``time_limit``:
    seconds for one fault. Raises :class:`conformance.reference.ReferenceFailed`.
    """

    def judge(mutant: Mutant, bench: Bench) -> Verdict:
        began = time.monotonic()
        part = "fuzz" if mutant.generated else "scenarios"
        suites = bench.judge(mutant, part, None if whole else mutant.rules, time_limit)
        problem = "; ".join(suites.problems) or None
        seconds = round(time.monotonic() - began, 3)
        failed = failed_rules(mutant, suites), problem, seconds, failed_checks(mutant, suites)
        return Verdict(mutant.id, mutant.title, mutant.rules, *failed)

    return side_by_side(mutants, judge, workers=workers, seed=seed)


def side_by_side(
    mutants: Sequence[Mutant], judge: Callable[[Mutant, Bench], Told], *, workers: int, seed: int
) -> Iterator[Told]:
    """What ``judge`` says of each mutant, in the order in which they are done; each worker has a bench of its own.

    Raises what ``judge`` raises.
    """
    todo: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        todo.put(mutant)
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        try:
            with Bench(seed) as bench:
                while not stop.is_set():
                    done.put((judge(todo.get_nowait(), bench),))
        except queue.Empty:
            done.put(None)
        except Exception as error:
            done.put(error)
        else:
            done.put(None)

    count = min(workers, len(mutants))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        while count:
            told = done.get()
            if isinstance(told, Exception):
                raise told
            if told is None:
                count -= 1
            else:
                yield told[0]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def chosen(mutants: Iterable[Mutant], globs: Sequence[str]) -> list[Mutant]:
    """The faults whose id matches one of the globs; all of them without globs."""
    return [mutant for mutant in mutants if matches(mutant.id, globs)]


def matches(id_: str, globs: Sequence[str]) -> bool:
    """Whether an id matches one of the globs; without globs each one does."""
    return not globs or any(fnmatchcase(id_, glob) for glob in globs)
