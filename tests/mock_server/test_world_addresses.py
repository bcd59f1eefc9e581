"""A world is reached by its path, by a port of its own, or by a key of its own; what it held is free when it goes."""

from __future__ import annotations

import socket

import httpx
import pytest
from asgi import ask
from mock_world import KEY, World, start, stop

from mock_server.control import Guard
from mock_server.server import Server
from mock_server.worlds import Options, Worlds

POLL = "/internal/runtime/jobs/poll"
TYPES = ["learning_state_analysis"]


@pytest.fixture
def make(base_url, client):
    made = []

    def make(**options):
        answer = client.post(f"{base_url}/__control__/worlds", json=options)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["id"])
        return answer.json()

    yield make
    for id_ in made:
        client.delete(f"{base_url}/__control__/worlds/{id_}")


def poll(client, url, key=KEY):
    headers = {"x-internal-api-key": key, "x-runtime-instance-id": "r"}
    return client.post(url + POLL, headers=headers, json={"runtimeInstanceId": "r", "supportedJobTypes": TYPES})


def ids(answer):
    return [job["id"] for job in answer.json()["jobs"]]


def job_at(client, url, **headers):
    """A new job, made by the control plane at a URL."""
    body = {"action": "setup", "state": "job", "params": {"jobType": TYPES[0]}}
    answer = client.post(f"{url}/__control__/provider-states/runtime-api", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["jobId"]


def test_the_url_that_comes_back_reaches_the_world_as_its_caller_called(make, client, base_url):
    made = make()
    assert made["baseUrl"] == base_url + made["path"]
    job = job_at(client, made["baseUrl"])
    assert ids(poll(client, made["baseUrl"])) == [job]
    localhost = base_url.replace("127.0.0.1", "localhost")
    seen = client.get(f"{base_url}/__control__/worlds/{made['id']}", headers={"host": localhost.partition("//")[2]})
    assert seen.json()["baseUrl"] == localhost + made["path"]


def test_a_world_on_a_port_of_its_own_stands_there_without_a_prefix(make, client, base_url):
    made, other = make(port=True), make(port=True)
    assert made["baseUrl"] == f"http://127.0.0.1:{made['port']}"
    assert made["port"] != other["port"]
    job = job_at(client, made["baseUrl"])
    assert ids(poll(client, made["baseUrl"])) == ids(poll(client, base_url + made["path"])) == [job]
    assert ids(poll(client, other["baseUrl"])) == []
    entries = client.get(f"{made['baseUrl']}/__control__/journal").json()["entries"]
    assert [entry["path"] for entry in entries] == [POLL, POLL]


def test_a_worlds_port_serves_no_other_world(make, client, base_url):
    made, other = make(port=True), make()
    assert poll(client, made["baseUrl"] + made["path"]).status_code == 200
    answer = poll(client, made["baseUrl"] + other["path"])
    assert answer.status_code == 404
    assert "one world alone" in answer.json()["error"]
    seen = client.get(f"{made['baseUrl']}/__control__/worlds/{other['id']}").json()
    assert seen["baseUrl"] == base_url + other["path"]


def test_a_port_can_be_chosen_and_is_free_again_when_its_world_goes(make, client, base_url):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = make(port=port)
    assert made["port"] == port
    with httpx.Client() as kept:
        assert poll(kept, made["baseUrl"]).status_code == 200
        assert client.delete(f"{base_url}/__control__/worlds/{made['id']}").status_code == 204
        with pytest.raises(httpx.TransportError):  # the connection that was open is closed, and there is no new one
            poll(kept, made["baseUrl"])
    again = make(port=port)
    assert ids(poll(client, again["baseUrl"])) == []


def test_a_port_in_use_is_said_with_the_mend(make, client, base_url):
    taken = make(port=True)["port"]
    answer = client.post(f"{base_url}/__control__/worlds", json={"id": "no-port", "port": taken})
    assert answer.status_code == 409
    assert f"port {taken} of 127.0.0.1 can't be had" in answer.json()["error"]
    assert "true to have one picked" in answer.json()["error"]
    assert client.get(f"{base_url}/__control__/worlds/no-port").status_code == 404


def test_a_port_is_given_back_where_its_world_can_not_be_made(client, base_url):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    job = {"id": "j", "userId": "u", "jobType": TYPES[0], "targetType": "user", "targetId": "u", "status": "locked"}
    for wrong in ({"apiKey": KEY}, {"data": {"jobs": [job]}}):
        assert client.post(f"{base_url}/__control__/worlds", json={"port": port, **wrong}).status_code in (400, 409)
        with socket.create_server(("127.0.0.1", port)):
            pass


@pytest.mark.parametrize("path", ["/worlds", "/worlds/itself"])
def test_a_world_that_drops_itself_by_its_own_port_answers_first(path):
    process, url = start()
    made = httpx.post(f"{url}/__control__/worlds", json={"id": "itself", "port": True}).json()
    answer = httpx.delete(f"{made['baseUrl']}/__control__{path}")
    assert answer.status_code < 300
    assert answer.headers["connection"] == "close"
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{made['baseUrl']}/__control__/health")
    assert stop(process) == ""


def test_the_ports_close_with_the_server():
    process, url = start()
    port = httpx.post(f"{url}/__control__/worlds", json={"port": True}).json()["port"]
    assert stop(process) == ""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_port_of_a_server_for_everybody_is_for_this_machine_alone():
    process, url = start("--host", "0.0.0.0", "--control-token", "let-me-in")
    near = url.replace("0.0.0.0", "127.0.0.1")
    port = url.rpartition(":")[2]
    bearer = {"authorization": "Bearer let-me-in"}
    made = httpx.post(f"{near}/__control__/worlds", json={"port": True}, headers=bearer).json()
    assert made["baseUrl"] == f"http://127.0.0.1:{made['port']}"
    seen = httpx.get(f"{near}/__control__/worlds/{made['id']}", headers={**bearer, "host": f"mock.internal:{port}"})
    assert seen.json()["baseUrl"] == f"http://mock.internal:{port}{made['path']}"
    stop(process)


def test_a_key_of_its_own_finds_the_world_at_the_root(make, client, base_url):
    made = make(apiKey="key-of-team-a")
    assert made["ownKey"]
    job = job_at(client, base_url, **{"x-internal-api-key": "key-of-team-a"})
    assert ids(poll(client, base_url, "key-of-team-a")) == [job]
    assert job not in ids(poll(client, base_url))
    # Under its prefix, too, it is the world's only key.
    assert poll(client, made["baseUrl"], "key-of-team-a").status_code == 200
    assert poll(client, made["baseUrl"]).status_code == 401
    client.delete(f"{base_url}/__control__/worlds/{made['id']}")
    assert poll(client, base_url, "key-of-team-a").status_code == 401
    assert make(apiKey="key-of-team-a")["ownKey"]


@pytest.mark.parametrize("key", [KEY, "key-of-team-b"], ids=["the server's", "another world's"])
def test_a_key_that_is_taken_is_refused_and_not_shown(make, client, base_url, key):
    make(apiKey="key-of-team-b")
    answer = client.post(f"{base_url}/__control__/worlds", json={"apiKey": key})
    assert answer.status_code == 409
    assert "another world's" in answer.json()["error"]
    assert key not in answer.text


def test_an_id_that_is_taken_is_refused(client, base_url):
    answer = client.post(f"{base_url}/__control__/worlds", json={"id": "default"})
    assert answer.status_code == 409
    assert "choose another id" in answer.json()["error"]


def test_a_key_is_a_secret(make, client, base_url):
    key = "key/of+team=c"
    made = make(apiKey=key)
    control = f"{base_url}/__control__"
    world = World(client, base_url, made["path"])
    world.send("POST", f"/internal/runtime/jobs/{key.replace('/', '_')}/lock", headers={"x-internal-api-key": key})
    leaky = {"runtimeInstanceId": key, "supportedJobTypes": TYPES}
    headers = {"x-internal-api-key": key, "x-runtime-instance-id": "r"}
    client.post(base_url + POLL, json=leaky, headers=headers)
    client.post(base_url + POLL, json=leaky, headers={**headers, "x-internal-api-key": KEY})  # to the wrong world
    shown = [
        str(made),
        client.get(f"{control}/worlds").text,
        client.get(f"{control}/worlds/{made['id']}").text,
        client.get(f"{control}/journal?limit=1000").text,
        client.get(f"{base_url}{made['path']}/__control__/journal").text,
        client.post(f"{control}/worlds", json={"apiKey": [key]}).text,
        client.post(f"{control}/worlds", json={"apiKey": f"{key} {key}"}).text,
        client.get(f"{base_url}/__worlds__/{key.replace('/', '%2F')}/x").text,
    ]
    assert not [text for text in shown if key in text]
    assert any("[redacted]" in text for text in shown)


def test_without_a_port_or_a_key_nobody_looks_for_them():
    worlds = Worlds(Options(api_key=KEY))
    worlds.make()
    assert not worlds.routed
    worlds.make(api_key="another-key")
    assert worlds.routed


def test_a_mock_within_a_test_has_no_ports():
    app = Server(Worlds(Options(api_key=KEY)), Guard(None, None))
    status, _, answer = ask(app, "POST", "/__control__/worlds", {"port": True})
    assert status == 400
    assert "contract serve" in answer["error"]
