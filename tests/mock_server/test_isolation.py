"""Many worlds at once on one served mock: none sees another's job, journal entry or time."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random

import httpx
import pytest
from mock_world import KEY, start, stop

POLL = "/internal/runtime/jobs/poll"
STATES = "/__control__/provider-states/runtime-api"
TYPE = "learning_state_analysis"


@pytest.fixture(scope="module")
def mock():
    process, url = start("--clock", "manual")
    yield url
    assert stop(process) == ""


class Caller:
    """One kept connection, quicker than a client for people."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(url.partition("//")[2], timeout=30)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def ask(self, method: str, path: str, body: object = None, key: str = KEY) -> tuple[int, object]:
        headers = {"x-internal-api-key": key, "x-runtime-instance-id": "r", "content-type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if raw else None


def test_a_thousand_worlds_live_at_once_and_each_sees_its_own(mock):
    """Reached by path, by key or by port; in each a job, a caller's name, and an hour of its own."""
    with contextlib.ExitStack() as callers:
        caller = callers.enter_context(Caller(mock))
        worlds = []
        for n in range(1000):
            options = {"id": f"w{n}", "clock": "manual"}
            if n % 10 == 1:
                options["apiKey"] = f"key-of-world-{n}"
            if n % 10 == 2:
                options["port"] = True
            status, made = caller.ask("POST", "/__control__/worlds", options)
            assert status == 201, made
            # By key from the root, by its own port, or by its path.
            at = (
                (caller, "")
                if n % 10 == 1
                else (callers.enter_context(Caller(made["baseUrl"])), "")
                if n % 10 == 2
                else (caller, made["path"])
            )
            worlds.append((n, *at, options.get("apiKey", KEY), made["now"]))
        random.Random(1).shuffle(worlds)
        for n, at, path, key, _ in worlds:
            params = {"jobType": TYPE, "targetId": f"target-{n}"}
            assert at.ask("POST", path + STATES, {"action": "setup", "state": "job", "params": params}, key)[0] == 200
            assert at.ask("POST", f"{path}/__control__/clock/advance", {"seconds": n}, key)[0] == 200
            body = {"runtimeInstanceId": f"runtime-{n}", "supportedJobTypes": [TYPE]}
            ((job),) = at.ask("POST", path + POLL, body, key)[1]["jobs"]
            assert job["targetId"] == f"target-{n}"
        random.Random(2).shuffle(worlds)
        for n, at, path, key, began in worlds:
            assert at.ask("GET", f"{path}/__control__/clock", None, key)[1]["now"] == began + n * 1000
            (entry,) = at.ask("GET", f"{path}/__control__/journal", None, key)[1]["entries"]
            assert (entry["caller"], entry["at"]) == (f"runtime-{n}", began + n * 1000)
            assert caller.ask("GET", f"/__control__/worlds/w{n}")[1]["jobs"] == {"pending": 1}
        assert caller.ask("GET", "/__control__/journal")[1]["entries"] == []
        assert len(caller.ask("GET", "/__control__/worlds")[1]["worlds"]) == 1001
        assert caller.ask("DELETE", "/__control__/worlds")[1] == {"dropped": 1000}
        assert len(caller.ask("GET", "/__control__/worlds")[1]["worlds"]) == 1


async def one_test(mock: str, n: int) -> None:
    """What a team's test does: a world, jobs, a Runtime's calls, time; everything it sees is to be its own."""
    rng, me = random.Random(n), f"runtime-of-{n}"
    async with httpx.AsyncClient(timeout=60, verify=False) as client:
        options = {"clock": "manual", "lifetimeSeconds": 600}
        options |= [{}, {"port": True}, {"apiKey": f"key-of-test-{n}"}][n % 3]
        made = (await client.post(f"{mock}/__control__/worlds", json=options)).json()
        url = mock if n % 3 == 2 else made["baseUrl"]
        client.headers.update({"x-internal-api-key": options.get("apiKey", KEY), "x-runtime-instance-id": me})

        async def state(name, **params):
            body = {"action": "setup", "state": name, "params": params}
            answer = await client.post(url + STATES, json=body)
            assert answer.status_code == 200, answer.text
            return answer.json()

        async def call(path, **body):
            return await client.post(f"{url}/internal/runtime/jobs/{path}", json={"runtimeInstanceId": me, **body})

        now, mine, called = made["now"], [], 0
        for _ in range(rng.randint(3, 6)):
            job = (await state("job", jobType=TYPE, targetId=me))["jobId"]
            mine.append(job)
            listed = (await call("poll", supportedJobTypes=[TYPE], limit=50)).json()["jobs"]
            assert {entry["targetId"] for entry in listed} == {me}
            assert [entry["id"] for entry in listed] == mine
            assert (await call(f"{job}/lock")).json()["lockUntil"] == now + 60_000
            assert (await call(f"{job}/heartbeat")).status_code == 204
            called += 3
            seconds = rng.choice([61, 90, 3600])
            advanced = (await client.post(f"{url}/__control__/clock/advance", json={"seconds": seconds})).json()
            now += seconds * 1000
            # It lapsed and is pending again; nothing of another test fired here.
            assert advanced["now"] == now
            assert [(item["jobId"], item["to"]) for item in advanced["fired"]] == [(job, "pending")]
        entries = (await client.get(f"{url}/__control__/journal", params={"limit": 1000})).json()["entries"]
        assert len(entries) == called
        assert {entry["caller"] for entry in entries} == {me}
        data = (await client.get(f"{mock}/__control__/worlds/{made['id']}/data")).json()
        assert [job["id"] for job in data["jobs"]] == mine
        assert data["now"] == now
        assert (await client.delete(f"{mock}/__control__/worlds/{made['id']}")).status_code == 204


def test_fifty_tests_in_parallel_with_manual_clocks_see_nothing_of_each_other(mock):
    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(50):
                group.create_task(one_test(mock, n))

    asyncio.run(all_of_them())
    with Caller(mock) as caller:
        assert [world["id"] for world in caller.ask("GET", "/__control__/worlds")[1]["worlds"]] == ["default"]
        assert caller.ask("GET", "/__control__/journal")[1]["entries"] == []
        assert caller.ask("GET", "/__control__/worlds/default")[1]["jobs"] == {}
