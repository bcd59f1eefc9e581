"""What README shows of the journal and of verification works as it stands."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest
from mock_world import World, start, stop
from services import README, needs, readme_blocks


@pytest.fixture
def served():
    process, url = start("--data", str(README.parent / "mock_server/data/example.yaml"), "--clock", "manual")
    with httpx.Client() as client:
        yield World(client, url, "")
    stop(process)


@needs("bash", "curl")
def test_the_commands_work(served):
    def run(command):
        script = f"set -e -o pipefail\n{command.replace('curl -s', 'curl -sS --fail-with-body')}"
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True).stdout

    served.lock("job-abc123")
    served.state("advance-time", seconds=29)
    served.heartbeat("job-abc123")
    (verify,) = readme_blocks("Verify a Runtime", language="sh", url=served.base_url)
    assert '"ok":true' in run(verify)
    served.heartbeat("job-abc123", by="another")
    (journal,) = readme_blocks("What was called", language="sh", url=served.base_url)
    assert '"errorCode":"LOCK_NOT_HELD"' in run(journal)
    assert served.journal() == []


def test_the_test_in_python_works(served, tmp_path):
    (code,) = readme_blocks("Verify a Runtime", language="python", url=served.base_url)
    runtime = (
        "for url in (f'/internal/runtime/jobs/{job}/{name}' for name in ('lock', 'heartbeat')):\n"
        "        MOCK.post(url, json={'runtimeInstanceId': 'r'},"
        " headers={'x-internal-api-key': 'test-internal-key', 'x-runtime-instance-id': 'r'})"
    )
    path = tmp_path / "test_runtime.py"
    path.write_text(code.replace("...", runtime))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
