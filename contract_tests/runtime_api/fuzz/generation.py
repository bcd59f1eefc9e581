"""Cases from Schemathesis: what the specification allows and what it forbids, boundaries first, then random ones.

Schemathesis makes the requests; sending and judging are ours (:mod:`.trials`, :mod:`.judging`), since a check has jobs
in known states, one transport for all, and rules to name. Of Schemathesis' own checks

- *on*, in our words: ``not_a_server_error``, ``status_code_conformance``, ``content_type_conformance``,
  ``response_schema_conformance``, ``response_headers_conformance``, ``negative_data_rejection`` (stricter: exactly 400,
  where Schemathesis takes 404 and 409 for a rejection), ``positive_data_acceptance``, ``missing_required_header``;
- *off*: ``unsupported_method`` and ``allow_header_conformance`` (`test_errors` sends every method), ``ignored_auth``
  (`test_auth`; a wrong and a missing key are sent here, too), ``use_after_free`` and ``ensure_resource_availability``
  (they know resources that are created and deleted: this API has none).

Same seed, same cases, in every process: Hypothesis is seeded, has no database, takes no constants from our own source,
and nothing hangs on the order of a set.
"""

from __future__ import annotations

import asyncio
import functools
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import hypothesis
import schemathesis
from hypothesis.internal.conjecture import providers
from schemathesis.core import NotSet
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.coverage._operation import iter_coverage_cases

import openapi

if TYPE_CHECKING:
    from collections.abc import Callable

Made = TypeVar("Made")
INSTANCE = "x-runtime-instance-id"
NOTHING: Any = ...
"""No body."""
_SAFE = frozenset(string.ascii_letters + string.digits + "-._~%")


@dataclass(frozen=True)
class Case:
    """A generated request, before it is given a job. ``body``: a JSON value, bytes as they are, or ``NOTHING``."""

    operation_id: str
    path_id: str | None
    """The job's id in the path, URL-encoded, where that is what the case is about."""
    instance: str | None
    """The instance id header."""
    content_type: str | None
    """Another content type than JSON."""
    body: Any
    part: str
    """What is wrong: ``path``, ``header``, ``body``, ``media``; ``""`` for a valid case."""


def _forget_our_source() -> None:
    """Keep Hypothesis from drawing constants that stand in the source of whatever modules are loaded.

    It takes those of modules outside site-packages, as many as it can read in a tenth of a second: cases would change
    with each line that we write, with how the tool is installed, and on a busy machine from run to run.
    """
    nothing = type(providers._local_constants)()
    providers._get_local_constants = lambda: nothing


_forget_our_source()


@functools.cache
def described() -> Any:
    """The specification for Schemathesis. Keys are not generated: without the right one nothing else is looked at."""
    document = openapi.load("runtime-api").document
    kept = {name: value for name, value in document.items() if not name.startswith("x-") and name != "security"}
    schema = schemathesis.openapi.from_dict(kept)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE])
    return schema


def settings(examples: int, **more: Any) -> Any:
    """Hypothesis' settings: nothing is stored or shrunk (a build has state: :mod:`.trials` shrinks by repeating)."""
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
        **more,
    )


_GENERATING = asyncio.Lock()


async def generated(make: Callable[[], Made]) -> Made:
    """What ``make`` makes, in a thread, one after the other: Hypothesis holds state that threads must not share."""
    async with _GENERATING:
        return await asyncio.to_thread(make)


async def cases(operation_id: str, seed: int, examples: int, *, valid: bool) -> list[Case]:
    """Every boundary of an operation's schemas, and ``examples`` random cases."""
    mode = GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE
    return await generated(lambda: [*_boundaries(operation_id, mode), *_random(operation_id, mode, seed, examples)])


@functools.cache
def _boundaries(operation_id: str, mode: GenerationMode) -> tuple[Case, ...]:
    """Schemathesis' coverage phase: each keyword at and beyond its limit, one at a time."""
    operation = described().find_operation_by_id(operation_id)
    made = iter_coverage_cases(
        operation=operation,
        generation_modes=[mode],
        generate_duplicate_query_parameters=False,
        unexpected_methods=set(),
        generation_config=described().config.generation_for(operation=operation, phase="coverage"),
    )
    return tuple(_case(operation_id, case, mode) for case in made)


def _random(operation_id: str, mode: GenerationMode, seed: int, examples: int) -> list[Case]:
    found: list[Case] = []
    if not examples:
        return found
    operation = described().find_operation_by_id(operation_id)

    def keep(case: Any) -> None:
        found.append(_case(operation_id, case, mode))

    given = hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    hypothesis.seed(seed)(settings(examples)(given(keep)))()
    return found


def _case(operation_id: str, case: Any, mode: GenerationMode) -> Case:
    """Our own view of a case, reduced to the one thing that is wrong: so a build can't refuse it for another."""
    part = _wrong(case) if mode is GenerationMode.NEGATIVE else ""
    headers = {str(name).lower(): str(value) for name, value in (case.headers or {}).items()}
    path_id = (case.path_parameters or {}).get("jobId")
    body = NOTHING if isinstance(case.body, NotSet) else case.body
    return Case(
        operation_id,
        _encoded(str(path_id)) if path_id is not None and part in ("path", "") else None,
        _sendable(headers.get(INSTANCE)),
        headers.get("content-type") if part == "media" else None,
        body,
        part,
    )


def _wrong(case: Any) -> str:
    meta = case._meta  # reading `meta` would judge the case anew by its wire form
    data = meta.phase.data
    scenario = str(getattr(data, "scenario", ""))
    if "content_type" in scenario:
        return "media"
    place = data.parameter_location
    if place is None or place not in _PARTS:
        place = next((item for item in _PARTS if meta.is_negative_at(item)), ParameterLocation.BODY)
    return _PARTS[place]


_PARTS = {ParameterLocation.BODY: "body", ParameterLocation.HEADER: "header", ParameterLocation.PATH: "path"}


def _encoded(path_id: str) -> str:
    """Random ids come URL-encoded, those of boundaries are plain and need it."""
    return path_id if set(path_id) <= _SAFE else "".join(f"%{byte:02X}" for byte in path_id.encode())


def _sendable(value: str | None) -> str | None:
    """A header's value that the wire can carry; others are left out."""
    return value if value is not None and all(31 < ord(char) < 127 for char in value) else None
