"""The model provider, served from ``model-provider.yaml`` with the same judgement as the APIs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import openapi
from mock_server.app import Api, Errors
from mock_server.calls import Answer, Refusal
from mock_server.model import BASE_PATH, completions
from mock_server.model.sending import ModelSender
from mock_server.wire import WIRE
from openapi.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Call, Exchange
    from mock_server.model.memory import ModelCall

_OPERATION = "chatCompletions"
_VERSION = "/v1"


class Provider:
    """The provider's API over all worlds; it holds no state."""

    def __init__(self) -> None:
        contract = openapi.load("model-provider")
        self.path = contract.operations[_OPERATION].path
        # What scripts have answered on purpose is not documented; that all else is, tests see.
        self.api = Api(
            contract,
            {_OPERATION: self.complete},
            ModelErrors(contract),
            key=ModelGate(),
            validate_responses=False,
            sender=ModelSender(),
        )

    async def complete(self, call: Call) -> Answer:
        """Answer a call as the script says that fits its job."""
        model = call.exchange.model
        if model is None or model.resolve is None:
            raise Refusal("NOT_FOUND", "No such path.")
        return completions.answer(call, model.resolve, call.world.model.decide(model))


@cache
def provider() -> Provider:
    """The provider, made when a model is first called."""
    return Provider()


class ModelGate:
    """Asks for a token that a resolve made, and for the key that it handed out, before anything else is judged."""

    def judge(self, _path: str, _headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        """Raises :class:`Refusal` NOT_FOUND or UNAUTHORIZED."""
        call = exchange.model
        if call is None or call.resolve is None:
            raise Refusal("NOT_FOUND", "No resolve of this world made this address; use the `baseUrl` of an answer.")
        if call.key != "right":
            what = "carries no key" if call.key == "none" else "carries a key that this resolve did not hand out"
            raise Refusal("UNAUTHORIZED", f"The header authorization {what}; send `Authorization: Bearer <apiKey>`.")


class ModelErrors(Errors):
    """The provider's error body: ``{"error": {"message", "type", "param", "code"}}``."""

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        """The refusal's answer, without secrets; ``param`` is the first place of the body that is wrong."""
        code = self.codes[refusal.code]
        exchange.error_code, exchange.details = code.code, refusal.details
        message = exchange.world.redactor.text(refusal.message)
        param = refusal.details[0].location if refusal.details else None
        body = completions.error(code.status, message, code=code.code.lower(), param=param)
        return Answer(code.status, body, refusal.headers)


async def serve(exchange: Exchange, scope: Any, receive: Any, send: Any) -> None:
    """Serve one model call: a request below :data:`BASE_PATH` of a world."""
    served = provider()
    token, inside, raw = _split(scope)
    scheme, key = _credentials(exchange.headers)
    call = exchange.model = exchange.world.model.called(token, key, exchange.world.platform_key)
    if key and scheme != b"bearer":
        call.key = "wrong"
    call.wire = scope.get("state", {}).get(WIRE)
    if scope["method"] == "POST" and inside == served.path:
        exchange.operation_id = _OPERATION
    try:
        await served.api.asgi({**scope, "path": inside, "raw_path": raw}, receive, send)
    finally:
        _note(exchange, call, key)


def _split(scope: Any) -> tuple[str, str, bytes]:
    """The token, and what follows it and ``/v1``, decoded and as it came; a path without ``/v1`` leads nowhere."""
    raw: bytes = scope["raw_path"]
    path: str = scope["path"].removeprefix(BASE_PATH + "/")
    token, _, inside = path.partition("/")
    _, _, raw_inside = raw.removeprefix(BASE_PATH.encode() + b"/").partition(b"/")
    version = _VERSION.removeprefix("/")
    if not inside.startswith(version + "/") or not raw_inside.startswith(version.encode() + b"/"):
        return token, "/", b"/"
    return token, inside.removeprefix(version), raw_inside.removeprefix(version.encode())


def _credentials(headers: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """The scheme of a request's ``Authorization`` in lower case, and the key, which may be all that there is."""
    value = headers.get(b"authorization", b"").strip()
    scheme, _, key = value.partition(b" ")
    return scheme.lower(), key.strip() or (b"" if scheme.lower() == b"bearer" else value)


def _note(exchange: Exchange, call: ModelCall, key: bytes) -> None:
    """Tell the journal whose call it was, and nothing of a key that only its sender knows."""
    if call.resolve is not None:
        exchange.job_id, exchange.caller = call.resolve.job_id, call.resolve.caller
    if call.key == "wrong" or (call.resolve is not None and call.resolve.key is None):
        stranger = Redactor([key.decode("latin-1")])
        exchange.request_body = _without(stranger, exchange.request_body)
        exchange.response_body = _without(stranger, exchange.response_body)
        exchange.path, exchange.query = stranger.text(exchange.path), _without(stranger, exchange.query)
        exchange.headers = {
            name: value if name == b"authorization" else _without(stranger, value)
            for name, value in exchange.headers.items()
        }


def _without(redactor: Redactor, raw: bytes) -> bytes:
    text = raw.decode("latin-1")
    clean = redactor.text(text)
    return raw if clean == text else clean.encode("latin-1")
