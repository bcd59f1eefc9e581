"""A request and what is asked of its answer, the same for every API; how an API answers is its :class:`Dialect`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from contract_tests.checks import CheckFailed, about, expect, is_integer
from contract_tests.transport import Request, Response, Transport

UNSET: Any = object()
"""Leave a header or field out."""


class Answer:
    """An answer that was judged as far as its caller asked."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status, self.headers = response.status, response.headers

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return self.response.json

    @property
    def fields(self) -> dict[str, Any]:
        """The body, an object. Fails the check where it is none."""
        body = self.json
        if not isinstance(body, dict):
            raise CheckFailed("a body that is an object", self.response.text[:300])
        return body

    def get(self, name: str) -> Any:
        """A field of the body. Fails the check where the body is no object or lacks it."""
        body = self.json
        if not isinstance(body, dict) or name not in body:
            raise CheckFailed(f"a body with `{name}`", self.response.text[:300], f"/{name}")
        return body[name]

    def integer(self, name: str) -> int:
        """A field of the body that is an integer (``1.0`` is one). Fails the check where it is none."""
        value = self.get(name)
        expect(is_integer(value), f"`{name}`, an integer", json.dumps(value)[:200], f"/{name}")
        return int(value)


A = TypeVar("A", bound=Answer)


class Dialect(ABC, Generic[A]):
    """How an API answers: what it makes of an answer, where an error's code stands, and what errors look like."""

    code_at: ClassVar[tuple[str, ...]]
    """The keys that lead to the code in an error's body."""
    codes: ClassVar[Mapping[str, tuple[str, int]]] = {}
    """The rule that gives a code its status: another status with the right code is told under it, once."""

    @property
    def pointer(self) -> str:
        """The place of the code, a JSON Pointer."""
        return "".join(f"/{key}" for key in self.code_at)

    @abstractmethod
    def answer(self, response: Response) -> A:
        """What a caller gets."""

    @abstractmethod
    def judge_error_shape(self, answer: Answer) -> None:
        """The error body that every failure has, rule by rule."""

    def judge_code(self, answer: Answer) -> None:
        """A failure's body, and that its status is the one of its code, where a rule gives the code one."""
        if answer.status < 400:
            return
        code = self.code_of(answer.response)
        if code is not None and code in self.codes:
            rule, status = self.codes[code]
            with about(rule, step="the status of an error code"):
                expect(answer.status == status, f"{status} {code}", self.describe(answer.response))
        self.judge_error_shape(answer)

    def code_of(self, response: Response) -> str | None:
        """The code of an error; None where there is none."""
        try:
            found = json.loads(response.content)
        except (ValueError, RecursionError):
            return None
        for key in self.code_at:
            found = found.get(key) if isinstance(found, dict) else None
        return found if isinstance(found, str) else None

    def describe(self, response: Response) -> str:
        """An answer in a line: status, error code where there is one, the start of the body."""
        code = self.code_of(response)
        if code:
            return f"{response.status} {code}"
        return f"{response.status} {response.text[:160]}".rstrip()


class Call(Generic[A]):
    """A request that is sent when it is awaited, or when one says what is expected of it."""

    def __init__(self, transport: Transport, request: Request, dialect: Dialect[A]) -> None:
        self.transport, self.request, self.dialect = transport, request, dialect

    def with_headers(self, headers: Mapping[str, Any]) -> Call[A]:
        """The same request with these headers in place of its own; ``UNSET`` takes one away."""
        changed = replace(self.request, headers=without_unset({**self.request.headers, **headers}))
        return Call(self.transport, changed, self.dialect)

    async def answers(self) -> A:
        """Whatever comes."""
        return self.dialect.answer(await self.transport.send(self.request))

    def __await__(self) -> Generator[Any, None, A]:
        """Awaited alone it takes whatever comes."""
        return self.answers().__await__()

    async def succeeds(self, status: int | None = None) -> A:
        """A success: ``status``, or any 2xx."""
        answer = await self.answers()
        wanted = f"{status}" if status else "a success (2xx)"
        good = answer.status == status if status else 200 <= answer.status < 300
        expect(good, wanted, self.dialect.describe(answer.response))
        return answer

    async def fails(self, status: int, code: str | Sequence[str]) -> A:
        """An error with exactly this status and one of these codes, in the error shape."""
        answer = await self.answers()
        codes = [code] if isinstance(code, str) else list(code)
        wanted = [f"{status} {item}" for item in codes]
        came = self.dialect.code_of(answer.response)
        if came in codes:
            self.dialect.judge_code(answer)
        expect(answer.status == status, wanted, self.dialect.describe(answer.response))
        self.dialect.judge_error_shape(answer)
        expect(came in codes, wanted, self.dialect.describe(answer.response), self.dialect.pointer)
        return answer

    async def refused(self) -> A:
        """Any error of the caller's (4xx) in the error shape: which one, a seed leaves open."""
        answer = await self.answers()
        expect(400 <= answer.status < 500, "an error (4xx)", self.dialect.describe(answer.response))
        self.dialect.judge_error_shape(answer)
        return answer


def without_unset(body: dict[str, Any]) -> dict[str, Any]:
    """An object without the fields that are to be left out."""
    return {name: value for name, value in body.items() if value is not UNSET}
