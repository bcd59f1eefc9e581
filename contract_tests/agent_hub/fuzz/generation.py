"""What the hub's cases are made of: the specification, and for submissions one for each kind of job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openapi
from contract_tests.fuzz.generation import Case, Source, cases

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Source("agent-hub")
MANY = 10
"""Jobs in a submission; that all of a larger one are taken is tried with the first kind alone."""


def _of_kind(kind: str, shared: bool) -> Callable[[dict[str, Any]], None]:
    """Submissions of one kind alone, its fields in the schema's own words: what ``x-kinds`` says no generator reads.

    ``shared``: with the fields that another kind has, too, else only with those that are needed or its own.
    """

    def change(document: dict[str, Any]) -> None:
        item = document["components"]["schemas"]["JobItem"]
        kinds = item["x-kinds"]
        rule, others = kinds[kind], [other for name, other in kinds.items() if name != kind]
        item["required"] = [*item["required"], *rule["required"]]
        own = {*item["required"], *(name for other in others for name in other["refused"])}
        kept = {
            name: _fast(schema)
            for name, schema in item["properties"].items()
            if name not in rule["refused"] and (shared or name in own)
        }
        item["properties"] = {**kept, "kind": {"type": "string", "enum": [kind]}}

    return change


def _fast(schema: dict[str, Any]) -> dict[str, Any]:
    """A long text without its pattern, on which a generator spends seconds; blank ones the composer makes."""
    if schema.get("pattern") != r"\S":
        return schema
    return {**{name: value for name, value in schema.items() if name != "pattern"}, "minLength": 1}


def _kinds() -> dict[str, Source]:
    kinds = openapi.load("agent-hub").document["components"]["schemas"]["JobItem"]["x-kinds"]
    return {kind: Source("agent-hub", _of_kind(kind, number == 0)) for number, kind in enumerate(kinds)}


OF_KIND = _kinds()
"""A source for each kind of job; fields that kinds share are tried with the first one."""


async def submissions(seed: int, examples: int, *, valid: bool) -> list[Case]:
    """Submissions of jobs of each kind: every boundary, and ``examples`` random ones; what is the same comes once."""
    found: list[Case] = []
    for number, source in enumerate(OF_KIND.values()):
        share = (examples + number) // len(OF_KIND)
        made = await cases(source, "submitJobs", seed, share, valid=valid)
        found += [case for case in made if not (number and _is_large(case)) and not (number and case.part == "header")]
    return found


def _is_large(case: Case) -> bool:
    items = case.body.get("items") if isinstance(case.body, dict) else None
    return isinstance(items, list) and len(items) > MANY
