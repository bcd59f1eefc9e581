"""Requests whose client goes away at once: what of them arrives, and what is recorded."""

from __future__ import annotations

import asyncio

import pytest

from conformance.http_transport import HttpTransport
from conformance.recording import RECORDER, Recorder
from contract_tests.checks import TargetVanished
from contract_tests.transport import Request

REQUEST = Request("POST", "/v1/jobs", {"content-type": "application/json"}, b'{"items": []}')


def arrives(unsent: int, answer: bytes = b"") -> tuple[bytes, Recorder]:
    """What a build has read when its client is gone; it may answer before."""
    recorder = Recorder()

    async def played() -> bytes:
        came: asyncio.Queue[bytes] = asyncio.Queue()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            came.put_nowait(head + await reader.read())
            writer.close()

        RECORDER.set(recorder)
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            transport = HttpTransport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
            await transport.abandon(REQUEST, unsent=unsent)
            async with asyncio.timeout(5):
                return await came.get()

    return asyncio.run(played()), recorder


def test_the_whole_request_arrives_and_then_the_end():
    came, recorder = arrives(0)
    assert came.endswith(b'\r\n\r\n{"items": []}')
    (exchange,) = recorder.exchanges
    assert exchange["request"]["url"].endswith("/v1/jobs")
    assert exchange["response"] is None


def test_what_is_not_to_be_sent_is_not():
    came, _ = arrives(3)
    assert came.endswith(b'\r\n\r\n{"items": ')
    assert b"content-length: 13" in came


def test_nobody_listening_is_told_as_always():
    async def played() -> None:
        await HttpTransport("http://127.0.0.1:9").abandon(REQUEST)

    with pytest.raises(TargetVanished):
        asyncio.run(played())
