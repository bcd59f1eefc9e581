"""The secrets by which webhooks are signed: what is signed by them verifies, and they show nowhere."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import TYPE_CHECKING

import pytest
import standardwebhooks
from hub_world import HubWorld, Receiver, made, served
from mock_world import SERVE, World

if TYPE_CHECKING:
    from collections.abc import Iterator


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


@pytest.mark.parametrize(
    "secret",
    [
        "whsec_" + base64.b64encode(bytes(range(32))).decode(),
        "a plain text, 纯文本",
        "whsec of ours",
        "aGFsbG8gd2VsdA==",
    ],
)
def test_what_is_signed_the_standards_library_verifies(client, base_url, receiver, secret):
    world = client.post(f"{base_url}/__control__/worlds", json={"webhookSecret": secret}).json()
    hub = made(HubWorld(World(client, base_url, world["path"])))
    hub.submit({"callbackUrl": receiver.url, "metadata": {"note": "检查 😀 <&>"}})
    library = standardwebhooks.Webhook(secret if secret.startswith("whsec_") else secret.encode())
    for headers, body in receiver.wait(2):
        assert library.verify(body, headers) == json.loads(body)
    shown = client.get(f"{base_url}/__control__/worlds").text + json.dumps(hub.world.journal())
    assert secret not in shown
    client.delete(f"{base_url}/__control__/worlds/{world['id']}")


def test_without_a_secret_nothing_is_signed(hub, receiver):
    hub.submit({"callbackUrl": receiver.url})
    for headers, _ in receiver.wait(2):
        assert headers["webhook-id"].startswith("msg_")
        assert "webhook-signature" not in headers


def test_the_secret_never_shows(receiver):
    secret = "whsec_" + base64.b64encode(b"never shown, not anywhere at all").decode()
    failing = Receiver(500)
    try:
        with served("--webhook-secret", secret) as hub:
            for url in (receiver.url, failing.url, "http://127.0.0.1:1/refused"):
                hub.submit({"callbackUrl": f"{url}?secret={secret}", "prompt": secret})
            hub.send("GET", f"/v1/jobs?externalId={secret}", headers={"x-mine": secret})
            hub.send("POST", "/v1/jobs", json={"items": [{"kind": secret, "callbackUrl": f"http://{secret}.example/"}]})
            hub.try_state("default-callback", url=f"http://team.example/{secret}")
            hub.state("advance-time", seconds=6)
            failing.wait(2)
            texts = [hub.world.control("GET", path).text for path in ("/journal", "/journal/har", "/worlds", "/clock")]
    finally:
        failing.close()
    assert "submitJobs" in texts[0]
    for text in texts:
        assert secret not in text
        assert secret.removeprefix("whsec_") not in text


def test_a_secret_that_can_not_be_used_is_not_repeated():
    secret = "whsec_no base64, and nobody's to read"
    ended = subprocess.run(
        [*SERVE, "--port", "0", "--webhook-secret", secret], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 2
    assert "--webhook-secret" in ended.stderr
    assert "nobody's" not in ended.stdout + ended.stderr
