"""What ``contract check`` takes: its common options, and what is wrong with a value, told before anything runs."""

from __future__ import annotations

import base64
import math
import os
import re
from dataclasses import fields
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from conformance.drivers.http import CONTROL_VARIABLE
from conformance.judging import FUZZ_EXAMPLES
from conformance.report.json_report import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.systems import Client, System
    from openapi import Requirement

REPORTS = {"json": to_json}
TIMING_KEYS = ("lock", "heartbeat", "timeout", "sweep", "backoff", "idempotency", "ping", "node-lost", "poll-interval")
"""What ``--timing`` can say of some system."""
_HOST = re.compile(r"(?!-)[A-Za-z0-9._-]{1,253}")


def common_options(system: System | Client | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of every kind of check; without a ``system`` of the self-check."""

    def apply(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(_common(system)):
            command = option(command)
        return command

    return apply


def states_options(without: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of a build's provider states; ``without`` says what becomes of a run that is given none."""
    states = click.option(
        "--provider-states", metavar="URL", help=f"Its provider-state endpoint; without it {without}."
    )
    token = click.option(
        "--control-token",
        envvar=CONTROL_VARIABLE,
        help=f"Bearer token that its provider-state endpoint asks for [{CONTROL_VARIABLE}].",
    )
    return lambda command: states(token(command))


class _TimingOption(click.Option):
    """Names the keys of a system in its help, for which it has to look into the suite."""

    def __init__(self, *args: Any, system: System | Client | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._system = system

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """What the help says."""
        if self._system is not None:
            self.help = f"The build's own timing, seconds: {', '.join(_kinds(self._system))}."
        return super().get_help_record(ctx)


def _common(system: System | Client | None) -> list[Callable[..., Any]]:
    client = system is not None and system.name == "runtime"
    formats = "json, har" if client else "json"
    workers = (
        "Runtimes at once [default: 16, at long locks 32]." if client else "Children [default: 2, a real build 1]."
    )
    generating = [] if client else _generating()
    return [
        click.option("--only", multiple=True, metavar="GLOB", help="Only rules whose id matches (repeatable)."),
        click.option("--skip", multiple=True, metavar="GLOB", help="No rules whose id matches (repeatable)."),
        click.option("--level", type=click.Choice(["seed", "full"]), default="full", show_default=True),
        click.option(
            "--timing",
            cls=_TimingOption,
            system=system,
            metavar="K=V,...|FILE",
            help="The build's own timing, seconds; of a real build alone.",
        ),
        click.option(
            "--report", "reports", multiple=True, metavar="FORMAT=PATH", help=f"Write a report: {formats} (repeatable)."
        ),
        click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same requests."),
        click.option("--workers", type=click.IntRange(1, 64 if client else 8), help=workers),
        click.option(
            "--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds for it all."
        ),
        click.option("--fail-fast", is_flag=True, help="Stop at the first failed check."),
        *generating,
    ]


def _generating() -> list[Callable[..., Any]]:
    """Options of checks that generate their requests."""
    return [
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


def selected(options: dict[str, Any], systems: Sequence[System]) -> list[Requirement]:
    """The rules of these systems that are asked for, system by system.

    Raises ``click.UsageError`` where a filter matches no rule of any, or none is left.
    """
    for name in ("only", "skip"):
        for glob in options[name]:
            if not any(system.contract.register.select([glob]) for system in systems):
                names = " or ".join(system.name for system in systems)
                raise click.UsageError(
                    f"--{name} {glob} matches no rule of {names}; `contract requirements` lists the ids"
                )
    rules = [rule for system in systems for rule in system.contract.register.select(options["only"], options["skip"])]
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


def host(option: str, text: str) -> str:
    """A host name or an address, without brackets. Raises ``click.UsageError``."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ip_address(bare))
    except ValueError:
        pass
    if not _HOST.fullmatch(text):
        raise click.UsageError(f"{option}: `{text}` is no host name or address; leave scheme and port out")
    return text


def signing_secret(option: str, text: str | None) -> str | None:
    """A secret by which webhooks can be signed. Raises ``click.UsageError``, without the secret."""
    if text == "":
        raise click.UsageError(f"{option} is empty; give the secret, or leave the option out")
    head, prefix, encoded = (text or "").partition("whsec_")
    if prefix and not head:
        try:
            base64.b64decode(encoded, validate=True)
        except ValueError:
            raise click.UsageError(f"{option}: what stands behind {prefix} is no base64") from None
    return text


def timings(system: System | Client, text: str | None) -> dict[str, float | list[float]]:
    """``lock=3,timeout=6`` as numbers by the names of the system's timing, ``backoff=3/4/5`` as a list.

    A text without ``=`` names a file with a ``key = value`` a line, in which keys of other systems may stand, too.
    Raises ``click.UsageError``.
    """
    kinds = _kinds(system)
    found: dict[str, float | list[float]] = {}
    items = _timing_file(Path(text)) if text and "=" not in text else (text or "").split(",")
    for item in filter(None, (part.strip() for part in items)):
        name, _, value = (part.strip() for part in item.partition("="))
        if name not in kinds and name in TIMING_KEYS and "=" not in (text or ""):
            continue
        if name not in kinds:
            raise click.UsageError(f"--timing {item}: write one of {', '.join(kinds)} and seconds above 0")
        many = kinds[name]
        seconds = [_seconds(item, part) for part in (value.split("/") if many else [value])]
        if len(seconds) != (many or 1):
            raise click.UsageError(f"--timing {item}: write {many} numbers with `/` between them")
        field = name.replace("-", "_")
        if field in found:
            raise click.UsageError(f"--timing {item}: {name} is there twice")
        found[field] = seconds if many else seconds[0]
    return found


def _timing_file(path: Path) -> list[str]:
    """The items of a file, a line each, without comments."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise click.UsageError(f"--timing {path}: {reason}; write key=seconds,... or name a file") from None
    return [line.partition("#")[0].strip() for line in lines]


def _seconds(item: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise click.UsageError(f"--timing {item}: `{text}` is no number of seconds") from None
    if not 0 < seconds < math.inf:
        raise click.UsageError(f"--timing {item}: seconds are above 0")
    return seconds


def _kinds(system: System | Client) -> Mapping[str, int]:
    """The keys of a system's timing, each with how many numbers it takes where that is a list, otherwise 0."""
    return {
        item.name.replace("_", "-"): len(item.default) if isinstance(item.default, tuple) else 0
        for item in fields(system.timing_class)
    }
