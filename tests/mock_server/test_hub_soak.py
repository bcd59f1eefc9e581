"""Many streams and submissions at once on one process: nothing that happened is lost, or told twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest
from hub_world import STATES, TOKEN
from mock_world import start, stop

SECONDS = 30
RATE = 100
"""Submissions a second."""
PROJECTS = 250
ROUND = 2.0
"""Seconds that a job runs: so 200 run, and are followed, at once."""


async def request(
    port: int, method: str, path: str, body: Any = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """One request on a connection of its own; the answer is still to be read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n"
    )
    head += f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    return reader, writer


async def answered(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of an answer."""
    reader, writer = await request(port, method, path, body)
    raw = await reader.read()
    writer.close()
    head, _, content = raw.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), json.loads(content)


@dataclass
class Seen:
    """What came."""

    finals: dict[str, str] = field(default_factory=dict)
    """The last event of each job's stream."""
    hooks: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    """The ``webhook-id`` of each delivery, by type and job or batch."""
    jobs: list[str] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """Every job and every batch was told of."""
    open: int = 0
    most_open: int = 0

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one webhook."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        event = json.loads(await reader.readexactly(int(headers["content-length"])))
        about = event["data"].get("id") or event["data"]["batchId"]
        self.hooks[event["type"], about].append(headers["webhook-id"])
        if len(self.hooks) == 2 * SECONDS * RATE:
            self.told.set()
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def follow(self, port: int, job: str) -> None:
        """Read a job's stream to its end."""
        reader, writer = await request(port, "GET", f"/v1/jobs/{job}/events")
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        last, ended = "", False
        async for line in reader:
            if line.startswith(b"event: "):
                last = line[7:].strip().decode()
            ended = ended or line == b"0\r\n"  # the last chunk
        self.finals[job] = last if ended else f"{last}, and cut off"
        self.open -= 1
        writer.close()


async def under_load(port: int, seen: Seen) -> None:
    """Submit at the rate, follow every job, and wait for the end of all."""
    receiver = await asyncio.start_server(seen.receive, "127.0.0.1", 0, backlog=1000)
    hook = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/hook"
    names = [f"project-{i}" for i in range(PROJECTS)]
    node = {"action": "setup", "state": "node", "params": {"nodeId": "node", "projects": names}}
    assert (await answered(port, "POST", STATES, node))[0] == 200
    for name in names:
        script = {
            "projectId": name,
            "attempts": [{"afterSeconds": ROUND, "progress": [{"atSeconds": 1, "toolCalls": 1}]}],
        }
        assert (await answered(port, "POST", STATES, {"action": "setup", "state": "outcome", "params": script}))[
            0
        ] == 200

    async def one(number: int) -> None:
        item = {"kind": "ai", "projectId": names[number % PROJECTS], "prompt": "work", "callbackUrl": hook}
        status, body = await answered(port, "POST", "/v1/jobs", {"items": [item], "batchId": f"batch-{number}"})
        assert status == 202, body
        job = body["data"]["items"][0]["id"]
        seen.jobs.append(job)
        await seen.follow(port, job)

    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as tasks:
        for number in range(SECONDS * RATE):
            tasks.create_task(one(number))
            late = began + (number + 1) / RATE - asyncio.get_running_loop().time()
            await asyncio.sleep(max(late, 0))
    async with asyncio.timeout(30):
        await seen.told.wait()
    receiver.close()


@pytest.mark.soak
def test_no_final_event_and_no_webhook_is_lost(capsys):
    process, url = start("--journal-entries", "100")
    seen = Seen()
    try:
        asyncio.run(under_load(int(url.rpartition(":")[2]), seen))
    finally:
        errors = stop(process)
    with capsys.disabled():
        print(
            f"\n{len(seen.jobs)} jobs, {seen.most_open} streams at once, {sum(map(len, seen.hooks.values()))} webhooks"
        )
    assert errors == ""
    assert len(seen.jobs) == SECONDS * RATE
    assert seen.most_open >= 200
    assert Counter(seen.finals.values()) == {"job.completed": len(seen.jobs)}
    assert {job for type_, job in seen.hooks if type_ == "job.completed"} == set(seen.jobs)
    assert sum(type_ == "batch.completed" for type_, _ in seen.hooks) == len(seen.jobs)
    assert all(len(set(ids)) == 1 for ids in seen.hooks.values())
