"""Model scripts: whether they are sound, by their schemas in ``control.yaml``, and which of them fits a call."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import orjson

import openapi
from mock_server.fault_rules import Found, header_faults
from mock_server.judgement import compile_normaliser
from mock_server.violations import body_violations
from openapi.documents import at_pointer
from openapi.problems import nearest
from openapi.redaction import Redactor
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mock_server.calls import Violation

Outcome = dict[str, Any]
"""What is answered to one call: ``kind`` and the fields of that kind, defaults filled in."""

GOOD: Outcome = {"kind": "good", "variant": 0, "usage": True}
"""What is answered where no script fits."""


class ScriptError(ValueError):
    """Scripts that can't be used; ``problems`` are texts with place and mend, at least one."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True)
class Script:
    """One script, found sound. Worlds share it, and count its calls apart."""

    calls: tuple[Outcome, ...]
    job_id: str | None = None
    job_type: str | None = None

    def fits(self, job_id: str, job_type: str) -> bool:
        """Whether it is for this job."""
        return self.job_id in (None, job_id) and self.job_type in (None, job_type)

    @property
    def weight(self) -> tuple[bool, bool]:
        """How specific it is; the greater goes before the lesser."""
        return self.job_id is not None, self.job_type is not None

    def outcome(self, n: int) -> Outcome:
        """What a job's n-th call is answered, from 1; the last one repeats."""
        return self.calls[min(n, len(self.calls)) - 1]

    def document(self) -> dict[str, Any]:
        """As the control plane shows it."""
        own = {"jobId": self.job_id, "jobType": self.job_type}
        return {**{name: value for name, value in own.items() if value is not None}, "calls": list(self.calls)}


def scripts_of(data: Any, place: str = "") -> tuple[Script, ...]:
    """The scripts of JSON data, a list; ``place`` is where it stands (a JSON Pointer).

    Raises :class:`ScriptError`, whose text names place and mend of every problem.
    """
    shapes = _shapes()
    problems = [_told(item, shapes) for item in body_violations(shapes.scripts, data, Redactor())]
    problems += [found for at, outcome in _outcomes(data, shapes) for found in _of_kind(at, outcome, shapes)]
    if problems:
        first = {at: (at, what, mend) for at, what, mend in reversed(problems)}  # one of a place is enough
        told = [f"{place + at or '/'}: {what} ({mend})" for at, what, mend in reversed(first.values())]
        raise ScriptError(told)
    return tuple(
        Script(
            tuple(shapes.kinds[outcome["kind"]].filled(outcome) for outcome in entry["calls"]),
            entry.get("jobId"),
            entry.get("jobType"),
        )
        for entry in data
    )


def _outcomes(data: Any, shapes: _Shapes) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of a known kind, with their places; the rest of the data may be anything."""
    for i, entry in enumerate(data if isinstance(data, list) else ()):
        calls = entry.get("calls") if isinstance(entry, dict) else None
        for j, outcome in enumerate(calls if isinstance(calls, list) else ()):
            kind = outcome.get("kind") if isinstance(outcome, dict) else None
            if isinstance(kind, str) and kind in shapes.kinds:
                yield f"/{i}/calls/{j}", outcome


class _Kind:
    """The compiled schema of outcomes of one kind."""

    def __init__(self, schema: dict[str, Any], names: list[str]) -> None:
        self.names = names
        self.validator = jsonschema_rs.Draft202012Validator(schema)
        self._normalise = compile_normaliser(schema)

    def filled(self, outcome: Mapping[str, Any]) -> Outcome:
        """A copy with whole numbers as ``int`` and defaults."""
        copy: Outcome = self._normalise(orjson.loads(orjson.dumps(outcome)))
        return copy


class _Shapes:
    """The compiled schemas: of a list of scripts whose outcomes are of any known kind, and of each kind of outcome."""

    def __init__(self) -> None:
        document = openapi.load("control").document
        schemas = document["components"]["schemas"]
        self.kinds: dict[str, _Kind] = {}
        for item in at_pointer(schemas["ModelScript"], "/properties/calls/items/oneOf"):
            name = item["$ref"].rpartition("/")[2]
            compiled = _Kind(to_json_schema(item, document), list(schemas[name]["properties"]))
            self.kinds |= dict.fromkeys(schemas[name]["properties"]["kind"]["enum"], compiled)
        kind = {"type": "string", "enum": list(self.kinds)}
        any_kind = {"type": "object", "required": ["kind"], "properties": {"kind": kind}}
        script = dict(schemas["ModelScript"])
        self.names, self.job_types = list(script["properties"]), script["properties"]["jobType"]["enum"]
        script["properties"] = {**script["properties"], "calls": {**script["properties"]["calls"], "items": any_kind}}
        most = schemas["WorldRequest"]["properties"]["model"]["maxItems"]
        everything = {"type": "array", "maxItems": most, "items": script}
        self.scripts = jsonschema_rs.Draft202012Validator(to_json_schema(everything, document))


@cache
def _shapes() -> _Shapes:
    return _Shapes()


def _of_kind(at: str, outcome: Outcome, shapes: _Shapes) -> Iterator[Found]:
    kind = shapes.kinds[outcome["kind"]]
    for item in body_violations(kind.validator, outcome, Redactor()):
        yield _told(item, shapes, at, kind.names)
    headers = outcome.get("headers")
    for pointer, what, mend in header_faults(headers if isinstance(headers, dict) else None):
        yield at + pointer, what, mend


def _told(item: Violation, shapes: _Shapes, base: str = "", fields: Sequence[str] = ()) -> Found:
    place = base + item.location
    what = item.message.removeprefix(item.location or "the body").strip()
    _, _, name = item.location.rpartition("/")
    mend = "ModelScript in openapi/control.yaml has the fields"
    if item.rule == "additionalProperties":
        known = list(fields) or shapes.names
        what, mend = "is not known here", nearest(name, known, f"known are {', '.join(known)}")
    elif item.rule == "enum" and isinstance(item.actual, str) and name in ("kind", "jobType"):
        known = list(shapes.kinds) if name == "kind" else shapes.job_types
        what = f"no {'kind of outcome' if name == 'kind' else 'job type'} is named `{item.actual}`"
        mend = nearest(item.actual, known)
    elif name == "calls":
        mend = 'give a list of outcomes, such as [{"kind": "good"}]'
    elif not item.location and not base and item.rule == "type":
        mend = 'give a list of scripts, such as [{"calls": [{"kind": "good"}]}]'
    return place, what, mend
