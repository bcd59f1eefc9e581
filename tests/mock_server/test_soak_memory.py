"""A million requests over real sockets: the mock's memory stays where it is. Some minutes; by ``tox -e soak``."""

from __future__ import annotations

import asyncio
import itertools
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
import uvloop
import yaml
from mock_world import KEY, start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = 1_000_000
CONNECTIONS = 8
MOST_MB = 120
JOBS = 100


def request(method: str, path: str, body: object = None) -> bytes:
    """A request as bytes, with all that the Runtime API asks for."""
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-internal-api-key: {KEY}\r\nx-runtime-instance-id: r\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def work(n: int) -> Iterator[tuple[bytes, int]]:
    """What connection ``n`` sends for ever, with the status that is expected: a Runtime's work, mistakes, and worlds.

    No call leaves a row behind (results and invocation logs would, and are to): a job is failed, and waits again.
    """
    jobs, who = "/internal/runtime/jobs", {"runtimeInstanceId": "r"}
    error = {"errorCode": "MODEL_TIMEOUT", "errorMessage": f"no answer to sk-secret-{n}", "retryable": True}
    poll = {**who, "supportedJobTypes": ["learning_state_analysis"], "limit": 20}
    cycle = [
        (request("POST", f"{jobs}/poll", poll), 200),
        (request("POST", f"{jobs}/job-{n}/lock", who), 200),
        (request("POST", f"{jobs}/job-{n}/lock", who), 409),
        (request("POST", f"{jobs}/job-{n}/heartbeat", who), 204),
        (request("GET", f"{jobs}/job-{n}/snapshot"), 200),
        (request("POST", f"{jobs}/job-{n}/fail", {**who, **error}), 200),
        (request("POST", f"{jobs}/poll", {"limit": 99, f"unknown-{n}": 1}), 400),
        (request("POST", f"{jobs}/no-such-job/lock", who), 404),
    ]
    for number in itertools.count():
        yield from cycle
        if number % 50 == 0:
            id_ = f"world-{n}-{number}"
            options = {"id": id_, "clock": "manual", "apiKey": f"key-{id_}", "lifetimeSeconds": 60}
            state = {"action": "setup", "state": "job"}
            yield request("POST", "/__control__/worlds", options), 201
            yield request("POST", f"/__worlds__/{id_}/__control__/provider-states/runtime-api", state), 200
            yield request("POST", f"/__control__/worlds/{id_}/snapshots", {"name": "s"}), 201
            yield request("POST", f"/__worlds__/{id_}/__control__/clock/advance", {"seconds": 3600}), 200
            yield request("POST", f"/__control__/worlds/{id_}/snapshots/s/restore"), 204
            yield request("GET", f"/__control__/worlds/{id_}/data"), 200
            if number % 100:  # the others go by their lifetime
                yield request("DELETE", f"/__control__/worlds/{id_}"), 204


class Caller:
    """One connection that sends its next request as soon as the last one is answered."""

    def __init__(self, n: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests, self.reader, self.writer = work(n), reader, writer

    async def send(self, count: int) -> None:
        """So many requests; the next call goes on where this one ended."""
        for sent, expected in itertools.islice(self.requests, count):
            self.writer.write(sent)
            head = await self.reader.readuntil(b"\r\n\r\n")
            _, found, length = head.lower().partition(b"content-length: ")
            body = await self.reader.readexactly(int(length.partition(b"\r\n")[0])) if found else b""
            assert int(head[9:12]) == expected, (sent, head, body)


async def send_all(port: int, pid: int) -> list[float]:
    """Send everything; the server's memory at the start and after each tenth."""
    sizes = [resident(pid)]
    made = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONNECTIONS)]
    callers = [Caller(n, *streams) for n, streams in enumerate(made)]
    try:
        for _ in range(10):
            async with asyncio.TaskGroup() as group:
                for caller in callers:
                    group.create_task(caller.send(REQUESTS // CONNECTIONS // 10))
            sizes.append(resident(pid))
    finally:
        for caller in callers:
            caller.writer.close()
            await caller.writer.wait_closed()
    return sizes


def resident(pid: int) -> float:
    """Resident memory, MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell the memory of a process")
def test_a_million_requests_leave_the_memory_as_it_is(tmp_path):
    row = {"userId": "u", "jobType": "learning_state_analysis", "targetType": "user", "targetId": "u"}
    jobs = [{**row, "id": f"job-{n}", "snapshotId": f"snap-{n}", "maxRetryCount": 10**9} for n in range(JOBS)]
    example = yaml.safe_load(files("mock_server").joinpath("data/example.yaml").read_text(encoding="utf-8"))
    snapshots = [{**example["snapshots"][0], "id": f"snap-{n}"} for n in range(JOBS)]
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"jobs": jobs, "snapshots": snapshots}))
    process, url = start("--data", str(path))
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            sizes = runner.run(send_all(int(url.rpartition(":")[2]), process.pid))
        evicted = httpx.get(f"{url}/__control__/journal?limit=1").json()["evicted"]
    finally:
        errors = stop(process)
    assert errors == ""
    print("MB at the start and after each tenth:", " ".join(f"{size:.1f}" for size in sizes))
    assert evicted > REQUESTS // 2
    assert sizes[-1] <= MOST_MB
    assert sizes[-1] - sizes[3] <= 5, "it grows"
