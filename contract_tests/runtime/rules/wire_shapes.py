"""The form of requests, as the protocol's examples have it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from contract_tests.runtime.monitors import Finding, broken, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contract_tests.runtime.calls import Call
    from contract_tests.runtime.history import History

ABSENT = object()
"""In the place of a property that is not there."""


def is_string(value: Any) -> bool:
    """A string; an empty one tells nothing."""
    return isinstance(value, str) and value != ""


def is_count(value: Any) -> bool:
    """An integer (``1.0`` is one), not below 0."""
    return is_number(value) and float(value).is_integer()


def is_number(value: Any) -> bool:
    """A number, not below 0."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def shown(value: Any) -> str:
    """A value for a sentence."""
    return "nothing" if value is ABSENT else json.dumps(value, ensure_ascii=False)[:80]


def carries(
    calls: Iterable[Call], name: str, right: Callable[[Any], bool], expected: str, *, required: bool = True
) -> Iterator[Finding]:
    """Each request by one property of its body. What is not ``required`` may be missing."""
    for call in calls:
        if call.cut:
            continue
        value = call.body.get(name, ABSENT) if isinstance(call.body, dict) else ABSENT
        if value is ABSENT and not required:
            continue
        if value is not ABSENT and right(value):
            yield kept(call)
        else:
            yield broken(call, f"{name}: {expected}", f"{name}: {shown(value)} in {call.name}")


def endpoint(history: History, operation: str, word: str, expected: str) -> Iterator[Finding]:
    """Calls of an operation, and requests that were meant for it: under the API's path, with its word elsewhere."""
    meant = re.compile(rf"/internal/runtime/(.*/)?{word}s?(/.*)?", re.IGNORECASE)
    for call in history.calls:
        if call.operation == operation:
            yield kept(call)
        elif call.operation is None and meant.fullmatch(call.path):
            yield broken(call, expected, f"{call.method} {call.path[:120]}")
