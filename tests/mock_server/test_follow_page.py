"""The page that follows a job, in a real browser, against event streams that the tests write."""

from __future__ import annotations

import json
import re
from datetime import datetime
from importlib.resources import files
from itertools import combinations

import pytest
from event_server import event_server
from playwright.sync_api import expect

KEY = "zqa_live_not_for_urls"
QUEUED = {"id": "job_1", "status": "queued", "attempt": 0, "maxAttempts": 4, "title": "Tidy the notes"}
RUNNING = {**QUEUED, "status": "running", "attempt": 1, "projectId": "notes", "nodeLabel": "Desk"}
PROGRESS = {"toolCalls": 3, "iterations": 2, "tokensIn": 120, "tokensOut": 45, "lastActivity": "读 file.md"}
DONE = {**RUNNING, "status": "done", "result": {"summary": "All tidy."}}
BROKEN = r"ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


@pytest.fixture
def server():
    with event_server() as server:
        yield server


@pytest.fixture
def page(server, browser):
    return browser.open(f"{server.url}/__pages__/follow")


@pytest.fixture
def still(server, browser):
    """The page with a clock that stands, and moves by `clock.run_for` alone."""
    page = browser.open("about:blank")
    page.clock.install(time=0)
    page.goto(f"{server.url}/__pages__/follow")
    page.clock.pause_at(3_600_000)
    return page


def follow(page, job="job_1", key=KEY):
    page.get_by_label("Job id").fill(job)
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Follow").click()


def status(page):
    return page.get_by_role("status")


def shown(page, term):
    """What the page shows beside a term."""
    return page.locator(f"dt:text-is('{term}') + dd")


def events(page):
    """The names of the listed events, in the order in which they came."""
    return page.locator("#events b").all_text_contents()[::-1]


def test_a_job_is_followed_to_its_end_by_keyboard_alone(server, page, browser):
    page.keyboard.press("Tab")
    page.keyboard.type(" job/1 ")
    page.keyboard.press("Tab")
    page.keyboard.type(KEY)
    page.keyboard.press("Enter")
    stream = server.stream()
    assert stream.path == "/v1/jobs/job%2F1/events"
    assert stream.headers["Authorization"] == f"Bearer {KEY}"
    assert stream.headers["Accept"] == "text/event-stream"
    assert not {"Last-Event-ID", "Cookie", "Referer"} & set(stream.headers)

    stream.send(": ping\n\n")
    expect(status(page)).to_have_text("Following.")
    stream.event("job.state", 1, **QUEUED)
    expect(shown(page, "State")).to_have_text("queued")
    expect(status(page)).to_have_text("Following. The job is queued.")
    stream.event("job.state", 2, **RUNNING)
    expect(status(page)).to_have_text("Following. The job is running, attempt 1.")
    expect(shown(page, "Attempt")).to_have_text("1 of 4")
    expect(shown(page, "Place")).to_have_text("notes on Desk")
    stream.event("job.progress", 3, **RUNNING, progress=PROGRESS)
    expect(shown(page, "Progress")).to_have_text("3 tool calls, 2 iterations, 120 tokens in, 45 out")
    expect(shown(page, "Activity")).to_have_text("读 file.md")
    stream.event("job.completed", 4, **DONE)
    stream.end()
    expect(status(page)).to_have_text("Ended: the job completed.")
    expect(shown(page, "State")).to_have_text("done")
    expect(shown(page, "Outcome")).to_have_text("All tidy.")
    expect(page).to_have_title("done · Follow a job")
    expect(page.get_by_role("button", name="Stop")).to_have_attribute("aria-disabled", "true")
    assert events(page) == ["job.state", "job.state", "job.progress", "job.completed"]
    assert stream.gone()

    # The key went into the header and nowhere else.
    assert page.url == f"{server.url}/__pages__/follow"
    assert not any(KEY in request.url for request in browser.requests)
    assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    page.reload()
    assert page.get_by_label("API key").input_value() == ""
    assert server.streams.empty()


@pytest.mark.parametrize(
    ("name", "job", "word"),
    [
        ("job.failed", {**RUNNING, "status": "failed", "failure": {"type": "timeout", "message": "slow"}}, "failed"),
        ("job.cancelled", {**QUEUED, "status": "cancelled"}, "was cancelled"),
        ("job.deleted", {"id": "job_1"}, "was deleted"),
    ],
)
def test_every_final_event_ends_it(server, still, name, job, word):
    follow(still)
    stream = server.stream()
    stream.event("job.state", 1, **RUNNING)
    stream.event(name, 2, **job)
    expect(status(still)).to_have_text(f"Ended: the job {word}.")
    expect(shown(still, "State")).to_have_text(word.removeprefix("was "))
    expect(shown(still, "Outcome")).to_have_text("timeout: slow" if word == "failed" else "–")
    assert not stream.gone(0)  # it leaves the server a moment to end the stream
    still.clock.run_for(2000)
    assert stream.gone()
    assert server.streams.empty()


def test_a_retry_to_come_and_a_block_are_told(server, page):
    follow(page)
    stream = server.stream()
    stream.event("job.state", 1, **{**RUNNING, "status": "failed", "nextRetryAt": "2026-01-01T00:00:30.500Z"})
    expect(shown(page, "State")).to_have_text(re.compile(r"^failed, next try at \d\d:\d\d:30\.500$"))
    stream.event("job.state", 2, **QUEUED, blocked={"reason": "node_offline"})
    expect(shown(page, "State")).to_have_text("queued, waits for its node, which is offline")
    expect(page.get_by_role("button", name="Stop")).to_have_attribute("aria-disabled", "false")


def test_a_broken_stream_is_taken_up_again_with_growing_waits(server, still, browser):
    browser.expects(BROKEN)
    browser.expects("status of 503")
    follow(still)
    stream = server.stream()
    stream.event("job.state", 7, **RUNNING)
    expect(shown(still, "State")).to_have_text("running")
    stream.cut()
    expect(status(still)).to_have_text("The connection broke; connecting again in 0.5 s.")
    still.clock.run_for(490)
    assert server.streams.empty()
    server.refuse(503)
    still.clock.run_for(10)
    expect(status(still)).to_have_text("The server answered 503; connecting again in 1 s.")
    server.refuse(503, retry_after="9")
    still.clock.run_for(1000)
    expect(status(still)).to_have_text("The server answered 503; connecting again in 9 s.")
    still.clock.run_for(9000)
    stream = server.stream()
    assert stream.headers["Last-Event-ID"] == "7"
    expect(status(still)).to_have_text("Following.")
    stream.send("id: 8\nevent: job.progress\ndata: {}\nda读".encode()[:-1])  # an event without its end is none
    stream.end()
    expect(status(still)).to_have_text("The stream ended before the job did; connecting again in 4 s.")
    still.clock.run_for(4000)
    stream = server.stream()
    assert stream.headers["Last-Event-ID"] == "7"
    stream.event("job.state", 8, **RUNNING)  # what came resets the waits
    stream.send("retry: 700\n")
    expect(still.locator("#events b")).to_have_count(2)
    stream.end()
    expect(status(still)).to_have_text("The stream ended before the job did; connecting again in 0.7 s.")
    still.clock.run_for(700)
    stream = server.stream()
    assert stream.headers["Last-Event-ID"] == "8"
    stream.event("job.completed", 9, **DONE)
    expect(status(still)).to_have_text("Ended: the job completed.")


def test_a_stream_that_falls_silent_is_taken_for_broken_where_time_flows(server, still):
    follow(still)
    stream = server.stream()
    stream.send(": ping\n\n")
    stream.event("job.state", 1, **RUNNING)
    expect(shown(still, "State")).to_have_text("running")
    still.clock.run_for(600_000)  # one ping: the world's clock stands still, and the stream with it
    stream.send(": ping\n\n")
    stream.event("job.progress", 2, **RUNNING, progress=PROGRESS)
    expect(still.locator("#events b")).to_have_count(2)
    still.clock.run_for(44_000)
    stream.send(": ping\n\n")
    stream.event("job.progress", 3, **RUNNING, progress=PROGRESS)
    expect(still.locator("#events b")).to_have_count(3)
    still.clock.run_for(44_000)
    expect(status(still)).to_have_text("Following. The job is running, attempt 1.")
    still.clock.run_for(1000)
    expect(status(still)).to_have_text("Nothing came for long; connecting again in 0.5 s.")
    assert stream.gone()


def test_stop_ends_the_connection_and_keeps_the_focus(server, page):
    follow(page)
    stream = server.stream()
    stream.event("job.state", 1, **RUNNING)
    expect(shown(page, "State")).to_have_text("running")
    button = page.get_by_role("button", name="Stop")
    button.focus()
    page.keyboard.press("Enter")
    expect(status(page)).to_have_text("Stopped.")
    expect(button).to_be_focused()
    assert stream.gone()
    page.keyboard.press("Enter")
    expect(status(page)).to_have_text("Stopped.")

    # While it waits for its next try, too.
    server.refuse(200, "", content_type="text/event-stream")
    follow(page)
    expect(status(page)).to_have_text("The stream ended before the job did; connecting again in 0.5 s.")
    button.click()
    expect(status(page)).to_have_text("Stopped.")
    follow(page, "job_2")
    assert server.stream().path == "/v1/jobs/job_2/events"
    assert server.streams.empty()


def test_following_another_job_drops_the_one_before(server, page):
    follow(page)
    first = server.stream()
    first.event("job.state", 1, **RUNNING)
    expect(page.locator("#events b")).to_have_count(1)
    follow(page, "job_2")
    second = server.stream()
    assert first.gone()
    assert "Last-Event-ID" not in second.headers
    second.event("job.state", 1, **QUEUED)
    expect(shown(page, "State")).to_have_text("queued")
    assert events(page) == ["job.state"]


REFUSED = {
    "key": (401, {}, '{"error": {"message": "<b>no</b>"}}', "The server does not accept this key: <b>no</b>"),
    "job": (404, {}, "not even JSON", "There is no such job for this key."),
    "other": (400, {}, '{"message": "what?"}', "The server answered 400: what?"),
    "kind": (200, {"content_type": "text/html"}, "<p>", "The server's answer is no event stream."),
    "redirect": (302, {"location": "/elsewhere"}, "", "The server answered with a redirect."),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_ends_it_and_is_told(server, page, browser, name):
    code, headers, body, told = REFUSED[name]
    if code >= 400:
        browser.expects(f"status of {code}")
    server.refuse(code, body, **headers)
    follow(page)
    expect(status(page)).to_have_text(told)
    expect(page.get_by_role("button", name="Stop")).to_have_attribute("aria-disabled", "true")
    assert server.streams.empty()


def test_a_form_that_is_not_filled_asks_nothing_of_the_server(server, page, browser):
    page.get_by_role("button", name="Follow").click()
    follow(page, job="   ")
    assert page.locator("#job").evaluate("field => field.validationMessage") == "Give the id of a job."
    follow(page, key="ключ")
    assert page.locator("#key").evaluate("field => field.validationMessage").startswith("A key has visible ASCII")
    assert [request.url for request in browser.requests if "/v1/" in request.url] == []
    follow(page)
    server.stream()


def test_what_a_job_says_is_text_and_never_markup(server, page):
    evil = "<img src=x onerror=console.error(1)>"
    follow(page)
    stream = server.stream()
    stream.send(f"event: {evil}\nid: {evil}\ndata: {json.dumps({**DONE, 'title': evil})}\n\n")
    stream.send(f"data: {evil}\n\ndata: 7\n\n")
    expect(shown(page, "Title")).to_have_text(evil)
    expect(page.locator("#events b")).to_have_count(3)
    assert events(page) == [evil, "message", "message"]
    expect(page.get_by_text("its data is no JSON object")).to_have_count(2)
    assert page.locator("img").count() == 0


PIECES = (
    "\ufeff: ping\r\n\r\nid: 1\revent: job.state\rdata: é读😀\r\r",
    "data:two\r\ndata: lines\r\n\r\n",
    "id: a\0b\nretry\nfoo: bar\ndata\n\nid\nevent: none\n\n:c\ndata:  x: y\r\n\r\ndata: cut off",
)
PARSED = [
    {"name": "job.state", "id": "1", "data": "é读😀"},
    {"name": "message", "id": "1", "data": "two\nlines"},
    {"name": "message", "id": "1", "data": ""},
    {"name": "message", "id": "", "data": " x: y"},
]
PARSE = """(cases) => {
  PARSER
  return cases.map((parts) => {
    const parser = new EventParser(), events = [];
    parser.restart();
    for (const part of parts) events.push(...parser.push(new Uint8Array(part)));
    return {events, comments: parser.comments};
  });
}"""


def test_events_are_the_same_however_the_bytes_are_cut(page):
    text = files("mock_server.pages").joinpath("follow.html").read_text(encoding="utf-8")
    script = PARSE.replace("PARSER", re.search(r"^class EventParser \{.*?^\}", text, re.MULTILINE | re.DOTALL)[0])
    data = "".join(PIECES).encode()
    cuts = [
        (),
        *combinations(range(1, len(data)), 1),
        *((n, n + 1) for n in range(1, len(data) - 1)),
        range(1, len(data)),
    ]
    cases = [[list(data[a:b]) for a, b in zip([0, *cut], [*cut, len(data)], strict=True)] for cut in cuts]
    for cut, seen in zip(cuts, page.evaluate(script, cases), strict=True):
        assert seen == {"events": PARSED, "comments": 2}, cut


def test_bytes_one_by_one_make_the_same_page(server, page):
    follow(page)
    stream = server.stream()
    job = json.dumps({**DONE, "title": "é读😀"}, ensure_ascii=False)
    for byte in f"id: 5\r\nevent: job.completed\r\ndata: {job}\r\n\r\n".encode():
        stream.send(bytes([byte]))
    expect(shown(page, "Title")).to_have_text("é读😀")
    expect(status(page)).to_have_text("Ended: the job completed.")


def test_the_list_is_bounded(server, page):
    follow(page)
    stream = server.stream()
    stream.send("".join(f"id: {n}\nevent: job.progress\ndata: {{}}\n\n" for n in range(1, 702)))
    expect(page.locator("#events li").first).to_contain_text("#701")
    expect(page.locator("#events li")).to_have_count(500)


LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
CONTRASTS = """() => {
  const parts = (colour) => colour.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parts(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  return [...document.querySelectorAll("main *")]
    .filter((e) => e.matches("input") || [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
    .filter((e) => e.checkVisibility())
    .map((e) => [light(parts(getComputedStyle(e).color)), light(behind(e)), e])
    .map(([a, b, e]) => [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 80)]);
}"""


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_it_can_be_read_on_a_desk_and_a_phone_in_light_and_dark(server, browser, width, scheme):
    page = browser.open(f"{server.url}/__pages__/follow", viewport={"width": width, "height": 844}, color_scheme=scheme)
    follow(page, job="job_" + "x" * 200)
    stream = server.stream()
    for state in ("queued", "running", "failed", "cancelled", "done"):
        stream.event("job.state", 1, **{**DONE, "status": state, "title": "W" * 80, "progress": PROGRESS})
        expect(shown(page, "State")).to_have_text(state)
        poor = [(ratio, what) for ratio, what in page.evaluate(CONTRASTS) if ratio < 4.5]
        assert poor == []
    page.locator("summary").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("Follow", "Stop"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= width


def test_times_of_receipt_are_the_clocks(server, page):
    follow(page)
    stream = server.stream()
    before = datetime.now().timestamp()
    stream.event("job.state", 1, **RUNNING)
    expect(page.locator("#events time")).to_have_count(1)
    after = datetime.now().timestamp()
    at = datetime.fromisoformat(page.locator("#events time").get_attribute("datetime")).timestamp()
    assert before - 0.001 <= at <= after
