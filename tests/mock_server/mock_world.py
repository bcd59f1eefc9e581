"""A served mock and its worlds, as a client sees them."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

KEY = "test-internal-key"
SERVE = [sys.executable, "-c", "from mock_server.serve import serve_command; serve_command()"]


def start(*options: str) -> tuple[subprocess.Popen[str], str]:
    """A server process and its base URL, once it answers."""
    process = subprocess.Popen(
        [*SERVE, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    if not line:
        _, errors = process.communicate(timeout=10)
        raise AssertionError(f"the server did not start: {errors}")
    ready = json.loads(line)
    assert ready["event"] == "ready"
    return process, ready["baseUrl"]


def stop(process: subprocess.Popen[str]) -> str:
    """What the server wrote on standard error; it is ended."""
    process.terminate()
    _, errors = process.communicate(timeout=10)
    return errors


@dataclass
class World:
    """A world of the server, as a client sees it."""

    client: httpx.Client
    base_url: str
    path: str

    @property
    def port(self) -> int:
        """The server's port."""
        return int(self.base_url.rpartition(":")[2])

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request to the world's API, with key and instance id unless ``headers`` has others (None: none)."""
        headers = {"x-internal-api-key": KEY, "x-runtime-instance-id": "runtime-1", **options.pop("headers", {})}
        headers = {name: value for name, value in headers.items() if value is not None}
        return self.client.request(method, f"{self.base_url}{self.path}{path}", headers=headers, **options)

    def poll(self, **body: Any) -> httpx.Response:
        """A poll for every type that tests use."""
        body = {"runtimeInstanceId": "runtime-1", "supportedJobTypes": ["learning_state_analysis"], **body}
        return self.send("POST", "/internal/runtime/jobs/poll", json=body)

    def lock(self, job: str, by: str = "runtime-1") -> httpx.Response:
        """A lock."""
        return self.send("POST", f"/internal/runtime/jobs/{job}/lock", json={"runtimeInstanceId": by})

    def heartbeat(self, job: str, by: str = "runtime-1") -> httpx.Response:
        """A heartbeat."""
        return self.send("POST", f"/internal/runtime/jobs/{job}/heartbeat", json={"runtimeInstanceId": by})

    def locked(self, by: str = "runtime-1", **params: Any) -> str:
        """A job that ``by`` has locked; its id."""
        job: str = self.state("job", **params)["jobId"]
        assert self.lock(job, by).status_code == 200
        return job

    def snapshot(self, job: str, by: str = "runtime-1") -> httpx.Response:
        """Read a job's snapshot."""
        return self.send("GET", f"/internal/runtime/jobs/{job}/snapshot", headers={"x-runtime-instance-id": by})

    def resolve(self, job: str, by: str = "runtime-1", **body: Any) -> httpx.Response:
        """Resolve the credential of a job of the platform's key; ``body`` replaces and adds."""
        body = {"jobId": job, "apiKeyMode": "platform_key", "provider": "deepseek", **body}
        headers = {"x-runtime-instance-id": by}
        return self.send("POST", "/internal/runtime/model-credentials/resolve", json=body, headers=headers)

    def result(self, job: str, by: str = "runtime-1", **body: Any) -> httpx.Response:
        """Submit a result; ``body`` replaces and adds."""
        body = {
            "runtimeInstanceId": by,
            "schemaVersion": "analysis_output_v1",
            "status": "succeeded",
            "validatedOutput": {"riskLevel": "low"},
            "attemptNo": 0,
            "outputHash": "hash-1",
            **body,
        }
        return self.send("POST", f"/internal/runtime/jobs/{job}/result", json=body)

    def fail(self, job: str, by: str = "runtime-1", **body: Any) -> httpx.Response:
        """Submit a failure; ``body`` replaces and adds."""
        body = {
            "runtimeInstanceId": by,
            "errorCode": "MODEL_TIMEOUT",
            "errorMessage": "too slow",
            "retryable": True,
            **body,
        }
        return self.send("POST", f"/internal/runtime/jobs/{job}/fail", json=body)

    def logs(self, *entries: Any, **body: Any) -> httpx.Response:
        """Submit a batch of logs, each with what is required unless it says otherwise."""
        needed = {
            "jobId": "job-1",
            "provider": "deepseek",
            "model": "deepseek-chat",
            "apiKeyMode": "platform_key",
            "success": True,
            "runtimeInstanceId": "runtime-1",
        }
        body = {"logs": [needed | entry for entry in entries], **body}
        return self.send("POST", "/internal/runtime/invocation-logs", json=body)

    def inspect(self, job: str) -> dict[str, Any]:
        """Every column of a job."""
        row: dict[str, Any] = self.state("inspect-job", jobId=job)
        return row

    def control(self, method: str, path: str, **options: Any) -> httpx.Response:
        """A request to the world's control plane."""
        return self.client.request(method, f"{self.base_url}{self.path}/__control__{path}", **options)

    def state(self, state: str, **params: Any) -> Any:
        """The values of a provider state."""
        answer = self.try_state(state, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def try_state(self, state: str, **params: Any) -> httpx.Response:
        """A provider state that may be refused."""
        body = {"action": "setup", "state": state, "params": params}
        return self.control("POST", "/provider-states/runtime-api", json=body)

    def journal(self, **query: Any) -> list[dict[str, Any]]:
        """Entries of the journal."""
        entries: list[dict[str, Any]] = self.control("GET", "/journal", params=query).json()["entries"]
        return entries

    def raw(self, data: bytes, *, half_close: bool = False) -> bytes:
        """What comes back for these bytes; ``half_close`` ends our side before reading."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            received = b""
            while part := connection.recv(65536):
                received += part
            return received
