"""Seeded faults of the ``Idempotency-Key`` with two bodies: which are the same, and what becomes of another one."""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.calls import Refusal
from mock_server.faults.edits import error, part
from mock_server.hub.api import HubApi
from mock_server.hub.submission import Submissions
from mock_server.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable

    from mock_server.calls import Answer, Call

KEY = b"idempotency-key"


class AnyBody(Submissions):
    """Looks at the key alone (SF-68)."""

    @staticmethod
    def digest(body: Any) -> str:
        return ""


class CreatesAndRefuses(HubApi):
    """Finds out that the key was used when the jobs are queued already."""

    async def submit(self, call: Call) -> Answer:
        try:
            return await super().submit(call)
        except Refusal as refusal:
            if refusal.code == "idempotency_key_reused":
                with contextlib.suppress(Refusal):
                    await super().submit(_without_key(call))
            raise


def _without_key(call: Call) -> Call:
    call.headers = {name: value for name, value in call.headers.items() if name != KEY}
    return call


def digests(text: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Bodies are compared otherwise: by what ``text`` makes of them."""

    class Compares(Submissions):
        """Compares something else."""

        @staticmethod
        def digest(body: Any) -> str:
            made = text(body)
            raw = made if isinstance(made, bytes) else orjson.dumps(made, option=orjson.OPT_SORT_KEYS)
            return hashlib.sha256(raw).hexdigest()

    return part(submissions=Compares)


def unordered(value: Any) -> Any:
    """A JSON value whose lists are sorted."""
    if isinstance(value, dict):
        return {key: unordered(item) for key, item in value.items()}
    return sorted(map(unordered, value), key=orjson.dumps) if isinstance(value, list) else value


def with_defaults(body: Any) -> Any:
    """A submission in which defaults are said."""
    items = body.get("items") if isinstance(body, dict) else None
    if not isinstance(items, list):
        return body
    return {**body, "items": [{"priority": 0, **item} if isinstance(item, dict) else item for item in items]}


def texts(value: Any) -> Any:
    """A JSON value whose scalars are texts."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return str(int(value)) if isinstance(value, bool) else str(value)


class ComparesBytes(HubApi):
    """Compares bodies as they were sent."""

    async def submit(self, call: Call) -> Answer:
        sent = hashlib.sha256(call.exchange.request_body).hexdigest()
        setattr(self.submissions, "digest", lambda _: sent)  # noqa: B010 - of one request, which is not interrupted
        return await super().submit(call)


class RulesFirst(HubApi):
    """Judges the body's rules before it looks the key up."""

    async def submit(self, call: Call) -> Answer:
        self.submissions.judge(call.world.hub, orjson.loads(orjson.dumps(call.body)), call.world.redactor)
        return await super().submit(call)


def _fault(id_: str, title: str, *rules: str, **how: Any) -> Mutant:
    return Mutant(f"hub-idempotency.{id_}", title, rules, **how)


FAULTS = (
    _fault(
        "any-body",
        "another body under a key gets the first answer",
        "HUB-IDEM-55",
        "HUB-IDEM-58",
        "HUB-IDEM-57",
        parts=part(submissions=AnyBody),
    ),
    _fault(
        "reused-409",
        "another body under a key is 409",
        "HUB-IDEM-55",
        "HUB-IDEM-58",
        edit=error("idempotency_key_reused", status=409),
    ),
    _fault(
        "creates-and-refuses",
        "another body under a key is refused, and queued all the same",
        "HUB-IDEM-56",
        "HUB-SUB-15",
        parts=part(api=CreatesAndRefuses),
    ),
    _fault("bytes", "bodies are compared as they were sent", "HUB-IDEM-57", parts=part(api=ComparesBytes)),
    _fault("key-order", "bodies with keys in another order are different", "HUB-IDEM-57", parts=digests(orjson.dumps)),
    _fault(
        "lists-unordered",
        "lists are compared without their order",
        "HUB-IDEM-57",
        "HUB-IDEM-55",
        parts=digests(unordered),
    ),
    _fault(
        "with-defaults",
        "a default that is said is the same body",
        "HUB-IDEM-57",
        "HUB-IDEM-55",
        parts=digests(with_defaults),
    ),
    _fault("as-texts", "scalars are compared as texts", "HUB-IDEM-57", "HUB-IDEM-55", parts=digests(texts)),
    _fault(
        "rules-first",
        "a bad body under a used key is 400",
        "HUB-IDEM-58",
        "HUB-ERR-65",
        "HUB-IDEM-55",
        parts=part(api=RulesFirst),
    ),
)
