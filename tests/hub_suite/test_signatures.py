"""Our reading of Standard Webhooks against their own library, and what it refuses."""

import base64
import secrets
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook

from contract_tests.agent_hub.receiver import Delivery
from contract_tests.agent_hub.signatures import (
    judge_signature,
    judge_unsigned,
    secret_bytes,
    signature,
    signature_by,
)
from contract_tests.checks import CheckFailed

BODY = '{"type":"job.completed","data":{"title":"检查 😀"}}'.encode()
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The secret of the library's own example."""


def delivery(secret=SECRET, *, body=BODY, signed=None, **headers):
    sent = {"webhook-id": "msg_1", "webhook-timestamp": "1762682700"}
    if secret:
        sent["webhook-signature"] = signature(secret, "msg_1", "1762682700", signed or body)
    sent |= {f"webhook-{name}": value for name, value in headers.items()}
    return Delivery("POST", "/", {name: value for name, value in sent.items() if value is not None}, body, 0.0, 1)


@pytest.mark.parametrize("size", [24, 32, 64])
def test_a_base64_secret_signs_as_the_library_does(size):
    for _ in range(20):
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(size)).decode()
        at, body = 1_762_682_700, secrets.token_hex(40)
        wanted = Webhook(secret).sign("msg_x", datetime.fromtimestamp(at, UTC), body)
        assert signature(secret, "msg_x", str(at), body.encode()) == wanted


def test_a_text_secret_signs_as_the_library_does_with_its_bytes():
    """The library reads every secret as base64: it is given our text's bytes in base64."""
    for text in ("geheim", "whsec", "密钥 of ours", "a" * 200):
        library = Webhook(base64.b64encode(text.encode()).decode())
        wanted = library.sign("msg_x", datetime.fromtimestamp(1_762_682_700, UTC), BODY.decode())
        assert signature(text, "msg_x", "1762682700", BODY) == wanted


def test_the_standards_own_example():
    """The example that the specification of Standard Webhooks and its libraries print."""
    came = signature(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert came == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_library_accepts_what_we_accept():
    now = str(int(datetime.now(UTC).timestamp()))
    sent = {"webhook-id": "m", "webhook-timestamp": now, "webhook-signature": signature(SECRET, "m", now, BODY)}
    assert Webhook(SECRET).verify(BODY, sent)["type"] == "job.completed"
    judge_signature(Delivery("POST", "/", sent, BODY, 0.0, 1), SECRET)


def test_secrets():
    assert secret_bytes("whsec_aGFsbG8=") == b"hallo"
    assert secret_bytes("aGFsbG8=") == b"aGFsbG8="
    with pytest.raises(ValueError, match="no base64"):
        secret_bytes("whsec_not base64!")


def test_one_good_signature_among_several_is_enough():
    good = delivery().headers["webhook-signature"]
    judge_signature(delivery(signature=f"v1,AAAA {good} v1a,BBBB"), SECRET)


@pytest.mark.parametrize(
    ("sent", "secret", "rules"),
    [
        (delivery(id=None), SECRET, ("HUB-WH-59",)),
        (delivery(id=""), SECRET, ("HUB-WH-59",)),
        (delivery(timestamp=None), SECRET, ("HUB-WH-59",)),
        (delivery(timestamp="2026-11-09T10:05:00Z"), SECRET, ("HUB-WH-59",)),
        (delivery(timestamp="1762682701"), SECRET, ("HUB-WH-59",)),
        (delivery(id="msg_2"), SECRET, ("HUB-WH-59",)),
        (delivery(signature=None), SECRET, ("HUB-WH-59",)),
        (delivery(signature="v1,"), SECRET, ("HUB-WH-59",)),
        (delivery(signed=b"{}"), SECRET, ("HUB-WH-59",)),
        (delivery("another secret"), SECRET, ("HUB-WH-59",)),
        (delivery(SECRET.removeprefix("whsec_")), SECRET, ("HUB-WH-63",)),
        (delivery("whsec_aGFsbG8="), "aGFsbG8=", ("HUB-WH-63",)),
        (delivery(signature="café"), SECRET, ("HUB-WH-59",)),
    ],
)
def test_what_is_signed_otherwise_fails(sent, secret, rules):
    with pytest.raises(CheckFailed) as told:
        judge_signature(sent, secret)
    assert told.value.rules == rules


def test_a_bare_signature_without_its_version_fails():
    good = delivery().headers["webhook-signature"]
    with pytest.raises(CheckFailed):
        judge_signature(delivery(signature=good.removeprefix("v1,")), SECRET)


def test_without_a_secret_there_is_no_signature():
    assert judge_unsigned(delivery(None))
    assert not judge_unsigned(delivery())  # by a secret that we don't know


@pytest.mark.parametrize("key", [b"", b"null", b"undefined", b"None", b"whsec_"])
def test_a_signature_that_anybody_can_make_fails(key):
    made = signature_by(key, "msg_1", "1762682700", BODY)
    for sent in (made, f"v1,AAAA {made}", ""):
        with pytest.raises(CheckFailed) as told:
            judge_unsigned(delivery(signature=sent))
        assert told.value.rules == ("HUB-WH-64",)
