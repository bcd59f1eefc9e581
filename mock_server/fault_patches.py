"""JSON Patch (RFC 6902) as a fault: whether its operations are sound, and a body as they leave it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import orjson
from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, JsonPointerException

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NEEDED = {"add": "value", "replace": "value", "test": "value", "move": "from", "copy": "from"}


def unsound(operations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What RFC 6902 has against operations whose schema holds: place below them, what is wrong, the mend."""
    for i, operation in enumerate(operations):
        kind, pointers = operation["op"], {"path": operation["path"]}
        needed = _NEEDED.get(kind)
        if needed is not None and needed not in operation:
            yield f"/{i}", f"`{kind}` has no `{needed}`", f"give it one (RFC 6902, section 4: `{kind}`)"
        if needed == "from" and "from" in operation:
            pointers["from"] = operation["from"]
        broken = False
        for name, text in pointers.items():
            try:
                JsonPointer(text)
            except JsonPointerException:
                broken = True
                mend = "begin it with /, and write ~0 for ~ and ~1 for / in names"
                yield f"/{i}/{name}", f"`{text}` is no JSON Pointer", mend
        if broken:
            continue
        if kind == "remove" and not operation["path"]:
            yield f"/{i}/path", "removes the whole answer", "use replace to put another value in its place"
        if kind == "move" and operation["path"].startswith(f"{operation.get('from')}/"):
            yield f"/{i}/path", "moves a value into itself", "use copy, or another path"


def patched(operations: Sequence[Mapping[str, Any]], body: bytes) -> bytes:
    """The body with the operations applied, all or none; unchanged where it is no JSON, or they can't be applied."""
    try:
        before = orjson.loads(body)
        told = orjson.dumps(before)
        # A copy: operations put their own values in place, and later ones change these.
        after = orjson.dumps(JsonPatch(copy.deepcopy(list(operations))).apply(before, in_place=True))
    except (JsonPatchException, JsonPointerException, ValueError, TypeError, RecursionError):
        return body
    return body if after == told else after
