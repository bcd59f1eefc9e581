"""What fault plans aim at: the operations of an API, and what a request tells before anything of it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mock_server.calls import Refusal
from mock_server.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from openapi import Contract, Operation

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Target:
    """One operation."""

    id: str
    method: str
    path: str
    caller_header: bytes | None
    caller_in_body: bool
    job_in_path: bool
    job_in_body: bool
    codes: Mapping[int, str]
    """The first documented error code of each status."""
    bodies: bool
    """Whether its successes have a body."""
    skewable: bool
    """Whether its successes have a ``lockUntil``."""
    fields: frozenset[str]
    """Names of properties, at any depth, of all its answers."""

    @property
    def has_job(self) -> bool:
        """Whether its requests name a job."""
        return self.job_in_path or self.job_in_body

    @property
    def has_caller(self) -> bool:
        """Whether its requests name a caller."""
        return self.caller_in_body or self.caller_header is not None


@dataclass(slots=True)
class Asked:
    """A request as plans see it; an unknown path has no target."""

    target: Target | None
    job_id: str | None = None
    caller: str | None = None


class Targets:
    """All operations of the APIs of a world."""

    def __init__(self, *contracts: Contract) -> None:
        self.errors = {code for contract in contracts for code in contract.errors}
        self.limit = max(contract.limits["bodyBytes"] for contract in contracts)
        self.by_id: dict[str, Target] = {}
        self._routes = Routes(None)
        for contract in contracts:
            self.by_id |= {id_: _target(contract, operation) for id_, operation in contract.operations.items()}
            self._routes.add_paths(contract.document["paths"])

    def find(self, method: str, raw_path: bytes) -> tuple[Target | None, Mapping[str, str]]:
        """The operation of a request and its path parameters; None for what is answered 404 or 405."""
        try:
            operations, parameters = self._routes.find(raw_path)
        except Refusal:
            return None, {}
        return self.by_id.get(operations.get(method, "")), parameters

    def at(self, path: str) -> list[Target]:
        """The operations of a path: a template of the specification, or one request's own path."""
        found = [target for target in self.by_id.values() if target.path == path]
        if found or "{" in path:
            return found
        try:
            operations, _ = self._routes.find(path.encode())
        except Refusal:
            return []
        return [self.by_id[id_] for id_ in operations.values()]


def _target(contract: Contract, operation: Operation) -> Target:
    item = contract.document["paths"][operation.path]
    parameters = [
        contract.resolve(parameter)
        for parameter in (*item.get("parameters", ()), *operation.document.get("parameters", ()))
    ]
    callers = [
        parameter["name"].lower().encode()
        for parameter in parameters
        if parameter["in"] == "header" and parameter["name"].lower().endswith("instance-id")
    ]
    content = contract.resolve(operation.document.get("requestBody", {})).get("content", {}).get(_JSON)
    asked = set(contract.resolve(content["schema"]).get("properties", {})) if content else set()
    codes: dict[int, str] = {}
    told: set[str] = set()
    given: set[str] = set()
    bodies = False
    for status, reference in operation.document["responses"].items():
        response = contract.resolve(reference)
        for code in response.get("x-error-codes", ())[:1]:
            codes[int(status)] = code
        if _JSON in response.get("content", {}):
            names = set(_names(contract, response["content"][_JSON]["schema"], frozenset()))
            told |= names
            if int(status) < 400:
                bodies, given = True, given | names
    return Target(
        id=operation.id,
        method=operation.method,
        path=operation.path,
        caller_header=callers[0] if callers else None,
        caller_in_body="runtimeInstanceId" in asked,
        job_in_path="{jobId}" in operation.path,
        job_in_body="jobId" in asked and "{jobId}" not in operation.path,
        codes=codes,
        bodies=bodies,
        skewable="lockUntil" in given,
        fields=frozenset(told),
    )


def _names(contract: Contract, schema: Any, trail: frozenset[str]) -> Iterator[str]:
    """Names of properties of a schema, at any depth."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference not in trail:
                yield from _names(contract, contract.resolve(schema), trail | {reference})
            return
        yield from schema.get("properties", {})
        for part in (*schema.get("properties", {}).values(), schema.get("items"), *schema.get("allOf", ())):
            yield from _names(contract, part, trail)
