"""Mutants of what is described beside the machine: requests, answers, error codes, lists, limits."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from openapi.contract import METHODS
from openapi.documents import escape
from openapi.mutation.edit import Told, drop, put
from openapi.mutation.places import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi.mutation.edit import Change, Data
    from openapi.mutation.places import Places

_JSON = "application/json"
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "x-maxBytes")
_REPEAT = re.compile(r"\{(\d+),(\d+)\}")
_SCHEMAS = "/components/schemas/"


def add_shapes(places: Places) -> None:
    """Add every mutant of requests, answers, errors, lists and limits."""
    shapes = _Shapes(places)
    for pointer in shapes.reached(shapes.asked()):
        shapes.request(pointer)
    for pointer in shapes.reached(shapes.answered()):
        shapes.answer(pointer)
    shapes.rows()
    shapes.errors()
    shapes.lists()
    shapes.limits()


class _Shapes:
    def __init__(self, places: Places) -> None:
        self.places, self.document = places, places.document

    # Which schemas there are

    def operations(self) -> Iterator[tuple[str, Data, Data]]:
        """Each operation with its pointer and its path's item."""
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield f"/paths/{escape(path)}/{method}", item[method], item

    def asked(self) -> Iterator[str]:
        """Where a schema of a request stands: parameters and bodies."""
        for pointer, operation, _ in self.operations():
            above = pointer.rpartition("/")[0]
            for owner in (pointer, above):
                for i, _ in enumerate(value(self.document, f"{owner}/parameters") or ()):
                    yield f"{self.target(f'{owner}/parameters/{i}')}/schema"
            if "requestBody" in operation:
                yield f"{pointer}/requestBody/content/{escape(_JSON)}/schema"

    def answered(self) -> Iterator[str]:
        """Where a schema of an answer's body stands."""
        for pointer, operation, _ in self.operations():
            for status in operation["responses"]:
                response = self.target(f"{pointer}/responses/{status}")
                schema = f"{response}/content/{escape(_JSON)}/schema"
                if value(self.document, schema) is not None:
                    yield schema

    def target(self, pointer: str) -> str:
        """Where the value stands to which a place refers, itself where it refers to none."""
        node = value(self.document, pointer)
        while isinstance(node, dict) and "$ref" in node:
            pointer = node["$ref"].removeprefix("#")
            node = value(self.document, pointer)
        return pointer

    def reached(self, roots: Iterator[str]) -> list[str]:
        """Every schema below these, each once, by pointer, with what references lead to."""
        found: dict[str, None] = {}
        stack = list(roots)[::-1]
        while stack:
            pointer = self.target(stack.pop())
            if pointer in found:
                continue
            found[pointer] = None
            node = value(self.document, pointer)
            inner = [f"{pointer}/properties/{escape(name)}" for name in node.get("properties", {})]
            inner += [f"{pointer}/items"] if "items" in node else []
            for key in ("allOf", "anyOf", "oneOf"):
                inner += [f"{pointer}/{key}/{i}" for i, _ in enumerate(node.get(key, ()))]
            stack += inner[::-1]
        return list(found)

    def words(self, pointer: str) -> list[str]:
        """What a schema is called in ids."""
        if pointer.startswith(_SCHEMAS):
            tokens = pointer.removeprefix(_SCHEMAS).split("/")
        elif pointer.startswith("/components/parameters/"):
            tokens = pointer.split("/")[3:4]
        else:
            node = value(self.document, pointer.partition("/parameters/")[0]) or {}
            tokens = [node.get("operationId", pointer.split("/")[-1])]
            if "/parameters/" in pointer:
                tokens.append(value(self.document, pointer.removesuffix("/schema"))["name"])
        return [token for token in tokens if token not in ("properties", "schema")]

    # Requests

    def request(self, pointer: str) -> None:
        """What is asked of a request's value."""
        node, words = value(self.document, pointer), self.words(pointer)
        name = ".".join(words)
        for key in _BOUNDS:
            if key in node:
                for other in (node[key] + 1, node[key] - 1):
                    if other >= 0 or key == "minimum":
                        at = f"{pointer}/{key}"
                        sign = "more" if other > node[key] else "less"
                        what = f"{key} of {name} is {other}, not {node[key]}"
                        self.places.add("limit", [*words, key, sign], at, what, put(at, other))
        self.pattern(pointer, node, words)
        if isinstance(node.get("default"), int) and not isinstance(node["default"], bool):
            self.number(f"{pointer}/default", [*words, "default"], node["default"])
        for i, taken in enumerate(node.get("enum", ())):
            at = f"{pointer}/enum/{i}"
            what = f"`{taken}x` is taken for {name} in place of `{taken}`"
            self.places.add("enum-taken", [*words, taken], at, what, put(at, f"{taken}x"))
        for i, required in enumerate(node.get("required", ())):
            what = f"{required} of {name} may be left out"
            self.places.add(
                "required",
                [*words, required],
                f"{pointer}/properties/{required}",
                what,
                drop(f"{pointer}/required/{i}"),
            )
        if node.get("additionalProperties") is False:
            at = f"{pointer}/additionalProperties"
            self.places.add("refusal", [*words, "unknown"], at, f"{name} takes unknown properties", drop(at))
        for i, forbidden in enumerate(node.get("x-forbidden-names", ())):
            at = f"{pointer}/x-forbidden-names/{i}"
            self.places.add("refusal", [*words, forbidden], at, f"{name} takes {forbidden}", drop(at))
        for kind, rules in node.get("x-kinds", {}).items():
            for key in ("required", "refused"):
                for i, item in enumerate(rules[key]):
                    at = f"{pointer}/x-kinds/{kind}/{key}/{i}"
                    rest = [other for other in rules[key] if other != item]
                    what = f"{item} is not {key} with kind {kind}"
                    change = put(f"{pointer}/x-kinds/{kind}/{key}", rest)
                    rule_words = [*words, kind, key, item]
                    near = self.places.near(f"{pointer}/properties/{item}")
                    self.places.add("refusal", rule_words, at, what, change, rules=near)

    def pattern(self, pointer: str, node: Data, words: list[str]) -> None:
        """Patterns and formats of a request, and how often a pattern repeats."""
        name = ".".join(words)
        for key in ("pattern", "format"):
            if key in node:
                at = f"{pointer}/{key}"
                self.places.add("form", [*words, key], at, f"the {key} of {name} is not asked for", drop(at))
        found = _REPEAT.search(node.get("pattern", ""))
        if found:
            least, most = int(found[1]), int(found[2])
            changed = {(least + 1, most): "least.more", (least, most + 1): "most.more", (least, most - 1): "most.less"}
            if least:
                changed[least - 1, most] = "least.less"
            for (one, other), sign in changed.items():
                pattern = _REPEAT.sub(f"{{{one},{other}}}", node["pattern"])
                what = f"the pattern of {name} has {one} to {other} repetitions, not {least} to {most}"
                self.places.add(
                    "limit", [*words, "pattern", sign], f"{pointer}/pattern", what, put(f"{pointer}/pattern", pattern)
                )

    def number(self, at: str, words: list[str], number: int) -> None:
        """A number, one more and one less."""
        for other, sign in ((number + 1, "more"), (number - 1, "less")):
            what = f"{'.'.join(words)} is {other}, not {number}"
            self.places.add("number", [*words, sign], at, what, put(at, other))

    # Answers

    def answer(self, pointer: str) -> None:
        """What an answer shows."""
        node, words = value(self.document, pointer), self.words(pointer)
        name = ".".join(words)
        for required in node.get("required", ()):
            what = f"answers leave out {required} of {name}"
            at = f"{pointer}/properties/{escape(required)}"
            if value(self.document, at) is not None:
                change = _without(pointer, required)
                self.places.add("field", [*words, required], at, what, change, told=Told(pointer, required))
        enum = node.get("enum", ())
        for i, told in enumerate(enum):
            other = enum[(i + 1) % len(enum)] if len(enum) > 1 else f"{told}x"
            what = f"answers tell `{other}` in {name} where `{told}` is right"
            change = put(f"{pointer}/enum/{i}", other)
            self.places.add(
                "enum-told", [*words, told], f"{pointer}/enum/{i}", what, change, told=Told(pointer, None, told, other)
            )
        for key in ("maxItems",):
            if key in node:
                for limit, sign in ((node[key] + 1, "more"), (node[key] - 1, "less")):
                    at = f"{pointer}/{key}"
                    what = f"{key} of {name} is {limit}, not {node[key]}"
                    self.places.add("limit", [*words, key, sign], at, what, put(at, limit))

    def rows(self) -> None:
        """Defaults of columns, what a snapshot keeps to itself."""
        for name, schema in self.document["components"]["schemas"].items():
            at = f"{_SCHEMAS}{name}"
            for i, item in enumerate(schema.get("x-privacy", ())):
                place = f"{at}/x-privacy/{i}"
                what = f"{name} shows {item['section']} whatever it may show"
                self.places.add(
                    "refusal", [name, item["section"]], place, what, drop(place), rules=item.get("x-rules", ())
                )
            for column, item in schema.get("properties", {}).items() if "x-row" in schema else ():
                default = item.get("default")
                if isinstance(default, int) and not isinstance(default, bool):
                    self.number(f"{at}/properties/{column}/default", [name, column, "default"], default)
                elif "x-rules" in item and isinstance(default, str) and "allOf" not in item:
                    place = f"{at}/properties/{column}/default"
                    what = f"{column} of {name} is `{default}x` where none is given"
                    self.places.add(
                        "effect-replaced", [name, column, "default"], place, what, put(place, f"{default}x")
                    )

    # Errors, lists, limits

    def errors(self) -> None:
        """Statuses, names and flags of error codes."""
        rows: Data = self.document.get("x-errors", {})
        codes, statuses = list(rows), sorted({row["status"] for row in rows.values()})
        body = "/components/schemas/Error/properties"
        place = f"{body}/errorCode" if value(self.document, f"{body}/errorCode") else f"{body}/error/properties/code"
        for i, code in enumerate(codes):
            at, status = f"/x-errors/{code}", rows[code]["status"]
            other = statuses[(statuses.index(status) + 1) % len(statuses)]
            what = f"{code} is answered {other}, not {status}"
            near = [id_ for pointer in self.stating(code) for id_ in self.places.near(pointer)]
            self.places.add("status", [code, other], f"{at}/status", what, _restated(code, status, other), rules=near)
            name = codes[(i + 1) % len(codes)]
            what = f"{name} is told where {code} is right"
            change = _renamed(code, name)
            self.places.add("code", [code, name], at, what, change, rules=near, told=Told(place, None, code, name))
            if value(self.document, f"{body}/retryable") is not None:
                flag = not rows[code]["retryable"]
                what = f"{code} says that repeating {'helps' if flag else 'does not help'}"
                self.places.add(
                    "retryable",
                    [code],
                    f"{at}/retryable",
                    what,
                    put(f"{at}/retryable", flag),
                    rules=[*near, *self.places.near(f"{body}/retryable")],
                )

    def stating(self, code: str) -> list[str]:
        """Where the machine or an answer names a code."""
        found = []
        for pointer, step in self.places.steps.items():
            if code in (step.answer, step.otherwise):
                found.append(pointer)
        for name, response in self.document["components"].get("responses", {}).items():
            if code in response.get("x-error-codes", ()):
                found.append(f"/components/responses/{name}")
        for pointer, operation, _ in self.operations():
            for status, response in operation["responses"].items():
                if code in response.get("x-error-codes", ()):
                    found.append(f"{pointer}/responses/{status}")
        return found

    def lists(self) -> None:
        """Orders of lists."""
        for pointer, operation, _ in self.operations():
            if "x-list" in operation:
                listed = operation["x-list"]
                columns = self.document["components"]["schemas"][listed["entity"]]["properties"]
                self.order(f"{pointer}/x-list/order", [operation["operationId"]], listed["order"], columns)
        for name, schema in self.document["components"]["schemas"].items():
            for list_, kept in schema.get("x-row", {}).get("lists", {}).items():
                at = f"{_SCHEMAS}{name}/x-row/lists/{list_}/order"
                rules = self.places.near(f"{_SCHEMAS}{name}/properties/{kept['order'][0].removeprefix('-')}")
                self.order(at, [name, list_], kept["order"], schema["properties"], rules)

    def order(
        self, at: str, words: list[str], order: list[str], columns: Data, rules: list[str] | tuple[()] = ()
    ) -> None:
        """One order: each number reversed, neighbours exchanged."""
        for i, column in enumerate(order):
            bare = column.removeprefix("-")
            if columns[bare].get("type") == "integer":
                other = bare if column.startswith("-") else f"-{column}"
                what = f"{'.'.join(words)} is ordered by {other}, not {column}"
                self.places.add(
                    "order", [*words, bare, "reversed"], f"{at}/{i}", what, put(f"{at}/{i}", other), rules=rules
                )
            if i + 1 < len(order):
                after = order[i + 1]
                changed = [*order[:i], after, column, *order[i + 2 :]]
                what = f"{'.'.join(words)} is ordered by {after} before {column}"
                self.places.add("order", [*words, bare, "later"], f"{at}/{i}", what, put(at, changed), rules=rules)

    def limits(self) -> None:
        """The numbers of ``x-limits``."""
        for name, limit in self.document.get("x-limits", {}).items():
            if isinstance(limit, int):
                for other, sign in ((limit + 1, "more"), (limit - 1, "less")):
                    at = f"/x-limits/{name}"
                    self.places.add("limit", [name, sign], at, f"{name} is {other}, not {limit}", put(at, other))


def _without(pointer: str, name: str) -> Change:
    """A schema without a property."""

    def change(document: Data) -> None:
        node = value(document, pointer)
        node["required"] = [other for other in node["required"] if other != name]
        node["properties"].pop(name)
        if not node["required"]:
            del node["required"]

    return change


def _restated(code: str, old: int, new: int) -> Change:
    """A code of another status, documented under that one."""

    def change(document: Data) -> None:
        document["x-errors"][code]["status"] = new
        for item in document["paths"].values():
            for method in METHODS:
                responses = item.get(method, {}).get("responses", {})
                told = _resolved(document, responses.get(str(old), {}))
                if code in told.get("x-error-codes", ()):
                    other = copy.deepcopy(_resolved(document, responses.get(str(new), told)))
                    known = other["x-error-codes"] if str(new) in responses else []
                    responses[str(new)] = {**other, "x-error-codes": [*known, code]}

    return change


def _renamed(code: str, name: str) -> Change:
    """A code told as another one."""

    def change(document: Data) -> None:
        named = [*document["components"].get("responses", {}).values()]
        named += [
            response
            for item in document["paths"].values()
            for method in METHODS
            for response in item.get(method, {}).get("responses", {}).values()
        ]
        for response in named:
            if code in response.get("x-error-codes", ()):
                response["x-error-codes"] = [name if other == code else other for other in response["x-error-codes"]]

    return change


def _resolved(document: Data, item: Data) -> Any:
    while "$ref" in item:
        item = value(document, item["$ref"].removeprefix("#"))
    return item
