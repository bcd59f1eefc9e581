"""The Runtime API in the protocol's words: ``await api.lock(job, by="runtime-a").succeeds()``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from contract_tests.calls import UNSET as UNSET
from contract_tests.calls import Answer as Answer
from contract_tests.calls import Call as CallOf
from contract_tests.calls import Dialect, without_unset
from contract_tests.checks import about, expect, is_integer
from contract_tests.transport import Request, Response, Transport

BASE = "/internal/runtime"
KEY_HEADER = "x-internal-api-key"
INSTANCE_HEADER = "x-runtime-instance-id"
ANALYSES = ("learning_state_analysis", "weak_point_analysis", "next_action_planning")
JOB_TYPES = (*ANALYSES, "quiz_generation", "flashcard_generation")

_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
_CODE = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True)
class JobRef:
    """A job that a provider state made."""

    id: str
    user_id: str
    snapshot_id: str | None
    schema: str | None = None
    """An output schema version of its own, by which polls find it."""

    @property
    def path(self) -> str:
        """The job's path, whatever characters its id has."""
        return f"{BASE}/jobs/{quote(self.id, safe='')}"


CODES = {
    "INVALID_REQUEST": ("RT-ERR-78", 400),
    "UNAUTHORIZED": ("RT-ERR-77", 401),
    "LOCK_NOT_HELD": ("RT-ERR-75", 409),
    "JOB_CANCELLED": ("RT-ERR-76", 409),
}
"""The rule that gives a code its status."""


class RuntimeDialect(Dialect[Answer]):
    """How the Runtime API answers (seed 003 section 3)."""

    code_at = ("errorCode",)
    codes = CODES

    def answer(self, response: Response) -> Answer:
        """What came, as it is."""
        return Answer(response)

    def judge_error_shape(self, answer: Answer) -> None:
        """The error body that every failure has (seed 003 section 3)."""
        step = "the body of an error"
        with about("RT-ERR-01", step=step):
            body = answer.json
            expect(isinstance(body, dict), "an error body (an object)", answer.response.text[:200])
            for name, kind in (("statusCode", int), ("errorCode", str), ("message", str), ("timestamp", str)):
                value = body.get(name)
                good = is_integer(value) if kind is int else isinstance(value, kind)
                expect(good, f"`{name}` of type {kind.__name__}", json.dumps(value), f"/{name}")
        with about("RT-ERR-02", step=step):
            expect(
                body["statusCode"] == answer.status, f"statusCode {answer.status}", body["statusCode"], "/statusCode"
            )
        with about("RT-ERR-03", step=step):
            expect(bool(_CODE.fullmatch(body["errorCode"])), "an upper-case errorCode", body["errorCode"], "/errorCode")
        with about("RT-ERR-04", step=step):
            expect(bool(body["message"].strip()), "a message", "an empty one", "/message")
        with about("RT-ERR-05", "RT-TIME-06", step=step):
            good = bool(_TIMESTAMP.fullmatch(body["timestamp"]))
            expect(good, "a timestamp like 2026-06-11T10:00:00.000Z", body["timestamp"], "/timestamp")


DIALECT = RuntimeDialect()
Call = CallOf[Answer]
describe, judge_code, judge_error_shape = DIALECT.describe, DIALECT.judge_code, DIALECT.judge_error_shape


class RuntimeApi:
    """The operations. ``by`` is the runtimeInstanceId in header and body; a part given as ``UNSET`` is left out."""

    def __init__(self, transport: Transport, key: str) -> None:
        self.transport, self.key = transport, key

    def raw(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        body: Any = UNSET,
        by: Any = "runtime-a",
        key: Any = None,
        headers: Mapping[str, Any] | None = None,
    ) -> Call:
        """Any request below the target's base URL; ``headers`` replace the usual ones, ``UNSET`` takes one away."""
        sent: dict[str, Any] = {KEY_HEADER: self.key if key is None else key, INSTANCE_HEADER: by}
        if body is not UNSET:
            content = json.dumps(body, ensure_ascii=False).encode()
        if content is not None:
            sent["content-type"] = "application/json"
        sent |= headers or {}
        given = {name: value for name, value in sent.items() if value is not UNSET}
        return Call(self.transport, Request(method, path, given, content or b""), DIALECT)

    def poll(self, *, by: str = "runtime-a", types: Any = JOB_TYPES, limit: Any = UNSET, **fields: Any) -> Call:
        """Poll; ``fields`` are further properties of the body, e.g. ``capabilities``."""
        body = {"runtimeInstanceId": by, "supportedJobTypes": types, "limit": limit, **fields}
        return self.raw("POST", f"{BASE}/jobs/poll", body=without_unset(body), by=by)

    def lock(self, job: JobRef | str, *, by: str = "runtime-a", **fields: Any) -> Call:
        """Lock a job."""
        return self._of_job("POST", job, "lock", by, {"runtimeInstanceId": by, **fields})

    def heartbeat(self, job: JobRef | str, *, by: str = "runtime-a", **fields: Any) -> Call:
        """Heartbeat for a job."""
        return self._of_job("POST", job, "heartbeat", by, {"runtimeInstanceId": by, **fields})

    def snapshot(self, job: JobRef | str, *, by: str = "runtime-a") -> Call:
        """Read a job's snapshot."""
        return self.raw("GET", _path(job, "snapshot"), by=by)

    def resolve(
        self,
        job: JobRef | str,
        *,
        by: str = "runtime-a",
        mode: Any = "platform_key",
        credential: Any = UNSET,
        provider: Any = "deepseek",
        **fields: Any,
    ) -> Call:
        """Resolve the credential of a job; ``mode`` is ``apiKeyMode``, ``credential`` is ``credentialId``."""
        body = {"jobId": _id(job), "apiKeyMode": mode, "credentialId": credential, "provider": provider, **fields}
        return self.raw("POST", f"{BASE}/model-credentials/resolve", body=without_unset(body), by=by)

    def result(
        self,
        job: JobRef | str,
        *,
        by: str = "runtime-a",
        hash: Any = "sha256-abc123",  # noqa: A002 - the protocol's own word
        attempt: Any = 0,
        schema: Any = "analysis_output_v1",
        **fields: Any,
    ) -> Call:
        """Submit a result; ``schema`` is ``schemaVersion``, ``fields`` are further properties, or others' values."""
        body = {
            "runtimeInstanceId": by,
            "schemaVersion": schema,
            "status": "succeeded",
            "validatedOutput": {"learningState": "in_progress", "riskLevel": "low"},
            "attemptNo": attempt,
            "outputHash": hash,
        }
        return self._of_job("POST", job, "result", by, {**body, **fields})

    def fail(
        self,
        job: JobRef | str,
        *,
        by: str = "runtime-a",
        code: Any = "MODEL_TIMEOUT",
        message: Any = "DeepSeek request timed out after 30s",
        retryable: Any = True,
        **fields: Any,
    ) -> Call:
        """Submit a failure; ``code`` is ``errorCode``, ``message`` is ``errorMessage``."""
        body = {"runtimeInstanceId": by, "errorCode": code, "errorMessage": message, "retryable": retryable}
        return self._of_job("POST", job, "fail", by, {**body, **fields})

    def logs(self, *entries: Any, by: str = "runtime-a", **fields: Any) -> Call:
        """Submit a batch of invocation logs; ``fields`` are properties beside ``logs``."""
        return self.raw("POST", f"{BASE}/invocation-logs", body={"logs": list(entries), **fields}, by=by)

    async def together(self, calls: Sequence[Call]) -> list[Answer]:
        """Send calls at the same moment, on connections that are open before."""
        return [Answer(response) for response in await self.transport.send_together([call.request for call in calls])]

    async def abandoned(self, call: Call) -> None:
        """Send a call and close its connection without reading an answer."""
        await self.transport.abandon(call.request)

    def _of_job(self, method: str, job: JobRef | str, what: str, by: str, body: dict[str, Any]) -> Call:
        return self.raw(method, _path(job, what), body=without_unset(body), by=by)


def log_entry(job: JobRef | str, *, by: str = "runtime-a", **fields: Any) -> dict[str, Any]:
    """A log of one model call with what is required; ``fields`` are further properties, ``UNSET`` takes one away."""
    entry = {
        "jobId": _id(job),
        "provider": "deepseek",
        "model": "deepseek-chat",
        "apiKeyMode": "platform_key",
        "success": True,
        "runtimeInstanceId": by,
    }
    return without_unset({**entry, **fields})


def _id(job: JobRef | str) -> str:
    return job if isinstance(job, str) else job.id


def _path(job: JobRef | str, what: str) -> str:
    ref = JobRef(job, "", None) if isinstance(job, str) else job
    return f"{ref.path}/{what}"
