"""The facts that a reader took from the seeds, as data: ``facts_*.yaml`` and ``examples/``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ABOUT_THE_FACT = {"id", "kind", "zh", "decision", "spec"}


@dataclass(frozen=True, eq=False)
class Fact:
    """One statement of a seed: where it stands, its words, and what the kind of comparison needs."""

    seed: str
    section: str
    id: str
    kind: str
    zh: str
    spec: str = "runtime-api"
    decision: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    of_section: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.seed}-{self.section}-{self.id}"


@cache
def seeds() -> list[dict[str, Any]]:
    """The facts files as they stand."""
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(HERE.glob("facts_*.yaml"))]


@cache
def facts() -> list[Fact]:
    """Every fact, in the order of the seeds."""
    return [
        Fact(
            seed["seed"],
            section["section"],
            values={key: value for key, value in entry.items() if key not in ABOUT_THE_FACT},
            of_section={key: value for key, value in section.items() if key not in {"section", "facts"}},
            **{"spec": seed.get("spec", "runtime-api")} | {key: entry[key] for key in ABOUT_THE_FACT & entry.keys()},
        )
        for seed in seeds()
        for section in seed["sections"]
        for entry in section["facts"]
    ]


@cache
def columns() -> dict[str, Any]:
    """Every column of the job with its default, null where the seed gives none; decided ones too."""
    defaults = {fact.id: fact.values.get("default") for fact in facts() if fact.kind == "column"}
    for fact in facts():
        if fact.kind == "columns":
            defaults |= {name: decided.get("default") for name, decided in fact.values["decided"].items()}
    return defaults


@cache
def rows() -> dict[str, dict[str, Any]]:
    """The named rows, with what they are like filled in."""
    named: dict[str, dict[str, Any]] = {}
    for seed in seeds():
        for name, given in seed.get("rows", {}).items():
            base = named[given["like"]] if "like" in given else columns()
            named[name] = base | {key: value for key, value in given.items() if key != "like"}
    return named


def example(file: str) -> Any:
    """A request or response that the seed prints."""
    return json.loads((HERE / "examples" / file).read_bytes())


def example_files() -> list[str]:
    """Every request and response that the seeds print."""
    return sorted(path.name for path in (HERE / "examples").glob("*.json"))
