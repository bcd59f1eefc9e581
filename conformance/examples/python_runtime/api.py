"""The Runtime API's eight operations, and what their answers mean."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from conformance.examples.python_runtime.config import OUTPUT_VERSIONS, SNAPSHOT_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.examples.python_runtime.jobs import Job
    from conformance.examples.python_runtime.runtime import Runtime

PATIENCE = 3.0  # seconds for one answer


class Lost(Exception):  # noqa: N818
    """No answer came; whether the API did what it was asked is not known. The text names the kind of error alone."""


@dataclass(frozen=True)
class Answer:
    """An answer; ``body`` is None where it is no JSON."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Done."""
        return 200 <= self.status < 300

    @property
    def code(self) -> str:
        """The error code, or an empty text."""
        code = self.body.get("errorCode") if isinstance(self.body, dict) else None
        return code if isinstance(code, str) else ""

    @property
    def transient(self) -> bool:
        """Worth another try; judged by the status, whatever the code (RT-ERR-84)."""
        return self.status >= 500 or 300 <= self.status < 400 or self.status in (408, 429)

    @property
    def unauthorized(self) -> bool:
        """The token was refused: one repetition at most (RT-AUTH-61)."""
        return self.status in (401, 403)

    @property
    def lock_lost(self) -> bool:
        """The job is not ours any more (RT-HB-62)."""
        return self.status == 409 or (self.status == 404 and self.code == "JOB_NOT_FOUND")

    @property
    def cancel_requested(self) -> bool:
        """The job is to be stopped (RT-CANCEL-05)."""
        return self.headers.get("x-job-cancel-requested", "").lower() == "true"


class Api:
    """Calls the API; every call has a time limit of its own and raises :class:`Lost` where no answer came in it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.config = runtime, runtime.config
        self.client = self.connect()

    def connect(self) -> httpx.AsyncClient:
        """The connections; loading certificates takes time, so only where they are needed."""
        limits = httpx.Limits(max_keepalive_connections=None if self.config.keep_alive else 0)
        secure = self.config.base_url.startswith("https:")
        return httpx.AsyncClient(
            verify=secure,
            trust_env=False,
            limits=limits,
            timeout=None,  # noqa: S113 - every call has one of its own
            follow_redirects=False,
        )

    def headers(self, path: str, with_body: bool) -> dict[str, str]:
        """What a request carries."""
        del path
        headers = {"x-internal-api-key": self.config.token, "x-runtime-instance-id": self.config.instance_id}
        if with_body:
            headers["content-type"] = "application/json"
        if not self.config.keep_alive:
            headers["connection"] = "close"
        return headers

    def signed(self, **fields: Any) -> dict[str, Any]:
        """A body that says whose it is."""
        return {"runtimeInstanceId": self.config.instance_id, **fields}

    def url(self, path: str) -> str:
        """Where an operation is."""
        return f"{self.config.base_url}/internal/runtime{path}"

    async def call(self, method: str, path: str, body: Any = None, patience: float = PATIENCE) -> Answer:
        """One request, sent once."""
        content = None if body is None else json.dumps(body).encode()
        headers = self.headers(path, content is not None)
        try:
            async with asyncio.timeout(patience):
                response = await self.client.request(method, self.url(path), content=content, headers=headers)
        except (TimeoutError, httpx.HTTPError) as error:
            raise Lost(type(error).__name__) from None
        try:
            parsed = json.loads(response.content)
        except ValueError:
            parsed = None
        return Answer(response.status_code, parsed, response.headers)

    def poll_body(self, types: Sequence[str]) -> dict[str, Any]:
        """What we ask for."""
        return self.signed(
            supportedJobTypes=list(types),
            limit=self.config.poll_limit,
            capabilities={
                "supportedSnapshotVersions": list(SNAPSHOT_VERSIONS),
                "supportedOutputSchemaVersions": list(OUTPUT_VERSIONS),
            },
        )

    async def poll(self, types: Sequence[str]) -> Answer:
        """List jobs."""
        return await self.call("POST", "/jobs/poll", self.poll_body(types))

    async def lock(self, job: Job) -> Answer:
        """Ask for a job's lock."""
        return await self.call("POST", f"{_place(job)}/lock", self.signed())

    async def heartbeat(self, job: Job, patience: float) -> Answer:
        """Keep a job's lock."""
        return await self.call("POST", f"{_place(job)}/heartbeat", self.signed(), patience)

    async def snapshot(self, job: Job, patience: float) -> Answer:
        """Read a job's snapshot."""
        return await self.call("GET", f"{_place(job)}/snapshot", None, patience)

    async def resolve(self, job: Job, patience: float) -> Answer:
        """Get a job's credential."""
        body = {
            "jobId": job.id,
            "apiKeyMode": job.api_key_mode,
            "credentialId": job.credential_id,
            "provider": job.provider,
        }
        return await self.call("POST", "/model-credentials/resolve", body, patience)

    async def result(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
        """Submit a result."""
        return await self.call("POST", f"{_place(job)}/result", body, patience)

    async def fail(self, job: Job, body: Mapping[str, Any], patience: float) -> Answer:
        """Submit a failure."""
        return await self.call("POST", f"{_place(job)}/fail", body, patience)

    async def logs(self, entries: Sequence[Mapping[str, Any]]) -> Answer:
        """Submit invocation logs."""
        return await self.call("POST", "/invocation-logs", {"logs": list(entries)})

    async def close(self) -> None:
        """Let go of the connections."""
        await self.client.aclose()


def _place(job: Job) -> str:
    return f"/jobs/{quote(job.id, safe='')}"
