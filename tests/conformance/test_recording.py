"""What is kept of a check's exchanges: all that is needed to repeat them, and no secret."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess

import pytest

from conformance.recording import FIRST, LAST, MAX_BODY, Recorder
from openapi.redaction import Redactor

KEY = "a-key-of-27-characters-here"


def recorded(content=b"{}", answer=b"{}", headers=None, url="http://build.test/a"):
    recorder = Recorder(Redactor([KEY]))
    sent = {"x-internal-api-key": KEY, "content-type": "application/json", **(headers or {})}
    recorder.record("POST", url, sent, content, (200, {"x-echo": KEY}, answer), variables={KEY: "CONTRACT_API_KEY"})
    return recorder


@pytest.mark.parametrize("form", [KEY, base64.b64encode(KEY.encode()).decode(), KEY.encode().hex()])
def test_no_form_of_the_key_is_kept(form):
    recorder = recorded(form.encode(), b"\xff" + form.encode(), url=f"http://build.test/{form}")
    [exchange] = recorder.exchanges
    kept = json.dumps(exchange) + recorder.commands[0]
    kept += base64.b64decode(exchange["response"]["bodyBase64"]).decode("latin-1")
    assert form not in kept
    assert "[redacted]" in kept


@pytest.mark.parametrize("before", range(MAX_BODY - len(KEY), MAX_BODY + 1, 9))
def test_no_part_of_the_key_is_left_where_a_body_is_cut(before):
    [exchange] = recorded(answer=b"x" * before + KEY.encode() + b"y" * 100).exchanges
    body = exchange["response"]["body"]
    assert exchange["response"]["truncated"] is True
    assert len(body) <= MAX_BODY
    assert KEY[:6] not in body


def test_a_secret_that_is_learnt_later_is_taken_out_of_what_was_kept_before():
    recorder = recorded(answer=b'{"apiKey": "learnt-later"}')
    recorder.redactor.add("learnt-later")
    assert "learnt-later" not in json.dumps(recorder.exchanges)


def test_the_first_and_the_last_exchanges_are_kept():
    recorder = Recorder()
    for number in range(FIRST + LAST + 7):
        recorder.record("GET", f"http://build.test/{number}", {}, b"", None)
    urls = [exchange["request"]["url"].rpartition("/")[2] for exchange in recorder.exchanges]
    assert (urls[0], urls[FIRST - 1], urls[FIRST], urls[-1]) == ("0", "199", "207", "406")
    assert recorder.commands[FIRST] == "# 7 requests are left out here"


@pytest.mark.parametrize("content", [b'{"a": "it\'s"}', b"\x00\xff", b'"' + b"x" * 5000 + b'"', b"$HOME `id` \\n"])
def test_a_command_sends_the_same_bytes(content, tmp_path):
    command = recorded(content).commands[0]
    curl = tmp_path / "curl"
    curl.write_text(
        '#!/bin/sh\nfor last; do :; done\nif [ "$last" = @- ]; then cat; else printf %s "$last"; fi\n', "ascii"
    )
    curl.chmod(0o700)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CONTRACT_API_KEY": KEY}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, check=True)
    assert done.stdout == content


def test_the_key_of_a_command_comes_from_the_environment():
    words = shlex.split(recorded().commands[0])
    assert "x-internal-api-key: $CONTRACT_API_KEY" in words
