"""Following a stream: order, limits, and what is told instead."""

import asyncio
import time

import pytest
from streams import PlayedStream

from contract_tests.agent_hub.following import EventStream
from contract_tests.checks import CheckFailed, NoAnswer

SHORT = 0.05


def follow(check):
    """Run a check that gets a stream to play and the one that follows it."""

    async def run():
        played = PlayedStream()
        async with EventStream(played) as stream:
            await check(played, stream)
        assert played.closed

    asyncio.run(run())


def test_events_come_in_order_and_are_kept():
    async def check(played, stream):
        played.say(b": ping\n\n")
        played.tell("job.state", 1, '{"status":"queued"}')
        played.tell("job.progress", 2)
        assert (await stream.next("job.state")).data == {"status": "queued"}
        assert (await stream.next()).id == "2"
        played.tell("job.progress", 3)
        played.tell("job.completed", 4)
        assert (await stream.until("job.completed")).id == "4"
        played.end()
        await stream.ends()
        assert [event.id for event in stream.events] == ["1", "2", "3", "4"]
        assert [comment.text for comment in stream.comments] == [" ping"]
        assert len(stream.said) == 5
        assert stream.ended is not None

    follow(check)


def test_it_is_read_while_nobody_waits():
    """``at`` is when something came: a check that looks later is told the same."""

    async def check(played, stream):
        played.tell("job.state", 1)
        await asyncio.sleep(SHORT)
        looked = time.monotonic()
        assert (await stream.next()).at <= looked - SHORT / 2

    follow(check)


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (lambda stream: stream.next(within=SHORT), ["an event within 0.05 s", "so far came: job.state"]),
        (lambda stream: stream.next("job.failed", within=SHORT), ["`job.failed`"]),
        (lambda stream: stream.until("job.failed", within=SHORT), ["`job.failed`", "nothing"]),
        (lambda stream: stream.ends(within=SHORT), ["the end of the stream", "open after 0.05 s"]),
        (lambda stream: stream.comment(1, within=SHORT), ["comment number 1"]),
    ],
)
def test_a_wait_has_a_limit(wait, words):
    async def check(played, stream):
        played.tell("job.state", 1)
        await stream.next("job.state")
        with pytest.raises(CheckFailed) as told:
            await wait(stream)
        assert all(word in str(told.value) for word in words), str(told.value)

    follow(check)


def test_another_event_is_told_with_its_data():
    async def check(played, stream):
        played.tell("job.state", 1, '{"status":"failed"}')
        with pytest.raises(CheckFailed) as told:
            await stream.next("job.failed")
        assert "`job.failed`" in told.value.expected[0]
        assert '`job.state` with {"status":"failed"}' in told.value.actual

    follow(check)


def test_an_event_instead_of_the_end():
    async def check(played, stream):
        played.tell("job.completed", 1)
        await stream.next("job.completed")
        played.tell("job.progress", 2)
        played.end()
        with pytest.raises(CheckFailed, match=r"job\.progress"):
            await stream.ends()

    follow(check)


def test_the_end_instead_of_an_event():
    async def check(played, stream):
        played.tell("job.state", 1)
        played.end()
        with pytest.raises(CheckFailed, match="the end of the stream"):
            await stream.until("job.completed")

    follow(check)


def test_quiet_is_no_event_and_no_end():
    async def check(played, stream):
        played.say(b": ping\n\n")
        await stream.quiet(SHORT)
        played.tell("job.state", 1)
        with pytest.raises(CheckFailed, match=r"no event; got `job\.state`"):
            await stream.quiet(SHORT)
        await stream.next()
        played.end()
        with pytest.raises(CheckFailed, match="stays open"):
            await stream.quiet(SHORT)

    follow(check)


@pytest.mark.parametrize(("chunk", "rules"), [(b"data: x\n\n", ("HUB-SSE-03",)), (b"data: 1", ("HUB-SSE-03",))])
def test_a_broken_stream_fails_the_next_wait(chunk, rules):
    """What came before it can still be taken."""

    async def check(played, stream):
        played.tell("job.state", 1)
        played.say(chunk)
        played.end()
        await stream.next("job.state")
        with pytest.raises(CheckFailed) as told:
            await stream.next()
        assert told.value.rules == rules
        with pytest.raises(CheckFailed):
            await stream.ends()

    follow(check)


def test_a_connection_that_breaks_is_not_the_end():
    async def check(played, stream):
        played.tell("job.completed", 1)
        await stream.next()
        played.break_off()
        with pytest.raises(NoAnswer):
            await stream.ends()

    follow(check)


def test_the_rest_is_all_that_was_not_taken():
    async def check(played, stream):
        for number in (1, 2, 3):
            played.tell("job.progress", number)
        await stream.next()
        with pytest.raises(CheckFailed, match="it is open"):
            await stream.rest(SHORT)
        played.end()
        assert [event.id for event in await stream.rest()] == ["2", "3"]
        await stream.ends()

    follow(check)
