"""What the suites hold, read from their source without running them."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.systems import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.systems import System


RUNTIME = "runtime:"
"""What the ids of monitors, and of the example Runtime's faults, begin with where they stand beside the servers'."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A check that a suite holds; ``fuzz`` ones generate their requests."""

    id: str
    fuzz: bool


def checks_by_rule(systems: Iterable[System] = SYSTEMS) -> dict[str, list[Listed]]:
    """The checks of each rule in the suites of these systems."""
    found: dict[str, list[Listed]] = {}
    for system in systems:
        for id_, checks in _listed(system).items():
            found.setdefault(id_, []).extend(checks)
    return found


@functools.cache
def _listed(system: System) -> dict[str, list[Listed]]:
    found: dict[str, list[Listed]] = {}
    for path in sorted(system.folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                fuzz = any(isinstance(mark, ast.Name) and mark.id == "fuzz" for mark in node.decorator_list)
                check = Listed(system.check_id(path, node.name), fuzz)
                for id_ in _ids(node):
                    found.setdefault(id_, []).append(check)
    return found


def monitors_by_rule() -> dict[str, str]:
    """The monitor of each rule that is judged by what a Runtime sends."""
    from contract_tests.runtime.monitors import monitors

    return {rule: f"{RUNTIME}{monitor.name}" for rule, monitor in monitors().items()}


def runtime_faults() -> dict[str, dict[str, Any]]:
    """Every fault of the example Runtime, as its ``listed()`` gives it, by its id."""
    from conformance.examples.python_runtime.faults import listed

    return {f"{RUNTIME}{fault['name']}": fault for fault in listed()}


def runtime_faults_by_rule() -> dict[str, list[str]]:
    """The faults of the example Runtime that name each rule."""
    found: dict[str, list[str]] = {}
    for id_, fault in runtime_faults().items():
        for rule in fault["rules"]:
            found.setdefault(rule, []).append(id_)
    return found


def _ids(node: ast.AsyncFunctionDef) -> list[str]:
    texts = [
        item.value
        for decorator in node.decorator_list
        for item in ast.walk(decorator)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    ]
    return list(dict.fromkeys(text for text in texts if text.startswith(("RT-", "HUB-"))))
