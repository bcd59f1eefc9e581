"""``contract mutants``: the seeded faults."""

from __future__ import annotations

import click

from mock_server.mutants import registry


@click.group(short_help="The seeded faults that the suites must find.")
def mutants() -> None:
    """The seeded faults of the reference: builds that are wrong in one named way."""


@mutants.command("list")
def list_mutants() -> None:
    """Every seeded fault: its id, what is wrong, and the rules of which one is expected to fail."""
    for mutant in registry().values():
        click.echo(f"{mutant.id:<34} {', '.join(mutant.rules):<36} {mutant.title}")
