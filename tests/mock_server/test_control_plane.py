"""Who may use the control plane."""

from __future__ import annotations

import httpx
import pytest
from mock_world import start, stop


def test_health_says_ok(world):
    answer = world.control("GET", "/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["version"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "evil.example:80"])
def test_a_strangers_host_name_is_refused(world, host):
    answer = world.control("GET", "/journal", headers={"host": host})
    assert answer.status_code == 403
    assert answer.json()["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_a_strangers_page_is_refused(world, origin):
    answer = world.control(
        "POST", "/provider-states/runtime-api", json={"action": "setup", "state": "reset"}, headers={"origin": origin}
    )
    assert answer.status_code == 403


def test_the_mocks_own_page_is_served(world):
    assert world.control("GET", "/journal", headers={"origin": world.base_url}).status_code == 200


def test_localhost_is_no_stranger(world):
    assert world.control("GET", "/health", headers={"host": f"localhost:{world.port}"}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("PUT", "/journal", 405), ("PUT", "/worlds", 405)]
)
def test_what_is_not_there_is_told_in_the_same_shape(world, method, path, status):
    answer = world.control(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert ("allow" in answer.headers) == (status == 405)


def test_the_runtime_apis_key_opens_nothing_here(world):
    assert world.control("GET", "/journal", headers={"x-internal-api-key": "wrong"}).status_code == 200


@pytest.fixture(scope="module")
def guarded():
    process, url = start("--host", "0.0.0.0", "--control-token", "let-me-in")
    yield url.replace("0.0.0.0", "127.0.0.1")
    stop(process)


def test_behind_a_token_only_its_bearer_enters(guarded, client):
    def journal(**headers):
        return client.get(f"{guarded}/__control__/journal", headers=headers)

    assert journal().status_code == 401
    assert journal(authorization="Bearer wrong").status_code == 401
    assert journal(authorization="let-me-in").status_code == 401
    assert "let-me-in" not in journal().text
    assert journal(authorization="Bearer let-me-in").status_code == 200
    # Reached under any name: the token protects it.
    assert journal(authorization="Bearer let-me-in", host="mock.internal:8080").status_code == 200


def test_health_is_for_everybody(guarded, client):
    assert client.get(f"{guarded}/__control__/health").status_code == 200


def test_the_token_is_not_asked_for_by_the_api(guarded, client):
    answer = client.post(f"{guarded}/internal/runtime/jobs/poll", headers={"x-internal-api-key": "test-internal-key"})
    assert answer.status_code == 400


def test_an_unknown_host_header_does_not_matter_to_the_api(world):
    answer = httpx.post(f"{world.base_url}{world.path}/internal/runtime/jobs/poll", headers={"host": "api.internal"})
    assert answer.status_code == 401
