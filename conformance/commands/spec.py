"""``contract spec``: whether a specification is sound, and one self-contained file of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import yaml

import openapi
from openapi.bundling import bundle
from openapi.contract import NAMES, SPECS
from openapi.documents import Document
from openapi.lint import lint as problems_of


@click.group(short_help="Lint and bundle specifications.")
def spec() -> None:
    """Work on the specifications themselves."""


@spec.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
def lint(files: tuple[Path, ...]) -> None:
    """Whether specifications are sound (default: the packaged ones). Exit 1 when one is not."""
    found = [problem for path in files or [SPECS / f"{name}.yaml" for name in NAMES] for problem in problems_of(path)]
    for problem in found:
        click.echo(str(problem))
    click.echo(f"{len(found)} problem(s)", err=True)
    sys.exit(1 if found else 0)


@spec.command("bundle")
@click.argument("name", default="runtime-api")
def bundle_(name: str) -> None:
    """One self-contained file of a specification, on standard output. NAME is a packaged one or a file."""
    path = SPECS / f"{name}.yaml" if name in NAMES else Path(name)
    try:
        document = bundle(Document.read(path))
    except openapi.SpecError as error:
        raise click.UsageError(str(error)) from None
    click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120), nl=False)
