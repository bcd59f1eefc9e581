"""What the model answers when it answers: completions, whole or in chunks, and what passes for one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from mock_server.calls import Answer
from mock_server.fault_rules import words
from mock_server.model import BASE_PATH
from mock_server.model.outputs import of_version

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from mock_server.calls import Call
    from mock_server.model.memory import Resolve
    from mock_server.model.scripts import Outcome

_BYTES_A_TOKEN = 4
_PIECES = 4
"""Chunks that a streamed text comes in, at most."""
_TEXTS = {
    "prose": "The learner makes good progress and should go on as before.",
    "empty-text": "",
    "not-object": '["low", "in_progress"]',
}
_HTML = b"<!doctype html><title>Welcome</title><p>Nothing here speaks JSON.</p>"
_TYPES = {401: "authentication_error", 402: "insufficient_balance", 403: "permission_error", 429: "rate_limit_error"}
"""Types of errors by status; other 4xx are ``invalid_request_error``, 5xx ``server_error``."""


class Parts:
    """A body that is sent part by part, and known from the beginning."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The parts, in order."""
        for part in self.parts:
            yield part


def error(status: int, message: str, *, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """The provider's error body."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code or words(status).lower()}}


def text_of(outcome: Outcome, version: str | None) -> str:
    """The text of the completion that an outcome has, for a job of that schema version."""
    kind, outputs = outcome["kind"], of_version(version)
    if kind == "text":
        return str(outcome["text"])
    if kind in _TEXTS:
        return _TEXTS[kind]
    text = orjson.dumps(outputs.broken if kind == "wrong-schema" else outputs.good(outcome.get("variant", 0))).decode()
    return text[: len(text) // 2] if kind == "cut-json" else text


def answer(call: Call, resolve: Resolve, outcome: Outcome) -> Answer:
    """What an outcome has a call answered; of one that ends the connection, what it would have been answered."""
    match outcome["kind"]:
        case "status":
            return _failure(call, outcome)
        case "no-completion":
            return Answer(200, {"object": "nothing"})
        case "not-json":
            return Answer(200, Parts(_HTML), {"content-type": "text/html; charset=utf-8"})
        case "redirect":
            there = f"http://{call.host}{call.world.path}{BASE_PATH}/stolen/v1/chat/completions"
            return Answer(outcome["status"], None, {"location": outcome.get("location", there)})
    return completion(call, text_of(outcome, resolve.output_version), outcome)


def _failure(call: Call, outcome: Outcome) -> Answer:
    status = outcome["status"]
    message = outcome.get("message", f"A model script answers this call {status}.")
    if outcome["echoKey"]:
        message += f" Authorization: {call.headers.get(b'authorization', b'').decode('latin-1')}"
    return Answer(status, error(status, message), outcome.get("headers", {}))


def completion(call: Call, text: str, outcome: Outcome) -> Answer:
    """A completion with that text, as the request wants it: whole, or as a stream of events."""
    made = _Made(
        f"chatcmpl-{secrets.token_hex(12)}",
        call.world.clock.now() // 1000,
        call.body["model"],
        "length" if outcome["kind"] == "cut-json" else "stop",
    )
    usage = _usage(call.body["messages"], text) if outcome.get("usage", True) else None
    if not call.body.get("stream"):
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": made.reason}
        body = {**made.head("chat.completion"), "choices": [choice]}
        return Answer(200, body if usage is None else {**body, "usage": usage})
    wanted = (call.body.get("stream_options") or {}).get("include_usage", False)
    lines = [orjson.dumps(chunk) for chunk in made.chunks(text, usage if wanted else None)]
    events = Parts(*(b"data: " + line + b"\n\n" for line in [*lines, b"[DONE]"]))
    return Answer(200, events, {"content-type": "text/event-stream", "cache-control": "no-cache"})


@dataclass(frozen=True, slots=True)
class _Made:
    """What all chunks of a completion have in common."""

    id: str
    created: int
    model: str
    reason: str

    def head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def chunks(self, text: str, usage: Mapping[str, int] | None) -> list[dict[str, Any]]:
        """The role, the text in pieces, why it ends, and the usage, where there is one, in a chunk of its own."""
        head = self.head("chat.completion.chunk")
        size = -(-len(text) // _PIECES) or 1
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        deltas = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in pieces), {}]
        reasons = [*[None] * (len(deltas) - 1), self.reason]
        told = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
            for delta, reason in zip(deltas, reasons, strict=True)
        ]
        if usage is None:
            return told
        return [*({**chunk, "usage": None} for chunk in told), {**head, "choices": [], "usage": usage}]


def _usage(messages: Sequence[Mapping[str, Any]], text: str) -> dict[str, int]:
    """Tokens, about as many as a tokenizer finds: one for every four bytes, and three for each message's frame."""
    asked = sum(_tokens(_text(message)) + 3 for message in messages)
    told = _tokens(text)
    return {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told}


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""
