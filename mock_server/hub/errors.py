"""Who may call the hub, and how it says that a request is refused."""

from __future__ import annotations

import secrets
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from mock_server.app import Errors
from mock_server.calls import Answer, Refusal
from mock_server.hub.accounts import ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mock_server.calls import Exchange, Violation
    from openapi.contract import ErrorCode

REQUEST_ID = "x-request-id"


class BearerJudge:
    """Asks for the API key under the base path, before anything else is judged (HUB-AUTH-50 to 53)."""

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path

    def judge(self, path: str, headers: Mapping[bytes, bytes], exchange: Exchange) -> None:
        """Note whose key the request carries. Raises :class:`Refusal` where it is nobody's."""
        if not path.startswith(self.base_path) or path[len(self.base_path) :][:1] not in ("", "/"):
            return
        given = headers.get(b"authorization", b"")
        scheme, _, token = given.partition(b" ")
        if scheme.lower() == b"bearer":
            for account, known in zip(ACCOUNTS, exchange.world.options.hub.tokens, strict=True):
                if compare_digest(token.strip(), known.encode()):
                    exchange.caller = account
                    return
        what = "carries no API key" if not given else "carries an API key that is wrong"
        raise Refusal("unauthorized", f"The header authorization {what}; send `Authorization: Bearer <API key>`.")


def request_id(exchange: Exchange) -> str:
    """The id of a request, made when its answer is first thought of (HUB-GET-26, HUB-ERR-50, 52)."""
    if exchange.request_id is None:
        exchange.request_id = f"req_{secrets.token_hex(8)}"
    return exchange.request_id


class HubErrors(Errors):
    """The hub's error body: ``{"error": {"code", "message"}, "requestId"}``; codes are in lower case."""

    def named(self, code: str) -> ErrorCode:
        """A code of ``x-errors``; what judges requests of all APIs names it in capitals."""
        return self.codes[code if code in self.codes else code.lower()]

    def answer(self, refusal: Refusal, exchange: Exchange) -> Answer:
        """The refusal's answer, without secrets."""
        code = self.named(refusal.code)
        exchange.error_code, exchange.details = code.code, refusal.details
        error: dict[str, Any] = {"code": code.code, "message": exchange.world.redactor.text(refusal.message)}
        if refusal.details:
            error["details"] = [self.entry(violation) for violation in refusal.details]
        body = {"error": error, "requestId": request_id(exchange)}
        return Answer(code.status, body, {**refusal.headers, REQUEST_ID: request_id(exchange)})

    def headers(self, exchange: Exchange) -> dict[str, str]:
        """Headers of every failure (HUB-ERR-52)."""
        return {REQUEST_ID: request_id(exchange)}

    def told(self, code: ErrorCode, message: str, exchange: Exchange) -> dict[str, Any]:
        """The error body of any code."""
        error = {"code": code.code.lower(), "message": exchange.world.redactor.text(message)}
        return {"error": error, "requestId": request_id(exchange)}

    @staticmethod
    def entry(violation: Violation) -> dict[str, Any]:
        """An entry of ``details``: the item at fault, null where it is the body itself (HUB-SUB-54, 56, 58)."""
        index, field = place(violation.location)
        return {"index": index, "field": field, "message": violation.message, "rule": violation.rule}


def place(location: str) -> tuple[int | None, str | None]:
    """Item and field of a JSON Pointer into a submission, or of a parameter's name."""
    tokens = location.split("/")[1:] if location.startswith("/") else [location]
    if tokens[0] == "items" and len(tokens) > 1 and tokens[1].isdecimal():
        return int(tokens[1]), tokens[2] if len(tokens) > 2 else None
    return None, tokens[0] or None
