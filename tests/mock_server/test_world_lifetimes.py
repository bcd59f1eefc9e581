"""A world that nobody touches for its lifetime goes away, with all that it held."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
import weakref

import pytest
from asgi import ask, request
from mock_world import KEY

from mock_server.control import Guard
from mock_server.seed_data import SeedData
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

JOB = {"id": "job-1", "userId": "u", "jobType": "quiz_generation", "targetType": "user", "targetId": "u"}


class Mock:
    """A mock in this process, with real time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.worlds = Worlds(Options(api_key=KEY, clock="manual"), monotonic=lambda: self.seconds)
        self.app = Server(self.worlds, Guard(None, None))

    def passes(self, seconds: float) -> None:
        self.seconds += seconds
        self.worlds.expire()

    def make(self, **options):
        status, _, made = ask(self.app, "POST", "/__control__/worlds", options)
        assert status == 201, made
        return made

    def there(self, id_: str) -> bool:
        return self.worlds.get(id_) is not None


@pytest.fixture
def mock():
    return Mock()


def test_a_world_goes_when_its_lifetime_passed_without_a_request(mock):
    mock.make(id="short", lifetimeSeconds=30)
    mock.make(id="long", lifetimeSeconds=3600)
    mock.make(id="for-ever")
    mock.passes(29.9)
    assert mock.there("short")
    mock.passes(0.1)
    assert [world.id for world in mock.worlds] == ["default", "long", "for-ever"]
    for path in ("/__worlds__/short/internal/runtime/jobs/poll", "/__control__/worlds/short"):
        status, _, answer = ask(mock.app, "GET", path)
        assert status == 404
        assert "its lifetime passed" in answer["error"]
    mock.make(id="short")
    assert ask(mock.app, "GET", "/__control__/worlds/short")[0] == 200
    mock.worlds.drop("short")
    assert "lifetime" not in ask(mock.app, "GET", "/__control__/worlds/short")[2]["error"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/__worlds__/w/internal/runtime/jobs/j/snapshot"),
        ("GET", "/__worlds__/w/__control__/clock"),
        ("GET", "/__worlds__/w/no/such/path"),
        ("POST", "/__control__/worlds/w/reset"),
        ("POST", "/__control__/worlds/w/snapshots"),
        ("GET", "/__control__/worlds/w/data"),
    ],
)
def test_every_request_to_it_prolongs_its_life(mock, method, path):
    mock.make(id="w", lifetimeSeconds=30)
    mock.passes(29)
    ask(mock.app, method, path)
    mock.passes(29)
    assert mock.there("w")
    mock.passes(1)
    assert not mock.there("w")


def test_a_request_by_its_key_prolongs_its_life(mock):
    mock.make(id="w", lifetimeSeconds=30, apiKey="key-of-w")
    mock.passes(29)
    ask(mock.app, "GET", "/anything", x_internal_api_key="key-of-w")
    mock.passes(29)
    assert mock.there("w")


def test_to_look_whether_it_lives_does_not(mock):
    mock.make(id="w", lifetimeSeconds=30)
    mock.passes(12.5)
    _, _, seen = ask(mock.app, "GET", "/__control__/worlds/w")
    assert (seen["lifetimeSeconds"], seen["expiresInSeconds"]) == (30, 17.5)
    assert ask(mock.app, "GET", "/__control__/worlds")[2]["worlds"][1]["expiresInSeconds"] == 17.5
    mock.passes(17.5)
    assert not mock.there("w")


def test_a_world_stays_while_a_request_is_in_progress(mock):
    made = mock.make(id="w", lifetimeSeconds=1)
    sent = []

    async def scenario() -> None:
        more = asyncio.Event()

        async def receive():
            await more.wait()
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message):
            sent.append(message)

        path = f"{made['path']}/internal/runtime/jobs/poll"
        headers = [(b"x-internal-api-key", KEY.encode()), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "server": ("127.0.0.1", 80),
            "headers": headers,
        }
        task = asyncio.create_task(mock.app(scope, receive, send))
        await asyncio.sleep(0)
        mock.passes(10)
        assert mock.there("w")
        more.set()
        await task

    asyncio.run(scenario())
    assert sent[0]["status"] == 400
    mock.passes(0.9)
    assert mock.there("w")
    mock.passes(0.1)
    assert not mock.there("w")


def test_a_served_world_goes_within_a_second(client, base_url):
    id_ = client.post(f"{base_url}/__control__/worlds", json={"lifetimeSeconds": 0.1}).json()["id"]
    begin = time.monotonic()
    while client.get(f"{base_url}/__control__/worlds/{id_}").status_code == 200:
        assert time.monotonic() - begin < 1.5
        time.sleep(0.02)
    assert time.monotonic() - begin > 0.05


def test_all_worlds_but_the_default_one_are_dropped_at_once(mock):
    for _ in range(5):
        mock.make()
    mock.make(apiKey="key-of-one")
    assert ask(mock.app, "DELETE", "/__control__/worlds")[::2] == (200, {"dropped": 6})
    assert [world.id for world in mock.worlds] == ["default"]
    assert mock.worlds.by_key == {}
    assert ask(mock.app, "DELETE", "/__control__/worlds")[2] == {"dropped": 0}


@pytest.mark.parametrize("options", [{}, {"apiKey": "key-of-w"}, {"lifetimeSeconds": 1}], ids=str)
def test_nothing_of_a_dropped_world_stays(mock, options):
    """No reference is left, not even a circle that the garbage collector would have to find."""
    made = mock.make(id="w", data={"jobs": [JOB]}, **options)
    key = options.get("apiKey", KEY)
    body = b'{"runtimeInstanceId": "r", "supportedJobTypes": ["quiz_generation"]}'
    fields = {"x-internal-api-key": key, "content-type": "application/json"}
    for path in (made["path"] + "/internal/runtime/jobs/poll", "/internal/runtime/jobs/poll"):
        assert asyncio.run(request(mock.app, "POST", path, body, fields))[0] == 200
    ask(mock.app, "POST", "/__control__/worlds/w/snapshots")
    world = weakref.ref(mock.worlds.get("w"))
    gc.collect()
    gc.disable()
    try:
        ask(mock.app, "DELETE", "/__control__/worlds/w")
        assert world() is None
    finally:
        gc.enable()


def test_worlds_that_come_and_go_leave_no_memory():
    worlds = Worlds(Options(api_key=KEY, clock="manual"))
    seeds = SeedData.parse({"jobs": [{**JOB, "id": f"job-{n}"} for n in range(20)]})

    def round_of_worlds() -> None:
        for n in range(50):
            world = worlds.make(api_key=f"key-of-{n:04}", lifetime=5)
            asyncio.run(world.fill(seeds))
            asyncio.run(world.snapshots.take(world))
        assert worlds.drop_all() == 50
        gc.collect()

    round_of_worlds()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        round_of_worlds()
        after, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most - before > 1_000_000
    assert after - before < 100_000
