"""The server's own deliveries of webhooks: to whom they may go, how long they may take and what they leave behind."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import httpx
import pytest
from hub_world import AT_ONCE, TOKEN, HubWorld, Receiver, made, served

from mock_server.hub.webhooks import Webhooks

if TYPE_CHECKING:
    from collections.abc import Iterator

STRANGERS = [
    "http://team.example/hook",
    "http://127.0.0.1.example/",
    "http://localhost.example/",
    "http://localhost./",
    "http://127.0.0.1@team.example/",
    "http://127.0.0.1:80@team.example/",
    "http://localhost%40team.example/",
    "http://127.0.0.1%2eteam.example/",
    "http://team.example/@127.0.0.1",
    "http://team.example?@127.0.0.1/",
    "http://team.example#@127.0.0.1/",
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://127.1/",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://[::ffff:10.0.0.1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://[fd00::1]/",
    "http://sub.localhost/",
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "//127.0.0.1/",
    "http:///hook",
    "http://127.0.0.1:99999/",
    "http://[::1].team.example/",
    "",
]
"""URLs of hosts that are not allowed, or of none, many of which look as if they were loopback ones."""
TRICKS = [
    "http://team.example\\@127.0.0.1/",
    "http://127.0.0.1\\@team.example/",
    "http://127.0.0.1\\.team.example/",
    "http://127.0.0.1\t.team.example/",
    "http://127.0.0.1\n@team.example/",
    " http://127.0.0.1/",
    "http://127.0.0.1 .team.example/",
    "http://a@b@127.0.0.1/",
    "http://127.0.0.1@b@team.example/",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
    "http://127.0.0.1。team.example/",
    "http://localhost%00.team.example/",
    "http://[::1%25team.example]/",
    "http://[::1]team.example/",
    "http://127.0.0.1,team.example/",
]
"""What parsers of URLs read in different ways."""


@pytest.fixture
def hub(world):
    """The hub of the test's world, with a node whose project's jobs are done as they start."""
    return made(HubWorld(world))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    receiver = Receiver()
    yield receiver
    receiver.close()


@contextmanager
def silent():
    """The URL of a receiver that takes connections and never answers, and what connected."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    taken: list[socket.socket] = []
    ended = threading.Event()

    def take() -> None:
        while not ended.is_set():
            try:
                taken.append(listener.accept()[0])
            except TimeoutError:
                continue

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook", taken
    finally:
        ended.set()
        thread.join()
        for connection in (*taken, listener):
            connection.close()


def connected(taken: list[socket.socket]) -> None:
    """Wait until somebody called."""
    deadline = time.monotonic() + 5
    while not taken:
        assert time.monotonic() < deadline
        time.sleep(0.01)


# To whom


@pytest.mark.parametrize("url", STRANGERS)
def test_strangers_are_refused(hub, url):
    item = {"kind": "ai", "projectId": "proj", "prompt": "x", "callbackUrl": url}
    refused = hub.send("POST", "/v1/jobs", json={"items": [item]})
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["code"] == "invalid_request"
    assert {(entry["index"], entry["field"]) for entry in error["details"]} == {(0, "callbackUrl")}
    assert hub.try_state("default-callback", url=url).status_code == 400
    assert hub.send("GET", "/v1/jobs").json()["data"]["items"] == []


@pytest.mark.parametrize("url", [*STRANGERS, *TRICKS])
def test_what_is_allowed_is_what_the_client_calls(url):
    """The client's own reading of a URL leads to a loopback host wherever it is allowed."""
    webhooks = object.__new__(Webhooks)
    webhooks.hub = SimpleNamespace(options=SimpleNamespace(allowed_hosts=frozenset()))
    if webhooks.allowed(url):
        request = httpx.Request("POST", url)
        assert request.url.host.partition("%")[0] in ("127.0.0.1", "::1")
        assert "team.example" not in request.headers["host"].rpartition("@")[2].partition("%")[0]
    assert not webhooks.allowed(url) or url in TRICKS


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "user:word@127.0.0.1"])
def test_loopback_is_called(hub, receiver, host):
    port = receiver.url.rpartition(":")[2]
    hub.submit({"callbackUrl": f"http://{host}:{port}"})
    hub.state("advance-time", seconds=0)
    assert len(receiver.got) == 2


def test_loopback_of_version_6_is_called(hub):
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no ::1")
    with listener:
        hub.submit({"callbackUrl": f"http://[::1]:{listener.getsockname()[1]}/hook"})
        listener.settimeout(5)
        connection, _ = listener.accept()
        assert connection.recv(4) == b"POST"
        connection.close()


def test_a_host_that_is_named_is_called(receiver):
    """0.0.0.0 is no loopback address, though it leads here."""
    port = receiver.url.rpartition(":")[2]
    with served("--allow-callback-host", "0.0.0.0", "--allow-callback-host", "Team.Example") as hub:
        hub.submit({"callbackUrl": f"http://0.0.0.0:{port}"})
        hub.state("advance-time", seconds=0)
        assert len(receiver.got) == 2
        hub.state("default-callback", url="https://TEAM.example/hook")
        for url in (
            "http://sub.team.example/",
            "http://team.example.org/",
            "http://team.example@127.1/",
            "http://[::]/",
        ):
            assert hub.try_state("default-callback", url=url).status_code == 400


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_nowhere(hub, receiver, status):
    pointing = Receiver(status, location=receiver.url)
    try:
        hub.submit({"callbackUrl": pointing.url})
        hub.state("advance-time", seconds=5)
        assert [json.loads(body)["type"] for _, body in pointing.got] == ["job.completed"] * 2
        assert receiver.got == []
    finally:
        pointing.close()


def test_no_proxy_of_the_environment_is_used(receiver, monkeypatch):
    proxy = Receiver()
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url.removesuffix("/hook"))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    try:
        with served() as hub:
            hub.submit({"callbackUrl": receiver.url})
            hub.state("advance-time", seconds=0)
        assert len(receiver.got) == 2
        assert proxy.got == []
    finally:
        proxy.close()


# How long


def test_a_delivery_in_flight_has_its_time_before_the_clock_moves(hub):
    slow = Receiver(delay=0.3)
    try:
        hub.submit({"callbackUrl": slow.url})
        hub.state("advance-time", seconds=86_400)
        types = [json.loads(body)["type"] for _, body in slow.got]
        assert types == ["job.completed", "batch.completed"]
    finally:
        slow.close()


def test_a_delivery_in_flight_gets_a_second_and_no_more(hub):
    with silent() as (url, taken):
        hub.submit({"callbackUrl": url})
        connected(taken)
        began = time.monotonic()
        hub.state("advance-time", seconds=9.999)
        assert 0.5 < time.monotonic() - began < 5
        began = time.monotonic()
        hub.state("advance-time", seconds=0)
        assert time.monotonic() - began < 0.9
        assert len(taken) == 1
        hub.state("advance-time", seconds=5)
        assert len(taken) == 1
        hub.state("advance-time", seconds=0.001)
        assert len(taken) == 2


def test_a_receiver_that_hangs_holds_up_nobody(hub, receiver):
    with silent() as (url, taken):
        hub.submit({"callbackUrl": url})
        connected(taken)
        began = time.monotonic()
        second = HubWorld(hub.world, TOKEN + "_b")  # whose job is not queued a millisecond later
        (job,) = second.submit({"callbackUrl": receiver.url})
        receiver.wait(2)
        assert second.job(job)["status"] == "done"
        assert time.monotonic() - began < 3


def test_a_receiver_that_hangs_does_not_hold_up_the_end_of_the_server():
    with silent() as (url, taken):
        with served() as hub:
            hub.submit({"callbackUrl": url})
            connected(taken)
            began = time.monotonic()
        assert time.monotonic() - began < 3


def test_deliveries_that_hang_are_waited_for_together(hub):
    with silent() as (url, taken):
        projects = [f"p{i}" for i in range(10)]
        hub.state("node", nodeId="node-2", projects=projects)
        for i, project in enumerate(projects):  # queued a millisecond after the other, done at the same time
            hub.state("outcome", projectId=project, attempts=[{"afterSeconds": 1 - i / 1000}])
        hub.submit(*({"projectId": project, "callbackUrl": url} for project in projects))
        began = time.monotonic()
        hub.state("advance-time", seconds=4)
        assert time.monotonic() - began < 6
        assert len(taken) == 10


# The end of it


@pytest.mark.parametrize("how", ["state", "world"])
def test_reset_breaks_off_what_is_to_come(hub, world, how):
    failing = Receiver(500)
    with silent() as (url, taken):
        try:
            hub.submit({"callbackUrl": failing.url}, {"callbackUrl": url})
            hub.state("advance-time", seconds=0.001)
            failing.wait(1)
            connected(taken)
            if how == "state":
                hub.state("reset")
            else:
                id_ = world.path.rpartition("/")[2]
                assert world.control("POST", f"/worlds/{id_}/reset").status_code == 204
            taken[0].settimeout(5)
            while taken[0].recv(65536):
                pass  # what was on its way is broken off
            hub.state("advance-time", seconds=3600)
            assert (len(failing.got), len(taken)) == (1, 1)
            made(hub)
            hub.submit({"callbackUrl": failing.url})
            failing.wait(2)
        finally:
            failing.close()


# Batches


def test_a_batch_whose_jobs_end_as_they_start_is_told_of_once(hub, receiver):
    hub.state("node", nodeId="node-2", projects=["other"])
    hub.state("outcome", projectId="other", attempts=AT_ONCE)
    items = [{"projectId": project, "callbackUrl": receiver.url} for project in ("proj", "other") * 3]
    hub.submit(*items, batchId="b")
    hub.state("advance-time", seconds=1)
    told = [json.loads(body) for _, body in receiver.got]
    assert [event["type"] for event in told] == ["job.completed"] * 6 + ["batch.completed"]
    assert told[-1]["data"]["counts"]["done"] == 6


def test_a_default_is_the_one_in_force_when_the_event_happens(hub, receiver):
    hub.state("outcome", projectId="proj", attempts=[{"afterSeconds": 10}])
    hub.submit()
    hub.state("default-callback", url=receiver.url)
    hub.state("advance-time", seconds=10)
    assert len(receiver.got) == 2
    hub.submit()
    hub.state("default-callback", url=None)
    hub.state("advance-time", seconds=10)
    assert len(receiver.got) == 2
