"""The Agent Hub of a world, as a client sees it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
from mock_world import World, start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "zqa_live_test"
STATES = "/__control__/provider-states/agent-hub"
AT_ONCE = [{"afterSeconds": 0}]
"""Attempts that are done as they start."""


@dataclass
class HubWorld:
    """A world's hub; ``token`` is the API key that is sent."""

    world: World
    token: str = TOKEN

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One request with the API key."""
        headers = {"authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        url = f"{self.world.base_url}{self.world.path}{path}"
        return self.world.client.request(method, url, headers=headers, **options)

    def try_state(self, state: str, **params: Any) -> httpx.Response:
        """The answer to a provider state."""
        url = f"{self.world.base_url}{self.world.path}{STATES}"
        return self.world.client.post(url, json={"action": "setup", "state": state, "params": params})

    def state(self, state: str, **params: Any) -> dict[str, Any]:
        """The values of a provider state."""
        answer = self.try_state(state, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, *items: dict[str, Any], **body: Any) -> list[str]:
        """The ids of the jobs that were submitted; items are of kind ai and project ``proj`` unless they say others."""
        usual = {"kind": "ai", "projectId": "proj", "prompt": "do it"}
        answer = self.send("POST", "/v1/jobs", json={"items": [{**usual, **item} for item in items or ({},)], **body})
        assert answer.status_code == 202, answer.text
        return [item["id"] for item in answer.json()["data"]["items"]]

    def job(self, id_: str) -> dict[str, Any]:
        """A job's detail."""
        answer = self.send("GET", f"/v1/jobs/{id_}")
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    def statuses(self, *ids: str) -> list[str]:
        """What each job's status is."""
        return [self.job(id_)["status"] for id_ in ids]


def made(hub: HubWorld) -> HubWorld:
    """The hub with a node whose project's jobs are done as they start."""
    hub.state("node", nodeId="node-1", projects=["proj"])
    hub.state("outcome", projectId="proj", attempts=AT_ONCE)
    return hub


@contextmanager
def served(*options: str) -> Iterator[HubWorld]:
    """The hub of a server of its own, which writes nothing on standard error."""
    process, url = start("--clock", "manual", *options)
    try:
        with httpx.Client(trust_env=False) as client:
            yield made(HubWorld(World(client, url, "")))
    finally:
        errors = stop(process)
    assert errors == ""


class Receiver:
    """A webhook receiver of a test's own; ``answers`` are the statuses it gives, the last one again and again.

    Each comes after ``delay`` real seconds; ``location`` is where they point.
    """

    def __init__(self, *answers: int, delay: float = 0, location: str | None = None) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.came = threading.Condition()
        outer, left = self, list(answers or (200,))

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = left.pop(0) if len(left) > 1 else left[0]
                time.sleep(delay)
                self.send_response(status)
                if location is not None:
                    self.send_header("location", location)
                self.send_header("content-length", "0")
                self.end_headers()
                with outer.came:
                    outer.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                    outer.came.notify_all()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def wait(self, count: int) -> list[tuple[dict[str, str], bytes]]:
        """The first ``count`` deliveries, header names in lower case, as soon as they are there."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.got) >= count, timeout=5), f"{len(self.got)} of {count} came"
            return self.got[:count]

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
