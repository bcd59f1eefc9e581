"""submitInvocationLogs over HTTP: a batch is stored whole or not at all, counted, and without keys."""

from __future__ import annotations

import asyncio

import pytest

from mock_server.worlds import Options, World

FULL = {
    "credentialId": "cred-1",
    "promptName": "learning_state_analysis",
    "promptVersion": None,
    "outputSchemaVersion": "analysis_output_v1",
    "inputTokens": 1200,
    "outputTokens": 0,
    "totalTokens": 1650.0,
    "latencyMs": 3200,
    "costEstimate": 0.25,
    "success": False,
    "errorCode": None,
    "errorMessage": "timed out",
    "retryCount": 0,
    "traceId": "trace-1",
    "correlationId": None,
}


def code(answer):
    return answer.status_code, answer.json()["errorCode"]


def test_a_batch_is_counted_by_its_jobs(world):
    job, other = world.state("job")["jobId"], world.state("job")["jobId"]
    answer = world.logs({"jobId": job, **FULL}, {"jobId": job}, {"jobId": other}, {"jobId": "job-gone"})
    assert (answer.status_code, answer.json()) == (201, {"accepted": 4})
    assert world.logs({"jobId": job}).json() == {"accepted": 1}
    assert [world.inspect(id_)["logCount"] for id_ in (job, other)] == [3, 1]
    before = world.inspect(job)
    world.logs({"jobId": job, "runtimeInstanceId": "runtime-2", "success": False})
    assert world.inspect(job) == before | {"logCount": 4}


@pytest.mark.parametrize("size", [1, 500])
def test_a_batch_has_up_to_500_logs(world, size):
    job = world.state("job")["jobId"]
    assert world.logs(*[{"jobId": job}] * size).json() == {"accepted": size}
    assert world.inspect(job)["logCount"] == size


@pytest.mark.parametrize("size", [0, 501])
def test_no_other_size_is_taken(world, size):
    assert code(world.logs(*[{}] * size)) == (400, "INVALID_REQUEST")


KEYS = {
    "apiKey": {"apiKey": "plain-text-key"},
    "in another case": {"APIKEY": None},
    "deep": {"errorMessage": {"headers": [{"ApiKey": "x"}]}},
    "unknown property": {"temperature": 1},
    "negative": {"inputTokens": -1},
    "a fraction of a token": {"totalTokens": 1.5},
    "no job": {"jobId": None},
    "null where no column is nullable": {"latencyMs": None},
    "unknown mode": {"apiKeyMode": "own_key"},
}


@pytest.mark.parametrize("bad", KEYS.values(), ids=KEYS)
def test_one_bad_log_and_none_is_stored(world, bad):
    job = world.state("job")["jobId"]
    answer = world.logs({"jobId": job}, {"jobId": job, **bad}, {"jobId": job})
    assert code(answer) == (400, "INVALID_REQUEST")
    assert all(entry["location"].startswith("/logs/1") for entry in answer.json()["details"])
    assert world.inspect(job)["logCount"] == 0
    assert "plain-text-key" not in answer.text + repr(world.journal())


def test_a_key_beside_the_logs_is_refused(world):
    job = world.state("job")["jobId"]
    answer = world.logs({"jobId": job}, apiKey="plain-text-key")
    assert code(answer) == (400, "INVALID_REQUEST")
    assert world.inspect(job)["logCount"] == 0
    assert "plain-text-key" not in answer.text + repr(world.journal())
    assert world.logs({"jobId": job}, more={"unknown": 1}).status_code == 201


def test_logs_are_stored_without_keys():
    """What is stored can't be read over HTTP, so this looks into the store."""
    from asgi import ask

    from mock_server.control import Guard
    from mock_server.server import Server
    from mock_server.worlds import Worlds

    worlds = Worlds(Options("test-internal-key", "manual"))
    app = Server(worlds, Guard(None, None))
    setup = {"action": "setup", "state": "credential", "params": {}}
    key = ask(app, "POST", "/__control__/provider-states/runtime-api", setup)[2]["apiKey"]
    log = {
        "jobId": "job-1",
        "provider": "deepseek",
        "model": "deepseek-chat",
        "apiKeyMode": "platform_key",
        "success": False,
        "runtimeInstanceId": "runtime-1",
        "errorMessage": f"refused: {key} and sk-other",
        "traceId": worlds.default.platform_key,
    }
    assert ask(app, "POST", "/internal/runtime/invocation-logs", {"logs": [log]})[0] == 201
    (row,) = asyncio.run(worlds.default.engine.rows_of("StoredLog", "job-1"))
    assert row["log"] == log | {"errorMessage": "refused: [redacted] and [redacted]", "traceId": "[redacted]"}


def test_rows_are_inserted_all_or_none():
    world = World("w", Options("test-internal-key", "manual"))
    engine = world.engine

    async def act():
        await engine.insert("StoredLog", {"id": "log-2", "jobId": "j", "log": {}})
        with pytest.raises(KeyError, match="log-2"):
            await engine.insert_all(
                "StoredLog", [{"id": id_, "jobId": "j", "log": {}} for id_ in ("log-1", "log-2", "log-3")]
            )
        with pytest.raises(KeyError):
            await engine.insert_all("StoredLog", [{"id": "log-4", "jobId": "j", "log": {}}] * 2)
        assert await engine.insert_all("StoredLog", []) == []
        await engine.insert_all("StoredLog", [{"jobId": "j", "log": {"n": n}} for n in range(3)])
        return await engine.rows_of("StoredLog", "j")

    rows = asyncio.run(act())
    assert [row["id"] for row in rows[:1]] == ["log-2"]
    assert [row["log"] for row in rows[1:]] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert len({row["id"] for row in rows}) == 4
    assert {row["createdAt"] for row in rows} == {world.clock.now()}


def test_rows_of_one_job_are_listed_alone_and_in_order():
    world = World("w", Options("test-internal-key", "manual"))

    async def act():
        rows = [{"id": f"log-{n}", "jobId": f"job-{n % 2}", "log": {"n": n}} for n in (5, 3, 4, 1)]
        await world.engine.insert_all("StoredLog", rows)
        store = world.engine.store
        listed = [[row["id"] for row in await store.rows("StoredLog", of)] for of in ("job-0", "job-1", "job-2", None)]
        await world.reset()
        return listed, await store.rows("StoredLog", "job-1"), await store.rows("StoredLog")

    listed, *emptied = asyncio.run(act())
    assert listed == [["log-4"], ["log-5", "log-3", "log-1"], [], ["log-5", "log-3", "log-4", "log-1"]]
    assert emptied == [[], []]
