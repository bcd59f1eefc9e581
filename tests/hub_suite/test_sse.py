"""The strict parser of event streams: what the standard allows, cut anywhere, and what is broken, with its place."""

import json
from pathlib import Path

import pytest

from contract_tests.agent_hub.sse import MAX_LINE, Comment, Event, Parser, StreamBroken

SEED = b': ping\n\nid: 1\nevent: job.state\ndata: {"id":"job_9f2c","status":"running","progress":{"toolCalls":3}}\n\n'
MIXED = (
    "\ufeff: ping\r\n\r\n"
    'id: 1\r\nevent: job.state\r\ndata: {"title":"检查 src 😀"}\r\n\r\n'
    'id:2\revent:job.progress\rdata:{"n":2}\r\r'
    ': ping\n\nid: 3\nevent: job.completed\nretry: 10\ncolour: red\nnothing\ndata: {"n":\ndata: 3}\n\n'
).encode()


def read(content: bytes, size: int | None = None, ends: bool = True) -> list[Event | Comment]:
    """What a stream tells that comes in chunks of ``size`` bytes."""
    parser = Parser()
    step = size or max(len(content), 1)
    found = []
    for number, start in enumerate(range(0, len(content), step)):
        found += parser.feed(content[start : start + step], float(number))
    if ends:
        parser.finish()
    return found


def events(found):
    return [one for one in found if isinstance(one, Event)]


def test_the_seeds_example():
    found = read(SEED)
    assert found[0] == Comment(" ping", 0.0)
    event = found[1]
    assert (event.id, event.event, event.data["progress"]) == ("1", "job.state", {"toolCalls": 3})
    assert event.data_lines == 1
    assert event.text == '{"id":"job_9f2c","status":"running","progress":{"toolCalls":3}}'
    assert event.offset == len(b": ping\n\n")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, None])
def test_a_stream_is_the_same_however_it_is_cut(size):
    """Every line end, characters of two to four bytes, and the mark at its start may fall between two chunks."""
    found = read(MIXED, size)
    assert [one.text for one in found if isinstance(one, Comment)] == [" ping", " ping"]
    told = events(found)
    assert [(one.id, one.event) for one in told] == [("1", "job.state"), ("2", "job.progress"), ("3", "job.completed")]
    assert [one.data for one in told] == [{"title": "检查 src 😀"}, {"n": 2}, {"n": 3}]
    assert told[2].data_lines == 2
    assert told[2].others == ("retry: 10", "colour: red", "nothing: ")


def test_every_cut_in_two_gives_the_same():
    whole = [(one.id, one.data) for one in events(read(MIXED))]
    for cut in range(1, len(MIXED)):
        parser = Parser()
        found = [*parser.feed(MIXED[:cut], 0.0), *parser.feed(MIXED[cut:], 1.0)]
        parser.finish()
        assert [(one.id, one.data) for one in events(found)] == whole, cut


def test_a_carriage_return_ends_a_line_at_once():
    """Nothing waits for a line feed that may never come; one that does come is not another line."""
    parser = Parser()
    assert len(list(parser.feed(b"data: 1\r\r", 1.0))) == 1
    assert list(parser.feed(b"\n", 2.0)) == []
    parser.finish()


def test_an_event_is_told_when_its_last_line_comes():
    parser = Parser()
    assert list(parser.feed(b"data: 1\n", 1.0)) == []
    assert next(iter(parser.feed(b"\n", 2.0))).at == 2.0


def test_what_the_standard_says_of_fields():
    one, two, three = events(read(b"data:1\n\nid\ndata:  2\n\nid: 7\ndata: 3\nid: 8\n\n"))
    assert (one.id, one.event) == (None, "message")
    assert (two.id, two.data, two.text) == ("", 2, " 2")
    assert three.id == "8"


def test_a_block_of_ids_and_comments_alone_is_no_event():
    assert events(read(b"id: 4\nretry: 3\n\n: x\n:\n\n\n\n")) == []


def test_a_mark_in_the_middle_is_no_mark():
    """A second byte order mark is text: it makes another field's name, and the data is lost."""
    assert events(read(b"\n\xef\xbb\xbfdata: 1\n\n")) == []


BROKEN = {
    "utf-8": (b'data: 1\n\ndata: {"t":"\xff"}\n\n', 9 + 12, 3, "UTF-8"),
    "cut utf-8": ("data: 检".encode()[:-1] + b"\n\n", 6, 1, "UTF-8"),
    "latin-1 comment": (b": caf\xe9\n", 5, 1, "UTF-8"),
    "nul in an id": (b"data: 1\n\nid: 1\0\ndata: 2\n\n", 9, 3, "NUL"),
    "no JSON": (b"id: 1\ndata: {'a': 1}\n\n", 0, 1, "JSON"),
    "NaN": (b"data: NaN\n\n", 0, 1, "JSON"),
    "empty data": (b": ping\n\ndata\n\n", 8, 3, "JSON"),
    "deep": (b"data: " + b"[" * 100_000 + b"\n\n", 0, 1, "JSON"),
    "JSON in two halves": (b'data: {"a":\n\ndata: 1}\n\n', 0, 1, "JSON"),
    "no data": (b": ping\n\nid: 1\nevent: job.state\n\n", 8, 3, "no client"),
    "cut event": (b"data: 1\n\nid: 2\ndata: 2\n", 9, 3, "empty line"),
    "cut line": (b"data: 1\n\ndata: 2", 9, 3, "unfinished"),
    "cut comment": (b"data: 1\n\n: pin", 9, 3, "unfinished"),
    "long line": (b"data: 1\n\ndata: " + b"x" * (MAX_LINE + 1), 9, 3, "longer"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("size", [1, 4, None])
def test_what_is_broken_is_told_with_its_place(name, size):
    content, offset, line, word = BROKEN[name]
    if len(content) > 200_000 and size:
        size = 50_000
    with pytest.raises(StreamBroken) as told:
        read(content, size)
    assert (told.value.offset, told.value.line) == (offset, line)
    assert word in str(told.value)
    assert f"byte {offset}, line {line}" in str(told.value)


def test_what_came_before_a_break_is_told():
    found = []
    with pytest.raises(StreamBroken):
        found.extend(Parser().feed(b"data: 1\n\n: ping\ndata: x\n\n", 0.0))
    assert len(found) == 2


def test_an_open_stream_is_not_broken():
    assert len(read(b"data: 1\n\ndata: 2", ends=False)) == 1


def test_strange_line_ends_of_unicode_are_text():
    """U+2028, U+0085 and the like end lines for Python's ``splitlines``, not in a stream."""
    text = json.dumps("a\u2028b\u0085c\x0bd", ensure_ascii=False)
    raw = '"a\u2028b\u0085c"'
    assert "\x0b" not in text
    assert events(read(f"data: {raw}\n\n".encode()))[0].data == "a\u2028b\u0085c"


def test_no_reader_of_lines_is_used():
    """The parser splits bytes itself: ``splitlines`` would split at characters that end no line here."""
    source = Path(__file__).parents[2] / "contract_tests" / "agent_hub" / "sse.py"
    assert "splitlines" not in source.read_text(encoding="utf-8")
