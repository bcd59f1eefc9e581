"""What a probe of the health operation says of one that is no answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from conformance.runtimes import health
from openapi.redaction import Redactor

GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


async def hangs(reader, writer):
    try:
        await reader.read()
    finally:
        writer.close()


def says(text: bytes):
    async def answers(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        writer.close()

    return answers


def asked(serve):
    """A probe of who serves health in that way, one after it is gone, and what is recorded of them."""
    told = []
    recording = SimpleNamespace(zero=0.0, tell=lambda kind, **event: told.append((kind, event)))
    watch = SimpleNamespace(redactor=Redactor(), look=lambda *_: None)

    async def ask():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        prober = health.Prober(port, recording, watch, lambda: 1)
        found = [await prober.ask()]
        server.close()
        return [*found, await prober.ask()]

    probe, last = asyncio.run(ask())
    return probe, last, told


@pytest.mark.parametrize(
    ("serve", "instead"),
    [
        (hangs, "hung"),
        (says(b"imok\n"), "garbled"),
        (says(GOOD[:-5]), "garbled"),
        (says(GOOD[:-1]), "garbled"),
        (says(b""), "closed"),
    ],
)
def test_what_is_no_answer_is_told_apart(monkeypatch, serve, instead):
    monkeypatch.setattr(health, "_SECONDS", 0.5)
    monkeypatch.setattr(health, "_SETTLING", 0.1)
    probe, last, told = asked(serve)
    assert (probe.status, probe.instead) == (None, instead)
    assert told[0][1]["instead"] == instead
    assert last is None  # nobody listens any more, and this one never served


def test_an_answer_has_nothing_instead():
    probe, last, _ = asked(says(GOOD))
    assert (probe.status, probe.body, probe.instead) == (200, {}, None)
    assert (last.status, last.instead) == (None, "closed")
