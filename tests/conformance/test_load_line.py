"""The connection of a simulated Runtime: whole answers however they are framed, nothing where they are not whole."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from conformance.load import line as lines
from conformance.load.line import Gone, Line, Place
from conformance.load.recorder import Recorder
from conformance.load.telling import quantile, remarks, verdict
from contract_tests.histories.checkers import CHECKERS
from contract_tests.histories.verdicts import Invariant

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
WHOLE = {
    "with a length": OK,
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
    "to the end of the connection": b"HTTP/1.1 200 OK\r\n\r\n{}",
    "after an interim one": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    "and the connection is closed": b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
}
BROKEN = {
    "cut off": OK[:-1],
    "cut off in chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    "no HTTP": b"220 mail.example\r\n",
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\ncontent-",
}


@contextlib.asynccontextmanager
async def answering(answer, *, closes):
    """A line to a server that answers every request in this way, and how many connections it saw."""
    connections = []

    async def serve(reader, writer):
        connections.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
                if closes:
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        place = Place(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/base/")
        line = Line(place)
        yield line, place.request("GET", "/x", {}), connections
        line.close()
        for writer in connections:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize("how", WHOLE)
def test_a_whole_answer_is_read(how):
    async def ask():
        closes = how.endswith(("connection", "closed"))
        async with answering(WHOLE[how], closes=closes) as (line, request, connections):
            for _ in range(2):
                reply = await line.ask(request)
                assert (reply.status, reply.content, reply.json) == (200, b"{}", {})
            assert len(connections) == (2 if closes else 1)

    run(ask())


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_not_whole_is_no_answer(how):
    async def ask():
        async with answering(BROKEN[how], closes=True) as (line, request, _):
            assert await line.ask(request) is None
            assert await line.ask(request) is None

    run(ask())


def test_a_connection_is_used_again_until_we_hang_up():
    async def ask():
        async with answering(OK, closes=False) as (line, request, connections):
            assert [(await line.ask(request)).status for _ in range(3)] == [200, 200, 200]
            assert len(connections) == 1
            await line.lose(request, 0)
            assert (await line.ask(request)).status == 200
            assert len(connections) == 2

    run(ask())


def test_silence_is_no_answer_and_what_comes_late_is_not_taken_for_the_next(monkeypatch):
    monkeypatch.setattr(lines, "ANSWER_SECONDS", 0.05)

    async def ask():
        async with answering(b"", closes=False) as (line, request, connections):
            assert await line.ask(request) is None
            assert await line.ask(request) is None
            assert len(connections) == 2

    run(ask())


def test_who_can_not_be_reached_for_long_is_gone(monkeypatch):
    monkeypatch.setattr(lines, "GIVEN_UP", 2)

    async def ask():
        async with answering(OK, closes=True) as (line, request, _):
            pass
        assert await line.ask(request) is None
        await line.ask(request)

    with pytest.raises(Gone, match="can't be reached: Connection refused"):
        run(ask())


def test_the_path_of_the_url_stands_before_the_requests_own():
    request = Place("http://[::1]:8080/base/").request("POST", "/x", {"a": "b"}, {"c": 1})
    assert request.startswith(
        b"POST /base/x HTTP/1.1\r\nhost: [::1]:8080\r\na: b\r\ncontent-type: application/json\r\n"
    )
    assert request.endswith(b'content-length: 7\r\n\r\n{"c":1}')


def invariant(word):
    made = Invariant(CHECKERS[0])
    made.counts[word] += 1
    return made


@pytest.mark.parametrize(
    ("words", "problem", "expected"),
    [
        (["valid", "valid"], None, ("conformant", 0)),
        (["valid", "invalid"], None, ("non-conformant", 1)),
        (["unknown", "invalid"], "gone", ("non-conformant", 1)),
        (["valid", "unknown"], None, ("inconclusive", 3)),
        (["valid"], "gone", ("inconclusive", 3)),
        ([], None, ("inconclusive", 3)),
    ],
)
def test_the_verdict_is_the_worst_of_all(words, problem, expected):
    assert verdict([invariant(word) for word in words], problem) == expected


def test_quantiles_are_of_what_was_measured():
    assert [quantile([1, 2, 3, 4], share) for share in (0, 0.5, 0.99)] == [1, 3, 4]
    assert quantile([], 0.5) == 0


def test_answers_that_tell_nothing_are_remarked():
    recorder = Recorder()
    recorder.answers["lock"].update({"200": 5, "503": 2, "no answer": 1})
    assert remarks(recorder) == ["2 answers were 5xx: taken for lost, whatever they say", "1 requests got no answer"]
    assert remarks(Recorder()) == []
