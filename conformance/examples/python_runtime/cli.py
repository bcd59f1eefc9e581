"""The command."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING

from conformance.examples.python_runtime.config import BadEnvironment, Config, read
from conformance.examples.python_runtime.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal says to stop; 0 then, 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python_runtime", description="A Runtime, configured by the environment.")
    parser.add_argument("--fault", default=os.environ.get("RUNTIME_FAULT", ""), help="break the rules that it names")
    parser.add_argument("--variant", default=os.environ.get("RUNTIME_VARIANT", ""), help="be right in another way")
    parser.add_argument("--list-faults", action="store_true", help="print the faults as JSON and end")
    parser.add_argument("--list-variants", action="store_true", help="print the variants as JSON and end")
    given = parser.parse_args(arguments)
    if given.list_faults or given.list_variants:
        return _list(given.list_faults)
    try:
        made = _choose(given.fault, given.variant)
        config = read(os.environ)
    except (BadEnvironment, KeyError) as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 2
    asyncio.run(_run(made, config))
    return 0


async def _run(made: type[Runtime], config: Config) -> None:
    await made(config).main()


def _choose(fault: str, variant: str) -> type[Runtime]:
    """The Runtime asked for; faults are read only where one is. Raises :class:`KeyError` for an unknown name."""
    if fault and variant:
        raise KeyError("a fault and a variant at once: choose one")
    if fault:
        from conformance.examples.python_runtime.faults import FAULTS

        return _named("fault", fault, FAULTS)
    if variant:
        from conformance.examples.python_runtime.variants import VARIANTS

        return _named("variant", variant, VARIANTS)
    return Runtime


def _named(kind: str, name: str, known: Mapping[str, type[Runtime]]) -> type[Runtime]:
    if name not in known:
        raise KeyError(f"there is no {kind} {name!r}; --list-{kind}s names them")
    return known[name]


def _list(faults: bool) -> int:
    if faults:
        from conformance.examples.python_runtime.faults import listed
    else:
        from conformance.examples.python_runtime.variants import listed
    sys.stdout.write(json.dumps(listed(), indent=2) + "\n")
    return 0
