"""A world with a model beside it, and a Runtime that is started in it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
TOKEN = "runtime-token-of-tests"
MAIN = ROOT / "conformance/examples/python_runtime/__main__.py"
_LEFT_OUT = ("content-length", "transfer-encoding", "connection", "date", "host")
OUTPUTS = {
    "analysis_output_v1": {"learningState": "in_progress"},
    "quiz_output_v1": {"questions": [{"question": "q", "answer": "a"}]},
    "flashcard_output_v1": {"cards": [{"front": "f", "back": "b"}]},
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client may go away at any time."""


class Front:
    """Stands before a mock and answers model calls itself: by ``self.model(body)``, a status and a body, or None."""

    def __init__(self, mock: str) -> None:
        self.mock = urlsplit(mock)
        self.calls: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.model: Callable[[dict[str, Any]], tuple[int, Any] | None] = self.good
        self.ended = threading.Event()
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Keep the tests' output clean."""

            def handle_all(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length") or 0))
                if "/__model__/" in self.path:
                    front.answer_model(self, content)
                else:
                    front.forward(self, content)

            do_GET = do_POST = handle_all

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def good(self, body: dict[str, Any]) -> tuple[int, Any]:
        """A completion of the version that the prompt speaks of."""
        text = body["messages"][0]["content"]
        version = next(
            (v for v, word in (("quiz_output_v1", "questions"), ("flashcard_output_v1", "cards")) if word in text), ""
        )
        return 200, completion(json.dumps(OUTPUTS[version or "analysis_output_v1"]))

    def answer_model(self, handler: BaseHTTPRequestHandler, content: bytes) -> None:
        body = json.loads(content)
        self.calls.append(body)
        self.keys.append(handler.headers["authorization"])
        answer = self.model(body)
        if answer is None:
            self.ended.wait(60)
            handler.close_connection = True
            return
        status, said = answer
        if body.get("stream") and status == 200:
            self.stream(handler, said)
            return
        data = json.dumps(said).encode()
        handler.send_response(status)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def stream(self, handler: BaseHTTPRequestHandler, said: dict[str, Any]) -> None:
        text = said["choices"][0]["message"]["content"]
        chunks = [{"choices": [{"delta": {"content": part}}]} for part in (text[:5], text[5:])]
        chunks.append({"choices": [], "usage": said["usage"]})
        data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        handler.send_response(200)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data.encode())

    def forward(self, handler: BaseHTTPRequestHandler, content: bytes) -> None:
        connection = http.client.HTTPConnection(self.mock.netloc, timeout=60)
        headers = {name: value for name, value in handler.headers.items() if name.lower() not in _LEFT_OUT}
        headers["host"] = urlsplit(self.url).netloc
        try:
            connection.request(handler.command, self.mock.path + handler.path, content or None, headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            handler.close_connection = True
            return
        finally:
            connection.close()
        handler.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in _LEFT_OUT:
                handler.send_header(name, value)
        if response.status != 204:
            handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()


def completion(text: str) -> dict[str, Any]:
    """A provider's answer with this text."""
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    }


class Place:
    """A world seen from its control plane, behind a front."""

    def __init__(self, world: str, front: Front) -> None:
        self.world, self.front = world, front
        self.session = requests.Session()
        self.session.trust_env = False
        self.health_port = free_port()

    def state(self, state: str, **params: Any) -> Any:
        """Set up a provider state; its values."""
        answer = self.session.post(
            f"{self.world}/__control__/provider-states/runtime-api",
            json={"action": "setup", "state": state, "params": params},
            timeout=30,
        )
        assert answer.ok, answer.text
        return answer.json()

    def job(self, **params: Any) -> str:
        """A job of its own."""
        made: str = self.state("job", **params)["jobId"]
        return made

    def fault(self, fault: dict[str, Any], *, when: dict[str, Any] | None = None, **match: Any) -> None:
        """A fault plan."""
        plan = {"match": match, "fault": fault, "when": when or {}}
        answer = self.session.post(f"{self.world}/__control__/faults", json=plan, timeout=30)
        assert answer.ok, answer.text

    def columns(self, job: str) -> Any:
        """A job's row."""
        return self.state("inspect-job", jobId=job)

    def reaches(self, job: str, *statuses: str) -> Any:
        """The row, once the job's state is one of these."""
        return until(lambda: row if (row := self.columns(job))["status"] in statuses else None, f"{job}: {statuses}")

    def journal(self, operation: str, job: str | None = None) -> list[dict[str, Any]]:
        """The exchanges of an operation, oldest first."""
        params = {"operationId": operation, "limit": "1000", **({"jobId": job} if job else {})}
        answer = self.session.get(f"{self.world}/__control__/journal", params=params, timeout=30)
        assert answer.ok, answer.text
        entries: list[dict[str, Any]] = answer.json()["entries"]
        return entries

    def bodies(self, operation: str, job: str | None = None) -> list[Any]:
        """What was sent."""
        return [json.loads(entry["requestBody"] or "null") for entry in self.journal(operation, job)]

    def logs(self) -> list[dict[str, Any]]:
        """Every log that was sent."""
        return [log for body in self.bodies("submitInvocationLogs") for log in body["logs"]]

    def health(self) -> Any:
        """What the Runtime says of itself."""
        answer = self.session.get(f"http://127.0.0.1:{self.health_port}/internal/runtime/health", timeout=5)
        assert answer.status_code == 200
        return answer.json()

    @contextlib.contextmanager
    def runtime(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Start the Runtime by its path; killed at the end, if it still runs."""
        given = {
            "API_BASE_URL": self.front.url,
            "RUNTIME_SERVICE_TOKEN": TOKEN,
            "RUNTIME_INSTANCE_ID": "runtime-of-tests",
            "RUNTIME_HEALTH_PORT": str(self.health_port),
            "POLL_INTERVAL_MS": "100",
            "HEARTBEAT_INTERVAL_MS": "500",
            "MODEL_TIMEOUT_MS": "5000",
            **environment,
        }
        process = subprocess.Popen(
            [sys.executable, str(MAIN), *arguments],
            env={"PATH": os.environ["PATH"], **given},
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def until(look: Callable[[], Any], what: str, seconds: float = 20) -> Any:
    """What ``look`` gives, once it gives something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds} s: {what}")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
