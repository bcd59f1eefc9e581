"""``contract serve``: one line when it answers, clear words when it can't."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time

import httpx
import pytest
from mock_world import KEY, SERVE, start, stop


def refused(*options, environment=None):
    """What the command says on standard error when it does not start."""
    done = subprocess.run([*SERVE, *options], capture_output=True, text=True, timeout=20, env=environment, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    return done.stderr


def poll(url, key=KEY):
    body = {"runtimeInstanceId": "r", "supportedJobTypes": ["learning_state_analysis"]}
    headers = {"x-internal-api-key": key, "x-runtime-instance-id": "r"}
    return httpx.post(f"{url}/internal/runtime/jobs/poll", headers=headers, json=body)


def test_it_answers_as_soon_as_it_says_so_and_stops_when_asked():
    begin = time.monotonic()
    process, url = start()
    assert time.monotonic() - begin < 10  # well under a second on an idle machine
    assert poll(url).json() == {"jobs": []}
    assert stop(process) == ""
    assert process.returncode == 0


def test_it_ends_with_whoever_held_its_standard_input():
    """So that a test run that is killed leaves no server behind."""
    command = [*SERVE, "--port", "0", "--until-eof"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        url = json.loads(process.stdout.readline())["baseUrl"]
        assert poll(url).status_code == 200
        process.stdin.close()
        assert process.wait(timeout=10) == 0


def test_ctrl_c_stops_it_too_with_a_connection_open():
    process, url = start()
    with httpx.Client() as client:
        client.get(f"{url}/__control__/health")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--clock", "fast"], ["fast", "manual", "x60"]),
        (["--clock", "x0"], ["x0", "x60"]),
        (["--mutant", "no-such-mutant"], ["no-such-mutant", "contract mutants list"]),
        (["--without-state", "advance-tme"], ["advance-tme", "advance-time"]),
        (["--host", "0.0.0.0"], ["0.0.0.0", "--control-token"]),
        (["--host", "192.0.2.1", "--control-token", "t"], ["192.0.2.1"]),
        (["--port", "70000"], ["70000", "65535"]),
        (["--prot", "1"], ["--prot", "--port"]),
        (["--api-key", ""], ["--api-key"]),
        (["--hub-token", ""], ["--hub-token"]),
        (["--hub-token", "two words"], ["--hub-token"]),
        (["--api-key", "same", "--hub-token", "same"], ["--api-key", "Agent Hub"]),
        (["--api-key", "same_b", "--hub-token", "same"], ["--api-key", "Agent Hub"]),
        (["--webhook-secret", "whsec_"], ["--webhook-secret"]),
        (["--allow-callback-host", "http://team.example/"], ["--allow-callback-host"]),
        (["--allow-callback-host", "*"], ["--allow-callback-host"]),
        (["--data", "no-such.yaml"], ["no-such.yaml"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_bad_option_is_named_with_its_mend(options, told):
    said = refused("--port", "0", *options)
    for text in told:
        assert text in said


def test_a_port_in_use_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused("--port", str(port))
    assert len(said.strip().splitlines()) == 1
    assert str(port) in said
    assert "--port" in said


def test_the_key_comes_from_the_option_or_the_environment(monkeypatch):
    process, url = start("--api-key", "another-key")
    assert (poll(url).status_code, poll(url, "another-key").status_code) == (401, 200)
    stop(process)
    monkeypatch.setenv("CONTRACT_API_KEY", "key-of-the-environment")
    process, url = start()
    assert poll(url, "key-of-the-environment").status_code == 200
    stop(process)


def test_a_hidden_state_is_not_offered():
    process, url = start("--without-state", "advance-time", "--without-state", "inspect-job")
    states = f"{url}/__control__/provider-states/runtime-api"
    assert {"advance-time", "inspect-job"}.isdisjoint(httpx.get(states).json()["states"])
    assert (
        httpx.post(states, json={"action": "setup", "state": "advance-time", "params": {"seconds": 1}}).status_code
        == 501
    )
    stop(process)


def test_seed_data_is_there_when_it_answers(tmp_path):
    job = {"id": "job-1", "userId": "u", "jobType": "learning_state_analysis", "targetType": "user", "targetId": "u"}
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"jobs": [job]}))
    process, url = start("--data", str(path))
    assert [entry["id"] for entry in poll(url).json()["jobs"]] == ["job-1"]
    stop(process)


def test_data_that_fits_no_state_is_refused_before_it_answers(tmp_path):
    path = tmp_path / "data.yaml"
    path.write_text(
        "jobs:\n- {id: a, userId: u, jobType: quiz_generation, targetType: user, targetId: t, status: locked}\n"
    )
    said = refused("--port", "0", "--data", str(path))
    assert f"{path}:2:" in said
    assert "lockedBy" in said
