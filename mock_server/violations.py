"""Our words for what a request breaks: every violation with its place, rule, expected, actual, and the mend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mock_server.calls import Violation
from openapi.documents import escape
from openapi.problems import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import jsonschema_rs

    from openapi.redaction import Redactor

_LONGEST = 120

_SENTENCES = {
    "minLength": "must have at least {0} character(s)",
    "maxLength": "must have at most {0} characters",
    "minimum": "must be at least {0}",
    "maximum": "must be at most {0}",
    "exclusiveMinimum": "must be greater than {0}",
    "exclusiveMaximum": "must be less than {0}",
    "minItems": "must have at least {0} item(s)",
    "maxItems": "must have at most {0} items",
    "minProperties": "must have at least {0} property(ies)",
    "maxProperties": "must have at most {0} properties",
    "multipleOf": "must be a multiple of {0}",
    "pattern": "must match {0}",
    "format": "must be a valid {0}",
    "enum": "must be one of {0}",
    "const": "must be {0}",
    "uniqueItems": "must not hold an item twice",
    "type": "must be of type {0}",
    "required": "is required",
}


def body_violations(
    validator: jsonschema_rs.Draft202012Validator,
    body: Any,
    redactor: Redactor,
    secret: frozenset[str] = frozenset(),
    schema: Mapping[str, Any] | None = None,
) -> list[Violation]:
    """Every violation that a validator finds in a body; values of properties named in ``secret`` are not shown.

    With the validator's ``schema`` a property that is not known is told with the nearest one.
    """
    found = []
    try:
        errors = list(validator.iter_errors(body))
    except ValueError:  # errors carry values, of 255 levels at most; no schema looks so far down
        errors = list(validator.iter_errors(_shallow(body)))
    for error in errors:
        pointer = "".join(f"/{escape(str(token))}" for token in error.instance_path)
        found += list(_violations(error, pointer, redactor, secret, schema or {}))
    return found


def _shallow(value: Any, levels: int = 100) -> Any:
    """The value without what lies deeper."""
    if isinstance(value, dict):
        return {key: _shallow(item, levels - 1) for key, item in value.items()} if levels else {}
    if isinstance(value, list):
        return [_shallow(item, levels - 1) for item in value] if levels else []
    return value


def parameter_violations(
    errors: Iterable[jsonschema_rs.ValidationError], name: str, redactor: Redactor
) -> list[Violation]:
    """Every violation that a schema validator found in the header, query or path parameter ``name``."""
    return [violation for error in errors for violation in _violations(error, name, redactor, frozenset())]


def missing_parameter(name: str, kind: str) -> Violation:
    """A required parameter that is not there."""
    return Violation(name, "required", "a value", None, f"{name} is required; send it as a {kind}")


def missing_in_mode(pointer: str, mode: str) -> Violation:
    """A property that is required in one ``apiKeyMode`` only (RT-CRED-51)."""
    return Violation(pointer, "required", "a value", None, f"{pointer} is required where apiKeyMode is {mode}")


def unreadable(rule: str, expected: str, actual: str | None, message: str) -> Violation:
    """A body that is no JSON at all: rule ``empty``, ``utf8``, ``json`` or ``depth``."""
    return Violation("", rule, expected, actual, message)


def _violations(
    error: jsonschema_rs.ValidationError,
    place: str,
    redactor: Redactor,
    secret: frozenset[str],
    schema: Mapping[str, Any] | None = None,
) -> Iterable[Violation]:
    kind: Any = error.kind
    rule: str = kind.name
    shown = place or "the body"
    if rule == "required":
        pointer = f"{place}/{escape(kind.property)}"
        yield Violation(pointer, rule, "a value", None, f"{pointer} is required")
        return
    if rule in ("additionalProperties", "unevaluatedProperties"):
        known = _properties(schema or {}, error.schema_path)
        for name in kind.unexpected:
            pointer = f"{place}/{escape(redactor.text(name))}"
            message = f"{pointer} is not known here; {nearest(name, known, 'leave it out')}"
            yield Violation(pointer, rule, "no such property", "present", message)
        return
    if rule in ("anyOf", "oneOf"):
        branches = [branch for branch in getattr(kind, "context", ()) if not _is_null(branch)]
        if len(branches) == 1:  # a nullable schema: what is wrong with it, not that it could be null
            for inner in branches[0]:
                yield from _violations(inner, place, redactor, secret)
            return
        expected: Any = [_expected(branch[0].kind) for branch in branches if branch]
    else:
        expected = _expected(kind)
    actual = "[redacted]" if not secret.isdisjoint(place.split("/")) else _short(error.instance, redactor)
    yield Violation(place, rule, expected, actual, f"{shown} {_sentence(rule, expected, error.instance)}")


def _properties(schema: Mapping[str, Any], path: Iterable[str | int]) -> list[str]:
    """The properties beside the keyword to which the path leads."""
    node: Any = schema
    for token in [*path][:-1]:
        node = node.get(token, {}) if isinstance(node, dict) else {}
    return list(node.get("properties", ())) if isinstance(node, dict) else []


def _is_null(branch: Any) -> bool:
    return len(branch) == 1 and branch[0].kind.name == "type" and _expected(branch[0].kind) == "null"


def _sentence(rule: str, expected: Any, instance: Any) -> str:
    if rule == "type" and instance is None:
        return f"must not be null; it is of type {_plain(expected)}"
    if rule in ("anyOf", "oneOf"):
        return f"must be one of {_plain(expected)}"
    sentence = _SENTENCES.get(rule)
    return sentence.format(_plain(expected)) if sentence else f"breaks the rule `{rule}`"


def _expected(kind: Any) -> Any:
    """What the rule asks for: its value in the schema."""
    if kind.name == "type":
        types = list(kind.types) if not isinstance(kind.types, str) else [kind.types]
        return types[0] if len(types) == 1 else types
    for name in ("options", "limit", "pattern", "format", "expected_value", "multiple_of"):
        if hasattr(kind, name):
            return getattr(kind, name)
    return f"`{kind.name}` as the specification has it"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _short(value: Any, redactor: Redactor) -> Any:
    """A scalar itself, cut when it is long, never a secret; of a list or an object only what it is."""
    if isinstance(value, dict):
        return f"an object with {len(value)} properties"
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    safe = redactor.data(value)
    if isinstance(safe, str) and len(safe) > _LONGEST:
        return f"{safe[:_LONGEST]}… ({len(safe)} characters)"
    return safe
