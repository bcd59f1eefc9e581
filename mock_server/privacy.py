"""What of a snapshot a Runtime may see, as ``x-privacy`` of its schema says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.documents import at_pointer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


OWN_FIELDS = ("jobId", "snapshotId", "snapshotVersion")
"""Fields of a shown snapshot that are no sections of its content."""


class Privacy:
    """The rules of one schema's ``x-privacy``; pointers lead into the document that is shown (RT-SNAP-53, 54)."""

    def __init__(self, rules: Sequence[Mapping[str, str]]) -> None:
        self._rules = rules

    def applied(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The sections that may be seen; a section whose rule points to nothing is not shown at all."""
        shown = dict(content)
        for rule in self._rules:
            section = rule["section"]
            if section not in shown:
                continue
            if "only-if" in rule and _at(content, rule["only-if"]) is not True:
                del shown[section]
            elif "only-fields-in" in rule:
                allowed = _at(content, rule["only-fields-in"]) or ()
                shown[section] = {name: value for name, value in content[section].items() if name in allowed}
        return shown


def _at(content: Mapping[str, Any], pointer: str) -> Any:
    try:
        return at_pointer(content, pointer)
    except KeyError:
        return None
