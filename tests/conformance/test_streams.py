"""Answers that are read as they come: pieces, silence, broken ends, and what is recorded of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from conformance.http_transport import HttpStream, HttpTransport, closing_streams
from conformance.incoming import MAX_ANSWER
from conformance.recording import CHECK, RECORDER, Recorder
from contract_tests.checks import CheckFailed, NoAnswer, Silent, TargetVanished
from contract_tests.transport import Request
from openapi.redaction import Redactor

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TOKEN = "zqa_live_of_this_test"
EVENTS = Request("GET", "/v1/jobs/j-1/events", {"authorization": f"Bearer {TOKEN}"})


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


END = chunk(b"")


class Peer:
    """The other end of a connection, moved by the test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def says(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def ends(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    async def resets(self) -> None:
        self.writer.transport.abort()

    async def is_left(self) -> bool:
        """Whether the client closes, within a few seconds."""
        try:
            async with asyncio.timeout(5):
                return await self.reader.read() == b""
        except ConnectionResetError:  # it left with some of our bytes unread
            return True


class Build:
    """Listens on a port of its own; each stream of events is a :class:`Peer` once its request was read."""

    def __init__(self) -> None:
        self.peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []

    @contextlib.asynccontextmanager
    async def serving(self, begins: bytes = HEAD) -> AsyncIterator[str]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked = await reader.readuntil(b"\r\n\r\n")
            peer = Peer(reader, writer)
            self._all.append(peer)
            if EVENTS.path.encode() not in asked:
                await peer.says(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                return
            await peer.says(begins)
            self.peers.put_nowait(peer)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for peer in self._all:
                with contextlib.suppress(OSError):
                    await peer.ends()


async def all_of(stream: HttpStream) -> bytes:
    """The body to its end."""
    body = b""
    while piece := await stream.read(5):
        body += piece
    return body


Scenario = Callable[[HttpTransport, Build], Awaitable[None]]


def play(scenario: Scenario, *, begins: bytes = HEAD, recorder: Recorder | None = None, seconds: float = 5) -> None:
    """Play a scenario against a build whose answers begin so."""

    async def played() -> None:
        build = Build()
        async with build.serving(begins) as url:
            if recorder is not None:
                RECORDER.set(recorder)
            variables = {TOKEN: "CONTRACT_HUB_TOKEN"}
            transport = HttpTransport(
                url, variables, answer_seconds=seconds, redactor=recorder.redactor if recorder else None
            )
            await scenario(transport, build)

    asyncio.run(played())


def test_pieces_are_given_as_they_come():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()
            assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
            for piece in (b": ping\n\n", "data: 任".encode()[:-1], "任务\n\n".encode()[2:], b"x" * 20_000):
                await peer.says(chunk(piece))
                came = b""
                while len(came) < len(piece):
                    came += await stream.read(5)
                assert came == piece
            await peer.says(END)
            assert await stream.read(5) == b""
            assert await stream.read(5) == b""
            assert await peer.is_left()

    play(scenario)


def test_a_chunk_may_be_split_anywhere():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()
            peer.writer.transport.get_extra_info("socket").setsockopt(6, 1, 1)  # TCP_NODELAY: a piece a packet
            wire = chunk("data: 任务\n\n".encode()) + chunk(b"data: 2\n\n")
            for byte in wire:
                await peer.says(bytes([byte]))
                await asyncio.sleep(0)
            came = b""
            while not came.endswith(b"2\n\n"):
                came += await stream.read(5)
            assert came == "data: 任务\n\ndata: 2\n\n".encode()

    play(scenario)


def test_silence_is_told_and_loses_nothing():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()
            await peer.says(b"9\r\ndata")
            assert await stream.read(5) == b"data"
            for _ in range(2):
                with pytest.raises(Silent, match=r"nothing within 0\.05 s"):
                    await stream.read(0.05)
            await peer.says(b": 1\n\n\r\n")
            assert await stream.read(5) == b": 1\n\n"

    play(scenario)


@pytest.mark.parametrize(
    ("last", "how"),
    [
        (b"", Peer.ends),
        (b"9\r\ndata", Peer.ends),
        (b"", Peer.resets),
        (b"no chunk\r\n", None),
        (chunk(b"data: 1\n\n") + b"junk\r\n", None),
        (END + b"junk", Peer.ends),
    ],
    ids=["between chunks", "within a chunk", "reset", "no chunk", "junk for a chunk", "bytes behind the end"],
)
def test_a_broken_end_is_no_end(last, how):
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()
            if last:
                await peer.says(last)
            if how is not None:
                await how(peer)

            with pytest.raises(NoAnswer) as first:
                await all_of(stream)
            assert not isinstance(first.value, Silent)
            with pytest.raises(NoAnswer):  # it stays so
                await stream.read(5)

    play(scenario)


def test_an_answer_without_chunks_ends_with_the_connection():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()
            await peer.says(b"data: 1\n\n")
            assert await stream.read(5) == b"data: 1\n\n"
            await peer.ends()
            assert await stream.read(5) == b""

    play(scenario, begins=b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")


def test_an_error_is_read_like_any_answer():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            assert stream.status == 404
            assert await stream.read(5) == b"{}"
            assert await stream.read(5) == b""

    play(scenario, begins=b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    ("begins", "told"),
    [
        (b"", "none within 0.1 s"),
        (b"HTTP/1.1 200 OK\r\ncontent-", "none within 0.1 s"),
        (b"no HTTP at all\r\n\r\n", "broken"),
    ],
    ids=["nothing", "half a head", "no HTTP"],
)
def test_an_answer_that_does_not_begin(begins, told):
    recorder = Recorder()

    async def scenario(transport: HttpTransport, build: Build) -> None:
        with pytest.raises(NoAnswer, match=told):
            await transport.open(EVENTS)
        assert await (await build.peers.get()).is_left()
        assert [exchange["response"] for exchange in recorder.exchanges] == [None]

    play(scenario, begins=begins, recorder=recorder, seconds=0.1)


def test_nobody_listens():
    async def scenario() -> None:
        with pytest.raises(TargetVanished, match="can't be reached"):
            await HttpTransport("http://127.0.0.1:9").open(EVENTS)

    asyncio.run(scenario())


def test_a_stream_without_end_has_one():
    async def scenario(transport: HttpTransport, build: Build) -> None:
        async with await transport.open(EVENTS) as stream:
            peer = await build.peers.get()

            async def talks() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        await peer.says(chunk(b"x" * 2**20))

            talking = asyncio.create_task(talks())
            with pytest.raises(CheckFailed, match=f"at most {MAX_ANSWER} bytes"):
                await all_of(stream)
            assert await peer.is_left()
            talking.cancel()

    play(scenario)


def test_what_came_is_recorded_in_its_place_with_a_command_that_repeats_it():
    recorder = Recorder(Redactor([TOKEN]))
    heard = []

    async def scenario(transport: HttpTransport, build: Build) -> None:
        transport.listen(lambda request, response, check: heard.append((request.path, response.content, check)))
        CHECK.set("hub.sse.x")
        stream = await transport.open(EVENTS)
        peer = await build.peers.get()
        await transport.send(Request("GET", "/v1/overview"))
        await peer.says(chunk(b"data: " + TOKEN[:9].encode()) + chunk(TOKEN[9:].encode()))
        came = b""
        while not came.endswith(TOKEN.encode()):
            came += await stream.read(5)
        await stream.close()
        await stream.close()
        with pytest.raises(ValueError, match="was closed"):
            await stream.read(5)

    play(scenario, recorder=recorder)
    first, second = recorder.exchanges
    assert first["request"]["url"].endswith("/events")
    assert first["response"]["body"] == "data: [redacted]"
    assert second["request"]["url"].endswith("/overview")
    command = recorder.commands[0]
    assert command.startswith("curl -sS -i -N -m 1 -X GET http://")
    assert command.endswith('-H "authorization: Bearer $CONTRACT_HUB_TOKEN" &')
    overview, events = heard
    assert overview == ("/v1/overview", b"{}", "hub.sse.x")
    assert events == (EVENTS.path, b"data: " + TOKEN.encode(), "hub.sse.x")


def test_streams_that_a_check_leaves_open_are_closed_at_its_end():
    recorder = Recorder()

    async def scenario(transport: HttpTransport, build: Build) -> None:
        async def check() -> None:
            async with closing_streams():
                stream = await transport.open(EVENTS)
                await asyncio.gather(transport.open(EVENTS), transport.open(EVENTS))
                peers.extend([await build.peers.get() for _ in range(3)])
                for peer in peers:
                    await peer.says(chunk(b": ping\n\n"))
                assert await stream.read(5) == b": ping\n\n"
                raise CheckFailed("this", "that")

        peers: list[Peer] = []
        with pytest.raises(CheckFailed):
            await check()
        assert all([await peer.is_left() for peer in peers])
        assert [exchange["response"]["status"] for exchange in recorder.exchanges] == [200, 200, 200]

    play(scenario, recorder=recorder)
