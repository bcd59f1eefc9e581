"""The ``contract`` command."""

from __future__ import annotations

import importlib
import io
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG = "contract.toml"
_COMMANDS = {
    "serve": "mock_server.serve:serve_command",
    "check": "conformance.commands.check:check",
    "requirements": "conformance.commands.requirements:requirements",
    "load": "conformance.commands.load:load",
    "mutants": "conformance.commands.mutants:mutants",
    "spec": "conformance.commands.spec:spec",
}


def _loaded(name: str) -> click.Command:
    module, _, attribute = _COMMANDS[name].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


class Contract(click.Group):
    """Loads a subcommand when it is called, so that ``serve`` starts without what only ``check`` needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A subcommand by name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        return _loaded(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A subcommand by name; an unknown one is answered with the nearest."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No command is named `{args[0]}`; {nearest(args[0], _COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Contract, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="runtime-contract", prog_name="contract")
@click.option(
    "--config", type=click.Path(path_type=Path), help=f"Options by command; default {CONFIG} where it is there."
)
@click.pass_context
def contract(context: click.Context, config: Path | None) -> None:
    """The executable contract of the Runtime API and the Agent Hub: serve it, judge builds by it, read its rules.

    Exit status: 0 conformant, 1 not conformant, 2 wrong usage or configuration, 3 inconclusive.
    """
    context.default_map = read_config(config)


def config_option(section: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--config`` on a subcommand itself; ``section`` is where its options stand in the file, dots between."""

    def apply(context: click.Context, _: click.Parameter, path: Path | None) -> None:
        if path is not None:
            found = read_config(path)
            for name in section.split("."):
                found = found.get(name, {})
            context.default_map = found

    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=apply,
        help=f"Options by command; default {CONFIG} where it is there.",
    )


def read_config(path: Path | None) -> dict[str, Any]:
    """Options from ``contract.toml``: one section a command, keys are option names. Raises ``click.UsageError``."""
    chosen = path or Path(CONFIG)
    if path is None and not chosen.is_file():
        return {}
    try:
        sections = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{chosen} can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{chosen} is no TOML: {error}") from None
    found: dict[str, Any] = {}
    for name, section in sections.items():
        if name not in _COMMANDS or not isinstance(section, dict):
            mend = nearest(name, _COMMANDS, f"sections are {', '.join(_COMMANDS)}", shown="`[{}]`")
            raise click.UsageError(f"{chosen}: `{name}` is no section; {mend}")
        command = _loaded(name)
        found[name] = _options(chosen, command, section, f"[{name}]")
        if isinstance(command, click.Group):
            for nested in command.commands:  # what all kinds of a command share is written once
                common = {key: value for key, value in found[name].items() if key not in command.commands}
                found[name][nested] = {**common, **found[name].get(nested, {})}
    return found


def _options(path: Path, command: click.Command, section: dict[str, Any], place: str) -> dict[str, Any]:
    by_name = {
        option.removeprefix("--"): parameter
        for parameter in command.params
        for option in getattr(parameter, "opts", ())
        if isinstance(parameter, click.Option)
    }
    nested = command.commands if isinstance(command, click.Group) else {}
    found: dict[str, Any] = {}
    for key, value in section.items():
        if key in nested and isinstance(value, dict):
            found[key] = _options(path, nested[key], value, f"{place[:-1]}.{key}]")
        elif key in by_name:
            found[str(by_name[key].name)] = _taken(path, f"{place} {key}", by_name[key], value)
        else:
            mend = nearest(key, [*by_name, *nested], f"there are {', '.join(by_name)}")
            raise click.UsageError(f"{path}: {place} has no option `{key}`; {mend}")
    return found


def _taken(path: Path, place: str, parameter: click.Option, value: Any) -> Any:
    """A value of the file as its option takes it. Raises ``click.UsageError`` for one of another kind."""
    if parameter.is_flag and not isinstance(value, bool):
        raise click.UsageError(f"{path}: {place} is a switch; write true or false")
    if parameter.multiple:
        return value if isinstance(value, list) else [value]
    if isinstance(value, list | dict):
        raise click.UsageError(f"{path}: {place} takes one value, a text or a number")
    return value


def main() -> None:
    """Run the command; a fault of ours is told in one line, with the place, and is exit 3."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that knows no Chinese shows a question mark
    try:
        contract(prog_name="contract")
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        click.echo(f"contract: a fault of this tool: {type(error).__name__} at {place}. Please report it.", err=True)
        sys.exit(3)
