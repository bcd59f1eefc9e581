"""What ``contract check`` takes: its common options, and what is wrong with a value, told before anything runs."""

from __future__ import annotations

import math
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

import openapi
from conformance.judging import FUZZ_EXAMPLES
from conformance.report.json_report import to_json
from contract_tests.given import Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from openapi import Requirement

SUITE = "runtime_api"
REPORTS = {"json": to_json}
_TIMINGS = tuple(field.name for field in fields(Timing))


def common_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every kind of check."""
    for option in reversed(
        [
            click.option("--only", multiple=True, metavar="GLOB", help="Only rules whose id matches (repeatable)."),
            click.option("--skip", multiple=True, metavar="GLOB", help="No rules whose id matches (repeatable)."),
            click.option("--level", type=click.Choice(["seed", "full"]), default="full", show_default=True),
            click.option(
                "--timing", metavar="K=V,...", help=f"The build's own timing, seconds: {', '.join(_TIMINGS)}."
            ),
            click.option(
                "--report", "reports", multiple=True, metavar="FORMAT=PATH", help="Write a report: json (repeatable)."
            ),
            click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same requests."),
            click.option("--workers", type=click.IntRange(1, 8), help="Child processes [default: 2, a real build 1]."),
            click.option(
                "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds for it all."
            ),
            click.option("--fail-fast", is_flag=True, help="Stop at the first failed check."),
            click.option(
                "--fuzz-examples",
                type=click.IntRange(0, 100_000),
                default=FUZZ_EXAMPLES,
                show_default=True,
                metavar="N",
                help="Random requests of each operation, valid and invalid ones, beyond the boundaries of its schemas.",
            ),
            click.option("--no-fuzz", is_flag=True, help="Leave out checks that generate their requests."),
        ]
    ):
        command = option(command)
    return command


def selected(options: dict[str, Any]) -> list[Requirement]:
    """The rules that are asked for. Raises ``click.UsageError`` where a filter matches none, or none is left."""
    register = openapi.load("runtime-api").register
    for name in ("only", "skip"):
        for glob in options[name]:
            if not register.select([glob]):
                raise click.UsageError(f"--{name} {glob} matches no rule; `contract requirements` lists the ids")
    rules = register.select(options["only"], options["skip"])
    if not rules:
        raise click.UsageError("--only and --skip together leave no rule; `contract requirements` lists the ids")
    return rules


def wanted(rules: list[Requirement], options: dict[str, Any]) -> list[str] | None:
    """Ids of the rules to be checked; None for all. At level ``seed`` decisions are checked and reported, too."""
    return [rule.id for rule in rules] if options["only"] or options["skip"] else None


def stop_at(rules: list[Requirement], options: dict[str, Any]) -> list[str]:
    """Ids of the rules whose failure ends the run."""
    if not options["fail_fast"]:
        return []
    return [rule.id for rule in rules if not rule.superseded and options["level"] in ("full", rule.level)]


def reports(given: Iterable[str], formats: Iterable[str] = REPORTS) -> list[tuple[str, Path]]:
    """Formats and paths of ``--report``. Raises ``click.UsageError`` for one that could not be written."""
    found = []
    for report in given:
        format_, _, name = report.partition("=")
        path = Path(name)
        if format_ not in formats or not name:
            mend = " or ".join(f"{known}=PATH" for known in formats)
            raise click.UsageError(f"--report {report}: the format is one of {', '.join(formats)}; write {mend}")
        if not path.absolute().parent.is_dir():
            raise click.UsageError(f"--report {report}: the folder {path.parent} does not exist")
        if path.is_dir():
            raise click.UsageError(f"--report {report}: {path} is a folder; name a file in it")
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise click.UsageError(f"--report {report}: {path} can't be written")
        found.append((format_, path))
    return found


def url(option: str, text: str) -> str:
    """An http(s) URL without a slash at its end. Raises ``click.UsageError``."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or any(char.isspace() for char in text):
        raise click.UsageError(f"{option}: `{text}` is no URL; write http://host:port")
    if parts.username is not None:
        raise click.UsageError(f"{option}: a user name or password in the URL would show in reports; leave it out")
    if parts.query or parts.fragment:
        raise click.UsageError(f"{option}: `{text}` has a query or fragment; end it with the path")
    return text.rstrip("/")


def key(option: str, text: str) -> str:
    """A token that a header can carry. Raises ``click.UsageError``, without the token."""
    if not text:
        raise click.UsageError(f"{option} is empty; give the token that the build expects")
    if text != text.strip() or not all(32 <= ord(char) < 127 for char in text):
        raise click.UsageError(f"{option} holds a character that no header can carry (ASCII, no blanks at its ends)")
    return text


def timings(text: str | None) -> dict[str, float]:
    """``lock=3,timeout=6`` as numbers. Raises ``click.UsageError``."""
    found: dict[str, float] = {}
    for item in filter(None, (part.strip() for part in (text or "").split(","))):
        name, _, value = (part.strip() for part in item.partition("="))
        try:
            seconds = float(value)
        except ValueError:
            raise click.UsageError(f"--timing {item}: `{value}` is no number of seconds") from None
        if name not in _TIMINGS or not 0 < seconds < math.inf:
            raise click.UsageError(f"--timing {item}: write one of {', '.join(_TIMINGS)} and seconds above 0")
        if name in found:
            raise click.UsageError(f"--timing {item}: {name} is there twice")
        found[name] = seconds
    return found
