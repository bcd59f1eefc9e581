"""What takes long: other seeds, and a build whose time can't be moved. Run by ``tox -e soak``."""

from __future__ import annotations

import json
import time

import pytest
from test_command import contract, last_line

from conformance import reference

pytestmark = pytest.mark.soak

KEY = "key-of-the-soak"
RUN_LIMIT = 120
"""The longest that one rule needs a check to wait for: the seeds' limit of a run, seconds."""


@pytest.mark.parametrize("seed", range(2, 12))
def test_every_seed_is_conformant(seed):
    done = contract("check", "--seed", str(seed), timeout=120)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout


def check(base_url, *arguments, timeout):
    states = f"{base_url}/__control__/provider-states/runtime-api"
    target = ("--base-url", base_url, "--provider-states", states, "--api-key", KEY)
    return contract("check", "runtime-api", *target, *arguments, timeout=timeout)


@pytest.mark.parametrize("level", ["seed", "full"])
def test_a_served_build_is_conformant_at_each_level(level):
    with reference.serve(KEY, "--clock", "manual") as base_url:
        done = check(base_url, "--level", level, timeout=120)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    assert "skipped" not in done.stdout.replace(" 0 skipped", "")


@pytest.mark.parametrize("level", ["seed", "full"])
def test_a_build_that_shows_little_is_judged_in_real_time(tmp_path, level):
    report = tmp_path / "report.json"
    began = time.monotonic()
    with reference.serve(KEY, "--without-state", "advance-time", "--without-state", "inspect-job") as base_url:
        done = check(base_url, "--level", level, "--no-fuzz", "--report", f"json={report}", timeout=300)
    took = time.monotonic() - began
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    skipped = [rule for rule in json.loads(report.read_text("utf-8"))["requirements"] if rule["status"] == "skipped"]
    reasons = {rule["reason"] for rule in skipped}
    assert {"needs the provider state advance-time", "needs the provider state inspect-job"} <= reasons
    assert all("needs" in reason for reason in reasons), reasons
    assert took < RUN_LIMIT + 15, f"it took {took:.0f} s"
