"""The hub's event streams from within: what slow, silent and vanished readers leave behind, and what they are told."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
import uvicorn
from fault_world import PROTOCOLS
from hub_world import STATES, TOKEN
from mock_world import KEY

from mock_server.agenda import Agenda
from mock_server.control import Guard
from mock_server.hub.streams import DELETED, PROGRESS, STATE, Stream, Streams
from mock_server.serve import listen
from mock_server.server import Server
from mock_server.wire import WiredServer, wired
from mock_server.worlds import Options, Worlds

VANISHING = 200
SILENT = 5
MANY = 1000
MOST_FRAMES = 400
"""Frames that are kept for a reader who does not read, at most."""


class Hub:
    """A server in this loop, and its default world's hub."""

    def __init__(self, server, port):
        self.server, self.port = server, port
        self.worlds = server.worlds
        self.hub = self.worlds.default.hub
        self.streams = self.hub.streams

    async def post(self, path, body, status):
        reader, writer = await self.connect()
        content = json.dumps(body).encode()
        writer.write(head("POST", path, len(content)) + content)
        answer, _, came = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert answer.startswith(b"HTTP/1.1 %d" % status), answer + came
        return json.loads(came)

    async def state(self, name, **params):
        return await self.post(STATES, {"action": "setup", "state": name, "params": params}, 200)

    async def running(self, **attempt):
        """A job that runs, as the script says."""
        await self.state("node", nodeId="node", projects=["proj"])
        await self.state("outcome", projectId="proj", attempts=[{"afterSeconds": 1200, **attempt}])
        item = {"kind": "ai", "projectId": "proj", "prompt": "do it"}
        return (await self.post("/v1/jobs", {"items": [item]}, 202))["data"]["items"][0]["id"]

    async def connect(self, limit=2**16, window=None):
        if window is None:
            return await asyncio.open_connection("127.0.0.1", self.port, limit=limit)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        return await asyncio.open_connection(sock=sock, limit=limit)

    async def follow(self, job, **options):
        """A connection whose request for a stream was sent."""
        reader, writer = await self.connect(**options)
        writer.write(head("GET", f"/v1/jobs/{job}/events"))
        return reader, writer

    async def followed(self, count):
        """Returns when so many streams are open."""
        await eventually(lambda: len(self.streams) == count)

    def left(self):
        """What is there of streams: those that are open, their pings, their tasks, the objects themselves."""
        pings = sum("ping" in item.do.__qualname__ for item in self.hub.agenda._items)
        tasks = sum(
            task.get_coro().__qualname__.startswith(("Sender.", "disconnected")) for task in asyncio.all_tasks()
        )
        gc.collect()
        objects = sum(isinstance(one, Stream) for one in gc.get_objects())
        return {"open": len(self.streams), "pings": pings, "tasks": tasks, "objects": objects}


NOTHING = {"open": 0, "pings": 0, "tasks": 0, "objects": 0}


def head(method, path, length=0):
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1", f"authorization: Bearer {TOKEN}", "connection: close"]
    lines += ["content-type: application/json", f"content-length: {length}"] if length else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def reports(size):
    """Many reports of progress, ten a second, that are each told with an activity of that size."""
    told = [{"atSeconds": i / 10, "toolCalls": i} for i in range(1, MANY + 1)]
    told[0]["lastActivity"] = "x" * size
    return told


async def eventually(holds):
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody that it changed
            await asyncio.sleep(0.005)


async def told(reader):
    """The events of a stream to its end, as (id, name, data); fails where the answer is cut off."""
    raw = await reader.read()
    _, _, body = raw.partition(b"\r\n\r\n")
    assert raw.endswith(b"\r\n0\r\n\r\n"), raw[-100:]
    frames = b"".join(chunks(body)).decode().split("\n\n")
    events = [dict(line.split(": ", 1) for line in frame.splitlines()) for frame in frames if frame.startswith("id")]
    return [(int(event["id"]), event["event"], json.loads(event["data"])) for event in events]


def chunks(body):
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        yield rest[:length]
        body = rest[length + 2 :]


@asynccontextmanager
async def served(protocol="httptools"):
    sock = listen("127.0.0.1", 0)
    app = Server(Worlds(Options(api_key=KEY, clock="manual")), Guard(None, None))
    config = uvicorn.Config(app, http=wired(PROTOCOLS[protocol]), ws="none", log_config=None, lifespan="on")
    server = WiredServer(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[sock]))
        await eventually(lambda: server.started)
        try:
            yield Hub(app, sock.getsockname()[1])
        finally:
            app.worlds.default.end_streams()
            server.should_exit = True
    sock.close()


@pytest.fixture(params=["httptools", "h11"])
def protocol(request):
    return request.param


def test_readers_that_vanish_leave_nothing_behind(protocol):
    async def check():
        async with served(protocol) as hub:
            job = await hub.running()
            readers = [await hub.follow(job) for _ in range(VANISHING)]
            await hub.followed(VANISHING)
            for number, (_, writer) in enumerate(readers):
                if number % 2:
                    writer.transport.abort()
                else:
                    writer.close()
            await hub.followed(0)
            readers.clear()
            await eventually(lambda: hub.left() == NOTHING)
            await hub.state("advance-time", seconds=60)
            assert hub.left() == NOTHING

    asyncio.run(check())


def test_readers_that_vanish_before_the_first_event_leave_nothing_behind(protocol):
    async def check():
        async with served(protocol) as hub:
            job = await hub.running()
            for _ in range(VANISHING):
                _, writer = await hub.follow(job)
                writer.transport.abort()
            await hub.state("advance-time", seconds=60)  # answered after all that came before it
            await eventually(lambda: hub.left() == NOTHING)

    asyncio.run(check())


def test_readers_that_never_read_hold_nobody_up_and_leave_nothing_behind(protocol):
    """Their connections are full, what is kept for them is bounded, and who reads is told everything at once."""
    progress = reports(10_000)

    async def check():
        async with served(protocol) as hub:
            job = await hub.running(progress=progress, afterSeconds=MANY / 10 + 1)
            silent = [await hub.follow(job, window=4096, limit=1024) for _ in range(SILENT)]
            await hub.followed(SILENT)
            reader, writer = await hub.follow(job, limit=2**26)
            await hub.followed(SILENT + 1)
            reading = asyncio.create_task(told(reader))
            for _ in range(20):
                await hub.state("advance-time", seconds=MANY / 200)
            kept = [len(stream._frames) for stream in hub.streams._all()]
            await hub.state("advance-time", seconds=2)
            async with asyncio.timeout(10):
                events = await reading
            assert [name for _, name, _ in events] == [STATE, *[PROGRESS] * MANY, "job.completed"]
            assert max(kept) <= MOST_FRAMES
            assert max(kept) > 200, "the connections were not full"
            await hub.followed(SILENT)
            for _, quiet in silent:
                quiet.transport.abort()
            writer.close()
            silent.clear()
            await eventually(lambda: hub.left() == NOTHING)

    asyncio.run(check())


def test_a_reader_that_comes_back_to_it_is_told_every_state():
    """It read nothing for a thousand reports and a failure: it gets both states, the last progress, and the end."""
    progress, length = reports(10_000), MANY / 10 + 1
    failed = {"result": "failed", "failureType": "llm_error", "retriable": True, "message": "429"}

    async def check():
        async with served() as hub:
            await hub.state("node", nodeId="node", projects=["proj"])
            attempts = [{"afterSeconds": length, "progress": progress, **failed}, {"afterSeconds": 1}]
            await hub.state("outcome", projectId="proj", attempts=attempts)
            item = {"kind": "ai", "projectId": "proj", "prompt": "do it"}
            job = (await hub.post("/v1/jobs", {"items": [item]}, 202))["data"]["items"][0]["id"]
            reader, writer = await hub.follow(job, window=4096, limit=1024)
            await hub.followed(1)
            await hub.state("advance-time", seconds=length)
            await hub.state("advance-time", seconds=60)
            events = await told(reader)
            writer.close()
            assert [id_ for id_, _, _ in events] == list(range(1, len(events) + 1))
            states = [(name, data["status"], data["attempt"]) for _, name, data in events if name != PROGRESS]
            assert states == [
                (STATE, "running", 1),
                (STATE, "failed", 1),
                (STATE, "queued", 1),
                (STATE, "running", 2),
                ("job.completed", "done", 2),
            ]
            before = events[[name for _, name, _ in events].index(STATE, 1) - 1]
            assert before[2]["progress"]["toolCalls"] == MANY
            await eventually(lambda: hub.left()["open"] == 0)

    asyncio.run(check())


def unread():
    """A stream of nobody's, with what it left."""
    streams = Streams(SimpleNamespace(agenda=Agenda()))
    return streams.stream(streams, "job-1", 1)


async def frames(stream):
    return [frame async for frame in stream]


@pytest.mark.parametrize("between", [1, 7, 300, 1000])
def test_what_is_dropped_for_a_slow_reader_is_progress_that_a_later_one_replaces(between):
    """However many reports come between two states, each state is told, right behind the last report before it."""
    stream = unread()
    for number in range(MANY):
        stream.put(PROGRESS, {"n": number})
        stream.ping()
        if number % between == between - 1:
            stream.put(STATE, {"n": number})
    stream.put("job.completed", {"n": MANY})
    stream.end()
    lines = [frame.decode().splitlines() for frame in asyncio.run(frames(stream)) if frame.startswith(b"id")]
    events = [(line[1][7:], json.loads(line[2][6:])["n"]) for line in lines]
    assert [int(line[0][4:]) for line in lines] == list(range(1, len(lines) + 1))
    due = list(range(between - 1, MANY, between))
    assert [number for name, number in events if name == STATE] == due
    assert [events[i - 1] for i, (name, _) in enumerate(events) if name == STATE] == [(PROGRESS, n) for n in due]
    assert events[-1] == ("job.completed", MANY)
    assert len(events) < MOST_FRAMES + 2 * len(due) + 1


def test_pings_do_not_pile_up():
    stream = unread()
    for _ in range(10 * MANY):
        stream.ping()
    assert len(stream._frames) <= MOST_FRAMES


def test_nothing_is_told_behind_the_end():
    stream = unread()
    stream.put("job.cancelled", {})
    stream.end()
    stream.put(PROGRESS, {})
    stream.ping()
    stream.put(DELETED, {})
    assert [frame.count(b"event: job.cancelled") for frame in asyncio.run(frames(stream))] == [1]


def test_a_reset_ends_all_streams_and_leaves_nothing_behind():
    async def check():
        async with served() as hub:
            job = await hub.running()
            readers = [await hub.follow(job) for _ in range(SILENT)]
            await hub.followed(SILENT)
            await hub.state("reset")
            for reader, writer in readers:
                events = await told(reader)
                assert [(name, data["id"]) for _, name, data in events] == [(STATE, job), (DELETED, job)]
                writer.close()
            readers.clear()
            await eventually(lambda: hub.left() == NOTHING)
            await hub.running()
            await hub.state("advance-time", seconds=60)

    asyncio.run(check())


def test_a_world_that_is_dropped_ends_its_streams():
    async def check():
        async with served() as hub:
            made = await hub.post("/__control__/worlds", {"clock": "manual"}, 201)
            world, path = hub.worlds.get(made["id"]), made["path"]
            await hub.post(path + STATES, setup("node", nodeId="node", projects=["proj"]), 200)
            await hub.post(path + STATES, setup("outcome", projectId="proj", attempts=[{"afterSeconds": 1200}]), 200)
            item = {"kind": "ai", "projectId": "proj", "prompt": "do it"}
            job = (await hub.post(f"{path}/v1/jobs", {"items": [item]}, 202))["data"]["items"][0]["id"]
            reader, writer = await hub.connect()
            writer.write(head("GET", f"{path}/v1/jobs/{job}/events"))
            await eventually(lambda: len(world.hub.streams) == 1)
            other, leaving = await hub.connect()
            leaving.write(head("DELETE", f"/__control__/worlds/{made['id']}"))
            assert (await other.read()).startswith(b"HTTP/1.1 204")
            async with asyncio.timeout(5):
                assert [name for _, name, _ in await told(reader)] == [STATE]
            writer.close()
            leaving.close()
            await eventually(lambda: len(world.hub.streams) == 0)

    asyncio.run(check())


def setup(state, **params):
    return {"action": "setup", "state": state, "params": params}
