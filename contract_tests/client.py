"""The Runtime API in the protocol's words: ``await api.lock(job, by="runtime-a").succeeds()``."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from contract_tests.checks import CheckFailed, about, expect, is_integer
from contract_tests.transport import Request, Response, Transport

BASE = "/internal/runtime"
KEY_HEADER = "x-internal-api-key"
INSTANCE_HEADER = "x-runtime-instance-id"
ANALYSES = ("learning_state_analysis", "weak_point_analysis", "next_action_planning")
JOB_TYPES = (*ANALYSES, "quiz_generation", "flashcard_generation")

_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
_CODE = re.compile(r"[A-Z][A-Z0-9_]*")

CODES = {
    "INVALID_REQUEST": ("RT-ERR-78", 400),
    "UNAUTHORIZED": ("RT-ERR-77", 401),
    "LOCK_NOT_HELD": ("RT-ERR-75", 409),
    "JOB_CANCELLED": ("RT-ERR-76", 409),
}
"""The rule that gives a code its status: another status with the right code is told under it, once."""

UNSET: Any = object()
"""Leave a header or field out."""


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


class Call:
    """A request that is sent when it is awaited, or when one says what is expected of it."""

    def __init__(self, transport: Transport, request: Request) -> None:
        self.transport, self.request = transport, request

    async def answers(self) -> Answer:
        """Whatever comes."""
        return Answer(await self.transport.send(self.request))

    def __await__(self) -> Generator[Any, None, Answer]:
        """Awaited alone it takes whatever comes."""
        return self.answers().__await__()

    async def succeeds(self, status: int | None = None) -> Answer:
        """A success: ``status``, or any 2xx."""
        answer = await self.answers()
        wanted = f"{status}" if status else "a success (2xx)"
        good = answer.status == status if status else 200 <= answer.status < 300
        expect(good, wanted, describe(answer.response))
        return answer

    async def fails(self, status: int, code: str | Sequence[str]) -> Answer:
        """An error with exactly this status and one of these codes, in the error shape."""
        answer = await self.answers()
        codes = [code] if isinstance(code, str) else list(code)
        wanted = [f"{status} {item}" for item in codes]
        if _code_of(answer.response) in codes:
            judge_code(answer)
        expect(answer.status == status, wanted, describe(answer.response))
        judge_error_shape(answer)
        expect(answer.json["errorCode"] in codes, wanted, describe(answer.response), "/errorCode")
        return answer

    async def refused(self) -> Answer:
        """Any error of the caller's (4xx) in the error shape: which one, a seed leaves open."""
        answer = await self.answers()
        expect(400 <= answer.status < 500, "an error (4xx)", describe(answer.response))
        judge_error_shape(answer)
        return answer


def _code_of(response: Response) -> str | None:
    try:
        code = json.loads(response.content).get("errorCode")
    except (ValueError, AttributeError, RecursionError):
        return None
    return code if isinstance(code, str) else None


def describe(response: Response) -> str:
    """An answer in a line: status, error code where there is one, the start of the body."""
    code = _code_of(response)
    if code:
        return f"{response.status} {code}"
    return f"{response.status} {response.text[:160]}".rstrip()


def judge_code(answer: Answer) -> None:
    """A failure's body, and that its status is the one of its code, where a rule gives the code one."""
    code = _code_of(answer.response)
    if answer.status < 400:
        return
    if code in CODES:
        rule, status = CODES[code]
        with about(rule, step="the status of an error code"):
            expect(answer.status == status, f"{status} {code}", describe(answer.response))
    judge_error_shape(answer)


def judge_error_shape(answer: Answer) -> None:
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
        expect(body["statusCode"] == answer.status, f"statusCode {answer.status}", body["statusCode"], "/statusCode")
    with about("RT-ERR-03", step=step):
        expect(bool(_CODE.fullmatch(body["errorCode"])), "an upper-case errorCode", body["errorCode"], "/errorCode")
    with about("RT-ERR-04", step=step):
        expect(bool(body["message"].strip()), "a message", "an empty one", "/message")
    with about("RT-ERR-05", "RT-TIME-06", step=step):
        good = bool(_TIMESTAMP.fullmatch(body["timestamp"]))
        expect(good, "a timestamp like 2026-06-11T10:00:00.000Z", body["timestamp"], "/timestamp")


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
        return Call(self.transport, Request(method, path, given, content or b""))

    def poll(self, *, by: str = "runtime-a", types: Any = JOB_TYPES, limit: Any = UNSET, **fields: Any) -> Call:
        """Poll; ``fields`` are further properties of the body, e.g. ``capabilities``."""
        body = {"runtimeInstanceId": by, "supportedJobTypes": types, "limit": limit, **fields}
        return self.raw("POST", f"{BASE}/jobs/poll", body=_without_unset(body), by=by)

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
        return self.raw("POST", f"{BASE}/model-credentials/resolve", body=_without_unset(body), by=by)

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

    def _of_job(self, method: str, job: JobRef | str, what: str, by: str, body: dict[str, Any]) -> Call:
        return self.raw(method, _path(job, what), body=_without_unset(body), by=by)


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
    return _without_unset({**entry, **fields})


def _id(job: JobRef | str) -> str:
    return job if isinstance(job, str) else job.id


def _path(job: JobRef | str, what: str) -> str:
    ref = JobRef(job, "", None) if isinstance(job, str) else job
    return f"{ref.path}/{what}"


def _without_unset(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not UNSET}
