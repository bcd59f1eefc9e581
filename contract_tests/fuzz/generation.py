"""Cases from Schemathesis: what the specification allows and what it forbids, boundaries first, then random ones.

Schemathesis makes the requests; sending and judging are ours (:mod:`.trials`, :mod:`.judging`), since a check has jobs
in known states, one transport for all, and rules to name. Of Schemathesis' own checks

- *on*, in our words: ``not_a_server_error``, ``status_code_conformance``, ``content_type_conformance``,
  ``response_schema_conformance``, ``response_headers_conformance``, ``negative_data_rejection`` (stricter: exactly 400,
  where Schemathesis takes 404 and 409 for a rejection), ``positive_data_acceptance``, ``missing_required_header``;
- *off*: ``unsupported_method`` and ``allow_header_conformance`` (`test_errors` sends every method), ``ignored_auth``
  (`test_auth`; a wrong and a missing key are sent here, too), ``use_after_free`` and ``ensure_resource_availability``
  (they know resources that are created and deleted: these APIs have none).

Same seed, same cases, in every process: Hypothesis is seeded, has no database, takes no constants from our own source,
and nothing hangs on the order of a set.
"""

from __future__ import annotations

import asyncio
import copy
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
    from collections.abc import Callable, Mapping

Made = TypeVar("Made")
NOTHING: Any = ...
"""No body."""
_SAFE = frozenset(string.ascii_letters + string.digits + "-._~%")


@dataclass(frozen=True)
class Case:
    """A generated request, before it is given a job. ``body``: a JSON value, bytes as they are, or ``NOTHING``."""

    operation_id: str
    path: Mapping[str, str]
    """Parameters in the path, URL-encoded, where the case is about them."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Parameters in headers, names in lower case; values that the wire can't carry are left out."""
    content_type: str | None
    """Another content type than JSON."""
    body: Any
    part: str
    """What is wrong: ``path``, ``query``, ``header``, ``body``, ``media``; ``""`` for a valid case."""


@dataclass(frozen=True, eq=False)
class Source:
    """A specification that cases are made of: that of a system, ``change``d in place where schemas can't say it all."""

    name: str
    change: Callable[[dict[str, Any]], None] | None = None


def _forget_our_source() -> None:
    """Keep Hypothesis from drawing constants that stand in the source of whatever modules are loaded.

    It takes those of modules outside site-packages, as many as it can read in a tenth of a second: cases would change
    with each line that we write, with how the tool is installed, and on a busy machine from run to run.
    """
    nothing = type(providers._local_constants)()
    providers._get_local_constants = lambda: nothing


_forget_our_source()


@functools.cache
def described(source: Source) -> Any:
    """The specification for Schemathesis. Keys are not generated: without the right one nothing else is looked at."""
    document = openapi.load(source.name).document
    kept = {name: value for name, value in document.items() if not name.startswith("x-") and name != "security"}
    if source.change is not None:
        kept = copy.deepcopy(kept)
        source.change(kept)
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


async def cases(source: Source, operation_id: str, seed: int, examples: int, *, valid: bool) -> list[Case]:
    """Every boundary of an operation's schemas, and ``examples`` random cases."""
    mode = GenerationMode.POSITIVE if valid else GenerationMode.NEGATIVE

    def make() -> list[Case]:
        return [*_boundaries(source, operation_id, mode), *_random(source, operation_id, mode, seed, examples)]

    return await generated(make)


@functools.cache
def _boundaries(source: Source, operation_id: str, mode: GenerationMode) -> tuple[Case, ...]:
    """Schemathesis' coverage phase: each keyword at and beyond its limit, one at a time."""
    operation = described(source).find_operation_by_id(operation_id)
    made = iter_coverage_cases(
        operation=operation,
        generation_modes=[mode],
        generate_duplicate_query_parameters=False,
        unexpected_methods=set(),
        generation_config=described(source).config.generation_for(operation=operation, phase="coverage"),
    )
    return tuple(_case(operation_id, case, mode) for case in made)


@functools.cache
def _random(source: Source, operation_id: str, mode: GenerationMode, seed: int, examples: int) -> tuple[Case, ...]:
    found: list[Case] = []
    if not examples:
        return ()
    operation = described(source).find_operation_by_id(operation_id)

    def keep(case: Any) -> None:
        found.append(_case(operation_id, case, mode))

    given = hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    hypothesis.seed(seed)(settings(examples)(given(keep)))()
    return tuple(found)


def _case(operation_id: str, case: Any, mode: GenerationMode) -> Case:
    """Our own view of a case, reduced to the one thing that is wrong: so a build can't refuse it for another."""
    part = _wrong(case) if mode is GenerationMode.NEGATIVE else ""
    headers = {str(name).lower(): str(value) for name, value in (case.headers or {}).items()}
    content_type = headers.pop("content-type", None)
    path = case.path_parameters or {} if part in ("path", "") else {}
    query = case.query or {} if part in ("query", "") else {}
    return Case(
        operation_id,
        {name: _encoded(str(value)) for name, value in path.items()},
        {name: value for name, value in query.items() if isinstance(value, str)},
        {name: value for name, value in headers.items() if _sendable(value)},
        content_type if part == "media" else None,
        NOTHING if isinstance(case.body, NotSet) else case.body,
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


_PARTS = {
    ParameterLocation.BODY: "body",
    ParameterLocation.HEADER: "header",
    ParameterLocation.PATH: "path",
    ParameterLocation.QUERY: "query",
}


def _encoded(path_id: str) -> str:
    """Random ids come URL-encoded, those of boundaries are plain and need it."""
    return path_id if set(path_id) <= _SAFE else "".join(f"%{byte:02X}" for byte in path_id.encode())


def _sendable(value: str) -> bool:
    """Whether the wire can carry a header's value."""
    return all(31 < ord(char) < 127 for char in value)
