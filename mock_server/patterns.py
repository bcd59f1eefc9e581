"""What a call looks like: patterns over journal entries, and in what an entry differs from one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from mock_server.journal import FIELDS, MAX_BODY, Entry, headers
from openapi.documents import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORDS = ("operationId", "jobId", "caller", "errorCode", "verdict", "jobStatus", "method", "path")
"""Fields of an entry that a pattern compares with a text, or with each of a list of texts."""
HEADERS = {"requestHeaders": "request_headers", "responseHeaders": "response_headers"}
BODIES = {"requestBody": ("request_body", "request_bytes"), "responseBody": ("response_body", "response_bytes")}
_LONGEST = 200
_LOOKED_AT = 2000
"""Latest entries among which the nearest are looked for: to tell all differences takes time."""


class _Absent:
    """Stands for what is not there; null is something."""


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which an entry is not as a pattern has it; ``at`` is a JSON Pointer into the entry."""

    at: str
    expected: Any
    actual: Any
    undecided: bool = False
    """The journal holds a part of the body only: it can't be told."""

    def document(self) -> dict[str, Any]:
        """As the control plane shows it; ``actual`` is left out where there is nothing."""
        shown = {"at": self.at, "expected": short(self.expected)}
        return shown if self.actual is ABSENT else {**shown, "actual": short(self.actual)}

    def __str__(self) -> str:
        if self.undecided:
            return f"{self.at} is cut in the journal, so it can't be told whether it is {text(self.expected)}"
        if self.actual is ABSENT:
            return f"{self.at} is missing, expected {text(self.expected)}"
        return f"{self.at} is {text(self.actual)}, expected {text(self.expected)}"


class Pattern:
    """A partial call: an entry matches it when it is so in every field that the pattern has."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        """``wanted`` is a ``Pattern`` of the control plane's specification, already judged by it."""
        self.wanted = wanted
        self._words = [(name, FIELDS.index(name), _choices(wanted[name])) for name in WORDS if name in wanted]
        self._statuses = _choices(wanted["status"]) if "status" in wanted else None
        self._headers = [(name, HEADERS[name], wanted[name]) for name in HEADERS if name in wanted]
        self._bodies = [(name, *BODIES[name], wanted[name]) for name in BODIES if name in wanted]

    def matches(self, entry: Entry) -> bool:
        """Whether the entry is such a call; False where that can't be told."""
        # The cheap fields first: a journal has ten thousand entries.
        for _, place, choices in self._words:
            if entry[place] not in choices:
                return False
        if self._statuses is not None and not _has_status(entry.status, self._statuses):
            return False
        return not (self._headers or self._bodies) or not self.differences(entry)

    def undecided(self, entry: Entry) -> bool:
        """Whether it can't be told if the entry is such a call: its body is cut in the journal."""
        if not any(getattr(entry, size) > MAX_BODY for _, _, size, _ in self._bodies):
            return False
        found = self.differences(entry)
        return bool(found) and all(difference.undecided for difference in found)

    def differences(self, entry: Entry) -> list[Difference]:
        """In what the entry differs, field by field; empty where it matches."""
        found = [
            Difference(f"/{name}", self.wanted[name], ABSENT if entry[place] is None else entry[place])
            for name, place, choices in self._words
            if entry[place] not in choices
        ]
        if self._statuses is not None and not _has_status(entry.status, self._statuses):
            found.append(Difference("/status", self.wanted["status"], entry.status))
        for name, attribute, wanted in self._headers:
            found += _header_differences(name, headers(getattr(entry, attribute)), wanted)
        for name, attribute, size, wanted in self._bodies:
            if getattr(entry, size) > MAX_BODY:
                found.append(Difference(f"/{name}", wanted, ABSENT, undecided=True))
            else:
                found += contained(wanted, _parsed(getattr(entry, attribute)), f"/{name}")
        return found

    @property
    def looks_into_bodies(self) -> bool:
        """Whether it may be undecided."""
        return bool(self._bodies)

    @property
    def fields(self) -> int:
        """How many single things the pattern asks for."""
        return sum(_leaves(self.wanted[name]) if name in BODIES or name in HEADERS else 1 for name in self.wanted)

    def __str__(self) -> str:
        wanted = self.wanted
        said = " or ".join(_listed(wanted["operationId"])) if "operationId" in wanted else "calls"
        for name, form in (("jobId", "of {}"), ("caller", "by {}"), ("status", "answered {}")):
            if name in wanted:
                said += " " + form.format(" or ".join(map(str, _listed(wanted[name]))))
        known = ("operationId", "jobId", "caller", "status")
        others = [f"{name} {text(value)}" for name, value in wanted.items() if name not in known]
        return f"{said} with {' and '.join(others)}" if others else said


def nearest_calls(pattern: Pattern, entries: Sequence[Entry], most: int = 3) -> list[tuple[Entry, list[Difference]]]:
    """The entries that miss a pattern by the fewest fields, and agree in one at least; of equals the latest."""
    found = []
    for entry in entries[-_LOOKED_AT:]:
        differences = pattern.differences(entry)
        if 0 < len(differences) < pattern.fields:
            found.append((entry, differences))
    return sorted(found, key=lambda item: (len(item[1]), -item[0].number))[:most]


def contained(wanted: Any, actual: Any, place: str) -> list[Difference]:
    """In what ``actual`` does not contain ``wanted``: objects may have more properties, all else is equal as JSON."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        return [
            difference
            for key, value in wanted.items()
            for difference in contained(value, actual.get(key, ABSENT), f"{place}/{escape(key)}")
        ]
    if isinstance(wanted, list) and isinstance(actual, list) and len(wanted) == len(actual):
        return [
            difference for i, value in enumerate(wanted) for difference in contained(value, actual[i], f"{place}/{i}")
        ]
    same = wanted == actual and isinstance(wanted, bool) == isinstance(actual, bool)
    return [] if same else [Difference(place, wanted, actual)]


def _header_differences(field: str, found: Mapping[str, str], wanted: Mapping[str, Any]) -> list[Difference]:
    differences = []
    for name, value in wanted.items():
        actual = found.get(name.lower(), "")
        good = actual == value if isinstance(value, str) else bool(actual) == value
        if not good:
            expected = value if isinstance(value, str) else "a value" if value else "no such header"
            differences.append(Difference(f"/{field}/{escape(name.lower())}", expected, actual or ABSENT))
    return differences


def _parsed(body: str) -> Any:
    """A body's JSON; the text itself where it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return body or ABSENT


def _choices(value: Any) -> frozenset[Any]:
    return frozenset(_listed(value))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _has_status(status: int, choices: frozenset[Any]) -> bool:
    return status in choices or f"{status // 100}xx" in choices


def _leaves(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list) else 1


def short(value: Any) -> Any:
    """The value, or a cut text of it where it is long."""
    encoded = orjson.dumps(value).decode()
    if len(encoded) <= _LONGEST:
        return value
    return f"{value if isinstance(value, str) else encoded}"[:_LONGEST] + "…"


def text(value: Any) -> str:
    """The value in a sentence."""
    if isinstance(value, list):
        return " or ".join(map(text, value))
    shown = short(value)
    return shown if isinstance(shown, str) and shown else orjson.dumps(shown).decode()


def words(entry: Entry) -> str:
    """An entry in a sentence."""
    answer = f"answered {entry.status}" if entry.status else "not answered"
    code = f" {entry.error_code}" if entry.error_code else ""
    return f"#{entry.number} {entry.operation_id or f'{entry.method} {entry.path}'} ({answer}{code})"
