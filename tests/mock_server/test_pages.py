"""Pages are served beside every world's APIs: without a key, without a trace in the journal, sealed by a policy."""

from __future__ import annotations

import pytest

PATH = "/__pages__/follow"
HOST = "127.0.0.1"


@pytest.mark.parametrize("prefix", ["", "world"])
def test_a_page_is_there_without_a_key(world, client, prefix):
    root = world.base_url + (world.path if prefix else "")
    answer = client.get(root + PATH)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<title>Follow a job</title>" in answer.text
    head = client.head(root + PATH)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(answer.content)))
    assert world.journal() == []


def test_its_policy_lets_it_speak_to_its_own_server_alone(world, client):
    headers = client.get(world.base_url + PATH).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["form-action"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for name in ("script-src", "style-src"):
        assert policy[name].startswith("'sha256-")
        assert "unsafe" not in policy[name]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


def test_it_takes_nothing_from_elsewhere(world, client):
    text = client.get(world.base_url + PATH).text
    assert "//" not in text.replace("// ", "")  # no address with a host; comments have a space


def test_other_paths_and_methods_are_refused(world, client):
    for path in ("/__pages__/", "/__pages__/follow/", "/__pages__/../follow", "/__pages__/%2e%2e/pages/follow.html"):
        answer = world.raw(f"GET {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert answer.endswith(b"There is no such page. There are: /__pages__/follow\n")
    answer = client.post(world.base_url + PATH, content=b"x")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert client.get(f"{world.base_url}/__worlds__/none{PATH}").status_code == 404
    assert world.journal() == []
