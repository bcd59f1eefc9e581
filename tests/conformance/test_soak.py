"""What takes long: other seeds, and builds whose time can't be moved. Run by ``tox -e soak``."""

from __future__ import annotations

import json
import time

import pytest
from test_command import contract, last_line

from conformance import reference
from conformance.systems import AGENT_HUB, RUNTIME_API

pytestmark = pytest.mark.soak

KEY, TOKEN = "key-of-the-soak", "zqa_live_of_the_soak"
SECRET = "whsec_dGhlIHNlY3JldCBvZiB0aGUgc29haw=="
SECRETS = {"CONTRACT_API_KEY": KEY, "CONTRACT_HUB_TOKEN": TOKEN, "CONTRACT_WEBHOOK_SECRET": SECRET}
GIVEN = {RUNTIME_API: ("--api-key", KEY), AGENT_HUB: ("--token", TOKEN, "--webhook-secret", SECRET)}
UNSHOWN = {RUNTIME_API: set(), AGENT_HUB: {"HUB-WH-64"}}
"""What no build shows that signs its webhooks."""
RUN_LIMIT = 120
"""The longest that a check waits for: the Runtime API's limit of a run, seconds; the hub's checks wait no longer."""


@pytest.mark.parametrize("seed", range(1, 101))
def test_every_seed_is_conformant(seed):
    done = contract("check", "--seed", str(seed), timeout=240)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout


def check(system, base_url, report, *arguments, timeout):
    """The skipped rules, each with its reason, of a build that is conformant."""
    target = ("--base-url", base_url, "--provider-states", system.states_url(base_url), *GIVEN[system])
    told = ("--report", f"json={report}")
    done = contract("check", system.name, *target, *told, *arguments, timeout=timeout)
    assert (done.returncode, last_line(done)) == (0, "conformant"), done.stdout
    rules = json.loads(report.read_text("utf-8"))["requirements"]
    return {rule["id"]: rule["reason"] for rule in rules if rule["status"] == "skipped"}


@pytest.mark.parametrize("level", ["seed", "full"])
@pytest.mark.parametrize("system", GIVEN, ids=lambda system: system.name)
def test_a_served_build_is_conformant_at_each_level(tmp_path, system, level):
    with reference.serve(SECRETS, "--clock", "manual") as base_url:
        skipped = check(system, base_url, tmp_path / "report.json", "--level", level, timeout=240)
    assert skipped.keys() <= UNSHOWN[system]


@pytest.mark.parametrize("level", ["seed", "full"])
@pytest.mark.parametrize(
    ("system", "hidden"),
    [(RUNTIME_API, ("advance-time", "inspect-job")), (AGENT_HUB, ("advance-time",))],
    ids=lambda part: getattr(part, "name", ""),
)
def test_a_build_that_shows_little_is_judged_in_real_time(tmp_path, system, hidden, level):
    began = time.monotonic()
    without = (part for state in hidden for part in ("--without-state", state))
    with reference.serve(SECRETS, *without) as base_url:
        skipped = check(
            system, base_url, tmp_path / "report.json", "--level", level, "--no-fuzz", timeout=RUN_LIMIT + 180
        )
    took = time.monotonic() - began
    reasons = {reason for id_, reason in skipped.items() if id_ not in UNSHOWN[system]}
    assert {f"needs the provider state {state}" for state in hidden} <= reasons
    assert all("needs" in reason for reason in reasons), reasons
    assert took < RUN_LIMIT + 15, f"it took {took:.0f} s"
