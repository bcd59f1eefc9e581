"""Builds of generated mutants (``openapi.mutation``): the reference, made from a contract with one word changed."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mock_server.app import Sender
from mock_server.mutants import Mutant
from openapi.documents import at_pointer, escape
from openapi.mutation import generated
from openapi.mutation.standing import api_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Exchange
    from openapi import Contract
    from openapi.mutation import Edit, Told

_JSON = "application/json"
_ERROR = "/components/schemas/Error"


@functools.cache
def mutants() -> dict[str, Mutant]:
    """A build for every generated mutant, by id."""
    return {id_: _mutant(edit) for id_, edit in generated().items()}


def _mutant(edit: Edit) -> Mutant:
    api = api_of(edit.id)
    if edit.told is None:
        return Mutant(edit.id, edit.sentence, edit.rules, edit=edit.change, kind=edit.kind, api=api)
    parts = functools.partial(_spoil, told=edit.told)
    return Mutant(edit.id, edit.sentence, edit.rules, parts=parts, kind=edit.kind, api=api)


def _spoil(parts: Any, told: Told) -> None:
    """Let a build tell something otherwise than its handlers do."""
    answers = Answers(parts.contract, told)

    class Spoiled(Sender):
        async def send(self, answer: Answer, exchange: Exchange, send: Any) -> None:
            body = answer.body
            if body is not None and not hasattr(body, "__aiter__"):
                body = copy.deepcopy(body)
                answers.spoil(exchange.operation_id, answer.status, body)
                answer = replace(answer, body=body)
            await super().send(answer, exchange, send)

    parts.sender = Spoiled


class Answers:
    """The bodies of one contract's answers, with one place in their schemas that is told otherwise."""

    def __init__(self, contract: Contract, told: Told) -> None:
        self._document, self._told = contract.document, told
        self._bodies: dict[tuple[str, int], Callable[[Any], Any] | None] = {}
        for operation in contract.operations.values():
            at = f"/paths/{escape(operation.path)}/{operation.method.lower()}/responses"
            for status in operation.statuses:
                schema = f"{self._target(f'{at}/{status}')}/content/{escape(_JSON)}/schema"
                if status < 400 and self._at(schema) is not None:
                    self._bodies[operation.id, status] = self._walk(schema, ())
        self._error = self._walk(_ERROR, ())

    def spoil(self, operation_id: str | None, status: int, body: Any) -> None:
        """Change a body in place."""
        change = self._error if status >= 400 else self._bodies.get((operation_id or "", status))
        if change is not None:
            change(body)

    def _at(self, pointer: str) -> Any:
        try:
            return at_pointer(self._document, pointer)
        except KeyError:
            return None

    def _target(self, pointer: str) -> str:
        node = self._at(pointer)
        while isinstance(node, dict) and "$ref" in node:
            pointer = node["$ref"].removeprefix("#")
            node = self._at(pointer)
        return pointer

    def _walk(self, pointer: str, trail: tuple[str, ...]) -> Callable[[Any], Any] | None:
        """What makes of a value of this schema the one that is told; None where there is nothing to change below it."""
        pointer = self._target(pointer)
        if pointer in trail:
            return None
        trail, node, told = (*trail, pointer), self._at(pointer), self._told
        steps: list[Callable[[Any], Any]] = []
        for i, _ in enumerate(node.get("allOf", ())):
            if inner := self._walk(f"{pointer}/allOf/{i}", trail):
                steps.append(inner)
        steps += [
            functools.partial(_property, inner, name)
            for name in node.get("properties", {})
            if (inner := self._walk(f"{pointer}/properties/{escape(name)}", trail))
        ]
        if "items" in node and (inner := self._walk(f"{pointer}/items", trail)):
            steps.append(functools.partial(_items, inner))
        if pointer == told.pointer:
            steps.append(functools.partial(_left_out, told.name) if told.name is not None else self._exchanged)
        if not steps:
            return None

        def change(value: Any) -> Any:
            for step in steps:
                value = step(value)
            return value

        return change

    def _exchanged(self, value: Any) -> Any:
        return self._told.new if value == self._told.old else value


def _property(inner: Callable[[Any], Any], name: str, value: Any) -> Any:
    if isinstance(value, dict) and name in value:
        value[name] = inner(value[name])
    return value


def _items(inner: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, list):
        value[:] = [inner(item) for item in value]
    return value


def _left_out(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        value.pop(name, None)
    return value
