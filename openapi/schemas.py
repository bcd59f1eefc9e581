"""OpenAPI 3.0 schemas as JSON Schema 2020-12, which compiled validators read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.documents import at_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping

_ANNOTATIONS = frozenset(
    {"nullable", "example", "discriminator", "xml", "externalDocs", "deprecated", "readOnly", "writeOnly", "title"}
)
_PREFIX = "#/components/schemas/"


def to_json_schema(schema: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """A self-contained JSON Schema 2020-12 for ``schema`` of an OpenAPI 3.0 ``document``.

    Component schemas that it refers to are carried along under ``$defs``; ``nullable`` becomes a null type,
    Draft 4's boolean ``exclusiveMinimum``/``Maximum`` become numbers; annotations and ``x-`` keys are dropped.
    Raises ``KeyError`` for a reference to nowhere.
    """
    wanted: dict[str, None] = {}
    result: dict[str, Any] = _rewrite(schema, wanted)
    definitions: dict[str, Any] = {}
    while len(definitions) < len(wanted):
        for name in [name for name in wanted if name not in definitions]:
            definitions[name] = _rewrite(at_pointer(document, f"/components/schemas/{name}"), wanted)
    return result | ({"$defs": definitions} if definitions else {})


def _rewrite(node: Any, wanted: dict[str, None]) -> Any:
    """One schema (a mapping), rewritten; names of components that it refers to are added to ``wanted``."""
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).removeprefix(_PREFIX)
        wanted[name] = None
        return {"$ref": f"#/$defs/{name}"}
    out: dict[str, Any] = {}
    for key, value in node.items():
        if key in _ANNOTATIONS or key.startswith("x-") or key in ("exclusiveMinimum", "exclusiveMaximum"):
            continue
        if key in ("properties", "patternProperties"):
            out[key] = {name: _rewrite(item, wanted) for name, item in value.items()}
        elif key in ("allOf", "anyOf", "oneOf"):
            out[key] = [_rewrite(item, wanted) for item in value]
        elif key in ("items", "not", "additionalProperties"):
            out[key] = _rewrite(value, wanted)
        else:
            out[key] = value
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if node.get(exclusive) is True and bound in out:
            out[exclusive] = out.pop(bound)
    if node.get("nullable"):
        return _nullable(out)
    return out


def _nullable(out: dict[str, Any]) -> dict[str, Any]:
    if isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
        if "enum" in out and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        return out
    if not out:
        return out
    return {"anyOf": [out, {"type": "null"}]}
