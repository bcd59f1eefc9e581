"""What a generated mutant is: one named change of a contract's document, with the place that it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from openapi.documents import at_pointer, unescape

if TYPE_CHECKING:
    from collections.abc import Callable

Data: TypeAlias = dict[str, Any]
Change: TypeAlias = "Callable[[Data], None]"
MACHINE = "/x-state-machine"

KINDS = {
    "refusal": "a refusal is dropped",
    "guard": "the condition of a step is dropped",
    "condition": "a part of a condition is dropped",
    "boundary": "a comparison, or a timer, is moved by one instant",
    "source-added": "a step or timer is taken in one more state",
    "source-removed": "a step or timer is not taken in one of its states",
    "step": "a step is dropped",
    "steps-swapped": "a step and the next one are exchanged",
    "target": "another state is entered",
    "effect-dropped": "a column is not set",
    "effect-replaced": "a column is set to another value",
    "branch": "one branch of an expression is always taken",
    "copy": "a column of a new row is left out",
    "answer": "another status or error code is answered",
    "header": "a header is left out",
    "event": "another event is told, or none",
    "timer": "a timer is dropped",
    "number": "a number is one unit off",
    "listed": "an item of a list is left out",
    "key": "a column is left out of what makes rows the same",
    "order": "an order is reversed, or two of its columns are exchanged",
    "field": "a required field of an answer is left out",
    "enum-taken": "another text is taken in place of a request's enumerated one",
    "enum-told": "another text is told in place of an answer's enumerated one",
    "required": "a required property of a request may be left out",
    "form": "a pattern or format of a request is not asked for",
    "limit": "a limit is moved by one",
    "status": "an error code has another status",
    "code": "another error code is told",
    "retryable": "an error says the opposite of whether repeating helps",
}
"""Every kind of mutant, with what its mutants do."""


@dataclass(frozen=True, slots=True)
class Told:
    """How answers change where no text of the contract makes them: at the schema ``pointer`` the property ``name`` is
    left out, or where ``name`` is None the value ``old`` is told as ``new``.
    """

    pointer: str
    name: str | None = None
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True)
class Edit:
    """One mutant of a contract's text. ``change`` changes the document in place."""

    id: str
    kind: str
    pointer: str
    line: int
    sentence: str
    rules: tuple[str, ...]
    """The rules that are stated at the place, or where it states none near it, the narrowest place first."""
    change: Change
    told: Told | None = None
    """What a build that is made from the mutated text does not show by itself, and has to be made to."""


def parent(pointer: str) -> tuple[str, str]:
    """The pointer of the enclosing value, and the last token as a key."""
    above, _, token = pointer.rpartition("/")
    return above, unescape(token)


def put(pointer: str, value: Any) -> Change:
    """A change that replaces the value at a place, or adds it there."""

    def change(document: Data) -> None:
        above, token = parent(pointer)
        node = at_pointer(document, above)
        node[int(token) if isinstance(node, list) else token] = value

    return change


def drop(pointer: str) -> Change:
    """A change that takes the value at a place away; what it leaves empty goes with it."""

    def change(document: Data) -> None:
        above, token = parent(pointer)
        node = at_pointer(document, above)
        del node[int(token) if isinstance(node, list) else token]
        if not node and above.count("/") > 1:
            outer, name = parent(above)
            holder = at_pointer(document, outer)
            del holder[int(name) if isinstance(holder, list) else name]

    return change


def swap(pointer: str, one: int, other: int) -> Change:
    """A change that exchanges two items of a list."""

    def change(document: Data) -> None:
        items = at_pointer(document, pointer)
        items[one], items[other] = items[other], items[one]

    return change
