"""One call of the model, and what its answers mean. Whatever comes of a call, it has its log."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx

from conformance.examples.python_runtime.failures import JobFailed
from conformance.examples.python_runtime.jobs import now

if TYPE_CHECKING:
    from conformance.examples.python_runtime.inputs import Credential
    from conformance.examples.python_runtime.jobs import Hold
    from conformance.examples.python_runtime.runtime import Runtime

Messages = list[dict[str, str]]
_PRICE_IN, _PRICE_OUT = 0.27, 1.1  # of a million tokens


@dataclass(frozen=True)
class Completion:
    """What the model wrote. Token counts that it did not tell are 0 (RT-LOG-73)."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: int = 0

    def usage(self) -> dict[str, Any]:
        """As results and logs tell it (RT-RES-10)."""
        return {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.input_tokens + self.output_tokens,
            "latencyMs": self.latency_ms,
            "costEstimate": round((self.input_tokens * _PRICE_IN + self.output_tokens * _PRICE_OUT) / 1e6, 6),
        }


class Model:
    """Calls the model; redirects are not followed, so the key stays where it belongs (RT-CRED-75)."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.config = runtime, runtime.config
        self._client: httpx.AsyncClient | None = None

    @property
    def client(self) -> httpx.AsyncClient:
        """Connections, made when they are first needed: reading certificates takes time."""
        if self._client is None:
            limits = httpx.Limits(max_keepalive_connections=None if self.config.keep_alive else 0)
            self._client = httpx.AsyncClient(trust_env=False, timeout=None, limits=limits, follow_redirects=False)  # noqa: S113
        return self._client

    async def call(self, hold: Hold, credential: Credential, messages: Messages, number: int) -> Completion:
        """One call, the job's ``number``-th in this run (from 0). Raises :class:`JobFailed`."""
        hold.check()
        trace, started = self.trace_id(), now()
        completion, code = Completion(""), "ABORTED"
        try:
            completion = await self.ask(hold, credential, messages)
        except JobFailed as failed:
            code = failed.failure.code
            raise
        else:
            code = ""
        finally:  # also where the call is cancelled half-way (RT-LOG-70)
            completion = Completion(
                completion.text, completion.input_tokens, completion.output_tokens, _milliseconds(started)
            )
            self.log(hold, credential, completion, number, trace, code)
        return completion

    def log(
        self, hold: Hold, credential: Credential, completion: Completion, number: int, trace: str, code: str
    ) -> None:
        """Hand on the log of a call; ``code`` is empty where it gave a completion."""
        self.runtime.logs.add(
            {
                "jobId": hold.job.id,
                "runtimeInstanceId": self.config.instance_id,
                "traceId": trace,
                "correlationId": hold.correlation_id,
                "provider": credential.provider,
                "model": credential.model,
                "apiKeyMode": hold.job.api_key_mode,
                "credentialId": hold.job.credential_id,
                "promptName": hold.job.type,
                "promptVersion": hold.job.prompt_version,
                "outputSchemaVersion": hold.job.output_version,
                **completion.usage(),
                "success": not code,
                "errorCode": code or None,
                "retryCount": number,
            }
        )

    def trace_id(self) -> str:
        """A name for one call (RT-LOG-71)."""
        return f"trace-{uuid4().hex}"

    async def ask(self, hold: Hold, credential: Credential, messages: Messages) -> Completion:
        """Send the request; a time limit of its own. Raises :class:`JobFailed`."""
        del hold
        try:
            async with asyncio.timeout(self.config.model_timeout):
                if self.config.stream:
                    return await self.streamed(credential, messages)
                return await self.plain(credential, messages)
        except (TimeoutError, httpx.TimeoutException):
            raise self.timed_out() from None
        except httpx.TransportError as error:
            raise self.broken(error) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise JobFailed("INTERNAL_ERROR", "The model could not be called", type(error).__name__) from None

    def url(self, credential: Credential) -> str:
        """Where completions are asked for (RT-CRED-73)."""
        return f"{credential.base_url}/chat/completions"

    def request(self, credential: Credential, messages: Messages) -> tuple[dict[str, str], bytes]:
        """Headers and body."""
        headers = {"authorization": f"Bearer {credential.key}", "content-type": "application/json"}
        body: dict[str, Any] = {
            "model": credential.model,
            "messages": messages,
            "temperature": 0,
            "response_format": {"type": "json_object"},
        }
        if self.config.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if not self.config.keep_alive:
            headers["connection"] = "close"
        return headers, json.dumps(body).encode()

    async def plain(self, credential: Credential, messages: Messages) -> Completion:
        """The completion in one piece."""
        headers, content = self.request(credential, messages)
        response = await self.client.post(self.url(credential), headers=headers, content=content)
        if not response.is_success:
            raise self.refused(response)
        return self.completion(response.content)

    def completion(self, content: bytes) -> Completion:
        """What a success says. Raises :class:`JobFailed` where it is no completion (RT-RETRY-63)."""
        try:
            body = json.loads(content)
            text = body["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError):
            text = None
        if not isinstance(text, str):
            raise JobFailed("TEMPORARY_PROVIDER_ERROR", "The model's answer is no completion")
        return Completion(text, *self.tokens(body.get("usage")))

    async def streamed(self, credential: Credential, messages: Messages) -> Completion:
        """The completion in chunks; one that does not end as it should is broken off."""
        headers, content = self.request(credential, messages)
        pieces: list[str] = []
        tokens, ended, chunks = (0, 0), False, 0
        async with self.client.stream("POST", self.url(credential), headers=headers, content=content) as response:
            if not response.is_success:
                raise self.refused(response)
            async for line in response.aiter_lines():
                name, _, data = line.partition(":")
                if name != "data":
                    continue
                if data.strip() == "[DONE]":
                    ended = True
                    break
                chunk = _object(data)
                chunks += "choices" in chunk
                pieces.append(_delta(chunk))
                tokens = self.tokens(chunk["usage"]) if isinstance(chunk.get("usage"), dict) else tokens
        if not chunks:
            raise JobFailed("TEMPORARY_PROVIDER_ERROR", "The model's answer is no completion")
        if not ended:
            raise JobFailed("NETWORK_ERROR", "The model's answer broke off")
        return Completion("".join(pieces), *tokens)

    def tokens(self, usage: Any) -> tuple[int, int]:
        """Tokens in and out; 0 where they are not told."""
        usage = usage if isinstance(usage, dict) else {}
        return _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))

    def refused(self, response: httpx.Response) -> JobFailed:
        """The failure for a status. Its body is left unread: it may repeat the key."""
        status = response.status_code
        return JobFailed(self.code(status), f"The model answered {status}", f"HTTP {status}")

    def code(self, status: int) -> str:
        """The class of a status."""
        if status in (401, 402, 403):
            return "INVALID_CREDENTIAL"
        if status == 408:
            return "MODEL_TIMEOUT"
        if status == 429:
            return "MODEL_RATE_LIMIT"
        return "MODEL_REQUEST_REFUSED" if 400 <= status < 500 else "TEMPORARY_PROVIDER_ERROR"

    def timed_out(self) -> JobFailed:
        """No answer in time."""
        return JobFailed("MODEL_TIMEOUT", f"The model did not answer within {self.config.model_timeout:g} s")

    def broken(self, error: Exception) -> JobFailed:
        """The connection broke."""
        return JobFailed("NETWORK_ERROR", "The connection to the model broke", type(error).__name__)

    async def close(self) -> None:
        """Let go of the connections."""
        if self._client is not None:
            await self._client.aclose()


def _milliseconds(started: float) -> int:
    return max(0, round((now() - started) * 1000))


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise JobFailed("TEMPORARY_PROVIDER_ERROR", "A chunk of the model's answer can't be read")
    return value


def _delta(chunk: dict[str, Any]) -> str:
    try:
        text = chunk["choices"][0]["delta"].get("content")
    except (LookupError, TypeError, AttributeError):
        return ""
    return text if isinstance(text, str) else ""
