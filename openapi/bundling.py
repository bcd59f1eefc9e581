"""One self-contained document out of a specification that refers to other files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.documents import Document, at_pointer, escape
from openapi.problems import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def bundle(source: Document, skip: Sequence[str] = (), files: dict[Path, Document] | None = None) -> dict[str, Any]:
    """The document with every reference to another file replaced by what it refers to.

    References within the document stay as they are. ``skip`` names root keys to leave alone; ``files`` is filled with
    every file that was read, by its path. Raises :class:`SpecError` for a reference to nowhere, to a file outside the
    folder of the specification, or in a circle.
    """
    files = {} if files is None else files
    files[source.path.resolve()] = source  # the first: references within it stay
    return {
        key: value if key in skip else _inline(value, source, f"/{escape(key)}", files, ())
        for key, value in source.data.items()
    }


def _inline(node: Any, source: Document, pointer: str, files: dict[Path, Document], trail: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_inline(item, source, f"{pointer}/{i}", files, trail) for i, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and not (reference.startswith("#") and source is next(iter(files.values()))):
        return _referred(reference, source, pointer, files, trail)
    return {key: _inline(value, source, f"{pointer}/{escape(str(key))}", files, trail) for key, value in node.items()}


def _referred(
    reference: str, source: Document, pointer: str, files: dict[Path, Document], trail: tuple[str, ...]
) -> Any:
    target, fragment = refer(reference, source, pointer, files)
    here = f"{target.path.resolve()}#{fragment}"
    if here in trail:
        raise SpecError([source.problem(pointer, f"`{reference}` refers to itself", "break the circle")])
    return _inline(at_pointer(target.data, fragment), target, fragment, files, (*trail, here))


def refer(reference: str, source: Document, pointer: str, files: dict[Path, Document]) -> tuple[Document, str]:
    """The file and JSON Pointer to which a reference at ``pointer`` of ``source`` leads; raises as :func:`bundle`."""
    name, _, fragment = reference.partition("#")
    path = (source.path.parent / name).resolve() if name else source.path.resolve()
    if "://" in reference or not path.is_relative_to(source.path.parent.resolve()):
        what = f"`{reference}` lies outside the folder of the specification"
        raise SpecError([source.problem(pointer, what, "keep all files of a specification in one folder")])
    if path not in files:
        if not path.is_file():
            what = f"`{reference}` refers to a file that does not exist"
            raise SpecError([source.problem(pointer, what, "correct the file's name")])
        files[path] = Document.read(source.path.parent / name)
    target = files[path]
    try:
        at_pointer(target.data, fragment)
    except KeyError:
        raise SpecError([source.problem(pointer, f"`{reference}` refers to nowhere", "correct the pointer")]) from None
    return target, fragment
