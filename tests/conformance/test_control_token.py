"""Provider states that ask for a token: a mock that is served with one, judged and loaded."""

from __future__ import annotations

import json

import pytest
from test_command import contract, last_line

from conformance import reference

KEY = "key-behind-a-token"
TOKEN = "let-me-in-to-the-states"
ONE = {"runtime-api": "RT-LOCK-13", "agent-hub": "HUB-SUB-08"}
VARIABLES = {"CONTRACT_API_KEY": KEY, "CONTRACT_HUB_TOKEN": KEY + "-hub", "CONTRACT_CONTROL_TOKEN": TOKEN}


@pytest.fixture(scope="module")
def guarded():
    with reference.serve(VARIABLES, "--clock", "manual") as base_url:
        yield base_url


def target(base_url: str, system: str) -> list[str]:
    keys = {"runtime-api": ("--api-key", KEY), "agent-hub": ("--token", KEY + "-hub")}
    return [
        "--base-url",
        base_url,
        "--provider-states",
        f"{base_url}/__control__/provider-states/{system}",
        *keys[system],
    ]


@pytest.mark.parametrize("system", ONE)
def test_a_mock_with_a_token_is_judged_by_who_has_it(guarded, system, tmp_path, monkeypatch):
    report = tmp_path / "report.json"
    asked = ("check", system, *target(guarded, system), "--only", ONE[system], "--no-fuzz")
    assert contract(*asked, "--control-token", TOKEN).returncode == 0
    monkeypatch.setenv("CONTRACT_CONTROL_TOKEN", TOKEN)
    done = contract(*asked, "--report", f"json={report}")
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout + done.stderr
    text = report.read_text("utf-8")
    assert TOKEN not in text + done.stdout + done.stderr
    assert "authorization: Bearer $CONTRACT_CONTROL_TOKEN" in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.parametrize(
    ("given", "told"), [((), "asks for a token (401)"), (("--control-token", "another"), "refuses its token (401)")]
)
def test_without_it_the_mend_is_told(guarded, given, told):
    done = contract("check", "runtime-api", *target(guarded, "runtime-api"), "--only", "RT-LOCK-13", *given)
    assert (done.returncode, last_line(done)) == (3, "inconclusive")
    said = " ".join(done.stdout.split())
    assert told in said
    assert "give it as CONTRACT_CONTROL_TOKEN or --control-token" in said


def test_a_token_that_no_header_can_carry_is_told(guarded):
    done = contract("check", "runtime-api", *target(guarded, "runtime-api"), "--control-token", "")
    assert done.returncode == 2
    assert "--control-token is empty" in done.stderr


def test_a_load_makes_its_jobs_behind_the_token(guarded, monkeypatch):
    monkeypatch.setenv("CONTRACT_CONTROL_TOKEN", TOKEN)
    # Its clock stands: that jobs are made, and end, is all that is looked at.
    done = contract("load", *target(guarded, "runtime-api"), "--clients", "2", "--jobs", "3", "--seconds", "3")
    assert "asks for a token" not in done.stdout + done.stderr
    assert "no job could be made" not in done.stdout + done.stderr
    assert TOKEN not in done.stdout + done.stderr
