"""The commands of README's section on the Agent Hub work as they stand, one after the other."""

from __future__ import annotations

import json
import subprocess

import httpx
import pytest
from hub_world import STATES
from mock_world import start, stop
from services import needs, readme_blocks

SECTION = "Five minutes with the Agent Hub"


@pytest.fixture
def url():
    process, url = start("--clock", "manual")
    yield url
    stop(process)


@needs("bash", "curl", "sed")
def test_the_commands_show_what_the_text_says(url):
    setting_up, submitting, following, _judging = readme_blocks(SECTION, language="sh", url=url)
    script = "\n".join(["set -e -o pipefail", setting_up, submitting, "echo FOLLOW", following])
    bash = ["bash", "-c", script]
    lines: list[str] = []
    with subprocess.Popen(bash, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("event: job.state") and sum(said.startswith("event:") for said in lines) == 1:
                moved = {"action": "setup", "state": "advance-time", "params": {"seconds": 60}}
                assert httpx.post(f"{url}{STATES}", json=moved).status_code == 200
    assert process.returncode == 0, "\n".join(lines)

    _node, _outcome, first, second, *_ = [json.loads(line) for line in lines[: lines.index("FOLLOW")] if line]
    assert first["data"] == second["data"]
    assert first["data"]["accepted"] == 1
    events = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    again = ["job.state", "job.state", "job.state"]  # it failed, was queued again, and began anew
    told = ["job.state", "job.progress", *again, "job.progress", "job.progress", "job.completed"]
    assert [event for event in events if event != "job.progress"] == [
        event for event in told if event != "job.progress"
    ]
    assert "job.progress" in events
    batch = json.loads(lines[-1])["data"]
    assert (batch["batchId"], batch["counts"]["done"], batch["progress"]) == ("sprint-42", 1, 1)
