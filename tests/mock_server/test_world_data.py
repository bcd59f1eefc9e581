"""A world as a data file: made of it again, it is equal, and goes on as it would have."""

from __future__ import annotations

import asyncio
import json
import random

import httpx
import pytest
import yaml
from asgi import ask
from mock_world import KEY, start, stop

from mock_server.control import Guard
from mock_server.seed_data import SeedData, export, to_yaml
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

TYPES = ["learning_state_analysis", "quiz_generation"]
AWKWARD = [
    "yes",
    "1e3",
    "007",
    "~",
    "2020-01-01",
    "a: b #c",
    " x ",
    "\u0000\u0085\u2028",
    "汉字 😀",
    "'\"\\\n\t",
    "-",
    "<<",
]


def busy(app, prefix: str, seed: int) -> None:
    """Have jobs of every state in a world, with results, logs, keys and texts that are hard to write."""
    rng = random.Random(seed)

    def state(name, **params):
        body = {"action": "setup", "state": name, "params": params}
        status, _, answer = ask(app, "POST", f"{prefix}/__control__/provider-states/runtime-api", body)
        assert status == 200, answer
        return answer

    def operate(job, what, **body):
        path = f"{prefix}/internal/runtime/jobs/{job}/{what}"
        status, _, answer = ask(app, "POST", path, {"runtimeInstanceId": "r", **body}, x_runtime_instance_id="r")
        assert status < 300, answer

    for n in range(40):
        texts, kind = rng.sample(AWKWARD, 3), rng.choice(TYPES)
        job = state(
            "job",
            jobType=kind,
            userId=f"user-{n % 4}",
            targetId=texts[0],
            params={texts[1]: [texts[2], None, 1.5, n]},
            timeoutSeconds=rng.choice([5, 59, 60, 61, 600]),
            maxRetryCount=rng.choice([0, 1, 3]),
            snapshot=rng.choice(["valid", "none", "missing", "expired"]),
            **({"idempotencyKey": f"key-{n}"} if n % 3 == 0 else {}),
        )["jobId"]
        steps = rng.choice([[], ["lock"], ["lock", "heartbeat"], ["lock", "heartbeat", "fail"], ["lock", "result"]])
        for step in steps:
            if step == "fail":
                retry = rng.random() < 0.5
                operate(job, "fail", errorCode="MODEL_TIMEOUT", errorMessage=texts[0], retryable=retry)
            elif step == "result":
                output = {"status": "succeeded", "attemptNo": 0, "outputHash": texts[1], "rawOutput": texts}
                version = "quiz_output_v1" if kind == TYPES[1] else "analysis_output_v1"
                operate(job, "result", validatedOutput={"a": texts}, schemaVersion=version, **output)
            else:
                operate(job, step)
        if n % 10 == 0 and not steps:
            state("cancel-job", jobId=job)
        state("advance-time", seconds=rng.choice([0, 0.4, 1]))
    key = state("credential", userId="user-1")["apiKey"]
    log = {"jobId": "any", "provider": "deepseek", "model": "m", "apiKeyMode": "platform_key", "success": False}
    log |= {"runtimeInstanceId": "r", "errorMessage": f"with {key} and {AWKWARD[8]}"}
    assert ask(app, "POST", f"{prefix}/internal/runtime/invocation-logs", {"logs": [log]})[0] == 201
    state("revoke-ai-consent", userId="user-3")


@pytest.fixture
def mock():
    worlds = Worlds(Options(api_key=KEY, clock="manual"))
    return worlds, Server(worlds, Guard(None, None))


def exported(app, world="default"):
    status, _, data = ask(app, "GET", f"/__control__/worlds/{world}/data")
    assert status == 200
    return data


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_world_made_of_the_data_is_equal_and_goes_on_equally(mock, seed, form):
    _, app = mock
    busy(app, "", seed)
    data = exported(app)
    assert {job["status"] for job in data["jobs"]} == {
        "pending",
        "locked",
        "running",
        "succeeded",
        "failed",
        "cancelled",
    }
    assert {"now", "jobs", "snapshots", "credentials", "results", "invocationLogs"} == set(data)
    loaded = data
    if form == "yaml":
        status, headers, text = ask(app, "GET", "/__control__/worlds/default/data?format=yaml")
        assert (status, headers["content-type"]) == (200, "application/yaml")
        loaded = yaml.safe_load(text)
        assert loaded == data
    assert ask(app, "POST", "/__control__/worlds", {"id": "copy", "data": loaded})[0] == 201
    assert exported(app, "copy") == data

    rng = random.Random(seed)
    fired = 0
    for _ in range(6):
        body = {"seconds": rng.choice([0.001, 10, 49.999, 60, 600])}
        here, there = (
            ask(app, "POST", f"{path}/__control__/clock/advance", body)[2] for path in ("", "/__worlds__/copy")
        )
        assert here == there
        fired += here["firedCount"]
        assert exported(app) == exported(app, "copy")
    assert fired > 3


def test_no_secret_of_the_world_but_its_credentials_is_in_it(mock):
    worlds, app = mock
    busy(app, "", 0)
    text = json.dumps(exported(app))
    (credential,) = exported(app)["credentials"]
    assert text.count(credential["apiKey"]) == 1
    assert worlds.default.platform_key not in text
    assert KEY not in text


def test_the_keys_of_what_is_loaded_are_redacted_again(mock):
    _, app = mock
    credential = {"id": "c", "userId": "u", "apiKey": "a-plain-secret"}
    row = {"id": "l", "jobId": "j", "createdAt": 1, "log": {"errorMessage": "says a-plain-secret"}}
    data = {"credentials": [credential], "invocationLogs": [row]}
    assert ask(app, "POST", "/__control__/worlds", {"id": "w", "data": data})[0] == 201
    assert exported(app, "w")["invocationLogs"] == [{**row, "log": {"errorMessage": "says [redacted]"}}]


@pytest.mark.parametrize(("clock", "at_most"), [("manual", 0), ("real", 60_000), ("x60", 3_600_000)])
def test_time_goes_on_from_the_instant_of_the_data(mock, clock, at_most):
    _, app = mock
    now = 1_000_000_000_000
    ask(app, "POST", "/__control__/worlds", {"id": "w", "clock": clock, "data": {"now": now}})
    for _ in range(2):
        assert 0 <= ask(app, "GET", "/__worlds__/w/__control__/clock")[2]["now"] - now <= at_most
        ask(app, "POST", "/__worlds__/w/__control__/clock/advance", {"seconds": 86_400})
        ask(app, "POST", "/__control__/worlds/w/reset")


def test_an_empty_world_is_an_instant(mock):
    worlds, app = mock
    assert exported(app) == {"now": worlds.default.clock.now()}
    assert ask(app, "GET", "/__control__/worlds/default/data?format=toml")[0] == 400
    assert ask(app, "GET", "/__control__/worlds/none/data")[0] == 404


def test_the_file_serves_a_mock(mock, tmp_path):
    _, app = mock
    busy(app, "", 1)
    path = tmp_path / "world.yaml"
    path.write_text(ask(app, "GET", "/__control__/worlds/default/data?format=yaml")[2].decode(), encoding="utf-8")
    process, url = start("--clock", "manual", "--data", str(path))
    assert httpx.get(f"{url}/__control__/worlds/default/data").json() == exported(app)
    assert stop(process) == ""


def test_a_file_that_was_read_and_written_says_the_same(tmp_path):
    worlds = Worlds(Options(api_key=KEY, clock="manual"))
    jobs = [
        {"id": f"j{n}", "userId": text, "jobType": TYPES[0], "targetType": "user", "targetId": text}
        for n, text in enumerate(AWKWARD)
    ]
    asyncio.run(worlds.default.fill(SeedData.parse({"now": 5, "jobs": jobs})))
    path = tmp_path / "data.yaml"
    path.write_text(to_yaml(asyncio.run(export(worlds.default))), encoding="utf-8")
    copy = worlds.make()
    asyncio.run(copy.fill(SeedData.read(path)))
    assert asyncio.run(export(copy)) == asyncio.run(export(worlds.default))
