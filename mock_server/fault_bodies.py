"""Answers' bodies, spoilt by fault plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from mock_server.fault_patches import patched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OTHER_BRACKET = {ord("}"): b"]", ord("]"): b"}"}


def spoilt(fault: Mapping[str, Any], body: bytes) -> bytes | None:
    """The body as a fault of kind truncated-json, malformed-json, wrong-types, skew or patch leaves it.

    None where it has nothing to spoil: the body is empty, without such a field, or a patch can't be applied to it.
    """
    if not body:
        return None
    changed = _SPOILERS[fault["kind"]](fault, body)
    return None if changed == body else changed


def _truncated(_: Mapping[str, Any], body: bytes) -> bytes:
    return body[: len(body) // 2]


def _malformed(_: Mapping[str, Any], body: bytes) -> bytes:
    return body[:-1] + _OTHER_BRACKET.get(body[-1], b"}")


def _wrong_types(fault: Mapping[str, Any], body: bytes) -> bytes:
    field, value = fault.get("field"), orjson.loads(body)
    if field is not None:
        value = _changed(value, field, _of_another_type)
    elif isinstance(value, dict):
        value = {name: _of_another_type(item) for name, item in value.items()}
    return orjson.dumps(value)


def _skewed(fault: Mapping[str, Any], body: bytes) -> bytes:
    def shift(value: Any) -> Any:
        return value + round(fault["seconds"] * 1000) if isinstance(value, int) else value

    return orjson.dumps(_changed(orjson.loads(body), "lockUntil", shift))


def _changed(value: Any, field: str, change: Callable[[Any], Any]) -> Any:
    """A copy of a JSON value with every ``field`` changed, at any depth."""
    if isinstance(value, dict):
        return {name: change(item) if name == field else _changed(item, field, change) for name, item in value.items()}
    if isinstance(value, list):
        return [_changed(item, field, change) for item in value]
    return value


def _of_another_type(value: Any) -> Any:
    if isinstance(value, str) or value is None:
        return 0
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return {str(i): item for i, item in enumerate(value)}
    return orjson.dumps(value).decode()  # a number, true, false


_SPOILERS: dict[str, Callable[[Mapping[str, Any], bytes], bytes]] = {
    "truncated-json": _truncated,
    "malformed-json": _malformed,
    "wrong-types": _wrong_types,
    "skew": _skewed,
    "patch": lambda fault, body: patched(fault["operations"], body),
}
