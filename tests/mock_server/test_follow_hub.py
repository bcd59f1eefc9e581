"""The page that follows a job, in a real browser, beside the hub of the page's own world: soon, and to the end."""

from __future__ import annotations

import json
import re
import threading
from datetime import datetime

import httpx
import pytest
from fault_world import eventually
from hub_world import TOKEN, HubWorld
from mock_world import World, start, stop
from playwright.sync_api import expect

SOON = 0.2
"""Seconds within which the page shows what happens."""


@pytest.fixture
def hub(base_url, client):
    """The hub of a world of its own, on a clock that flows, with a node that has a project."""
    made = client.post(f"{base_url}/__control__/worlds", json={"clock": "real"}).json()
    hub = HubWorld(World(client, base_url, made["path"]))
    hub.state("node", nodeId="node-1", projects=["proj"])
    yield hub
    client.delete(f"{base_url}/__control__/worlds/{made['id']}")


def follow(browser, hub, job):
    """A page that follows the job in the hub's world."""
    page = browser.open(f"{hub.world.base_url}{hub.world.path}/__pages__/follow")
    page.get_by_label("Job id").fill(job)
    page.get_by_label("API key").fill(TOKEN)
    page.get_by_label("API key").press("Enter")
    return page


def status(page):
    return page.get_by_role("status")


def shown(page):
    """What the page lists, oldest first: the instant of receipt (epoch seconds), the event's name, its data."""
    items = page.locator("#events li").evaluate_all(
        "items => items.map((item) => ['time', 'b', 'pre'].map((part) => item.querySelector(part)))"
        ".map(([time, name, data]) => [time.dateTime, name.textContent, data.textContent])"
    )
    return [(instant(time), name, json.loads(data)) for time, name, data in reversed(items)]


def instant(text):
    return datetime.fromisoformat(text).timestamp()


class Second:
    """Another reader of the same stream, which tells what the page should have seen."""

    def __init__(self, hub, job):
        self.url = f"{hub.world.base_url}{hub.world.path}/v1/jobs/{job}/events"
        self.events = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        name = ""
        with httpx.stream("GET", self.url, headers={"authorization": f"Bearer {TOKEN}"}) as answer:
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    self.events.append((name, json.loads(value)))

    def ended(self):
        """All events, once the stream has ended."""
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()
        return self.events


def test_each_state_is_seen_soon_after_it_happened(hub, browser):
    progress = [{"atSeconds": 0.4, "toolCalls": 1, "lastActivity": "读"}, {"atSeconds": 0.8, "toolCalls": 2}]
    hub.state("outcome", projectId="proj", externalId="first", attempts=[{"afterSeconds": 3}])
    hub.state("outcome", projectId="proj", externalId="other", attempts=[{"afterSeconds": 1.2, "progress": progress}])
    _, job = hub.submit({"externalId": "first"}, {"externalId": "other"})  # the second one waits for the first
    second = Second(hub, job)
    page = follow(browser, hub, job)
    expect(status(page)).to_have_text("Following. The job is queued.")
    expect(status(page)).to_have_text("Ended: the job completed.")

    seen = shown(page)
    assert [(name, data) for _, name, data in seen] == second.ended()
    assert [data["status"] for _, _, data in seen] == ["queued", "running", *["running"] * (len(seen) - 3), "done"]
    assert {data["progress"]["toolCalls"] for _, _, data in seen if data["progress"]} >= {1, 2}
    # When it happened: by the hub's own account, whose clock is this machine's, as the page's is.
    happened = [
        instant(data["finishedAt"] or (data["progress"] or {}).get("updatedAt") or data["startedAt"])
        for _, _, data in seen[1:]
    ]
    late = [at - then for (at, _, _), then in zip(seen[1:], happened, strict=True)]
    print("ms after it happened:", *(round(1000 * seconds) for seconds in late))
    assert all(-0.001 <= seconds <= SOON for seconds in late), late


def test_a_retry_to_come_is_no_end_and_a_cancel_is(hub, browser):
    failed = {"afterSeconds": 0.1, "result": "failed", "failureType": "llm_error", "retriable": True, "message": "429"}
    hub.state("outcome", projectId="proj", attempts=[failed])
    (job,) = hub.submit()
    page = follow(browser, hub, job)
    expect(status(page)).to_contain_text("The job is failed, attempt 1, next try at")
    expect(page.locator("#outcome")).to_have_text("llm_error: 429")
    assert hub.send("POST", f"/v1/jobs/{job}/cancel").status_code == 200
    expect(status(page)).to_have_text("Ended: the job was cancelled.")
    expect(page.locator("#state")).to_have_text("cancelled")


def test_a_job_that_is_removed_ends_it(hub, browser):
    hub.state("outcome", projectId="proj", attempts=[{"result": "hang"}])
    (job,) = hub.submit()
    page = follow(browser, hub, job)
    expect(status(page)).to_have_text("Following. The job is running, attempt 1.")
    hub.state("reset")
    expect(status(page)).to_have_text("Ended: the job was deleted.")


def test_a_page_that_stops_is_seen_by_the_server(hub, browser):
    hub.state("outcome", projectId="proj", attempts=[{"result": "hang"}])
    (job,) = hub.submit()
    page = follow(browser, hub, job)
    expect(status(page)).to_have_text("Following. The job is running, attempt 1.")
    assert hub.world.journal(match="/events") == []  # an exchange stands there when it has ended
    page.get_by_role("button", name="Stop").click()
    expect(status(page)).to_have_text("Stopped.")
    (entry,) = eventually(lambda: hub.world.journal(match="/events"))
    assert (entry["operationId"], entry["jobId"]) == ("streamJob", job)
    assert TOKEN not in json.dumps(entry)


def test_a_page_of_one_world_does_not_reach_another(hub, world, browser):
    (job,) = hub.submit()
    browser.expects("status of 404")
    page = follow(browser, HubWorld(world), job)
    expect(status(page)).to_contain_text("There is no such job for this key")


def test_a_wrong_key_is_told(hub, browser):
    browser.expects("status of 401")
    page = follow(browser, hub, *hub.submit())
    expect(status(page)).to_contain_text("Ended: the job completed.")
    page.get_by_label("API key").fill("zqa_live_wrong")
    page.get_by_role("button", name="Follow").click()
    expect(status(page)).to_contain_text("The server does not accept this key")


def test_a_server_that_goes_and_comes_back_is_found_again(browser):
    browser.expects("ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_EMPTY_RESPONSE")
    browser.expects("status of 404")
    process, url = start()
    with httpx.Client() as client:
        hub = HubWorld(World(client, url, ""))
        hub.state("node", nodeId="node-1", projects=["proj"])
        hub.state("outcome", projectId="proj", attempts=[{"result": "hang"}])
        (job,) = hub.submit()
        page = follow(browser, hub, job)
        expect(status(page)).to_have_text("Following. The job is running, attempt 1.")
        stop(process)
        expect(status(page)).to_have_text(re.compile(r"^The connection broke; connecting again in \d+ s\.$"))
        process, _ = start("--port", url.rpartition(":")[2])
        try:
            expect(status(page)).to_contain_text("There is no such job for this key")  # a server in memory forgets
        finally:
            stop(process)
