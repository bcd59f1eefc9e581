"""A whole contract: the specification of one API, ready for those who serve, judge or draw it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openapi.bundling import bundle, refer
from openapi.documents import Document, at_pointer, escape
from openapi.machine import Machine, MachineError
from openapi.machine_text import build
from openapi.problems import Problem, SpecError
from openapi.redaction import Redactor
from openapi.register import Place, Register

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SPECS = Path(__file__).parent
NAMES = ("runtime-api", "runtime-health", "agent-hub", "model-provider", "control")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MACHINE = "/x-state-machine"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row of ``x-errors``: an error code with its HTTP status and whether repeating the call can help."""

    code: str
    status: int
    retryable: bool
    description: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation; ``statuses`` are the documented HTTP statuses."""

    id: str
    method: str
    path: str
    statuses: tuple[int, ...]
    document: Mapping[str, Any]


class Contract:
    """One API's specification.

    ``document`` is the bundled OpenAPI document as plain data (references to other files are inlined, references to
    ``#/components`` stay). ``source`` is the file with its lines; it is None for a document that was changed in memory.
    ``files`` are all files that were read.
    Raises :class:`SpecError` from the constructors where the text can't be used.
    """

    def __init__(self, name: str, document: dict[str, Any], source: Document | None = None) -> None:
        self.name, self.document, self.source = name, document, source
        self.files: dict[Path, Document] = {}
        self.machine: Machine | None = None
        if "x-state-machine" in document:
            try:
                self.machine = build(document["x-state-machine"])
            except MachineError as error:
                raise SpecError([self.problem(_MACHINE + at, what, mend) for at, what, mend in error.faults]) from None

    @classmethod
    def read(cls, path: Path, name: str | None = None) -> Contract:
        """Read a specification file."""
        source = Document.read(path)
        files: dict[Path, Document] = {}
        contract = cls(name or path.stem, bundle(source, ("x-requirements",), files), source)
        contract.files = files
        return contract

    @property
    def path(self) -> Path:
        """The file; for a document changed in memory the packaged one of the same name."""
        return self.source.path if self.source else SPECS / f"{self.name}.yaml"

    def problem(self, pointer: str, message: str, mend: str) -> Problem:
        """A problem at a place of this specification."""
        if self.source:
            return self.source.problem(pointer, message, mend)
        return Problem(self.path, 1, pointer, message, mend)

    def redactor(self, secrets: Iterable[str] = ()) -> Redactor:
        """What takes these secrets, and whatever looks like a key by ``x-redaction``, out of texts."""
        return Redactor(secrets, self.document.get("x-redaction", {}).get("pattern"))

    @cached_property
    def secret_names(self) -> frozenset[str]:
        """Names of properties whose values are secrets: ``x-secret`` ones, and those of ``x-forbidden-names``."""
        schemas = self.document.get("components", {}).get("schemas", {}).values()
        marked = {
            name for schema in schemas for name, item in schema.get("properties", {}).items() if item.get("x-secret")
        }
        return frozenset(marked.union(*(schema.get("x-forbidden-names", ()) for schema in schemas)))

    @cached_property
    def errors(self) -> Mapping[str, ErrorCode]:
        """The error codes by name."""
        rows = self.document.get("x-errors", {})
        return {
            code: ErrorCode(code, row["status"], row["retryable"], row["description"]) for code, row in rows.items()
        }

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """The numbers of ``x-limits``."""
        limits: dict[str, int] = self.document.get("x-limits", {})
        return limits

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """The operations by their operationId."""
        found = {}
        for path, item in self.document.get("paths", {}).items():
            for method in METHODS:
                if method in item:
                    operation = item[method]
                    statuses = tuple(int(status) for status in operation["responses"] if status != "default")
                    id_ = operation["operationId"]
                    found[id_] = Operation(id_, method.upper(), path, statuses, operation)
        return found

    @cached_property
    def events(self) -> tuple[str, ...]:
        """The names of the API's events: the values of ``event`` in the schema that ``x-events`` of a stream names."""
        for operation in self.operations.values():
            for response in operation.document["responses"].values():
                stream = self.resolve(response).get("content", {}).get("text/event-stream", {})
                told = self.resolve(stream.get("x-events", {})).get("properties", {}).get("event", {})
                if names := self.resolve(told).get("enum"):
                    return tuple(names)
        return ()

    def resolve(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """The item, or what its ``$ref`` leads to. Raises ``KeyError`` for a reference to nowhere or in a circle."""
        seen: set[str] = set()
        while "$ref" in item:
            reference = item["$ref"]
            if reference in seen:
                raise KeyError(reference)
            seen.add(reference)
            item = at_pointer(self.document, reference.removeprefix("#"))
            if not isinstance(item, dict):
                raise KeyError(reference)
        return dict(item)

    @cached_property
    def rules(self) -> tuple[Document | None, str]:
        """The file of the register and the JSON Pointer of its rules there. Raises :class:`SpecError`."""
        rows = self.document.get("x-requirements", {})
        if isinstance(rows, dict) and isinstance(rows.get("$ref"), str):
            source = self.source or Document(self.path, "", self.document)
            return refer(rows["$ref"], source, "/x-requirements", self.files)
        return self.source, "/x-requirements"

    @cached_property
    def register(self) -> Register:
        """Every rule of ``x-requirements``, with the places that state it."""
        source, pointer = self.rules
        rows = self.document.get("x-requirements", {})
        if source and source is not self.source:
            rows = at_pointer(source.data, pointer)
        home = source.path if source else self.path
        places: dict[str, list[Place]] = {}
        for pointer, ids in self.stated():
            line = self.source.line(pointer) if self.source else 1
            for id_ in ids:
                places.setdefault(id_, []).append(Place(self.path, line, pointer))
        unknown = [id_ for id_ in places if id_ not in rows]
        if unknown:
            key = {id_: "requirements" if places[id_][0].pointer.startswith(_MACHINE) else "x-rules" for id_ in unknown}
            first = {id_: f"{places[id_][0].pointer}/{key[id_]}" for id_ in unknown}
            mend = f"add it to {home.name} or correct the id"
            raise SpecError([self.problem(at, f"`{id_}` is not in the register", mend) for id_, at in first.items()])
        return Register(rows, places)

    def stated(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each place (JSON Pointer) that states rules, with their ids."""
        stack: list[tuple[str, Any]] = [("", self.document)]
        while stack:
            pointer, node = stack.pop()
            if isinstance(node, dict):
                if "x-rules" in node:
                    yield pointer, tuple(node["x-rules"])
                stack += [
                    (f"{pointer}/{escape(str(key))}", value)
                    for key, value in reversed(node.items())
                    if key not in ("x-state-machine", "x-requirements", "x-rules")
                ]
            elif isinstance(node, list):
                stack += [(f"{pointer}/{i}", item) for i, item in enumerate(node)]
        if self.machine:
            yield from ((_MACHINE + pointer, ids) for pointer, ids in self.machine.places() if ids)


_instead: dict[str, Contract] = {}


def load(name: str = "runtime-api", path: Path | None = None) -> Contract:
    """The packaged contract ``name``, or the one in the file ``path``; read once. Raises :class:`SpecError`."""
    return _instead[name] if path is None and name in _instead else _load(name, path)


def load_instead(contract: Contract) -> None:
    """Let this whole process take a contract for the packaged one of its name, before anything was made of that."""
    _instead[contract.name] = contract


@functools.cache
def _load(name: str, path: Path | None) -> Contract:
    return Contract.read(path or SPECS / f"{name}.yaml", name)
