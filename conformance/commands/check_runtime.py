"""``contract check runtime``: a real Runtime, judged as a client by what it sends."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from conformance.cli import config_option
from conformance.commands.options import common_options, reports, selected, stop_at, timings
from conformance.commands.running import Inconclusive, interruptible, progress, tell
from conformance.reference import ReferenceFailed
from conformance.report.har_report import to_har
from conformance.report.json_report import to_json
from conformance.results import Run, judge_rules
from conformance.runner import stamp
from conformance.runtimes.environment import Given, Template, TemplateError
from conformance.runtimes.judged import judged, unseen
from conformance.runtimes.playing import Attached, Command, Pace, Played, PortTaken, play
from conformance.runtimes.ports import free_port
from conformance.runtimes.process import CannotStart
from conformance.systems import RUNTIME_API, RUNTIME_CLIENT
from contract_tests.runtime.recorded import RecordingError, parse
from contract_tests.runtime.stage import Scenario, Timing, all_scenarios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openapi import Requirement

_START, _PATIENT = 30.0, 3600.0
REPORTS = {"json": to_json, "har": to_har}


@click.command("runtime", short_help="A real Runtime, as a client: started once a scenario, judged by what it sends.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--env",
    "templates",
    multiple=True,
    metavar="NAME=TEMPLATE",
    help="One more variable of the Runtime, of {base_url}, {token}, {instance_id}, {health_port}, ... (repeatable).",
)
@click.option(
    "--scenario", "globs", multiple=True, metavar="GLOB", help="Only scenarios whose id matches (repeatable)."
)
@click.option("--list", "listing", is_flag=True, help="Show the scenarios, and end.")
@click.option(
    "--start-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Seconds within which a Runtime has to poll once it is started [default: 30; with --attach an hour].",
)
@click.option("--attach", is_flag=True, help="Judge a Runtime that you start by hand: shows the environment to use.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="With --attach: where its API stands [picked].")
@click.option(
    "--recording", type=click.Path(path_type=Path), metavar="FILE.har", help="Judge what was recorded; starts nothing."
)
@common_options(RUNTIME_CLIENT)
@config_option("check.runtime")
def runtime(
    command: tuple[str, ...],
    templates: tuple[str, ...],
    globs: tuple[str, ...],
    listing: bool,
    start_limit: float | None,
    attach: bool,
    port: int,
    recording: Path | None,
    **options: Any,
) -> None:
    """Judge a real Runtime as a client.

    It is started once for each scenario, against a mock of its own, and everything that it sends is watched:
    contract check runtime -- ./my-runtime --its-options
    """
    rules = selected(options, [RUNTIME_API])
    options["reports"] = reports(options["reports"], REPORTS)
    timing = timing_of(options["timing"])
    chosen = _chosen(globs, rules, options)
    if listing:
        _list(chosen)
    given = [
        name for name, there in (("a command", command), ("--attach", attach), ("--recording", recording)) if there
    ]
    if len(given) != 1:
        both = f"{' and '.join(given)} together" if given else "neither a command nor --attach nor --recording"
        raise click.UsageError(f"{both}: write `contract check runtime -- COMMAND ...`, or one of the two options")
    _no_lost_options(attach=attach, recording=recording, globs=globs, port=port, templates=templates, **options)
    if not any(rule.bound in ("client", "both") for rule in rules):
        raise click.UsageError("none of these rules binds Runtimes; `contract requirements` says whom each one binds")
    if timing.heartbeat >= timing.lock:
        raise click.UsageError(
            f"--timing: heartbeats {timing.heartbeat:g} s apart can't keep a lock of {timing.lock:g} s; take less"
        )
    if recording is not None:
        _judge_recording(recording, rules, options)
    if command and not command[0].strip():
        raise click.UsageError("the command is empty; write `contract check runtime -- ./my-runtime`")
    try:
        filled = [Template.parse(template) for template in templates]
    except TemplateError as error:
        raise click.UsageError(f"--env {error}") from None
    pace = Pace(at_once=options["workers"], start=start_limit or (_PATIENT if attach else _START))
    target: Attached | Command = Command(command, filled)
    if attach:
        target = Attached(port or free_port(), secrets.token_hex(16), "runtime-by-hand", free_port())
        chosen = _by_hand(chosen)
        _show_environment(target, timing)
    again = [word for template in templates for word in ("--env", template)]
    _Session(rules, chosen, timing, pace, options, again).judge(target)


def timing_of(text: str | None) -> Timing:
    """What ``--timing`` says; what it leaves out follows from the lock's length. Raises ``click.UsageError``."""
    told: Any = timings(RUNTIME_CLIENT, text)
    lock = told.get("lock", Timing().lock)
    own = {"heartbeat": lock / 4, "timeout": lock * 2, **told}
    return Timing(**own)


def _chosen(globs: Sequence[str], rules: Sequence[Requirement], options: Mapping[str, Any]) -> list[Scenario]:
    """The scenarios to play: those that the globs name; without globs those that are for the rules asked for."""
    known = all_scenarios()
    for glob in globs:
        if not any(fnmatchcase(id_, glob) for id_ in known):
            raise click.UsageError(f"--scenario {glob} matches none; `contract check runtime --list` shows them")
    if globs:
        return [scenario for id_, scenario in known.items() if any(fnmatchcase(id_, glob) for glob in globs)]
    if not (options["only"] or options["skip"]):
        return list(known.values())
    asked = {rule.id for rule in rules}
    fitting = [scenario for scenario in known.values() if asked.intersection(scenario.rules)]
    return fitting or list(known.values())


def _by_hand(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Those that a Runtime started by hand can play. Raises ``click.UsageError`` where none is left."""
    found = [scenario for scenario in scenarios if scenario.by_hand]
    left = [scenario.id for scenario in scenarios if not scenario.by_hand]
    if not found:
        raise click.UsageError(f"--attach: {', '.join(left)} need a Runtime that is started and ended for them")
    if left:
        click.echo(f"Left out, since they need a Runtime that is started and ended for them: {', '.join(left)}.")
    return found


def _no_lost_options(**given: Any) -> None:
    """Options that would have no effect are refused."""
    if given["recording"] is not None:
        for name in ("globs", "timing", "templates", "workers", "time_limit"):
            if given[name]:
                shown = {"globs": "scenario", "templates": "env"}.get(name, name.replace("_", "-"))
                raise click.UsageError(f"--{shown} has no effect on --recording; leave it out")
    if given["port"] and not given["attach"]:
        raise click.UsageError("--port is for --attach; a Runtime that is started gets its address by API_BASE_URL")
    if given["templates"] and given["attach"]:
        raise click.UsageError("--env is for a Runtime that is started; with --attach you start it yourself")


def _list(scenarios: Sequence[Scenario]) -> NoReturn:
    width = max(len(scenario.id) for scenario in scenarios)
    for scenario in scenarios:
        click.echo(f"{scenario.id:<{width}}  {scenario.title}{'' if scenario.by_hand else ' (not with --attach)'}")
    sys.exit(0)


def _show_environment(target: Attached, timing: Timing) -> None:
    given = Given(
        f"http://127.0.0.1:{target.port}",
        target.token,
        target.instance_id,
        target.health_port,
        round(timing.poll_interval * 1000),
        round(timing.heartbeat * 1000),
        round(timing.timeout * 1000 / 3),
    )
    click.echo("Start the Runtime with this environment, once, and without a model key of its own:")
    for name, value in given.variables().items():
        click.echo(f"  export {name}={value}")
    click.echo("Waiting for its first poll.")


def _judge_recording(path: Path, rules: list[Requirement], options: dict[str, Any]) -> NoReturn:
    began = time.time()
    try:
        log = parse(path.read_text(encoding="utf-8"))
        checks = judged(log, [rule.id for rule in rules])
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise click.UsageError(f"--recording {path} can't be read: {reason}") from None
    except RecordingError as error:
        raise click.UsageError(f"--recording {path}: {error}") from None
    target = {"kind": "runtime", "recording": path.name}
    results = judge_rules(rules, checks, "client", unseen=unseen())
    problems = list(dict.fromkeys(check.message or "" for check in checks if check.set_up_failed))
    seconds = round(time.time() - began, 3)
    run = Run(target, options["level"], options["seed"], stamp(began), seconds, results, problems, log=log)
    tell(run, RUNTIME_API.redactor({}), options["reports"], REPORTS)


class _Session:
    """One run: what is played, what came of it, and the verdict."""

    def __init__(
        self,
        rules: list[Requirement],
        scenarios: Sequence[Scenario],
        timing: Timing,
        pace: Pace,
        options: dict[str, Any],
        again: Sequence[str] = (),
    ) -> None:
        """``again``: options that a command needs that shows a failure again."""
        self.rules, self.scenarios, self.timing, self.pace, self.options = rules, scenarios, timing, pace, options
        self._options_again = again
        self._attached = False
        self.played: list[Played] = []
        self.problems: list[str] = []
        self._stop_at = set(stop_at(rules, options))
        self._stopped = asyncio.Event()

    def judge(self, target: Attached | Command) -> NoReturn:
        """Play, judge, tell; ends the process with the verdict's exit status."""
        began = time.time()
        self._attached = isinstance(target, Attached)
        with interruptible():
            try:
                asyncio.run(self._play(target))
            except (CannotStart, PortTaken) as error:
                raise click.UsageError(str(error)) from None
            except ReferenceFailed as error:
                raise Inconclusive(f"the mock does not run: {error}") from None
        if sys.stderr.isatty():
            click.echo("\r\033[K", nl=False, err=True)
        if self.played and not any(played.polled for played in self.played):
            raise Inconclusive(_never_polled(self.played))
        words = target.words if isinstance(target, Command) else ()
        log = _joined(self.played)
        said = {played.scenario: played.said for played in self.played}
        checks = judged(log, [rule.id for rule in self.rules], words, self._again(), said)
        results = judge_rules(self.rules, checks, "client", unseen=unseen())
        problems = [*self.problems, *(problem for played in self.played for problem in _problems(played))]
        problems += [check.message or "" for check in checks if check.set_up_failed]
        shown = {"kind": "runtime", **({"command": " ".join(words)} if words else {"attached": True})}
        seconds = round(time.time() - began, 3)
        options = self.options
        problems = list(dict.fromkeys(problems))
        run = Run(shown, options["level"], options["seed"], stamp(began), seconds, results, problems, log=log)
        tell(run, RUNTIME_API.redactor({}), options["reports"], REPORTS)

    async def _play(self, target: Attached | Command) -> None:
        task = asyncio.ensure_future(play(self.scenarios, target, self.timing, self.pace, self._over))
        stopped = asyncio.ensure_future(self._stopped.wait())
        limit = self.options["time_limit"]
        try:
            await asyncio.wait([task, stopped], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            elif not self._stopped.is_set():
                self.problems.append(f"the time limit of {limit:g} s came before the end")
        finally:
            for waiting in (task, stopped):
                waiting.cancel()
            await asyncio.gather(task, stopped, return_exceptions=True)

    def _over(self, played: Played) -> None:
        """A scenario is over."""
        self.played.append(played)
        if self._attached:
            click.echo(f"{len(self.played)} of {len(self.scenarios)}: {played.scenario}", err=True)
        elif sys.stderr.isatty():
            progress(len(self.played), len(self.scenarios))
        if self._stop_at and any(check.status == "failed" for check in judged(played.log, self._stop_at)):
            self._stopped.set()

    def _again(self) -> list[str]:
        timing = self.options["timing"]
        return [*(["--timing", timing] if timing else []), *self._options_again]


def _never_polled(played: Sequence[Played]) -> str:
    first = next((item for item in played if item.problems), played[0])
    said = f"\nThe last of what it said:\n{first.said.strip()}" if first.said.strip() else ""
    why = "; ".join(first.problems) or "the Runtime never polled"
    return f"{why} ({first.scenario}); does it read API_BASE_URL, or does --env name its variable?{said}"


def _problems(played: Played) -> list[str]:
    return [f"{played.scenario}: {problem}" for problem in played.problems]


def _joined(played: Sequence[Played]) -> dict[str, Any]:
    """One recording of all scenarios, in the order of their ids."""
    joined: dict[str, Any] = {"version": "1.2", "creator": {}, "entries": [], "_scenarios": {}}
    for item in sorted(played, key=lambda item: item.scenario):
        joined["creator"] = item.log.get("creator") or joined["creator"]
        joined["entries"] += item.log["entries"]
        joined["_scenarios"] |= item.log["_scenarios"]
    return joined
