"""Whether a specification is sound: valid OpenAPI, valid examples, a sound machine, and the house rules."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from openapi_spec_validator import OpenAPIV30SpecValidator

from openapi.analysis import analyse
from openapi.contract import METHODS, Contract
from openapi.documents import at_pointer, escape
from openapi.problems import Problem, SpecError
from openapi.register import LEVELS
from openapi.schemas import to_json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path


_MAX_MESSAGE = 160


def lint(path: Path) -> list[Problem]:
    """Every problem of the specification in the file ``path``, in the file's order; empty when it is sound."""
    try:
        contract = Contract.read(path)
    except SpecError as error:
        return error.problems
    problems = list(_duplicates(contract)) or list(_openapi(contract)) or list(_extensions(contract))
    if not problems:  # the house rules read a document that is valid OpenAPI
        for rule in RULES:
            problems += rule(contract)
    return sorted(set(problems), key=lambda problem: (str(problem.file), problem.line, problem.pointer))


def _duplicates(contract: Contract) -> Iterator[Problem]:
    """No key stands twice in a mapping, in any of the files."""
    with contextlib.suppress(SpecError):  # a register that can't be read is told with the other faults of extensions
        contract.rules  # noqa: B018 - reads its file
    for document in contract.files.values():
        yield from document.duplicate_keys()


def _extensions(contract: Contract) -> Iterator[Problem]:
    """The extensions and the register have the structure that everybody who reads them relies on."""
    rows = contract.document.get("x-errors", {})
    yield from (
        contract.problem(f"/x-errors{at}", what, "see the notation of x-errors") for at, what in _faults(_ERRORS, rows)
    )
    for pointer, node in _nodes(contract.document):
        if not isinstance(node, dict):
            continue
        for key in ("x-rules", "x-error-codes"):
            if key in node:
                at = f"{pointer}/{key}"
                yield from (
                    contract.problem(at, what, f"see the notation of {key}") for _, what in _faults(_NAMES, node[key])
                )
    for path, item in contract.document["paths"].items():
        for method in METHODS:
            if method in item:
                pointer = f"/paths/{escape(path)}/{method}"
                if "operationId" not in item[method]:
                    yield contract.problem(pointer, f"{method} has no operationId", "give it one")
                for status in item[method]["responses"]:
                    if not str(status).isdecimal():
                        what = f"`{status}` is no status"
                        yield contract.problem(
                            f"{pointer}/responses/{status}", what, "document each status by its number"
                        )
    try:
        source, pointer = contract.rules
    except SpecError as error:
        yield from error.problems
        return
    if source is not None and "x-requirements" in contract.document:
        for at, what in _faults(_REGISTER, at_pointer(source.data, pointer)):
            yield source.problem(pointer + at, what, "correct the rule")


_NAMES = jsonschema_rs.Draft202012Validator({"type": "array", "items": {"type": "string"}})
_ERRORS = jsonschema_rs.Draft202012Validator(
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["status", "retryable", "description"],
            "properties": {
                "status": {"type": "integer", "minimum": 400, "maximum": 599},
                "retryable": {"type": "boolean"},
                "description": {"type": "string"},
            },
        },
    }
)
_TEXT = {"type": "string", "minLength": 1}
_REGISTER = jsonschema_rs.Draft202012Validator(
    {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["level", "bound", "verify", "source", "sentence", "sentenceZh"],
            "properties": {
                "level": {"enum": list(LEVELS)},
                "bound": {"enum": ["server", "client", "both", "data"]},
                "verify": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"enum": ["http", "traffic", "time", "admin", "none"]},
                },
                "source": {"type": "array", "minItems": 1, "items": _TEXT},
                **dict.fromkeys(
                    (
                        "sentence",
                        "sentenceZh",
                        "superseded",
                        "supersededInPart",
                        "notObservable",
                        "notObservableInPart",
                        "reason",
                    ),
                    _TEXT,
                ),
            },
        },
    }
)


def _faults(validator: Any, value: Any) -> Iterator[tuple[str, str]]:
    """Each fault of a value: JSON Pointer and message."""
    for error in validator.iter_errors(value):
        yield _pointer(error.instance_path), error.message


def _openapi(contract: Contract) -> Iterator[Problem]:
    version = str(contract.document.get("openapi", ""))
    if not version.startswith("3.0."):
        yield contract.problem("/openapi", f"is OpenAPI `{version}`", "write OpenAPI 3.0.x")
        return
    broken = [
        pointer for pointer, node in _nodes(contract.document, inside_examples=True) if not _leads(contract, node)
    ]
    for pointer in broken:
        what = f"`{at_pointer(contract.document, pointer)['$ref']}` leads nowhere"
        yield contract.problem(pointer, what, "correct the reference")
    if broken:
        return
    try:
        errors = list(OpenAPIV30SpecValidator(contract.document).iter_errors())
    except Exception as error:
        yield contract.problem("", f"can't be validated: {error}", "correct the reference")
        return
    places = ["", *(_pointer(getattr(error, "absolute_path", ())) for error in errors)]
    for fault in errors:
        pointer = _pointer(getattr(fault, "absolute_path", ()))
        # Some paths begin at the schema that is wrong; its own place is then that of another error.
        pointer = next((base + pointer for base in places if _exists(contract.document, base + pointer)), pointer)
        message = str(fault.context[0].message if getattr(fault, "context", None) else fault.message).partition("\n")[0]
        message = message if len(message) <= _MAX_MESSAGE else f"... {message[-_MAX_MESSAGE:]}"
        yield contract.problem(pointer, message, "see the OpenAPI 3.0 specification")


def _references(contract: Contract) -> Iterator[Problem]:
    """Every component is referred to."""
    used: set[str] = set()
    for _, node in _nodes(contract.document, inside_examples=True):
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            used.add(node["$ref"])
    for kind, items in contract.document.get("components", {}).items():
        for name, item in items.items():
            if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in used and "x-row" not in item:
                yield contract.problem(f"/components/{kind}/{name}", f"nothing refers to `{name}`", "use it or drop it")


def _examples(contract: Contract) -> Iterator[Problem]:
    """Every example of a body or schema is valid by its schema."""
    for pointer, node in _nodes(contract.document):
        if not isinstance(node, dict) or ("schema" not in node and "example" not in node):
            continue
        schema = node.get("schema", node)
        examples = {f"{pointer}/example": node["example"]} if "example" in node else {}
        for name, example in (node.get("examples") or {}).items():
            resolved = contract.resolve(example)
            if "value" in resolved:
                examples[f"{pointer}/examples/{escape(name)}"] = resolved["value"]
        validator = None
        for place, example in examples.items():
            validator = validator or jsonschema_rs.Draft202012Validator(to_json_schema(schema, contract.document))
            for error in validator.iter_errors(example):
                yield contract.problem(place, f"the example is not valid: {error.message}", "correct the example")


def _operations(contract: Contract) -> Iterator[Problem]:
    """Operations document their errors by code, each under its own status."""
    for path, item in contract.document["paths"].items():
        for method in METHODS:
            operation = item.get(method)
            if operation is None or not contract.errors:
                continue
            pointer = f"/paths/{escape(path)}/{method}"
            wanted = {"401", "500"} | ({"413", "415"} if "requestBody" in operation else set())
            if "requestBody" in operation or _can_be_ill_formed(contract, item, operation):
                wanted.add("400")
            for status in sorted(wanted - set(operation["responses"])):
                yield contract.problem(pointer, f"{operation['operationId']} does not document {status}", "add it")
            for status, response in operation["responses"].items():
                codes = contract.resolve(response).get("x-error-codes")
                place = f"{pointer}/responses/{status}"
                if int(status) >= 400 and not codes:
                    yield contract.problem(place, f"{status} names no error code", "add x-error-codes")
                for code in codes or ():
                    if code not in contract.errors:
                        yield contract.problem(place, f"`{code}` is no code of x-errors", "add the code there")
                    elif contract.errors[code].status != int(status):
                        yield contract.problem(
                            place, f"`{code}` has another status in x-errors", "correct one of the two"
                        )


def _can_be_ill_formed(contract: Contract, item: Mapping[str, Any], operation: Mapping[str, Any]) -> bool:
    """Whether a parameter can be ill-formed: one outside the path that is required, or of which not every text is good.

    A path parameter that is ill-formed names nothing (404).
    """
    named: dict[tuple[str, str], dict[str, Any]] = {}
    for one in (*item.get("parameters", ()), *operation.get("parameters", ())):
        parameter = contract.resolve(one)
        named[parameter["in"], parameter["name"]] = parameter  # the operation's own replace those of the path
    for (place, _), parameter in named.items():
        schema = to_json_schema(parameter.get("schema", {}), contract.document)
        free = schema.keys() <= {"type", "default", "description"} and schema.get("type", "string") == "string"
        if place != "path" and (parameter.get("required") or "content" in parameter or not free):
            return True
    return False


def _machine(contract: Contract) -> Iterator[Problem]:
    """The machine is sound."""
    for pointer, message, mend in analyse(contract):
        yield contract.problem(f"/x-state-machine{pointer}", message, mend)


def _register(contract: Contract) -> Iterator[Problem]:
    """Ids that are stated exist; rules that a server shows over HTTP are stated somewhere in the specification."""
    if "x-requirements" not in contract.document:
        return
    try:
        register = contract.register
    except SpecError as error:
        yield from error.problems
        return
    for rule in register.values():
        if rule.bound == "server" and not rule.not_observable and not rule.places:
            yield contract.problem(
                "/x-requirements", f"`{rule.id}` is stated nowhere", "name it where the spec states it"
            )


def _rows(contract: Contract) -> Iterator[Problem]:
    """Keys and lists of rows name their columns, and states that there are."""
    for name, schema in contract.document.get("components", {}).get("schemas", {}).items():
        row = schema.get("x-row")
        if row is None:
            continue
        place = f"/components/schemas/{escape(name)}/x-row"
        named = [(f"{place}/{key}", row[key]) for key in ("key", "by") if key in row]
        for list_name, listed in row.get("lists", {}).items():
            at = f"{place}/lists/{escape(list_name)}"
            named += [(f"{at}/by", column) for column in listed["by"]]
            named += [(f"{at}/order", column.removeprefix("-")) for column in listed["order"]]
            for state in listed.get("from", ()):
                if contract.machine is None or state not in contract.machine.states:
                    yield contract.problem(f"{at}/from", f"`{state}` is no state", "name one of `states`")
        for at, column in named:
            if column not in schema.get("properties", {}):
                yield contract.problem(at, f"`{column}` is no column of {name}", "correct the name")


def _output_schemas(contract: Contract) -> Iterator[Problem]:
    """Every schema version that the API supports is described, no other is, and examples of results are of theirs."""
    described = contract.document.get("x-output-schemas")
    if described is None:
        return
    constants = contract.machine.constants if contract.machine else {}
    supported = constants["schemaVersions"].value if "schemaVersions" in constants else []
    for version in supported:
        if version not in described:
            what = f"the supported version `{version}` has no schema"
            yield contract.problem("/x-output-schemas", what, "describe its outputs, or take it out of schemaVersions")
    validators = {}
    for version, entry in described.items():
        place = f"/x-output-schemas/{escape(version)}"
        if version not in supported:
            what = f"`{version}` is none of the machine's schemaVersions"
            yield contract.problem(place, what, "add it there, or drop it here")
        if isinstance(entry, dict) and "schema" in entry:
            validators[version] = jsonschema_rs.Draft202012Validator(to_json_schema(entry["schema"], contract.document))
        else:
            yield contract.problem(place, f"`{version}` has no `schema`", "add it")
    for pointer, node in _nodes(contract.document, inside_examples=True):
        if not isinstance(node, dict) or not isinstance(node.get("schemaVersion"), str):
            continue
        validator = validators.get(node["schemaVersion"])
        if validator is not None and "validatedOutput" in node:
            for error in validator.iter_errors(node["validatedOutput"]):
                what = f"the example's output is not of its schemaVersion: {error.message}"
                yield contract.problem(f"{pointer}/validatedOutput", what, "correct the example or the schema")


RULES: tuple[Callable[[Contract], Iterator[Problem]], ...] = (
    _references,
    _examples,
    _operations,
    _machine,
    _rows,
    _output_schemas,
    _register,
)


def _pointer(path: Iterable[Any]) -> str:
    return "".join(f"/{escape(str(token))}" for token in path)


def _exists(document: Any, pointer: str) -> bool:
    try:
        at_pointer(document, pointer)
    except KeyError:
        return False
    return True


def _leads(contract: Contract, node: Any) -> bool:
    """Whether a value's reference, if it has one, leads to an object."""
    if isinstance(node, dict) and isinstance(node.get("$ref"), str):
        try:
            contract.resolve(node)
        except KeyError:
            return False
    return True


def _nodes(document: Any, *, inside_examples: bool = False) -> Iterator[tuple[str, Any]]:
    """Every value of the document with its pointer, the machine and the register left out."""
    skipped = {"x-state-machine", "x-requirements"} | (set() if inside_examples else {"example", "examples"})
    stack: list[tuple[str, Any]] = [("", document)]
    while stack:
        pointer, node = stack.pop()
        yield pointer, node
        if isinstance(node, dict):
            stack += [(f"{pointer}/{escape(str(key))}", value) for key, value in node.items() if key not in skipped]
        elif isinstance(node, list):
            stack += [(f"{pointer}/{i}", item) for i, item in enumerate(node)]
