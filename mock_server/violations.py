"""Our words for what a request breaks: every violation with its place, rule, expected, actual, and the mend."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mock_server.calls import Violation
from openapi.documents import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    "additionalProperties": "is not known here; leave it out",
}


def body_violations(
    errors: Iterable[jsonschema_rs.ValidationError], redactor: Redactor, secret: frozenset[str] = frozenset()
) -> list[Violation]:
    """Every violation that a schema validator found in a body; ``secret`` names properties whose value is never shown."""
    found = []
    for error in errors:
        pointer = "".join(f"/{escape(str(token))}" for token in error.instance_path)
        found += list(_violations(error, pointer, redactor, secret))
    return found


def parameter_violations(
    errors: Iterable[jsonschema_rs.ValidationError], name: str, redactor: Redactor
) -> list[Violation]:
    """Every violation that a schema validator found in the header, query or path parameter ``name``."""
    return [violation for error in errors for violation in _violations(error, name, redactor, frozenset())]


def missing_parameter(name: str, kind: str) -> Violation:
    """A required parameter that is not there."""
    return Violation(name, "required", "a value", None, f"{name} is required; send it as a {kind}")


def unreadable(rule: str, expected: str, actual: str | None, message: str) -> Violation:
    """A body that is no JSON at all: rule ``empty``, ``utf8``, ``json`` or ``depth``."""
    return Violation("", rule, expected, actual, message)


def _violations(
    error: jsonschema_rs.ValidationError, place: str, redactor: Redactor, secret: frozenset[str]
) -> Iterable[Violation]:
    kind: Any = error.kind
    rule: str = kind.name
    shown = place or "the body"
    if rule == "required":
        name = kind.property
        pointer = f"{place}/{escape(name)}"
        yield Violation(pointer, rule, "a value", None, f"{pointer} is required")
        return
    if rule in ("additionalProperties", "unevaluatedProperties"):
        for name in kind.unexpected:
            pointer = f"{place}/{escape(redactor.text(name))}"
            yield Violation(pointer, rule, "no such property", "present", f"{pointer} {_SENTENCES['additionalProperties']}")
        return
    actual = "[redacted]" if place.rpartition("/")[2] in secret else _short(error.instance, redactor)
    expected = _expected(kind)
    sentence = _SENTENCES.get(rule)
    if rule == "type" and error.instance is None:
        message = f"{shown} must not be null; it is of type {_plain(expected)}"
    elif sentence is not None:
        message = f"{shown} {sentence.format(_plain(expected))}"
    else:
        message = f"{shown} breaks the rule `{rule}`"
    yield Violation(place, rule, expected, actual, message)


def _expected(kind: Any) -> Any:
    """What the rule asks for: its value in the schema."""
    if kind.name in ("anyOf", "oneOf", "not"):
        return "one of the alternatives that the specification lists"
    if kind.name == "type":
        return kind.types[0] if len(kind.types) == 1 else kind.types
    return kind.value


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def _short(value: Any, redactor: Redactor) -> Any:
    """The value itself when it is short, otherwise its JSON text cut; never a secret."""
    safe = redactor.data(value)
    text = safe if isinstance(safe, str) else json.dumps(safe, ensure_ascii=False)
    return safe if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
